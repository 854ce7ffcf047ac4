//! The arms without sockets: `headwater-load raw`, which is both ends.

use super::Told;
use crate::exchange;
use crate::experiment::{CACHE_LINE, Job, Sample};
use crate::failure::Result;

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
    let said = exchange::unplaced(job, "headwater-load raw", command)?;
    Ok(Told::read("headwater-load raw", &said)?.sample())
}
