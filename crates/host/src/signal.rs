//! Signal handlers of the program, wrapped so that none runs while its thread is inside a locked section.
//!
//! A handler that used the very connection whose lock its thread holds would wait for itself, and one that left by
//! siglongjmp would leave the lock behind. Inside a section the wrapper hands the signal back to the kernel, as it came, and
//! keeps it blocked on return; the section's end unblocks it. Synchronous signals (SIGSEGV and its like) are never put off.
//!
//! A signal thus comes to the wrapper more than once, so what the kernel does at each delivery, SA_RESETHAND and
//! SA_NODEFER, is done here, when the program's handler really runs.

mod defaults;
mod kernels;
mod masks;
mod waits;

use std::cell::Cell;

use crate::sync::{AtomicBool, AtomicU64, Exchange, Ordering};
use crate::{next, postponed, process, sys};
use syscalls::{Sysno, syscall};

pub use defaults::{guard_copies, prepare, stop_watching, watch_ends};
use defaults::{is_guarded, is_watched, last_words, recovered};
use kernels::Kernels;
pub use masks::under;
use waits::Aside;
pub use waits::{
    Wake, begin_nap, begin_wait, begin_wait_for_any, begins_anew, end_nap, goes_on, going_on,
    interrupted, let_any_end, ring,
};

const SIGNALS: usize = 65;

/// [`Action`]s, by signal.
#[unsafe(link_section = ".data")]
static ACTIONS: [AtomicU64; SIGNALS] = [const { AtomicU64::new(0) }; SIGNALS];

/// Has the program a handler?
#[unsafe(link_section = ".data")]
static HANDLES: AtomicBool = AtomicBool::new(false);

/// Has the program installed a handler of its own, which may call us anywhere?
pub fn handles() -> bool {
    HANDLES.load(Ordering::Acquire)
}

/// See [`give_back`].
static GIVEN_BACK: AtomicBool = AtomicBool::new(false);

/// The program's handler and what it asked for, in one word: {bits: 16, address: 48}.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Action(u64);

const ADDRESS: u64 = (1 << 48) - 1;
const RESTART: u64 = 1 << 48;
const SIGINFO: u64 = 1 << 49;
const RESETHAND: u64 = 1 << 50;
const NODEFER: u64 = 1 << 51;
/// Its mask holds the signal itself, which SA_NODEFER does not change.
const MASKS_ITSELF: u64 = 1 << 52;
/// SA_RESETHAND, and it has not run yet.
const ARMED: u64 = 1 << 53;
/// It runs on the alternate stack.
const ONSTACK: u64 = 1 << 54;
const FLAGS: [(i32, u64); 5] = [
    (libc::SA_RESTART, RESTART),
    (libc::SA_SIGINFO, SIGINFO),
    (libc::SA_RESETHAND, RESETHAND | ARMED),
    (libc::SA_NODEFER, NODEFER),
    (libc::SA_ONSTACK, ONSTACK),
];
/// What the kernel is not told.
const EMULATED: i32 = libc::SA_RESETHAND | libc::SA_NODEFER;

impl Action {
    fn of(signal: i32) -> Action {
        Action(ACTIONS[signal as usize].load(Ordering::Acquire))
    }

    fn new(signal: i32, action: &libc::sigaction) -> Action {
        let asked = FLAGS.iter().filter(|(flag, _)| action.sa_flags & flag != 0);
        let bits = asked.fold(0, |bits, (_, bit)| bits | bit);
        let masks_itself = sys::signals(&action.sa_mask) & sys::signal_bit(signal) != 0;
        let masks_itself = if masks_itself { MASKS_ITSELF } else { 0 };
        Action(action.sa_sigaction as u64 & ADDRESS | bits | masks_itself)
    }

    fn handler(self) -> usize {
        (self.0 & ADDRESS) as usize
    }

    fn has(self, bits: u64) -> bool {
        self.0 & bits != 0
    }

    /// The flags as the program gave them, of those that the kernel was given.
    fn flags(self, kernels: i32) -> i32 {
        let ours = FLAGS.iter().fold(0, |all, (flag, _)| all | flag);
        let asked = FLAGS.iter().filter(|(_, bit)| self.has(*bit));
        asked.fold(kernels & !ours, |flags, (flag, _)| flags | flag)
    }
}

