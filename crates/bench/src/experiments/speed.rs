//! The Speed library's measurements: a client and a server exchange messages by kernel TCP, by three kinds of signalling, by the
//! library under an unmodified program, and read where they lie; and what sizes, slots, threads, scheduling and many
//! connections do to that.

mod chat;
mod conclude;
mod cost;
mod figures;
mod messages;
mod schedule;
mod seeds;
mod sweeps;
mod way;

use super::work::{Work, Works};
use crate::conclusion::Conclusion;
use crate::experiment::{Cell, Experiment, Job, Sample};
use crate::failure::Result;
use crate::placement::Placement;
use crate::report::CellReport;

pub fn experiment() -> impl Experiment {
    // The most telling ones first: a quick run takes them in this order.
    let works = [
        messages::base(),
        messages::latencies(),
        chat::works(),
        messages::threads(),
        cost::works(),
        sweeps::works(),
        messages::larger(),
        schedule::works(),
    ];
    Speed(Works {
        name: "speed",
        describe: "messages there and back: kernel TCP, three kinds of signalling, Fast Sockets, no copy; a chat",
        works: works.into_iter().flatten().collect::<Vec<Box<dyn Work>>>(),
    })
}

struct Speed(Works);

impl Experiment for Speed {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn describe(&self) -> &'static str {
        self.0.describe()
    }

    fn question(&self) -> &'static str {
        "What does a message from a client to a server and back cost, and how much of that is signalling, how much copying?"
    }

    fn method(&self) -> &'static str {
        "A client writes a message, the server reads it and writes it back, the client reads it; times are given for 100,000 \
         messages, latencies come from runs of their own. Both ends compare the number of every message, and all bytes of the \
         first 64 and of every 64th."
    }

    fn usual_placements(&self, _: &Cell) -> &'static [Placement] {
        &[Placement::Apart]
    }

    fn cells(&self) -> Vec<Cell> {
        self.0.cells()
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        self.0.sample(job)
    }

    fn conclude(&self, cells: &[CellReport]) -> Conclusion {
        conclude::all(cells)
    }
}
