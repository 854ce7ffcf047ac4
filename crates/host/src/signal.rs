//! Signal handlers of the program, wrapped so that none runs while its thread is inside a locked section.
//!
//! A handler that used the very connection whose lock its thread holds would wait for itself, and one that left by
//! siglongjmp would leave the lock behind. Inside a section the wrapper hands the signal back to the kernel, as it came, and
//! keeps it blocked on return; the section's end unblocks it. Synchronous signals (SIGSEGV and its like) are never put off.
//!
//! A signal thus comes to the wrapper more than once, so what the kernel does at each delivery, SA_RESETHAND and
//! SA_NODEFER, is done here, when the program's handler really runs.

use std::cell::Cell;

use crate::sync::{AtomicBool, AtomicU64, Ordering, compiler_fence};
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
    /// Signals that wait for the section's end, as the kernel's mask has them.
    static POSTPONED: Cell<u64> = const { Cell::new(0) };
    /// Handlers of the program that have not returned.
    static INSIDE: Cell<u32> = const { Cell::new(0) };
    /// A handler ran that ends a wait in progress with EINTR.
    static INTERRUPTED: Cell<bool> = const { Cell::new(false) };
    /// One ran that ends none: the kernel would begin the call anew.
    static BEGINS_ANEW: Cell<bool> = const { Cell::new(false) };
    /// One with SA_RESTART ends it too.
    static RESTARTED_ENDS: Cell<bool> = const { Cell::new(false) };
    /// What waits is a part of a call, and one before it was done.
    static GOES_ON: Cell<bool> = const { Cell::new(false) };
    /// How this thread is kept from a sleep that it is about to begin.
    static NAP: Cell<Option<Nap>> = const { Cell::new(None) };
}

#[derive(Clone, Copy)]
struct Nap {
    wake: Wake,
    at: usize,
    /// An address in the stack frame of who sleeps.
    frame: usize,
}

impl Nap {
    /// Does whoever sleeps stand on the stack still? A cancelled thread, or a C++ exception, leaves without a word.
    unsafe fn stands(&self, context: *mut libc::c_void) -> bool {
        #[cfg(target_arch = "x86_64")]
        let stack = (*(context as *mut libc::ucontext_t)).uc_mcontext.gregs[libc::REG_RSP as usize]
            as usize;
        #[cfg(not(target_arch = "x86_64"))]
        let stack = (context, 0).1;
        stack < self.frame
    }
}

/// Has a sleep end at once, whether it has begun or is about to. Async-signal-safe.
pub type Wake = fn(usize);

/// Does this thread run a signal handler of the program? It may have interrupted anything, an allocation for one.
pub fn in_handler() -> bool {
    INSIDE.with(|i| i.get() > 0)
}

/// A longjmp(3) may leave handlers. One inside a handler ends what is known of it too soon.
#[inline]
pub fn jumped() {
    INSIDE.with(|i| i.set(0));
    GOES_ON.with(|g| g.set(false));
    end_nap();
}

/// Clears the marks before a call that may wait.
#[inline]
pub fn begin_wait() {
    RESTARTED_ENDS.with(|e| e.set(false));
    BEGINS_ANEW.with(|b| b.set(false));
    INTERRUPTED.with(|i| i.set(false));
}

/// As [`begin_wait`], for a call that any handler ends: poll(2) and its like, signal(7).
#[inline]
pub fn begin_wait_for_any() {
    RESTARTED_ENDS.with(|e| e.set(true));
    INTERRUPTED.with(|i| i.set(false));
}

/// The wait that was begun is such a call's after all.
pub fn let_any_end() {
    RESTARTED_ENDS.with(|e| e.set(true));
    BEGINS_ANEW.with(|b| b.set(false));
}

/// Runs `part` of a call that has done a part before if `on`: SA_RESTART begins nothing anew then.
pub fn going_on<T>(on: bool, part: impl FnOnce() -> T) -> T {
    GOES_ON.with(|g| g.set(on));
    let done = part();
    GOES_ON.with(|g| g.set(false));
    done
}

/// Has the call done a part that is not known where it waits?
pub fn goes_on() -> bool {
    GOES_ON.with(Cell::get)
}

/// Right before this thread sleeps in the kernel. False: it was interrupted, and is not to. A handler that interrupts from here on
/// has `wake(at)` called, since the kernel may not have begun yet; one with SA_RESTART as well, for who looks at [`begins_anew`] after
/// this. Until [`end_nap`], `at` stays valid.
// Inlined: the frame is the caller's.
#[inline(always)]
pub fn begin_nap(wake: Wake, at: usize) -> bool {
    let here = 0u8;
    let frame = (&raw const here).addr();
    NAP.with(|n| n.set(Some(Nap { wake, at, frame })));
    compiler_fence(Ordering::SeqCst);
    if interrupted() {
        end_nap();
        return false;
    }
    true
}