thread_local! {
    /// Handlers of the program that have not returned.
    static INSIDE: Cell<u32> = const { Cell::new(0) };
}

/// Does this thread run a signal handler of the program? It may have interrupted anything, an allocation for one.
pub fn in_handler() -> bool {
    INSIDE.with(|i| i.get() > 0)
}

/// A longjmp(3) may leave handlers. One inside a handler ends what is known of it too soon.
#[inline]
pub fn jumped() {
    INSIDE.with(|i| i.set(0));
    waits::left();
}

/// Runs `run` as a handler, which may have interrupted anything.
fn inside(run: impl FnOnce()) {
    let depth = INSIDE.with(|i| i.replace(i.get() + 1));
    crate::reclaim::in_handler(run);
    INSIDE.with(|i| i.set(depth));
}

/// Looks at a signal before the program's handler does.
pub type Unmask = unsafe fn(*mut libc::siginfo_t);
static UNMASK: std::sync::OnceLock<Unmask> = std::sync::OnceLock::new();

/// Has SIGPOLL and SIGURG shown to `f` first; once, at start.
pub fn unmask_by(f: Unmask) {
    let _ = UNMASK.set(f);
}

/// What the program sees of a signal that it has taken, of which the kernel has told `info`.
pub fn show(signal: i32, info: Option<&mut libc::siginfo_t>) -> i32 {
    if matches!(signal, libc::SIGPOLL | libc::SIGURG)
        && let Some(info) = info
        && let Some(unmask) = UNMASK.get()
    {
        // SAFETY: a whole one.
        unsafe { unmask(info) };
    }
    signal
}

/// sigaction(2) with the program's handler wrapped.
///
/// # Safety
/// As sigaction(2).
#[unsafe(link_section = ".text.life")]
pub unsafe fn sigaction(
    signal: i32,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> i32 {
    // SAFETY: the caller's pointers are as sigaction(2) wants them, and so is what is given in place of the new action.
    let real = |new: *const libc::sigaction| unsafe { next::sigaction(signal, new, old) };
    let n = signal as usize;
    if n == 0 || n >= SIGNALS {
        return real(new);
    }
    let before = Action::of(signal);
    let wraps = |a: &libc::sigaction| match a.sa_sigaction {
        // A child of vfork has its parent's memory, where the parent's handler stands, and actions of its own.
        libc::SIG_DFL => (is_guarded(signal) || is_watched(signal)) && !process::is_borrowed(),
        libc::SIG_IGN => false,
        _ => true,
    };
    let given_back = GIVEN_BACK.load(Ordering::Acquire);
    // SAFETY: the caller says that it is null or valid.
    let wrapped = unsafe { new.as_ref() }.filter(|new| !given_back && wraps(new));
    let result = if let Some(&(mut action)) = wrapped {
        let wanted = Action::new(signal, &action);
        ACTIONS[n].store(wanted.0, Ordering::Release);
        if action.sa_sigaction != libc::SIG_DFL && !handles() {
            HANDLES.store(true, Ordering::Release);
        }
        if action.sa_sigaction == libc::SIG_DFL {
            action.sa_flags |= libc::SA_ONSTACK;
        }
        action.sa_sigaction = wrapper as *const () as usize;
        action.sa_flags = action.sa_flags & !EMULATED | libc::SA_SIGINFO;
        let result = real(&action);
        if result != 0 {
            ACTIONS[n].store(before.0, Ordering::Release);
        } else {
            // Another thread was just about to take the default.
            replace(signal, Action(0), wanted);
        }
        result
    } else {
        real(new)
    };
    if result == 0
        // SAFETY: the caller says that it is null or writable, and the C library has filled it.
        && let Some(old) = unsafe { old.as_mut() }
        && old.sa_sigaction == wrapper as *const () as usize
    {
        old.sa_sigaction = before.handler();
        old.sa_flags = match before.0 {
            // Never set by the program.
            0 => 0,
            _ => before.flags(old.sa_flags),
        };
    }
    result
}

fn replace(signal: i32, from: Action, to: Action) -> bool {
    ACTIONS[signal as usize].exchange(from.0, to.0)
}

/// Nothing of the program's passes through us any more: the kernel has its actions as it asked for them, also those of later.
pub fn give_back() {
    GIVEN_BACK.store(true, Ordering::Release);
    for signal in 1..SIGNALS as i32 {
        let action = Action::of(signal);
        if action == Action(0) && !is_guarded(signal) {
            continue;
        }
        let kernels = Kernels::of(signal);
        if kernels.is_ours() {
            kernels.set(signal, action.handler(), action);
        }
    }
}

/// What a call that knows nothing of the wrapper says was the handler before.
pub fn unwrapped(signal: i32, handler: usize) -> usize {
    if handler == wrapper as *const () as usize {
        Action::of(signal).handler()
    } else {
        handler
    }
}

/// Where a signal has interrupted its thread, as the kernel goes on there. It has less of this than the C library's type says.
struct Context<'a> {
    #[cfg(target_arch = "x86_64")]
    registers: &'a mut [libc::greg_t; 23],
    /// What is blocked then. Of the set the kernel knows the first word only.
    mask: &'a mut u64,
}

