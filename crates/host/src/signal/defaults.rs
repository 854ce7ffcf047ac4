//! Default actions with something of ours before them: last words, and copies that a wrong pointer of the program's ends.

use super::kernels::Kernels;
use super::{Action, Context, inside, replace, wrapper};
use crate::sync::{AtomicBool, Ordering};
use crate::{next, process, sys};

/// The faults that a copy may have.
const GUARDED: [i32; 2] = [libc::SIGSEGV, libc::SIGBUS];
static GUARDING: AtomicBool = AtomicBool::new(false);

pub(super) fn is_guarded(signal: i32) -> bool {
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

pub(super) fn is_watched(signal: i32) -> bool {
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
        if kernels.is_ours() && action.handler() == libc::SIG_DFL {
            kernels.set_default(signal, action);
        }
    }
}

/// The default action of `signal` is about to end the process.
pub(super) fn last_words(signal: i32) {
    if is_watched(signal)
        && !process::is_borrowed()
        && sys::getpid() != 1
        && let Some(words) = LAST_WORDS.get()
        // A second signal ends it at once, also where the words take long.
        && !SAID.swap(true, Ordering::AcqRel)
    {
        inside(words);
    }
}

/// Before [`guard_copies`], which may come in a handler: looking names up may allocate.
pub fn prepare() {
    next::nexts::sigaction.address();
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

/// Puts the wrapper in the place of the default action. Another thread may install a handler meanwhile, which stays.
fn take_default(signal: i32) {
    let seen = Action::of(signal);
    if Kernels::of(signal).handler != libc::SIG_DFL || !replace(signal, seen, Action(0)) {
        return;
    }
    // SAFETY: the C library's own, which knows how handlers return; all zeroes is a valid action.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = wrapper as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        let mut old: libc::sigaction = core::mem::zeroed();
        if next::sigaction(signal, &action, &mut old) == 0 && old.sa_sigaction != libc::SIG_DFL {
            next::sigaction(signal, &old, core::ptr::null_mut());
            replace(signal, Action(0), seen);
        }
    }
}

/// A fault in a copy goes on where the copy panics. False: it was none.
#[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables))]
pub(super) fn recovered(context: &mut Context) -> bool {
    #[cfg(target_arch = "x86_64")]
    if process::catches_faults() {
        let registers = &mut *context.registers;
        let stack = registers[libc::REG_RSP as usize] as usize;
        let at = registers[libc::REG_RIP as usize] as usize;
        // SAFETY: the thread was interrupted on this stack, at whose end there is what it has pushed last.
        if let Some((at, stack)) = unsafe { headwater_channel::copy::recovery(at, stack) } {
            registers[libc::REG_RIP as usize] = at as i64;
            registers[libc::REG_RSP as usize] = stack as i64;
            return true;
        }
    }
    false
}
