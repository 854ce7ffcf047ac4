//! What the kernel does not take at once of a direction whose peer reads only the kernel is sent by a *keeper*: a process that has
//! nothing of the program but the shadow. So no close, shutdown, exit or exec waits for a peer to read, as none does with TCP.
//!
//! A keeper is a child of a child that has ended at once, and neither tells the program of its end. Everything here is a bare
//! system call, without allocation: a close may stand in a signal handler, and other threads' locks are held in the child for ever.

use core::time::Duration;

use headwater_channel::bell;
use headwater_host::counters::{self, Reason};
use headwater_host::sync::Ordering;
use headwater_host::{aside, process, sys};

use crate::conn::Conn;
use crate::reset::reset_if_unread;
use crate::segment::View;
use crate::{switch, takeover};

/// A keeper whose peer takes nothing for so long gives up, as the kernel does with a connection that nobody owns.
const STALL_TIMEOUT: u64 = Duration::from_secs(120).as_nanos() as u64;
/// Where no keeper can be made the call waits for the peer after all, for so long at most.
const LAST_RESORT: u64 = Duration::from_secs(30).as_nanos() as u64;
pub const BUFFER: usize = 32 << 10;
const SLICE: u64 = Duration::from_secs(1).as_nanos() as u64;

/// What the keeper does when all is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Then {
    /// Gives up its hold, which may be the last.
    Close,
    /// Ends the sending direction first, in the place of the program's shutdown(2).
    ShutWrite,
}

/// Leaves the rest of what this end sends to a keeper. False: there can't be one, and the kernel has all of it, or the peer did
/// not read for long.
pub fn leave(c: &'static Conn, v: &View<'static>, shadow: i32, then: Then) -> bool {
    let left = fork(c, v, || keep(c, v, shadow, then));
    if left {
        counters::note(Reason::Kept);
    } else {
        counters::note(Reason::NoMemory);
        // A ring's worth mostly fits into the largest buffer that the kernel gives. What it got is as much as ever now, but nothing
        // else is sent.
        let _ = sys::set_sockopt(shadow, libc::SOL_SOCKET, libc::SO_SNDBUF, &(1 << 20));
        switch::finish_withdrawal(c, v, shadow, LAST_RESORT);
    }
    left
}

/// Runs `work` in a process of its own that holds this end of the connection too.
pub fn fork(c: &Conn, v: &View<'_>, work: impl FnOnce()) -> bool {
    // Its other holder is seen by peers and siblings, and the segment is not used again.
    v.header.share();
    v.own().holders.fetch_add(1, Ordering::AcqRel);
    c.record().holders.fetch_add(1, Ordering::AcqRel);
    bell::ring(v.peer_bell());
    bell::ring(v.own_bell());
    let forked = aside::leave(work);
    if !forked {
        v.own().holders.fetch_sub(1, Ordering::AcqRel);
        c.record().holders.fetch_sub(1, Ordering::AcqRel);
    }
    forked
}

/// What the kernel took in a step of a keeper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Took {
    /// There is no more, or no more can be sent.
    All,
    Some,
    Nothing,
}

/// Takes one `step` after the other, until all is sent, the peer has gone, or has taken nothing for long. True: all is.
pub fn send_all(fd: i32, mut step: impl FnMut() -> Took) -> bool {
    let mut since = sys::now();
    loop {
        match step() {
            Took::All => return true,
            Took::Some => since = sys::now(),
            Took::Nothing => {}
        }
        let told = sys::poll_for(fd, libc::POLLOUT, SLICE);
        let gone = told & (libc::POLLERR | libc::POLLHUP) != 0;
        if gone || sys::now() - since > STALL_TIMEOUT {
            return false;
        }
    }
}

fn keep(c: &'static Conn, v: &View<'static>, shadow: i32, then: Then) {
    let Some([fd]) = become_nobody(c, v, [shadow]) else {
        return;
    };
    let buf = buffer(0);
    let mut withdrawn = 0;
    send_all(fd, || {
        if !switch::must_withdraw(v) || switch::withdraw_by(c, v, fd, buf) {
            return Took::All;
        }
        let before = withdrawn;
        withdrawn = v.record.sending.withdrawn.load(Ordering::Relaxed);
        match withdrawn == before {
            true => Took::Nothing,
            false => Took::Some,
        }
    });
    if then == Then::ShutWrite {
        switch::begin_close(v);
        let _ = sys::shutdown(fd, libc::SHUT_WR);
    }
    kept(c, v, fd);
}

/// The keeper of an end has sent what there was.
pub fn kept(c: &'static Conn, v: &View<'static>, fd: i32) {
    if v.own().holders.fetch_sub(1, Ordering::AcqRel) <= 1 {
        switch::begin_close(v);
        reset_if_unread(c, v, fd);
    }
    takeover::withdraw_offer(c);
    c.abandon();
    let _ = sys::close(fd);
    v.own().look.fetch_add(1, Ordering::Release);
    bell::ring(v.peer_bell());
}

/// None of the program's descriptors, signals and terminal, but the shadow, which comes first of `needed`, and others; their
/// numbers here.
pub fn become_nobody<const N: usize>(c: &Conn, v: &View<'_>, needed: [i32; N]) -> Option<[i32; N]> {
    let mut kept = [v.own_bell(); 8];
    kept[0] = v.peer_bell();
    let mut numbers = needed;
    for (at, fd) in needed.into_iter().enumerate() {
        if fd < 3 {
            numbers[at] = sys::dup_above(fd, 3).ok()?;
        }
        kept[at + 1] = numbers[at];
    }
    kept.sort_unstable();
    c.fd.store(numbers[0], Ordering::Relaxed);
    c.forget_calls();
    process::identify();
    aside::become_nobody(kept.into_iter());
    Some(numbers)
}

/// One of two buffers of a process that [`fork`] has made: there from the beginning, whoever held the allocator when it was
/// forked, and whatever memory is left.
pub fn buffer(which: usize) -> &'static mut [u8] {
    headwater_host::large! {
        rarely:
        static mut BUFFERS: [[u8; BUFFER]; 2] = [[0; BUFFER]; 2];
    }
    let all = &raw mut BUFFERS;
    // SAFETY: that process has one thread, which asks once for each; in others nobody does.
    unsafe { &mut (*all)[which] }
}
