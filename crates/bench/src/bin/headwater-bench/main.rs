//! `headwater bench` and `headwater demo`, which start this program.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

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
    Bench(Bench),
    /// Show in a minute or two what acceleration does
    Demo,
}

#[derive(clap::Args)]
struct Bench {
    /// NAME, NAME/CELL or NAME/CELL/PLACEMENT; everything when none is given
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Fewer cells, and shorter samples: two minutes at most
    #[arg(long)]
    quick: bool,
    /// Every size and placement, not only those that a reader needs: six hours
    #[arg(long, conflicts_with = "quick")]
    all: bool,
    /// Folder for results and report [default: headwater-results]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Go on with the run in the folder that was cut short
    #[arg(long, conflicts_with_all = ["names", "quick", "all", "rounds", "seconds", "arms"])]
    resume: bool,
    /// Rounds of a cell, in each of which every arm has its turn
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    rounds: Option<u16>,
    /// Length of a sample
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    seconds: Option<f64>,
    /// Another arm where programs are run: COMMAND is put before each of them
    #[arg(long = "arm", value_name = "NAME=COMMAND")]
    arms: Vec<String>,
    /// Write every single sample to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    samples: Option<PathBuf>,
    /// What changed between two results, beyond the noise or not
    #[arg(long, num_args = 2, value_names = ["OLD.json", "NEW.json"], conflicts_with_all = ["names", "quick", "all", "resume", "rounds", "seconds", "arms", "samples", "out"])]
    compare: Option<Vec<PathBuf>>,
    /// Make the report of these results anew, in their folder or that of --out
    #[arg(long, value_name = "RESULTS.json", conflicts_with_all = ["names", "quick", "all", "resume", "rounds", "seconds", "arms", "samples", "compare"])]
    report: Option<PathBuf>,
}

impl From<Bench> for headwater_bench::BenchArgs {
    fn from(bench: Bench) -> Self {
        headwater_bench::BenchArgs {
            names: bench.names,
            quick: bench.quick,
            all: bench.all,
            out: bench.out,
            resume: bench.resume,
            rounds: bench.rounds.map(usize::from),
            seconds: bench.seconds,
            arms: bench.arms,
            samples: bench.samples,
            compare: bench.compare.and_then(|files| files.try_into().ok()),
            report: bench.report,
        }
    }
}

/// From a hundredth of a second to a minute.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.01..=60.0).contains(&seconds) => Ok(seconds),
        _ => Err("a number from 0.01 to 60 is wanted".to_string()),
    }
}

fn main() -> ExitCode {
    match Cli::parse().verb {
        Verb::Bench(bench) => {
            let args: headwater_bench::BenchArgs = bench.into();
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
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
