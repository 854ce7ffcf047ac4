//! SCTP: within the host through shared memory against the kernel's TCP, over UDP with every packet on the wire, by sockets, with loss,
//! the engine alone in memory, and many associations.

mod alone;
mod lossy;
mod programs;
mod shared;
mod wire;

use shared::{NAGLE, SCTP};

use super::asked::Asked;
use super::printed::parse;
use super::ranges::{self, Beside};
use super::work::{Work, Works};
use super::xti::flow::highest;
use super::xti::{UNDISTURBED, rate, sockets};
use crate::conclusion::Conclusion;
use crate::experiment::{Arm, TCP, streams};
use crate::placement::Placement::{Apart, Same};
use crate::report::CellReport;
use crate::sizes;

/// The program that speaks SCTP by its Rust API.
const NAME: &str = "headwater-load sctpperf";

/// One data unit that never ends: every send says that it goes on.
pub const SCTP_MORE: Arm = streams("sctp-more");

pub fn experiment() -> Asked {
    let mut works: Vec<Box<dyn Work>> = Vec::new();
    works.extend(shared::works().map(|pair| Box::new(pair) as Box<dyn Work>));
    works.extend(wire::works().map(|wire| Box::new(wire) as Box<dyn Work>));
    works.extend(programs::works());
    works.push(Box::new(lossy::Lossy::default()));
    works.extend(alone::works());
    Asked {
        works: Works {
            name: "sctp",
            describe: "SCTP against the kernel's TCP and another stack; the engine alone; many associations",
            works,
        },
        question: "How fast is SCTP in user space, within the host and with every packet on the wire, beside the kernel's TCP?",
        method: "One-way messages of one size through /dev/sctp_t and through sockets, with a message for each send and as one \
                 message that never ends; round trips; associations for one byte each; iperf3; a lossy wire; the engine alone in \
                 memory; many associations. The artificial priorities are -20 and 19; without the privilege for that, 0 and 19.",
        usual: |cell| match cell.work.as_str() {
            "udp" => &[Apart],
            _ => &[Apart, Same],
        },
        conclude,
    }
}

fn conclude(cells: &[CellReport]) -> Conclusion {
    const SHARED: (&str, &str) = ("shm", "SCTP within the host");
    const WIRE: (&str, &str) = ("udp", "SCTP over UDP");
    let beside = [(0, NAGLE), (1, sockets(highest().0)), (3, SCTP_MORE)];
    let beside = beside.map(|(column, arm)| Beside { column, arm });
    let over = |cell, against: Arm, words| {
        sizes::headline(cells, (cell, Apart), (SCTP.name, against.name), words)
    };
    let of = "SCTP within the host, over the kernel's TCP";
    let headlines = [
        over(
            "shm-64",
            NAGLE,
            ("64-byte messages one way, on two CPUs", of),
        ),
        over(
            "shm-1024",
            NAGLE,
            ("1 KiB messages one way, on two CPUs", of),
        ),
        over("rr-1", TCP, ("a round trip of one byte, on two CPUs", of)),
    ];
    let mut plots = sizes::four(cells, SHARED.0, SHARED.1, NAGLE.name);
    // Nothing of the kernel's sends messages there.
    plots.extend(sizes::four(cells, WIRE.0, WIRE.1, ""));
    let sheets = [SHARED, WIRE].map(|(work, title)| sizes::sheets(cells, work, title));
    Conclusion {
        plots,
        sheets: sheets.into_iter().flatten().collect(),
        seeds: ranges::TCP.seeds(cells, SHARED.0, &beside),
        headlines: headlines.into_iter().flatten().collect(),
        ..Conclusion::default()
    }
}
