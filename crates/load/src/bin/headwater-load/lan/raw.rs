//! Both ends in one program, over the channel alone: what an accelerated connection is built on, and is compared with.

use std::cell::RefCell;
use std::io;

use headwater_channel::{Channel, DEFAULT_RING};

use crate::lan::exchange::Talk;
use crate::lan::link::Link;
use crate::lan::options::Options;
use crate::lan::result::{Driven, Served};
use crate::lan::{drive, serve};
use crate::sys;

pub fn run(options: &Options) -> io::Result<Driven> {
    let children = RefCell::new(Vec::new());
    sys::pin(options.client_cpu.as_slice())?;
    let driven = drive(options, || {
        let ring = options.buffers.unwrap_or(DEFAULT_RING).next_power_of_two();
        let (mine, theirs) = Channel::pair(ring).map_err(io::Error::other)?;
        let mut mine = Some(mine);
        let child = sys::fork("lan", || {
            // Each process keeps its own end only, so that the other notices when it is gone.
            drop(mine.take());
            sys::pin(options.server_cpu.as_slice())?;
            serve::connection(&mut Link::Raw(theirs), &mut Talk::new(options), options)
        })?;
        children.borrow_mut().push(child);
        mine.map(Link::Raw)
            .ok_or_else(|| io::ErrorKind::NotConnected.into())
    })?;
    let served = reap(&children.into_inner())?;
    Ok(Driven {
        verified: driven.verified && served.verified,
        served: Some(served),
        ..driven
    })
}

/// Waits for the children to end; whether all did well, and what they used.
pub fn reap(children: &[i32]) -> io::Result<Served> {
    let mut verified = true;
    for &child in children {
        verified &= sys::wait(child)?;
    }
    Ok(Served {
        connections: children.len() as u64,
        spent: sys::usage_of(libc::RUSAGE_CHILDREN),
        verified,
        ..Served::default()
    })
}
