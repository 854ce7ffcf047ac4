//! Ctrl-C, and SIGTERM: the first asks the run to [end](interrupt), a second one ends it at once; programs and scratch folders are gone then
//! too.

use std::time::Duration;

use crate::{interrupt, process, scratch};

/// What programs have to end by themselves before they are killed.
const GRACE: Duration = Duration::from_millis(700);

/// From now on an interruption is noted. Without it, where that is refused, Ctrl-C ends the run as any program.
pub fn listen() {
    interrupt::prepare();
    let _ = ctrlc::set_handler(|| {
        if !interrupt::ask() {
            leave();
        }
    });
}

/// Was the run asked to end, perhaps a moment later? Ctrl-C also ends the programs, and their end may be known before the interruption is.
pub fn asked_soon() -> bool {
    const MOMENT: Duration = Duration::from_millis(20);
    if interrupt::notice() >= 0 && !interrupt::asked() {
        process::wait_for(&[interrupt::notice()], MOMENT);
    }
    interrupt::asked()
}

fn leave() -> ! {
    process::end_all(GRACE);
    scratch::remove_all();
    std::process::exit(130);
}
