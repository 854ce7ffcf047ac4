//! The serving end: one connection after the other, so that no thread has to be made for any.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use headwater_channel::sync::{AtomicBool, AtomicU64, Ordering};

use crate::lan::exchange::Talk;
use crate::lan::link::Link;
use crate::lan::options::{Options, Work};
use crate::lan::result::{Served, print};
use crate::lan::stream;
use crate::net::Listener;
use crate::sys::{self, Usage};

static CONNECTIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
static WRONG: AtomicBool = AtomicBool::new(false);
static BUSY: AtomicBool = AtomicBool::new(false);
/// How long what is under way may take to end, when the input has.
const GRACE: Duration = Duration::from_secs(2);

pub fn run(options: &Options) -> io::Result<()> {
    let listener = Listener::bind(&options.address, options.setup())?;
    println!("listening {}", listener.address(&options.address)?);
    let start = sys::usage();
    thread::spawn(move || end_with_input(start));
    let mut talk = Talk::new(options);
    loop {
        // Closed only when all is counted: then the driver may ask for the result.
        let mut link = Link::Socket(listener.accept(options.setup())?);
        BUSY.store(true, Ordering::SeqCst);
        let before = talk.bytes;
        let outcome = connection(&mut link, &mut talk, options);
        // What went wrong is told at the end: the driver is to see its own part of it first.
        let wrong = outcome.map_or_else(|e| e.kind() == io::ErrorKind::InvalidData, |right| !right);
        count(talk.bytes - before, wrong);
        BUSY.store(false, Ordering::SeqCst);
    }
}

/// A connection has ended, after so many bytes.
pub fn count(bytes: u64, wrong: bool) {
    WRONG.fetch_or(wrong, Ordering::Relaxed);
    BYTES.fetch_add(bytes, Ordering::Relaxed);
    CONNECTIONS.fetch_add(1, Ordering::Release);
}

/// Serves one connection to its end; whether everything in it was right.
pub fn connection(link: &mut Link, talk: &mut Talk, options: &Options) -> io::Result<bool> {
    talk.begin();
    match options.work {
        Work::Stream | Work::Post(_) => stream::serve(link, talk),
        Work::Exchange => exchanges(link, talk),
        Work::Connects => {
            let right = talk.hear_burst(link)?;
            talk.answer(link)?;
            // Whoever left before asking was told nothing wrong.
            Ok(right.unwrap_or(true))
        }
    }
}

fn exchanges(link: &mut Link, talk: &mut Talk) -> io::Result<bool> {
    let mut all_right = true;
    while let Some(right) = talk.hear_burst(link)? {
        all_right &= right;
        talk.answer(link)?;
    }
    Ok(all_right)
}

/// Whoever started this server holds the other end of its standard input, so it never outlives them.
pub fn end_with_input(start: Usage) {
    let _ = io::copy(&mut io::stdin(), &mut io::sink());
    let end = Instant::now() + GRACE;
    while BUSY.load(Ordering::SeqCst) && Instant::now() < end {
        thread::yield_now();
    }
    let served = Served {
        connections: CONNECTIONS.load(Ordering::Acquire),
        bytes: BYTES.load(Ordering::Relaxed),
        spent: sys::usage().since(start),
        verified: !WRONG.load(Ordering::Relaxed),
    };
    let printed = print(&served);
    std::process::exit(printed.is_err() as i32);
}
