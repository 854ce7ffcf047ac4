//! Doorbells: one eventfd per end. A ring says only "look again", so stale rings are harmless.

use crate::sys::{self, Result};

/// Makes a non-blocking, close-on-exec eventfd.
pub fn create() -> Result<i32> {
    sys::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC)
}

/// Rings. Async-signal-safe. A full counter (EAGAIN) is as good as a ring.
pub fn ring(fd: i32) {
    let one = 1u64.to_ne_bytes();
    // SAFETY: eight readable bytes.
    let _ = unsafe { sys::write(fd, one.as_ptr(), 8) };
}

/// Takes the rings so far; true if there were any.
pub fn take(fd: i32) -> bool {
    let mut count = [0u8; 8];
    // SAFETY: eight writable bytes.
    unsafe { sys::read(fd, count.as_mut_ptr(), 8) }.is_ok()
}
