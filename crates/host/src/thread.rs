//! Threads of the library's own: detached, with all signals blocked, and with a small stack where that is possible.

use core::time::Duration;

use crate::next::seldom;
use crate::sync::{AtomicI32, AtomicU64, Ordering};
use crate::sys;

const STACK: usize = 256 << 10;
/// Where none could be started, the next attempt is made so much later, in nanoseconds: calls that would like to have one may come
/// one after the other.
const REST: u64 = Duration::from_millis(20).as_nanos() as u64;

/// Until when, and why.
static RESTS: AtomicU64 = AtomicU64::new(0);
static FAILED: AtomicI32 = AtomicI32::new(0);

/// Starts `run` in a new thread. Errors: those of pthread_create(3).
pub fn spawn(run: extern "C" fn(*mut libc::c_void) -> *mut libc::c_void) -> sys::Result<()> {
    // The C library takes a program's thread-local storage out of the stack: then only its own size will do.
    match start(run, Some(STACK)) {
        Err(libc::EINVAL) => start(run, None),
        done => done,
    }
}

/// As [`spawn`], for who asks again at each call. Errors: also that of an attempt a little before.
pub fn spawn_in_time(
    run: extern "C" fn(*mut libc::c_void) -> *mut libc::c_void,
) -> sys::Result<()> {
    let rests = RESTS.load(Ordering::Acquire).wrapping_sub(sys::now());
    if rests <= REST {
        return Err(FAILED.load(Ordering::Relaxed));
    }
    let started = spawn(run);
    if let Err(errno) = started {
        FAILED.store(errno, Ordering::Relaxed);
        RESTS.store(sys::now() + REST, Ordering::Release);
    }
    started
}

fn start(
    run: extern "C" fn(*mut libc::c_void) -> *mut libc::c_void,
    stack: Option<usize>,
) -> sys::Result<()> {
    // SAFETY: a thread that owns nothing of the program's; the mask is restored.
    unsafe {
        let all = sys::signal_set(u64::MAX);
        let mut old: libc::sigset_t = core::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut old);
        let mut attributes: libc::pthread_attr_t = core::mem::zeroed();
        seldom::pthread_attr_init(&mut attributes);
        seldom::pthread_attr_setdetachstate(&mut attributes, libc::PTHREAD_CREATE_DETACHED);
        if let Some(stack) = stack {
            seldom::pthread_attr_setstacksize(&mut attributes, stack);
        }
        let mut thread: libc::pthread_t = core::mem::zeroed();
        let failed = seldom::pthread_create(&mut thread, &attributes, run, core::ptr::null_mut());
        seldom::pthread_attr_destroy(&mut attributes);
        libc::pthread_sigmask(libc::SIG_SETMASK, &old, core::ptr::null_mut());
        if failed == 0 { Ok(()) } else { Err(failed) }
    }
}
