//! The stream head as the uppermost module: what its queues' procedures do with what comes up.
//!
//! # Contract
//! Procedures of the executive: called inside the perimeter, with queues of a head that lives.

use core::ffi::c_int;

use headwater_host::sync::Ordering::{Relaxed, Release};

use super::{Head, bottom, signals};
use crate::ddi::*;
use crate::exec::Perimeter;
use crate::exec::attach::{alloc_pair, setq};
use crate::pipe::words::state;
use crate::tunables;

static READ: qinit = qinit::of(Some(rput), None);

static WRITE: qinit = qinit::of(None, Some(wsrv));

/// The head's queue pair.
pub fn pair(head: &Head, perimeter: &Perimeter) -> *mut queue_t {
    let rq = alloc_pair(perimeter, head as *const Head as *mut _);
    let t = tunables::get();
    // SAFETY: a fresh pair; the tables are static.
    unsafe {
        setq(rq, &READ, &WRITE);
        (*rq).q_hiwat = t.hiwat;
        (*rq).q_lowat = t.lowat;
        (*rq).q_minpsz = 0;
        (*rq).q_maxpsz = INFPSZ;
        (*WR(rq)).q_hiwat = t.hiwat;
        (*WR(rq)).q_lowat = t.lowat;
    }
    rq
}

/// Is this a head's own read queue, rather than a module's, or a multiplexer's lower one?
///
/// # Safety
/// A live queue or null, inside the perimeter.
pub unsafe fn is_head(q: *mut queue_t) -> bool {
    // SAFETY: a live queue, where it is not null, as the caller says.
    unsafe { !q.is_null() && core::ptr::eq((*q).q_qinfo, &READ) }
}

/// What comes to a pipe without modules is told of while it is in the ring.
///
/// # Safety
/// A head's own queue, inside the perimeter.
unsafe fn is_told_by_ring(q: *mut queue_t) -> bool {
    // SAFETY: a queue of a live pair, as the caller says; what is next to it is live, or null.
    unsafe { bottom::is_bottom((*WR(q)).q_next) }
}

/// # Safety
/// A queue of a head that lives.
unsafe fn head_of<'a>(q: *mut queue_t) -> &'a Head {
    // SAFETY: such a queue is made with its head for a stream, and heads are never freed.
    unsafe { &*((*q).q_stream as *const Head) }
}

/// Room again below: writers, and who asked for S_OUTPUT, are told.
unsafe extern "C-unwind" fn wsrv(q: *mut queue_t) -> c_int {
    // SAFETY: a service procedure of heads gets a queue of one.
    let head = unsafe { head_of(q) };
    head.notify();
    signals::room(head);
    0
}

/// A message has come up to the head.
unsafe extern "C-unwind" fn rput(q: *mut queue_t, mp: *mut mblk_t) -> c_int {
    // SAFETY: a put procedure of heads gets the read queue of one, inside its perimeter, and a whole message that is its own from then on.
    unsafe {
        let head = head_of(q);
        match mtype(mp) {
            M_DATA | M_PROTO | M_PASSFP => {
                let band = (*mp).b_band;
                putq(q, mp);
                head.notify();
                if !is_told_by_ring(q) {
                    signals::arrived(head, band);
                }
            }
            M_PCPROTO => {
                if !(*q).q_first.is_null() && mtype((*q).q_first) == M_PCPROTO {
                    // One waits at the head; the next is discarded.
                    freemsg(mp);
                } else {
                    putq(q, mp);
                    head.notify();
                    if !is_told_by_ring(q) {
                        signals::urgent(head);
                    }
                }
            }
            M_FLUSH => flushed(head, q, mp),
            M_IOCACK | M_IOCNAK | M_COPYIN | M_COPYOUT => {
                match head.local() {
                    Some(local) => local.requests.borrow_mut().answered(mp),
                    None => freemsg(mp),
                }
                head.notify();
            }
            M_ERROR => {
                let bytes = block_bytes(mp);
                failed(
                    head,
                    bytes.first().copied().unwrap_or(0),
                    bytes.get(1).copied(),
                );
                freemsg(mp);
            }
            M_HANGUP => {
                freemsg(mp);
                head.words().set(state::HANGUP);
                head.notify();
                signals::hung_up(head);
            }
            M_UNHANGUP => {
                freemsg(mp);
                head.words().clear(state::HANGUP);
                signals::resumed(head);
                head.notify();
            }
            M_SIG | M_PCSIG => {
                let signal = block_bytes(mp).first().copied().unwrap_or(0);
                freemsg(mp);
                signals::asked_for(head, signal as c_int);
            }
            M_SETOPTS => {
                if length(mp) >= size_of::<stroptions>() {
                    let options = ((*mp).b_rptr as *const stroptions).read_unaligned();
                    set_options(head, q, &options);
                }
                freemsg(mp);
                head.notify();
            }
            _ => freemsg(mp),
        }
        0
    }
}

