//! Takes the samples: every arm of a cell in turn, round after round, so that whatever drifts drifts for all.

use std::env;
use std::fs;
use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::experiment::{Cell, Experiment, Job, Sample, Site};
use crate::experiments;
use crate::failure::{Failure, Result};
use crate::machine::Machine;
use crate::placement::Placement;
use crate::report::{CellReport, Report};
use crate::select::{self, Selection};
use crate::syscalls::Counter;
use crate::table;
use crate::tools::Tools;
use crate::verdict::{self, Series, Syscalls};

/// How long and how often.
#[derive(Clone, Copy)]
pub struct Effort {
    pub pairs: usize,
    pub time: Duration,
    /// Whether a cell that looks bad is measured once more.
    pub rerun: bool,
    /// Whether system calls are counted in runs of their own.
    pub count: bool,
    /// Failed samples after which an arm is given up in a cell.
    pub failures: usize,
}

impl Effort {
    /// HEADWATER_BENCH_PAIRS and HEADWATER_BENCH_SECONDS override how often and how long.
    pub fn new(quick: bool) -> Effort {
        let number = |name: &str| {
            env::var(name)
                .ok()?
                .parse::<f64>()
                .ok()
                .filter(|n| *n > 0.0)
        };
        let seconds = number("HEADWATER_BENCH_SECONDS").unwrap_or(if quick { 0.15 } else { 0.4 });
        Effort {
            pairs: number("HEADWATER_BENCH_PAIRS")
                .map_or(if quick { 5 } else { 15 }, |n| n as usize),
            time: Duration::from_secs_f64(seconds.min(60.0)),
            rerun: !quick,
            count: true,
            failures: 2,
        }
    }
}

impl Site {
    /// Prepares this thread for measuring; `scratch` outlives the site.
    pub fn enter(scratch: &Path) -> Result<Site> {
        let tools = Tools::locate()?;
        // Nagle, congestion control and what else a program sets are its own; a preload of ours is not.
        Ok(Site {
            machine: Machine::enter(),
            tools,
            scratch: scratch.to_path_buf(),
        })
    }
}

/// Runs what was selected. True when something was measured and no byte was wrong.
pub fn run(selections: &[Selection], quick: bool, out: &Path) -> Result<bool> {
    let scratch = tempfile::Builder::new()
        .prefix("headwater-bench-")
        .tempdir()?;
    let site = Site::enter(scratch.path())?;
    println!("{}", site.machine.describe());
    if site.tools.library.is_none() {
        println!("libheadwater.so is not there, so nothing is accelerated.");
    }
    let mut good = true;
    let mut measured = false;
    for name in names(selections) {
        let Some(experiment) = experiments::by_name(name) else {
            println!("{name}: not available yet, skipped");
            continue;
        };
        let plan = plan(experiment.as_ref(), selections, &site, quick);
        if plan.is_empty() {
            println!("{name}: no cell of that name on this machine; `list` names them");
            continue;
        }
        let report = run_plan(experiment.as_ref(), &site, &plan, Effort::new(quick), out)?;
        measured |= report
            .cells
            .iter()
            .any(|cell| cell.arms.iter().any(|arm| arm.samples > 0));
        good &= !report.wrong_contents;
    }
    Ok(good && measured)
}

fn names(selections: &[Selection]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for selection in selections {
        if !names.contains(&selection.experiment.as_str()) {
            names.push(&selection.experiment);
        }
    }
    names
}

type Plan = Vec<(Cell, Vec<Placement>)>;

fn plan(experiment: &dyn Experiment, selections: &[Selection], site: &Site, quick: bool) -> Plan {
    let mut plan: Plan = Vec::new();
    for selection in selections
        .iter()
        .filter(|s| s.experiment == experiment.name())
    {
        for mut cell in selection.cells(experiment.cells(), quick) {
            cell.arms.retain(|arm| select::takes_arm(*arm));
            let placements = Placement::offered(&site.machine.cpus)
                .filter(|placement| cell.placements.contains(placement))
                .filter(|placement| selection.takes_placement(*placement, quick))
                .collect();
            plan.push((cell, placements));
        }
    }
    plan
}

