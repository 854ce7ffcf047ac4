//! The programs that the experiments measure, under one name: `headwater-load echo server sink 127.0.0.1:0`. Each is described in
//! its own file; but for `raw` none knows anything of Headwater.

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

use clap::{Parser, Subcommand};

/// The programs that `headwater bench` measures, by themselves
#[derive(Parser)]
#[command(
    name = "headwater-load",
    version,
    disable_help_subcommand = true,
    arg_required_else_help = true
)]
struct Cli {
    #[command(subcommand)]
    program: Program,
}

#[derive(Subcommand)]
enum Program {
    /// Sockets: echoes, streams, sinks, many connections
    Echo(Words),
    /// The first Fast Sockets' measurements: exchanges, connections, streams, posting
    Lan(Words),
    /// A pipe from a writer to a reader, with or without STREAMS
    Perftest(Words),
    /// Bare memory, or the channel alone
    Raw(Words),
    /// The SCTP engine, and associations over a link
    Sctpperf(Words),
    /// Runs of the measurements of 2001: connections at once, copies, a chat
    Speed(Words),
    /// Transport endpoints: flows, datagrams, connections
    Xtiperf(Words),
}

#[derive(clap::Args)]
#[command(disable_help_flag = true)]
struct Words {
    /// What the program reads itself; nothing tells how it is used
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

fn main() -> ExitCode {
    match Cli::parse().program {
        Program::Echo(said) => echo::main(said.words.into_iter()),
        Program::Lan(said) => lan::main(said.words.into_iter()),
        Program::Perftest(said) => perftest::main(said.words.into_iter()),
        Program::Raw(said) => headwater_load::raw::main(&said.words),
        Program::Sctpperf(said) => sctpperf::main(said.words.into_iter()),
        Program::Speed(said) => speed::main(said.words.into_iter()),
        Program::Xtiperf(said) => xtiperf::main(said.words.into_iter()),
    }
}
