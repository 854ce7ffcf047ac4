//! Which threads are in waits of ours, for a process that is about to forbid itself system calls: whoever comes back from such a
//! wait makes calls of ours yet, so all of them are brought to the program's own calls first.
//!
//! Sleepers count themselves before they look whether the process is confined; who confines it says so before it looks at the count.

use std::cell::Cell;

use crate::sync::{AtomicU32, Ordering, fence};
use crate::{process, sys};

#[unsafe(link_section = ".data")]
static INSIDE: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static MINE: Cell<bool> = const { Cell::new(false) };
}

/// Before this thread sleeps for the first time within a call. False: the process is confined, and only the call itself may wait.
#[inline]
pub fn begin() -> bool {
    if !MINE.replace(true) {
        INSIDE.fetch_add(1, Ordering::SeqCst);
    }
    fence(Ordering::SeqCst);
    !process::is_confined()
}

/// The call is over, or goes on as the program's own.
#[inline]
pub fn end() {
    if MINE.replace(false) {
        // A child of fork has begun to count anew.
        let _ = INSIDE.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
    }
}

pub fn in_child() {
    INSIDE.store(0, Ordering::SeqCst);
    MINE.set(false);
}

/// Waits, `limit` nanoseconds at most, until no thread is in a wait of ours. `least` is how long a call may go on without sleeping.
pub fn await_none(least: u64, limit: u64) {
    let begun = sys::now();
    loop {
        fence(Ordering::SeqCst);
        let waited = sys::now() - begun;
        if waited >= limit || waited >= least && INSIDE.load(Ordering::SeqCst) == 0 {
            return;
        }
        std::thread::yield_now();
    }
}
