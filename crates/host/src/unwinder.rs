//! The unwinder, without which a panic ends the program. The shared object does not load it with itself, nor with the first socket,
//! which most often is not carried: it costs more than all the rest.

use crate::hook::Hook;
use crate::sync::{AtomicU32, Ordering};
use crate::{next, process, signal};

/// What is known of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Unwinder {
    /// It can't be loaded now: in a signal handler, or in a child of vfork.
    NotNow = 0,
    Loaded = 1,
    /// There is none, or none in reach any more, as after a chroot.
    Missing = 2,
}

static LOAD: Hook<fn() -> bool> = Hook::new();
static KNOWN: AtomicU32 = AtomicU32::new(Unwinder::NotNow as u32);

/// `load` may allocate, and enters the loader; it tells whether the unwinder is there. A program in Rust has its own, and
/// registers none.
pub fn register(load: fn() -> bool) {
    LOAD.set(load);
}

/// Loads it, unless that was done. With no lock held.
#[inline]
pub fn load() -> Unwinder {
    match KNOWN.load(Ordering::Acquire) {
        1 => Unwinder::Loaded,
        2 => Unwinder::Missing,
        _ => first(),
    }
}

#[cold]
fn first() -> Unwinder {
    if signal::in_handler() || process::is_confined() || process::is_borrowed() {
        return Unwinder::NotNow;
    }
    let there = next::keep_errno(|| LOAD.get().is_none_or(|load| load()));
    let known = match there {
        true => Unwinder::Loaded,
        false => Unwinder::Missing,
    };
    KNOWN.store(known as u32, Ordering::Release);
    known
}
