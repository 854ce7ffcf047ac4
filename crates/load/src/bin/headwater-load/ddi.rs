//! The routines of the DDI/DKI that modules call for each message, by themselves: handing one on, putting one on a queue and taking
//! it off again, making a block and freeing it.
//!
//! ```text
//!   headwater-load ddi putnext|queue|block --seconds S
//! ```
//!
//! Prints one line of JSON.

use std::cell::Cell;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use headwater_streams::ddi::{M_DATA, Message, qinit};
use headwater_streams::exec::perimeter::Perimeter;
use headwater_streams::exec::{Queue, attach};
use libc::c_int;

use crate::sys::clock_ns;
use crate::{Ended, Words, seconds};

#[derive(Clone, Copy, ValueEnum)]
enum Work {
    Putnext,
    Queue,
    Block,
}

#[derive(Parser)]
#[command(name = "headwater-load ddi", no_binary_name = true)]
struct Options {
    work: Work,
    #[arg(long = "seconds", default_value = "1", value_parser = seconds)]
    time: Duration,
}

impl Words for Options {}

/// Calls between two looks at the clock.
const BATCH: u64 = 10_000;
/// Bytes of a message.
const SIZE: usize = 64;

thread_local! {
    static COME: Cell<Option<Message>> = const { Cell::new(None) };
}

/// A module that keeps what comes.
unsafe extern "C-unwind" fn keep(_: Queue, m: Message) -> c_int {
    COME.set(Some(m));
    0
}

static KEEPS: qinit = qinit::of(Some(keep), None);

pub fn main(words: impl Iterator<Item = String>) -> Ended {
    let options = Options::read(words)?;
    let perimeter = Perimeter::fresh();
    let _inside = perimeter.enter();
    let [above, below] = [(); 2].map(|()| attach::alloc_pair(perimeter, null_mut()));
    // SAFETY: procedures that may be called with any queue.
    unsafe { attach::setq(below, Some(&KEEPS), Some(&KEEPS)) };
    attach::link_below(above, below);
    let mut m = Message::data(&[0x5a; SIZE]);
    let (begun, cpu_before) = (Instant::now(), clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID));
    let mut messages = 0;
    while begun.elapsed() < options.time {
        for _ in 0..BATCH {
            m = match options.work {
                Work::Putnext => {
                    above.write().putnext(m);
                    COME.take().expect("it was handed on")
                }
                Work::Queue => {
                    below.putq(m);
                    below.getq().expect("it was put there")
                }
                Work::Block => {
                    drop(m);
                    std::hint::black_box(Message::new(M_DATA, SIZE))
                }
            };
        }
        messages += BATCH;
    }
    let measured = serde_json::json!({
        "messages": messages,
        "seconds": begun.elapsed().as_secs_f64(),
        "cpu_ns": clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID) - cpu_before,
    });
    Ok(Some(measured.to_string()))
}