/// M_FLUSH.
///
/// # Safety
/// A head's own read queue, inside the perimeter, and a message that is the callee's.
unsafe fn flushed(head: &Head, q: *mut queue_t, mp: *mut mblk_t) {
    // SAFETY: a head's own queue, and a message of ours, as the caller says; a byte is only written where the message has one.
    unsafe {
        let what = block_bytes(mp).first().copied().unwrap_or(0);
        let band = block_bytes(mp)
            .get(1)
            .copied()
            .filter(|_| what & FLUSHBAND != 0);
        if what & FLUSHR != 0 {
            match band {
                Some(band) => flushband(q, band, FLUSHDATA),
                None => flushq(q, FLUSHDATA),
            }
            head.notify();
        }
        if what & FLUSHW != 0 && (*mp).b_flag & MSGNOLOOP == 0 {
            // Back down, for the write sides; whoever sends it up again finds that it has been here.
            *(*mp).b_rptr &= !FLUSHR;
            (*mp).b_flag |= MSGNOLOOP;
            qreply(q, mp);
        } else {
            freemsg(mp);
        }
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
            // SAFETY: the write queue of a live head, whose perimeter we are inside.
            unsafe { putnext(local.wq(), Message::flush(FLUSHW, None).into_raw()) };
        }
    }
}

/// M_SETOPTS: stroptions(9S).
///
/// # Safety
/// A head's own read queue, inside the perimeter.
unsafe fn set_options(head: &Head, q: *mut queue_t, options: &stroptions) {
    let words = head.words();
    let flags = options.so_flags;
    let has = |flag| flags & flag != 0;
    if has(SO_READOPT) {
        let mode = options.so_readopt as u32;
        let mode = if mode & 0x10 != 0 { mode & !0x10 } else { mode };
        words.read_options.store(mode, Relaxed);
        if mode == 0 {
            words.clear(state::UNUSUAL_READ);
        } else {
            words.set(state::UNUSUAL_READ);
        }
    }
    if has(SO_WROFF) {
        words.write_offset.store(options.so_wroff as u32, Relaxed);
    }
    // SAFETY: a live queue, inside its perimeter, as the caller says.
    unsafe {
        if has(SO_MINPSZ) {
            (*q).q_minpsz = options.so_minpsz;
            words
                .min_packet
                .store(options.so_minpsz.max(0) as u32, Relaxed);
        }
        if has(SO_MAXPSZ) {
            (*q).q_maxpsz = options.so_maxpsz;
            let most = if options.so_maxpsz < 0 {
                u32::MAX
            } else {
                options.so_maxpsz as u32
            };
            words.max_packet.store(most, Relaxed);
        }
        let band = if has(SO_BAND) { options.so_band } else { 0 };
        if has(SO_HIWAT) {
            strqset(q, QHIWAT, band, options.so_hiwat as _);
            if band == 0 {
                words.hiwat.store(options.so_hiwat as u32, Relaxed);
            }
        }
        if has(SO_LOWAT) {
            strqset(q, QLOWAT, band, options.so_lowat as _);
            if band == 0 {
                words.lowat.store(options.so_lowat as u32, Relaxed);
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
