//! What goes down from a queued head, and whether there is room for it.
//!
//! # Contract
//! As for [`super::Local`]: queues are only reached inside the perimeter.

use headwater_host::sync::Ordering::Relaxed;
use headwater_host::sys::Errno;

use super::super::inlet::flush_ring;
use super::super::outgoing::{Priority, Source};
use super::super::{Head, opening};
use super::{finish, inside, relax, wait_for_change};
use crate::ddi::*;
use crate::exec::queue::Queue;

/// Writes a packet of `n` bytes; false while the stream is full.
pub fn write(head: &Head, source: &mut Source<'_>, n: usize) -> Result<bool, Errno> {
    head.inherited.store(0, Relaxed);
    let sent = inside(head, |local| {
        let down = local.down();
        if !down.canputnext() {
            return Ok(false);
        }
        let offset = head.words().write_offset();
        // SAFETY: the source has `n` bytes left.
        let m = unsafe { Message::filled(M_DATA, offset, n, |to| source.take(to)) };
        down.putnext(m.ok_or(libc::ENOSR)?);
        Ok(true)
    });
    finish(head);
    sent.unwrap_or(Ok(false))
}

/// Sends a message down; false while its band is full.
pub fn put(
    head: &Head,
    control: Option<&[u8]>,
    data: Option<&[u8]>,
    priority: Priority,
) -> Result<bool, Errno> {
    put_where(head, control, data, priority, |below, band| {
        priority == Priority::High || below.bcanputnext(band)
    })
}

/// As [`put`], whether there is room or not, for what ends what lies before it.
pub fn put_last(head: &Head, control: &[u8]) -> Result<(), Errno> {
    put_where(head, Some(control), None, Priority::Band(0), |_, _| true).map(drop)
}

/// read(2) of `n` bytes begins where a module asked to be told: M_READ, unless something is there to read.
pub fn tell_read(head: &Head, n: usize) {
    inside(head, |local| {
        if local.down().read().first().is_none() {
            local.down().putnext(Message::from_struct(M_READ, n));
        }
    });
}

/// I_FLUSH, I_FLUSHBAND on a stream with queues.
pub fn flush(head: &Head, what: u8, band: Option<u8>) -> Result<(), Errno> {
    let is_read = what & FLUSHR != 0;
    let flushed = inside(head, |local| {
        // The ring first: what is there would come up into the room that the rest leaves.
        let opened = is_read && head.has_pipe() && flush_ring(head, false, band);
        local.down().putnext(Message::flush(what, band));
        if is_read && let Some(bottom) = local.bottom {
            // Nothing above a pipe's bottom sends it back up.
            bottom.putnext(Message::flush(FLUSHR, band));
        }
        opened
    });
    if is_read
        && head.has_pipe()
        && let Some(opened) = flushed
    {
        head.ring_peer_for_band(opened);
    }
    inside(head, |local| relax(head, local));
    finish(head);
    flushed.map(drop).ok_or(libc::ENXIO)
}

/// I_CANPUT, and what poll says of writing.
pub fn can_put(head: &Head, band: u8) -> bool {
    if head.has_hung_up() {
        return false;
    }
    if !head.is_queued() {
        return head.may_put(band, 1);
    }
    inside(head, |local| local.down().bcanputnext(band)).unwrap_or(false)
}

/// Waits until band `band` may have room, or nobody is left to read.
pub fn wait_for_room(head: &Head, band: u8, deadline: Option<u64>) -> Result<(), Errno> {
    let seen = head.version();
    if can_put(head, band) {
        return Ok(());
    }
    wait_for_change(head, seen, deadline, &mut [opening::watched(head)])
}

fn put_where(
    head: &Head,
    control: Option<&[u8]>,
    data: Option<&[u8]>,
    priority: Priority,
    may: impl Fn(Queue, u8) -> bool,
) -> Result<bool, Errno> {
    head.inherited.store(0, Relaxed);
    let sent = inside(head, |local| {
        let (kind, band) = priority.of_message(control.is_some());
        if !may(local.down(), band) {
            return Ok(false);
        }
        let offset = head.words().write_offset();
        let mut message = build(control, data, kind, offset).ok_or(libc::ENOSR)?;
        message.set_band(band);
        local.down().putnext(message);
        Ok(true)
    });
    finish(head);
    sent.unwrap_or(Ok(false))
}

/// A message of the two parts; `None` without memory.
fn build(control: Option<&[u8]>, data: Option<&[u8]>, kind: u8, offset: usize) -> Option<Message> {
    let block = |bytes: &[u8], kind: u8, offset: usize| {
        let mut message = Message::try_new(kind, bytes.len() + offset)?;
        message.leave_room(offset);
        message.push(bytes);
        Some(message)
    };
    match (control, data) {
        (Some(control), Some(data)) => {
            let mut first = block(control, kind, 0)?;
            first.append(block(data, M_DATA, offset)?);
            Some(first)
        }
        (Some(control), None) => block(control, kind, 0),
        (None, data) => block(data.unwrap_or(&[]), kind, offset),
    }
}
