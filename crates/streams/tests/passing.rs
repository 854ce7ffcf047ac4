//! Descriptors passed by I_SENDFD and I_RECVFD, and long messages, within a process and between processes.

#![cfg(not(loom))]

#[path = "common/processes.rs"]
mod processes;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use headwater_streams::attach::rights;
use headwater_streams::exec::{Info, Module, OpenFlag, Queue, registry};
use headwater_streams::head::control::ioctl;
use headwater_streams::head::message::{Choice, Priority};
use processes::*;

fn memfd(text: &str) -> i32 {
    use std::io::Write;
    use std::os::fd::{FromRawFd, IntoRawFd};
    // SAFETY: a fresh descriptor that the File owns until it is given away.
    let mut file = unsafe { std::fs::File::from_raw_fd(libc::memfd_create(c"test".as_ptr(), 0)) };
    file.write_all(text.as_bytes()).unwrap();
    file.into_raw_fd()
}

fn contents(fd: i32) -> String {
    let mut buf = [0u8; 64];
    // SAFETY: buf is writable.
    let n = unsafe { libc::pread(fd, buf.as_mut_ptr().cast(), buf.len(), 0) };
    String::from_utf8_lossy(&buf[..n.max(0) as usize]).into_owned()
}

#[test]
fn a_file_passed_to_another_process_is_the_same_file() {
    let _turn = alone();
    let [a, b] = pipe();
    let child = Child::judged(|| {
        close(a);
        let r = receive(b).unwrap();
        // SAFETY: no arguments.
        let me = unsafe { (libc::geteuid(), libc::getegid()) };
        (r.uid, r.gid) == me && contents(r.fd) == "hello"
    });
    close(b);
    let fd = memfd("hello");
    send_fd(a, fd).unwrap();
    close(fd);
    assert!(child.succeeded());
    close(a);
}

#[test]
fn an_end_of_a_pipe_works_in_the_process_that_receives_it() {
    let _turn = alone();
    let [a, b] = pipe();
    let child = Child::judged(|| {
        close(a);
        let end = receive_fd(b).unwrap();
        write(end, "from the child").is_ok() && read(end).unwrap() == "from the parent"
    });
    close(b);
    let [mine, theirs] = pipe();
    send_fd(a, theirs).unwrap();
    close(theirs);
    assert_eq!(read(mine).unwrap(), "from the child");
    write(mine, "from the parent").unwrap();
    assert!(child.succeeded());
    // Its last holder is gone.
    assert_eq!(read(mine).unwrap(), "");
    close(mine);
    close(a);
}

#[test]
fn an_end_under_way_keeps_its_pipe_alive() {
    let _turn = alone();
    let [a, b] = pipe();
    let [mine, theirs] = pipe();
    send_fd(a, theirs).unwrap();
    close(theirs);
    write(mine, "kept").unwrap();
    let end = receive_fd(b).unwrap();
    assert_eq!(read(end).unwrap(), "kept");
    close(end);
    assert_eq!(read(mine).unwrap(), "");
    for fd in [a, b, mine] {
        close(fd);
    }
}

#[test]
fn an_end_never_received_hangs_up_with_the_pipe_that_carried_it() {
    let _turn = alone();
    let [a, b] = pipe();
    let [mine, theirs] = pipe();
    send_fd(a, theirs).unwrap();
    close(theirs);
    close(a);
    close(b);
    assert_eq!(read(mine).unwrap(), "");
    close(mine);
}

#[test]
fn a_drivers_stream_is_passed_within_its_process() {
    let _turn = alone();
    let [a, b] = pipe();
    let echo = open_stream("/dev/echo".as_ref()).unwrap();
    send_fd(a, echo).unwrap();
    close(echo);
    let echo = receive_fd(b).unwrap();
    write(echo, "again").unwrap();
    assert_eq!(read(echo).unwrap(), "again");
    send_fd(a, echo).unwrap();
    let child = Child::judged(|| receive_fd(b) == Err(libc::EINVAL));
    assert!(child.succeeded());
    for fd in [a, b, echo] {
        close(fd);
    }
}

