//! The stream head as the uppermost module: what its queues' procedures do with what comes up.
//!
//! # Contract
//! Procedures of the executive: called inside the perimeter, with queues of a head that lives.

use core::ffi::c_int;

use headwater_host::sync::Ordering::{Relaxed, Release};

use super::{Head, signals};
use crate::ddi::*;
use crate::exec::Perimeter;
use crate::exec::attach::{alloc_pair, setq};
use crate::pipe::words::state;
use crate::tunables;

static READ: qinit = qinit::of(Some(rput), None);

static WRITE: qinit = qinit::of(None, Some(wsrv));

/// The head's queue pair.
pub fn pair(head: &Head, perimeter: &'static Perimeter) -> Queue {
    pair_of(head, perimeter, &READ, &WRITE)
}

/// A pair of a head with these procedures, which are for such a pair.
pub(super) fn pair_of(
    head: &Head,
    perimeter: &'static Perimeter,
    read: &'static qinit,
    write: &'static qinit,
) -> Queue {
    let rq = alloc_pair(perimeter, head as *const Head as *mut _);
    let t = tunables::get();
    // SAFETY: the procedures are for such a pair, as the caller says.
    unsafe { setq(rq, Some(read), Some(write)) };
    for q in [rq, rq.other()] {
        q.q_hiwat.set(t.hiwat);
        q.q_lowat.set(t.lowat);
        q.q_maxpsz.set(INFPSZ);
    }
    rq
}

/// Is this a head's own read queue, rather than a module's, or a multiplexer's lower one?
pub fn is_head(q: Queue) -> bool {
    core::ptr::eq(q.procedures(), &READ)
}

/// What comes to a pipe without modules is told of while it is in the ring.
fn is_told_by_ring(head: &Head, q: Queue) -> bool {
    // SAFETY: inside the perimeter, see the contract.
    let bottom = unsafe { head.local() }.and_then(|local| local.bottom);
    bottom.is_some_and(|bottom| q.write().next() == Some(bottom.write()))
}

/// # Safety
/// A queue that was made for a head, here or in [`bottom`](super::bottom).
pub(super) unsafe fn head_of(q: Queue) -> &'static Head {
    // SAFETY: such a queue is made with its head for a stream, and heads are never freed.
    unsafe { &*(q.stream() as *const Head) }
}

/// Room again below: writers, and who asked for S_OUTPUT, are told.
unsafe extern "C-unwind" fn wsrv(q: Queue) -> c_int {
    // SAFETY: a service procedure gets a queue that it is for.
    let head = unsafe { head_of(q) };
    head.notify();
    signals::room(head);
    0
}

/// A message has come up to the head.
unsafe extern "C-unwind" fn rput(q: Queue, m: Message) -> c_int {
    // SAFETY: a put procedure gets a queue that it is for.
    let head = unsafe { head_of(q) };
    match m.kind() {
        M_DATA | M_PROTO | M_PASSFP => {
            let band = m.band();
            q.putq(m);
            head.notify();
            if !is_told_by_ring(head, q) {
                signals::arrived(head, band);
            }
        }
        // One waits at the head; the next is discarded.
        M_PCPROTO if q.first().is_some_and(|(kind, _)| kind == M_PCPROTO) => {}
        M_PCPROTO => {
            q.putq(m);
            head.notify();
            if !is_told_by_ring(head, q) {
                signals::urgent(head);
            }
        }
        M_FLUSH => flushed(head, q, m),
        M_IOCACK | M_IOCNAK | M_COPYIN | M_COPYOUT => {
            // SAFETY: inside the perimeter, see the contract.
            if let Some(local) = unsafe { head.local() } {
                local.requests.borrow_mut().answered(m);
            }
            head.notify();
        }
        M_ERROR => {
            let bytes = m.bytes();
            failed(
                head,
                bytes.first().copied().unwrap_or(0),
                bytes.get(1).copied(),
            );
        }
        M_HANGUP => {
            head.words().set(state::HANGUP);
            head.notify();
            signals::hung_up(head);
        }
        M_UNHANGUP => {
            head.words().clear(state::HANGUP);
            signals::resumed(head);
            head.notify();
        }
        M_SIG | M_PCSIG => {
            let signal = m.bytes().first().copied().unwrap_or(0);
            drop(m);
            signals::asked_for(head, signal as c_int);
        }
        M_SETOPTS => {
            if let Some(options) = m.read::<stroptions>() {
                set_options(head, q, &options);
            }
            head.notify();
        }
        _ => {}
    }
    0
}

