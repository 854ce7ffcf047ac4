//! Work in a copy of this process: with numbers of its own, and without anybody who could meet what it does to them.

use syscalls::{Sysno, syscall};

/// Runs `work`, which makes bare system calls, in a copy of this process, as fork(2) makes one without calling anybody, and waits for
/// its end with the status that `work` gives. No signal tells of that end, and no other wait of the program sees it. What wait4(2) says
/// of it; `None` where no copy can be made.
pub fn run(work: impl FnOnce() -> i32) -> Option<i32> {
    let mask = set_signals(u64::MAX);
    // SAFETY: as fork(2); the child makes bare system calls only, and ends.
    let child = unsafe { syscall!(Sysno::clone, 0, 0, 0, 0, 0) };
    if child == Ok(0) {
        let status = work();
        loop {
            // SAFETY: nothing of the copy is needed any more.
            let _ = unsafe { syscall!(Sysno::exit_group, status) };
        }
    }
    let mut status = 0i32;
    let waited = child.and_then(|child| {
        loop {
            // SAFETY: status is writable.
            match unsafe { syscall!(Sysno::wait4, child, &raw mut status, libc::__WCLONE, 0) } {
                Err(e) if e.into_raw() == libc::EINTR => {}
                waited => return waited,
            }
        }
    });
    set_signals(mask);
    waited.ok().map(|_| status)
}

/// Blocks these signals and no others, as a set of the kernel's size; the one before.
fn set_signals(mask: u64) -> u64 {
    let mut before = 0u64;
    // SAFETY: sets of the kernel's size.
    let _ = unsafe {
        syscall!(
            Sysno::rt_sigprocmask,
            libc::SIG_SETMASK,
            &raw const mask,
            &raw mut before,
            8
        )
    };
    before
}
