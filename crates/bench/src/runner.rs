//! A run, from what was asked for to its report.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::BenchArgs;
use crate::arms::user;
use crate::cells::CellReport;
use crate::ctrl_c;
use crate::effort::Effort;
use crate::experiment::{Arm, Site};
use crate::experiments::{self, Works};
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::machine::Machine;
use crate::measuring::{Measured, Pace, measure};
use crate::outputs::Outputs;
use crate::plan::{Item, Plan};
use crate::process::bounds;
use crate::progress::{Progress, say};
use crate::render;
use crate::report::Report;
use crate::results::{self, Run, Skipped};
use crate::scratch::Scratch;
use crate::select::{Extent, Selection};
use crate::table;
use crate::tools::Tools;

/// What the measuring of a quick run is planned to take, and when it is broken off: programs must still end, and the report
/// be written, within two minutes.
const QUICK_MEASURING: Duration = Duration::from_secs(95);
const QUICK: Duration = Duration::from_secs(108);
/// What a server of a quick run may take to start. Usual ones take a tenth of it, and the rest must not suffer.
const QUICK_READY: Duration = Duration::from_secs(3);

const NO_TIME: &str = "no time left";

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    Good,
    /// Nothing could be measured, or received bytes were wrong.
    Bad,
    Interrupted,
}

impl End {
    fn of(interrupted: bool, wrong_contents: bool) -> End {
        match (interrupted, wrong_contents) {
            (true, _) => End::Interrupted,
            (false, true) => End::Bad,
            (false, false) => End::Good,
        }
    }

