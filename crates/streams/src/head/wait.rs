//! Waiting at a stream head: spin and yield as far as it pays, then sleep on bell and shadow.
//!
//! Nothing here is owned across the sleep: a cancelled thread or a siglongjmp may leave it, which [`sleepers`] sees to.

use core::time::Duration;

use headwater_channel::bell;
use headwater_channel::ring::Ring;
use headwater_channel::wait::Outcome;
use headwater_channel::waiter::{self, Place};
use headwater_host::poll::{SHARED_SLICE, VAIN_SLICE};
use headwater_host::roster::Entry;
use headwater_host::sync::Ordering;
use headwater_host::sys::Errno;
use headwater_host::table::Handle;
use headwater_host::{counters, next, process, reclaim, signal, stand_in, sys};

use super::arming::Want;
use super::{Head, sleepers};

/// Longest sleep where no descriptor was left for a bell.
pub const WITHOUT_BELL: u64 = Duration::from_millis(10).as_nanos() as u64;

/// Descriptors that a sleep may watch besides.
pub const BESIDE: usize = 2;

/// Waits without a message in the other direction, after which a pipe counts as a one-way stream.
const UNANSWERED: u32 = 8;
/// Pauses, together two or three microseconds, for which a reader of a one-way stream looks away: a wake-up costs ten times
/// that, and the writer puts several messages there meanwhile.
const GATHER: u32 = 128;

impl Head {
    /// Waits until it is worth looking again; `holds` says so without a lock. `deadline` in nanoseconds.
    /// Errors: EINTR when a handler ran that does not restart calls, ETIME at the deadline.
    /// A sleep ends too when one of at most [`BESIDE`] other descriptors has something, as poll(2) tells it there.
    pub fn wait(
        &self,
        want: Want,
        deadline: Option<u64>,
        beside: &mut [libc::pollfd],
        holds: impl Fn() -> bool,
    ) -> Result<(), Errno> {
        if signal::interrupted() {
            return Err(libc::EINTR);
        }
        self.unless_closed(|handle| match self.look(want, &holds) {
            true if signal::interrupted() => Err(libc::EINTR),
            true => Ok(()),
            false => self.doze(handle, want, deadline, beside, holds),
        })
    }

    /// Waits, by `wait`. EBADF where another thread has closed the descriptor meanwhile: what is here by then is not what the call was for.
    fn unless_closed(&self, wait: impl FnOnce(Handle) -> Result<(), Errno>) -> Result<(), Errno> {
        let handle = self.handle();
        let waited = wait(handle);
        match self.handle() == handle {
            true => waited,
            false => Err(libc::EBADF),
        }
    }

    /// Looks for a while, as long as that pays: does it hold, or was the call interrupted?
    pub fn look(&self, want: Want, holds: impl Fn() -> bool) -> bool {
        if !self.has_pipe() {
            return false;
        }
        self.enter();
        // A look is cheaper than a yield in vain.
        if holds() {
            return true;
        }
        if want == Want::DATA {
            self.leave_writer_alone();
        }
        let look = || holds() || signal::interrupted();
        self.learner(want).wait(None, || self.peer_cpu(), look) == Outcome::Ready
    }

    /// As [`wait`](Head::wait), for who has looked long enough.
    pub fn sleep_beside(
        &self,
        want: Want,
        deadline: Option<u64>,
        beside: &mut [libc::pollfd],
        holds: impl Fn() -> bool,
    ) -> Result<(), Errno> {
        self.unless_closed(|handle| self.doze(handle, want, deadline, beside, holds))
    }

    fn doze(
        &self,
        handle: Handle,
        want: Want,
        deadline: Option<u64>,
        beside: &mut [libc::pollfd],
        holds: impl Fn() -> bool,
    ) -> Result<(), Errno> {
        let left = match deadline {
            None => None,
            Some(deadline) => match deadline.saturating_sub(sys::now()) {
                0 => return Err(libc::ETIME),
                left => Some(left),
            },
        };
        let left = stand_in::turn(left);
        self.bell();
        waiter::sleep(&mut AtBell {
            head: self.forever(),
            handle,
            want,
            left,
            beside,
            holds,
            entry: None,
            was_called: false,
            rung: false,
        })
    }

    /// Where nothing goes the other way, looking at each message as it is written would take its line from the writer.
    fn leave_writer_alone(&self) {
        let unanswered = self.unanswered.load(Ordering::Relaxed);
        self.unanswered
            .store(unanswered.saturating_add(1), Ordering::Relaxed);
        if unanswered < UNANSWERED || self.peer_cpu() == sys::cpu() {
            return;
        }
        for _ in 0..GATHER {
            core::hint::spin_loop();
        }
    }

    fn learner(&self, want: Want) -> &headwater_channel::wait::Learner {
        if want.data() {
            &self.reading
        } else {
            &self.writing
        }
    }

