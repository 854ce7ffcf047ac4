//! The `headwater` command.
//!
//! ```text
//!   run       starts a program with the library preloaded         settings   flags as HEADWATER_* variables
//!                                                               variables  what is wrong with those of the environment
//!   doctor    what this machine, and one program, can do          program    what a file would be as a program
//!   stat      the accelerated connections of this user            library    where the library is
//!   streams   streams of this user's processes, and their administration
//!   bench     handed on to headwater-bench, as demo is            units      figures for people
//! ```

mod bench;
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
    Bench(bench::Words),
    /// Show in a minute or two what acceleration does
    Demo(bench::Words),
}

fn main() -> ExitCode {
    if let Some(verb) = help_of_a_verb_that_is_handed_on() {
        return bench::hand_on(verb, &["--help".into()]);
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    if let Verb::Stat(_) | Verb::Streams(_) | Verb::Doctor(_) = cli.verb {
        sigpipe::by_default();
    }
    match cli.verb {
        Verb::Run(run) => run.execute(),
        Verb::Stat(stat) => stat.execute(),
        Verb::Streams(streams) => streams.execute(),
        Verb::Doctor(doctor) => doctor.execute(),
        Verb::Bench(words) => bench::hand_on("bench", &words.words),
        Verb::Demo(words) => bench::hand_on("demo", &words.words),
    }
}

/// `headwater help bench`: the options are not known here.
fn help_of_a_verb_that_is_handed_on() -> Option<&'static str> {
    let words: Vec<_> = std::env::args_os().skip(1).take(3).collect();
    let [help, verb] = &words[..] else {
        return None;
    };
    let asked = |name: &&str| help == "help" && verb == name;
    ["bench", "demo"].into_iter().find(asked)
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
