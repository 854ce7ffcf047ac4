mod closing;
mod hostile;
mod threads;

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use super::section::Work;
use super::*;
use crate::sync::{AtomicU64, Ordering};

/// Far enough that only a lost wake-up reaches it.
fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

fn past() -> Instant {
    Instant::now() - Duration::from_millis(1)
}

fn pair() -> (Channel, Channel) {
    Channel::pair(4096).unwrap()
}

fn send_until_full(a: &Channel, message: &[u8]) -> usize {
    let mut sent = 0;
    while a.try_send(message).is_ok() {
        sent += 1;
    }
    assert_eq!(a.try_send(message), Err(SendError::Full));
    sent
}

/// Sleepers of the other end that wait for `end` to work.
fn sleepers(end: &Channel, work: Work) -> u32 {
    let sleepers = match work {
        // Writers of the peer sleep on the ring that `end` reads.
        Work::Sending => end.incoming().writers(),
        Work::Receiving => end.outgoing().readers(),
    };
    sleepers.asleep.load(Ordering::Relaxed)
}

/// Waits for an event that must come.
fn until(event: impl Fn() -> bool) {
    let end = soon();
    while !event() {
        assert!(Instant::now() < end, "what was waited for did not happen");
        thread::yield_now();
    }
}

#[test]
fn an_end_may_be_used_by_several_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Channel>();
}

#[test]
fn messages_keep_their_boundaries_both_ways() {
    let (a, b) = pair();
    let mut buf = [0; 2000];
    for (from, to) in [(&a, &b), (&b, &a)] {
        for len in [0, 1, 7, 8, 9, 1000] {
            from.send(&vec![len as u8; len]).unwrap();
        }
        for len in [0, 1, 7, 8, 9, 1000] {
            assert_eq!(to.recv(&mut buf), Ok(len));
            assert_eq!(buf[..len], vec![len as u8; len]);
        }
        assert_eq!(to.try_recv(&mut buf), Err(ReceiveError::Empty));
    }
}

#[test]
fn a_message_that_does_not_fit_the_buffer_stays() {
    let (a, b) = pair();
    a.send_message(b"control", b"data", 3, 4).unwrap();
    let too_long = Err(ReceiveError::TooLong {
        control: 7,
        data: 4,
    });
    assert_eq!(b.recv(&mut [0; 100]), too_long);
    assert_eq!(
        b.recv_message(&mut [0; 7], &mut [0; 3]).map(|m| m.data),
        too_long
    );
    let (mut control, mut data) = ([0; 7], [0; 4]);
    let m = b.recv_message(&mut control, &mut data).unwrap();
    assert_eq!((m.control, m.data, m.kind, m.band), (7, 4, 3, 4));
    assert_eq!((&control, &data), (b"control", b"data"));
}

#[test]
fn the_longest_message_passes_and_a_longer_one_is_refused() {
    let (a, b) = pair();
    let max = a.max_message();
    let message = vec![5; max];
    let mut buf = vec![0; max];
    for _ in 0..20 {
        a.send(&message).unwrap();
        a.try_send_message(&message[..1], &message[1..], 0, 0)
            .unwrap();
        assert_eq!(b.recv(&mut buf), Ok(max));
        assert_eq!(b.recv_message(&mut [0], &mut buf).unwrap().data, max - 1);
    }
    let message = vec![5; max + 1];
    assert_eq!(a.send(&message), Err(SendError::TooLong { max }));
    assert_eq!(a.reserve(max + 1).err(), Some(SendError::TooLong { max }));
}

#[test]
fn a_deadline_ends_a_wait() {
    let (a, b) = pair();
    let near = || Instant::now() + Duration::from_millis(5);
    assert_eq!(
        b.recv_deadline(&mut [0; 8], near()),
        Err(ReceiveError::Empty)
    );
    assert_eq!(b.wait_readable(Some(near())), Err(ReceiveError::Empty));
    send_until_full(&a, &[0; 100]);
    assert_eq!(a.send_deadline(&[0; 100], near()), Err(SendError::Full));
    assert_eq!(a.send_deadline(&[0; 100], past()), Err(SendError::Full));
    // What can be done at once is done even after the deadline.
    assert_eq!(b.recv_deadline(&mut [0; 100], past()), Ok(100));
}

