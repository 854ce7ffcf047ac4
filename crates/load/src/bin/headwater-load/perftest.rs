//! The perftest of STREAMS pipes: messages of one size through a pipe, by plain write(2) and read(2). It knows nothing of
//! Headwater but the name of streams_pipe(3), which it finds where the library is preloaded.
//!
//! ```text
//!   headwater-load perftest one KIND SIZE SECONDS      one process writes until the pipe takes no more, then reads everything
//!   headwater-load perftest two KIND SIZE SECONDS      one process writes, a child of it reads; both wait for each other
//!   headwater-load perftest memory KIND COUNT [--used]   what so many ends of pipes that do nothing take
//! ```
//!
//! KIND is streams, pipe or unix. Every message carries its number, which is compared when it is read; during the warm-up all
//! of its bytes are.

mod ends;
mod fill;
mod flow;
mod memory;
mod message;
mod options;
mod result;

use std::io;

use options::{Mode, Options};

use crate::{Ended, Words};

pub fn main(words: impl Iterator<Item = String>) -> Ended {
    let options = Options::read(words)?;
    if options.on_eof {
        // Whoever watches is then in time to see the writer begin.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
    }
    let outcome = match options.mode {
        Mode::One => fill::run(&options),
        Mode::Two => flow::run(&options),
        Mode::Memory => memory::run(&options),
    };
    Ok(Some(outcome?))
}