#[test]
fn descriptors_come_in_the_order_of_sending_between_messages() {
    let _turn = alone();
    let [a, b] = pipe();
    let fds = ["one", "two"].map(memfd);
    send_fd(a, fds[0]).unwrap();
    write(a, "text").unwrap();
    send_fd(a, fds[1]).unwrap();
    assert_eq!(read(b), Err(libc::EBADMSG));
    assert_eq!(contents(receive_fd(b).unwrap()), "one");
    assert_eq!(receive_fd(b), Err(libc::EBADMSG));
    assert_eq!(read(b).unwrap(), "text");
    assert_eq!(contents(receive_fd(b).unwrap()), "two");
    nonblocking(b);
    assert_eq!(receive_fd(b), Err(libc::EAGAIN));
    close(a);
    assert_eq!(receive_fd(b), Err(libc::ENXIO));
    close(b);
}

#[test]
fn what_cannot_be_passed_says_why() {
    let _turn = alone();
    let [a, b] = pipe();
    assert_eq!(send_fd(a, 9999), Err(libc::EBADF));
    let echo = open_stream("/dev/echo".as_ref()).unwrap();
    assert_eq!(send_fd(echo, a), Err(libc::EINVAL));
    assert_eq!(receive_fd(echo), Err(libc::EINVAL));
    close(b);
    assert_eq!(send_fd(a, 0), Err(libc::ENXIO));
    close(a);
    close(echo);
}

#[test]
fn a_full_pipe_takes_no_more_descriptors_and_loses_none() {
    let _turn = alone();
    let [a, b] = pipe();
    let fd = memfd("many");
    let mut sent = 0;
    let refusal = loop {
        match send_fd(a, fd) {
            Ok(_) => sent += 1,
            Err(e) => break e,
        }
    };
    assert_eq!(refusal, libc::EAGAIN);
    assert!(sent > 10);
    for _ in 0..sent {
        let received = receive_fd(b).unwrap();
        assert_eq!(contents(received), "many");
        close(received);
    }
    nonblocking(b);
    assert_eq!(receive_fd(b), Err(libc::EAGAIN));
    send_fd(a, fd).unwrap();
    close(receive_fd(b).unwrap());
    for fd in [a, b, fd] {
        close(fd);
    }
}

#[test]
fn a_pushed_module_does_not_stop_descriptors() {
    let _turn = alone();
    let [a, b] = pipe();
    push(a, "nullmod");
    push(b, "nullmod");
    let fd = memfd("past");
    send_fd(a, fd).unwrap();
    assert_eq!(contents(receive_fd(b).unwrap()), "past");
    for fd in [a, b, fd] {
        close(fd);
    }
}

#[test]
fn a_long_message_arrives_whole_in_another_process() {
    let _turn = alone();
    let [a, b] = pipe();
    let long: Vec<u8> = (0..200_000u32).map(|i| (i / 7) as u8).collect();
    let child = Child::judged(|| {
        close(a);
        let (mut control, mut data) = ([0; 16], vec![0; 262_144]);
        let got = stream(b)
            .get_message(Some(&mut control), Some(&mut data), Choice::Any, None)
            .unwrap();
        got.control == 3 && data[..got.data as usize] == long[..] && got.more == 0
    });
    close(b);
    stream(a)
        .put_message(Some(b"ctl"), Some(&long), Priority::Band(0), None)
        .unwrap();
    assert!(child.succeeded());
    close(a);
}

#[test]
fn long_messages_of_higher_bands_overtake() {
    let _turn = alone();
    let [a, b] = pipe();
    for (byte, band) in [(1, 0), (2, 0), (3, 5)] {
        send_long(a, byte, band);
    }
    for expected in [3, 1, 2] {
        let mut data = vec![0; 100_001];
        let got = stream(b)
            .get_message(None, Some(&mut data), Choice::Any, None)
            .unwrap();
        assert_eq!(
            (got.data, data[0], data[99_999]),
            (100_000, expected, expected)
        );
    }
    close(a);
    close(b);
}

/// Of what travels beside the ring of `a` the first comes last, as that of two senders may.
fn turn_round([a, b]: [i32; 2]) {
    let mut first = rights::receive(b).unwrap().unwrap();
    let fds: Vec<i32> = (0..rights::MOST)
        .map(|at| first.take(at))
        .filter(|&fd| fd >= 0)
        .collect();
    rights::send(a, &first.body, &fds, true).unwrap();
    fds.into_iter().for_each(close);
}

