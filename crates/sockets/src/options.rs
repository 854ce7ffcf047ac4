//! fcntl(2), ioctl(2) and setsockopt(2) as far as they concern us: modes that our own waits obey, and counts of bytes.

use headwater_channel::copy::copy;
use headwater_host::sync::Ordering;
use headwater_host::sys;
use headwater_host::table::Handle;
use libc::c_void;

use crate::conn::{self, Phase, rest};
use crate::limits::{AT_ONCE, limit};
use crate::modes::low_water;
use crate::record::NONBLOCK;
use crate::{limits, look, pins, readiness, switch};

/// The program set (or cleared) O_NONBLOCK.
pub fn set_nonblocking(h: Handle, on: bool) {
    if let Some(c) = conn::get(h)
        && c.phase() != Phase::Listener
    {
        c.record().set(NONBLOCK, on);
        c.found_nonblocking.store(0, Ordering::Relaxed);
    }
}

/// Is it a connection, not a listener?
pub fn is_connection(h: Handle) -> bool {
    conn::get(h).is_some_and(|c| matches!(c.phase(), Phase::Tracked | Phase::Carried))
}

/// TCP_ZEROCOPY_RECEIVE on a carried connection: nothing is mapped, and what there is is to be read by copying, as the kernel answers
/// where it has less than a page.
///
/// # Safety
/// `len` and as many bytes of `value` as it says are the program's to be written, or wrong pointers of its.
pub unsafe fn map_nothing(
    h: Handle,
    fd: i32,
    value: *mut c_void,
    len: *const u32,
) -> Result<(), i32> {
    let c = conn::get(h).ok_or(libc::EBADF)?;
    let ring = c.view(&pins::entered()).map_or(0, |v| v.in_ring().unread());
    // What its sender has withdrawn is in both.
    let kernel = sys::ioctl_int(fd, libc::FIONREAD).unwrap_or(0);
    let unread = (ring as u32).max(kernel as u32);
    // Of `struct tcp_zerocopy_receive`: what is mapped, what is to be read, what waits, the error; and what was copied.
    let words: [(usize, &[u32]); 2] = [(8, &[0, unread, unread, 0]), (32, &[0])];
    crate::guard(c, || {
        let mut room = 0u32;
        // SAFETY: a word, and of the others no more than there are and than it says there is room for; what wrong pointers of the
        // program do the guard catches.
        unsafe {
            copy(len.cast(), (&raw mut room).cast(), size_of_val(&room));
            if room < 16 {
                return Err(libc::EINVAL);
            }
            for (at, words) in words {
                let n = (room as usize).saturating_sub(at);
                let n = n.min(size_of_val(words));
                copy(
                    words.as_ptr().cast(),
                    value.cast::<u8>().wrapping_add(at),
                    n,
                );
            }
        }
        Ok(())
    })?
}

const SO_RCVTIMEO_NEW: i32 = 66;
const SO_SNDTIMEO_NEW: i32 = 67;

/// After a successful setsockopt(2) of SOL_SOCKET.
///
/// # Safety
/// `value` is readable for `len` bytes.
pub unsafe fn set_option(h: Handle, fd: i32, name: i32, value: *const c_void, len: u32) {
    let Some(c) = conn::get(h) else { return };
    let r = c.record();
    match time_limit(name, value, len) {
        Some((limits::RECEIVING, limit)) => r.receive_timeout.store(limit, Ordering::Relaxed),
        Some((_, limit)) => r.send_timeout.store(limit, Ordering::Relaxed),
        // The kernel has made something else of it, as like as not.
        None if name == libc::SO_RCVLOWAT => {
            r.low_water.store(low_water(fd), Ordering::Relaxed);
            readiness::low_water_set(c);
        }
        None => {}
    }
}

/// After a successful setsockopt(2) of SOL_SOCKET on any socket: it may become a connection.
///
/// # Safety
/// `value` is readable for `len` bytes.
pub unsafe fn note_limit(fd: i32, name: i32, value: *const c_void, len: u32) {
    if let Some((which, limit)) = time_limit(name, value, len) {
        limits::set(fd, which, limit == AT_ONCE);
    }
}

/// Whose time limit is set, and to what.
fn time_limit(name: i32, value: *const c_void, len: u32) -> Option<(u64, u64)> {
    let which = match name {
        libc::SO_RCVTIMEO | SO_RCVTIMEO_NEW => limits::RECEIVING,
        libc::SO_SNDTIMEO | SO_SNDTIMEO_NEW => limits::SENDING,
        _ => return None,
    };
    if (len as usize) < size_of::<libc::timeval>() {
        return None;
    }
    // SAFETY: whoever sets an option says that `value` is readable for `len` bytes, which are enough.
    let t = unsafe { value.cast::<libc::timeval>().read_unaligned() };
    Some((which, limit(t.tv_sec, t.tv_usec)))
}

/// Bytes that could be read beyond those that the kernel counts: FIONREAD's share of the ring.
pub fn unread(h: Handle) -> usize {
    let rest = rest::unread(h);
    if rest > 0 {
        return rest;
    }
    let looks = pins::entered();
    conn::carried(h, &looks).map_or(0, |(_, v)| {
        // What the peer takes back to send it by the kernel may be in both.
        if switch::is_taken_back(&v) && !switch::is_readable_behind_pin(&v) {
            0
        } else {
            v.in_ring().unread()
        }
    })
}

/// Bytes that the peer has not taken from the ring: SIOCOUTQ's share.
pub fn unsent(h: Handle) -> usize {
    let looks = pins::entered();
    conn::carried(h, &looks).map_or(0, |(_, v)| v.out_ring().unread())
}

/// Takes the error that a look has taken out of the kernel: SO_ERROR's share.
pub fn kept_error(h: Handle) -> Option<i32> {
    let c = conn::get(h)?;
    let e = look::kept(c).swap(0, Ordering::AcqRel);
    (e != 0).then_some(e)
}

/// Does the next receive have to be served by us (as opposed to a plain kernel call)?
pub fn is_carried(h: Handle) -> bool {
    conn::get(h).is_some_and(|c| c.phase() == Phase::Carried)
}
