//! Congestion control of a path (RFC 9260 section 7.2): a replaceable part.

use core::fmt::Debug;
use core::time::Duration;

use crate::Time;

/// How much may be outstanding on one path. Sizes are bytes of user data.
pub trait CongestionControl: Debug + Send {
    fn window(&self) -> usize;

    /// The slow start threshold.
    fn threshold(&self) -> usize;

    /// A SACK acknowledged `acked` bytes for the first time. `flight_before`: how much was outstanding after data was last sent, that
    /// is, how far the window was used. `recovering`: the association was in Fast Recovery when the SACK came.
    fn on_ack(
        &mut self,
        now: Time,
        acked: usize,
        flight_before: usize,
        cumulative_advanced: bool,
        recovering: bool,
    );

    /// Loss was seen by missing reports; called once per Fast Recovery.
    fn on_loss(&mut self, flight: usize);

    /// T3-rtx has expired.
    fn on_timeout(&mut self);

    /// Data is about to be sent after `idle` without any.
    fn on_idle(&mut self, now: Time, idle: Duration, rto: Duration);

    /// The largest packet has changed.
    fn set_mtu(&mut self, mtu: usize);
}

/// What a packet has besides DATA chunks.
const HEADER: usize = 12;

/// Slow start and congestion avoidance as in RFC 9260 section 7.2.
///
/// One departure: slow start adds all that a SACK acknowledges (`L` of 7.2.1 without bound). Batches of received packets are answered
/// by one SACK, so a small `L` would only make it slow; the sender's limit on bursts keeps the answer to such a SACK smooth.
#[derive(Clone, Debug)]
pub struct Rfc9260 {
    window: usize,
    threshold: usize,
    /// partial_bytes_acked.
    partial: usize,
    /// The largest DATA chunk of a packet, PMDCS.
    chunk: usize,
    /// Nothing was acknowledged or lost so far.
    fresh: bool,
}

impl Rfc9260 {
    pub fn new(mtu: usize) -> Rfc9260 {
        let chunk = mtu.saturating_sub(HEADER).max(1);
        Rfc9260 {
            window: initial_window(chunk),
            threshold: usize::MAX,
            partial: 0,
            chunk,
            fresh: true,
        }
    }

    fn halve_threshold(&mut self) {
        self.threshold = (self.window / 2).max(4 * self.chunk);
        self.partial = 0;
        self.fresh = false;
    }
}

/// RFC 9260 section 7.2.1.
fn initial_window(chunk: usize) -> usize {
    (4 * chunk).min((2 * chunk).max(4404))
}

impl CongestionControl for Rfc9260 {
    fn window(&self) -> usize {
        self.window
    }

    fn threshold(&self) -> usize {
        self.threshold
    }

    fn on_ack(
        &mut self,
        _now: Time,
        acked: usize,
        flight_before: usize,
        cumulative_advanced: bool,
        recovering: bool,
    ) {
        self.fresh = false;
        if recovering || !cumulative_advanced {
            return;
        }
        let used = flight_before >= self.window;
        if self.window <= self.threshold {
            if used {
                self.window = self.window.saturating_add(acked);
            }
            return;
        }
        self.partial += acked;
        if self.partial >= self.window {
            if used {
                self.partial -= self.window;
                self.window += self.chunk;
            } else {
                self.partial = self.window;
            }
        }
    }

    fn on_loss(&mut self, _flight: usize) {
        self.halve_threshold();
        self.window = self.threshold;
    }

    fn on_timeout(&mut self) {
        self.halve_threshold();
        self.window = self.chunk;
    }

    fn on_idle(&mut self, _now: Time, idle: Duration, rto: Duration) {
        let times = idle.as_nanos() / rto.as_nanos().max(1);
        let least = 4 * self.chunk;
        if times == 0 || self.window <= least {
            return;
        }
        self.threshold = self.window;
        self.window = (self.window >> times.min(63)).max(least);
        self.partial = 0;
    }

    fn set_mtu(&mut self, mtu: usize) {
        self.chunk = mtu.saturating_sub(HEADER).max(1);
        self.window = match self.fresh {
            true => initial_window(self.chunk),
            false => self.window.max(self.chunk),
        };
    }
}

#[cfg(test)]
mod tests;
