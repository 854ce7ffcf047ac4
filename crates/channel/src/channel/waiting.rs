//! Waiting for data or room: spin and yield as far as it pays, then sleep on {bell, shadow}.
//!
//! Who takes a ring of the bell holds the *hand-off*: it goes on to the other sleepers of this end when the work is done, or before the
//! next sleep. Ends that several processes share sleep in slices, since a kill can swallow a ring or a hand-off.

use core::time::Duration;
use std::time::Instant;

use super::error::Stop;
use super::{Channel, Patience};
use crate::wait::{Learner, Outcome};
use crate::waiter::{self, Place};
use crate::{bell, sys};

/// What a call waits for.
#[derive(Clone, Copy)]
pub(super) enum Want {
    Data,
    Room(usize),
}

/// The duty to settle, if a ring was taken.
pub(super) struct HandOff<'a> {
    channel: &'a Channel,
    held: bool,
}

/// Longest sleep on a shared end, in nanoseconds.
const SLICE: u64 = Duration::from_millis(500).as_nanos() as u64;

impl Channel {
    /// Waits until it is worth looking again. The condition need not hold afterwards.
    pub(super) fn wait<'a>(
        &'a self,
        want: Want,
        patience: Patience,
        hand_off: &mut HandOff<'a>,
    ) -> Result<(), Stop> {
        let left = match patience {
            Patience::Now => return Err(Stop::WouldBlock),
            Patience::Forever => None,
            Patience::Until(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(Stop::WouldBlock);
                }
                Some(u64::try_from(left.as_nanos()).unwrap_or(u64::MAX))
            }
        };
        self.enter();
        let holds = || self.holds(want);
        if self.spin && self.learner(want).wait(None, || self.peer_cpu(), holds) == Outcome::Ready {
            return Ok(());
        }
        if hand_off.pass() {
            // The ring was for another thread: let it come first, or we take it again at once.
            sys::sched_yield();
        }
        waiter::sleep(&mut AtBell {
            channel: self,
            want,
            left,
            rung: false,
            hand_off,
        })
    }

    fn learner(&self, want: Want) -> &Learner {
        match want {
            Want::Data => &self.reading,
            Want::Room(_) => &self.writing,
        }
    }

    #[inline]
    fn holds(&self, want: Want) -> bool {
        match want {
            Want::Data => !self.incoming().is_empty(),
            Want::Room(wanted) => self.outgoing().has_room(wanted),
        }
    }

    fn is_over(&self, want: Want) -> bool {
        match want {
            Want::Data => self.peer_finished(),
            Want::Room(_) => self.peer_gone() || self.own_end().is_finished(),
        }
    }

    /// Rings our own bell if somebody else still sleeps here and need not.
    fn settle(&self) -> bool {
        let readers = self.incoming().settle_readers();
        let writers = self.outgoing().settle_writers();
        if readers || writers {
            bell::ring(self.own_bell());
        }
        readers || writers
    }
}

/// A thread asleep at the bell and the shadow.
struct AtBell<'a, 'b> {
    channel: &'a Channel,
    want: Want,
    left: Option<u64>,
    rung: bool,
    hand_off: &'b mut HandOff<'a>,
}

impl Place for AtBell<'_, '_> {
    type Slept = Result<(), Stop>;

    fn arm(&mut self) {
        match self.want {
            Want::Data => self.channel.incoming().readers().enter(),
            Want::Room(_) => self.channel.outgoing().writers().enter(),
        }
    }

    fn look(&mut self) -> Option<Result<(), Stop>> {
        let found = self.channel.holds(self.want) || self.channel.is_over(self.want);
        found.then_some(Ok(()))
    }

    fn sleep(&mut self) -> Result<(), Stop> {
        let channel = self.channel;
        let bell = sys::entry(channel.own_bell(), libc::POLLIN);
        let mut fds = [bell, channel.poll_shadow(matches!(self.want, Want::Data))];
        let timeout = match self.left {
            left if channel.is_shared() => Some(left.map_or(SLICE, |left| left.min(SLICE))),
            left => left,
        };
        let start = sys::now();
        let slept = sys::ppoll(&mut fds, timeout);
        channel.learner(self.want).slept(sys::now() - start);
        match slept {
            Ok(_) => {
                self.rung = fds[0].revents != 0;
                channel.note_shadow(fds[1].revents);
                Ok(())
            }
            Err(libc::EINTR) => Err(Stop::Interrupted),
            // Out of kernel memory: look again, and sleep then.
            Err(_) => Ok(()),
        }
    }

    fn disarm(&mut self) {
        let another = match self.want {
            Want::Data => self.channel.incoming().reader_wakes(),
            Want::Room(_) => self.channel.outgoing().writer_wakes(),
        };
        if another {
            bell::ring(self.channel.own_bell());
        }
    }

    fn take(&mut self) -> bool {
        self.rung && bell::take(self.channel.own_bell())
    }

    fn settle(&mut self) -> bool {
        self.hand_off.held = true;
        false
    }
}

impl<'a> HandOff<'a> {
    pub fn new(channel: &'a Channel) -> HandOff<'a> {
        HandOff {
            channel,
            held: false,
        }
    }

    /// Settles, if it must; true if somebody was rung.
    fn pass(&mut self) -> bool {
        core::mem::take(&mut self.held) && self.channel.settle()
    }
}

impl Drop for HandOff<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.held {
            self.pass();
        }
    }
}
