//! What the programs that are measured share with who measures them.
//!
//! ```text
//!   latency   a histogram of times, and what is told of it        raw       a pair of processes over bare memory or the channel
//!   mean      a mean, and how sure it is                          network   congestion control, the loop-back device's counter
//!   sys       system calls that the standard library does not offer
//! ```

pub mod latency;
pub mod mean;
pub mod network;
pub mod raw;
pub mod sys;

use std::{fmt, io};

/// What a program of ours says, among other things, when it ends because received bytes differ from the sent ones.
pub const WRONG_BYTES: &str = "wrong bytes";

/// With this a program ends when received bytes differ from the sent ones; `what` was received wrongly.
#[cold]
pub fn wrong_bytes(what: impl fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{WRONG_BYTES}: {what}"))
}

/// Whether words of a program, or of a failure, tell of [`wrong_bytes`].
pub fn tells_wrong_bytes(words: &str) -> bool {
    words.contains(WRONG_BYTES)
}
