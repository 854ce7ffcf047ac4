//! A lock in shared memory that can be taken over when its owner's process has died.
//!
//! Sections are short and never block, so a waiter spins, yields, and only then asks whether the owner still lives. From then
//! on it naps: an owner of lower priority on the same CPU would not be let on by yields, and one that was stopped is not to
//! cost a CPU. The owner word names the process, not the thread: no thread leaves a section without releasing it except with its process.

use crate::shm::SharedSafe;
use crate::sync::{AtomicU64, Ordering, relax};

/// {process id: 24, start time: 20, pid namespace: 20}; never zero. See [`Owner::new`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Owner(u64);

/// Linux's PID_MAX_LIMIT is 2^22: what is larger is nobody.
const PID_BITS: u32 = 24;
const START_BITS: u32 = 20;
const NS_BITS: u32 = 20;
const NS_AT: u32 = PID_BITS + START_BITS;

impl Owner {
    /// No process at all, unlike any that can be.
    pub const NOBODY: Owner = Owner(mask(PID_BITS));

    /// `start` is field 22 of /proc/PID/stat; `ns` the pid namespace's inode. Each is 0 where it is not known. Of both the lowest bits
    /// are kept: the kernel gives out the inodes one after the other, so those of two namespaces differ there.
    pub const fn new(pid: u32, start: u64, ns: u64) -> Owner {
        Owner(
            pid as u64 & mask(PID_BITS)
                | (start & mask(START_BITS)) << PID_BITS
                | (ns & mask(NS_BITS)) << NS_AT,
        )
    }
    pub const fn from_bits(bits: u64) -> Owner {
        Owner(bits)
    }
    pub const fn bits(self) -> u64 {
        self.0
    }
    pub const fn pid(self) -> u32 {
        (self.0 & mask(PID_BITS)) as u32
    }
    pub const fn start(self) -> u32 {
        (self.0 >> PID_BITS & mask(START_BITS)) as u32
    }
    pub const fn namespace(self) -> u32 {
        (self.0 >> NS_AT) as u32
    }
    /// Are both known to be in one pid namespace? Then the numbers mean the same.
    pub const fn is_beside(self, other: Owner) -> bool {
        self.namespace() != 0 && self.namespace() == other.namespace()
    }
}

const fn mask(bits: u32) -> u64 {
    (1 << bits) - 1
}

/// How a lock was come by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// Nobody held it.
    Free,
    /// Its owner died inside: what the lock protects must be repaired before use.
    Stolen,
}

#[derive(SharedSafe)]
#[repr(C)]
pub struct Lock(AtomicU64);

/// Turns of spinning before the waiter begins to yield, and yields before it suspects the owner.
const SPINS: u32 = if cfg!(loom) { 1 } else { 200 };
const YIELDS: u32 = if cfg!(loom) { 1 } else { 50 };

impl Lock {
    #[cfg(not(loom))]
    pub const fn new() -> Lock {
        Lock(AtomicU64::new(0))
    }
    #[cfg(loom)]
    pub fn new() -> Lock {
        Lock(AtomicU64::new(0))
    }

    #[inline]
    pub fn try_lock(&self, me: Owner) -> bool {
        self.0
            .compare_exchange(0, me.0, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Takes the lock. `dead` tells whether an owner's process is gone; it is asked rarely.
    #[inline]
    pub fn lock(&self, me: Owner, dead: impl FnMut(Owner) -> bool) -> Taken {
        if self.try_lock(me) {
            return Taken::Free;
        }
        // Never gives up, so there is always an answer.
        self.lock_slow(me, dead, || false).unwrap_or(Taken::Free)
    }

    /// As [`lock`](Lock::lock), but returns `None` once `give_up` says so. It is asked after each yield, and may nap.
    #[inline]
    pub fn lock_unless(
        &self,
        me: Owner,
        dead: impl FnMut(Owner) -> bool,
        give_up: impl FnMut() -> bool,
    ) -> Option<Taken> {
        if self.try_lock(me) {
            return Some(Taken::Free);
        }
        self.lock_slow(me, dead, give_up)
    }

    #[cold]
    fn lock_slow(
        &self,
        me: Owner,
        mut dead: impl FnMut(Owner) -> bool,
        mut give_up: impl FnMut() -> bool,
    ) -> Option<Taken> {
        let mut turns = 0u32;
        #[cfg(not(loom))]
        let mut waited = crate::sys::Turns::default();
        loop {
            let seen = self.0.load(Ordering::Relaxed);
            if seen == 0 {
                if self.try_lock(me) {
                    return Some(Taken::Free);
                }
                continue;
            }
            turns = turns.wrapping_add(1);
            if turns < SPINS {
                relax();
                continue;
            }
            #[cfg(not(loom))]
            waited.give_way();
            #[cfg(loom)]
            relax();
            if turns.is_multiple_of(YIELDS)
                && dead(Owner(seen))
                && self
                    .0
                    .compare_exchange(seen, me.0, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            {
                return Some(Taken::Stolen);
            }
            if give_up() {
                return None;
            }
        }
    }

    /// Releases, and is a full fence: what was published inside is ordered before whatever the caller looks at next
    /// (the other end's "ring me" flags).
    #[inline]
    pub fn unlock_fenced(&self) {
        // One instruction instead of two where an exchange is a full fence; elsewhere, and for loom, it is not.
        #[cfg(all(target_arch = "x86_64", not(loom)))]
        self.0.swap(0, Ordering::SeqCst);
        #[cfg(not(all(target_arch = "x86_64", not(loom))))]
        {
            self.0.store(0, Ordering::Release);
            crate::sync::fence(Ordering::SeqCst);
        }
    }

    #[inline]
    pub fn unlock(&self) {
        self.0.store(0, Ordering::Release);
    }

    /// Names `to` as the owner in place of `from`, if that is still so.
    pub fn rename(&self, from: Owner, to: Owner) {
        let _ = self
            .0
            .compare_exchange(from.0, to.0, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Who holds it; zero bits when free. A hint.
    pub fn owner(&self) -> Owner {
        Owner(self.0.load(Ordering::Relaxed))
    }
}

impl Default for Lock {
    fn default() -> Lock {
        Lock::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    /// The state of a thread of this process, as in /proc/PID/stat.
    fn state(thread: i64) -> Option<char> {
        let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).ok()?;
        text.rsplit_once(") ")?.1.chars().next()
    }

    #[test]
    fn who_waits_for_a_stopped_owner_sleeps() {
        static LOCK: Lock = Lock::new();
        let [holder, waiter] = [1, 2].map(|pid| Owner::new(pid, 1, 0));
        LOCK.lock(holder, |_| false);
        let (tell, told) = mpsc::channel();
        let waiting = std::thread::spawn(move || {
            // SAFETY: no arguments.
            tell.send(unsafe { libc::syscall(libc::SYS_gettid) })
                .unwrap();
            LOCK.lock(waiter, |_| false)
        });
        let thread = told.recv().unwrap();
        let until = Instant::now() + Duration::from_secs(10);
        // In a row, which one that only yields is not found in.
        let mut asleep = 0;
        while asleep < 5 && Instant::now() < until {
            asleep = if state(thread) == Some('S') {
                asleep + 1
            } else {
                0
            };
        }
        LOCK.unlock();
        assert_eq!(waiting.join().unwrap(), Taken::Free);
        assert_eq!(asleep, 5);
    }
}
