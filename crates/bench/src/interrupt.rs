//! Whether the run is to end: Ctrl-C, or SIGTERM, ends it in good order. The programs of the sample end, what was measured is kept and shown.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;

use headwater_channel::sync::{AtomicBool, Ordering};
use rustix::event::{EventfdFlags, eventfd};

static ASKED: AtomicBool = AtomicBool::new(false);
/// An eventfd that becomes readable with the first interruption, and stays so.
static NOTICE: OnceLock<OwnedFd> = OnceLock::new();

/// From now on [`notice`] is there.
pub fn prepare() {
    if let Ok(fd) = eventfd(0, EventfdFlags::CLOEXEC) {
        let _ = NOTICE.set(fd);
    }
}

/// The run is asked to end. True: for the first time.
pub fn ask() -> bool {
    let first = !ASKED.swap(true, Ordering::SeqCst);
    if first && let Some(notice) = NOTICE.get() {
        let _ = rustix::io::write(notice, &1_u64.to_ne_bytes());
    }
    first
}

/// Was the run asked to end?
pub fn asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}

/// What becomes readable with the interruption, for poll(2); negative, which that ignores, where nobody listens.
pub fn notice() -> RawFd {
    NOTICE.get().map_or(-1, AsRawFd::as_raw_fd)
}
