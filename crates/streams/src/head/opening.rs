//! What belongs to one open(2) of a named stream rather than to the end that all its opens share: the access mode,
//! O_NONBLOCK and, of a FIFO, the open gate. It is in the handle, so that copies made by dup and fork have it too.

use core::cell::Cell;

use headwater_host::reclaim::{Entered, enter};
use headwater_host::sync::{AtomicI32, AtomicU32, Exchange, Ordering};
use headwater_host::sys::Errno;
use headwater_host::table::{self, Handle};
use headwater_host::{hidden, sys};
use libc::c_int;

use super::Head;
use crate::attach::gate;
use crate::pipe::Pipe;

/// Opens of names at one time; what is beyond shares O_NONBLOCK with the end.
const MOST: usize = 4096;

headwater_host::large! {
    rarely:
    /// {descriptors: 31, O_NONBLOCK: 1} of each open; entry 0 stands for none.
    static OPENINGS: [AtomicU32; MOST] = [const { AtomicU32::new(0) }; MOST];
    /// The gate as each open has it open, plus one; 0: it has none.
    static GATES: [AtomicI32; MOST] = [const { AtomicI32::new(0) }; MOST];
}
const NONBLOCK: u32 = 1;
const ONE: u32 = 2;
/// The last descriptor was closed, the gate not yet.
const CLOSING: u32 = 1 << 31;

thread_local! {
    /// The open that the call in progress came by, and the head it is for.
    static CURRENT: Cell<(*const Head, Option<Handle>)> = const { Cell::new((core::ptr::null(), None)) };
}

/// What a handle's tag says: {number of the open: 12, O_WRONLY: 1, O_RDONLY: 1}.
fn number(h: Handle) -> usize {
    (h.tag() >> 2) as usize
}

/// Is this a descriptor with an access mode, or an O_NONBLOCK, of its own?
#[inline(always)]
pub fn is_own(h: Handle) -> bool {
    h.tag() != 0
}

pub fn may_read(h: Handle) -> bool {
    h.tag() & 2 == 0
}

pub fn may_write(h: Handle) -> bool {
    h.tag() & 1 == 0
}

/// A stream and the handle that it has as long as it is open, and a descriptor of it. Another thread can close that before the call
/// that makes it has ended: its number may be another's then, and so may the head.
#[derive(Clone, Copy)]
pub struct Opened {
    pub head: &'static Head,
    pub handle: Handle,
    pub fd: i32,
}

/// A stream was just opened by its name. If that is a FIFO's, this waits for the other side; errors, on which `close` is called
/// with the handle that it has by then: EINTR, ENXIO, EMFILE.
pub fn begin(opened: Opened, flags: c_int, close: impl FnOnce(Opened)) -> Result<(), Errno> {
    let fd = opened.fd;
    let h = mark(fd, opened.handle, flags);
    let Some(gate) = named_gate(h) else {
        return Ok(());
    };
    let close = |_: &Errno| {
        close(Opened {
            handle: h,
            ..opened
        })
    };
    match gate::pass(gate, flags).inspect_err(close)? {
        // Descriptor and open may be others by now: another thread can close what is still being opened.
        Some(open) if table::stream(fd) == Some(h) => keep(h, open),
        Some(open) => hidden::close(open),
        None => {}
    }
    Ok(())
}

/// `fd` is a FIFO's, and came from another process or image with `gate`: as an open there had it, or its name alone. Other
/// descriptors are closed. `nonblocking`: that open had O_NONBLOCK.
pub fn resume(fd: c_int, gate: c_int, nonblocking: bool) {
    let is_fifo = |st: libc::stat| st.st_mode & libc::S_IFMT == libc::S_IFIFO;
    let flags = sys::fcntl(gate, libc::F_GETFL, 0).unwrap_or(0);
    let known = table::stream(fd).filter(|_| sys::fstat(gate).is_ok_and(is_fifo));
    let looks = enter();
    let Some((h, pipe)) = known.and_then(|h| Some((h, pipe(h, &looks)?))) else {
        let _ = sys::close(gate);
        return;
    };
    let Ok(gate) = hidden::hide_needed(gate) else {
        return;
    };
    if flags & libc::O_PATH != 0 {
        return pipe.take_gate(gate);
    }
    if pipe.gate().is_none()
        && let Ok(name) = gate::name(gate)
    {
        pipe.take_gate(name);
    }
    let nonblock = if nonblocking { libc::O_NONBLOCK } else { 0 };
    keep(mark(fd, h, flags & libc::O_ACCMODE | nonblock), gate);
}

/// The gate as the open behind this handle has it.
pub fn gate(h: Handle) -> Option<c_int> {
    let open = GATES[number(h)].load(Ordering::Acquire) - 1;
    (open >= 0).then_some(open)
}

fn pipe(h: Handle, looks: &Entered) -> Option<&'static Pipe> {
    super::get(h, looks)?.pipe()
}

