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

/// How the child ends that could make no other.
const NONE: i32 = 1;

/// Has `work`, which makes bare system calls, done in a copy of this process that goes on by itself: a child of a child that has ended at
/// once, so that nobody is told of its end. False: there can't be one.
pub fn leave(work: impl FnOnce()) -> bool {
    let status = run(|| {
        // SAFETY: in a child that has this thread alone; what is forked makes bare system calls, and ends.
        match unsafe { syscall!(Sysno::clone, libc::SIGCHLD, 0, 0, 0, 0) } {
            Ok(0) => {}
            Ok(_) => return 0,
            Err(_) => return NONE,
        }
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        0
    });
    status.is_some_and(|status| status != NONE << 8)
}

/// Has this process, a copy that goes on by itself, nothing of the program's any more: no terminal, folder, signals, and no
/// descriptors but `kept`, which ascend.
pub fn become_nobody(kept: impl Iterator<Item = i32>) {
    // SAFETY: plain numbers and C strings; the actions are as large as the kernel's.
    unsafe {
        let _ = syscall!(Sysno::setsid);
        let _ = syscall!(Sysno::chdir, c"/".as_ptr());
        let _ = syscall!(Sysno::prctl, libc::PR_SET_NAME, c"headwater-keep".as_ptr());
        for n in 1..=64 {
            let usual = if n == libc::SIGPIPE {
                libc::SIG_IGN
            } else {
                libc::SIG_DFL
            };
            let action = [usual, 0, 0, 0];
            let _ = syscall!(Sysno::rt_sigaction, n, action.as_ptr(), 0, 8);
        }
    }
    sys::mask_signals(libc::SIG_SETMASK, 0);
    let mut from = 3;
    for fd in kept.filter(|&fd| fd > 2) {
        if fd > from {
            let _ = sys::close_range(from as u32, fd as u32 - 1);
        }
        from = from.max(fd + 1);
    }
    let _ = sys::close_range(from as u32, u32::MAX);
    let null = sys::open(c"/dev/null", libc::O_RDWR | libc::O_CLOEXEC, 0).unwrap_or(-1);
    for fd in 0..3 {
        let _ = match null {
            ..0 => sys::close(fd),
            null => sys::dup3(null, fd, 0).map(drop),
        };
    }
}
