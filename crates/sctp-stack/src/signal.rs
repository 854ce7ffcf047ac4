//! How callers learn that something has changed: a word to sleep at, and a descriptor for poll(2) where one was asked for.

use core::time::Duration;

use headwater_channel::bell;
use headwater_channel::wait::Learner;
use headwater_channel::waiter::{self, Alone};
use headwater_host::sync::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use headwater_host::{hidden, signal, sys};
use headwater_streams::pipe::bell_in;
use syscalls::{Sysno, syscall};

/// Longest sleep beside other descriptors, in nanoseconds.
const SLICE: u64 = Duration::from_millis(20).as_nanos() as u64;

pub struct Signal {
    /// Counts the changes.
    word: AtomicU32,
    sleepers: AtomicU32,
    /// The one that sleeps at the links waits for this; it is woken by the stack's bell.
    led: AtomicU32,
    /// An eventfd; -1: nobody has asked.
    bell: AtomicI32,
    /// It counts more than 0. Changed under the lock of the port's endpoint.
    raised: AtomicBool,
    /// Room to send is worth a ring.
    wants_room: AtomicBool,
    /// The end was taken note of: it is no news any more.
    knows_end: AtomicBool,
    /// Those who sleep beside other descriptors, and an eventfd that wakes them; -1: nobody has yet.
    beside: AtomicU32,
    poke: AtomicI32,
    /// Whether it pays to look for a while before sleeping.
    pub learner: Learner,
}

/// Has who is about to sleep at the word see that it must not.
fn change(word: usize) {
    // SAFETY: a word that somebody is about to sleep at.
    unsafe { &*(word as *const AtomicU32) }.fetch_add(1, Ordering::SeqCst);
}

impl Default for Signal {
    fn default() -> Signal {
        Signal {
            word: AtomicU32::new(0),
            sleepers: AtomicU32::new(0),
            led: AtomicU32::new(0),
            bell: AtomicI32::new(-1),
            raised: AtomicBool::new(false),
            wants_room: AtomicBool::new(false),
            knows_end: AtomicBool::new(false),
            beside: AtomicU32::new(0),
            poke: AtomicI32::new(-1),
            learner: Learner::new(),
        }
    }
}

impl Signal {
    #[inline]
    pub fn changes(&self) -> u32 {
        self.word.load(Ordering::SeqCst)
    }

    /// Something has changed. True: the leader is to be woken, by the stack's bell.
    #[must_use]
    pub fn notify(&self) -> bool {
        self.word.fetch_add(1, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            let wake = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
            // SAFETY: the word lives as long as self.
            let _ = unsafe { syscall!(Sysno::futex, self.word.as_ptr(), wake, i32::MAX) };
        }
        if self.beside.load(Ordering::SeqCst) > 0 {
            bell::ring(self.poke.load(Ordering::Acquire));
        }
        self.led.load(Ordering::SeqCst) > 0
    }

    /// Sleeps until there are other than `seen` changes, or `ns` are over. EINTR; ETIMEDOUT.
    pub fn sleep(&self, seen: u32, ns: Option<u64>) -> sys::Result<()> {
        let ts = ns.map(sys::timespec);
        let ts = ts
            .as_ref()
            .map_or(core::ptr::null(), |t| t as *const libc::timespec);
        let wait = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
        let in_kernel = || {
            let slept = match signal::begin_nap(change, (&raw const self.word).addr()) {
                // SAFETY: the word lives as long as self; the time is null or valid.
                true => unsafe { syscall!(Sysno::futex, self.word.as_ptr(), wait, seen, ts) }
                    .map_err(|e| e.into_raw()),
                false => Err(libc::EINTR),
            };
            signal::end_nap();
            match slept {
                Err(errno @ (libc::EINTR | libc::ETIMEDOUT)) => Err(errno),
                _ => Ok(()),
            }
        };
        self.sleep_counted(&self.sleepers, seen, in_kernel)
    }

    /// As [`Signal::sleep`], of the one that sleeps at the links, by `in_kernel`.
    pub fn sleep_led<T: Default>(
        &self,
        seen: u32,
        in_kernel: impl FnMut() -> sys::Result<T>,
    ) -> sys::Result<T> {
        self.sleep_counted(&self.led, seen, in_kernel)
    }

    /// Who slept so does not any more, and did not return.
    pub fn abandon_led(&self) {
        self.led.store(0, Ordering::SeqCst);
    }

    /// Counted among these: a sleep by `in_kernel`, but where there are other changes by then.
    fn sleep_counted<T: Default>(
        &self,
        among: &AtomicU32,
        seen: u32,
        in_kernel: impl FnMut() -> sys::Result<T>,
    ) -> sys::Result<T> {
        waiter::sleep(&mut Alone {
            arm: || {
                among.fetch_add(1, Ordering::SeqCst);
            },
            look: || (self.changes() != seen).then(|| Ok(T::default())),
            sleep: in_kernel,
            disarm: || {
                among.fetch_sub(1, Ordering::SeqCst);
            },
        })
    }

    /// As [`Signal::sleep`], or until one of `others` is readable: then true.
    pub fn sleep_beside(&self, seen: u32, ns: Option<u64>, others: &[i32]) -> sys::Result<bool> {
        let poke = bell_in(&self.poke)?;
        let mut set = readable([poke].iter().chain(others).copied());
        // One poke may be taken by another thread that sleeps here.
        let slice = ns.map_or(SLICE, |ns| ns.min(SLICE));
        let in_kernel = || sys::ppoll(&mut set, Some(slice));
        let slept = self.sleep_counted(&self.beside, seen, in_kernel);
        if set[0].revents != 0 {
            bell::take(poke);
        }
        slept.map(|_| set[1..].iter().any(|other| other.revents != 0))
    }

    /// The descriptor, made at the first call. Hidden.
    pub fn descriptor(&self) -> sys::Result<i32> {
        bell_in(&self.bell)
    }

    #[inline]
    pub fn has_descriptor(&self) -> bool {
        self.bell.load(Ordering::Acquire) >= 0
    }

    /// Has the descriptor readable, or not. Under the lock of the port's endpoint.
    #[inline]
    pub fn raise(&self, on: bool) {
        if self.raised.load(Ordering::Relaxed) == on {
            return;
        }
        let fd = self.bell.load(Ordering::Acquire);
        if fd < 0 {
            return;
        }
        self.raised.store(on, Ordering::Relaxed);
        if on {
            bell::ring(fd);
        } else {
            bell::take(fd);
        }
    }

    pub fn want_room(&self, on: bool) {
        self.wants_room.store(on, Ordering::SeqCst);
    }

    #[inline]
    pub fn wants_room(&self) -> bool {
        self.wants_room.load(Ordering::Relaxed)
    }

    pub fn note_end(&self) {
        self.knows_end.store(true, Ordering::SeqCst);
    }

    #[inline]
    pub fn knows_end(&self) -> bool {
        self.knows_end.load(Ordering::Relaxed)
    }
}

impl Drop for Signal {
    fn drop(&mut self) {
        hidden::close(*self.bell.get_mut());
        hidden::close(*self.poke.get_mut());
    }
}

/// A set for poll(2) of descriptors that may become readable.
pub fn readable(all: impl Iterator<Item = i32>) -> Vec<libc::pollfd> {
    all.map(|fd| sys::entry(fd, libc::POLLIN)).collect()
}
