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
        let child = fork(|| {
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

/// Runs `work` in a child, which ends well if that returns true.
pub fn fork(work: impl FnOnce() -> io::Result<bool>) -> io::Result<i32> {
    // SAFETY: this process has no other thread; the child only uses what it inherits and ends with _exit.
    let child = unsafe { libc::fork() };
    sys::check(child)?;
    if child > 0 {
        return Ok(child);
    }
    sys::end_with_parent();
    let code = match work() {
        Ok(true) => 0,
        Ok(false) => 1,
        Err(error) => {
            eprintln!("headwater-load lan: {error}");
            1
        }
    };
    // SAFETY: ends the child without running the parent's destructors.
    unsafe { libc::_exit(code) }
}

/// Waits for the children to end; whether all did well, and what they used.
pub fn reap(children: &[i32]) -> io::Result<Served> {
    let mut verified = true;
    for &child in children {
        let mut status = 0;
        // SAFETY: the pointer outlives the call; the child is ours and not yet reaped.
        sys::check(unsafe { libc::waitpid(child, &mut status, 0) })?;
        verified &= status == 0;
    }
    Ok(Served {
        connections: children.len() as u64,
        spent: sys::usage_of(libc::RUSAGE_CHILDREN),
        verified,
        ..Served::default()
    })
}
