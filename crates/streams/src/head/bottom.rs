//! The bottom of a queued pipe: a queue pair that turns frames of the incoming ring into messages, and messages into frames
//! of the outgoing one.
//!
//! # Contract
//! Procedures of the executive: called inside the perimeter, with queues of a head that lives.

use core::ffi::c_int;

use headwater_channel::ring::{Frame, Meta};
use headwater_host::process;
use headwater_host::sync::Ordering::Relaxed;

use super::inlet::{
    Front, first_by_rank, flag, flush_ring, front_of, is_readable, leave_band, rank,
};
use super::{Head, parcels, signals, upper};
use crate::ddi::*;
use crate::exec::Perimeter;
use crate::pipe::section;

static READ: qinit = qinit::of(None, Some(rsrv));

static WRITE: qinit = qinit::of(Some(wput), Some(wsrv));

pub fn pair(head: &Head, perimeter: &'static Perimeter) -> Queue {
    upper::pair_of(head, perimeter, &READ, &WRITE)
}

/// Moves what has come to `bottom`, the read queue of its pair, and what waited for room; true if anything moved.
pub fn pump(head: &Head, bottom: Option<Queue>) -> bool {
    let Some(bottom) = bottom.filter(|_| head.is_queued()) else {
        return false;
    };
    if head.is_blocked() {
        bottom.write().qenable();
    }
    // Asked before looking: what was sent before the end is there then.
    let over = head.has_hung_up();
    let moved = pump_in(head, bottom, false);
    if over && head.incoming().is_empty() && head.ended.swap(1, Relaxed) == 0 {
        bottom.putnext(Message::new(M_HANGUP, 0));
    }
    moved
}

/// Room above: goes on where flow control stopped us.
unsafe extern "C-unwind" fn rsrv(q: Queue) -> c_int {
    // SAFETY: a service procedure gets a queue that it is for.
    let head = unsafe { upper::head_of(q) };
    // What comes to a head that went back to its ring alone stays there.
    if head.is_queued() {
        pump_in(head, q, false);
    }
    0
}

/// Before the first module is pushed: what has come is at the head already, which that module is below. What there is no room for there
/// goes through it, as from the writer's queue. `q` is the bottom's read queue, the head's straight above it.
pub fn bring_up(head: &Head, q: Queue) {
    pump_in(head, q, true);
}

/// Frames of the incoming ring, as far as there is room above the bottom's read queue; with `all`, though others may read them too.
fn pump_in(head: &Head, q: Queue, all: bool) -> bool {
    let mut moved = false;
    let below_head = q.next().filter(|q| upper::is_head(*q));
    loop {
        let ring = head.incoming();
        if below_head.is_none() {
            signals::pass_ring(head);
        }
        if ring.is_empty() {
            return moved;
        }
        if let Some(above) = below_head {
            let is_high = above.first().is_some_and(|(kind, _)| kind == M_PCPROTO);
            signals::tell_of_ring(head, is_high);
        }
        head.pumped.store(ring.tail(), Relaxed);
        let mut opened = false;
        let Some(m) = next_message(head, q, all, &mut opened) else {
            return moved;
        };
        head.ring_peer_for_band(opened);
        moved = true;
        q.putnext(m);
    }
}

