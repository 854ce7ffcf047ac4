//! Images that may have connections of this process: whether there are any yet, and what is kept for them.
//!
//! Who was lent a connection (lend.rs) need not say when it goes, and may be killed: it has the writing end of a pipe, whose
//! reading end stays here and hangs up when the last such image has gone.

use headwater_channel::lock::Lock;
use headwater_host::handed::identity;
use headwater_host::sync::{AtomicI32, AtomicU32, AtomicU64, Exchange, Ordering};
use headwater_host::{hidden, process, sys};

use crate::record::{self, IN_STAYS, Record};

/// The pipe's reading end, and its inode: 0 before the first connection.
static PRESENCE: AtomicI32 = AtomicI32::new(0);
static IDENTITY: AtomicU64 = AtomicU64::new(0);
#[unsafe(link_section = ".data")]
pub static PREPARING: Lock = Lock::new();

/// With the first connection: what is needed in a child of fork or vfork must be there before.
pub fn prepare() {
    if PRESENCE.load(Ordering::Acquire) != 0 {
        return;
    }
    let _section = process::lock_own(&PREPARING);
    if PRESENCE.load(Ordering::Acquire) != 0 {
        return;
    }
    let made = sys::pipe(libc::O_CLOEXEC | libc::O_NONBLOCK).and_then(|[read, write]| {
        let _ = sys::close(write);
        hidden::hide_spare(read)
    });
    if let Ok(fd) = made {
        IDENTITY.store(identity(fd), Ordering::Relaxed);
    }
    PRESENCE.store(made.unwrap_or(-1), Ordering::Release);
}

/// May an image have the connection that has not adopted it?
pub fn is_out(r: &Record) -> bool {
    match r.lender.load(Ordering::SeqCst) {
        0 => false,
        id if id == IDENTITY.load(Ordering::Relaxed) => is_present(),
        // Lent by somebody else, who can tell.
        _ => true,
    }
}

/// May somebody have the connection who goes round us?
pub fn may_go_round(r: &Record) -> bool {
    r.strangers.load(Ordering::SeqCst) != 0 || r.has(IN_STAYS)
}

/// Whose pipe it is that an image which this process starts has the writing end of. 0: there is none.
pub fn family() -> u64 {
    IDENTITY.load(Ordering::Relaxed)
}

/// Is there any image yet that this process, or one that it shares the pipe with, gave a connection to?
pub fn is_present() -> bool {
    let mut p = [sys::entry(PRESENCE.load(Ordering::Acquire), 0)];
    !(sys::ppoll(&mut p, Some(0)).is_ok() && p[0].revents & libc::POLLHUP != 0)
}

/// A writing end of the pipe, open in the image, out of the program's way.
pub fn presence() -> Option<i32> {
    let reading = PRESENCE.load(Ordering::Acquire);
    if reading <= 0 {
        return None;
    }
    let mut room = [0u8; 32];
    let path = sys::c_text(&mut room, format_args!("/proc/self/fd/{reading}"))?;
    let fd = sys::open(path, libc::O_WRONLY | libc::O_NONBLOCK | libc::O_CLOEXEC, 0).ok()?;
    let moved = sys::fcntl(fd, libc::F_DUPFD, reading as usize);
    let _ = sys::close(fd);
    let moved = moved.ok()?;
    if identity(moved) != IDENTITY.load(Ordering::Relaxed) {
        // A chroot with some other /proc, or none of the kernel's.
        let _ = sys::close(moved);
        return None;
    }
    Some(moved)
}

headwater_host::large! {
    /// {life: 32, index + 1: 32}; 0: free.
    static LEFT: [AtomicU64; 256] = [const { AtomicU64::new(0) }; 256];
}
static WAITING: AtomicU32 = AtomicU32::new(0);

/// Gives up a hold of a record that an image may have been told of: it is freed when that image has gone.
pub fn leave_record(index: u32) {
    let r = record::get(index);
    let left = (r.life() as u64) << 32 | (index as u64 + 1);
    r.holders.fetch_sub(1, Ordering::AcqRel);
    // With no room for it the record is not used again.
    if LEFT.iter().any(|free| free.exchange(0, left)) {
        WAITING.fetch_add(1, Ordering::AcqRel);
    }
}

/// Frees the records of connections whose images have gone.
pub fn sweep() {
    if WAITING.load(Ordering::Relaxed) == 0 || is_present() {
        return;
    }
    for word in &LEFT {
        let left = word.swap(0, Ordering::AcqRel);
        if left != 0 {
            WAITING.fetch_sub(1, Ordering::AcqRel);
            let index = left as u32 - 1;
            let r = record::get(index);
            if r.holders.load(Ordering::Acquire) == 0 && !r.is_busy() {
                record::free_life(index, (left >> 32) as u32);
            }
        }
    }
}
