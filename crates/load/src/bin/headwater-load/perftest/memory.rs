//! What ends of pipes take of this process's address space and memory.

use std::io::{self, Read, Write};
use std::mem;

use rustix::param::page_size;

use crate::perftest::ends::Ends;
use crate::perftest::message::Message;
use crate::perftest::options::Options;
use crate::sys::{self, pages};

const USED_SIZE: usize = 64;

pub fn run(options: &Options) -> io::Result<String> {
    raise_limit()?;
    let pipes = options.count().div_ceil(2).max(1);
    let mut all = Vec::with_capacity(pipes);
    let before = pages()?;
    for made in 0..pipes {
        let ends = Ends::new(options.kind).map_err(|error| too_many(error, made))?;
        if options.used {
            use_both_ways(&ends)?;
        }
        all.push(ends);
    }
    let after = pages()?;
    // They are as many as may be: the end of the process closes them.
    mem::forget(all);
    let per_end = |which: usize| {
        after[which].saturating_sub(before[which]) as f64 * page_size() as f64 / (2 * pipes) as f64
    };
    Ok(format!(
        "{{\"streams\":{},\"address_space\":{:.0},\"resident\":{:.0}}}",
        2 * pipes,
        per_end(0),
        per_end(1),
    ))
}

/// Says how far it got, and what the limit was.
fn too_many(error: io::Error, made: usize) -> io::Error {
    if error.raw_os_error() != Some(libc::EMFILE) {
        return error;
    }
    let ([_, limit], streams) = (sys::descriptors(), 2 * made);
    io::Error::other(format!(
        "no more descriptors after {streams} streams; the hard limit is {limit}"
    ))
}

/// A message in each direction that the kind has.
fn use_both_ways(ends: &Ends) -> io::Result<()> {
    let message = Message::new(USED_SIZE);
    let mut received = [0; USED_SIZE];
    let Ends { reading, writing } = ends;
    for (mut from, mut to) in [(writing, reading), (reading, writing)] {
        from.write_all(message.bytes())?;
        to.read_exact(&mut received)?;
        message.compare(&received, true)?;
    }
    Ok(())
}

/// As many descriptors as the hard limit allows; as root 65536 where it is lower.
fn raise_limit() -> io::Result<()> {
    const WANTED: u64 = 65536;
    let [_, hard] = sys::descriptors();
    let raised = sys::allow_descriptors([hard.max(WANTED); 2]);
    raised.or_else(|_| sys::allow_descriptors([hard; 2]))
}
