//! The experiments behind `headwater bench` and `headwater demo`, and how they are measured.
//!
//! ```text
//!   experiments   what is compared: one file per experiment, each `Works` with cells and arms
//!   tables        what is data: texts, goals, heads of tables and plots, the papers' figures
//!   demo          a short tour over a few cells
//!   plan          what is measured, and how long it takes
//!   runner        a run from its plan to its report
//!   measuring     rounds that take every arm in turn (A B A B ...), counted runs
//!   exchange      one client against one server: time, CPU, switches, what the loop-back device saw
//!   process       starting, pinning, ending programs
//!   scratch       folders that go with the run
//!   placement     which CPU each end gets, and who disturbs it
//!   disturbance   whether somebody else used the CPUs meanwhile
//!   carriage      the proof that traffic went through shared memory
//!   syscalls      system calls, counted
//!   machine       what it runs on; a network namespace of its own
//!   stats, fit    medians and their intervals; curves
//!   verdict       when a ratio counts
//!   cells         what is left of a cell
//!   conclusion    what follows from many cells
//!   findings      tables and plots as data
//!   conclude      ratios of two arms as headlines, bars and rows
//!   counts        what explains a rate, as columns of tables
//!   report        what is left of an experiment
//!   outputs       where results go, and where a run goes on from
//!   results       a whole run as JSON, written and read
//!   table         the run in the terminal
//!   numbers       numbers and times as people read them
//!   render        the run as CSV, SVG and HTML
//!   compare       two runs
//! ```
//!
//! A *cell* is one piece of work, an *arm* one way of carrying it, a *placement* where both ends run. A sample is one short
//! run of an arm; a ratio is the median over pairs of samples taken in the same round. The measuring process itself is
//! never accelerated.

mod account;
mod arms;
mod carriage;
mod cells;
mod compare;
mod conclude;
mod conclusion;
mod counts;
mod ctrl_c;
mod demo;
mod disturbance;
mod effort;
mod exchange;
mod experiment;
mod experiments;
mod failure;
mod files;
mod findings;
mod fit;
mod interrupt;
mod lenient;
mod machine;
mod measuring;
mod numbers;
mod outputs;
mod placement;
mod plan;
mod port;
mod process;
mod progress;
mod render;
mod report;
mod results;
mod runner;
mod scratch;
mod select;
mod sizes;
mod stats;
mod syscalls;
mod table;
mod tables;
mod tools;
mod verdict;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use headwater_load::latency;

pub use compare::{Change, Comparison, Verdict as ChangeVerdict, compare};
pub use demo::demo;
pub use failure::Failure;
pub use render::all as render;

/// What `results.json` holds, for whoever makes, reads or draws it.
pub mod data {
    pub use crate::carriage::Counters;
    pub use crate::cells::{ArmReport, CarriedReport, CellReport};
    pub use crate::conclusion::{Best, Conclusion, Regression};
    pub use crate::experiment::{Metric, Sample, Unit};
    pub use crate::findings::{
        Axis, Column, Curve, Headline, Measure, Plot, Point, Scale, Seed, Sheet, Value,
    };
    pub use crate::latency::Latency;
    pub use crate::machine::{Calibration, Machine};
    pub use crate::placement::Placement;
    pub use crate::report::Report;
    pub use crate::results::{Run, SAMPLES_SCHEMA, SCHEMA, Skipped, export_samples};
    pub use crate::stats::Spread;
    pub use crate::verdict::{Comparison, Figure, Syscalls, Verdict};
}

/// What `headwater bench` was asked for.
#[derive(Default, clap::Args)]
pub struct BenchArgs {
    /// NAME, NAME/CELL or NAME/CELL/PLACEMENT; everything when none is given
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Fewer cells, and shorter samples: two minutes at most
    #[arg(long)]
    pub quick: bool,
    /// Every size and placement, not only those that a reader needs: seven hours
    #[arg(long, conflicts_with = "quick")]
    pub all: bool,
    /// Folder for results and report [default: headwater-results]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Go on with the run in the folder that was cut short
    #[arg(long, conflicts_with_all = ["names", "quick", "all", "rounds", "seconds", "arms"])]
    pub resume: bool,
    /// Rounds of a cell, in each of which every arm has its turn
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub rounds: Option<u16>,
    /// Length of a sample
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub seconds: Option<f64>,
    /// Another arm where programs are run: COMMAND is put before each of them
    #[arg(long = "arm", value_name = "NAME=COMMAND")]
    pub arms: Vec<String>,
    /// Write every single sample to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    pub samples: Option<PathBuf>,
    /// What changed between two results, beyond the noise or not
    #[arg(long, num_args = 2, value_names = ["OLD.json", "NEW.json"], conflicts_with_all = ["names", "quick", "all", "resume", "rounds", "seconds", "arms", "samples", "out"])]
    pub compare: Vec<PathBuf>,
    /// Make the report of these results anew, in their folder or that of --out
    #[arg(long, value_name = "RESULTS.json", conflicts_with_all = ["names", "quick", "all", "resume", "rounds", "seconds", "arms", "samples", "compare"])]
    pub report: Option<PathBuf>,
}

/// From a hundredth of a second to a minute.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.01..=60.0).contains(&seconds) => Ok(seconds),
        _ => Err("a number from 0.01 to 60 is wanted".to_string()),
    }
}

impl BenchArgs {
    fn extent(&self) -> select::Extent {
        select::Extent::of(self.quick, self.all)
    }

    fn lists(&self) -> bool {
        self.names.iter().any(|name| name == "list")
    }

    /// Nothing is measured.
    pub fn only_reads(&self) -> bool {
        self.lists() || !self.compare.is_empty() || self.report.is_some()
    }
}

/// Runs the experiments that `args` names, prints their tables and leaves results and report; or compares two results.
///
/// Fails when a name is unknown, when nothing could be measured, or when received bytes were wrong; with 130 when it was
/// interrupted.
pub fn cli_bench(args: &BenchArgs) -> ExitCode {
    let done = if args.lists() {
        list(&args.names).map(|()| runner::End::Good)
    } else if let [old, new] = &args.compare[..] {
        compare::print(old, new).map(|()| runner::End::Good)
    } else if let Some(results) = &args.report {
        report_anew(results, args.out.as_deref()).map(|()| runner::End::Good)
    } else {
        runner::run(args)
    };
    match done {
        Ok(end) => ExitCode::from(end.code()),
        Err(failure) => {
            eprintln!("headwater bench: {failure}");
            ExitCode::from(match failure {
                Failure::Usage(_) => 2,
                _ => 1,
            })
        }
    }
}

/// The experiments that are named beside the word, or all, and their cells.
fn list(names: &[String]) -> failure::Result<()> {
    let named: Vec<String> = names
        .iter()
        .filter(|&name| name != "list")
        .cloned()
        .collect();
    let chosen = select::Selection::parse(&named).map_err(Failure::Usage)?;
    experiments::print_list(|name| chosen.iter().any(|one| one.experiment == name));
    Ok(())
}

/// Makes the report, the tables and the plots of a run anew: into `out`, else where its results are.
fn report_anew(results: &Path, out: Option<&Path>) -> failure::Result<()> {
    let run = results::Run::read(results)?;
    let out = out.unwrap_or_else(|| files::folder(results));
    std::fs::create_dir_all(out)?;
    render::all(&run, out)?;
    println!("{}", out.join("report.html").display());
    Ok(())
}