/// While the process has so many numbers left.
fn with_numbers<T>(left: usize, f: impl FnOnce() -> T) -> T {
    // SAFETY: no memory is involved.
    let lowest: Vec<i32> = (0..=left).map(|_| unsafe { libc::dup(2) }).collect();
    lowest.iter().for_each(|&fd| close(fd));
    let mut before = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: a rlimit, to be written and to be read.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut before), 0);
        let limit = libc::rlimit {
            rlim_cur: lowest[left] as u64,
            ..before
        };
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit), 0);
        let done = f();
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const before), 0);
        done
    }
}

fn send_long(to: i32, byte: u8, band: u8) {
    stream(to)
        .put_message(None, Some(&[byte; 100_000]), Priority::Band(band), None)
        .unwrap();
}

fn receive_long(from: i32) -> Result<(usize, u8), Errno> {
    let mut data = vec![0; 100_001];
    let got = stream(from).get_message(None, Some(&mut data), Choice::Any, None)?;
    Ok((got.data as usize, data[99_999]))
}

#[test]
fn what_is_before_a_descriptor_stays_whole_without_numbers() {
    let _turn = alone();
    for left in 0..4 {
        let [a, b] = pipe();
        let [mine, theirs] = pipe();
        let file = memfd("first");
        send_fd(a, file).unwrap();
        send_fd(a, theirs).unwrap();
        turn_round([a, b]);
        close(theirs);
        close(file);
        for _ in 0..2 {
            assert_eq!(with_numbers(left, || receive_fd(b)), Err(libc::EMFILE));
        }
        let file = receive_fd(b).unwrap();
        assert_eq!(contents(file), "first");
        // The end has come before, and is kept.
        for _ in 0..2 {
            assert_eq!(with_numbers(0, || receive_fd(b)), Err(libc::EMFILE));
        }
        let end = receive_fd(b).unwrap();
        write(mine, "to the end").unwrap();
        assert_eq!(read(end).unwrap(), "to the end");
        for fd in [a, b, mine, end, file] {
            close(fd);
        }
    }
}

#[test]
fn what_others_write_beside_the_ring_is_passed_over() {
    let _turn = alone();
    let [a, b] = pipe();
    let fd = memfd("behind");
    for foreign in [&b"short"[..], b"", &[b'x'; 64], &[b'x'; 100]] {
        // SAFETY: readable bytes, to the socket that is the visible descriptor.
        let sent = unsafe { libc::send(a, foreign.as_ptr().cast(), foreign.len(), 0) };
        assert_eq!(sent, foreign.len() as isize);
    }
    send_fd(a, fd).unwrap();
    let received = receive_fd(b).unwrap();
    assert_eq!(contents(received), "behind");
    // Of what is gone the end is found.
    send_fd(a, fd).unwrap();
    drop(rights::receive(b));
    close(a);
    assert_eq!(receive_fd(b), Err(libc::EPROTO));
    assert_eq!(receive_fd(b), Err(libc::ENXIO));
    for fd in [b, fd, received] {
        close(fd);
    }
}

#[test]
fn a_descriptor_is_received_from_one_who_left_another_unread() {
    let _turn = alone();
    let [a, b] = pipe();
    let fd = memfd("left");
    send_fd(a, fd).unwrap();
    send_fd(b, fd).unwrap();
    close(a);
    let received = receive_fd(b).unwrap();
    assert_eq!(contents(received), "left");
    for fd in [b, fd, received] {
        close(fd);
    }
}

#[test]
fn a_long_message_that_has_come_needs_no_number() {
    let _turn = alone();
    let [a, b] = pipe();
    send_long(a, 1, 0);
    send_long(a, 2, 5);
    assert_eq!(receive_long(b), Ok((100_000, 2)));
    let first = with_numbers(0, || receive_long(b));
    assert_eq!(first, Ok((100_000, 1)));
    write(a, "goes on").unwrap();
    assert_eq!(read(b).unwrap(), "goes on");
    close(a);
    close(b);
}

