//! Starting a program that does nothing, and waiting for its end.

use std::time::{Duration, Instant};

use super::{ARMS, Work};
use crate::arms::user;
use crate::exchange;
use crate::experiment::{Cell, Goal, Job, Metric, Proof, Sample, Unit};
use crate::failure::Result;
use crate::placement::Placement;
use crate::process::{self, Running, Usage};
use crate::stats::median;

const NAME: &str = "headwater-echo nothing";
const LIMIT: Duration = Duration::from_secs(10);

pub fn works() -> Vec<Box<dyn Work>> {
    vec![Box::new(Start)]
}

struct Start;

impl Work for Start {
    fn cell(&self) -> Cell {
        Cell {
            goals: vec![Goal::more(Metric::Time, 3e6)],
            placements: &[Placement::Same],
            proof: Proof::Loaded,
            ..Cell::new("start", Unit::Each, ARMS.into())
        }
    }

    /// One start leaves the library's counters, which show that it was there; the others are timed without. System calls
    /// are not counted: a program would be over before it is watched.
    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        let job = &Job {
            counter: None,
            ..*job
        };
        let mut first = job.site.tools.echo();
        first.arg("nothing");
        let (_, counters) = exchange::alone(job, NAME, first)?;
        let (mut times, mut cpu_ns, mut switches) = (Vec::new(), 0, 0);
        let begun = Instant::now();
        while times.is_empty() || begun.elapsed() < job.time {
            let (time, usage) = once(job)?;
            times.push(time.as_nanos() as f64);
            cpu_ns += usage.cpu_ns;
            switches += usage.switches;
        }
        let count = times.len() as f64;
        Ok(Sample {
            messages: times.len() as u64,
            all_messages: times.len() as u64,
            rate: count * 1e9 / times.iter().sum::<f64>(),
            p50_ns: Some(median(&times)),
            cpu_ns: cpu_ns as f64 / count,
            switches: switches as f64 / count,
            counters,
            ..Sample::default()
        })
    }
}

fn once(job: &Job<'_>) -> Result<(Duration, Usage)> {
    let mut command = job.site.tools.echo();
    command.arg("nothing");
    let mut command = user::wrap(job.arm.carrier, command);
    let cpu = job.placement.server_cpu(&job.site.machine.cpus);
    process::prepare(&mut command, cpu, exchange::preload(job, None)?);
    let begun = Instant::now();
    let (usage, _) = Running::start(NAME, command)?.finish(LIMIT)?;
    Ok((begun.elapsed(), usage))
}