impl Context<'_> {
    /// # Safety
    /// It is what the kernel has given to a handler, which has not returned, and nobody else uses it meanwhile.
    unsafe fn of(context: *mut libc::c_void) -> Self {
        let context = context.cast::<libc::ucontext_t>();
        // SAFETY: the kernel has written both, apart from each other, and reads them when the handler returns.
        unsafe {
            Context {
                #[cfg(target_arch = "x86_64")]
                registers: &mut (*context).uc_mcontext.gregs,
                mask: &mut *(&raw mut (*context).uc_sigmask).cast(),
            }
        }
    }

    /// Where the thread stands on its stack; 0: that is not known.
    fn stack(&self) -> usize {
        #[cfg(target_arch = "x86_64")]
        let stack = self.registers[libc::REG_RSP as usize] as usize;
        #[cfg(not(target_arch = "x86_64"))]
        let stack = 0;
        stack
    }
}

/// # Safety
/// The kernel calls it, as the handler of an action with SA_SIGINFO.
unsafe extern "C-unwind" fn wrapper(
    signal: i32,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: the kernel gives both to the handler, and the program's has not been called yet.
    let (told, mut interrupted) = unsafe { (&*info, Context::of(context)) };
    let synchronous = matches!(
        signal,
        libc::SIGSEGV | libc::SIGBUS | libc::SIGFPE | libc::SIGILL | libc::SIGTRAP | libc::SIGSYS
    ) && told.si_code > 0;
    if process::in_section() && !synchronous {
        return postpone(signal, told, interrupted);
    }
    if synchronous && is_guarded(signal) && recovered(&mut interrupted) {
        return;
    }
    let action = Action::of(signal);
    if action.handler() == libc::SIG_DFL {
        // Ours alone, to guard copies or for last words. The fault comes again once we return, with nobody in its way.
        if !synchronous {
            last_words(signal);
        }
        Kernels::of(signal).set_default(signal, action);
        if !synchronous {
            hand_back(signal, told);
            // Now: a call that had it unblocked for as long as it waits may block it again when we return.
            postponed::unblock(1 << (signal - 1));
        }
        return;
    }
    if action.has(RESETHAND) && !reset(signal, action) {
        // Another thread has run it. What has come here meets what there is now, most likely the default.
        return hand_back(signal, told);
    }
    let aside = Aside::put(action.has(RESTART), interrupted.stack());
    // SAFETY: what the kernel has told of the signal.
    show(signal, unsafe { info.as_mut() });
    if action.has(NODEFER) && !action.has(MASKS_ITSELF) {
        postponed::unblock(1 << (signal - 1));
    }
    // SAFETY: the program's handler, called as the kernel calls all handlers, also those that take the number alone.
    inside(|| unsafe {
        let handler: unsafe extern "C-unwind" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) =
            core::mem::transmute(action.handler());
        handler(signal, info, context);
    });
    aside.go_on();
}

/// SA_RESETHAND: the default action from now on. False when that has been done for this handler.
fn reset(signal: i32, action: Action) -> bool {
    let first = action.has(ARMED) && replace(signal, action, Action(action.0 & !ARMED));
    if first {
        Kernels::of(signal).set_default(signal, action);
    }
    first
}

