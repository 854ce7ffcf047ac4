//! fcntl(2), ioctl(2) and setsockopt(2) as far as they concern us: modes that our own waits obey, and counts of bytes.

use headwater_channel::copy::copy;
use headwater_host::sync::Ordering;
use headwater_host::sys;
use headwater_host::table::Handle;
use libc::c_void;

use crate::conn::{self, Phase, rest};
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

/// What an option that acts on the kernel's own queues and segments means for a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    None,
    /// The connection goes to TCP before it acts; it does not act on one that has something unread in its ring.
    Kernel,
    /// It says something of segments: the connection goes to TCP, but for what is unread in its ring.
    Segments,
    /// It is answered as by a kernel that does not have it: the program does the same by itself.
    Unknown,
}

/// Before setsockopt(2). Some of `value` may be missing.
pub fn effect(level: i32, name: i32, value: Option<i32>) -> Effect {
    const PEEK_AT: i32 = libc::SO_PEEK_OFF;
    match (level, name, value) {
        // Encryption in the kernel: what goes by a ring would go in clear.
        (libc::IPPROTO_TCP, libc::TCP_ULP, _) => Effect::Unknown,
        (libc::IPPROTO_TCP, libc::TCP_REPAIR, _) => Effect::Kernel,
        (libc::SOL_SOCKET, PEEK_AT, Some(at)) if at >= 0 => Effect::Kernel,
        (libc::SOL_SOCKET, name, Some(of)) if STAMPS.contains(&name) && of != 0 => Effect::Segments,
        (libc::SOL_SOCKET, libc::SO_ATTACH_FILTER | libc::SO_ATTACH_BPF, _) => Effect::Segments,
        (libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, _) => Effect::Segments,
        _ => Effect::None,
    }
}

/// The time comes with what is received, or in the error queue for what was sent.
const STAMPS: [i32; 3] = [
    libc::SO_TIMESTAMP,
    libc::SO_TIMESTAMPNS,
    libc::SO_TIMESTAMPING,
];

/// May a socket be carried, by the modes and options that it came with?
pub fn allow(fd: i32) -> bool {
    let is = |name| {
        let value = sys::sockopt::<i32>(fd, libc::SOL_SOCKET, name).ok();
        effect(libc::SOL_SOCKET, name, value) != Effect::None
    };
    // SIGIO is raised for what the kernel sees.
    let is_told = sys::fcntl(fd, libc::F_GETFL, 0).is_ok_and(|f| f & libc::O_ASYNC != 0);
    !is_told && !is(libc::SO_PEEK_OFF) && !STAMPS.into_iter().any(is)
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

/// A time limit of a socket as it is kept, in nanoseconds: 0 is none, as in the kernel. Less than none is kept as the shortest
/// there is, for which the kernel says 0 too when it is asked.
pub fn limit(seconds: i64, microseconds: i64) -> u64 {
    match seconds {
        ..0 => AT_ONCE,
        _ => (seconds as u64)
            .checked_mul(1_000_000_000)
            .and_then(|ns| ns.checked_add(microseconds as u64 * 1000))
            .unwrap_or(0),
    }
}

/// Waits with this limit end before they begin.
pub const AT_ONCE: u64 = 1;

/// SO_RCVLOWAT as the kernel has it.
pub fn low_water(fd: i32) -> u32 {
    let low = sys::sockopt::<i32>(fd, libc::SOL_SOCKET, libc::SO_RCVLOWAT).unwrap_or(1);
    low.max(1) as u32
}

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
    conn::get(h).and_then(|c| c.view(&looks)).map_or(0, |v| {
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
    conn::get(h)
        .and_then(|c| c.view(&looks))
        .map_or(0, |v| v.out_ring().unread())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_encrypts_nothing_that_may_go_by_a_ring() {
        let tls = i32::from_ne_bytes(*b"tls\0");
        assert_eq!(
            effect(libc::IPPROTO_TCP, libc::TCP_ULP, Some(tls)),
            Effect::Unknown
        );
    }

    #[test]
    fn what_ends_at_the_kernels_queues_goes_there_and_nothing_else() {
        let socket = |name, value| effect(libc::SOL_SOCKET, name, Some(value));
        assert_eq!(socket(libc::SO_PEEK_OFF, 0), Effect::Kernel);
        assert_eq!(socket(libc::SO_PEEK_OFF, -1), Effect::None);
        for name in STAMPS {
            assert_eq!(socket(name, 1 << 4), Effect::Segments);
            assert_eq!(socket(name, 0), Effect::None);
        }
        assert_eq!(socket(libc::SO_KEEPALIVE, 1), Effect::None);
        let tcp = |name| effect(libc::IPPROTO_TCP, name, Some(1));
        assert_eq!(tcp(libc::TCP_REPAIR), Effect::Kernel);
        assert_eq!(tcp(libc::TCP_NODELAY), Effect::None);
    }
}