/// The gate by which the FIFO is opened by its name.
fn named_gate(h: Handle) -> Option<c_int> {
    pipe(h, &enter()).and_then(Pipe::gate)
}

/// Of a FIFO with a name: would this open find nobody at the other side? Reading is at its end then, and writing EPIPE.
pub fn is_left(h: Handle) -> bool {
    let reading = may_read(h);
    if reading == may_write(h) {
        return false;
    }
    let Some(open) = gate(h) else { return false };
    let name = named_gate(h).filter(|_| reading);
    gate::hangs_up(open) || name.is_some_and(gate::lacks_writers)
}

/// As [`is_left`], in poll(2)'s words: POLLHUP.
pub fn hangs_up(h: Handle) -> bool {
    is_own(h) && may_read(h) != may_write(h) && gate(h).is_some_and(gate::hangs_up)
}

/// Does [`is_left`] hold of the open that the call in progress on `head` came by?
pub fn is_over(head: &Head) -> bool {
    current(head).is_some_and(is_left)
}

/// What a sleep of that call has to watch, so as to end when it does: -1, nothing. Only for calls that end then.
pub fn watched(head: &Head) -> libc::pollfd {
    sys::entry(current(head).and_then(gate).unwrap_or(-1), 0)
}

fn current(head: &Head) -> Option<Handle> {
    let (at, h) = CURRENT.get();
    h.filter(|_| core::ptr::eq(at, head))
}

/// Without a number of its own an open does not keep its gate.
fn keep(h: Handle, open: c_int) {
    let n = number(h);
    if n == 0 || !GATES[n].exchange(0, open + 1) {
        hidden::close(open);
    }
}

/// Gives the open of `fd` a number, 0 if there is none left; its handle from now on, which is `h` if `fd` is another's by now.
fn mark(fd: c_int, h: Handle, flags: c_int) -> Handle {
    let access = match flags & libc::O_ACCMODE {
        libc::O_RDONLY => 1,
        libc::O_WRONLY => 2,
        _ => 0,
    };
    let nonblock = (flags & libc::O_NONBLOCK != 0) as u32;
    let free = (1..MOST).find(|&i| OPENINGS[i].exchange(0, ONE | nonblock));
    let n = free.unwrap_or(0);
    let marked = h.with_tag((n as u32) << 2 | access);
    if table::replace_if(fd, h, marked) {
        return marked;
    }
    if n != 0 {
        OPENINGS[n].store(0, Ordering::Release);
    }
    h
}

/// Another descriptor of the same open.
pub fn duplicated(h: Handle) {
    if number(h) != 0 {
        OPENINGS[number(h)].fetch_add(ONE, Ordering::AcqRel);
    }
}

/// A descriptor of it was closed.
pub fn closed(h: Handle) {
    if number(h) == 0 {
        return;
    }
    let n = number(h);
    let fewer = |n: u32| if n < 2 * ONE { CLOSING } else { n - ONE };
    let before = OPENINGS[n].fetch_update(Ordering::AcqRel, Ordering::Relaxed, |n| Some(fewer(n)));
    if before.is_ok_and(|n| n < 2 * ONE) {
        let open = GATES[n].swap(0, Ordering::AcqRel) - 1;
        hidden::close(open);
        OPENINGS[n].store(0, Ordering::Release);
        let looks = enter();
        if open >= 0
            && let Some(head) = super::get(h, &looks)
        {
            // Who waits for the other side by poll(2) looks again.
            head.notify();
            head.ring_own();
        }
    }
}

/// O_NONBLOCK of this open; `None`: that of the end counts.
pub fn nonblocking(h: Handle) -> Option<bool> {
    let n = number(h);
    (n != 0).then(|| OPENINGS[n].load(Ordering::Acquire) & NONBLOCK != 0)
}

/// F_SETFL, FIONBIO; false: the end's is to be set.
pub fn set_nonblocking(h: Handle, on: bool) -> bool {
    let n = number(h);
    if n == 0 {
        return false;
    }
    if on {
        OPENINGS[n].fetch_or(NONBLOCK, Ordering::AcqRel);
    } else {
        OPENINGS[n].fetch_and(!NONBLOCK, Ordering::AcqRel);
    }
    true
}

/// While there is one, the call in progress on a head is one by a certain descriptor. A handler's calls come in between.
pub struct By {
    outer: (*const Head, Option<Handle>),
}

impl By {
    pub fn begin(h: Handle, head: &Head) -> By {
        By {
            outer: CURRENT.replace((head, Some(h))),
        }
    }
}

impl Drop for By {
    fn drop(&mut self) {
        CURRENT.set(self.outer);
    }
}

/// Must the call in progress on `head` not wait? A call left by a longjmp may leave its mark, for this head only.
pub fn is_nonblocking(head: &Head) -> bool {
    let own = current(head).and_then(nonblocking);
    own.unwrap_or_else(|| head.words().is_nonblocking())
}
