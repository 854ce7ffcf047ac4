//! `headwater bench` and `headwater demo`, which start this program.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use headwater_bench::BenchArgs;

/// The experiments of Headwater.
#[derive(Parser)]
#[command(name = "headwater-bench", bin_name = "headwater", version)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Measure; `headwater bench list` names the experiments
    Bench(BenchArgs),
    /// Show in a minute or two what acceleration does
    Demo,
}

fn main() -> ExitCode {
    match Cli::parse().verb {
        Verb::Bench(args) => {
            if args.only_reads() {
                // SAFETY: SIG_DFL calls nothing. Who reads the list may have had enough of it.
                unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
            }
            headwater_bench::cli_bench(&args)
        }
        Verb::Demo => headwater_bench::demo(),
    }
}

#[cfg(test)]
mod tests;
