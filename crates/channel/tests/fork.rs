//! Ends used across fork: echo, kills, shared ends.

#![cfg(not(loom))]

use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use headwater_channel::identity;
use headwater_channel::lock::Owner;
use headwater_channel::{Channel, ReceiveError, SendError};
use headwater_testkit::processes::Child;

/// Far enough that only a lost wake-up reaches it.
fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

/// One test at a time: a child would inherit the ends of the others, and keep them open.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(|e| e.into_inner())
}

/// Answers everything until the end.
fn echo(end: &Channel) -> bool {
    let mut buf = [0; 1000];
    loop {
        match end.recv(&mut buf) {
            Ok(n) if end.send(&buf[..n]).is_ok() => {}
            Err(ReceiveError::Closed) => return true,
            _ => return false,
        }
    }
}

fn pause() -> ! {
    loop {
        // SAFETY: waits for a signal.
        unsafe { libc::pause() };
    }
}

#[test]
fn a_child_echoes_until_its_parent_closes() {
    let _turn = alone();
    for spin in [true, false] {
        let pair = Channel::builder().ring_bytes(4096).spin(spin).pair();
        let (a, b) = pair.unwrap();
        let mut ends = (Some(a), Some(b));
        let child = Child::judged(|| {
            drop(ends.0.take());
            ends.1.take().is_some_and(|b| echo(&b))
        });
        let a = ends.0.unwrap();
        drop(ends.1);
        let mut buf = [0; 1000];
        for i in 0..2000 {
            let message = vec![i as u8; i % 1000];
            a.send_deadline(&message, soon()).unwrap();
            let n = a.recv_deadline(&mut buf, soon()).unwrap();
            assert!(buf[..n] == message);
        }
        drop(a);
        assert!(child.succeeded());
    }
}

#[test]
fn what_a_killed_child_had_sent_is_received_then_the_channel_is_closed() {
    let _turn = alone();
    let (a, b) = Channel::pair(4096).unwrap();
    let child = Child::judged(|| {
        while b.try_send(b"0123456789").is_ok() {}
        pause()
    });
    drop(b);
    a.wait_readable(Some(soon())).unwrap();
    let mut buf = [0; 10];
    assert_eq!(a.recv(&mut buf), Ok(10));
    child.kill();
    loop {
        match a.recv_deadline(&mut buf, soon()) {
            Ok(n) => assert_eq!(&buf[..n], b"0123456789"),
            Err(e) => break assert_eq!(e, ReceiveError::Closed),
        }
    }
    assert_eq!(a.send(b"x"), Err(SendError::Closed));
}

#[test]
fn a_sleeping_reader_learns_that_its_peer_was_killed() {
    let _turn = alone();
    let (a, b) = Channel::builder().spin(false).pair().unwrap();
    let child = Child::judged(|| pause());
    drop(b);
    std::thread::scope(|s| {
        let reader = s.spawn(|| a.recv_deadline(&mut [0; 8], soon()));
        child.kill();
        assert_eq!(reader.join().unwrap(), Err(ReceiveError::Closed));
    });
}

#[test]
fn polling_notices_a_killed_peer_after_a_while() {
    let _turn = alone();
    let (a, b) = Channel::pair(4096).unwrap();
    let child = Child::judged(|| pause());
    drop(b);
    child.kill();
    let answers: Vec<_> = (0..65).map(|_| a.try_recv(&mut [0; 8])).collect();
    assert_eq!(answers.last(), Some(&Err(ReceiveError::Closed)));
}

#[test]
fn the_reservation_of_a_killed_process_is_taken_back() {
    let _turn = alone();
    let (a, b) = Channel::pair(4096).unwrap();
    let (ready, told) = Channel::pair(4096).unwrap();
    // Parent and child share end a.
    let child = Child::judged(|| {
        let Ok(mut room) = a.reserve(1000) else {
            return false;
        };
        room.fill(0xff);
        let _ = ready.send(b"reserved");
        pause()
    });
    told.recv_deadline(&mut [0; 8], soon()).unwrap();
    assert_eq!(a.try_send(b"blocked"), Err(SendError::Full));
    child.kill();
    a.send_deadline(b"after", soon()).unwrap();
    let mut buf = [0; 100];
    assert_eq!(b.recv(&mut buf), Ok(5));
    assert_eq!(&buf[..5], b"after");
}

