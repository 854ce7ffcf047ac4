//! Words that count the processes which have an endpoint, in memory that forked processes share.

use std::sync::OnceLock;

use headwater_host::sync::{AtomicU32, Ordering};
use headwater_host::sys;

/// Words; the first one says how many were given out. They are used in turn: the oldest endpoint's is long out of use.
const WORDS: usize = 1 << 20;

/// A word that counts one process; null where there is no memory for it.
pub fn fresh() -> *mut AtomicU32 {
    static WORDS_AT: OnceLock<Option<&'static [AtomicU32; WORDS]>> = OnceLock::new();
    let words = WORDS_AT.get_or_init(|| {
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let rw = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh mapping, never unmapped; zeroes are valid words.
        unsafe {
            sys::mmap(0, size_of::<[AtomicU32; WORDS]>(), rw, flags, -1, 0)
                .ok()
                .map(|at| &*(at as *const _))
        }
    });
    let Some(words) = words else {
        return core::ptr::null_mut();
    };
    let n = words[0].fetch_add(1, Ordering::Relaxed) as usize;
    let word = &words[1 + n % (WORDS - 1)];
    word.store(1, Ordering::Release);
    word.as_ptr().cast()
}
