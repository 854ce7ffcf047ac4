//! Congestion control of a path (RFC 9260 section 7.2): a replaceable part.

use core::fmt::Debug;
use core::time::Duration;

use crate::time::Time;

/// How much may be outstanding on one path. Sizes are bytes of user data.
pub trait CongestionControl: Debug + Send {
    /// The congestion window.
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
mod tests {
    use super::*;

    fn ack(control: &mut Rfc9260, acked: usize) {
        let window = control.window();
        control.on_ack(Time(0), acked, window, true, false);
    }

    #[test]
    fn slow_start_doubles_and_avoidance_adds_a_packet_per_window() {
        let mut control = Rfc9260::new(1012);
        assert_eq!(control.window(), 4000);
        ack(&mut control, 4000);
        assert_eq!(control.window(), 8000);
        ack(&mut control, 8000);
        control.on_loss(16_000);
        assert_eq!((control.window(), control.threshold()), (8000, 8000));
        ack(&mut control, 1000);
        for _ in 0..8 {
            ack(&mut control, 1000);
        }
        assert_eq!(control.window(), 9000);
        ack(&mut control, 1000);
        assert_eq!(control.window(), 10_000);
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        let mut control = Rfc9260::new(1012);
        control.on_ack(Time(0), 3000, 3000, true, false);
        control.on_ack(Time(0), 4000, 4000, false, false);
        control.on_ack(Time(0), 4000, 4000, true, true);
        assert_eq!(control.window(), 4000);
    }

    #[test]
    fn a_timeout_leaves_one_packet_and_idleness_halves_down_to_four() {
        let mut control = Rfc9260::new(1012);
        for _ in 0..4 {
            let window = control.window();
            ack(&mut control, window);
        }
        assert_eq!(control.window(), 64_000);
        let rto = Duration::from_secs(1);
        control.on_idle(Time(0), Duration::from_millis(900), rto);
        assert_eq!(control.window(), 64_000);
        control.on_idle(Time(0), rto * 2, rto);
        assert_eq!((control.window(), control.threshold()), (16_000, 64_000));
        control.on_idle(Time(0), rto * 1000, rto);
        assert_eq!(control.window(), 4000);
        control.on_timeout();
        assert_eq!((control.window(), control.threshold()), (1000, 4000));
    }

    #[test]
    fn the_first_window_follows_the_mtu() {
        let mut control = Rfc9260::new(1012);
        control.set_mtu(9012);
        assert_eq!(control.window(), 18_000);
        assert_eq!(Rfc9260::new(1452).window(), 4404);
    }
}