#[inline]
pub fn end_nap() {
    NAP.with(|n| n.set(None));
    compiler_fence(Ordering::SeqCst);
}

/// Wakes who sleeps at a bell, if there is one.
pub fn ring(bell: usize) {
    let bell = bell as i32;
    if bell >= 0 {
        headwater_channel::bell::ring(bell);
    }
}

/// Did a handler run since `begin_wait` that ends the call?
#[inline]
pub fn interrupted() -> bool {
    INTERRUPTED.with(|i| i.get())
}

/// Did a handler with SA_RESTART run since `begin_wait`, or the last time that this was asked? The kernel has begun the call anew then:
/// with what its number stands for by now, and whether it may wait there.
#[inline]
pub fn begins_anew() -> bool {
    BEGINS_ANEW.with(|b| b.replace(false))
}

/// Looks at a signal before the program's handler does.
pub type Unmask = unsafe fn(*mut libc::siginfo_t);
static UNMASK: std::sync::OnceLock<Unmask> = std::sync::OnceLock::new();

/// Has SIGPOLL and SIGURG shown to `f` first; once, at start.
pub fn unmask_by(f: Unmask) {
    let _ = UNMASK.set(f);
}

/// What the program sees of a signal that it has taken; `info` may be null.
///
/// # Safety
/// `info` is null or what the kernel told of `signal`.
pub unsafe fn show(signal: i32, info: *mut libc::siginfo_t) -> i32 {
    if matches!(signal, libc::SIGPOLL | libc::SIGURG)
        && !info.is_null()
        && let Some(unmask) = UNMASK.get()
    {
        unmask(info);
    }
    signal
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
        // A child of vfork has its parent's memory, where the parent's handler stands, and actions of its own.
        libc::SIG_DFL => (is_guarded(signal) || is_watched(signal)) && !process::is_borrowed(),
        libc::SIG_IGN => false,
        _ => true,
    };
    let given_back = GIVEN_BACK.load(Ordering::Acquire);
    let result = if !new.is_null() && !given_back && wraps(&*new) {
        let mut action = *new;
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
        let result = real(signal, &action, old);
        if result != 0 {
            ACTIONS[n].store(before.0, Ordering::Release);
        } else {
            // Another thread was just about to take the default.
            replace(signal, Action(0), wanted);
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

/// Those whose default action ends a process without a word, and no core: another is not to show our handler.
const ENDING: [i32; 7] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGPIPE,
    libc::SIGALRM,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
];
static WATCHING: AtomicBool = AtomicBool::new(false);
static LAST_WORDS: std::sync::OnceLock<fn()> = std::sync::OnceLock::new();
/// They are being said.
static SAID: AtomicBool = AtomicBool::new(false);

fn is_watched(signal: i32) -> bool {
    ENDING.contains(&signal) && WATCHING.load(Ordering::Acquire)
}

/// From now on `words` is called before the default action of a signal ends the process: by a handler of which the program sees
/// nothing. It interrupts what handlers of the program's may interrupt, and may be one of several threads.
pub fn watch_ends(words: fn()) {
    // The first process of a namespace is not ended by them; a child may yet be one.
    if sys::getpid() == 1 || LAST_WORDS.set(words).is_err() {
        return;
    }
    WATCHING.store(true, Ordering::Release);
    for signal in ENDING {
        take_default(signal);
    }
}

/// The default actions are the kernel's again.
pub fn stop_watching() {
    if !WATCHING.swap(false, Ordering::AcqRel) {
        return;
    }
    for signal in ENDING {
        let (kernels, action) = (Kernels::of(signal), Action::of(signal));
        if kernels.handler == wrapper as *const () as usize && action.handler() == libc::SIG_DFL {
            kernels.set_default(signal, action);
        }
    }
}

/// Nothing of the program's passes through us any more: the kernel has its actions as it asked for them, also those of later.
pub fn give_back() {
    GIVEN_BACK.store(true, Ordering::Release);
    let guarding = GUARDING.load(Ordering::Acquire);
    for signal in 1..SIGNALS as i32 {
        let action = Action::of(signal);
        if action == Action(0) && !(guarding && GUARDED.contains(&signal)) {
            continue;
        }
        let kernels = Kernels::of(signal);
        if kernels.handler == wrapper as *const () as usize {
            kernels.set(signal, action.handler(), action);
        }
    }
}

/// The default action of `signal` is about to end the process.
fn last_words(signal: i32) {
    if is_watched(signal)
        && !process::is_borrowed()
        && sys::getpid() != 1
        && let Some(words) = LAST_WORDS.get()
        // A second signal ends it at once, also where the words take long.
        && !SAID.swap(true, Ordering::AcqRel)
    {
        let depth = INSIDE.with(|i| i.replace(i.get() + 1));
        words();
        INSIDE.with(|i| i.set(depth));
    }
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
        take_default(signal);
    }
}

