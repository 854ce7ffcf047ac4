//! A level-triggered epoll set.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::sys::check;

pub struct Poll {
    set: OwnedFd,
    events: Vec<libc::epoll_event>,
}

pub struct Event {
    pub token: u64,
    pub readable: bool,
    pub writable: bool,
}

impl Poll {
    pub fn new() -> io::Result<Poll> {
        // SAFETY: no pointers are passed.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        check(fd)?;
        Ok(Poll {
            // SAFETY: epoll_create1 has just given us this descriptor.
            set: unsafe { OwnedFd::from_raw_fd(fd) },
            events: vec![libc::epoll_event { events: 0, u64: 0 }; 256],
        })
    }

    pub fn add(&self, fd: RawFd, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, token, false)
    }

    /// Asks for room to write too, or no longer.
    pub fn want_write(&self, fd: RawFd, token: u64, writable: bool) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, token, writable)
    }

    /// Waits for events, without limit.
    pub fn wait(&mut self) -> io::Result<impl Iterator<Item = Event> + '_> {
        let (events, room) = (self.events.as_mut_ptr(), self.events.len() as i32);
        // SAFETY: pointer and count describe the vector.
        let ready = unsafe { libc::epoll_wait(self.set.as_raw_fd(), events, room, -1) };
        let ready = match check(ready) {
            Ok(()) => ready as usize,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) => return Err(error),
        };
        Ok(self.events[..ready].iter().map(|event| {
            let bits = event.events as i32;
            Event {
                token: event.u64,
                readable: bits & (libc::EPOLLIN | libc::EPOLLHUP | libc::EPOLLERR) != 0,
                writable: bits & libc::EPOLLOUT != 0,
            }
        }))
    }

    fn control(&self, op: i32, fd: RawFd, token: u64, writable: bool) -> io::Result<()> {
        let out = if writable { libc::EPOLLOUT } else { 0 };
        let mut event = libc::epoll_event {
            events: (libc::EPOLLIN | out) as u32,
            u64: token,
        };
        // SAFETY: the event outlives the call.
        check(unsafe { libc::epoll_ctl(self.set.as_raw_fd(), op, fd, &mut event) })
    }
}
