//! What a thread leaves undone when it ends, however it ends: also by pthread_cancel(3), which runs no destructors of ours.

use std::sync::OnceLock;

/// A function to be run at the end of each thread that asked for it.
pub struct ThreadEnd {
    key: OnceLock<Option<libc::pthread_key_t>>,
    run: unsafe extern "C" fn(*mut libc::c_void),
}

impl ThreadEnd {
    /// `run` belongs to this library, which is never unloaded.
    pub const fn new(run: unsafe extern "C" fn(*mut libc::c_void)) -> ThreadEnd {
        ThreadEnd {
            key: OnceLock::new(),
            run,
        }
    }

    /// Before the program runs: the first keys of a process are those that asking takes no memory for.
    pub fn prepare(&self) -> Option<libc::pthread_key_t> {
        *self.key.get_or_init(|| {
            let mut key = 0;
            // SAFETY: key is writable; the destructor is never unloaded.
            (unsafe { libc::pthread_key_create(&mut key, Some(self.run)) } == 0).then_some(key)
        })
    }

    /// This thread asks for it. Once is enough.
    pub fn ask(&self) {
        if let Some(key) = self.prepare() {
            // SAFETY: a key of ours; any value but null has the destructor run.
            unsafe { libc::pthread_setspecific(key, core::ptr::dangling()) };
        }
    }
}
