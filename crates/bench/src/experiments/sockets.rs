//! Accelerated TCP against the kernel's, UNIX sockets and the raw channel: our own echo pair, then real programs.

pub(super) mod echo;
mod raw;
mod sockperf;

use super::apps;
use super::printed::Told;
use super::work::{Work, Works};
use crate::cells::CellReport;
use crate::conclude::{self, Pair};
use crate::conclusion::Conclusion;
use crate::experiment::{TCP, UNIX};

pub fn experiment() -> Works {
    let programs: Vec<Box<dyn Work>> = vec![
        apps::redis("get", 1, 1),
        apps::redis("set", 1, 1),
        apps::redis("get", 50, 1),
        apps::redis("set", 50, 1),
        apps::redis("get", 50, 16),
        apps::memcached("memcached-get"),
        apps::memcached("memcached-set"),
        apps::iperf("iperf3", 1),
        apps::nginx(1),
        apps::nginx(16),
    ];
    Works::new(
        "sockets",
        [echo::works(), sockperf::works(), programs]
            .into_iter()
            .flatten(),
        conclude,
    )
}

fn conclude(cells: &[CellReport]) -> Conclusion {
    let own = |group| conclude::pairs("sockets", group);
    let installed = [conclude::pairs("apps", "programs"), own("programs")].concat();
    let plots = [
        ("round-trips", own("round-trips")),
        ("streams", own("streams")),
        ("programs", installed),
    ];
    let all = plots.each_ref().map(|(_, pairs)| pairs.clone()).concat();
    let plain = all.iter().filter(|pair| pair.against == TCP.name);
    let over_unix: Vec<Pair> = plain.map(|pair| pair.over(UNIX)).collect();
    let sheets = [("over-tcp", all), ("over-unix", over_unix)];
    conclude::compared("sockets", &plots, &sheets, cells)
}