fn run_plan(
    experiment: &dyn Experiment,
    site: &Site,
    plan: &Plan,
    effort: Effort,
    out: &Path,
) -> Result<Report> {
    let mut report = Report::new(experiment, &site.machine, effort);
    fs::create_dir_all(out)?;
    let path = out.join(format!("{}.json", experiment.name()));
    let total = plan
        .iter()
        .map(|(cell, placements)| placements.len() * cell.arms.len() * effort.pairs)
        .sum::<usize>();
    let bar = progress(total as u64);
    say(
        &bar,
        &format!("{}: {}", experiment.name(), experiment.describe()),
    );
    for (cell, placements) in plan {
        for &placement in placements {
            bar.set_message(format!("{} {}", cell.name, placement.name()));
            let all = measure(experiment, site, cell, placement, effort, &bar)?;
            let mut found = CellReport::new(cell, placement, &all);
            if effort.rerun && found.comparisons.iter().any(|c| c.verdict.is_bad()) {
                bar.inc_length((cell.arms.len() * effort.pairs) as u64);
                let again = measure(experiment, site, cell, placement, effort, &bar)?;
                found.rerun = Some(verdict::compare(cell, placement, &again));
            }
            say(&bar, &table::cell(cell, &found));
            report.add(found);
            // After every cell, so that a long run that is cut short leaves what it has.
            report.write(&path)?;
        }
    }
    bar.finish_and_clear();
    report.conclusion = experiment.conclude(&report.cells);
    report.write(&path)?;
    print!("{}", report.conclusion.tables());
    println!("{}", table::summary(&report));
    println!("{}", path.display());
    Ok(report)
}

/// Measures one cell in one placement.
pub fn measure(
    experiment: &dyn Experiment,
    site: &Site,
    cell: &Cell,
    placement: Placement,
    effort: Effort,
    bar: &ProgressBar,
) -> Result<Vec<Series>> {
    let mut all: Vec<Series> = cell
        .arms
        .iter()
        .filter(|arm| arm.only.is_empty() || arm.only.contains(&placement))
        .map(|&arm| Series {
            arm,
            samples: Vec::new(),
            failures: Vec::new(),
            syscalls: None,
        })
        .collect();
    let busy = placement.disturb(&site.tools, &site.machine.cpus)?;
    let job = |series: &Series| Job {
        site,
        cell,
        arm: series.arm,
        placement,
        time: effort.time,
        counter: None,
    };
    for _ in 0..effort.pairs {
        for series in &mut all {
            let sample = series.attempt(effort.failures, |series| experiment.sample(&job(series)));
            series.samples.push(sample);
            bar.inc(1);
        }
    }
    if effort.count {
        for series in all
            .iter_mut()
            .filter(|series| series.taken().next().is_some())
        {
            series.syscalls = count_syscalls(experiment, &job(series));
        }
    }
    drop(busy);
    Ok(all)
}

impl Series {
    /// One sample, unless this arm has failed too often or cannot work here at all.
    fn attempt(
        &mut self,
        limit: usize,
        take: impl FnOnce(&Series) -> Result<Sample>,
    ) -> Option<Sample> {
        if self.failures.len() >= limit {
            return None;
        }
        match take(self) {
            Ok(sample) => Some(sample),
            Err(failure) => {
                let final_one = matches!(failure, Failure::Missing(_));
                let repeats = if final_one { limit } else { 1 };
                let words = failure.to_string();
                self.failures.extend(vec![words; repeats]);
                None
            }
        }
    }
}

/// A short and a longer run: the difference leaves out what starting and ending cost.
fn count_syscalls(experiment: &dyn Experiment, job: &Job<'_>) -> Option<Syscalls> {
    let run = |time: Duration| -> Option<(f64, f64, &'static str)> {
        let counter = Counter::start();
        let sample = experiment.sample(&Job {
            time,
            counter: Some(&counter),
            ..*job
        });
        let method = counter.method();
        // The tracer's threads end with the programs, also where those failed.
        let calls = counter.finish();
        Some((calls as f64, sample.ok()?.all_messages as f64, method))
    };
    let (few_calls, few, _) = run(job.time / 4)?;
    let (many_calls, many, method) = run(job.time)?;
    // Programs that cannot be made to run longer, or were not watched; ptrace that was denied.
    if many < few * 1.25 || many_calls == 0.0 {
        return None;
    }
    Some(Syscalls {
        per_message: ((many_calls - few_calls) / (many - few)).max(0.0),
        method,
    })
}

pub fn progress(total: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} ({eta} left)")
        .expect("the template is well-formed");
    // Drawn only between samples: a ticking thread would disturb them.
    ProgressBar::new(total).with_style(style)
}

/// Prints above the bar, and also where there is no terminal to draw a bar on.
pub fn say(bar: &ProgressBar, text: &str) {
    bar.suspend(|| println!("{text}"));
}
