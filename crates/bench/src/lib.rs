//! The experiments behind `headwater bench` and `headwater demo`, and how they are measured.
//!
//! ```text
//!   experiments   what is compared: one file per experiment, each an `Experiment` with cells and arms
//!   demo          a short tour over a few cells
//!   report        JSON and tables            verdict   when a ratio counts     conclusion  what follows from many cells
//!   runner        rounds that take every arm in turn (A B A B ...), reruns, counted runs
//!   exchange      one client against one server: time, CPU, switches, what the loop-back device saw
//!   carriage      the proof that traffic went through shared memory       syscalls   counting system calls
//!   process       starting, pinning, ending programs     placement   which CPU each end gets, and who disturbs it
//!   machine       what it runs on; a network namespace of its own         stats      medians and their intervals
//! ```
//!
//! A *cell* is one piece of work, an *arm* one way of carrying it, a *placement* where both ends run. A sample is one short
//! run of an arm; a ratio is the median over pairs of samples taken in the same round. The measuring process itself is
//! never accelerated.

mod arms;
mod carriage;
mod conclusion;
mod demo;
mod exchange;
mod experiment;
mod experiments;
mod failure;
mod machine;
mod placement;
mod process;
mod report;
mod runner;
mod select;
mod stats;
mod syscalls;
mod table;
mod tools;
mod verdict;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub use arms::raw::main as raw_main;
pub use demo::demo;

use select::Selection;

/// What `headwater bench` was asked for.
pub struct BenchArgs {
    /// `NAME[/CELL[/PLACEMENT]]`; CELL is any part of a cell's name. Nothing or `all` means every experiment, `list` names
    /// them with their cells.
    pub names: Vec<String>,
    /// Fewer cells, placements and pairs, and shorter samples.
    pub quick: bool,
    /// Where the JSON goes; `./headwater-results` by default.
    pub out: Option<PathBuf>,
}

/// Runs the experiments that `args` names, prints their tables and leaves their JSON.
///
/// Fails when a name is unknown, when nothing could be measured, or when received bytes were wrong.
pub fn cli_bench(args: &BenchArgs) -> ExitCode {
    if args.names.iter().any(|name| name == "list") {
        experiments::print_list();
        return ExitCode::SUCCESS;
    }
    let selections = match Selection::parse(&args.names) {
        Ok(selections) => selections,
        Err(problem) => {
            eprintln!("headwater bench: {problem}");
            return ExitCode::from(2);
        }
    };
    let out = args
        .out
        .as_deref()
        .unwrap_or(Path::new("headwater-results"));
    match runner::run(&selections, args.quick, out) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("headwater bench: {failure}");
            ExitCode::FAILURE
        }
    }
}
