//! The bottom of a queued pipe: a queue pair that turns frames of the incoming ring into messages, and messages into frames
//! of the outgoing one.
//!
//! # Contract
//! Procedures of the executive: called inside the perimeter, with queues of a head that lives.

use core::ffi::c_int;

use headwater_channel::lock::Taken;
use headwater_channel::ring::{Frame, Meta};
use headwater_host::process;
use headwater_host::sync::Ordering::Relaxed;

use super::inlet::{Front, first_by_rank, flag, front_of, is_readable, leave_band, rank};
use super::local::Local;
use super::{Head, passing, signals, upper};
use crate::ddi::*;
use crate::exec::Perimeter;
use crate::exec::attach::{alloc_pair, setq};
use crate::pipe::section;
use crate::tunables;

static READ: qinit = qinit::of(None, Some(rsrv));

static WRITE: qinit = qinit::of(Some(wput), Some(wsrv));

pub fn pair(head: &Head, perimeter: &Perimeter) -> *mut queue_t {
    let rq = alloc_pair(perimeter, head as *const Head as *mut _);
    let t = tunables::get();
    // SAFETY: a fresh pair; the tables are static.
    unsafe {
        setq(rq, &READ, &WRITE);
        for q in [rq, WR(rq)] {
            (*q).q_hiwat = t.hiwat;
            (*q).q_lowat = t.lowat;
            (*q).q_minpsz = 0;
            (*q).q_maxpsz = INFPSZ;
        }
    }
    rq
}

/// # Safety
/// A queue of a bottom whose head lives.
unsafe fn head_of<'a>(q: *mut queue_t) -> &'a Head {
    // SAFETY: such a queue is made with its head for a stream, and heads are never freed.
    unsafe { &*((*q).q_stream as *const Head) }
}

/// Is this the lowest write queue of a pipe?
///
/// # Safety
/// A live queue or null, inside the perimeter.
pub unsafe fn is_bottom(q: *mut queue_t) -> bool {
    // SAFETY: a live queue, where it is not null, as the caller says.
    unsafe { !q.is_null() && core::ptr::eq((*q).q_qinfo, &WRITE) }
}

/// Moves what has come, and what waited for room; true if anything moved.
pub fn pump(head: &Head, local: &Local) -> bool {
    let bottom = local.bottom;
    if bottom.is_null() || !head.is_queued() {
        return false;
    }
    // SAFETY: inside the perimeter.
    unsafe {
        if head.is_blocked() {
            qenable(WR(bottom));
        }
        // Asked before looking: what was sent before the end is there then.
        let over = head.has_hung_up();
        let moved = pump_in(head, bottom, false);
        if over && head.incoming().is_empty() && head.ended.swap(1, Relaxed) == 0 {
            putnext(bottom, Message::new(M_HANGUP, 0).into_raw());
        }
        moved
    }
}

/// Room above: goes on where flow control stopped us.
unsafe extern "C-unwind" fn rsrv(q: *mut queue_t) -> c_int {
    // SAFETY: a service procedure of bottoms gets the read queue of one, inside its perimeter.
    unsafe {
        let head = head_of(q);
        // What comes to a head that went back to its ring alone stays there.
        if head.is_queued() {
            pump_in(head, q, false);
        }
    }
    0
}

/// Before the first module is pushed: what has come is at the head already, which that module is below. What there is no room for there
/// goes through it, as from the writer's queue.
///
/// # Safety
/// Inside the perimeter; `q` is the bottom's read queue, the head's straight above it.
pub unsafe fn bring_up(head: &Head, q: *mut queue_t) {
    // SAFETY: inside the perimeter, with the bottom's read queue, as the caller says.
    unsafe { pump_in(head, q, true) };
}

/// Frames of the incoming ring, as far as there is room above; with `all`, though others may read them too.
///
/// # Safety
/// Inside the perimeter; `q` is the read queue of the head's bottom.
unsafe fn pump_in(head: &Head, q: *mut queue_t, all: bool) -> bool {
    // SAFETY: the bottom's read queue, inside the perimeter: above it is a module or the head, whose first message is on its queue.
    unsafe {
        let mut moved = false;
        let modules = !upper::is_head((*q).q_next);
        loop {
            let ring = head.incoming();
            if modules {
                signals::pass_ring(head);
            }
            if ring.is_empty() {
                return moved;
            }
            if !modules {
                let above = (*q).q_next;
                let first = (*above).q_first;
                let is_high = !first.is_null() && mtype(first) == M_PCPROTO;
                signals::tell_of_ring(head, is_high);
            }
            head.pumped.store(ring.tail(), Relaxed);
            let mut opened = false;
            let Some(mp) = next_message(head, q, all, &mut opened) else {
                return moved;
            };
            head.ring_peer_for_band(opened);
            moved = true;
            putnext(q, mp);
        }
    }
}

