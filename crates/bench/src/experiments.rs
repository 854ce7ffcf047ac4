//! The experiments by name.

mod apps;
mod costs;
mod lan;
mod netperf;
mod pipe;
mod printed;
mod ranges;
mod sctp;
mod sockets;
mod speed;
mod tcp;
mod udp;
mod work;
mod xti;

pub use sockets::experiment as sockets;
pub use work::Works;

use crate::experiment::Arm;
use crate::tables;

type Make = fn() -> Works;

/// Every experiment that `headwater bench` knows, in the order in which they run.
const ALL: [(&str, Make); 11] = [
    ("sockets", sockets::experiment),
    ("costs", costs::experiment),
    ("pipe", pipe::experiment),
    ("xti", xti::experiment),
    ("udp", udp::experiment),
    ("tcp", tcp::experiment),
    ("sctp", sctp::experiment),
    ("speed", speed::experiment),
    ("lan", lan::experiment),
    ("apps", apps::experiment),
    ("netperf", netperf::experiment),
];

pub fn names() -> [&'static str; 11] {
    ALL.map(|(name, _)| name)
}

pub fn by_name(name: &str) -> Option<Works> {
    let found = ALL.iter().find(|(known, _)| *known == name);
    found.map(|(_, experiment)| experiment())
}

fn all() -> impl Iterator<Item = Works> {
    ALL.iter().map(|(_, experiment)| experiment())
}

/// Every arm of every experiment.
pub fn arms() -> Vec<Arm> {
    let cells = all().flat_map(|experiment| experiment.cells());
    cells.flat_map(|cell| cell.arms).collect()
}

pub fn print_list(is_chosen: impl Fn(&str) -> bool) {
    for experiment in all().filter(|experiment| is_chosen(experiment.name)) {
        let name = experiment.name;
        let describe = tables::texts(name).map_or("", |texts| &texts.describe);
        println!("{name}: {}", describe);
        for cell in experiment.cells() {
            let arms: Vec<&str> = cell.arms.iter().map(|arm| arm.name).collect();
            println!("  {name}/{:<22} {}", cell.name, arms.join(" "));
        }
    }
}

#[cfg(test)]
mod tests;
