//! What acceleration costs where it does not help: calls on other descriptors, connections that idle, a server with little
//! to do, starting and forking.

mod calls;
mod idle;
mod load;
mod start;

use super::printed::Told;
use super::sockets::echo::serve;
use super::work::{Work, Works};
use crate::cells::CellReport;
use crate::conclude;
use crate::conclusion::Conclusion;
use crate::experiment::{ACCELERATED, Arm, Metric, NATIVE};

const ARMS: [Arm; 2] = [NATIVE, ACCELERATED];
/// How much longer than others a sample is that waits for most of its time.
const LONGER: u32 = 5;

pub fn experiment() -> Works {
    let works = [calls::works(), idle::works(), load::works(), start::works()];
    Works::new("costs", works.into_iter().flatten(), conclude)
}

fn conclude(cells: &[CellReport]) -> Conclusion {
    let plots = [("costs", conclude::pairs("costs", "costs"))];
    let sheets = [
        ("time", Metric::Time),
        ("cpu", Metric::CpuShare),
        ("memory", Metric::Memory),
    ];
    Conclusion {
        sheets: sheets
            .map(|(name, metric)| conclude::costs(name, metric, cells))
            .into(),
        ..conclude::compared("costs", &plots, &[], cells)
    }
}