/// The next frame that may go up, as a message. `opened`: its band was full, and has room again.
///
/// # Safety
/// Inside the perimeter; `q` is the read queue of the head's bottom.
unsafe fn next_message(
    head: &Head,
    q: *mut queue_t,
    all: bool,
    opened: &mut bool,
) -> Option<*mut mblk_t> {
    let _quiet = process::Quiet::new();
    let ring = head.incoming();
    let Some(section) = section::enter(&ring.state.reader.lock) else {
        head.spoiled();
        return None;
    };
    if section.taken == Taken::Stolen && ring.recover_consumer().is_err() {
        head.spoiled();
        return None;
    }
    // Without modules the other holders of this end may read too: only what comes before the first message is taken. One message
    // of high priority waits, here or there: the head discards a second one.
    // SAFETY: the bottom's read queue, as the caller says; what is above it is live.
    let (shared, first) = unsafe {
        let above = (*q).q_next;
        if upper::is_head(above) && !all {
            (true, (*above).q_first)
        } else {
            (false, core::ptr::null_mut())
        }
    };
    // SAFETY: the first message stays on its queue while we are inside, and there is a queue above the bottom's.
    let may_pass = |f: &Frame| unsafe {
        if !first.is_null() && is_readable(f.meta.kind) && f.meta.kind != M_PCPROTO {
            return rank(f.meta.kind, f.meta.band) > rank(mtype(first), (*first).b_band);
        }
        f.meta.kind & QPCTL != 0 || f.meta.kind == M_PASSFP || bcanputnext(q, f.meta.band) != 0
    };
    let found = if ring.specials() == 0 {
        ring.peek().map(|f| f.filter(may_pass))
    } else if shared {
        first_by_rank(&ring, may_pass)
    } else {
        ring.find(may_pass)
    };
    let frame = match found {
        Ok(frame) => frame?,
        Err(_) => {
            head.spoiled();
            return None;
        }
    };
    let mp = message_of(head, &frame);
    if frame.meta.band > 0 {
        let word = &head.band_bytes(false)[frame.meta.band as usize];
        // SAFETY: the message was made just now.
        *opened = leave_band(word, unsafe { weight(&frame, mp) });
    }
    ring.take(&frame);
    drop(section);
    mp
}

/// What a frame counted for in its band: a data part that came by a memfd counts too.
///
/// # Safety
/// A live message, if any.
unsafe fn weight(frame: &Frame, mp: Option<*mut mblk_t>) -> usize {
    match mp {
        Some(mp) if frame.meta.flags & flag::EXTERNAL != 0 => {
            // SAFETY: a live message, as the caller says.
            unsafe { msgsize(mp) }
        }
        _ => front_of(frame).total(),
    }
}

/// What is in the incoming ring for the reader.
pub fn each_in_ring(head: &Head, f: &mut dyn FnMut(&Front)) {
    let _quiet = process::Quiet::new();
    let ring = head.incoming();
    let Some(section) = section::enter(&ring.state.reader.lock) else {
        return;
    };
    if section.taken == Taken::Stolen && ring.recover_consumer().is_err() {
        return;
    }
    let _ = ring.find(|frame| {
        if is_readable(frame.meta.kind) {
            f(&front_of(frame));
        }
        false
    });
}

/// The message that the reader would get first of those in the incoming ring.
pub fn first_in_ring(head: &Head) -> Option<Front> {
    let mut first: Option<Front> = None;
    each_in_ring(head, &mut |front| {
        let place = |f: &Front| rank(f.kind, f.band);
        if first.is_none_or(|first| place(front) > place(&first)) {
            first = Some(*front);
        }
    });
    first
}

