//! SCTP: within the host through shared memory against the kernel's TCP, over UDP with every packet on the wire, by sockets, with loss,
//! the engine alone in memory, and many associations.

mod alone;
mod lossy;
mod programs;
mod shared;
mod wire;

use super::printed::parse;
use super::work::{Work, Works};
use super::xti::{UNDISTURBED, rate, sockets};

/// The program that speaks SCTP by its Rust API.
const NAME: &str = "headwater-sctpperf";

pub fn experiment() -> Works {
    let mut works: Vec<Box<dyn Work>> = Vec::new();
    works.extend(shared::works().map(|pair| Box::new(pair) as Box<dyn Work>));
    works.extend(wire::works().map(|wire| Box::new(wire) as Box<dyn Work>));
    works.extend(programs::works());
    works.push(Box::new(lossy::Lossy::default()));
    works.extend(alone::works());
    Works {
        name: "sctp",
        describe: "SCTP against the kernel's TCP and another stack; the engine alone; many associations",
        works,
    }
}
