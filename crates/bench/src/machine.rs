//! What the figures were measured on.

mod calibration;
mod look;
mod network;

use std::collections::BTreeMap;
use std::env;

use rustix::thread::{CpuSet, sched_getaffinity};
use serde::{Deserialize, Serialize};

pub use calibration::Calibration;
pub use network::{free_port, has_cubic, loopback_bytes};

use crate::numbers::number;

#[derive(Clone, Default, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    pub cpu: String,
    pub kernel: String,
    /// The CPUs this process may use; placements take the first two.
    pub cpus: Vec<usize>,
    /// Whether those two are threads of one core.
    pub one_core: Option<bool>,
    /// What chooses the clock rate; none where this system does not.
    pub governor: Option<String>,
    /// How long an idle CPU takes to wake is up to it.
    pub idle_driver: Option<String>,
    pub hypervisor: Option<String>,
    /// What the kernel does about the weaknesses of this CPU, by their names.
    pub mitigations: BTreeMap<String, String>,
    pub memory_bytes: Option<u64>,
    pub congestion: String,
    /// The namespace holds nothing else, so its loop-back counters are ours alone.
    pub own_network: bool,
    /// Over the minute before the start.
    pub load: f64,
    pub version: String,
    pub calibration: Calibration,
}

impl Machine {
    /// Where allowed (root), moves this thread and the programs it starts into a network namespace of their own, with cubic
    /// as its congestion control; HEADWATER_BENCH_NETNS=0 prevents it. Then looks round, and measures for a tenth of a second
    /// or two.
    pub fn enter() -> Machine {
        let own_network = env::var("HEADWATER_BENCH_NETNS").as_deref() != Ok("0")
            && network::own_network().is_ok();
        let cpus = allowed_cpus();
        Machine {
            cpu: look::cpu(),
            kernel: look::line("/proc/sys/kernel/osrelease").unwrap_or_default(),
            one_core: look::one_core(&cpus),
            governor: look::governor(&cpus),
            idle_driver: look::line("/sys/devices/system/cpu/cpuidle/current_driver")
                .filter(|name| name != "none"),
            hypervisor: look::hypervisor(),
            mitigations: look::mitigations(),
            memory_bytes: look::memory_bytes(),
            congestion: look::line("/proc/sys/net/ipv4/tcp_congestion_control").unwrap_or_default(),
            own_network,
            load: look::load(),
            version: env!("CARGO_PKG_VERSION").to_string(),
            calibration: Calibration::measure(&cpus),
            cpus,
        }
    }

    /// One line for the head of a table.
    pub fn describe(&self) -> String {
        format!(
            "{} vCPUs ({}), Linux {}, TCP congestion control {}, {}, load {:.2}, headwater {}",
            self.cpus.len(),
            self.cpu,
            self.kernel,
            self.congestion,
            self.namespace(),
            self.load,
            self.version,
        )
    }

    /// For a report: what it is, and what it is like. What is not known is left out.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = vec![
            ("CPU", self.cpu.clone()),
            ("CPUs", self.cpus_and_cores()),
            ("kernel", format!("Linux {}", self.kernel)),
        ];
        let mut add = |head, value: Option<String>| lines.extend(value.map(|value| (head, value)));
        add("hypervisor", self.hypervisor.clone());
        add("clock rate by", self.governor.clone());
        add("idle driver", self.idle_driver.clone());
        let mitigation = |(name, what): (&String, &String)| format!("{name}: {what}");
        let all: Vec<_> = self.mitigations.iter().map(mitigation).collect();
        add("mitigations", (!all.is_empty()).then(|| all.join("; ")));
        let gib = |bytes: u64| format!("{} GiB", number(bytes as f64 / (1u64 << 30) as f64));
        add("memory", self.memory_bytes.map(gib));
        let network = format!("{}, {}", self.namespace(), self.congestion);
        add("network", Some(network));
        add("load at the start", Some(format!("{:.2}", self.load)));
        for figure in self.calibration.figures() {
            add(figure.head, figure.value.map(figure.show));
        }
        add("headwater", Some(self.version.clone()));
        lines
    }

    fn namespace(&self) -> &'static str {
        match self.own_network {
            true => "own network namespace",
            false => "shared network namespace",
        }
    }

    fn cpus_and_cores(&self) -> String {
        let cores = match self.one_core {
            Some(true) => ", the first two on one core",
            Some(false) => ", the first two on cores of their own",
            None => "",
        };
        format!("{}{cores}", self.cpus.len())
    }
}

fn allowed_cpus() -> Vec<usize> {
    match sched_getaffinity(None) {
        Ok(set) => (0..CpuSet::MAX_CPU)
            .filter(|&cpu| set.is_set(cpu))
            .collect(),
        Err(_) => vec![0],
    }
}

#[cfg(test)]
mod tests;
