//! A locked stretch of work on one ring. Its end releases the lock, wakes the peer and settles.

use core::time::Duration;
use std::time::Instant;

use super::error::Stop;
use super::waiting::HandOff;
use super::{Channel, Patience};
use crate::identity;
use crate::lock::{Lock, Owner, Taken};
use crate::ring::{Corrupt, Ring};
use crate::sync::{AtomicUsize, Ordering};
use crate::{bell, sys};

/// Which ring, and so which of its locks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    Sending,
    Receiving,
}

/// Threads of this process that hold a reservation or a frame; 0: none.
#[derive(Default)]
pub(super) struct Holders([AtomicUsize; 2]);

pub(super) struct Section<'a> {
    channel: &'a Channel,
    work: Work,
    owner: Owner,
    taken: Taken,
    /// The program holds it: other threads' waits are their own, this thread's would be for itself.
    lent: bool,
    /// Passed on after the lock was released.
    hand_off: Option<HandOff<'a>>,
}

/// Turns of waiting for a lock: before a call that may not wait gives up, and before the others nap between turns.
const PATIENT_TURNS: u32 = 100;
const NAP_AFTER: u32 = 1_000;
const NAP: u64 = Duration::from_micros(50).as_nanos() as u64;

impl Channel {
    /// Enters a section. Sections of the channel's own calls are short; only a reservation or a frame in the program's
    /// hands can make this wait.
    #[inline(always)]
    pub(super) fn section(&self, work: Work, patience: Patience) -> Result<Section<'_>, Stop> {
        let owner = self.enter();
        let lock = self.lock_of(work);
        let taken = if lock.try_lock(owner) {
            Taken::Free
        } else {
            self.contend(work, lock, owner, patience)?
        };
        let section = Section {
            channel: self,
            work,
            owner,
            taken,
            lent: false,
            hand_off: None,
        };
        if taken == Taken::Stolen {
            section.repair()?;
        }
        Ok(section)
    }

    #[cold]
    fn contend(
        &self,
        work: Work,
        lock: &Lock,
        owner: Owner,
        patience: Patience,
    ) -> Result<Taken, Stop> {
        let mut turns = 0;
        let mut stop = Stop::WouldBlock;
        let give_up = || {
            if self.holders.of(work).load(Ordering::Relaxed) == this_thread() {
                stop = Stop::Busy;
                return true;
            }
            turns += 1;
            if turns > NAP_AFTER {
                let _ = sys::ppoll(&mut [], Some(NAP));
            }
            match patience {
                Patience::Now => turns > PATIENT_TURNS,
                Patience::Until(deadline) => Instant::now() >= deadline,
                Patience::Forever => false,
            }
        };
        lock.lock_unless(owner, identity::dead, give_up).ok_or(stop)
    }

    fn lock_of(&self, work: Work) -> &Lock {
        let rings = &self.header().rings;
        match work {
            Work::Sending => &rings[self.side.index()].writer.lock,
            Work::Receiving => &rings[self.side.peer().index()].reader.lock,
        }
    }
}

impl<'a> Section<'a> {
    #[inline]
    pub fn ring(&self) -> Ring<'a> {
        match self.work {
            Work::Sending => self.channel.outgoing(),
            Work::Receiving => self.channel.incoming(),
        }
    }

    /// Keeps the hand-off until the work is done.
    pub fn carry(&mut self, hand_off: HandOff<'a>) {
        self.hand_off = Some(hand_off);
    }

    /// The section goes into the program's hands.
    pub fn lend(&mut self) {
        self.hand_off = None;
        self.lent = true;
        let holder = self.channel.holders.of(self.work);
        holder.store(this_thread(), Ordering::Relaxed);
    }

    /// Still this process's? Not in a child of fork that inherited a copy.
    pub fn is_ours(&self) -> bool {
        identity::me() == self.owner
    }

    /// What the dead owner left half done.
    fn repair(&self) -> Result<(), Corrupt> {
        match self.work {
            Work::Sending => self.ring().recover_producer(),
            Work::Receiving => self.ring().recover_consumer(),
        }
    }
}

impl Drop for Section<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.lent {
            let holder = self.channel.holders.of(self.work);
            holder.store(0, Ordering::Relaxed);
            // A fork's copy of a reservation or frame: the lock is the parent's.
            if !self.is_ours() {
                return;
            }
        }
        self.channel.lock_of(self.work).unlock_fenced();
        let ring = self.ring();
        let sleeps = match self.work {
            Work::Sending => ring.wakes_reader(),
            Work::Receiving => ring.wakes_writer(),
        };
        // A dead owner may have published or consumed without ringing.
        if sleeps || self.taken == Taken::Stolen {
            bell::ring(self.channel.peer_bell());
        }
    }
}

impl Holders {
    fn of(&self, work: Work) -> &AtomicUsize {
        &self.0[work as usize]
    }
}

/// A number of this thread's own; never 0.
fn this_thread() -> usize {
    thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| here as *const u8 as usize)
}
