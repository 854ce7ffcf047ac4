//! Two ordinary programs that measure a local network, one serving, one driving: round trips, runs of sends with one reply,
//! requests and responses of different sizes, and one-way streams.
//!
//! ```text
//!   headwater-load lan serve WORK ADDR     prints its address, serves one connection after the other until its input ends
//!   headwater-load lan drive WORK ADDR     measures WORK against it
//!   headwater-load lan raw WORK            both ends, over the channel instead of a socket
//!   headwater-load lan post WIRE           one-way messages over pipe, ring, or straight into the reader's memory (posted)
//! ```
//!
//! WORK is `exchange`, `connects` (an exchange on a connection of its own, each time) or `stream`; both ends are given the same
//! sizes. ADDR is HOST:PORT (port 0 takes a free one) or unix:PATH. Every received byte is compared with what must come.

mod connects;
mod exchange;
mod interval;
pub mod link;
mod measure;
mod options;
mod post;
mod raw;
pub mod result;
pub mod serve;
pub mod stream;

use std::io;

use link::Link;
use options::{Options, Role, Work};
use result::Driven;

use crate::net::Stream;
use crate::{Ended, Words};

pub fn main(words: impl Iterator<Item = String>) -> Ended {
    let options = Options::read(words)?;
    run(&options)?;
    Ok(None)
}

fn run(options: &Options) -> io::Result<()> {
    let driven = match options.role {
        Role::Serve => return serve::run(options),
        Role::Drive => drive(options, || {
            Stream::connect(&options.address, options.setup()).map(Link::Socket)
        }),
        Role::Raw => raw::run(options),
        Role::Post => post::run(options),
    }?;
    result::print(&driven)?;
    if driven.verified {
        return Ok(());
    }
    Err(headwater_load::wrong_bytes("what came back"))
}

/// Measures the work over links that `open` makes.
fn drive(options: &Options, open: impl FnMut() -> io::Result<Link>) -> io::Result<Driven> {
    match options.work {
        Work::Exchange => exchange::drive(options, open),
        Work::Connects => connects::drive(options, open),
        Work::Stream | Work::Post(_) => stream::drive(options, open),
    }
}
