//! The programs that the experiments measure, under one name: `headwater-load echo server sink 127.0.0.1:0`. Each is described in
//! its own file, and reads its own words.

mod echo;
mod lan;
mod pattern;
mod perftest;
mod poll;
mod sctpperf;
mod speed;
mod sys;
mod xtiperf;

use std::process::ExitCode;

const USAGE: &str = "\
usage: headwater-load PROGRAM ...

The programs that `headwater bench` measures, by themselves:
  echo      sockets: echoes, streams, sinks, many connections
  lan       the first Fast Sockets' measurements: exchanges, connections, streams, posting
  perftest  a pipe from a writer to a reader, with or without STREAMS
  raw       bare memory, or the channel alone
  sctpperf  the SCTP engine, and associations over a link
  speed     the measurements of 2001: connections at once, copies, a chat
  xtiperf   transport endpoints: flows, datagrams, connections";

/// Without a parser of its own: how long such a program takes to start is measured too.
fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    match words.next().as_deref() {
        Some("echo") => echo::main(words),
        Some("lan") => lan::main(words),
        Some("perftest") => perftest::main(words),
        Some("raw") => headwater_load::raw::main(&words.collect::<Vec<_>>()),
        Some("sctpperf") => sctpperf::main(words),
        Some("speed") => speed::main(words),
        Some("xtiperf") => xtiperf::main(words),
        Some("--help" | "-h") => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        Some("--version" | "-V") => {
            println!("headwater-load {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        other => {
            if let Some(name) = other {
                eprintln!("headwater-load: {name}: there is no such program");
            }
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}
