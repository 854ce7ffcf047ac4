//! The Speed library's measurements: a client and a server exchange messages by kernel TCP, by three kinds of signalling, by the
//! library under an unmodified program, and read where they lie; and what sizes, slots, threads, scheduling and many
//! connections do to that.

mod chat;
mod conclude;
mod copies;
mod cost;
mod figures;
mod messages;
mod schedule;
mod seeds;
mod sweeps;
mod way;

use super::work::{Work, Works};

pub fn experiment() -> Works {
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
    Works::new("speed", works.into_iter().flatten(), conclude::all)
}
