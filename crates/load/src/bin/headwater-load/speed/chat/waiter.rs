//! Waiting for many connections by poll(2) or epoll(7), as programs of either kind do it.

use std::io;
use std::os::fd::RawFd;

use crate::poll::{Event, Poll};
use crate::sys::check;

pub enum Waiter {
    Epoll(Poll),
    /// By number of the connection; those that are closed have no descriptor.
    Poll(Vec<libc::pollfd>),
}

impl Waiter {
    pub fn new(by_poll: bool) -> io::Result<Waiter> {
        Ok(match by_poll {
            true => Waiter::Poll(Vec::new()),
            false => Waiter::Epoll(Poll::new()?),
        })
    }

    /// Connections are numbered as they are added, from 0 on.
    pub fn add(&mut self, fd: RawFd, connection: usize) -> io::Result<()> {
        match self {
            Waiter::Epoll(poll) => poll.add(fd, connection as u64),
            Waiter::Poll(entries) => {
                debug_assert_eq!(connection, entries.len());
                entries.push(libc::pollfd {
                    fd,
                    events: libc::POLLIN,
                    revents: 0,
                });
                Ok(())
            }
        }
    }

    pub fn want_write(&mut self, fd: RawFd, connection: usize, wanted: bool) -> io::Result<()> {
        match self {
            Waiter::Epoll(poll) => poll.want_write(fd, connection as u64, wanted),
            Waiter::Poll(entries) => {
                let room = if wanted { libc::POLLOUT } else { 0 };
                entries[connection].events = libc::POLLIN | room;
                Ok(())
            }
        }
    }

    /// To be called before it is closed.
    pub fn remove(&mut self, connection: usize) {
        if let Waiter::Poll(entries) = self {
            entries[connection].fd = -1;
        }
    }

    /// Waits for events, and puts them in place of what `events` holds.
    pub fn wait(&mut self, events: &mut Vec<Event>) -> io::Result<()> {
        events.clear();
        match self {
            Waiter::Epoll(poll) => {
                events.extend(poll.wait()?);
                Ok(())
            }
            Waiter::Poll(entries) => wait_for_entries(entries, events),
        }
    }
}

fn wait_for_entries(entries: &mut [libc::pollfd], events: &mut Vec<Event>) -> io::Result<()> {
    // SAFETY: pointer and count describe the entries.
    let ready = unsafe { libc::poll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, -1) };
    match check(ready) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
        other => other?,
    }
    let ready = entries
        .iter()
        .enumerate()
        .filter(|(_, entry)| entry.revents != 0);
    events.extend(ready.map(|(connection, entry)| Event {
        token: connection as u64,
        readable: entry.revents & !libc::POLLOUT != 0,
        writable: entry.revents & libc::POLLOUT != 0,
    }));
    Ok(())
}