#[test]
fn an_end_that_has_come_hangs_up_with_the_end_that_it_came_by() {
    let _turn = alone();
    let [a, b] = pipe();
    let [mine, theirs] = pipe();
    send_fd(a, theirs).unwrap();
    close(theirs);
    send_long(a, 1, 5);
    assert_eq!(receive_long(b), Ok((100_000, 1)));
    close(b);
    let mut other = libc::pollfd {
        fd: mine,
        events: 0,
        revents: 0,
    };
    // SAFETY: one pollfd.
    unsafe { libc::poll(&raw mut other, 1, 0) };
    assert_eq!(other.revents, libc::POLLHUP);
    assert_eq!(read(mine).unwrap(), "");
    close(mine);
    close(a);
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::yield_now();
    }
}

/// Writes without a wait as long as there is room, and lets the end wait again.
fn stuff(fd: i32) -> usize {
    nonblocking(fd);
    let mut written = 0;
    while let Ok(n) = stream(fd).write(&[1; 4096]) {
        written += n;
    }
    stream(fd).words().nonblocking.store(0, Ordering::SeqCst);
    written
}

/// The name of the topmost module.
fn topmost(fd: i32) -> Result<String, Errno> {
    const I_LOOK: u32 = (b'S' as u32) << 8 | 4;
    let mut name = [0u8; 16];
    // SAFETY: the request writes a name of at most 9 bytes.
    unsafe { ioctl(stream(fd), I_LOOK, name.as_mut_ptr() as usize) }?;
    let end = name.iter().position(|&b| b == 0).unwrap();
    Ok(String::from_utf8_lossy(&name[..end]).into_owned())
}

#[test]
fn an_end_received_while_its_close_waits_keeps_what_is_on_it() {
    let _turn = alone();
    let [a, b] = pipe();
    let [mine, theirs] = pipe();
    push(theirs, "bufmod");
    let written = stuff(theirs);
    send_fd(a, theirs).unwrap();
    let head = stream(theirs);
    head.words().close_time.store(3000, Ordering::SeqCst);
    let closer = std::thread::spawn(move || close(theirs));
    wait_until("the close waits", || head.has_sleepers());
    let end = receive_fd(b).unwrap();
    closer.join().unwrap();
    assert_eq!(topmost(end).as_deref(), Ok("bufmod"));
    let reader = std::thread::spawn(move || {
        let mut buf = vec![0; 65536];
        let mut got = 0;
        while got < written {
            got += stream(mine).read(&mut buf).unwrap();
        }
        got
    });
    assert_eq!(reader.join().unwrap(), written);
    write(end, "behind").unwrap();
    assert_eq!(read(mine).unwrap(), "behind");
    for fd in [a, b, mine, end] {
        close(fd);
    }
}

/// Its close takes long.
struct Slow;

static CLOSES: AtomicBool = AtomicBool::new(false);
static MAY_CLOSE: AtomicBool = AtomicBool::new(false);

impl Module for Slow {
    const INFO: Info = Info::new(980, c"slow");

    fn open(_: Queue, _: &mut libc::dev_t, _: i32, _: OpenFlag) -> Result<Slow, i32> {
        Ok(Slow)
    }

    fn close(&self, _: Queue, _: i32) {
        CLOSES.store(true, Ordering::SeqCst);
        wait_until("the end was received", || MAY_CLOSE.load(Ordering::SeqCst));
    }
}

#[test]
fn an_end_received_while_its_queues_are_taken_apart_is_a_new_one() {
    let _turn = alone();
    registry::register_module::<Slow>().unwrap();
    let [a, b] = pipe();
    let [mine, theirs] = pipe();
    push(theirs, "slow");
    send_fd(a, theirs).unwrap();
    let head = stream(theirs);
    let closer = std::thread::spawn(move || close(theirs));
    wait_until("the module closes", || CLOSES.load(Ordering::SeqCst));
    let end = receive_fd(b).unwrap();
    MAY_CLOSE.store(true, Ordering::SeqCst);
    closer.join().unwrap();
    assert!(!std::ptr::eq(stream(end), head));
    write(mine, "down").unwrap();
    assert_eq!(read(end).unwrap(), "down");
    write(end, "up").unwrap();
    assert_eq!(read(mine).unwrap(), "up");
    // The head that has gone does not take it along: who gets the end again gets the same.
    send_fd(a, end).unwrap();
    let again = receive_fd(b).unwrap();
    assert!(std::ptr::eq(stream(end), stream(again)));
    for fd in [a, b, mine, end, again] {
        close(fd);
    }
}
