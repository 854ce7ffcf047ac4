//! Registrations of sockets that have a rest, in a process that has confined itself: what the kernel does not know of is added
//! to what it says, by the program's own call.

use libc::{EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD, epoll_event};

use super::regs::Reg;
use super::{ET, ONESHOT};
use crate::sync::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use crate::{sys, table};

/// All zeroes to begin with, so that a process that never confines itself has no page of it.
struct Left {
    /// One more than the numbers; 0: free.
    fd_and_one: AtomicI32,
    ep_and_one: AtomicI32,
    events: AtomicU32,
    data: AtomicU64,
    /// It was told, and is not to be told again.
    silent: AtomicU32,
}

crate::large! {
    rarely:
    /// A process that confines itself has few connections; beyond these, the kernel alone says that something can be read.
    static LEFT: [Left; 256] = [const {
        Left {
            fd_and_one: AtomicI32::new(0),
            ep_and_one: AtomicI32::new(0),
            events: AtomicU32::new(0),
            data: AtomicU64::new(0),
            silent: AtomicU32::new(0),
        }
    }; 256];
}

/// While the process confines itself: this registration has a rest.
pub(super) fn note(ep: i32, reg: &Reg) {
    add(ep, reg.fd, &reg.event());
}

/// The set `ep` goes on by another number.
pub(super) fn renumber(ep: i32, other: i32) {
    for l in of(ep) {
        l.ep_and_one.store(other + 1, Ordering::Release);
    }
}

fn add(ep: i32, fd: i32, event: &epoll_event) {
    let free = LEFT.iter().find(|l| {
        l.fd_and_one
            .compare_exchange(0, fd + 1, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    });
    if let Some(l) = free {
        l.set(event);
        l.ep_and_one.store(ep + 1, Ordering::Release);
    }
}

impl Left {
    /// -1 if free.
    fn fd(&self) -> i32 {
        self.fd_and_one.load(Ordering::Acquire) - 1
    }

    fn ep(&self) -> i32 {
        self.ep_and_one.load(Ordering::Acquire) - 1
    }

    fn set(&self, event: &epoll_event) {
        self.events.store(event.events, Ordering::Relaxed);
        self.data.store(event.u64, Ordering::Relaxed);
        self.silent.store(0, Ordering::Release);
    }

    /// What is to be told of it now.
    fn ready(&self) -> u32 {
        let fd = self.fd();
        if fd < 0 || self.silent.load(Ordering::Acquire) != 0 {
            return 0;
        }
        let ready = table::socket(fd).and_then(|h| {
            let d = table::descriptor(h)?;
            Some(d.ready(h, self.events.load(Ordering::Relaxed)))
        });
        // Read out, or closed.
        ready.unwrap_or(0)
    }
}

/// After the program's own epoll_ctl(2).
///
/// # Safety
/// `event` is null or valid.
pub unsafe fn changed(ep: i32, op: i32, fd: i32, event: *const epoll_event) {
    if table::socket(fd).is_none() {
        return;
    }
    let known = LEFT.iter().find(|l| l.fd() == fd && l.ep() == ep);
    // SAFETY: the caller says that it is null or valid.
    match (op, known, unsafe { event.as_ref() }) {
        (EPOLL_CTL_ADD, None, Some(event)) => add(ep, fd, event),
        (EPOLL_CTL_ADD | EPOLL_CTL_MOD, Some(l), Some(event)) => l.set(event),
        (EPOLL_CTL_DEL, Some(l), _) => {
            l.ep_and_one.store(0, Ordering::Release);
            l.fd_and_one.store(0, Ordering::Release);
        }
        _ => {}
    }
}

/// Has a member of this set something that the kernel does not know of?
pub fn any_ready(ep: i32) -> bool {
    of(ep).any(|l| l.ready() != 0)
}

fn of(ep: i32) -> impl Iterator<Item = &'static Left> {
    LEFT.iter().filter(move |l| l.ep() == ep)
}

/// The kernel has told of `n` events without waiting: adds ours, and returns how many there are.
pub fn complete(ep: i32, out: &mut [epoll_event], mut n: usize) -> usize {
    let most = out.len();
    for l in of(ep) {
        let (ready, data) = (l.ready(), l.data.load(Ordering::Relaxed));
        if ready == 0 {
            continue;
        }
        match out[..n].iter_mut().find(|e| { e.u64 } == data) {
            Some(told) => told.events |= ready,
            None if n < most => {
                out[n] = sys::event(ready, data);
                n += 1;
            }
            // The next call tells it.
            None => continue,
        }
        if l.events.load(Ordering::Relaxed) & (ET | ONESHOT) != 0 {
            l.silent.store(1, Ordering::Release);
        }
    }
    n
}
