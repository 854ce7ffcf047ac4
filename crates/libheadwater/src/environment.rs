//! The program's environment, and another one for the calls of the C library that start a process with it.

use core::time::Duration;

use headwater_host::guarded::Guarded;
use headwater_host::lifecycle::{self, Part};
use headwater_host::next::keep_errno;
use headwater_host::sys;
use headwater_streams::head::exec::Inheritance;
use libc::c_char;

use crate::given::Texts;

type Environment = *const *const c_char;

unsafe extern "C" {
    static mut environ: Environment;
}

/// The program's environment.
pub fn current<'a>() -> Texts<'a> {
    // SAFETY: reads a pointer to it; who changes it while others use it is wrong by environ(7).
    unsafe { Texts::new(environ) }
}

/// An environment that stands in the program's place, or did a moment ago.
struct Standing {
    theirs: Inheritance,
    /// What it was when it was made, to see whether the program has changed it since.
    before: Vec<*const c_char>,
    /// What it stands for.
    program: Environment,
    ended: bool,
    /// When it was taken away: somebody may still be reading it.
    retired: u64,
}

// SAFETY: what it points to may be read by any thread.
unsafe impl Send for Standing {}

#[unsafe(link_section = ".data")]
static ALL: Guarded<Vec<Standing>> = Guarded::new(Vec::new());
const RETIREMENT: u64 = Duration::from_secs(2).as_nanos() as u64;

/// Calls `start` with `theirs` as the environment.
///
/// # Safety
/// `start` does nothing with the environment that other threads could not do at any time.
pub unsafe fn replaced<T>(theirs: Inheritance, start: impl FnOnce() -> T) -> T {
    let at = theirs.environment();
    {
        let mut list = ALL.enter();
        let now = sys::now();
        list.retain(|s| s.retired == 0 || now - s.retired < RETIREMENT);
        // SAFETY: `theirs` is a whole environment, and stays one as long as it is in the list; who changes the variable is under the lock,
        // or the program, which may not while it starts another.
        unsafe {
            list.push(Standing {
                before: content(at),
                theirs,
                program: environ,
                ended: false,
                retired: 0,
            });
            environ = at;
        }
    }
    let result = start();
    keep_errno(|| {
        let mut list = ALL.enter();
        for s in list.iter_mut().filter(|s| s.theirs.environment() == at) {
            s.ended = true;
        }
        take_away(&mut list);
    });
    result
}

/// Has forks hold what stands in the program's place.
pub fn look_after_forks() {
    lifecycle::add(Part::Environment, before_fork, after_fork);
}

#[unsafe(link_section = ".text.life")]
fn before_fork() -> bool {
    ALL.keep_out();
    true
}

#[unsafe(link_section = ".text.life")]
fn after_fork(_in_child: bool) {
    ALL.let_in();
}

/// Puts the program's environment back as far as calls have ended. One that the program has changed, or copied, stays.
fn take_away(list: &mut [Standing]) {
    // SAFETY: those that stand are whole as long as they are in the list, and only the program changes the variable besides.
    unsafe {
        let stands = |s: &&mut Standing| {
            let at = s.theirs.environment();
            s.ended && s.retired == 0 && at == environ && content(at) == s.before
        };
        while let Some(s) = list.iter_mut().find(stands) {
            environ = s.program;
            s.retired = sys::now();
        }
    }
}

unsafe fn content(mut at: Environment) -> Vec<*const c_char> {
    // SAFETY: ends with a null, by the caller's word.
    unsafe {
        let mut content = Vec::new();
        while !(*at).is_null() {
            content.push(*at);
            at = at.add(1);
        }
        content
    }
}
