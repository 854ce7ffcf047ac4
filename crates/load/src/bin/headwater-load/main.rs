//! The programs that the experiments measure, under one name: `headwater-load echo server sink 127.0.0.1:0`. Each is described in
//! its own file, and reads its own words.

mod ddi;
mod echo;
mod lan;
mod net;
mod pattern;
mod perftest;
mod poll;
mod sctpperf;
mod speed;
mod until;
mod xtiperf;

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use clap::error::ErrorKind;
use headwater_load::sys;

const USAGE: &str = "\
usage: headwater-load PROGRAM ...

The programs that `headwater bench` measures, by themselves:
  ddi       routines of the DDI/DKI, by themselves
  echo      sockets: echoes, streams, sinks, many connections
  lan       the first Fast Sockets' measurements: exchanges, connections, streams, posting
  perftest  a pipe from a writer to a reader, with or without STREAMS
  raw       bare memory, or the channel alone
  sctpperf  the SCTP engine, and associations over a link
  speed     the measurements of 2001: connections at once, copies, a chat
  xtiperf   transport endpoints: flows, datagrams, connections";

/// What a program that has ended well prints last, if that is not told already.
type Ended = Result<Option<String>, Problem>;

enum Problem {
    /// With the words that it was started with, and how they should be.
    Words(String),
    Refused(clap::Error),
    Failed(io::Error),
}

impl From<clap::Error> for Problem {
    fn from(error: clap::Error) -> Problem {
        Problem::Refused(error)
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Problem {
        Problem::Failed(error)
    }
}

/// The words of a program that nobody measures before it has read them.
trait Words: clap::Parser {
    /// What each word by itself does not tell.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    fn read(words: impl Iterator<Item = String>) -> Result<Self, clap::Error> {
        let options = Self::try_parse_from(words)?;
        let refused = |problem| Self::command().error(ErrorKind::ValueValidation, problem);
        options.check().map_err(refused)?;
        Ok(options)
    }
}

fn seconds(word: &str) -> Result<Duration, String> {
    let seconds: f64 = word.parse().map_err(|_| "a number is wanted")?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

/// Nothing is not a message.
fn size(word: &str) -> Result<usize, &'static str> {
    let size: usize = word.parse().map_err(|_| "a number is wanted")?;
    Ok(size.max(1))
}

/// Without a parser of its own: how long `echo` and `raw` take to start is measured too.
fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let name = words.next().unwrap_or_default();
    let ended = match name.as_str() {
        "ddi" => ddi::main(words),
        "echo" => echo::main(words),
        "lan" => lan::main(words),
        "perftest" => perftest::main(words),
        "raw" => return headwater_load::raw::main(&words.collect::<Vec<_>>()),
        "sctpperf" => sctpperf::main(words),
        "speed" => speed::main(words),
        "xtiperf" => xtiperf::main(words),
        "--help" | "-h" => Ok(Some(USAGE.to_string())),
        "--version" | "-V" => Ok(Some(
            concat!("headwater-load ", env!("CARGO_PKG_VERSION")).into(),
        )),
        _ => {
            if !name.is_empty() {
                eprintln!("headwater-load: {name}: there is no such program");
            }
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match ended {
        Ok(line) => {
            line.into_iter().for_each(|line| println!("{line}"));
            ExitCode::SUCCESS
        }
        Err(Problem::Words(problem)) => {
            eprintln!("headwater-load {name}: {problem}");
            ExitCode::from(2)
        }
        Err(Problem::Refused(error)) => error.exit(),
        Err(Problem::Failed(error)) => {
            eprintln!("headwater-load {name}: {error}");
            ExitCode::FAILURE
        }
    }
}
