//! The experiments by name.

mod sockets;

pub use sockets::Sockets;

use crate::experiment::Experiment;

/// Every name that `headwater bench` knows. Those without an experiment below are still to come.
pub const NAMES: [&str; 10] = [
    "sockets", "pipe", "xti", "udp", "tcp", "sctp", "speed", "lan", "apps", "netperf",
];

pub fn by_name(name: &str) -> Option<Box<dyn Experiment>> {
    match name {
        "sockets" => Some(Box::new(Sockets::new())),
        _ => None,
    }
}

pub fn print_list() {
    for name in NAMES {
        let Some(experiment) = by_name(name) else {
            println!("{name}: not available yet");
            continue;
        };
        println!("{name}: {}", experiment.describe());
        for cell in experiment.cells() {
            let arms: Vec<&str> = cell.arms.iter().map(|arm| arm.name).collect();
            println!("  {name}/{:<22} {}", cell.name, arms.join(" "));
        }
    }
}
