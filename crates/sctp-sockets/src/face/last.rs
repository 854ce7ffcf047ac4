//! The socket that a thread used last: it is kept open for the thread, whose next call needs neither a lock nor a count to
//! find it.

use core::cell::Cell;
use core::ops::Deref;
use core::ptr::null;
use std::sync::Arc;

use headwater_host::sync::{Ordering, compiler_fence};
use headwater_host::table::Handle;

use super::Open;

/// `users` comes first: a handler that interrupts its own thread anywhere here finds the rest as it is, or to be left alone.
struct Last {
    /// Calls of the thread that use it, or change it; what is used is not replaced.
    users: Cell<u32>,
    /// Bits of a handle; 0: none.
    handle: Cell<u64>,
    /// From an Arc.
    open: Cell<*const Open>,
}

/// Lets the last socket go when the thread ends.
struct Keeper;

impl Drop for Keeper {
    fn drop(&mut self) {
        forget();
    }
}

thread_local! {
    static LAST: Last = const {
        Last { users: Cell::new(0), handle: Cell::new(0), open: Cell::new(null()) }
    };
    static KEEPER: Keeper = const { Keeper };
}

impl Last {
    /// Another user; how many there are.
    #[inline]
    fn enter(&self) -> u32 {
        let users = self.users.get() + 1;
        self.users.set(users);
        compiler_fence(Ordering::SeqCst);
        users
    }

    #[inline]
    fn leave(&self) {
        compiler_fence(Ordering::SeqCst);
        self.users.set(self.users.get() - 1);
    }

    /// Puts another in its place, by its only user.
    fn replace(&self, handle: u64, open: *const Open) -> Option<Arc<Open>> {
        self.handle.set(0);
        compiler_fence(Ordering::SeqCst);
        let before = self.open.replace(open);
        compiler_fence(Ordering::SeqCst);
        self.handle.set(handle);
        // SAFETY: from `Arc::into_raw`, and nobody else has it now.
        (!before.is_null()).then(|| unsafe { Arc::from_raw(before) })
    }
}

/// A socket in use by a call.
pub struct Using {
    open: *const Open,
    /// It is the thread's last, and not the call's own.
    kept: bool,
}

impl Deref for Using {
    type Target = Open;

    #[inline]
    fn deref(&self) -> &Open {
        // SAFETY: an Arc of the call's or of the thread's, which is not let go while it is used.
        unsafe { &*self.open }
    }
}

impl Drop for Using {
    #[inline]
    fn drop(&mut self) {
        match self.kept {
            true => LAST.with(Last::leave),
            // SAFETY: from `Arc::into_raw`, in `keep`.
            false => drop(unsafe { Arc::from_raw(self.open) }),
        }
    }
}

/// The thread's last socket, if that is it.
#[inline]
pub fn get(h: Handle) -> Option<Using> {
    LAST.with(|last| {
        last.enter();
        if last.handle.get() != h.bits() {
            last.leave();
            return None;
        }
        Some(Using {
            open: last.open.get(),
            kept: true,
        })
    })
}

/// Makes it the thread's last, unless that is in use.
pub fn keep(h: Handle, open: Arc<Open>) -> Using {
    let open = Arc::into_raw(open);
    let kept = LAST.with(|last| {
        let kept = last.enter() == 1 && KEEPER.try_with(|_| ()).is_ok();
        if !kept {
            last.leave();
            return false;
        }
        // It may be closed by that, which may take its time.
        drop(last.replace(h.bits(), open));
        true
    });
    Using { open, kept }
}

/// The thread keeps none, unless it is in use.
pub fn forget() {
    LAST.with(|last| {
        if last.enter() == 1 {
            drop(last.replace(0, null()));
        }
        last.leave();
    });
}
