//! One way: writes of one size, as many as fit into the time on one connection, or so many on each of many.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use crate::lan::exchange::Talk;
use crate::lan::link::Link;
use crate::lan::options::Options;
use crate::lan::result::Driven;
use crate::pattern::{Pattern, Place};
use crate::sys::{self, Usage};

pub fn drive(options: &Options, open: impl FnMut() -> io::Result<Link>) -> io::Result<Driven> {
    match options.count {
        None => for_a_time(options, open),
        Some(count) => by_count(options, count, open),
    }
}

fn for_a_time(options: &Options, mut open: impl FnMut() -> io::Result<Link>) -> io::Result<Driven> {
    let mut sender = Sender::new(open()?, options.request);
    let (mut start, mut usage, mut writes) = (Instant::now(), Usage::default(), 0);
    for time in [options.warm_up(), options.time] {
        (start, usage, writes) = (Instant::now(), sys::usage(), 0);
        while start.elapsed() < time {
            writes += sender.some()?;
        }
    }
    let congestion = sender.link.congestion();
    let all_messages = sender.writes;
    let verified = sender.finish()?;
    let time = start.elapsed();
    Ok(Driven {
        messages: writes,
        all_messages,
        bytes: writes * options.request as u64,
        spent: sys::usage().since(usage),
        congestion,
        verified,
        ..Driven::default().timed(time)
    })
}

/// The time is that from the first write until the receiver has everything. The first connection is the warm-up.
fn by_count(
    options: &Options,
    count: u64,
    mut open: impl FnMut() -> io::Result<Link>,
) -> io::Result<Driven> {
    let mut driven = Driven {
        verified: true,
        ..Driven::default()
    };
    let mut usage = Usage::default();
    let mut time = Duration::ZERO;
    for number in 0.. {
        let mut sender = Sender::new(open()?, options.request);
        let start = Instant::now();
        while sender.writes < count {
            sender.one()?;
        }
        driven.congestion = sender.link.congestion();
        driven.verified &= sender.finish()?;
        driven.all_messages += count;
        if number == 0 {
            usage = sys::usage();
            continue;
        }
        time += start.elapsed();
        driven.messages += count;
        if time >= options.time || !driven.verified {
            break;
        }
    }
    driven.bytes = driven.messages * options.request as u64;
    driven.spent = sys::usage().since(usage);
    Ok(driven.timed(time))
}

/// The sending end of a stream.
pub struct Sender {
    pub link: Link,
    pattern: Pattern,
    at: Place,
    size: usize,
    pub writes: u64,
}

impl Sender {
    pub fn new(link: Link, size: usize) -> Sender {
        Sender {
            link,
            pattern: Pattern::new(size),
            at: Place::default(),
            size,
            writes: 0,
        }
    }

    #[inline]
    fn one(&mut self) -> io::Result<()> {
        self.link
            .write_all(self.pattern.piece(self.at, self.size))?;
        self.at.advance(self.size);
        self.writes += 1;
        Ok(())
    }

    /// Asking for the time costs as much as a small write, so not after each.
    pub fn some(&mut self) -> io::Result<u64> {
        let batch = (64 * 1024 / self.size).clamp(1, 64) as u64;
        (0..batch).try_for_each(|_| self.one())?;
        Ok(batch)
    }

    /// Ends the stream; whether the receiver has got all of it, and rightly.
    pub fn finish(mut self) -> io::Result<bool> {
        self.link.finish_writing()?;
        let mut told = [0; 9];
        self.link.read_exact(&mut told)?;
        Ok(told == verdict(self.writes * self.size as u64, true))
    }
}

/// Takes a stream to its end, and tells the sender how much it was and whether it was right.
pub fn serve(link: &mut Link, talk: &mut Talk) -> io::Result<bool> {
    let before = talk.bytes;
    let mut right = true;
    while let Some((_, piece_right)) = talk.hear_some(link, usize::MAX)? {
        right &= piece_right;
    }
    link.write_all(&verdict(talk.bytes - before, right))?;
    Ok(right)
}

/// What the receiver of a stream tells at its end: how many bytes it was, and whether they were right.
pub fn verdict(bytes: u64, right: bool) -> [u8; 9] {
    let mut verdict = [0; 9];
    verdict[..8].copy_from_slice(&bytes.to_le_bytes());
    verdict[8] = right as u8;
    verdict
}