fn replace(signal: i32, from: Action, to: Action) -> bool {
    ACTIONS[signal as usize]
        .compare_exchange(from.0, to.0, Ordering::AcqRel, Ordering::Relaxed)
        .is_ok()
}

/// Puts the wrapper in the place of the default action. Another thread may install a handler meanwhile, which stays.
fn take_default(signal: i32) {
    let seen = Action::of(signal);
    if Kernels::of(signal).handler != libc::SIG_DFL || !replace(signal, seen, Action(0)) {
        return;
    }
    // SAFETY: the C library's own, which knows how handlers return; all zeroes is a valid action.
    unsafe {
        let real: Sigaction = core::mem::transmute(REAL.address());
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = wrapper as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        let mut old: libc::sigaction = core::mem::zeroed();
        if real(signal, &action, &mut old) == 0 && old.sa_sigaction != libc::SIG_DFL {
            real(signal, &old, core::ptr::null_mut());
            replace(signal, Action(0), seen);
        }
    }
}

/// A fault in a copy goes on where the copy panics. False: it was none.
unsafe fn recovered(context: *mut libc::c_void) -> bool {
    #[cfg(target_arch = "x86_64")]
    if process::catches_faults() {
        let registers = &mut (*(context as *mut libc::ucontext_t)).uc_mcontext.gregs;
        let stack = registers[libc::REG_RSP as usize] as usize;
        let at = registers[libc::REG_RIP as usize] as usize;
        if let Some((at, stack)) = headwater_channel::copy::recovery(at, stack) {
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
        // Ours alone, to guard copies or for last words. The fault comes again once we return, with nobody in its way.
        if !synchronous {
            last_words(signal);
        }
        Kernels::of(signal).set_default(signal, action);
        if !synchronous {
            hand_back(signal, info);
            // Now: a call that had it unblocked for as long as it waits may block it again when we return.
            unblock(1 << (signal - 1));
        }
        return;
    }
    if action.has(RESETHAND) && !reset(signal, action) {
        // Another thread has run it. What has come here meets what there is now, most likely the default.
        return hand_back(signal, info);
    }
    // A wait inside the handler has others.
    let nap = NAP.with(Cell::take).filter(|nap| nap.stands(context));
    let restarted_ends = RESTARTED_ENDS.with(Cell::get);
    let goes_on = GOES_ON.with(|g| g.replace(false));
    let interrupts = !action.has(RESTART) || restarted_ends;
    let interrupted = interrupted() || interrupts;
    let anew = BEGINS_ANEW.with(Cell::get) || !interrupts;
    // A wait inside the handler clears them.
    let mark = || {
        INTERRUPTED.with(|i| i.set(interrupted));
        BEGINS_ANEW.with(|b| b.set(anew));
    };
    mark();
    show(signal, info);
    if action.has(NODEFER) && !action.has(MASKS_ITSELF) {
        unblock(1 << (signal - 1));
    }
    // As the kernel calls all handlers, also those that take the number alone.
    let handler: unsafe extern "C-unwind" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) =
        core::mem::transmute(action.handler());
    let depth = INSIDE.with(|i| i.replace(i.get() + 1));
    handler(signal, info, context);
    INSIDE.with(|i| i.set(depth));
    RESTARTED_ENDS.with(|e| e.set(restarted_ends));
    GOES_ON.with(|g| g.set(goes_on));
    NAP.with(|n| n.set(nap));
    mark();
    if let Some(nap) = nap
        && !process::is_confined()
    {
        let errno = crate::next::errno();
        (nap.wake)(nap.at);
        crate::next::set_errno(errno);
    }
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
    fn set_default(self, signal: i32, action: Action) {
        self.set(signal, libc::SIG_DFL, action);
    }

    /// `handler` is called by the kernel itself, with the flags that the program gave.
    fn set(mut self, signal: i32, handler: usize, action: Action) {
        self.handler = handler;
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
            let done = sigaction(
                libc::sigaction,
                libc::SIGUSR1,
                &action,
                core::ptr::null_mut(),
            );
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
        let mut p = [libc::pollfd {
            fd: bell,
            events: libc::POLLIN,
            revents: 0,
        }];
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
