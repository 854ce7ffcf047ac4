//! Children that end at once, one after the other: alone, or while a connection is open that has been used.

use std::io;

use crate::echo::client::{Trip, measure};
use crate::echo::options::Options;
use crate::echo::result::Measured;
use crate::sys;

/// Enough that the connection is carried where it can be.
const MESSAGES: u32 = 50;

pub fn alone(options: &Options) -> io::Result<()> {
    measure(options, || sys::fork_and_wait().map(|()| true))?.print();
    Ok(())
}

pub fn connected(options: &Options) -> io::Result<Measured> {
    let mut stream = options.connect()?;
    let mut trip = Trip::new(options.size);
    let mut right = true;
    for _ in 0..MESSAGES {
        right &= trip.take(&mut stream)?;
    }
    let mut measured = measure(options, || sys::fork_and_wait().map(|()| true))?;
    measured.verified = right && trip.take(&mut stream)?;
    measured.congestion = stream.congestion();
    Ok(measured)
}
