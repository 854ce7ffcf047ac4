//! What belongs to one open(2) of a named stream rather than to the end that all its opens share: the access mode and
//! O_NONBLOCK. It is in the handle, so that copies made by dup and fork have it too.

use core::cell::Cell;

use headwater_host::sync::{AtomicU32, Ordering};
use headwater_host::table::{self, Handle};
use libc::c_int;

use super::Head;

/// Opens of names at one time; what is beyond shares O_NONBLOCK with the end.
const MOST: usize = 4096;

headwater_host::large! {
    rarely:
    /// {descriptors: 31, O_NONBLOCK: 1} of each open; entry 0 stands for none.
    static OPENINGS: [AtomicU32; MOST] = [const { AtomicU32::new(0) }; MOST];
}
const NONBLOCK: u32 = 1;
const ONE: u32 = 2;

thread_local! {
    /// The open that the call in progress came by, and the head it is for.
    static CURRENT: Cell<(*const Head, usize)> = const { Cell::new((core::ptr::null(), 0)) };
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

/// `fd` was just opened by its name.
pub fn begin(fd: c_int, flags: c_int) {
    let Some(h) = table::stream(fd) else { return };
    let access = match flags & libc::O_ACCMODE {
        libc::O_RDONLY => 1,
        libc::O_WRONLY => 2,
        _ => 0,
    };
    let nonblock = (flags & libc::O_NONBLOCK != 0) as u32;
    let free = (1..MOST).find(|&i| {
        OPENINGS[i]
            .compare_exchange(0, ONE | nonblock, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    });
    let tag = (free.unwrap_or(0) as u32) << 2 | access;
    table::clear(fd);
    table::set(fd, h.with_tag(tag));
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
    let last = |n: u32| if n < 2 * ONE { 0 } else { n - ONE };
    let _ =
        OPENINGS[number(h)].fetch_update(Ordering::AcqRel, Ordering::Relaxed, |n| Some(last(n)));
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

/// Runs a call on `head` as one by this descriptor.
pub fn by<T>(h: Handle, head: &Head, call: impl FnOnce() -> T) -> T {
    // A handler's calls come in between.
    let outer = CURRENT.replace((head, number(h)));
    let result = call();
    CURRENT.set(outer);
    result
}

/// Must the call in progress on `head` not wait? A call left by a longjmp may leave its mark, for this head only.
pub fn is_nonblocking(head: &Head) -> bool {
    let (at, n) = CURRENT.get();
    if n != 0 && core::ptr::eq(at, head) {
        return OPENINGS[n].load(Ordering::Acquire) & NONBLOCK != 0;
    }
    head.words().is_nonblocking()
}
