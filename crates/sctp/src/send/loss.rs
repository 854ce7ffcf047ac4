//! T3, and paths that go.

use super::Sender;
use super::outstanding::State;
use crate::{PathId, Paths, Time, Timer, Timers};

impl Sender {
    /// T3 has expired: everything in flight on the path is to be sent again, and may again be fast retransmitted. Errors are counted and
    /// the RTO is backed off by the caller.
    pub fn on_t3(&mut self, now: Time, id: PathId, paths: &mut Paths, timers: &mut Timers) {
        timers.stop(Timer::T3(id));
        let Some(path) = paths.get_mut(id) else {
            return;
        };
        if path.flight > 0 {
            path.window.on_timeout();
        }
        self.forward_timed_out(id);
        self.lose_all(now, id, paths);
        self.debug_check(paths);
    }

    /// The path is about to go: what is in flight there is to be sent again, on another.
    pub fn remove_path(&mut self, now: Time, id: PathId, paths: &mut Paths, timers: &mut Timers) {
        timers.stop(Timer::T3(id));
        self.forward_timed_out(id);
        self.lose_all(now, id, paths);
        self.out.forget_path(id);
        self.debug_check(paths);
    }

    fn lose_all(&mut self, now: Time, id: PathId, paths: &mut Paths) {
        self.recovery = None;
        self.fast = false;
        self.probe = None;
        let side = self.out.side(id);
        side.timed = None;
        side.ceiling = 0;
        // What is given up meanwhile may add chunks at the end, which are not in flight.
        loop {
            let place = self.out.earliest(id);
            if place >= self.out.next() {
                break;
            }
            self.out.get_mut(place).timed_out = true;
            self.lose(now, place, paths);
        }
        // Nothing is in flight there any more, and what was may again be fast retransmitted.
        self.out.side(id).round += 1;
        self.advance();
    }

    /// A chunk in flight is lost.
    pub(super) fn lose(&mut self, now: Time, place: u64, paths: &mut Paths) {
        let chunk = *self.out.get(place);
        if chunk.state != State::InFlight {
            return;
        }
        if chunk.abandoned {
            self.out.land(place, State::Skipped, paths);
            return;
        }
        self.out.land(place, State::Lost, paths);
        if self.gives_up(&chunk, now) {
            self.abandon(chunk.slot);
        }
    }
}
