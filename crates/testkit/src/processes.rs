//! Tests that fork: one at a time, their children, and what becomes of a child that executes the test program again.

use std::ffi::CString;
use std::sync::{Mutex, MutexGuard, Once, OnceLock};

/// What a process does that has the library in it: what is tested says it, since this crate is below all of them.
#[derive(Clone, Copy)]
pub struct Library {
    /// Learns which process this is: at start, and in the child of a fork.
    pub identify: fn(),
    pub before_fork: fn(),
    /// In the child (true), and in its parent.
    pub after_fork: fn(bool),
    /// Makes ready what is tested.
    pub start: fn(),
}

static LIBRARY: OnceLock<Library> = OnceLock::new();

/// One test at a time, since a child inherits what the others have open. The first makes the library ready.
pub fn alone(library: Library) -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    static START: Once = Once::new();
    let turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    START.call_once(|| {
        let library = LIBRARY.get_or_init(|| library);
        // SAFETY: no other thread of this test program reads the environment now; plain handlers.
        unsafe {
            if std::env::var_os("HEADWATER_DIR").is_none() {
                std::env::set_var("HEADWATER_DIR", folder());
                libc::atexit(tidy);
            }
            (library.identify)();
            libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child));
        }
        (library.start)();
    });
    turn
}

fn folder() -> String {
    format!("/dev/shm/headwater-test-{}", std::process::id())
}

extern "C" fn tidy() {
    let _ = std::fs::remove_dir_all(folder());
}

unsafe extern "C" fn before_fork() {
    if let Some(library) = LIBRARY.get() {
        (library.before_fork)();
    }
}

unsafe extern "C" fn in_parent() {
    if let Some(library) = LIBRARY.get() {
        (library.after_fork)(false);
    }
}

unsafe extern "C" fn in_child() {
    if let Some(library) = LIBRARY.get() {
        (library.identify)();
        (library.after_fork)(true);
    }
}

/// A child process; killed and reaped at the latest when dropped.
pub struct Child(i32);

impl Child {
    /// Runs `work` in a child, which then exits with 0 unless that panicked.
    pub fn run(work: impl FnOnce()) -> Child {
        Child::judged(|| {
            work();
            true
        })
    }

    /// Runs `work` in a child, which then exits with 0 if that returned true.
    pub fn judged(work: impl FnOnce() -> bool) -> Child {
        // SAFETY: the child runs `work`, which takes no locks of the test program's other threads.
        match unsafe { libc::fork() } {
            0 => {
                // SAFETY: ends the child, at the latest when the alarm kills it.
                unsafe {
                    libc::alarm(60);
                    let ok = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
                    libc::_exit(!matches!(ok, Ok(true)) as i32);
                }
            }
            pid => {
                assert!(pid > 0);
                Child(pid)
            }
        }
    }

    pub fn pid(&self) -> i32 {
        self.0
    }

    pub fn kill(self) {}

    pub fn succeeded(mut self) -> bool {
        let pid = std::mem::replace(&mut self.0, 0);
        let mut status = -1;
        // SAFETY: our child, not reaped yet.
        unsafe { libc::waitpid(pid, &mut status, 0) == pid && status == 0 }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.0 > 0 {
            // SAFETY: our child, not reaped yet.
            unsafe {
                libc::kill(self.0, libc::SIGKILL);
                libc::waitpid(self.0, std::ptr::null_mut(), 0);
            }
        }
    }
}

/// In a child: the test program again, of which only the ignored test of this path runs, with a variable that says what is left
/// to it. Comes back only where that fails.
pub fn execute_again(test: &str, variable: &str, left: &str) {
    let path = CString::new("/proc/self/exe").unwrap();
    let args = ["x", "--ignored", "--exact", test].map(|a| CString::new(a).unwrap());
    let mut argv: Vec<_> = args.iter().map(|a| a.as_ptr()).collect();
    argv.push(std::ptr::null());
    // SAFETY: the only thread; the arrays end with null.
    unsafe {
        std::env::set_var(variable, left);
        libc::execv(path.as_ptr(), argv.as_ptr());
    }
}
