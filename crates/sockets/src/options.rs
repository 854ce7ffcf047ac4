//! fcntl(2), ioctl(2) and setsockopt(2) as far as they concern us: modes that our own waits obey, and counts of bytes.

use headwater_host::sync::Ordering;
use headwater_host::table::Handle;

use crate::conn::{self, Phase};
use crate::record::NONBLOCK;
use crate::{switch, takeover};

/// The program set (or cleared) O_NONBLOCK.
pub fn set_nonblocking(h: Handle, on: bool) {
    if let Some(c) = conn::get(h)
        && c.phase() != Phase::Listener
    {
        c.record().set(NONBLOCK, on);
    }
}

/// After a successful setsockopt(2) of SOL_SOCKET.
///
/// # Safety
/// `value` is readable for `len` bytes.
pub unsafe fn set_option(h: Handle, name: i32, value: *const libc::c_void, len: u32) {
    let Some(c) = conn::get(h) else { return };
    let r = c.record();
    match name {
        libc::SO_RCVTIMEO | libc::SO_SNDTIMEO if len as usize >= size_of::<libc::timeval>() => {
            let t = core::ptr::read_unaligned(value as *const libc::timeval);
            let ns = t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1000;
            let slot = if name == libc::SO_RCVTIMEO {
                &r.receive_timeout
            } else {
                &r.send_timeout
            };
            slot.store(ns, Ordering::Relaxed);
        }
        libc::SO_RCVLOWAT if len >= 4 => {
            let n = core::ptr::read_unaligned(value as *const i32);
            r.low_water.store(n.max(1) as u32, Ordering::Relaxed);
        }
        _ => {}
    }
}

/// Bytes that could be read beyond those that the kernel counts: FIONREAD's share of the ring.
pub fn unread(h: Handle) -> usize {
    conn::get(h).and_then(|c| c.view()).map_or(0, |v| {
        if switch::readable(&v) {
            v.in_ring().unread()
        } else {
            0
        }
    })
}

/// Bytes that the peer has not taken from the ring: SIOCOUTQ's share.
pub fn unsent(h: Handle) -> usize {
    conn::get(h)
        .and_then(|c| c.view())
        .map_or(0, |v| v.out_ring().unread())
}

/// Does the next receive have to be served by us (as opposed to a plain kernel call)?
pub fn is_carried(h: Handle) -> bool {
    conn::get(h).is_some_and(|c| {
        if c.phase() == Phase::Tracked {
            takeover::see_attached(c);
        }
        c.phase() == Phase::Carried
    })
}
