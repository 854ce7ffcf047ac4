//! longjmp(3) and its names: a signal handler may leave a wait of ours for good.

use headwater_host::reclaim;
use headwater_sctp_stack::{left, stack};
use headwater_sockets::pins;
use headwater_streams::head::sleepers;
use libc::{c_int, c_void};

use crate::real;

/// The stack pointer that a jump to `env` restores; the highest there is where that can't be told.
///
/// # Safety
/// `env` was filled by setjmp or sigsetjmp.
#[cfg(target_arch = "x86_64")]
unsafe fn target(env: *const c_void) -> usize {
    // SAFETY: a jmp_buf has more words than that, and the guard is where each thread's first words are.
    unsafe {
        // glibc keeps it as the seventh word, rotated and hidden by the thread's pointer guard (setjmp(3), NOTES).
        let hidden = *(env as *const usize).add(6);
        let guard: usize;
        core::arch::asm!("mov {}, fs:[0x30]", out(reg) guard, options(nostack, readonly, preserves_flags));
        hidden.rotate_right(17) ^ guard
    }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn target(_env: *const c_void) -> usize {
    usize::MAX
}

unsafe fn leaving(env: *const c_void) {
    // SAFETY: setjmp has filled it, by the caller's word.
    unsafe {
        headwater_host::signal::jumped();
        if reclaim::any() {
            reclaim::unwound_to(target(env));
        }
        if pins::any() {
            pins::unwound_to(target(env));
        }
        if left::any() {
            stack::unwound_to(target(env));
        }
        if sleepers::any() {
            sleepers::unwound_to(target(env));
        }
    }
}

macro_rules! jumps {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As longjmp(3) asks of its caller: `env` was filled by setjmp in a function that has not returned.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(env: *mut c_void, value: c_int) -> ! {
            // SAFETY: the program's own jump.
            unsafe {
                leaving(env);
                real::$name(env, value)
            }
        }
    )*};
}

jumps! { longjmp _longjmp siglongjmp __longjmp_chk }