/// `None` where it makes no sense, or without memory: then it is lost, and the stream fails.
fn message_of(head: &Head, frame: &Frame) -> Option<*mut mblk_t> {
    let ring = head.incoming();
    let block = |skip: usize, len: usize, kind: u8| {
        let mp = allocb(len, BPRI_MED);
        if !mp.is_null() {
            // SAFETY: a fresh block of ours, with room for as many bytes.
            unsafe {
                (*(*mp).b_datap).db_type = kind;
                let to = core::slice::from_raw_parts_mut((*mp).b_wptr, len);
                ring.copy_frame(frame, skip, to);
                (*mp).b_wptr = (*mp).b_wptr.add(len);
            }
        }
        mp
    };
    if !frame.special {
        let mp = block(0, frame.len, M_DATA);
        return (!mp.is_null()).then_some(mp);
    }
    let kind = frame.meta.kind;
    if !crosses(kind) {
        head.spoiled();
        return None;
    }
    let control = frame.control_left();
    let data = frame.len - control;
    let mp = match kind {
        M_PROTO | M_PCPROTO => {
            let first = block(0, control, kind);
            if !first.is_null() && frame.meta.flags & flag::NO_DATA == 0 {
                let second = data_block(head, frame, control, data, &block);
                // SAFETY: a fresh block of ours.
                unsafe { (*first).b_cont = second };
            }
            first
        }
        M_DATA => data_block(head, frame, control, data, &block),
        kind => block(0, frame.len, kind),
    };
    if mp.is_null() {
        head.spoiled();
        return None;
    }
    // SAFETY: a fresh message, which is ours until it is handed up.
    unsafe {
        (*mp).b_band = frame.meta.band;
        if frame.meta.flags & flag::MARK != 0 {
            (*mp).b_flag |= MSGMARK;
        }
        if frame.meta.flags & flag::DELIM != 0 {
            (*mp).b_flag |= MSGDELIM;
        }
    }
    Some(mp)
}

/// The data part, which may be in a memfd of its own.
fn data_block(
    head: &Head,
    frame: &Frame,
    skip: usize,
    len: usize,
    block: &impl Fn(usize, usize, u8) -> *mut mblk_t,
) -> *mut mblk_t {
    if frame.meta.flags & flag::EXTERNAL == 0 {
        return block(skip, len, M_DATA);
    }
    let mut ticket = [0; 16];
    if len != ticket.len() {
        return core::ptr::null_mut();
    }
    head.incoming().copy_frame(frame, skip, &mut ticket);
    let Ok(body) = passing::fetch_body(head, ticket) else {
        return core::ptr::null_mut();
    };
    let bytes = body.as_slice();
    let mp = allocb(bytes.len(), BPRI_MED);
    if !mp.is_null() {
        // SAFETY: a fresh block of ours, with room for as many bytes.
        unsafe {
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), (*mp).b_wptr, bytes.len());
            (*mp).b_wptr = (*mp).b_wptr.add(bytes.len());
        }
    }
    mp
}

/// What goes to the other end.
unsafe extern "C-unwind" fn wput(q: *mut queue_t, mp: *mut mblk_t) -> c_int {
    // SAFETY: a put procedure of bottoms gets the write queue of one, inside its perimeter, and a message that is its own. A block
    // is only looked at where it is long enough.
    unsafe {
        match mtype(mp) {
            // Of nothing: any module can send one.
            M_FLUSH if length(mp) == 0 => freemsg(mp),
            M_FLUSH => {
                let what = *(*mp).b_rptr;
                if what & FLUSHW != 0 {
                    if what & FLUSHBAND != 0 && length(mp) > 1 {
                        flushband(q, *(*mp).b_rptr.add(1), FLUSHDATA);
                    } else {
                        flushq(q, FLUSHDATA);
                    }
                    // Our writing is the other end's reading: what waits in the ring goes too.
                    let band =
                        (what & FLUSHBAND != 0 && length(mp) > 1).then(|| *(*mp).b_rptr.add(1));
                    let _ = super::control::flush_ring(head_of(q), true, band);
                }
                let swapped = what & !(FLUSHR | FLUSHW)
                    | if what & FLUSHR != 0 { FLUSHW } else { 0 }
                    | if what & FLUSHW != 0 { FLUSHR } else { 0 };
                *(*mp).b_rptr = swapped;
                if head_of(q)
                    .peer_words()
                    .is_some_and(|w| w.has(crate::pipe::words::state::QUEUED))
                {
                    send_or_queue(q, mp);
                } else {
                    freemsg(mp);
                }
            }
            M_IOCTL => {
                // A module may have moved the beginning.
                let at = (*mp).b_rptr.cast::<iocblk>();
                if length(mp) >= size_of::<iocblk>() {
                    let mut ioc = at.read_unaligned();
                    ioc.ioc_error = if ioc.ioc_count == TRANSPARENT {
                        libc::ENOTTY
                    } else {
                        libc::EINVAL
                    };
                    ioc.ioc_count = 0;
                    at.write_unaligned(ioc);
                }
                (*(*mp).b_datap).db_type = M_IOCNAK;
                qreply(q, mp);
            }
            kind if crosses(kind) => send_or_queue(q, mp),
            _ => freemsg(mp),
        }
        0
    }
}

