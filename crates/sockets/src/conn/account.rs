//! What a connection has moved and was worth, as its listener and the counters are told.

use core::time::Duration;

use headwater_host::counters::{self, Counter, Reason};
use headwater_host::sync::{AtomicU64, Exchange, Ordering};
use headwater_host::sys;

use crate::conn::entries::all;
use crate::conn::{Conn, Phase, Role};
use crate::worth;

/// Of a carried connection: this process took it over; it counts as accelerated; it counts as one that fell back.
pub(super) const TAKEN: u32 = 1;
const MOVED: u32 = 2;
const FELL: u32 = 4;

/// What ended with few calls lived short until this age, in nanoseconds.
const SHORT: u64 = Duration::from_secs(1).as_nanos() as u64;

/// Waits without a message in the other direction, after which a connection counts as a one-way stream.
const UNANSWERED: u32 = 8;

impl Conn {
    pub fn set_account(&self, account: Option<&'static AtomicU64>) {
        let at = account.map_or(core::ptr::null_mut(), |a| {
            a as *const AtomicU64 as *mut AtomicU64
        });
        self.account.store(at, Ordering::Relaxed);
    }

    pub fn account(&self) -> Option<&'static AtomicU64> {
        // SAFETY: null, or a word of a board, which stays for as long as the process lives.
        unsafe { self.account.load(Ordering::Relaxed).as_ref() }
    }

    /// A carried connection ends here, before its traffic is counted: what it was worth is known.
    #[unsafe(link_section = ".text.life")]
    pub fn settle_account(&self) {
        let Some(account) = self.account() else {
            return;
        };
        self.set_account(None);
        // Generations of a segment count its connections.
        let fresh = self.segment_generation.load(Ordering::Relaxed) == 1;
        worth::ended(account, self.uncredited(), fresh);
    }

    /// The same for one that was not taken over.
    pub fn settle_unused(&self) {
        let Some(account) = self.account() else {
            return;
        };
        self.set_account(None);
        if sys::now().saturating_sub(self.since.load(Ordering::Relaxed)) >= SHORT {
            return;
        }
        let forked = self.was_used_by_a_child();
        if worth::is_spent(account, forked) {
            let of_it = |c: &&Conn| c.account().is_some_and(|a| core::ptr::eq(a, account));
            let carried = all().filter(|c| c.phase() == Phase::Carried);
            let units: u64 = carried.filter(of_it).map(Conn::uncredited).sum();
            if units > 0 {
                worth::earned(account, units);
            }
        }
        worth::unused(account, forked);
    }

    fn was_used_by_a_child(&self) -> bool {
        let before = self.inherited.load(Ordering::Relaxed);
        before != 0 && before != self.operations.load(Ordering::Relaxed).wrapping_add(1)
    }

    /// What it moved by the rings and was not credited for, which it is from now on.
    fn uncredited(&self) -> u64 {
        let [bytes_out, out, bytes_in, incoming] =
            [0, 1, 2, 3].map(|i| self.moved[i].load(Ordering::Relaxed));
        let units = worth::units(out + incoming, bytes_out + bytes_in);
        units.saturating_sub(self.credited.fetch_max(units, Ordering::Relaxed))
    }

    /// Counts a ring transfer of this process: bytes and messages out (0) or in (2). Under that direction's lock.
    #[inline]
    pub fn tally(&self, at: usize, bytes: usize) {
        for (word, n) in self.moved[at..at + 2].iter().zip([bytes as u64, 1]) {
            word.store(word.load(Ordering::Relaxed) + n, Ordering::Relaxed);
        }
    }

    /// Messages that this process sent by the ring.
    #[inline]
    pub fn sent(&self) -> u64 {
        self.moved[1].load(Ordering::Relaxed)
    }

    /// A reader is about to wait: is this end in the middle of a stream that it does not answer?
    #[inline]
    pub fn only_receives(&self) -> bool {
        let sent = self.sent();
        let waits = if self.sent_at_wait.load(Ordering::Relaxed) == sent {
            self.waits_unanswered.load(Ordering::Relaxed) + 1
        } else {
            self.sent_at_wait.store(sent, Ordering::Relaxed);
            0
        };
        let waits = waits.min(UNANSWERED);
        self.waits_unanswered.store(waits, Ordering::Relaxed);
        waits == UNANSWERED
    }

    /// The takeover can't go on just now.
    pub fn hold_up(&self, reason: Reason) {
        self.held_up.store(reason as u32 + 1, Ordering::Relaxed);
    }

    /// What the takeover could not go on for, if there was something.
    pub fn held_up_by(&self) -> Option<Reason> {
        let reason = self.held_up.load(Ordering::Relaxed).checked_sub(1);
        reason.map(Reason::of)
    }

    /// Why a connection that ends now was not taken over.
    pub fn reason_left(&self) -> Reason {
        self.held_up_by().unwrap_or_else(|| self.early_end())
    }

    /// It has ended before there was reason to take it over.
    fn early_end(&self) -> Reason {
        if sys::now().saturating_sub(self.since.load(Ordering::Relaxed)) < SHORT {
            Reason::ShortLived
        } else {
            Reason::FewCalls
        }
    }

    /// A carried connection goes back to the kernel.
    pub fn falls_back(&self, reason: Reason) {
        self.account_kept.fetch_or(FELL, Ordering::Relaxed);
        counters::fallback(reason);
    }

    /// The connection ends here, and its traffic was counted: it may have been carried for nothing.
    pub fn count_unused(&self, shared: bool) {
        if !shared && self.account_kept.load(Ordering::Relaxed) == TAKEN {
            self.falls_back(self.early_end());
        }
    }

    /// Adds the rings' traffic to the process's counters. What has none is not accelerated yet.
    pub fn count_traffic(&self) {
        let into = [
            Counter::ShmBytesTx,
            Counter::ShmMsgsTx,
            Counter::ShmBytesRx,
            Counter::ShmMsgsRx,
        ];
        let mut bytes = 0;
        for (at, (word, counter)) in self.moved.iter().zip(into).enumerate() {
            let n = word.swap(0, Ordering::Relaxed);
            if at % 2 == 0 {
                bytes |= n;
            }
            counters::add(counter, n);
        }
        if bytes > 0 && self.account_kept.fetch_or(MOVED, Ordering::Relaxed) & MOVED == 0 {
            counters::add(Counter::Accelerated, 1);
        }
    }

    /// After fork, in the child: what was moved before is the parent's.
    pub fn restart_counts(&self) {
        self.account_kept.change_to(0);
        if self.phase() == Phase::Tracked && self.role() == Role::Server {
            let before = self.operations.load(Ordering::Relaxed).wrapping_add(1);
            self.inherited.store(before, Ordering::Relaxed);
        }
        for word in self.moved.iter().chain([&self.credited]) {
            word.change_to(0);
        }
    }
}
