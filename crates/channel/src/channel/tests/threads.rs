use std::os::unix::thread::JoinHandleExt;

use super::*;
use crate::bell;

#[test]
fn a_writer_asleep_beside_a_full_ring_is_rung_once_half_of_it_is_free() {
    let (a, b) = pair();
    let sent = send_until_full(&a, &[1; 120]);
    a.outgoing().writer_sleeps();
    let mut rings = 0;
    for _ in 0..sent {
        b.recv(&mut [0; 120]).unwrap();
        rings += bell::take(a.own_bell()) as u32;
        assert_eq!(rings, (b.incoming().fill() <= 2048) as u32);
    }
    assert!(!a.outgoing().writer_wakes());
}

#[test]
fn a_writer_blocked_by_a_full_ring_goes_on_when_it_is_drained() {
    for _ in 0..100 {
        let pair = Channel::builder().ring_bytes(4096).spin(false).pair();
        let (a, b) = pair.unwrap();
        let sent = send_until_full(&a, &[1; 120]);
        thread::scope(|s| {
            let writer = s.spawn(|| a.send_deadline(&[2; 120], soon()));
            let mut buf = [0; 120];
            for _ in 0..sent {
                b.recv(&mut buf).unwrap();
            }
            writer.join().unwrap().unwrap();
            assert_eq!(b.recv(&mut buf), Ok(120));
            assert_eq!(buf, [2; 120]);
        });
    }
}

#[test]
fn a_hundred_thousand_messages_arrive_in_order() {
    for spin in [true, false] {
        let (a, b) = Channel::builder()
            .ring_bytes(4096)
            .spin(spin)
            .pair()
            .unwrap();
        let count = if spin { 100_000u32 } else { 5_000 };
        let sender = thread::spawn(move || {
            for i in 0..count {
                let len = 4 + i as usize % 300;
                let mut message = vec![i as u8; len];
                message[..4].copy_from_slice(&i.to_ne_bytes());
                a.send_deadline(&message, soon()).unwrap();
            }
        });
        let mut buf = [0; 304];
        for i in 0..count {
            let n = b.recv_deadline(&mut buf, soon()).unwrap();
            assert_eq!(n, 4 + i as usize % 300);
            assert_eq!(buf[..4], i.to_ne_bytes());
            assert!(buf[4..n].iter().all(|&b| b == i as u8));
        }
        sender.join().unwrap();
        assert_eq!(b.recv(&mut buf), Err(ReceiveError::Closed));
    }
}

#[test]
fn many_readers_and_writers_share_an_end_without_losing_a_wake_up() {
    const EACH: u64 = 2_000;
    let (a, b) = Channel::builder()
        .ring_bytes(4096)
        .spin(false)
        .pair()
        .unwrap();
    let received = AtomicU64::new(0);
    let sum = AtomicU64::new(0);
    thread::scope(|s| {
        // Both kinds of sleepers on one bell: each thread of b answers what it received.
        for _ in 0..3 {
            s.spawn(|| {
                let mut buf = [0; 600];
                loop {
                    match b.recv_deadline(&mut buf, soon()) {
                        Ok(n) => b.send_deadline(&buf[..n], soon()).unwrap(),
                        Err(ReceiveError::Closed) => break,
                        Err(e) => panic!("{e}"),
                    }
                }
            });
        }
        let senders: Vec<_> = (0..2u64)
            .map(|t| {
                let a = &a;
                s.spawn(move || {
                    for i in 0..EACH {
                        let mut message = [0; 600];
                        message[..8].copy_from_slice(&(t * EACH + i).to_ne_bytes());
                        let len = 8 + (i as usize * 37) % 592;
                        a.send_deadline(&message[..len], soon()).unwrap();
                    }
                })
            })
            .collect();
        for _ in 0..2 {
            s.spawn(|| {
                let mut buf = [0; 600];
                while a.recv_deadline(&mut buf, soon()).is_ok() {
                    let number = u64::from_ne_bytes(buf[..8].try_into().unwrap());
                    sum.fetch_add(number, Ordering::Relaxed);
                    if received.fetch_add(1, Ordering::Relaxed) + 1 == 2 * EACH {
                        b.finish_sending().unwrap();
                    }
                }
            });
        }
        for sender in senders {
            sender.join().unwrap();
        }
        until(|| received.load(Ordering::Relaxed) == 2 * EACH);
        a.finish_sending().unwrap();
    });
    assert_eq!(sum.into_inner(), (0..2 * EACH).sum::<u64>());
}

#[test]
fn who_holds_a_reservation_or_frame_is_told_so_instead_of_waiting_for_itself() {
    let (a, b) = pair();
    a.send(b"1").unwrap();
    let room = a.reserve(10).unwrap();
    assert_eq!(a.send(b"2"), Err(SendError::Busy));
    assert_eq!(a.finish_sending(), Err(SendError::Busy));
    drop(room);
    a.send(b"2").unwrap();
    let frame = b.peek().unwrap().unwrap();
    assert_eq!(b.recv(&mut [0; 8]), Err(ReceiveError::Busy));
    thread::scope(|s| {
        let other = s.spawn(|| b.try_recv(&mut [0; 8]));
        assert_eq!(other.join().unwrap(), Err(ReceiveError::Empty));
        let patient = s.spawn(|| b.recv_deadline(&mut [0; 8], soon()));
        frame.consume(1);
        assert_eq!(patient.join().unwrap(), Ok(1));
    });
}

#[test]
fn a_signal_ends_a_wait() {
    extern "C" fn handler(_: i32) {}
    // SAFETY: the handler does nothing.
    unsafe { libc::signal(libc::SIGUSR1, handler as *const () as usize) };
    let (_a, b) = pair();
    let reader = thread::spawn(move || b.recv_deadline(&mut [0; 8], soon()));
    let thread = reader.as_pthread_t();
    // It may come before the sleep; then the next one will do.
    while !reader.is_finished() {
        // SAFETY: the thread is not joined yet.
        unsafe { libc::pthread_kill(thread, libc::SIGUSR1) };
        thread::yield_now();
    }
    assert_eq!(reader.join().unwrap(), Err(ReceiveError::Interrupted));
}
