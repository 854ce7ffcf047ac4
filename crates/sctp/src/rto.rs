//! Retransmission timeouts (RFC 9260 6.3).

use core::time::Duration;

use crate::RtoLimits;

/// Of one path.
#[derive(Clone, Debug)]
pub struct Rto {
    limits: RtoLimits,
    smoothed: Option<Duration>,
    variation: Duration,
    current: Duration,
}

impl Rto {
    pub fn new(limits: RtoLimits) -> Rto {
        Rto {
            limits,
            smoothed: None,
            variation: Duration::ZERO,
            current: limits.initial,
        }
    }

    pub fn current(&self) -> Duration {
        self.current
    }

    pub fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    pub fn set_limits(&mut self, limits: RtoLimits) {
        self.limits = limits;
        if self.smoothed.is_none() {
            self.current = limits.initial;
        }
        self.current = self.current.clamp(limits.min, limits.max);
    }

    /// A round trip was measured.
    pub fn sample(&mut self, rtt: Duration) {
        let smoothed = match self.smoothed {
            None => {
                self.variation = rtt / 2;
                rtt
            }
            Some(old) => {
                self.variation = (self.variation * 3 + old.abs_diff(rtt)) / 4;
                (old * 7 + rtt) / 8
            }
        };
        self.smoothed = Some(smoothed);
        // The clock has nanoseconds, but a variation of 0 must not make the timeout equal to the round trip (6.3.1 G1).
        let variation = self.variation.max(Duration::from_millis(1));
        self.current = (smoothed + variation * 4).clamp(self.limits.min, self.limits.max);
    }

    /// The timer has expired.
    pub fn back_off(&mut self) {
        self.current = (self.current * 2).min(self.limits.max);
    }
}