    /// The exit status that tells it.
    pub fn code(self) -> u8 {
        match self {
            End::Good => 0,
            End::Bad => 1,
            End::Interrupted => 130,
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

/// What was asked for.
struct Asked {
    selections: Vec<Selection>,
    arms: Vec<Arm>,
}

impl Asked {
    fn parse(names: &[String], arms: &[String]) -> Result<Asked> {
        let arms = arms.iter().map(|arm| user::parse(arm));
        let arms = arms.collect::<std::result::Result<Vec<Arm>, String>>();
        let arms = arms.map_err(Failure::Usage)?;
        for (index, arm) in arms.iter().enumerate() {
            let same = |other: &Arm| other.name == arm.name;
            if arms[..index].iter().any(same) || experiments::arms().iter().any(same) {
                let name = arm.name;
                return Err(Failure::Usage(format!(
                    "--arm {name}=...: there is an arm of that name already"
                )));
            }
        }
        Ok(Asked {
            selections: Selection::parse(names).map_err(Failure::Usage)?,
            arms,
        })
    }
}

/// Runs what was asked for.
pub fn run(args: &BenchArgs) -> Result<End> {
    let begun = Instant::now();
    // Before anything is made that an interruption must not leave behind.
    ctrl_c::listen();
    let out = args.out.clone();
    let out = out.unwrap_or_else(|| PathBuf::from("headwater-results"));
    let files = Outputs {
        out,
        samples: args.samples.clone(),
    };
    let earlier = match args.resume {
        true => Some(files.earlier()?),
        false => None,
    };
    // What makes no sense is refused before anything is touched.
    let asked = match &earlier {
        Some(run) => Asked::parse(&run.asked, &run.arms)?,
        None => Asked::parse(&args.names, &args.arms)?,
    };
    files.prepare()?;
    let effort = match &earlier {
        Some(run) => Effort::new(run.extent(), Some(run.rounds), Some(run.seconds_per_sample)),
        None => Effort::new(args.extent(), args.rounds.map(usize::from), args.seconds),
    };

    let scratch = Scratch::new("headwater-bench-")?;
    let site = Site::enter(scratch.path())?;
    if let Some(run) = &earlier {
        files.check_same(run, &site.machine)?;
    }
    say(site.machine.describe());
    if let Err(failure) = site.tools.library() {
        say(format_args!("{failure}, so nothing is accelerated."));
    }
    let quick = effort.extent == Extent::Quick;
    if quick {
        bounds::set(QUICK_READY, begun + QUICK);
    }
    let budget = quick.then_some(QUICK_MEASURING);
    let plan = Plan::new(&asked.selections, &asked.arms, &site, effort, budget);
    plan.say();
    let mut session = Session {
        run: earlier.unwrap_or_else(|| begin(args, &site, effort)),
        files,
        effort,
        deadline: quick.then(|| begun + QUICK),
        spare: Duration::ZERO,
        late: Vec::new(),
    };
    session.measure(&plan, &site)?;
    session.run.skipped = plan.skipped(&session.late);
    session.end(&plan)
}

impl Plan {
    fn say(&self) {
        for (name, why) in &self.skipped {
            say(format_args!("{name}: skipped: {why}"));
        }
        for (count, what) in [
            (self.left_out, "cells are left to a run without --quick."),
            (self.left_to_all, "measurements more with --all."),
        ] {
            if count > 0 {
                say(format_args!("{count} {what}"));
            }
        }
    }

    /// With the cells that were planned, and came too late.
    fn skipped(&self, late: &[String]) -> Vec<Skipped> {
        let entry = |name: &str, why: &str| Skipped {
            name: name.to_string(),
            why: why.to_string(),
        };
        let all = self.skipped.iter();
        let mut all: Vec<Skipped> = all.map(|(name, why)| entry(name, why)).collect();
        all.extend(late.iter().map(|name| entry(name, NO_TIME)));
        if self.left_out > 0 {
            all.push(entry(
                &format!("{} cells", self.left_out),
                "they are left to a run without --quick",
            ));
        }
        if self.left_to_all > 0 {
            all.push(entry(
                &format!("{} measurements", self.left_to_all),
                "they are left to a run with --all",
            ));
        }
        all
    }

    /// What is measured, as it would be asked for.
    fn name(&self, item: &Item) -> String {
        let experiment = self.experiments[item.experiment].name;
        format!("{experiment}/{}/{}", item.cell.name, item.placement.name())
    }
}

fn begin(args: &BenchArgs, site: &Site, effort: Effort) -> Run {
    let words: Vec<String> = env::args().collect();
    let command = shlex::try_join(words.iter().map(String::as_str)).unwrap_or_default();
    let mut run = Run::new(&command, now(), &site.machine);
    run.asked = args.names.clone();
    run.arms = args.arms.clone();
    run.quick = effort.extent == Extent::Quick;
    run.all = effort.extent == Extent::All;
    run.rounds = effort.pairs;
    run.seconds_per_sample = effort.time.as_secs_f64();
    run
}

/// Seconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| time.as_secs())
}

fn words(time: Duration) -> String {
    match time.as_secs() {
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ ..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

fn report<'a>(reports: &'a mut Vec<Report>, experiment: &Works) -> &'a mut Report {
    let known = |report: &Report| report.experiment == experiment.name;
    let at = reports.iter().position(known).unwrap_or_else(|| {
        reports.push(Report::new(experiment));
        reports.len() - 1
    });
    &mut reports[at]
}

struct Session {
    run: Run,
    files: Outputs,
    effort: Effort,
    deadline: Option<Instant>,
    /// For what is measured again since it looked bad: as much as the longest cell takes, and a part of what was planned so far.
    spare: Duration,
    /// Names of the cells for which the time did not suffice after all.
    late: Vec<String>,
}

impl Session {
    fn measure(&mut self, plan: &Plan, site: &Site) -> Result<()> {
        let known = |item: &&Item| !self.has(plan.experiments[item.experiment].name, item);
        let items: Vec<&Item> = plan.items.iter().filter(known).collect();
        let takes = items.iter().map(|item| item.takes).sum();
        let (count, takes_about) = (items.len(), words(takes));
        say(format!("{count} cells to be measured, about {takes_about}"));
        let longest = items.iter().map(|item| item.takes).max();
        self.spare = longest.unwrap_or_default();
        let progress = Progress::new(takes);
        for item in items {
            let begins_late = |end| Instant::now() + item.takes > end;
            let is_late = self.deadline.is_some_and(begins_late);
            if is_late || !self.one(plan, item, site, &progress)? {
                if interrupt::asked() {
                    break;
                }
                let name = plan.name(item);
                progress.say(&format!("{name}: skipped: {NO_TIME}"));
                self.late.push(name);
            }
        }
        progress.end();
        Ok(())
    }

    /// One cell in one placement; false when the run was interrupted, or its time over.
    fn one(&mut self, plan: &Plan, item: &Item, site: &Site, progress: &Progress) -> Result<bool> {
        let experiment = &plan.experiments[item.experiment];
        let (cell, placement) = (&item.cell, item.placement);
        progress.now(plan.name(item));
        let until = self.deadline.map(|end| end - (QUICK - QUICK_MEASURING));
        let taken = || {
            let pace = Pace {
                progress,
                takes: item.takes,
                until,
            };
            measure(experiment, site, cell, placement, self.effort, pace)
        };
        let Some(measured) = taken()? else {
            return Ok(false);
        };
        let Measured {
            all,
            mut disturbed,
            mut kept,
        } = measured;
        let mut found = CellReport::new(cell, placement, &all);
        self.spare += item.takes / 25;
        let is_bad = found.comparisons.iter().any(|c| c.verdict.is_bad());
        if self.effort.rerun && is_bad && item.takes <= self.spare {
            self.spare -= item.takes;
            progress.longer(item.takes);
            match taken()? {
                Some(again) => {
                    disturbed += again.disturbed;
                    kept += again.kept;
                    found.measured_again(cell, &again.all);
                }
                None if !found.wrong_contents => return Ok(false),
                None => {}
            }
        }
        progress.say(&table::cell(cell, &found));
        let report = report(&mut self.run.experiments, experiment);
        report.add(found);
        self.run.disturbed_rounds += disturbed;
        self.run.disturbed_kept += kept;
        // After every cell, so that a run that is cut short can go on.
        self.run.write(&self.files.partial())?;
        Ok(true)
    }

    fn has(&self, experiment: &str, item: &Item) -> bool {
        let is_it =
            |cell: &CellReport| cell.cell == item.cell.name && cell.placement == item.placement;
        let own = |report: &&Report| report.experiment == experiment;
        let report = self.run.experiments.iter().find(own);
        let cell = report.and_then(|report| report.cells.iter().find(|cell| is_it(cell)));
        // An arm that could not be measured then may be by now.
        let taken = |arm: &Arm| {
            let found = cell.and_then(|cell| cell.arm(arm.name));
            found.is_some_and(|found| found.samples > 0)
        };
        item.cell.arms.iter().all(taken)
    }

    fn end(mut self, plan: &Plan) -> Result<End> {
        let measured = |report: &Report| report.cells.iter().any(CellReport::has_samples);
        let interrupted = interrupt::asked();
        if !self.run.experiments.iter().any(measured) {
            say("Nothing was measured, and nothing is written.");
            return Ok(End::of(interrupted, true));
        }
        for experiment in &plan.experiments {
            let mut reports = self.run.experiments.iter_mut();
            if let Some(report) = reports.find(|report| report.experiment == experiment.name) {
                report.conclusion = experiment.conclude(&report.cells);
                let tables = report.conclusion.tables();
                say(format_args!("{tables}{}", report.summary()));
            }
        }
        self.run.complete = !interrupted;
        self.run.finished = (!interrupted).then(now);
        self.run.without_samples().write(&self.files.results())?;
        render::all(&self.run, &self.files.out)?;
        say(self.files.out.join("report.html").display());
        if let Some(path) = &self.files.samples {
            results::export_samples(&self.run, path)?;
        }
        if self.run.complete {
            let _ = fs::remove_file(self.files.partial());
        }
        let reports = &self.run.experiments;
        let wrong = reports.iter().any(|report| report.wrong_contents);
        Ok(End::of(interrupted, wrong))
    }
}

#[cfg(test)]
mod tests;
