//! What is measured, in which order, and about how long it takes.

use std::collections::VecDeque;
use std::time::Duration;

use crate::arms::user;
use crate::cells::distinct;
use crate::effort::Effort;
use crate::experiment::{Arm, Carrier, Cell, Site};
use crate::experiments::{self, Works};
use crate::placement::Placement;
use crate::select::{self, Extent, Selection};

/// What preparing a sample, and starting and ending its programs takes, about.
const AROUND: Duration = Duration::from_millis(110);
/// Runs in which system calls are counted, in samples.
const COUNTED: f64 = 1.25;

/// One cell in one placement.
pub struct Item {
    /// Among the plan's experiments.
    pub experiment: usize,
    pub cell: Cell,
    pub placement: Placement,
    /// About.
    pub takes: Duration,
}

#[derive(Default)]
pub struct Plan {
    pub experiments: Vec<Works>,
    pub items: Vec<Item>,
    /// Experiments that are not run, and why.
    pub skipped: Vec<(String, String)>,
    /// Of a quick run: what its time does not suffice for.
    pub left_out: usize,
    /// Of a usual one: what a reader does not need.
    pub left_to_all: usize,
}

impl Plan {
    /// Everything that was selected and can be run here. With a `budget` only as much of it as takes so long, a part of each
    /// experiment.
    pub fn new(
        selections: &[Selection],
        extra: &[Arm],
        site: &Site,
        effort: Effort,
        budget: Option<Duration>,
    ) -> Plan {
        let mut plan = Plan::default();
        let mut queues: Vec<VecDeque<Item>> = Vec::new();
        for name in distinct(selections.iter().map(|one| &one.experiment)) {
            let Some(experiment) = experiments::by_name(name) else {
                continue;
            };
            let at = plan.experiments.len();
            let cpus = &site.machine.cpus;
            let of = |effort| items(&experiment, at, selections, extra, cpus, effort);
            let whole = Effort {
                extent: Extent::All,
                ..effort
            };
            let items = of(effort);
            if effort.extent == Extent::Usual {
                plan.left_to_all += of(whole).len() - items.len();
            }
            plan.skip_without_cpus(&experiment, selections, cpus, effort.extent);
            plan.skip_unplaced(&experiment, selections, effort.extent);
            if items.is_empty() {
                let said = plan.skipped.iter().any(|(skipped, _)| is_of(skipped, name));
                if !said {
                    plan.skip(
                        name,
                        "nothing of it that was asked for can be measured here",
                    );
                }
                continue;
            }
            plan.experiments.push(experiment);
            queues.push(items.into());
        }
        match budget {
            None => plan.items = queues.into_iter().flatten().collect(),
            Some(budget) => plan.fill(queues, budget),
        }
        plan
    }

    fn skip(&mut self, name: &str, why: &str) {
        self.skipped.push((name.to_string(), why.to_string()));
    }

    /// Names the cells that are asked for in placements alone for which there are not enough CPUs.
    fn skip_without_cpus(
        &mut self,
        experiment: &Works,
        selections: &[Selection],
        cpus: &[usize],
        extent: Extent,
    ) {
        let offered: Vec<Placement> = Placement::offered(cpus).collect();
        let mut lacking: Vec<String> = Vec::new();
        for selection in of(selections, experiment) {
            for cell in selection.cells(experiment.cells(), extent) {
                let mut wanted = wanted(experiment, selection, &cell, &offered, extent).peekable();
                let lacks = wanted.peek().is_some() && !wanted.any(|one| offered.contains(&one));
                if lacks && !lacking.contains(&cell.name) {
                    lacking.push(cell.name.clone());
                }
            }
        }
        if !lacking.is_empty() {
            let names = format!("{}/{}", experiment.name, lacking.join(" "));
            self.skip(
                &names,
                "each end takes a CPU of its own, and there is only one",
            );
        }
    }

