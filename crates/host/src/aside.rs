//! Work in a copy of this process: with numbers of its own, and without anybody who could meet what it does to them.

use syscalls::{Sysno, syscall};

use crate::sys;

/// Runs `work`, which makes bare system calls, in a copy of this process, as fork(2) makes one without calling anybody, and waits for
/// its end with the status that `work` gives. No signal tells of that end, and no other wait of the program sees it. What wait4(2) says
/// of it; `None` where no copy can be made.
pub fn run(work: impl FnOnce() -> i32) -> Option<i32> {
    let mask = sys::mask_signals(libc::SIG_SETMASK, u64::MAX);
    // SAFETY: as fork(2); the child makes bare system calls only, and ends.
    let child = unsafe { syscall!(Sysno::clone, 0, 0, 0, 0, 0) };
    if child == Ok(0) {
        sys::exit_group(work());
    }
    let status = child
        .ok()
        .and_then(|child| sys::await_child(child as i32, libc::__WCLONE).ok());
    sys::mask_signals(libc::SIG_SETMASK, mask);
    status
}
