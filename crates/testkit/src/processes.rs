//! Tests that fork: one at a time, their children, and what becomes of a child that executes the test program again.

use std::ffi::CString;
use std::sync::{Mutex, MutexGuard, Once};

/// One test at a time, since a child inherits what the others have open. The first makes ready what is tested, by `start`: this crate is
/// below all of them.
pub fn alone(start: fn()) -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    static START: Once = Once::new();
    let turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    START.call_once(|| {
        // SAFETY: no other thread of this test program reads the environment now; a plain handler.
        unsafe {
            if std::env::var_os("HEADWATER_DIR").is_none() {
                std::env::set_var("HEADWATER_DIR", folder());
                libc::atexit(tidy);
            }
        }
        start();
    });
    turn
}

fn folder() -> String {
    format!("/dev/shm/headwater-test-{}", std::process::id())
}

extern "C" fn tidy() {
    let _ = std::fs::remove_dir_all(folder());
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