#[test]
fn the_frame_of_a_killed_process_is_received_by_another() {
    let _turn = alone();
    let (a, b) = Channel::pair(4096).unwrap();
    let (ready, told) = Channel::pair(4096).unwrap();
    a.send(b"message").unwrap();
    let child = Child::judged(|| {
        let frame = b.peek();
        let _ = ready.send(b"peeked");
        std::mem::forget(frame);
        pause()
    });
    told.recv_deadline(&mut [0; 8], soon()).unwrap();
    child.kill();
    let mut buf = [0; 100];
    assert_eq!(b.recv_deadline(&mut buf, soon()), Ok(7));
    assert_eq!(b.unread(), 0);
}

#[test]
fn a_child_has_no_part_in_its_parents_reservations_and_frames() {
    let _turn = alone();
    let (a, b) = Channel::pair(4096).unwrap();
    a.send(b"first").unwrap();
    let mut room = a.reserve(100).unwrap();
    let frame = b.peek().unwrap().unwrap();
    let mut held = Some((room, frame));
    let child = Child::judged(|| {
        // The child's copies come to nothing.
        if let Some((room, frame)) = held.take() {
            room.commit(100);
            frame.consume(5);
        }
        a.try_send(b"x") == Err(SendError::Full)
            && b.try_recv(&mut [0; 8]) == Err(ReceiveError::Empty)
    });
    assert!(child.succeeded());
    let frame;
    (room, frame) = held.unwrap();
    room[..6].copy_from_slice(b"second");
    room.commit(6);
    assert_eq!(&*frame, b"first");
    frame.consume(5);
    let mut buf = [0; 100];
    assert_eq!(b.recv(&mut buf), Ok(6));
    assert_eq!(&buf[..6], b"second");
}

#[test]
fn children_share_an_end_and_the_death_of_one_stops_nobody() {
    let _turn = alone();
    let (a, b) = Channel::pair(4096).unwrap();
    let mut ends = (Some(a), Some(b));
    let mut worker = || {
        Child::judged(|| {
            drop(ends.0.take());
            ends.1.take().is_some_and(|b| echo(&b))
        })
    };
    let children = [worker(), worker(), worker()];
    let (a, _) = (ends.0.unwrap(), drop(ends.1));
    let a = &a;
    const COUNT: u64 = 3000;
    let (received, lost) = std::thread::scope(|s| {
        s.spawn(move || {
            for i in 0..COUNT {
                a.send_deadline(&i.to_ne_bytes(), soon()).unwrap();
            }
        });
        let [first, second, third] = children;
        let mut victim = Some(first);
        let mut seen = vec![false; COUNT as usize];
        // A killed child takes the message with it that it had not answered yet.
        let end = soon();
        let mut received = 0;
        while received < COUNT - 1 {
            let mut buf = [0; 8];
            a.recv_deadline(&mut buf, end).unwrap();
            let i = u64::from_ne_bytes(buf) as usize;
            assert!(!seen[i], "answered twice");
            seen[i] = true;
            received += 1;
            if received == COUNT / 2 {
                drop(victim.take());
            }
        }
        let rest = a.recv_deadline(&mut [0; 8], Instant::now() + Duration::from_millis(1));
        a.finish_sending().unwrap();
        assert!(second.succeeded() && third.succeeded());
        let last = a.recv_deadline(&mut [0; 8], soon());
        let late = rest.is_ok() || last.is_ok();
        (received + late as u64, seen.iter().filter(|s| !**s).count())
    });
    assert!(received >= COUNT - 1 && lost <= 1);
}

#[test]
fn a_child_of_fork_is_another_owner() {
    let _turn = alone();
    let parent = identity::me();
    let child = Child::judged(|| {
        let me = identity::me();
        me != parent && me.pid() == std::process::id() && !identity::dead(parent)
    });
    assert!(child.succeeded());
}

#[test]
fn a_zombie_is_a_dead_owner() {
    let _turn = alone();
    let (a, b) = Channel::pair(4096).unwrap();
    let child = Child::judged(|| {
        let _ = b.send(&identity::me().bits().to_ne_bytes());
        pause()
    });
    let mut bits = [0; 8];
    a.recv_deadline(&mut bits, soon()).unwrap();
    let owner = Owner::from_bits(u64::from_ne_bytes(bits));
    assert!(!identity::dead(owner));
    // SAFETY: kills our child and waits for its end without reaping it; waitid fills a siginfo of ours.
    unsafe {
        libc::kill(child.pid(), libc::SIGKILL);
        let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
        let flags = libc::WEXITED | libc::WNOWAIT;
        let id = child.pid() as libc::id_t;
        assert_eq!(libc::waitid(libc::P_PID, id, info.as_mut_ptr(), flags), 0);
    }
    assert!(identity::dead(owner));
    child.kill();
    assert!(identity::dead(owner));
}
