//! The command line.

use std::time::Duration;

use clap::{Parser, ValueEnum};

use crate::net::Setup;
use crate::{Words, seconds, size};

#[derive(Clone, Copy, PartialEq, Debug, ValueEnum)]
pub enum Role {
    Serve,
    Drive,
    Raw,
    Post,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Work {
    Exchange,
    Connects,
    Stream,
    Post(Wire),
}

/// What carries the messages of `post`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Wire {
    Pipe,
    Ring,
    Posted,
}

#[derive(Clone, Debug, Parser)]
#[command(name = "headwater-load lan", no_binary_name = true)]
pub struct Options {
    pub role: Role,
    /// exchange, connects or stream; with `post`: pipe, ring or posted
    #[arg(value_parser = work)]
    pub work: Work,
    /// HOST:PORT or unix:PATH, with `serve` and `drive`
    #[arg(default_value = "")]
    pub address: String,
    /// Bytes of a request, of a stream's write, of a posted message
    #[arg(long, default_value = "1", value_parser = size)]
    pub request: usize,
    #[arg(long, default_value = "1", value_parser = size)]
    pub response: usize,
    /// Requests that one response answers
    #[arg(long, default_value = "1", value_parser = size)]
    pub burst: usize,
    /// Writes of a connection [default: as many as fit into the time]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// The receiver's buffer
    #[arg(long, default_value = "65536", value_parser = size)]
    pub read: usize,
    /// Socket buffers, or the ring [default: as they come]
    #[arg(long, value_parser = size)]
    pub buffers: Option<usize>,
    /// How long at most
    #[arg(long = "seconds", default_value = "1", value_parser = seconds)]
    pub time: Duration,
    /// How narrow the mean's interval has to be, as a share of the mean, to end earlier
    #[arg(long)]
    pub within: Option<f64>,
    #[arg(long)]
    pub nodelay: bool,
    #[arg(long)]
    pub cubic: bool,
    #[arg(long)]
    pub server_cpu: Option<usize>,
    #[arg(long)]
    pub client_cpu: Option<usize>,
}

fn work(word: &str) -> Result<Work, &'static str> {
    Ok(match word {
        "exchange" => Work::Exchange,
        "connects" => Work::Connects,
        "stream" => Work::Stream,
        "pipe" => Work::Post(Wire::Pipe),
        "ring" => Work::Post(Wire::Ring),
        "posted" => Work::Post(Wire::Posted),
        _ => return Err("exchange, connects, stream, pipe, ring or posted?"),
    })
}

impl Words for Options {
    fn check(&self) -> Result<(), String> {
        let problem = match (self.role, self.work) {
            (Role::Post, Work::Post(_)) => return Ok(()),
            (Role::Post, _) => "pipe, ring or posted?",
            (_, Work::Post(_)) => "exchange, connects or stream?",
            (Role::Raw, Work::Connects) => "exchange or stream?",
            (Role::Serve | Role::Drive, _) if self.address.is_empty() => "which address?",
            _ => return Ok(()),
        };
        Err(problem.to_string())
    }
}

impl Options {
    pub fn setup(&self) -> Setup {
        Setup {
            nodelay: self.nodelay,
            cubic: self.cubic,
            buffers: self.buffers,
        }
    }

    /// How long to run before measuring, so that connections are set up and buffers have grown.
    pub fn warm_up(&self) -> Duration {
        (self.time / 5).min(Duration::from_millis(200))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<Options, clap::Error> {
        Options::read(words.split(' ').map(str::to_string))
    }

    #[test]
    fn a_command_names_its_role_its_work_and_its_sizes() {
        let options = parse("drive exchange 127.0.0.1:1 --request 64 --burst 500 --within 0.02");
        let options = options.unwrap();
        assert_eq!((options.role, options.work), (Role::Drive, Work::Exchange));
        assert_eq!((options.request, options.response), (64, 1));
        assert_eq!((options.burst, options.within), (500, Some(0.02)));
        let post = parse("post posted --request 4096 --seconds 0.1").unwrap();
        assert_eq!(
            (post.role, post.work),
            (Role::Post, Work::Post(Wire::Posted))
        );
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for words in [
            "measure",
            "drive exchange",
            "drive trips 127.0.0.1:1",
            "raw connects",
            "post exchange",
            "raw stream --seconds -1",
            "raw stream --seconds nan",
            "raw stream --sizes 1",
        ] {
            assert!(parse(words).is_err(), "{words}");
        }
    }
}