#[test]
fn bytes_run_over_frame_boundaries() {
    let (mut a, mut b) = Channel::pair(4096).unwrap();
    let data: Vec<u8> = (0..100_000u32).map(|i| (i * 7 / 3) as u8).collect();
    let expected = data.clone();
    let writer = thread::spawn(move || a.write_all(&data));
    let mut read = Vec::new();
    b.read_to_end(&mut read).unwrap();
    assert!(read == expected);
    writer.join().unwrap().unwrap();
    let error = b.write(b"x").unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
    assert_eq!(b.read(&mut []).unwrap(), 0);
}

#[test]
fn a_read_takes_data_parts_but_no_control_part() {
    let (a, b) = pair();
    a.send(b"abc").unwrap();
    a.send(b"").unwrap();
    a.send(b"def").unwrap();
    a.send_message(b"c", b"ghi", 0, 0).unwrap();
    let mut buf = [0; 100];
    assert_eq!((&b).read(&mut buf[..2]).unwrap(), 2);
    assert_eq!(b.recv(&mut buf), Ok(1), "the rest of the first message");
    assert_eq!((&b).read(&mut buf).unwrap(), 3);
    let error = (&b).read(&mut buf).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
    assert_eq!(b.recv_message(&mut [0; 1], &mut buf).unwrap().data, 3);
}

#[test]
fn messages_are_written_and_read_in_place() {
    let (a, b) = pair();
    for i in 0..100u8 {
        let mut room = a.reserve(1000).unwrap();
        room.fill(i);
        room.commit_as(900, 1, 2);
        drop(a.reserve(500).unwrap());

        let frame = b.peek().unwrap().unwrap();
        assert_eq!((frame.kind(), frame.band(), frame.control_len()), (1, 2, 0));
        assert_eq!(*frame, [i; 900]);
        frame.consume(400);
        drop(b.peek().unwrap().unwrap());
        let frame = b.peek().unwrap().unwrap();
        assert_eq!(frame.len(), 500);
        frame.consume(500);
        assert!(b.peek().unwrap().is_none());
    }
}

#[test]
fn a_reservation_beyond_its_length_is_not_committed() {
    let (a, b) = pair();
    let room = a.reserve(10).unwrap();
    let beyond = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| room.commit(11)));
    assert!(beyond.is_err());
    assert!(b.peek().unwrap().is_none());
    a.send(b"the end is still usable").unwrap();
}

#[test]
fn an_end_goes_through_a_socket_with_what_it_holds() {
    let (a, b) = pair();
    a.send(b"on the way").unwrap();
    let (here, there) = UnixStream::pair().unwrap();
    b.into_fds().send_over(&here).unwrap();
    let b = Channel::from_fds(Fds::receive_from(&there).unwrap()).unwrap();
    let mut buf = [0; 100];
    assert_eq!(b.recv(&mut buf), Ok(10));
    b.send(b"arrived").unwrap();
    assert_eq!(a.recv(&mut buf), Ok(7));
    drop(b);
    assert_eq!(a.recv(&mut buf), Err(ReceiveError::Closed));
}

#[test]
fn descriptors_are_closed_on_exec_and_with_the_end() {
    let (a, b) = pair();
    let fds = a.into_fds();
    for fd in [&fds.memfd, &fds.bell, &fds.peer_bell, &fds.shadow] {
        let flags = crate::sys::fcntl(fd.as_raw_fd(), libc::F_GETFD, 0).unwrap();
        assert_ne!(flags & libc::FD_CLOEXEC, 0);
    }
    drop(fds);
    assert_eq!(b.recv(&mut []), Err(ReceiveError::Closed));
}

#[test]
fn ring_sizes_are_checked() {
    for bytes in [0, 4095, 5000, 128 << 20] {
        assert_eq!(Channel::pair(bytes).err(), Some(OpenError::RingSize));
    }
}
