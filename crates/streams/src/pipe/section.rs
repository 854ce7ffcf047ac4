//! Sections under the lock of a ring, which lies where a peer may have written anything.

use core::time::Duration;

use headwater_channel::lock::{Lock, Owner, Taken};
use headwater_channel::ring::Ring;
use headwater_host::process::{self, Quiet};
use headwater_host::sys;

/// Linux's PID_MAX_LIMIT.
const LAST_PID: u32 = 1 << 22;
/// How long an owner is believed whose life can't be asked for, since it is in another pid namespace, in nanoseconds.
const BELIEF: u64 = Duration::from_secs(2).as_nanos() as u64;

/// Handlers are put off until it ends, with a full fence.
pub struct Section<'a> {
    lock: &'a Lock,
    pub taken: Taken,
    _quiet: Quiet,
}

/// Enters; `None` when the lock names an owner that can't be one: the ring is spoiled.
#[inline(always)]
pub fn enter(lock: &Lock) -> Option<Section<'_>> {
    let quiet = Quiet::new();
    let mut doubted = 0;
    let taken = lock.lock_unless(process::owner(), process::dead, || {
        is_nonsense(lock, &mut doubted)
    })?;
    Some(Section {
        lock,
        taken,
        _quiet: quiet,
    })
}

/// As [`enter`] for who reads from a ring, which is mended first where the last reader died. `None` also where it can't be.
#[inline(always)]
pub fn reading<'a>(ring: &Ring<'a>) -> Option<Section<'a>> {
    let section = enter(&ring.state.reader.lock)?;
    if section.taken == Taken::Stolen && ring.recover_consumer().is_err() {
        return None;
    }
    Some(section)
}

/// `doubted`: since when a foreign owner has been seen. One that is not believed any more is nobody from then on, so that each lock is
/// waited for once.
#[cold]
fn is_nonsense(lock: &Lock, doubted: &mut u64) -> bool {
    let owner = lock.owner();
    if owner.bits() == 0 {
        return false;
    }
    if owner.pid() == 0 || owner.pid() > LAST_PID {
        return true;
    }
    if owner.is_beside(process::owner()) {
        *doubted = 0;
        return false;
    }
    let now = sys::now();
    if *doubted == 0 {
        *doubted = now;
    }
    let is_nonsense = now - *doubted > BELIEF;
    if is_nonsense {
        lock.rename(owner, Owner::NOBODY);
    }
    is_nonsense
}

impl Drop for Section<'_> {
    #[inline]
    fn drop(&mut self) {
        self.lock.unlock_fenced();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_that_can_not_be_is_not_waited_for() {
        let lock = Lock::new();
        assert!(lock.try_lock(Owner::from_bits(u64::MAX)));
        assert!(enter(&lock).is_none());
        lock.unlock();
        assert!(lock.try_lock(Owner::new(0, 1, 1)));
        assert!(enter(&lock).is_none());
    }

    #[test]
    fn a_dead_owner_is_followed() {
        process::identify();
        let lock = Lock::new();
        let me = process::owner();
        let dead = Owner::new(me.pid(), me.start() as u64 + 1, me.namespace() as u64);
        assert!(lock.try_lock(dead));
        assert_eq!(enter(&lock).map(|s| s.taken), Some(Taken::Stolen));
        assert_eq!(enter(&lock).map(|s| s.taken), Some(Taken::Free));
    }
}