/// M_FLUSH.
fn flushed(head: &Head, q: Queue, m: Message) {
    let what = m.bytes().first().copied().unwrap_or(0);
    q.flush_as(&m, Flush::Data);
    if what & FLUSHR != 0 {
        head.notify();
    }
    if what & FLUSHW != 0 && m.flags() & MSGNOLOOP == 0 {
        // Back down, for the write sides; whoever sends it up again finds that it has been here.
        let mut m = m.unshared();
        m.overwrite(what & !FLUSHR);
        m.set_flags(m.flags() | MSGNOLOOP);
        q.qreply(m);
    }
}

/// M_ERROR: one byte for both sides, or one for each; 0 ends an error, NOERROR leaves it as it is.
fn failed(head: &Head, read: u8, write: Option<u8>) {
    let words = head.words();
    let write = write.unwrap_or(read);
    for (errno, word, bit) in [
        (read, &words.read_error, state::READ_ERROR),
        (write, &words.write_error, state::WRITE_ERROR),
    ] {
        match errno {
            NOERROR => {}
            0 => words.clear(bit),
            errno => {
                word.store(errno as u32, Relaxed);
                words.set(bit);
            }
        }
    }
    head.notify();
    if words.has(state::READ_ERROR | state::WRITE_ERROR) {
        signals::failed(head);
        // SAFETY: inside the perimeter, see the contract.
        if let Some(local) = unsafe { head.local() } {
            // What was written is of no use to anybody; the read side stays readable.
            local.down().putnext(Message::flush(FLUSHW, None));
        }
    }
}

/// M_SETOPTS: stroptions(9S).
fn set_options(head: &Head, q: Queue, options: &stroptions) {
    let words = head.words();
    let flags = options.so_flags;
    let has = |flag| flags & flag != 0;
    if has(SO_READOPT) {
        let mode = options.so_readopt as u32;
        let mode = if mode & 0x10 != 0 { mode & !0x10 } else { mode };
        words.set_read_options(mode);
    }
    if has(SO_WROFF) {
        words.write_offset.store(options.so_wroff as u32, Relaxed);
    }
    if has(SO_MINPSZ) {
        q.q_minpsz.set(options.so_minpsz);
        words
            .min_packet
            .store(options.so_minpsz.max(0) as u32, Relaxed);
    }
    if has(SO_MAXPSZ) {
        q.q_maxpsz.set(options.so_maxpsz);
        let most = if options.so_maxpsz < 0 {
            u32::MAX
        } else {
            options.so_maxpsz as u32
        };
        words.max_packet.store(most, Relaxed);
    }
    let band = if has(SO_BAND) { options.so_band } else { 0 };
    for (flag, what, mark, word) in [
        (SO_HIWAT, QHIWAT, options.so_hiwat, &words.hiwat),
        (SO_LOWAT, QLOWAT, options.so_lowat, &words.lowat),
    ] {
        if has(flag) {
            let _ = q.strqset(what, band, mark as _);
            if band == 0 {
                word.store(mark as u32, Relaxed);
            }
        }
    }
    if has(SO_MREADON) {
        words.set(state::TELLS_READS);
    }
    if has(SO_MREADOFF) {
        words.clear(state::TELLS_READS);
    }
    if has(SO_NDELON) {
        words.nonblocking.store(1, Release);
    }
    if has(SO_NDELOFF) {
        words.nonblocking.store(0, Release);
    }
    if has(SO_ERROPT) {
        words.error_options.store(options.so_erropt as u32, Release);
    }
    let unusual = words.write_offset.load(Relaxed) != 0
        || words.min_packet.load(Relaxed) != 0
        || words.max_packet.load(Relaxed) != u32::MAX;
    if unusual {
        words.set(state::UNUSUAL_WRITE);
    }
}
