//! SCTP: within the host through shared memory against the kernel's TCP, over UDP with every packet on the wire, by sockets, with loss,
//! the engine alone in memory, and many associations.

mod alone;
mod lossy;
mod programs;
mod shared;
mod wire;

use shared::NAGLE;

use super::printed::{Told, parse};
use super::ranges;
use super::work::{Work, Works, boxed};
use super::xti::flow::highest;
use super::xti::sockets;
use crate::cells::CellReport;
use crate::conclude;
use crate::conclusion::Conclusion;
use crate::experiment::{Arm, streams};
use crate::sizes;

/// The program that speaks SCTP by its Rust API.
const NAME: &str = "headwater-load sctpperf";

/// One data unit that never ends: every send says that it goes on.
pub const SCTP_MORE: Arm = streams("sctp-more");

pub fn experiment() -> Works {
    let mut works: Vec<Box<dyn Work>> = Vec::new();
    works.extend(boxed(shared::works()));
    works.extend(boxed(wire::works()));
    works.extend(programs::works());
    works.push(Box::new(lossy::Lossy::default()));
    works.extend(alone::works());
    Works::new("sctp", works, conclude)
}

fn conclude(cells: &[CellReport]) -> Conclusion {
    const SHARED: (&str, &str) = ("shm", "SCTP within the host");
    const WIRE: (&str, &str) = ("udp", "SCTP over UDP");
    let beside = [(0, NAGLE), (1, sockets(highest().0)), (3, SCTP_MORE)];
    let mut plots = sizes::four(cells, SHARED.0, SHARED.1, NAGLE.name);
    // Nothing of the kernel's sends messages there.
    plots.extend(sizes::four(cells, WIRE.0, WIRE.1, ""));
    let sheets = [SHARED, WIRE].map(|(work, title)| sizes::sheets(cells, work, title));
    Conclusion {
        plots,
        sheets: sheets.into_iter().flatten().collect(),
        seeds: ranges::TCP.seeds(cells, SHARED.0, &beside),
        headlines: conclude::headlines("sctp", cells),
        ..Conclusion::default()
    }
}
