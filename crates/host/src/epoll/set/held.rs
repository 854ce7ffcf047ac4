//! The inside of a set, for who has its lock.

use super::Set;
use crate::epoll::regs::Inner;
use crate::process::{self, Brief, Section};

/// Access to a set's inside.
pub struct Held<'a, S = Section<'a>> {
    set: &'a Set,
    _section: S,
}

impl<S> core::ops::Deref for Held<'_, S> {
    type Target = Inner;
    fn deref(&self) -> &Inner {
        // SAFETY: the section holds the set's lock.
        unsafe { &*self.set.inner.get() }
    }
}

impl<S> core::ops::DerefMut for Held<'_, S> {
    fn deref_mut(&mut self) -> &mut Inner {
        // SAFETY: the section holds the set's lock, and we are borrowed mutably.
        unsafe { &mut *self.set.inner.get() }
    }
}

impl Set {
    pub fn held(&self) -> Held<'_> {
        Held {
            _section: process::lock_own(&self.lock),
            set: self,
        }
    }

    /// As [`held`](Set::held), for who orders nothing behind it but what is ordered by the same lock.
    pub fn held_briefly(&self) -> Held<'_, Brief<'_>> {
        Held {
            _section: process::lock_own_briefly(&self.lock),
            set: self,
        }
    }

    /// Sets are looked at from others, whose locks are held, and a fork takes all of them.
    pub(super) fn held_unless_forking(&self) -> Option<Held<'_>> {
        Some(Held {
            _section: process::lock_own_unless(&self.lock, crate::epoll::is_held)?,
            set: self,
        })
    }
}
