//! Drivers that take their messages from elsewhere when they are asked: who waits at such a stream waits there, so that nobody
//! else has to put up what comes, and to wake him for it.
//!
//! ```text
//!   a call that finds nothing      waits where the driver does (WAIT), and looks again
//!   another call at the stream     tells the head, as for any sleeper, and with it who waits below (CALL)
//!   nobody in a call               the driver looks by itself, but only where that is relied on (Local::is_relied_on)
//! ```

use core::any::Any;
use std::sync::Arc;

use headwater_host::hook::Hook;
use headwater_host::sync::Ordering::SeqCst;
use headwater_host::sys::Errno;
use headwater_host::table::Handle;

use super::Head;
use super::arming::Want;

/// What a driver has at the bottom of its stream, for those who know the driver.
pub type Below = Arc<dyn Any + Send + Sync>;

/// Waits until there may be something to put up ([`Want::DATA`]) or room for what goes down ([`Want::ROOM`]), or the head is
/// not as it was `seen`; then has the driver look. `None`: that is to be waited for at the head.
pub type Wait = fn(
    head: &'static Head,
    want: Want,
    seen: u32,
    deadline: Option<u64>,
) -> Option<Result<(), Errno>>;

/// For drivers that have noted something at the head.
pub static WAIT: Hook<Wait> = Hook::new();
/// Wakes who waits so at what the driver has noted by [`Head::note_below`]: something happened at the head.
pub static CALL: Hook<fn(Handle)> = Hook::new();

/// As [`Wait`], where there is such a driver.
pub(super) fn wait(
    head: &'static Head,
    want: Want,
    seen: u32,
    deadline: Option<u64>,
) -> Option<Result<(), Errno>> {
    let wait = WAIT.get().filter(|_| want != Want::EITHER)?;
    let handle = head.handle();
    // A thread that never comes back stays counted, which costs others a look.
    head.asleep_below.fetch_add(1, SeqCst);
    let waited = wait(head, want, seen, deadline);
    head.asleep_below.fetch_sub(1, SeqCst);
    match head.handle() == handle {
        true => waited,
        false => Some(Err(libc::EBADF)),
    }
}

impl Head {
    /// What its driver takes messages from, and calls that find none wait at.
    pub fn note_below(&self, at: Handle) {
        self.below.store(at.bits(), SeqCst);
    }

    /// Something happened here.
    #[cold]
    pub(super) fn call_below(&self) {
        if let Some(at) = Handle::from_bits(self.below.load(SeqCst))
            && let Some(call) = CALL.get()
        {
            call(at);
        }
    }
}