/// The next frame that may go up, as a message. `opened`: its band was full, and has room again.
fn next_message(head: &Head, q: Queue, all: bool, opened: &mut bool) -> Option<Message> {
    let _quiet = process::Quiet::new();
    let ring = head.incoming();
    let Some(section) = section::reading(&ring) else {
        head.spoiled();
        return None;
    };
    // Without modules the other holders of this end may read too: only what comes before the first message is taken. One message
    // of high priority waits, here or there: the head discards a second one.
    let reader = q.next().filter(|above| upper::is_head(*above) && !all);
    let (shared, first) = (reader.is_some(), reader.and_then(Queue::first));
    let may_pass = |f: &Frame| {
        if let Some((kind, band)) = first
            && is_readable(f.meta.kind)
            && f.meta.kind != M_PCPROTO
        {
            return rank(f.meta.kind, f.meta.band) > rank(kind, band);
        }
        f.meta.kind & QPCTL != 0 || f.meta.kind == M_PASSFP || q.bcanputnext(f.meta.band)
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
    let m = message_of(head, &frame);
    if frame.meta.band > 0 {
        let word = &head.band_bytes(false)[frame.meta.band as usize];
        *opened = leave_band(word, weight(&frame, m.as_ref()));
    }
    ring.take(&frame);
    drop(section);
    m
}

/// What a frame counted for in its band: a data part that came by a memfd counts too.
fn weight(frame: &Frame, m: Option<&Message>) -> usize {
    match m {
        Some(m) if frame.meta.flags & flag::EXTERNAL != 0 => m.len(),
        _ => front_of(frame).total(),
    }
}

/// What is in the incoming ring for the reader.
pub fn each_in_ring(head: &Head, f: &mut dyn FnMut(&Front)) {
    let _quiet = process::Quiet::new();
    let ring = head.incoming();
    let Some(_section) = section::reading(&ring) else {
        return;
    };
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
fn message_of(head: &Head, frame: &Frame) -> Option<Message> {
    let ring = head.incoming();
    let block = |skip: usize, len: usize, kind: u8| {
        // SAFETY: the ring copies as many bytes as there is room for.
        unsafe { Message::filled(kind, 0, len, |to| ring.copy_frame(frame, skip, to)) }
    };
    if !frame.special {
        return block(0, frame.len, M_DATA);
    }
    let kind = frame.meta.kind;
    if !crosses(kind) {
        head.spoiled();
        return None;
    }
    let control = frame.control_left();
    let data = frame.len - control;
    let m = match kind {
        M_PROTO | M_PCPROTO => {
            let mut first = block(0, control, kind);
            if let Some(first) = &mut first
                && frame.meta.flags & flag::NO_DATA == 0
                && let Some(second) = data_block(head, frame, control, data, &block)
            {
                first.append(second);
            }
            first
        }
        M_DATA => data_block(head, frame, control, data, &block),
        kind => block(0, frame.len, kind),
    };
    let Some(mut m) = m else {
        head.spoiled();
        return None;
    };
    m.set_band(frame.meta.band);
    for (flag, is) in [(flag::MARK, MSGMARK), (flag::DELIM, MSGDELIM)] {
        if frame.meta.flags & flag != 0 {
            m.set_flags(m.flags() | is);
        }
    }
    Some(m)
}

/// The data part, which may be in a memfd of its own.
fn data_block(
    head: &Head,
    frame: &Frame,
    skip: usize,
    len: usize,
    block: &impl Fn(usize, usize, u8) -> Option<Message>,
) -> Option<Message> {
    if frame.meta.flags & flag::EXTERNAL == 0 {
        return block(skip, len, M_DATA);
    }
    let mut ticket = [0; 16];
    if len != ticket.len() {
        return None;
    }
    head.incoming().copy_frame(frame, skip, &mut ticket);
    let body = parcels::fetch_body(head, ticket).ok()?;
    let bytes = body.as_slice();
    let mut m = Message::try_new(M_DATA, bytes.len())?;
    m.push(bytes);
    Some(m)
}

/// What goes to the other end.
unsafe extern "C-unwind" fn wput(q: Queue, mut m: Message) -> c_int {
    // SAFETY: a put procedure gets a queue that it is for.
    let head = unsafe { upper::head_of(q) };
    match m.kind() {
        M_FLUSH => {
            let &[what, ref rest @ ..] = m.bytes() else {
                // Of nothing: any module can send one.
                return 0;
            };
            q.flush_as(&m, Flush::Data);
            if what & FLUSHW != 0 {
                // Our writing is the other end's reading: what waits in the ring goes too.
                let band = rest.first().copied().filter(|_| what & FLUSHBAND != 0);
                let _ = flush_ring(head, true, band);
            }
            let swapped = what & !(FLUSHR | FLUSHW)
                | if what & FLUSHR != 0 { FLUSHW } else { 0 }
                | if what & FLUSHW != 0 { FLUSHR } else { 0 };
            m = m.unshared();
            m.overwrite(swapped);
            if head
                .peer_words()
                .is_some_and(|w| w.has(crate::pipe::words::state::QUEUED))
            {
                send_or_queue(head, q, m);
            }
        }
        M_IOCTL => {
            // A module may have moved the beginning.
            if let Some(mut ioc) = m.read::<iocblk>() {
                ioc.ioc_error = if ioc.ioc_count == TRANSPARENT {
                    libc::ENOTTY
                } else {
                    libc::EINVAL
                };
                ioc.ioc_count = 0;
                m = m.unshared();
                m.overwrite(ioc);
            }
            m.set_kind(M_IOCNAK);
            q.qreply(m);
        }
        kind if crosses(kind) => send_or_queue(head, q, m),
        _ => {}
    }
    0
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

fn send_or_queue(head: &Head, q: Queue, m: Message) {
    let first = q.first().is_none() || m.is_priority();
    if !(first && send(head, &m)) {
        q.putq(m);
    }
}

/// Room in the ring again, or something new on the queue.
unsafe extern "C-unwind" fn wsrv(q: Queue) -> c_int {
    // SAFETY: a service procedure gets a queue that it is for.
    let head = unsafe { upper::head_of(q) };
    head.blocked.store(0, Relaxed);
    while let Some(m) = q.getq() {
        if !send(head, &m) {
            // Not back-enabled by anybody: whoever is in a call looks for room in the ring.
            head.blocked.store(1, Relaxed);
            q.putbq(m);
            q.unschedule();
            break;
        }
    }
    0
}

/// A message into the ring, as one frame; false when there is no room. What can't be sent any more counts as sent.
fn send(head: &Head, m: &Message) -> bool {
    let kind = m.kind();
    let mut has_data = kind != M_PROTO && kind != M_PCPROTO;
    if has_data && m.is_one_block() {
        // The usual case.
        return push(head, m, &[], m.bytes(), true);
    }
    let (mut control, mut data) = (Vec::new(), Vec::new());
    for (kind, bytes) in m.blocks() {
        if matches!(kind, M_PROTO | M_PCPROTO) {
            control.extend_from_slice(bytes);
        } else {
            has_data = true;
            data.extend_from_slice(bytes);
        }
    }
    push(head, m, &control, &data, has_data)
}

fn push(head: &Head, m: &Message, control: &[u8], data: &[u8], has_data: bool) -> bool {
    let mut flags = if has_data { 0 } else { flag::NO_DATA };
    if m.flags() & MSGMARK != 0 {
        flags |= flag::MARK;
    }
    if m.flags() & MSGDELIM != 0 {
        flags |= flag::DELIM;
    }
    let meta = Meta {
        kind: m.kind(),
        band: m.band(),
        flags,
        control: 0,
    };
    head.push_frame(control, data, meta).unwrap_or(true)
}