    /// True if the bell may have been rung.
    fn sleep(
        &self,
        want: Want,
        left: Option<u64>,
        beside: &mut [libc::pollfd],
    ) -> Result<bool, Errno> {
        let own_bell = self.known_bell();
        let is_vain = self.vain.leaves_bell();
        let bell_poll = sys::entry(if is_vain { -1 } else { own_bell }, libc::POLLIN);
        let shadow_poll = self.shadow_poll();
        let mut fds = [bell_poll, shadow_poll, shadow_poll, shadow_poll];
        let count = 2 + beside.len().min(BESIDE);
        fds[2..count].copy_from_slice(&beside[..count - 2]);
        let slice = if own_bell < 0 || want.banded() {
            WITHOUT_BELL
        } else if is_vain {
            VAIN_SLICE
        } else if self.is_shared() {
            SHARED_SLICE
        } else {
            u64::MAX
        };
        let bound = left.unwrap_or(u64::MAX).min(slice);
        let ts = (bound < u64::MAX).then(|| sys::timespec(bound));
        let ts = ts.as_ref().map_or(core::ptr::null(), |t| t as *const _);
        let begun = sys::now();
        // Without a bell it is but a slice.
        if !signal::begin_nap(signal::ring, own_bell as usize) {
            return Err(libc::EINTR);
        }
        // SAFETY: ts is valid; a cancelled thread leaves here and owns nothing.
        let slept = unsafe { next::ppoll_aside(&mut fds[..count], ts) };
        signal::end_nap();
        counters::add(counters::Counter::Sleeps, 1);
        self.learner(want).slept(sys::now() - begun);
        if slept == Err(libc::EINTR) && signal::interrupted() {
            return Err(libc::EINTR);
        }
        if slept == Ok(0) {
            self.look_for_names();
        }
        if slept.is_ok_and(|n| n > 0) {
            self.words().wakeups.fetch_add(1, Ordering::Relaxed);
            self.note_shadow(fds[1].revents);
            beside[..count - 2].copy_from_slice(&fds[2..count]);
        }
        Ok(is_vain || fds[0].revents != 0)
    }

    /// Wakes the peer after something was published in the outgoing ring (taken from the incoming one), which is given: what was
    /// loaded before the fence need not be loaded again behind it. The lock's release was that fence.
    #[inline(always)]
    pub fn ring_peer_for_data(&self, outgoing: &Ring<'_>) {
        if outgoing.wakes_reader() {
            self.ring_peer();
        }
    }

    #[inline(always)]
    pub fn ring_peer_for_room(&self, incoming: &Ring<'_>) {
        if incoming.wakes_writer() {
            self.ring_peer();
        }
    }

    /// As [`ring_peer_for_room`](Head::ring_peer_for_room), where `opened` says that a band has room again. The ring may be as
    /// full as before, of other bands: the low-water mark says nothing then.
    pub fn ring_peer_for_band(&self, opened: bool) {
        if self.incoming().wakes_writer() || opened && self.incoming().wakes_any_writer() {
            self.ring_peer();
        }
    }

    #[cold]
    pub(super) fn ring_peer(&self) {
        counters::add(counters::Counter::Doorbells, 1);
        if self.peer_bell() >= 0 {
            bell::ring(self.peer_bell());
        }
    }
}

/// A thread asleep at the head's bell and its shadow.
struct AtBell<'a, H> {
    head: &'static Head,
    handle: Handle,
    want: Want,
    left: Option<u64>,
    beside: &'a mut [libc::pollfd],
    holds: H,
    entry: Option<Entry>,
    was_called: bool,
    rung: bool,
}

impl<H: Fn() -> bool> Place for AtBell<'_, H> {
    type Slept = Result<(), Errno>;

    fn arm(&mut self) {
        // It stands in the frame of who waits.
        let frame = (&raw const *self).addr();
        self.entry = Some(sleepers::arm(self.head, self.want, frame));
    }

    fn look(&mut self) -> Option<Result<(), Errno>> {
        if (self.holds)() {
            return Some(Ok(()));
        }
        // Before we were counted, perhaps by somebody who has told the sleepers already.
        let is_gone = self.head.handle() != self.handle || self.head.is_closed();
        is_gone.then_some(Err(libc::EBADF))
    }

    fn sleep(&mut self) -> Result<(), Errno> {
        // SAFETY: what is closed from here on keeps its pipe until we are disarmed, and who called looks at nothing else.
        let rests = unsafe { reclaim::rest() };
        let slept = self.head.sleep(self.want, self.left, self.beside);
        drop(rests);
        self.rung = slept == Ok(true);
        slept.map(drop)
    }

    fn take(&mut self) -> bool {
        self.rung && bell::take(self.head.known_bell())
    }

    fn disarm(&mut self) {
        if let Some(entry) = self.entry {
            self.was_called = sleepers::disarm(self.head, self.want, entry);
        }
    }

    // Not counted any more ourselves: what is there may not be what we wait for, and we would ring for ever.
    fn settle(&mut self) -> bool {
        self.head.settle_for(self.was_called)
    }

    fn woke(&mut self, passed_on: bool) {
        self.head.vain.woke(passed_on, || !(self.holds)());
    }

    fn undisturbed<R>(&mut self, part: impl FnOnce(&mut Self) -> R) -> R {
        process::without_handlers(|| part(self))
    }
}
