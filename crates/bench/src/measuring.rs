//! Takes the samples: every arm of a cell in turn, round after round, so that whatever drifts drifts for all.

use std::time::{Duration, Instant};

use crate::ctrl_c;
use crate::disturbance::Watch;
use crate::effort::Effort;
use crate::experiment::{Cell, Job, Sample, Site};
use crate::experiments::Works;
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::placement::Placement;
use crate::process::{Running, bounds};
use crate::progress::Progress;
use crate::syscalls::Counter;
use crate::verdict::{Series, Syscalls};

/// How often a round that the machine disturbed is taken again; then it counts as it is.
const AGAIN: usize = 2;

/// The samples of one cell in one placement.
pub struct Measured {
    pub all: Vec<Series>,
    /// Rounds that were taken again, since the machine disturbed them; those that it still did, which count.
    pub disturbed: u64,
    pub kept: u64,
}

/// How a run goes on.
pub struct Pace<'a> {
    pub progress: &'a Progress,
    /// How long the cell was expected to take.
    pub takes: Duration,
    /// Nothing is taken again later than that.
    pub until: Option<Instant>,
}

/// Measures one cell in one placement. `None`: the run was interrupted, or its time is over. But wrong bytes are told of
/// whatever else happens.
pub fn measure(
    experiment: &Works,
    site: &Site,
    cell: &Cell,
    placement: Placement,
    effort: Effort,
    pace: Pace<'_>,
) -> Result<Option<Measured>> {
    let mut all: Vec<Series> = cell
        .arms
        .iter()
        .filter(|arm| arm.only.is_empty() || arm.only.contains(&placement))
        .map(|&arm| Series::new(arm))
        .collect();
    let busy = match placement.disturb(&site.tools, &site.machine.cpus) {
        Ok(busy) => busy,
        Err(_) if ctrl_c::asked_soon() => return Ok(None),
        Err(failure) => {
            let words = failure.to_string();
            all.iter_mut()
                .for_each(|series| series.failures.push(words.clone()));
            return Ok(Some(Measured {
                all,
                disturbed: 0,
                kept: 0,
            }));
        }
    };
    let cpus = placement.cpus(&site.machine.cpus);
    let job = |series: &Series| Job {
        site,
        cell,
        arm: series.arm,
        placement,
        time: effort.time,
        counter: None,
        silent: false,
    };
    let step = pace.takes / (effort.pairs * all.len()).max(1) as u32;
    let busy_ns = || busy.as_ref().map_or(0, Running::cpu_ns);
    let (mut disturbed, mut kept, mut cut) = (0, 0, false);
    'rounds: for _ in 0..effort.pairs {
        for again in (0..=AGAIN).rev() {
            let mut round = Vec::with_capacity(all.len());
            let mut calm = true;
            for series in &mut all {
                if bounds::are_over() {
                    cut = true;
                    break 'rounds;
                }
                let (watch, others) = (Watch::start(&cpus), busy_ns());
                let take = |series: &Series| experiment.sample(&job(series));
                round.push(series.attempt(effort.failures, take));
                calm &= watch.stop(busy_ns() - others).is_none();
                if interrupt::asked() {
                    cut = true;
                    break 'rounds;
                }
            }
            let late = pace.until.is_some_and(|until| Instant::now() > until);
            if calm || again == 0 || late {
                kept += !calm as u64;
                all.iter_mut()
                    .zip(round)
                    .for_each(|(series, sample)| series.samples.push(sample));
                pace.progress.step(step * all.len() as u32);
                break;
            }
            disturbed += 1;
        }
    }
    if effort.count && !cut {
        for series in all.iter_mut().filter(|series| series.has_samples()) {
            // The rates are there; they are worth having without.
            if bounds::are_over() {
                break;
            }
            match count_syscalls(experiment, &job(series)) {
                Ok(counted) => series.syscalls = counted,
                Err(failure) if failure.is_wrong_contents() => series.note(&failure, 1),
                Err(_) => {}
            }
            if interrupt::asked() {
                cut = true;
                break;
            }
        }
    }
    drop(busy);
    let wrong = all.iter().any(|series| series.wrong_contents);
    Ok((!cut || wrong).then_some(Measured {
        all,
        disturbed,
        kept,
    }))
}

impl Series {
    /// One sample, unless this arm has failed too often or cannot work here at all.
    fn attempt(
        &mut self,
        limit: usize,
        take: impl FnOnce(&Series) -> Result<Sample>,
    ) -> Option<Sample> {
        if self.failures.len() >= limit {
            return None;
        }
        match take(self) {
            Ok(sample) => Some(sample),
            Err(_) if ctrl_c::asked_soon() => None,
            Err(failure) => {
                let final_one = matches!(failure, Failure::Missing(_));
                self.note(&failure, if final_one { limit } else { 1 });
                None
            }
        }
    }

    fn note(&mut self, failure: &Failure, times: usize) {
        self.wrong_contents |= failure.is_wrong_contents();
        self.failures.extend(vec![failure.to_string(); times]);
    }
}

/// A short and a longer run: the difference leaves out what starting and ending cost.
fn count_syscalls(experiment: &Works, job: &Job<'_>) -> Result<Option<Syscalls>> {
    let run = |time: Duration| -> Result<(f64, f64, &'static str)> {
        let counter = Counter::start();
        let sample = experiment.sample(&Job {
            time,
            counter: Some(&counter),
            ..*job
        });
        let method = counter.method();
        // The tracer's threads end with the programs, also where those failed.
        let calls = counter.finish();
        Ok((calls as f64, sample?.all_messages as f64, method))
    };
    let (few_calls, few, _) = run(job.time / 4)?;
    let (many_calls, many, method) = run(job.time)?;
    // Programs that cannot be made to run longer, or were not watched; ptrace that was denied.
    if many < few * 1.25 || many_calls == 0.0 {
        return Ok(None);
    }
    Ok(Some(Syscalls {
        per_message: ((many_calls - few_calls) / (many - few)).max(0.0),
        method: method.to_string(),
    }))
}

#[cfg(test)]
mod tests;
