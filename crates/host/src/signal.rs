//! Signal handlers of the program, wrapped so that none runs while its thread is inside a locked section.
//!
//! A handler that used the very connection whose lock its thread holds would wait for itself, and one that left by
//! siglongjmp would leave the lock behind. Inside a section the wrapper hands the signal back to the kernel, as it came, and
//! keeps it blocked on return; the section's end unblocks it. Synchronous signals (SIGSEGV and its like) are never put off.
//!
//! A signal thus comes to the wrapper more than once, so what the kernel does at each delivery, SA_RESETHAND and
//! SA_NODEFER, is done here, when the program's handler really runs.

use std::cell::Cell;

use crate::sync::{AtomicBool, AtomicU64, Ordering};
use crate::{process, sys};
use syscalls::{Sysno, syscall};

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
    /// Signals that wait for the section's end, as the kernel's mask has them.
    static POSTPONED: Cell<u64> = const { Cell::new(0) };
    /// Handlers of the program that have not returned.
    static INSIDE: Cell<u32> = const { Cell::new(0) };
    /// A handler without SA_RESTART ran: a wait in progress ends with EINTR.
    static INTERRUPTED: Cell<bool> = const { Cell::new(false) };
}

/// Does this thread run a signal handler of the program? It may have interrupted anything, an allocation for one.
pub fn in_handler() -> bool {
    INSIDE.with(|i| i.get() > 0)
}

