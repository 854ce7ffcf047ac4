//! Ctrl-C, or SIGTERM, ends a run in good order: the programs of the sample end, what was measured is kept and shown. A second
//! one ends it at once; programs and scratch folders are gone then too.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;
use std::time::Duration;

use headwater_channel::sync::{AtomicBool, Ordering};
use rustix::event::{EventfdFlags, eventfd};

use crate::process;
use crate::scratch;

/// What programs have to end by themselves before they are killed.
const GRACE: Duration = Duration::from_millis(700);

static ASKED: AtomicBool = AtomicBool::new(false);
/// An eventfd that becomes readable with the first interruption, and stays so.
static NOTICE: OnceLock<OwnedFd> = OnceLock::new();

/// From now on an interruption is noted. Without it, where that is refused, Ctrl-C ends the run as any program.
pub fn listen() {
    if let Ok(fd) = eventfd(0, EventfdFlags::CLOEXEC) {
        let _ = NOTICE.set(fd);
    }
    let noted = || match ASKED.swap(true, Ordering::SeqCst) {
        false => give_notice(),
        true => leave(),
    };
    let _ = ctrlc::set_handler(noted);
}

/// Was the run asked to end?
pub fn asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}

/// The same, a moment later: Ctrl-C also ends the programs, and their end may be known before the interruption is.
pub fn asked_soon() -> bool {
    const MOMENT: Duration = Duration::from_millis(20);
    if NOTICE.get().is_some() && !asked() {
        process::wait_for(&[notice()], MOMENT);
    }
    asked()
}

/// What becomes readable with the interruption, for poll(2); negative, which that ignores, where nobody listens.
pub fn notice() -> RawFd {
    NOTICE.get().map_or(-1, AsRawFd::as_raw_fd)
}

fn give_notice() {
    if let Some(notice) = NOTICE.get() {
        let _ = rustix::io::write(notice, &1_u64.to_ne_bytes());
    }
}

fn leave() -> ! {
    process::end_all(GRACE);
    scratch::remove_all();
    std::process::exit(130);
}
