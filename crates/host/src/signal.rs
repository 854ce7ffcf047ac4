//! Signal handlers of the program, wrapped so that none runs while its thread is inside a locked section.
//!
//! A handler that used the very connection whose lock its thread holds would wait for itself, and one that left by
//! siglongjmp would leave the lock behind. Inside a section the wrapper notes the signal, keeps it blocked on return, and the
//! section's end raises it again. Synchronous signals (SIGSEGV and its like) are never put off.

use std::cell::{Cell, UnsafeCell};

use crate::process;
use crate::sync::{AtomicU64, AtomicUsize, Ordering};
use syscalls::{Sysno, syscall};

const SIGNALS: usize = 65;

/// The program's handlers, and their sa_flags.
static HANDLERS: [AtomicUsize; SIGNALS] = [const { AtomicUsize::new(0) }; SIGNALS];
static FLAGS: [AtomicU64; SIGNALS] = [const { AtomicU64::new(0) }; SIGNALS];

struct Postponed {
    count: usize,
    info: [core::mem::MaybeUninit<libc::siginfo_t>; 8],
}

thread_local! {
    static POSTPONED: UnsafeCell<Postponed> = const {
        UnsafeCell::new(Postponed { count: 0, info: [core::mem::MaybeUninit::uninit(); 8] })
    };
    static ANY_POSTPONED: Cell<bool> = const { Cell::new(false) };
    /// A handler without SA_RESTART ran: a wait in progress ends with EINTR.
    static INTERRUPTED: Cell<bool> = const { Cell::new(false) };
}

/// Clears the mark before a call that may wait.
#[inline]
pub fn begin_wait() {
    INTERRUPTED.with(|i| i.set(false));
}

/// Did a handler without SA_RESTART run since `begin_wait`?
#[inline]
pub fn interrupted() -> bool {
    INTERRUPTED.with(|i| i.get())
}

/// Looks at a signal before the program's handler does.
pub type Unmask = unsafe fn(*mut libc::siginfo_t);
static UNMASK: std::sync::OnceLock<Unmask> = std::sync::OnceLock::new();

/// Has SIGPOLL and SIGURG shown to `f` first; once, at start.
pub fn unmask_by(f: Unmask) {
    let _ = UNMASK.set(f);
}

type Sigaction = unsafe extern "C" fn(i32, *const libc::sigaction, *mut libc::sigaction) -> i32;

/// sigaction(2) with the program's handler wrapped. `real` is the C library's own.
///
/// # Safety
/// As sigaction(2).
pub unsafe fn sigaction(
    real: Sigaction,
    signal: i32,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> i32 {
    let n = signal as usize;
    if !process::present() || n == 0 || n >= SIGNALS {
        return real(signal, new, old);
    }
    let previous = (
        HANDLERS[n].load(Ordering::Acquire),
        FLAGS[n].load(Ordering::Acquire),
    );
    let result = if new.is_null() {
        real(signal, new, old)
    } else {
        let mut action = *new;
        let handler = action.sa_sigaction;
        if handler != libc::SIG_DFL && handler != libc::SIG_IGN {
            HANDLERS[n].store(handler, Ordering::Release);
            FLAGS[n].store(action.sa_flags as u32 as u64, Ordering::Release);
            action.sa_sigaction = wrapper as *const () as usize;
            action.sa_flags |= libc::SA_SIGINFO;
        }
        let result = real(signal, &action, old);
        if result != 0 && handler != libc::SIG_DFL && handler != libc::SIG_IGN {
            HANDLERS[n].store(previous.0, Ordering::Release);
            FLAGS[n].store(previous.1, Ordering::Release);
        }
        result
    };
    if result == 0 && !old.is_null() && (*old).sa_sigaction == wrapper as *const () as usize {
        (*old).sa_sigaction = previous.0;
        if previous.1 & libc::SA_SIGINFO as u64 == 0 {
            (*old).sa_flags &= !libc::SA_SIGINFO;
        }
    }
    result
}

unsafe extern "C-unwind" fn wrapper(
    signal: i32,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    let synchronous = matches!(
        signal,
        libc::SIGSEGV | libc::SIGBUS | libc::SIGFPE | libc::SIGILL | libc::SIGTRAP | libc::SIGSYS
    ) && (*info).si_code > 0;
    if process::in_section() && !synchronous && postpone(signal, info, context) {
        return;
    }
    let flags = FLAGS[signal as usize].load(Ordering::Acquire);
    if flags & libc::SA_RESTART as u64 == 0 {
        INTERRUPTED.with(|i| i.set(true));
    }
    let handler = HANDLERS[signal as usize].load(Ordering::Acquire);
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
        return;
    }
    if matches!(signal, libc::SIGPOLL | libc::SIGURG)
        && let Some(unmask) = UNMASK.get()
    {
        unmask(info);
    }
    if flags & libc::SA_SIGINFO as u64 != 0 {
        let f: unsafe extern "C-unwind" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) =
            core::mem::transmute(handler);
        f(signal, info, context);
    } else {
        let f: unsafe extern "C-unwind" fn(i32) = core::mem::transmute(handler);
        f(signal);
    }
    if flags & libc::SA_RESTART as u64 == 0 {
        // A wait inside the handler has cleared it.
        INTERRUPTED.with(|i| i.set(true));
    }
}

/// Notes the signal and keeps it blocked when the wrapper returns; false when there is no room to note it.
unsafe fn postpone(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) -> bool {
    let noted = POSTPONED.with(|p| {
        let p = &mut *p.get();
        if p.count == p.info.len() {
            return false;
        }
        p.info[p.count].write(*info);
        p.count += 1;
        true
    });
    if noted {
        ANY_POSTPONED.with(|a| a.set(true));
        let context = context as *mut libc::ucontext_t;
        libc::sigaddset(&mut (*context).uc_sigmask, signal);
    }
    noted
}

/// At the end of the outermost section: queues what was put off again, to this thread, and unblocks it.
#[inline]
pub fn deliver_postponed() {
    if ANY_POSTPONED.with(|a| a.get()) {
        deliver_slow();
    }
}

#[cold]
fn deliver_slow() {
    ANY_POSTPONED.with(|a| a.set(false));
    // SAFETY: the noted siginfo are initialised up to count; the signals stay blocked until the mask is changed below, so
    // the list does not change meanwhile (another signal may append, which only raises count between the two reads).
    unsafe {
        let mut set: u64 = 0;
        POSTPONED.with(|p| {
            let p = &mut *p.get();
            while p.count > 0 {
                p.count -= 1;
                let mut info = p.info[p.count].assume_init();
                let signal = info.si_signo;
                set |= 1 << (signal - 1);
                let (pid, tid) = (crate::sys::getpid(), crate::sys::gettid());
                // The kernel lets a process queue any siginfo to itself.
                let sent = syscall!(
                    Sysno::rt_tgsigqueueinfo,
                    pid,
                    tid,
                    signal,
                    &mut info as *mut _
                );
                if sent.is_err() {
                    let _ = syscall!(Sysno::tgkill, pid, tid, signal);
                }
            }
        });
        let _ = syscall!(
            Sysno::rt_sigprocmask,
            libc::SIG_UNBLOCK,
            &set as *const u64,
            0,
            8
        );
    }
}