/// A longjmp(3) may leave handlers. One inside a handler ends what is known of it too soon.
#[inline]
pub fn jumped() {
    INSIDE.with(|i| i.set(0));
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
#[unsafe(link_section = ".text.life")]
pub unsafe fn sigaction(
    real: Sigaction,
    signal: i32,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> i32 {
    let n = signal as usize;
    if n == 0 || n >= SIGNALS {
        return real(signal, new, old);
    }
    let before = Action::of(signal);
    let wraps = |a: &libc::sigaction| match a.sa_sigaction {
        libc::SIG_DFL => is_guarded(signal),
        libc::SIG_IGN => false,
        _ => true,
    };
    let result = if !new.is_null() && wraps(&*new) {
        let mut action = *new;
        ACTIONS[n].store(Action::new(signal, &action).0, Ordering::Release);
        if action.sa_sigaction != libc::SIG_DFL && !handles() {
            HANDLES.store(true, Ordering::Release);
        }
        if action.sa_sigaction == libc::SIG_DFL {
            action.sa_flags |= libc::SA_ONSTACK;
        }
        action.sa_sigaction = wrapper as *const () as usize;
        action.sa_flags = action.sa_flags & !EMULATED | libc::SA_SIGINFO;
        let result = real(signal, &action, old);
        if result != 0 {
            ACTIONS[n].store(before.0, Ordering::Release);
        }
        result
    } else {
        real(signal, new, old)
    };
    if result == 0 && !old.is_null() && (*old).sa_sigaction == wrapper as *const () as usize {
        (*old).sa_sigaction = before.handler();
        (*old).sa_flags = match before.0 {
            // Never set by the program.
            0 => 0,
            _ => before.flags((*old).sa_flags),
        };
    }
    result
}

/// The faults that a copy may have.
const GUARDED: [i32; 2] = [libc::SIGSEGV, libc::SIGBUS];
static GUARDING: AtomicBool = AtomicBool::new(false);

fn is_guarded(signal: i32) -> bool {
    GUARDED.contains(&signal) && GUARDING.load(Ordering::Acquire)
}

static REAL: crate::next::Next = crate::next::Next::new(c"sigaction");

/// Before [`guard_copies`], which may come in a handler: looking names up may allocate.
pub fn prepare() {
    REAL.address();
}

/// From now on a copy in which a wrong pointer of the program's faults ends in a panic that its caller catches. The program sees
/// nothing of the handler that this takes.
pub fn guard_copies() {
    if GUARDING.swap(true, Ordering::AcqRel) {
        return;
    }
    for signal in GUARDED {
        if Kernels::of(signal).handler != libc::SIG_DFL {
            continue;
        }
        ACTIONS[signal as usize].store(0, Ordering::Release);
        // SAFETY: the C library's own, which knows how handlers return; all zeroes is a valid action.
        unsafe {
            let real: Sigaction = core::mem::transmute(REAL.address());
            let mut action: libc::sigaction = core::mem::zeroed();
            action.sa_sigaction = wrapper as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            real(signal, &action, core::ptr::null_mut());
        }
    }
}

/// A fault in a copy goes on where the copy panics. False: it was none.
unsafe fn recovered(context: *mut libc::c_void) -> bool {
    #[cfg(target_arch = "x86_64")]
    if process::catches_faults() {
        let registers = &mut (*(context as *mut libc::ucontext_t)).uc_mcontext.gregs;
        let stack = registers[libc::REG_RSP as usize] as usize;
        if let Some((at, stack)) = headwater_channel::copy::recovery(stack) {
            registers[libc::REG_RIP as usize] = at as i64;
            registers[libc::REG_RSP as usize] = stack as i64;
            return true;
        }
    }
    false
}

/// What a call that knows nothing of the wrapper says was the handler before.
pub fn unwrapped(signal: i32, handler: usize) -> usize {
    if handler == wrapper as *const () as usize {
        Action::of(signal).handler()
    } else {
        handler
    }
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
    if process::in_section() && !synchronous {
        return postpone(signal, info, context);
    }
    if synchronous && is_guarded(signal) && recovered(context) {
        return;
    }
    let action = Action::of(signal);
    if action.handler() == libc::SIG_DFL {
        // Ours alone, to guard copies. The fault comes again once we return, with nobody in its way.
        Kernels::of(signal).set_default(signal, action);
        if !synchronous {
            hand_back(signal, info);
        }
        return;
    }
    if action.has(RESETHAND) && !reset(signal, action) {
        // Another thread has run it. What has come here meets what there is now, most likely the default.
        return hand_back(signal, info);
    }
    let interrupts = || {
        if !action.has(RESTART) {
            INTERRUPTED.with(|i| i.set(true));
        }
    };
    interrupts();
    if matches!(signal, libc::SIGPOLL | libc::SIGURG)
        && let Some(unmask) = UNMASK.get()
    {
        unmask(info);
    }
    if action.has(NODEFER) && !action.has(MASKS_ITSELF) {
        unblock(1 << (signal - 1));
    }
    // As the kernel calls all handlers, also those that take the number alone.
    let handler: unsafe extern "C-unwind" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) =
        core::mem::transmute(action.handler());
    let depth = INSIDE.with(|i| i.replace(i.get() + 1));
    handler(signal, info, context);
    INSIDE.with(|i| i.set(depth));
    // A wait inside the handler has cleared it.
    interrupts();
}

/// struct sigaction as the kernel has it.
#[repr(C)]
struct Kernels {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

impl Kernels {
    fn of(signal: i32) -> Kernels {
        let mut k = Kernels {
            handler: 0,
            flags: 0,
            restorer: 0,
            mask: 0,
        };
        let none = core::ptr::null::<Kernels>();
        // SAFETY: k is writable.
        let _ = unsafe { syscall!(Sysno::rt_sigaction, signal, none, &mut k as *mut Kernels, 8) };
        k
    }

    /// The default action, with the flags that the program gave.
    fn set_default(mut self, signal: i32, action: Action) {
        self.handler = libc::SIG_DFL;
        self.flags = self.flags & !0xffff_ffff | action.flags(self.flags as i32) as u32 as u64;
        let none = core::ptr::null_mut::<Kernels>();
        // SAFETY: self is readable.
        let _ = unsafe {
            syscall!(
                Sysno::rt_sigaction,
                signal,
                &self as *const Kernels,
                none,
                8
            )
        };
    }
}

/// SA_RESETHAND: the default action from now on. False when that has been done for this handler.
unsafe fn reset(signal: i32, action: Action) -> bool {
    let first = action.has(ARMED)
        && ACTIONS[signal as usize]
            .compare_exchange(
                action.0,
                action.0 & !ARMED,
                Ordering::AcqRel,
                Ordering::Relaxed,
            )
            .is_ok();
    if first {
        Kernels::of(signal).set_default(signal, action);
    }
    first
}

/// Keeps the signal pending, and blocked once the wrapper returns.
unsafe fn postpone(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    hand_back(signal, info);
    let all = POSTPONED.with(|p| {
        p.set(p.get() | 1 << (signal - 1));
        p.get()
    });
    // Of the set the kernel knows the first word only.
    let mask = &raw mut (*(context as *mut libc::ucontext_t)).uc_sigmask as *mut u64;
    *mask |= all;
}

/// Queues a signal to this thread again. The kernel lets a process send any siginfo to itself.
unsafe fn hand_back(signal: i32, info: *mut libc::siginfo_t) {
    let (pid, tid) = (sys::getpid(), sys::gettid());
    let queue = |info: *mut libc::siginfo_t| {
        syscall!(Sysno::rt_tgsigqueueinfo, pid, tid, signal, info).is_ok()
    };
    if !queue(info) {
        // The queue is full: as sent by kill(2), it is not lost all the same.
        let mut plain: libc::siginfo_t = core::mem::zeroed();
        plain.si_signo = signal;
        queue(&mut plain);
    }
}

fn unblock(set: u64) {
    // SAFETY: a set of the kernel's size.
    let _ = unsafe {
        syscall!(
            Sysno::rt_sigprocmask,
            libc::SIG_UNBLOCK,
            &set as *const u64,
            0,
            8
        )
    };
}

/// At the end of the outermost section: what was put off comes now.
#[inline]
pub fn deliver_postponed() {
    if POSTPONED.with(|p| p.get() != 0) {
        deliver_slow();
    }
}

#[cold]
fn deliver_slow() {
    unblock(POSTPONED.with(|p| p.take()));
}
