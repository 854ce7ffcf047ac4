//! Short calls on descriptors that are no sockets: a byte from /dev/zero, a byte to /dev/null.

use std::fs::File;
use std::io::{self, Read, Write};

use headwater_load::latency::Recorder;

use crate::echo::client::measure;
use crate::echo::options::Options;
use crate::until::Until;

/// Pairs of calls between two looks at the clock, which would cost about as much as one of them.
const PAIRS: u64 = 1000;

pub fn run(options: &Options) -> io::Result<()> {
    let mut zero = File::open("/dev/zero")?;
    let mut null = File::options().write(true).open("/dev/null")?;
    let batches = Options {
        until: match options.until {
            Until::Count(calls) => Until::Count(calls.div_ceil(2 * PAIRS)),
            time => time,
        },
        ..options.clone()
    };
    let mut measured = measure(&batches, || {
        let mut right = true;
        for _ in 0..PAIRS {
            let mut byte = [1];
            zero.read_exact(&mut byte)?;
            right &= byte == [0];
            null.write_all(&byte)?;
        }
        Ok(right)
    })?;
    measured.messages *= 2 * PAIRS;
    measured.all_messages *= 2 * PAIRS;
    measured.bytes = measured.messages;
    // Of whole batches.
    measured.latency = Recorder::new();
    measured.print();
    Ok(())
}
