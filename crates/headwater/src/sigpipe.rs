//! What SIGPIPE meant when this process began.
//!
//! The standard library ignores it before `main`. A program that is run must find it as our own parent left it (service
//! managers ignore it, shells do not), and what is printed into a closed pipe should end quietly.

use std::sync::OnceLock;

static AT_START: OnceLock<libc::sighandler_t> = OnceLock::new();

#[used]
#[unsafe(link_section = ".init_array")]
static REMEMBER: extern "C" fn() = remember;

extern "C" fn remember() {
    // SAFETY: an all-zero sigaction is valid, and a null new action only asks.
    let old = unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGPIPE, std::ptr::null(), &mut old);
        old
    };
    let _ = AT_START.set(old.sa_sigaction);
}

/// Gives SIGPIPE its first meaning back.
pub fn as_at_start() {
    set(AT_START.get().copied().unwrap_or(libc::SIG_DFL));
}

/// Ends this process at a write into a closed pipe.
pub fn by_default() {
    set(libc::SIG_DFL);
}

fn set(meaning: libc::sighandler_t) {
    // SAFETY: only SIG_DFL and SIG_IGN can be inherited, and neither calls into this program.
    unsafe { libc::signal(libc::SIGPIPE, meaning) };
}
