//! A client that writes messages and reads them back, its server, and ways of carrying them in between: the program of the
//! Speed library's measurements. Both ends are processes of this one program, the server being a child of the client.
//!
//! ```text
//!   headwater-load speed run CARRIER      messages there and back over so many connections, a thread each
//!   headwater-load speed copy             the four copies of a message there and back, to and from shared memory, and nothing else
//!   headwater-load speed chat CARRIER     rooms of members: a server passes each message on to all of its room
//!
//!   options    what is asked for                        message    numbers and contents        watch    how long calls take
//!   run        client and server of `run`               wire       what they read and write
//!   sockets    the kernel's sockets                      shared     rings of the channel crate   signal   what rings for them
//!   chat       server and members of `chat`              child      a forked process and what it reports
//!   copying    `copy`                                    report     the line of JSON at the end
//! ```
//!
//! CARRIER is `tcp`, `unix` (the kernel hands the data over), `eventfd` (data in shared memory, a descriptor rings for each
//! message), `futex` (the same, a semaphore in shared memory) or `in-place` (as `futex`, read where it lies). A preloaded library
//! may serve `tcp`; the program knows nothing of it.
//!
//! Every message carries its number at the edges of each block of 4096 bytes, which both ends compare; of the first 64 messages
//! and of every 64th one they compare all bytes.

mod chat;
mod child;
mod client;
mod copying;
mod message;
mod options;
mod report;
mod run;
mod server;
mod shared;
mod signal;
mod sockets;
mod tuning;
mod watch;
mod wire;

use std::io;

use options::{Mode, Options};

use crate::{Ended, Words};

pub fn main(words: impl Iterator<Item = String>) -> Ended {
    let options = Options::read(words)?;
    if options.on_eof {
        // Whoever watches is then in time to see both processes.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
    }
    let outcome = tuning::apply(&options).and_then(|()| match options.mode {
        Mode::Run => run::run(&options),
        Mode::Copy => copying::run(&options),
        Mode::Chat => chat::run(&options),
    });
    Ok(Some(outcome?.line()))
}
