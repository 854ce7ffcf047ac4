//! Ctrl-C ends a run in good order: what was measured is kept and shown. A second one ends it at once.

use headwater_channel::sync::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

/// From now on an interruption is noted. Without it, where that is refused, Ctrl-C ends the run as any program.
pub fn listen() {
    let noted = || {
        if ASKED.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
    };
    let _ = ctrlc::set_handler(noted);
}

/// Was the run asked to end?
pub fn asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}
