//! Tests that fork: one at a time, and their children. What is above this makes ready in `start` what is tested.

use std::sync::{Mutex, MutexGuard, Once};

use headwater_host::process;
use headwater_streams::head::life;

/// One test at a time, since a child inherits what the others have open.
pub fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    static START: Once = Once::new();
    let turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    START.call_once(|| {
        // SAFETY: no other thread of this test program reads the environment now; plain handlers.
        unsafe {
            if std::env::var_os("HEADWATER_DIR").is_none() {
                let folder = format!("/dev/shm/headwater-test-{}", std::process::id());
                std::env::set_var("HEADWATER_DIR", folder);
            }
            process::identify();
            libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child));
        }
        super::start();
    });
    turn
}

unsafe extern "C" fn before_fork() {
    life::before_fork();
}

unsafe extern "C" fn in_parent() {
    life::after_fork(false);
}

unsafe extern "C" fn in_child() {
    process::identify();
    life::after_fork(true);
}

/// A child process; killed and reaped at the latest when dropped.
pub struct Child(pub i32);

impl Child {
    pub fn run(work: impl FnOnce()) -> Child {
        // SAFETY: the child runs `work`, which takes no locks of the test program's other threads.
        match unsafe { libc::fork() } {
            0 => {
                // SAFETY: ends the child, at the latest when the alarm kills it.
                unsafe {
                    libc::alarm(60);
                    let ok = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
                    libc::_exit(ok.is_err() as i32);
                }
            }
            pid => {
                assert!(pid > 0);
                Child(pid)
            }
        }
    }

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
