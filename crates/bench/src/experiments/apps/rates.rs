//! For programs that are told how much to do, not for how long.

use std::cell::RefCell;
use std::collections::HashMap;

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
        let key = (job.arm.name, job.placement.name());
        let known = self.0.borrow().get(&key).copied();
        let rate = match known {
            Some(rate) => rate,
            None => run(few)?.rate,
        };
        let wanted = rate * job.time.as_secs_f64() * COLD;
        let sample = run((wanted as u64).max(few / 4))?;
        // Counting may slow a run down; the next must not be shorter for it.
        if job.counter.is_none() {
            self.0.borrow_mut().insert(key, sample.rate);
        }
        Ok(sample)
    }
}
