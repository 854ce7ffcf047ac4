//! When requests are sent.

use std::thread;
use std::time::{Duration, Instant};

/// One after the other, or so many a second at even distances, whatever the answers take.
pub struct Pace {
    distance: Option<Duration>,
    due: Option<Instant>,
}

impl Pace {
    pub fn new(rate: Option<f64>) -> Pace {
        Pace {
            distance: rate.map(|rate| Duration::from_secs_f64(1.0 / rate)),
            due: None,
        }
    }

    /// Sleeps until the next request is due, and gives the time at which it is sent. `now` is when the last one ended.
    #[inline]
    pub fn wait(&mut self, now: Instant) -> Instant {
        let Some(distance) = self.distance else {
            return now;
        };
        let due = self.due.unwrap_or(now);
        self.due = Some(due + distance);
        let early = due.saturating_duration_since(now);
        if early.is_zero() {
            return now;
        }
        thread::sleep(early);
        Instant::now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_due_at_even_distances_also_after_a_slow_answer() {
        let mut pace = Pace::new(Some(1000.0));
        let start = Instant::now();
        let ms = Duration::from_millis;
        assert_eq!(pace.wait(start), start);
        assert!(pace.wait(start) >= start + ms(1));
        // Two were due while the last one was under way; they are made up for without a pause.
        let late = start + ms(10);
        assert_eq!(pace.wait(late), late);
        assert_eq!(pace.due, Some(start + ms(3)));
    }

    #[test]
    fn without_a_rate_nothing_waits() {
        let now = Instant::now();
        assert_eq!(Pace::new(None).wait(now), now);
    }
}
