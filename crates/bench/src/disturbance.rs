//! Whether the machine disturbed a sample: a hypervisor that took CPU time away, or programs that are none of ours.
//!
//! /proc/stat says for each CPU how long it was idle, how long it served interrupts and how much was stolen. What is left of a
//! sample's CPU time, its length times the number of CPUs watched, was used by somebody; what our own programs used is known
//! exactly, and the rest was used by others. Interrupts count as nobody's: whose they are cannot be told, and a kernel may or
//! may not charge them to the program that was interrupted. Where it does they are subtracted twice, and as much less is seen.
//!
//! The file counts in hundredths of a second and cuts off the rest, so a difference may be wrong by one of them for each CPU.
//! Therefore a sample counts as disturbed only above a share *and* above what the counting may err by. Of a sample of 0.1 s
//! on two CPUs that is 20 ms stolen, or 29 ms used by others; of one of 0.4 s the same, or 64 ms used by others. What is less
//! goes unseen, and so do other programs' use of caches and of the memory's bandwidth, a clock rate that falls, other
//! programs on CPUs that are not watched, and a hypervisor that does not tell.

use std::fmt;
use std::fs;
use std::time::Instant;

use headwater_load::sys;
use rustix::param::clock_ticks_per_second;
use serde::{Deserialize, Serialize};

/// Shares of a sample's CPU time from which on it counts as disturbed. Next to nothing is stolen on a quiet host. Of its CPU
/// time one or two per cent go to the kernel's threads, and up to some more, where programs wake each other all the time, to
/// what happens between idling and a program, which nobody is charged for.
const STOLEN: f64 = 0.02;
const FOREIGN: f64 = 0.08;

/// Looks at some CPUs while a sample is taken.
pub struct Watch {
    cpus: Vec<usize>,
    start: Instant,
    own_ns: u64,
    before: Option<Times>,
}

/// What a disturbed sample suffered, as shares of its CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Disturbance {
    /// Taken by the hypervisor.
    pub stolen: f64,
    /// Used by programs that are none of ours.
    pub foreign: f64,
}

impl Watch {
    /// `cpus` are those that the sample's programs may use.
    pub fn start(cpus: &[usize]) -> Watch {
        Watch {
            cpus: cpus.to_vec(),
            before: Times::read(cpus),
            own_ns: own_ns(),
            start: Instant::now(),
        }
    }

    /// After the sample's programs have ended and were waited for, which accounts for them. `others_ns` is the CPU time that
    /// programs of ours which run on have used meanwhile. None where nothing was seen, or /proc/stat cannot be read.
    pub fn stop(self, others_ns: u64) -> Option<Disturbance> {
        let wall_ns = self.start.elapsed().as_nanos() as f64;
        let own_ns = own_ns().saturating_sub(self.own_ns) + others_ns;
        let after = Times::read(&self.cpus)?;
        let spent = after.since(self.before?)?;
        judge(&spent, wall_ns, own_ns as f64, tick_ns())
    }
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [stolen, foreign] = [self.stolen, self.foreign].map(|share| share * 100.0);
        write!(
            f,
            "of the CPU time {stolen:.0} % was stolen and {foreign:.0} % was used by other programs"
        )
    }
}

/// Sums over the CPUs that are watched, in ticks.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
struct Times {
    cpus: u64,
    idle: u64,
    interrupts: u64,
    stolen: u64,
}

impl Times {
    fn read(cpus: &[usize]) -> Option<Times> {
        Times::parse(&fs::read_to_string("/proc/stat").ok()?, cpus)
    }

    /// None where no such CPU is there.
    fn parse(stat: &str, cpus: &[usize]) -> Option<Times> {
        let mut times = Times::default();
        for line in stat.lines() {
            let mut fields = line.split_whitespace();
            let name = fields.next().unwrap_or_default();
            let number = name.strip_prefix("cpu").and_then(|n| n.parse().ok());
            if !number.is_some_and(|number: usize| cpus.contains(&number)) {
                continue;
            }
            let ticks: Vec<u64> = fields.filter_map(|field| field.parse().ok()).collect();
            let &[
                _user,
                _nice,
                _system,
                idle,
                iowait,
                irq,
                softirq,
                stolen,
                ..,
            ] = &ticks[..]
            else {
                return None;
            };
            times.cpus += 1;
            times.idle += idle + iowait;
            times.interrupts += irq + softirq;
            times.stolen += stolen;
        }
        (times.cpus > 0).then_some(times)
    }

    /// None where a CPU has come or gone.
    fn since(self, before: Times) -> Option<Times> {
        // The time spent waiting for input and output is known to step back at times.
        (self.cpus == before.cpus).then(|| Times {
            cpus: self.cpus,
            idle: self.idle.saturating_sub(before.idle),
            interrupts: self.interrupts.saturating_sub(before.interrupts),
            stolen: self.stolen.saturating_sub(before.stolen),
        })
    }
}

fn judge(spent: &Times, wall_ns: f64, own_ns: f64, tick_ns: f64) -> Option<Disturbance> {
    let cpus = spent.cpus as f64;
    let all_ns = wall_ns * cpus;
    let ns = |ticks: u64| ticks as f64 * tick_ns;
    let known_ns = ns(spent.idle) + ns(spent.interrupts) + ns(spent.stolen) + own_ns;
    let (stolen_ns, foreign_ns) = (ns(spent.stolen), (all_ns - known_ns).max(0.0));
    // What is cut off of each CPU's time is as often too much as too little.
    let unsure_ns = 2.0 * tick_ns * cpus.sqrt();
    let is_stolen = stolen_ns >= all_ns * STOLEN && spent.stolen >= 2;
    let is_foreign = foreign_ns >= all_ns * FOREIGN && foreign_ns > unsure_ns;
    (is_stolen || is_foreign).then(|| Disturbance {
        stolen: stolen_ns / all_ns,
        foreign: foreign_ns / all_ns,
    })
}

/// CPU time of this process and of all that it has waited for.
fn own_ns() -> u64 {
    sys::usage_of_all().cpu_ns()
}

fn tick_ns() -> f64 {
    1e9 / clock_ticks_per_second().max(1) as f64
}

#[cfg(test)]
mod tests;
