//! Streams as a program in Rust uses them.

#![cfg(not(loom))]

use std::io::{ErrorKind, Read, Write};
use std::thread;
use std::time::{Duration, Instant};

use headwater_streams::{Choice, Error, Priority, Stream};

const ORDINARY: Priority = Priority::Band(0);

#[test]
fn messages_come_by_priority_and_whole() {
    let (here, there) = Stream::pipe().unwrap();
    let long = vec![7; 200_000];
    here.put_message(None, Some(&long), ORDINARY).unwrap();
    here.put_message(Some(b"c"), Some(b""), Priority::Band(3))
        .unwrap();
    here.put_message(Some(b"high"), None, Priority::High)
        .unwrap();

    let high = there.get_message(Choice::AtLeast(9)).unwrap();
    assert_eq!(
        (high.control, high.data, high.priority),
        (Some(b"high".to_vec()), None, Priority::High)
    );
    let banded = there.get_message(Choice::Any).unwrap();
    assert_eq!(
        (banded.data, banded.priority),
        (Some(vec![]), Priority::Band(3))
    );
    let ordinary = there.get_message(Choice::Any).unwrap();
    assert_eq!((ordinary.control, ordinary.data), (None, Some(long)));
}

#[test]
fn the_end_comes_after_the_last_message() {
    let (here, there) = Stream::pipe().unwrap();
    here.put_message(Some(b""), Some(b""), ORDINARY).unwrap();
    drop(here);
    assert_eq!(there.get_message(Choice::Any).unwrap().data, Some(vec![]));
    assert_eq!(there.get_message(Choice::Any), Err(Error::HungUp));
    assert_eq!(
        there.put_message(None, Some(b"x"), ORDINARY),
        Err(Error::HungUp)
    );
    assert_eq!((&there).read(&mut [0; 4]).unwrap(), 0);
}

#[test]
fn a_full_stream_says_so_or_waits_for_its_deadline() {
    let (here, _there) = Stream::pipe().unwrap();
    here.set_nonblocking(true).unwrap();
    let text = [1; 4096];
    let full = (0..1000).find_map(|_| here.put_message(None, Some(&text), ORDINARY).err());
    assert_eq!(full, Some(Error::WouldBlock));
    assert_eq!(
        (&here).write(&text).unwrap_err().kind(),
        ErrorKind::WouldBlock
    );
    let soon = Instant::now() + Duration::from_millis(5);
    assert_eq!(
        here.put_message_until(None, Some(&text), ORDINARY, soon),
        Err(Error::TimedOut)
    );
}

#[test]
fn one_open_of_a_name_blocks_and_another_does_not() {
    let name = format!("/dev/fifo.api-{}", std::process::id());
    let (first, second) = (Stream::open(&name).unwrap(), Stream::open(&name).unwrap());
    first.set_nonblocking(true).unwrap();
    assert_eq!(first.get_message(Choice::Any), Err(Error::WouldBlock));
    let soon = Instant::now() + Duration::from_millis(5);
    assert_eq!(
        second.get_message_until(Choice::Any, soon),
        Err(Error::TimedOut)
    );
    (&second).write_all(b"to all").unwrap();
    assert_eq!(
        first.get_message(Choice::Any).unwrap().data,
        Some(b"to all".to_vec())
    );
}

#[test]
fn a_driver_answers_a_thread_that_waits() {
    let echo = Stream::open("/dev/echo").unwrap();
    thread::scope(|s| {
        let waiting = s.spawn(|| echo.get_message(Choice::Any));
        echo.put_message(None, Some(b"hello"), ORDINARY).unwrap();
        assert_eq!(
            waiting.join().unwrap().unwrap().data,
            Some(b"hello".to_vec())
        );
    });
}

#[test]
fn what_does_not_exist_is_named_by_its_error() {
    assert_eq!(
        Stream::open("/dev/streams/nowhere").err(),
        Some(Error::NotAStream)
    );
    assert_eq!(Stream::open("/dev/null").err(), Some(Error::NotAStream));
    let (end, _other) = Stream::pipe().unwrap();
    assert_eq!(end.push("nowhere"), Err(Error::Unknown));
    assert_eq!(end.pop(), Err(Error::Unknown));
    assert_eq!(end.ioctl(1, &mut Vec::new(), None), Err(Error::Unknown));
    let echo = Stream::open("/dev/echo").unwrap();
    assert_eq!(echo.link(&end), Err(Error::Unknown));
}

#[test]
fn a_child_of_fork_shares_the_pipe() {
    let (here, there) = Stream::pipe().unwrap();
    // SAFETY: the child makes a few calls and ends by _exit.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let answered = there
            .get_message(Choice::Any)
            .and_then(|m| there.put_message(m.data.as_deref(), None, ORDINARY));
        // SAFETY: ends the process.
        unsafe { libc::_exit(answered.is_err() as i32) };
    }
    here.put_message(None, Some(b"to the child"), ORDINARY)
        .unwrap();
    let late = Instant::now() + Duration::from_secs(10);
    let answer = here.get_message_until(Choice::Any, late).unwrap();
    assert_eq!(answer.control, Some(b"to the child".to_vec()));
    let mut status = 0;
    // SAFETY: our own child.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
    drop(there);
    assert_eq!(here.get_message(Choice::Any), Err(Error::HungUp));
}
