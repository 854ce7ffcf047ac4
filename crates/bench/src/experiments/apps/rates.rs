//! For programs that are told how much to do, not for how long.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::experiment::{Job, Sample};
use crate::failure::Result;

/// Programs that have no warm-up take so many times as long as others: their connections begin within the sample.
pub const COLD: f64 = 2.0;

/// Messages a second that were seen lately, by arm and placement.
#[derive(Default)]
pub struct Rates(RefCell<HashMap<(&'static str, &'static str), f64>>);

impl Rates {
    /// Runs as many messages as the job's time suffices for, by what was seen before; the first time by a run of `few`.
    pub fn sample(
        &self,
        job: &Job<'_>,
        few: u64,
        run: impl Fn(u64) -> Result<Sample>,
    ) -> Result<Sample> {
        let time = job.time.mul_f64(COLD);
        self.within(job, few, time, few / 4..=u64::MAX, run)
    }

    /// As many as so much time suffices for, and no less or more than these.
    pub fn within(
        &self,
        job: &Job<'_>,
        few: u64,
        time: Duration,
        bounds: RangeInclusive<u64>,
        run: impl Fn(u64) -> Result<Sample>,
    ) -> Result<Sample> {
        let key = (job.arm.name, job.placement.name());
        let known = self.0.borrow().get(&key).copied();
        let rate = match known {
            Some(rate) => rate,
            None => run(few)?.rate,
        };
        let wanted = (rate * time.as_secs_f64()) as u64;
        let sample = run(wanted.clamp(*bounds.start(), *bounds.end()))?;
        // Counting may slow a run down; the next must not be shorter for it.
        if job.counter.is_none() {
            self.0.borrow_mut().insert(key, sample.rate);
        }
        Ok(sample)
    }
}