    /// Names what is asked for in a placement in which it is never measured.
    fn skip_unplaced(&mut self, experiment: &Works, selections: &[Selection], extent: Extent) {
        for selection in of(selections, experiment) {
            let cells = selection.cells(experiment.cells(), extent);
            let known = |cell: &Cell| {
                wanted(experiment, selection, cell, &Placement::ALL, extent)
                    .next()
                    .is_some()
            };
            if selection.names_placement() && !cells.iter().any(known) {
                self.skip(
                    &selection.to_string(),
                    "it is not measured in that placement",
                );
            }
        }
    }

    /// Takes from the experiments in turn, so that none is left without where things take longer than expected.
    fn fill(&mut self, mut queues: Vec<VecDeque<Item>>, budget: Duration) {
        let mut left = budget;
        while queues.iter().any(|queue| !queue.is_empty()) {
            for item in queues.iter_mut().filter_map(VecDeque::pop_front) {
                if item.takes <= left {
                    left -= item.takes;
                    self.items.push(item);
                } else {
                    self.left_out += 1;
                }
            }
        }
    }
}

/// Whether what was skipped is an experiment or a part of it.
fn is_of(skipped: &str, experiment: &str) -> bool {
    skipped.split('/').next() == Some(experiment)
}

/// Those that are about an experiment.
fn of<'a>(selections: &'a [Selection], experiment: &Works) -> impl Iterator<Item = &'a Selection> {
    let name = experiment.name;
    selections
        .iter()
        .filter(move |selection| selection.experiment == name)
}

/// The placements that a cell has and that are asked for, whatever the machine.
fn wanted(
    experiment: &Works,
    selection: &Selection,
    cell: &Cell,
    offered: &[Placement],
    extent: Extent,
) -> impl Iterator<Item = Placement> {
    let placements = cell.placements.iter().copied();
    placements.filter(move |placement| {
        selection.takes_placement(experiment, cell, *placement, offered, extent)
    })
}

fn items(
    experiment: &Works,
    at: usize,
    selections: &[Selection],
    extra: &[Arm],
    cpus: &[usize],
    effort: Effort,
) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    let offered: Vec<Placement> = Placement::offered(cpus).collect();
    let takes = |selection: &Selection, cell: &Cell, placement| {
        selection.takes_placement(experiment, cell, placement, &offered, effort.extent)
    };
    for selection in of(selections, experiment) {
        for cell in selection.cells(experiment.cells(), effort.extent) {
            for &placement in &offered {
                let known =
                    |item: &Item| item.cell.name == cell.name && item.placement == placement;
                if cell.placements.contains(&placement)
                    && takes(selection, &cell, placement)
                    && !items.iter().any(known)
                {
                    items.push(item(experiment, at, &cell.name, extra, placement, effort));
                }
            }
        }
    }
    items.retain(|item| !item.cell.arms.is_empty());
    if effort.extent == Extent::Quick {
        // As many cells as possible, before another placement of the same.
        let place = |item: &Item| Placement::ALL.iter().position(|one| *one == item.placement);
        items.sort_by_key(place);
    }
    items
}

fn item(
    experiment: &Works,
    at: usize,
    name: &str,
    extra: &[Arm],
    placement: Placement,
    effort: Effort,
) -> Item {
    let cells = experiment.cells();
    let mut cell = cells
        .into_iter()
        .find(|cell| cell.name == name)
        .expect("the experiment has just offered it");
    if let Some(native) = user::native(&cell) {
        let nodelay = native.nodelay;
        let own = extra.iter().map(|arm| Arm { nodelay, ..*arm });
        cell.arms.extend(own);
    }
    let here = |arm: &Arm| arm.only.is_empty() || arm.only.contains(&placement);
    cell.arms.retain(|arm| here(arm) && select::takes_arm(*arm));
    let takes = takes(&cell, effort);
    Item {
        experiment: at,
        cell,
        placement,
        takes,
    }
}

fn takes(cell: &Cell, effort: Effort) -> Duration {
    let sample = effort.time.mul_f64(cell.stretch.max(0.0)) + AROUND;
    let counted = if effort.count { COUNTED } else { 0.0 };
    let of = |arm: &Arm| match arm.carrier {
        Carrier::Raw => effort.pairs as f64,
        _ => effort.pairs as f64 + counted,
    };
    sample.mul_f64(cell.arms.iter().map(of).sum())
}

#[cfg(test)]
mod tests;
