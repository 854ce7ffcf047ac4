//! What tells a reader that a message is there: a count of messages that it waits for, kept by the kernel or in shared memory.

use std::fs::File;
use std::io::{self, Read, Write};
use std::mem;
use std::os::fd::FromRawFd;
use std::ptr;
use std::sync::Arc;

use headwater_channel::sync::{AtomicU32, Ordering};
use headwater_channel::sys as clock;
use headwater_channel::wait::{Learner, Outcome};

use crate::sys::{check, map_shared};

/// Shared by the two processes that a fork makes.
#[derive(Clone)]
pub enum Signal {
    /// A system call for each message on both sides.
    Eventfd(Arc<File>),
    /// None while both are awake: the reader spins, then yields, then sleeps.
    Semaphore(&'static Semaphore),
}

impl Signal {
    pub fn eventfd() -> io::Result<Signal> {
        // SAFETY: no pointers are passed.
        let fd = unsafe { libc::eventfd(0, libc::EFD_SEMAPHORE | libc::EFD_CLOEXEC) };
        check(fd)?;
        // SAFETY: eventfd has just given us this descriptor.
        Ok(Signal::Eventfd(Arc::new(unsafe { File::from_raw_fd(fd) })))
    }

    pub fn semaphore() -> io::Result<Signal> {
        Semaphore::new().map(Signal::Semaphore)
    }

    /// Says that one more message is there.
    #[inline]
    pub fn post(&self) -> io::Result<()> {
        match self {
            Signal::Eventfd(fd) => (&**fd).write_all(&1u64.to_ne_bytes()),
            Signal::Semaphore(semaphore) => {
                semaphore.post();
                Ok(())
            }
        }
    }

    /// Waits until a message is there that was not waited for yet.
    #[inline]
    pub fn wait(&self, learner: &Learner) -> io::Result<()> {
        match self {
            Signal::Eventfd(fd) => (&**fd).read_exact(&mut [0; 8]),
            Signal::Semaphore(semaphore) => {
                semaphore.wait(learner);
                Ok(())
            }
        }
    }
}

/// A semaphore with one waiter.
#[repr(C, align(128))]
pub struct Semaphore {
    count: AtomicU32,
    /// Not 0: who posts must wake.
    asleep: AtomicU32,
    /// Where the last post came from, which says whether spinning makes sense.
    poster: AtomicU32,
}

impl Semaphore {
    /// In memory that a child shares. It is never given back.
    fn new() -> io::Result<&'static Semaphore> {
        let memory = map_shared(mem::size_of::<Semaphore>(), None)?;
        // SAFETY: as many zeroes, valid atomics, page-aligned and never unmapped.
        Ok(unsafe { &*memory.cast() })
    }

    #[inline]
    fn post(&self) {
        let cpu = clock::cpu();
        if self.poster.load(Ordering::Relaxed) != cpu {
            self.poster.store(cpu, Ordering::Relaxed);
        }
        // Ordered with the waiter, which says that it sleeps and then looks at the count.
        self.count.fetch_add(1, Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst) != 0 {
            self.futex(libc::FUTEX_WAKE, 1);
        }
    }

    #[inline]
    fn wait(&self, learner: &Learner) {
        while !self.take() {
            let ready = || self.count.load(Ordering::Acquire) != 0;
            let poster = || self.poster.load(Ordering::Relaxed);
            if learner.wait(None, poster, ready) == Outcome::Sleep {
                self.sleep(learner);
            }
        }
    }

    #[inline]
    fn take(&self) -> bool {
        if self.count.load(Ordering::Acquire) == 0 {
            return false;
        }
        // Nobody else takes.
        self.count.fetch_sub(1, Ordering::Acquire);
        true
    }

    fn sleep(&self, learner: &Learner) {
        let start = clock::now();
        self.asleep.store(1, Ordering::SeqCst);
        if self.count.load(Ordering::SeqCst) == 0 {
            // Woken, or not asleep at all because the count has changed: the caller looks again in any case.
            self.futex(libc::FUTEX_WAIT, 0);
        }
        self.asleep.store(0, Ordering::Relaxed);
        learner.slept(clock::now() - start);
    }

    fn futex(&self, operation: i32, value: u32) {
        let no_limit = ptr::null::<libc::timespec>();
        // SAFETY: the word outlives the call, which takes no other memory.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.count.as_ptr(),
                operation,
                value,
                no_limit,
            )
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    /// Posts from another thread, now and then late enough to find the waiter asleep.
    fn every_post_ends_one_wait(signal: Signal) {
        const POSTS: u32 = 2_000;
        let poster = signal.clone();
        let posting = thread::spawn(move || {
            for post in 0..POSTS {
                if post % 500 == 0 {
                    thread::yield_now();
                }
                poster.post().unwrap();
            }
        });
        let learner = Learner::new();
        for _ in 0..POSTS {
            signal.wait(&learner).unwrap();
        }
        posting.join().unwrap();
    }

    #[test]
    fn an_eventfd_counts_every_message() {
        every_post_ends_one_wait(Signal::eventfd().unwrap());
    }

    #[test]
    fn a_semaphore_counts_every_message() {
        let signal = Signal::semaphore().unwrap();
        every_post_ends_one_wait(signal.clone());
        let Signal::Semaphore(semaphore) = signal else {
            unreachable!()
        };
        assert_eq!(semaphore.count.load(Ordering::Relaxed), 0);
        assert!(!semaphore.take());
    }
}
