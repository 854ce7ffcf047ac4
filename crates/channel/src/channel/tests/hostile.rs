use super::*;
use crate::{bell, sys};
use std::os::fd::AsRawFd;

#[test]
fn garbage_in_the_segment_is_an_error_not_a_crash() {
    let (a, b) = pair();
    a.send(b"fine").unwrap();
    let ring = b.incoming();
    let word = ring.peek().unwrap().unwrap().ptr.wrapping_sub(8);
    // SAFETY: the header of the oldest frame.
    unsafe { (*word.cast::<AtomicU64>()).store(1 << 63 | 0xffff_ffff, Ordering::Relaxed) };
    assert_eq!(b.recv(&mut [0; 8]), Err(ReceiveError::Corrupt));
    assert_eq!(b.peek().err(), Some(ReceiveError::Corrupt));
    assert_eq!(b.wait_readable(None), Err(ReceiveError::Corrupt));
    let error = (&b).read(&mut [0; 8]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
}

#[test]
fn garbage_in_every_word_of_the_header_is_survived() {
    let words = size_of::<Header>() / 8;
    for (i, value) in (0..words).flat_map(|i| [1, 9, u64::MAX, 1 << 63].map(|v| (i, v))) {
        let (a, b) = pair();
        a.send(&[1; 100]).unwrap();
        let header: *const Header = a.header();
        // SAFETY: the header consists of words that may take any value.
        unsafe { (*header.cast::<AtomicU64>().add(i)).store(value, Ordering::Relaxed) };
        let mut buf = [0; 4096];
        for end in [&a, &b] {
            let _ = end.try_send(b"x");
            let _ = end.try_send_message(b"x", b"y", 1, 1);
            let _ = end.try_reserve(100).map(|room| room.commit(50));
            let _ = end.send_deadline(&[0; 1000], past());
        }
        for end in [&a, &b] {
            let _ = end.peek().map(|frame| {
                frame.map(|frame| {
                    let some = frame.len().min(1);
                    frame.consume(some);
                })
            });
            let _ = end.try_recv(&mut buf);
            let _ = end.recv_deadline(&mut buf, past());
            let _ = end.try_recv_message(&mut [0; 8], &mut buf);
        }
    }
}

#[test]
fn what_is_not_a_channel_is_refused() {
    let (here, there) = UnixStream::pair().unwrap();
    (&here).write_all(b"HW\0\0").unwrap();
    assert_eq!(
        Fds::receive_from(&there).err(),
        Some(OpenError::NotAChannel)
    );
    drop(here);
    assert_eq!(
        Fds::receive_from(&there).err(),
        Some(OpenError::NotAChannel)
    );

    let (reader, writer) = std::io::pipe().unwrap();
    for pipe in [reader.into(), writer.into()] {
        let mut fds = pair().0.into_fds();
        let pipe: std::os::fd::OwnedFd = pipe;
        sys::fcntl(pipe.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK as usize).unwrap();
        fds.peer_bell = pipe;
        assert_eq!(Channel::from_fds(fds).err(), Some(OpenError::NotAChannel));
    }

    let other = || std::os::fd::OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
    for broken in 0..4 {
        let (a, _b) = pair();
        let mut fds = a.into_fds();
        match broken {
            0 => fds.memfd = other(),
            1 => fds.bell = other(),
            2 => fds.peer_bell = other(),
            _ => fds.shadow = other(),
        }
        assert_eq!(Channel::from_fds(fds).err(), Some(OpenError::NotAChannel));
    }
}

#[test]
fn a_holder_of_a_guarded_channel_cannot_keep_the_other_end_waiting() {
    let unguarded = pair().0.into_fds();
    assert_eq!(
        Channel::from_guarded_fds(unguarded).err(),
        Some(OpenError::NotAChannel)
    );
    let (a, b) = Channel::builder()
        .ring_bytes(4096)
        .guarded(true)
        .pair()
        .unwrap();
    let b = b.into_fds();
    // What b's holder may do: both bells can block from now on, and one has rung.
    for bell in [&b.bell, &b.peer_bell] {
        sys::fcntl(bell.as_raw_fd(), libc::F_SETFL, 0).unwrap();
        bell::ring(bell.as_raw_fd());
    }
    let b = Channel::from_guarded_fds(b).unwrap();
    for _ in 0..100 {
        for _ in 0..10 {
            bell::ring(a.own_bell());
            bell::ring(a.peer_bell());
        }
        std::thread::scope(|scope| {
            scope.spawn(|| a.send(b"hello"));
            assert_eq!(b.recv(&mut [0; 10]), Ok(5));
        });
        assert_eq!(
            a.recv_deadline(&mut [0; 10], past()),
            Err(ReceiveError::Empty)
        );
    }
}
