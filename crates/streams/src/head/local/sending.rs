//! What goes down from a queued head, and whether there is room for it.
//!
//! # Contract
//! As for [`super::Local`]: queues are only reached inside the perimeter.

use headwater_host::sync::Ordering::Relaxed;
use headwater_host::sys::{self, Errno};

use super::super::arming::Want;
use super::super::inlet::flush_ring;
use super::super::outgoing::{Priority, Source};
use super::super::{Head, opening};
use super::{Local, finish, inside, relax, wait_for_change};
use crate::ddi::*;
use crate::exec::queue::Queue;

/// Writes a packet of `n` bytes; false while the stream is full.
pub fn write(head: &Head, source: &mut Source<'_>, n: usize) -> Result<bool, Errno> {
    call(head, |local| match local.down().canputnext() {
        true => {
            let sent = local.put(head, None, Some((source, n)), Priority::Band(0));
            sent.map(|()| true)
        }
        false => Ok(false),
    })
    .unwrap_or(Ok(false))
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
    let flushed = inside(head, |local| {
        local.down().putnext(Message::flush(what, band));
        if what & FLUSHR != 0
            && let Some(bottom) = local.bottom
        {
            // Nothing above a pipe's bottom sends it back up.
            bottom.putnext(Message::flush(FLUSHR, band));
        }
    });
    if flushed.is_some() && head.has_pipe() && what & FLUSHR != 0 {
        let opened = flush_ring(head, false, band);
        head.ring_peer_for_band(opened);
    }
    inside(head, |local| relax(head, local));
    finish(head);
    flushed.ok_or(libc::ENXIO)
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
    let mut beside = [opening::watched(head)];
    wait_for_change(head, Want::ROOM, seen, deadline, &mut beside)
}

fn put_where(
    head: &Head,
    control: Option<&[u8]>,
    data: Option<&[u8]>,
    priority: Priority,
    may: impl Fn(Queue, u8) -> bool,
) -> Result<bool, Errno> {
    let all = [sys::buffer(
        data.map_or(core::ptr::null(), <[u8]>::as_ptr),
        data.map_or(0, <[u8]>::len),
    )];
    let mut source = Source::new(&all);
    let data = data.map(|data| (&mut source, data.len()));
    call(head, |local| {
        let (_, band) = priority.of_message(control.is_some());
        match may(local.down(), band) {
            true => local.put(head, control, data, priority).map(|()| true),
            false => Ok(false),
        }
    })
    .unwrap_or(Ok(false))
}

/// A call that sends something down: runs `f` inside the perimeter of a head with queues, and serves the ends of this process that
/// got something.
pub fn call<T>(head: &Head, f: impl FnOnce(&Local) -> T) -> Option<T> {
    head.inherited.store(0, Relaxed);
    let done = inside(head, f);
    finish(head);
    done
}

impl Local {
    /// Sends a message down, its data so many bytes of a source, whether there is room or not. ENOSR.
    pub fn put(
        &self,
        head: &Head,
        control: Option<&[u8]>,
        data: Option<(&mut Source<'_>, usize)>,
        priority: Priority,
    ) -> Result<(), Errno> {
        let (kind, band) = priority.of_message(control.is_some());
        let offset = head.words().write_offset();
        let message = build(control, data, kind, offset);
        let mut message = message.ok_or(libc::ENOSR)?;
        message.set_band(band);
        self.down().putnext(message);
        Ok(())
    }
}

/// A message of the two parts; `None` without memory.
fn build(
    control: Option<&[u8]>,
    data: Option<(&mut Source<'_>, usize)>,
    kind: u8,
    offset: usize,
) -> Option<Message> {
    let block = |data: Option<(&mut Source<'_>, usize)>, kind| match data {
        // SAFETY: the source has so many bytes left.
        Some((source, n)) => unsafe { Message::filled(kind, offset, n, |to| source.take(to)) },
        None => Message::try_new(kind, 0),
    };
    let Some(control) = control else {
        return block(data, kind);
    };
    let mut first = Message::try_new(kind, control.len())?;
    first.push(control);
    if data.is_some() {
        first.append(block(data, M_DATA)?);
    }
    Some(first)
}
