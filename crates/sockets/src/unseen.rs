//! Waits that do not pass through us: a program may wait for a connection by system calls of its own (inline assembly, as
//! Rust's rustix makes them). The kernel then knows nothing of what is in a ring, and the program would wait for ever.
//!
//! A connection that does not block is taken over only once a wait for it was *seen*: in a set of poll or select, or in an epoll
//! set that is waited for by a call of ours. Before a carried one says EAGAIN in a direction for which none was seen, that direction goes
//! to the kernel for good.
//!
//! Such a program makes the connection non-blocking by a system call of its own, too: a call that is about to wait asks the kernel.

use core::time::Duration;

use headwater_host::counters::Reason;
use headwater_host::sync::Ordering;
use headwater_host::{epoll, sys};

use crate::conn::Conn;
use crate::record::NONBLOCK;
use crate::segment::View;
use crate::{sets, switch};

pub const IN: u32 = libc::POLLIN as u32;
pub const OUT: u32 = libc::POLLOUT as u32;
/// The same of waits in a call that blocks are this much higher.
const BLOCKING: u32 = 16;

/// Operations after which a connection for which no wait was seen is left to the kernel: many where it lies in a set that was made by
/// calls of ours, which a program that always finds what it reads, and room for what it writes, may not have waited for yet.
pub fn gives_up(c: &Conn, fd: i32) -> u32 {
    if sets::hold(c, fd) { 4096 } else { 64 }
}
/// How long a peer that has just published is given to see that it is to send by the kernel.
const WITHDRAWAL_TIMEOUT: u64 = Duration::from_millis(20).as_nanos() as u64;

/// So many waits ask whether the connection still blocks; later ones do so where the last that asked is so long ago, in ns:
/// a program does not change its ways in the middle of a quick exchange.
const ASKING: u32 = 256;
const ASK_AGAIN: u64 = Duration::from_micros(50).as_nanos() as u64;

impl Conn {
    /// Before a call waits, at the time `now`: does the connection not block any more, by a call that nobody saw? Known from then
    /// on. What was seen to be set meanwhile is for later calls.
    pub fn stopped_blocking(&self, now: u64) -> bool {
        if self.record().has(NONBLOCK) {
            return self.found_nonblocking();
        }
        let asked = self.asked.load(Ordering::Relaxed);
        let recently = now.saturating_sub(self.asked_at.load(Ordering::Relaxed)) < ASK_AGAIN;
        if asked >= ASKING && recently {
            return false;
        }
        self.asked.store(asked.saturating_add(1), Ordering::Relaxed);
        self.asked_at.store(now, Ordering::Relaxed);
        let flags = sys::fcntl(self.fd(), libc::F_GETFL, 0).unwrap_or(0);
        let stopped = flags & libc::O_NONBLOCK != 0;
        if stopped {
            self.record().set(NONBLOCK, true);
            self.found_nonblocking.store(1, Ordering::Relaxed);
        }
        stopped
    }

    pub fn found_nonblocking(&self) -> bool {
        // Another process may have seen it cleared.
        self.found_nonblocking.load(Ordering::Relaxed) != 0 && self.record().has(NONBLOCK)
    }

    /// A wait for `events` passes through us.
    #[inline]
    pub fn see_wait(&self, events: u32) {
        self.see_bits(events & (IN | OUT));
    }

    /// A call of the program waits in it, as those of a connection that blocks do.
    pub fn see_blocking(&self, event: u32) {
        self.see_bits(event << BLOCKING);
    }

    #[inline]
    fn see_bits(&self, bits: u32) {
        if self.waited.load(Ordering::Relaxed) & bits != bits {
            self.waited.fetch_or(bits, Ordering::Relaxed);
        }
    }

    /// Will whoever waits for `event` be told by us? Where calls block by themselves, who has waited in one will do so again.
    /// Room is mostly waited for only after a write has failed, in the way in which the same program waits for data.
    fn is_covered(&self, event: u32) -> bool {
        let event = if event == OUT { IN | OUT } else { event };
        let mut seen = self.waited.load(Ordering::Relaxed);
        if !self.is_nonblocking() {
            seen |= seen >> BLOCKING;
        }
        if seen & event != 0 || self.is_ours() {
            return true;
        }
        let covered = epoll::covers(self.fd(), event);
        if covered {
            self.see_wait(event);
        }
        covered
    }
}

/// May the connection be taken over, as far as its waits go?
pub fn may_carry(c: &Conn, fd: i32) -> bool {
    if !sets::are_waited_for(c, fd) {
        return false;
    }
    let flags = sys::fcntl(fd, libc::F_GETFL, 0).unwrap_or(0);
    flags & libc::O_NONBLOCK == 0 || c.is_covered(IN) || c.is_covered(OUT)
}

/// There is nothing to read. True: the program may be told so; else look again.
pub fn nothing_to_read(c: &Conn, v: &View<'_>) -> bool {
    if c.is_covered(IN) {
        return true;
    }
    match switch::pin_if_empty(c, v) {
        Some(true) => {}
        Some(false) => return true,
        None => return false,
    }
    c.falls_back(Reason::UnseenWaits);
    // What was published just before is the peer's to send again; it was rung.
    let end = sys::now() + WITHDRAWAL_TIMEOUT;
    while switch::behind_pin(v) && sys::now() < end {
        std::thread::yield_now();
    }
    // The kernel says when it comes.
    switch::behind_pin(v)
}

/// There is no room to write. True: the program may be told so; else look again.
pub fn no_room(c: &Conn, v: &View<'_>) -> bool {
    if c.is_covered(OUT) {
        return true;
    }
    c.falls_back(Reason::UnseenWaits);
    switch::tcp_only(v);
    switch::unswitch(v);
    // Pinned by the peer, it is on its way to the kernel already.
    switch::must_withdraw(v)
}
