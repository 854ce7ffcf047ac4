//! A connection for each exchange, which the server ends, as many protocols of requests do.

use std::io::{self, Read};

use crate::lan::exchange::Talk;
use crate::lan::link::Link;
use crate::lan::measure::measure;
use crate::lan::options::Options;
use crate::lan::result::Driven;

pub fn drive(options: &Options, mut open: impl FnMut() -> io::Result<Link>) -> io::Result<Driven> {
    let mut talk = Talk::new(options);
    let mut congestion = String::new();
    let driven = measure(options, 1, || {
        let mut link = open()?;
        if congestion.is_empty() {
            congestion = link.congestion();
        }
        talk.begin();
        talk.ask(&mut link)?;
        let right = talk.hear(&mut link, options.response)?;
        Ok(right && link.read(&mut [0])? == 0)
    })?;
    Ok(Driven {
        congestion,
        ..driven
    })
}