/// Keeps the signal pending, and blocked once the wrapper returns.
fn postpone(signal: i32, info: &libc::siginfo_t, interrupted: Context) {
    hand_back(signal, info);
    *interrupted.mask |= postponed::add(signal);
}

/// Queues a signal to this thread again. The kernel lets a process send any siginfo to itself.
fn hand_back(signal: i32, info: &libc::siginfo_t) {
    let (pid, tid) = (sys::getpid(), sys::gettid());
    let queue = |info: *const libc::siginfo_t| {
        // SAFETY: the kernel reads what `info` refers to.
        unsafe { syscall!(Sysno::rt_tgsigqueueinfo, pid, tid, signal, info) }.is_ok()
    };
    if !queue(info) {
        // The queue is full: as sent by kill(2), it is not lost all the same.
        let mut plain: libc::siginfo_t = sys::zeroed();
        plain.si_signo = signal;
        queue(&plain);
    }
}

#[cfg(test)]
mod tests {
    use headwater_channel::bell;

    use super::*;

    fn handle(handler: extern "C" fn(i32), flags: i32) {
        // SAFETY: a valid action; the handlers are async-signal-safe.
        unsafe {
            let mut action: libc::sigaction = core::mem::zeroed();
            action.sa_sigaction = handler as *const () as usize;
            action.sa_flags = flags;
            let done = sigaction(libc::SIGUSR1, &action, core::ptr::null_mut());
            assert_eq!(done, 0);
        }
    }

    fn interrupt() {
        // SAFETY: no arguments that matter.
        unsafe { libc::raise(libc::SIGUSR1) };
    }

    extern "C" fn nothing(_: i32) {}

    /// A handler that waits itself.
    extern "C" fn naps(_: i32) {
        let other = bell::create().unwrap();
        begin_wait();
        assert!(begin_nap(ring, other as usize));
        end_nap();
        sys::close(other).unwrap();
    }

    /// Does a sleep at `bell` end at once?
    fn is_woken(bell: i32) -> bool {
        let mut p = [sys::entry(bell, libc::POLLIN)];
        let woken = sys::ppoll(&mut p, Some(0)) == Ok(1);
        bell::take(bell);
        woken
    }

    // One test, since handlers are the process's.
    #[test]
    fn a_signal_between_the_last_look_and_the_sleep_wakes_it() {
        let bell = bell::create().unwrap();
        for (handler, flags, ends, any_ends) in [
            (nothing as extern "C" fn(i32), 0, true, true),
            (nothing, libc::SA_RESTART, false, true),
            (naps, 0, true, true),
            (naps, libc::SA_RESTART, false, true),
        ] {
            handle(handler, flags);
            for (begin, ends) in [
                (begin_wait as fn(), ends),
                (begin_wait_for_any as fn(), any_ends),
            ] {
                begin();
                assert!(begin_nap(ring, bell as usize));
                interrupt();
                assert_eq!((is_woken(bell), interrupted()), (true, ends));
                assert_eq!((begins_anew(), begins_anew()), (!ends, false));
                end_nap();
                interrupt();
                assert!(!is_woken(bell));

                begin();
                interrupt();
                assert_eq!(begin_nap(ring, bell as usize), !ends);
                assert!(!is_woken(bell));
                assert_eq!(begins_anew(), !ends);
                end_nap();
            }
        }
        // What one handler has marked, the next one's waits leave.
        begin_wait();
        handle(nothing, 0);
        interrupt();
        handle(naps, libc::SA_RESTART);
        interrupt();
        assert!(interrupted() && begins_anew());
        // Who leaves a handler for good naps no more.
        begin_wait();
        handle(nothing, 0);
        assert!(begin_nap(ring, bell as usize));
        jumped();
        interrupt();
        assert!(!is_woken(bell));
        // Nor who is cancelled, or left by an exception.
        leaves_without_a_word(bell);
        interrupt();
        assert!(!cfg!(target_arch = "x86_64") || !is_woken(bell));
    }

    #[inline(never)]
    fn leaves_without_a_word(bell: i32) {
        let deep = core::hint::black_box([0u8; 16384]);
        leaves_deeply(bell);
        core::hint::black_box(&deep);
    }

    #[inline(never)]
    fn leaves_deeply(bell: i32) {
        begin_wait();
        assert!(begin_nap(ring, bell as usize));
    }
}
