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

use headwater_load::raw;
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
    raw::both_ends().0
}

fn tick_ns() -> f64 {
    1e9 / clock_ticks_per_second().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: f64 = 1e7;

    const BEFORE: &str = "\
cpu  3571889 2164897 1428772 6757999 55036 0 123288 14710 0 0
cpu0 1818217 1061710 765528 3323998 14755 0 67376 7456 0 0
cpu1 1753671 1103186 663243 3434001 40280 0 55911 7254 0 0
intr 101133633 0 0
ctxt 1
";

    /// So many ticks later, on each CPU: used, idle, waited for a disk, served interrupts, stolen.
    fn after(spent: [[u64; 5]; 2]) -> String {
        let [a, b] = spent;
        format!(
            "cpu  1 1 1 1 1 1 1 1 0 0\ncpu0 {} 1061710 765528 {} {} 0 {} {} 0 0\ncpu1 {} 1103186 663243 {} {} 0 {} {} 0 0\n",
            1818217 + a[0],
            3323998 + a[1],
            14755 + a[2],
            67376 + a[3],
            7456 + a[4],
            1753671 + b[0],
            3434001 + b[1],
            40280 + b[2],
            55911 + b[3],
            7254 + b[4],
        )
    }

    fn disturbed(
        cpus: &[usize],
        spent: [[u64; 5]; 2],
        seconds: f64,
        own: f64,
    ) -> Option<Disturbance> {
        let before = Times::parse(BEFORE, cpus).unwrap();
        let spent = Times::parse(&after(spent), cpus).unwrap().since(before);
        judge(&spent.unwrap(), seconds * 1e9, own * 1e9, TICK)
    }

    #[test]
    fn what_our_own_programs_use_disturbs_nobody() {
        let both = [[40, 0, 0, 0, 0]; 2];
        assert_eq!(disturbed(&[0, 1], both, 0.4, 0.79), None);
        let mostly_idle = [[3, 30, 5, 2, 0], [0, 40, 0, 0, 0]];
        assert_eq!(disturbed(&[0, 1], mostly_idle, 0.4, 0.02), None);
    }

    #[test]
    fn a_program_that_shares_a_cpu_with_ours_disturbs() {
        let both = [[40, 0, 0, 0, 0]; 2];
        let found = disturbed(&[0, 1], both, 0.4, 0.6).unwrap();
        assert!((found.foreign - 0.25).abs() < 1e-9 && found.stolen == 0.0);
        // Nobody looks at the second CPU.
        let second = [[2, 38, 0, 0, 0], [40, 0, 0, 0, 0]];
        assert_eq!(disturbed(&[0], second, 0.4, 0.02), None);
        assert!(disturbed(&[0, 1], second, 0.4, 0.02).is_some());
    }

    #[test]
    fn stolen_time_disturbs_and_is_nobodys_use() {
        let stolen = [[36, 0, 0, 0, 4], [0, 40, 0, 0, 0]];
        let found = disturbed(&[0, 1], stolen, 0.4, 0.36).unwrap();
        assert!((found.stolen - 0.05).abs() < 1e-9 && found.foreign < 1e-9);
        assert_eq!(
            found.to_string(),
            "of the CPU time 5 % was stolen and 0 % was used by other programs"
        );
    }

    #[test]
    fn interrupts_are_nobodys() {
        let network = [[20, 0, 0, 20, 0], [20, 5, 0, 15, 0]];
        assert_eq!(disturbed(&[0, 1], network, 0.4, 0.4), None);
    }

    #[test]
    fn a_short_sample_is_not_suspected_for_what_was_cut_off() {
        // A tick too little on each CPU.
        assert_eq!(disturbed(&[0, 1], [[9, 0, 0, 0, 0]; 2], 0.1, 0.18), None);
        assert_eq!(
            disturbed(&[0, 1], [[9, 0, 0, 0, 1], [10, 0, 0, 0, 0]], 0.1, 0.19),
            None
        );
        // A program that never rests is seen in it all the same.
        assert!(disturbed(&[0, 1], [[10, 0, 0, 0, 0]; 2], 0.1, 0.1).is_some());
        assert!(disturbed(&[0, 1], [[8, 0, 0, 0, 2], [10, 0, 0, 0, 0]], 0.1, 0.18).is_some());
    }

    #[test]
    fn a_long_sample_may_have_a_little_company() {
        assert_eq!(
            disturbed(&[0, 1], [[500, 500, 0, 0, 2]; 2], 10.0, 9.2),
            None
        );
        assert!(disturbed(&[0, 1], [[500, 500, 0, 0, 2]; 2], 10.0, 8.2).is_some());
        assert!(disturbed(&[0, 1], [[500, 480, 0, 0, 20]; 2], 10.0, 9.9).is_some());
    }

    #[test]
    fn what_cannot_be_read_disturbs_nobody() {
        assert_eq!(Times::parse("", &[0]), None);
        assert_eq!(Times::parse(BEFORE, &[7]), None);
        assert_eq!(Times::parse("cpu0 1 2 3\n", &[0]), None);
        let [one, two] = [&[0][..], &[0, 1]].map(|cpus| Times::parse(BEFORE, cpus).unwrap());
        assert_eq!((one.cpus, two.cpus), (1, 2));
        assert_eq!(two.since(one), None);
        assert_eq!(one.since(two), None);
    }

    #[test]
    fn this_machine_can_be_watched() {
        let watch = Watch::start(&[0, 1, 2, 3]);
        assert!(watch.before.is_some());
        let _ = watch.stop(0);
    }
}