/// May a message of this type go to the other end? What only a stream's own modules may ask of its head or tell it does
/// not: M_COPYIN of a stranger would read this process's memory.
fn crosses(kind: u8) -> bool {
    !matches!(
        kind,
        M_IOCTL
            | M_IOCDATA
            | M_IOCACK
            | M_IOCNAK
            | M_COPYIN
            | M_COPYOUT
            | M_SETOPTS
            | M_READ
            | M_STOP
            | M_START
            | M_STOPI
            | M_STARTI
    )
}

/// # Safety
/// The bottom's write queue, inside the perimeter, and a message that is the callee's.
unsafe fn send_or_queue(q: *mut queue_t, mp: *mut mblk_t) {
    // SAFETY: the bottom's write queue, as the caller says; a message that was sent is ours to free.
    unsafe {
        let first = (*q).q_first.is_null() || mtype(mp) >= QPCTL;
        if first && send(head_of(q), mp) {
            freemsg(mp);
        } else {
            putq(q, mp);
        }
    }
}

/// Room in the ring again, or something new on the queue.
unsafe extern "C-unwind" fn wsrv(q: *mut queue_t) -> c_int {
    // SAFETY: a service procedure of bottoms gets the write queue of one, inside its perimeter; a message that comes off it is ours until
    // it is put back.
    unsafe {
        let head = head_of(q);
        head.blocked.store(0, Relaxed);
        loop {
            let mp = getq(q);
            if mp.is_null() {
                return 0;
            }
            if send(head, mp) {
                freemsg(mp);
            } else {
                // Not back-enabled by anybody: whoever is in a call looks for room in the ring.
                head.blocked.store(1, Relaxed);
                putbq(q, mp);
                (*(*q).q_perimeter).unschedule(q);
                return 0;
            }
        }
    }
}

/// A message into the ring, as one frame; false when there is no room. What can't be sent any more counts as sent.
///
/// # Safety
/// A message of the caller's.
unsafe fn send(head: &Head, mp: *mut mblk_t) -> bool {
    // SAFETY: the blocks of the caller's message are live, and stay as they are until this returns.
    unsafe {
        let kind = mtype(mp);
        let (mut control, mut data) = (Vec::new(), Vec::new());
        let mut has_data = kind != M_PROTO && kind != M_PCPROTO;
        if has_data && (*mp).b_cont.is_null() {
            // The usual case: one block.
            return push(head, kind, &*mp, &[], block_bytes(mp), true);
        }
        let mut at = mp;
        while !at.is_null() {
            if matches!(mtype(at), M_PROTO | M_PCPROTO) {
                control.extend_from_slice(block_bytes(at));
            } else {
                has_data = true;
                data.extend_from_slice(block_bytes(at));
            }
            at = (*at).b_cont;
        }
        push(head, kind, &*mp, &control, &data, has_data)
    }
}

fn push(
    head: &Head,
    kind: u8,
    first: &mblk_t,
    control: &[u8],
    data: &[u8],
    has_data: bool,
) -> bool {
    let mut flags = if has_data { 0 } else { flag::NO_DATA };
    if first.b_flag & MSGMARK != 0 {
        flags |= flag::MARK;
    }
    if first.b_flag & MSGDELIM != 0 {
        flags |= flag::DELIM;
    }
    let meta = Meta {
        kind,
        band: first.b_band,
        flags,
        control: 0,
    };
    head.push_frame(control, data, meta).unwrap_or(true)
}
