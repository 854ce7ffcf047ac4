//! The arms without sockets: `headwater-load raw`, which is both ends.

use std::time::Duration;

use super::Told;
use crate::experiment::{CACHE_LINE, Job, Sample};
use crate::failure::Result;
use crate::process::{self, Running};

pub fn sample(job: &Job<'_>, one_way: bool, size: usize) -> Result<Sample> {
    let cpus = &job.site.machine.cpus;
    let cpu = |cpu: Option<usize>| cpu.map_or("any".to_string(), |cpu| cpu.to_string());
    let mut command = job.site.tools.load("raw");
    command
        .arg(if job.arm == CACHE_LINE {
            "cache-line"
        } else {
            "channel"
        })
        .arg(if one_way { "stream" } else { "rtt" })
        .arg(size.to_string())
        .arg(job.time.as_secs_f64().to_string())
        .arg(cpu(job.placement.server_cpu(cpus)))
        .arg(cpu(job.placement.client_cpu(cpus)));
    process::prepare(&mut command, None, None);
    let running = Running::start("headwater-load raw", command)?;
    if let Some(counter) = job.counter {
        counter.watch(running.pid);
    }
    let (_, said) = running.finish(job.time * 20 + Duration::from_secs(10))?;
    Ok(Told::read("headwater-load raw", &said)?.sample())
}
