//! What ends of pipes take of this process's address space and memory.

use std::fs;
use std::io;
use std::mem;

use crate::perftest::ends::{self, Ends};
use crate::perftest::message::Message;
use crate::perftest::options::Options;
use crate::sys::check;

const USED_SIZE: usize = 64;

pub fn run(options: &Options) -> io::Result<String> {
    raise_limit()?;
    let pipes = options.count().div_ceil(2).max(1);
    let mut all = Vec::with_capacity(pipes);
    let before = Pages::now()?;
    for made in 0..pipes {
        let ends = Ends::new(options.kind).map_err(|error| too_many(error, made))?;
        if options.used {
            use_both_ways(&ends)?;
        }
        all.push(ends);
    }
    let after = Pages::now()?;
    let per_end = |before: usize, after: usize| {
        after.saturating_sub(before) as f64 * page_size() as f64 / (2 * pipes) as f64
    };
    Ok(format!(
        "{{\"streams\":{},\"address_space\":{:.0},\"resident\":{:.0}}}",
        2 * pipes,
        per_end(before.address_space, after.address_space),
        per_end(before.resident, after.resident),
    ))
}

/// Says how far it got, and what the limit was.
fn too_many(error: io::Error, made: usize) -> io::Error {
    if error.raw_os_error() != Some(libc::EMFILE) {
        return error;
    }
    // SAFETY: rlimit is two integers, filled by the call.
    let limit = unsafe {
        let mut limit: libc::rlimit = mem::zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        limit.rlim_max
    };
    let streams = 2 * made;
    io::Error::other(format!(
        "no more descriptors after {streams} streams; the hard limit is {limit}"
    ))
}

/// A message in each direction that the kind has.
fn use_both_ways(ends: &Ends) -> io::Result<()> {
    let message = Message::new(USED_SIZE);
    let mut received = [0; USED_SIZE];
    for (from, to) in [(ends.writing, ends.reading), (ends.reading, ends.writing)] {
        ends::write(from, message.bytes())?;
        ends::read(to, &mut received)?;
        message.compare(&received, true)?;
    }
    Ok(())
}

/// Counts of /proc/self/statm.
struct Pages {
    address_space: usize,
    resident: usize,
}

impl Pages {
    fn now() -> io::Result<Pages> {
        let statm = fs::read_to_string("/proc/self/statm")?;
        let mut numbers = statm.split_whitespace().map(str::parse);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(address_space)), Some(Ok(resident))) => Ok(Pages {
                address_space,
                resident,
            }),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

fn page_size() -> usize {
    // SAFETY: no pointers are passed.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

/// As many descriptors as the hard limit allows; as root 65536 where it is lower.
fn raise_limit() -> io::Result<()> {
    const WANTED: libc::rlim_t = 65536;
    // SAFETY: rlimit is two integers, filled by the first call and only read by the others.
    check(unsafe {
        let mut limit: libc::rlimit = mem::zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        let hard = limit.rlim_max;
        limit.rlim_max = hard.max(WANTED);
        limit.rlim_cur = limit.rlim_max;
        if libc::setrlimit(libc::RLIMIT_NOFILE, &limit) == 0 {
            return Ok(());
        }
        limit.rlim_max = hard;
        limit.rlim_cur = hard;
        libc::setrlimit(libc::RLIMIT_NOFILE, &limit)
    })
}
