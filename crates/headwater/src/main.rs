//! The `headwater` command.
//!
//! ```text
//!   run       starts a program with the library preloaded         settings   flags as HEADWATER_* variables
//!                                                               variables  what is wrong with those of the environment
//!   doctor    what this machine, and one program, can do          program    what a file would be as a program
//!   stat      the accelerated connections of this user            library    where the library is
//!   streams   streams of this user's processes, and their administration
//!   bench, demo   handed on to the bench crate                    units      figures for people
//! ```

mod doctor;
mod library;
mod program;
mod run;
mod settings;
mod sigpipe;
mod stat;
mod streams;
mod units;
mod variables;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Unmodified programs on one host talk through shared memory instead of loop-back TCP.
#[derive(Parser)]
#[command(name = "headwater", version)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run a program with its loop-back connections accelerated
    Run(Box<run::Run>),
    /// List the accelerated connections of this user
    Stat(stat::Stat),
    /// List and administer STREAMS
    Streams(streams::Streams),
    /// Explain what this machine, and a program, can do
    Doctor(doctor::Doctor),
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
    /// Folder for results and report [default: headwater-results]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Go on with the run in the folder that was cut short
    #[arg(long, conflicts_with_all = ["names", "quick", "rounds", "seconds", "arms"])]
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
    #[arg(long, num_args = 2, value_names = ["OLD.json", "NEW.json"], conflicts_with_all = ["names", "quick", "resume", "rounds", "seconds", "arms", "samples", "out"])]
    compare: Option<Vec<PathBuf>>,
}

impl From<Bench> for headwater_bench::BenchArgs {
    fn from(bench: Bench) -> Self {
        headwater_bench::BenchArgs {
            names: bench.names,
            quick: bench.quick,
            out: bench.out,
            resume: bench.resume,
            rounds: bench.rounds.map(usize::from),
            seconds: bench.seconds,
            arms: bench.arms,
            samples: bench.samples,
            compare: bench.compare.and_then(|files| files.try_into().ok()),
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
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    match cli.verb {
        Verb::Run(run) => run.execute(),
        Verb::Stat(stat) => {
            sigpipe::by_default();
            stat.execute()
        }
        Verb::Streams(streams) => {
            sigpipe::by_default();
            streams.execute()
        }
        Verb::Doctor(doctor) => {
            sigpipe::by_default();
            doctor.execute()
        }
        Verb::Bench(bench) => {
            let args: headwater_bench::BenchArgs = bench.into();
            if args.only_prints() {
                sigpipe::by_default();
            }
            headwater_bench::cli_bench(&args)
        }
        Verb::Demo => headwater_bench::demo(),
    }
}

/// Help and versions succeed; a wrong `run` must not look like a status of the program that it did not start.
fn usage(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    if !error.use_stderr() {
        return ExitCode::SUCCESS;
    }
    if std::env::args_os().nth(1).is_some_and(|verb| verb == "run") {
        return ExitCode::from(run::OWN_FAILURE);
    }
    ExitCode::from(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_programs_own_flags_are_left_to_it() {
        let line = ["headwater", "run", "--stats", "redis-server", "--port", "7"];
        let Verb::Run(run) = Cli::try_parse_from(line).unwrap().verb else {
            panic!("not a run");
        };
        assert_eq!(run.command(), ["redis-server", "--port", "7"]);
    }
}
