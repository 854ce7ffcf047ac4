//! What happens when timers expire.

use super::Association;
use crate::{Down, Time, Timer};

impl Association {
    pub(crate) fn on_timeout(&mut self, now: Time) {
        while self.is_open() {
            let Some(timer) = self.timers.expired(now) else {
                break;
            };
            self.stats.timeouts += 1;
            match timer {
                Timer::Init | Timer::Cookie => self.repeat_opening(now),
                Timer::Shutdown => self.repeat_shutdown(now),
                Timer::Guard => self.violation("the shutdown takes too long"),
                Timer::Sack => self.sack_now = true,
                Timer::Reconf => self.repeat_reset(now),
                Timer::Asconf => self.repeat_asconf(now),
                Timer::Autoclose => self.autoclose(now),
                Timer::Expiry => {
                    self.sender.expire(now);
                    self.set_expiry();
                    self.go_on_closing(now);
                }
                Timer::T3(path) => {
                    if self.paths.get(path).is_some() {
                        self.paths[path].rto.back_off();
                        // A closed window is not the path's fault, as long as the peer answers (6.1 A).
                        self.path_error(now, path, true);
                        let of = &mut self.paths[path];
                        let unanswered = if of.heartbeats { of.errors } else { 0 };
                        if of.probing.data_lost(unanswered) {
                            of.probing.black_hole();
                            of.adopt_mtu();
                        }
                        if self.is_open() {
                            self.sender
                                .on_t3(now, path, &mut self.paths, &mut self.timers);
                            self.set_expiry();
                        }
                    }
                }
                Timer::Heartbeat(path) => self.heartbeat_due(now, path),
                Timer::Pmtu(path) => {
                    if let Some(path) = self.paths.get_mut(path) {
                        path.probe = None;
                        path.probing.on_timeout(now);
                        path.adopt_mtu();
                    }
                    self.schedule_probe(path);
                }
            }
        }
    }

    fn autoclose(&mut self, now: Time) {
        let Some(after) = self.config.autoclose else {
            return;
        };
        if now.since(self.last_traffic) < after || !self.sender.is_idle() {
            let from = if self.sender.is_idle() {
                self.last_traffic
            } else {
                now
            };
            self.timers.set(Timer::Autoclose, from + after);
        } else {
            self.shutdown(now);
        }
    }

    /// An error more on this path; whether the association survives it.
    pub(super) fn path_error(&mut self, now: Time, path: crate::path::PathId, counts: bool) {
        self.mark_error(now, path);
        if counts {
            self.errors += 1;
            if self.errors > self.config.association_retransmissions {
                self.end(Down::Unreachable);
            }
        }
    }
}
