//! Exchanges on a socket with TCP_NODELAY: round trips, runs of 500 sends with one reply, requests and responses.

use super::super::work::{Work, boxed};
use super::program::{self, Shape};
use super::{BANDWIDTH, ROUND_TRIP};
use crate::carriage::Proof;
use crate::experiment::{ACCELERATED, Cell, Job, RAW_CHANNEL, Sample, TCP, UNIX, Unit};
use crate::failure::Result;
use crate::placement::Placement;

/// Sends that one reply answers.
const BURST: usize = 500;
/// Those that netperf's manual uses, and one of a long response.
pub const TRANSACTIONS: [(usize, usize); 5] =
    [(1, 1), (64, 1024), (100, 200), (128, 8192), (1, 16384)];

pub fn works() -> Vec<Box<dyn Work>> {
    let round_trips = (0..=16).map(|power| Kind::RoundTrip(1 << power));
    let bandwidth =
        [1, 4, 16, 64, 256, 512, 1024, 2048, 4096, 8192, 16384, 65536].map(Kind::Bandwidth);
    let transactions = |kept| TRANSACTIONS.map(|sizes| Kind::Transactions(kept, sizes));
    let transactions = [true, false].into_iter().flat_map(transactions);
    let all = round_trips.chain(bandwidth).chain(transactions);
    boxed(all).collect()
}

/// The cell of a pair of sizes, on a kept connection or on a new one each time.
pub fn transactions(kept: bool, (request, response): (usize, usize)) -> String {
    let word = if kept { "rr" } else { "crr" };
    format!("{word}-{request}x{response}")
}

enum Kind {
    RoundTrip(usize),
    Bandwidth(usize),
    /// A request and its response, on one connection that is kept or on one for each.
    Transactions(bool, (usize, usize)),
}

impl Work for Kind {
    fn cell(&self) -> Cell {
        let (name, unit) = match *self {
            Kind::RoundTrip(size) => (format!("{ROUND_TRIP}-{size}"), Unit::RoundTrip),
            Kind::Bandwidth(size) => (format!("{BANDWIDTH}-{size}"), Unit::Stream),
            Kind::Transactions(kept, sizes) => (transactions(kept, sizes), Unit::Rate),
        };
        let is_new = matches!(self, Kind::Transactions(false, _));
        let mut arms = vec![TCP, ACCELERATED, UNIX];
        if !is_new {
            arms.push(RAW_CHANNEL);
        }
        Cell {
            placements: Placement::UNDISTURBED,
            // A connection for one request rightly ends before it would be taken over.
            proof: if is_new {
                Proof::Loaded
            } else {
                Proof::Carried { ends: 2 }
            },
            ..Cell::new(name, unit, arms)
        }
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        let shape = match *self {
            Kind::RoundTrip(size) => Shape {
                request: size,
                response: size,
                until_known: true,
                ..Shape::new("exchange", "round_trip")
            },
            Kind::Bandwidth(size) => Shape {
                request: size,
                burst: BURST,
                until_known: true,
                ..Shape::new("exchange", "burst")
            },
            Kind::Transactions(kept, (request, response)) => Shape {
                request,
                response,
                ..Shape::new(if kept { "exchange" } else { "connects" }, "transaction")
            },
        };
        program::sample(job, &shape)
    }
}
