//! What was asked for by name: `NAME[/CELL[/PLACEMENT]]`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::experiment::{Arm, Cell};
use crate::experiments::{self, Works};
use crate::placement::Placement;
use crate::tables;

/// How much of what is not named.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// Something of each experiment.
    Quick,
    /// What a reader needs.
    Usual,
    All,
}

impl Extent {
    pub fn of(quick: bool, all: bool) -> Extent {
        match (quick, all) {
            (true, _) => Extent::Quick,
            (false, true) => Extent::All,
            (false, false) => Extent::Usual,
        }
    }
}

/// Of a work at many sizes a usual run has so many.
const SIZES: usize = 4;
/// Those that a reader asks for first, in this order.
const ASKED_FOR: [usize; 12] = [
    70, 64, 1000, 1024, 16384, 1, 4096, 65536, 1_048_576, 512, 256, 16,
];
/// Beyond this, the largest is one of them.
const LARGE: usize = 65536;

/// Leaves of each work at many sizes those that are asked for first, and where it goes on to large ones the largest.
fn thin(cells: &mut Vec<Cell>) {
    let mut kept: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    for cell in cells.iter() {
        kept.entry(cell.work.clone()).or_default().extend(cell.size);
    }
    for sizes in kept.values_mut().filter(|sizes| sizes.len() > SIZES) {
        let largest = sizes.last().copied().filter(|&size| size > LARGE);
        let asked = ASKED_FOR.into_iter().filter(|size| sizes.contains(size));
        let first = largest.into_iter().chain(asked);
        *sizes = first.take(SIZES).collect();
    }
    cells.retain(|cell| {
        cell.size
            .is_none_or(|size| kept[&cell.work].contains(&size))
    });
}

/// One argument, or one experiment of all.
#[derive(Debug, PartialEq)]
pub struct Selection {
    pub experiment: String,
    cell: Option<String>,
    placement: Option<String>,
}

impl Selection {
    pub fn parse(names: &[String]) -> Result<Vec<Selection>, String> {
        if names.is_empty() || names.iter().any(|name| name == "all") {
            return Ok(experiments::names()
                .iter()
                .map(|name| Selection::whole(name))
                .collect());
        }
        names
            .iter()
            .map(|name| Selection::parse_one(name))
            .collect()
    }

    /// The cells that are meant: one of exactly this name, else those whose names contain it. Cells that are named need
    /// not be part of a quick run, nor of a usual one.
    pub fn cells(&self, mut cells: Vec<Cell>, extent: Extent) -> Vec<Cell> {
        let Some(part) = &self.cell else {
            match extent {
                Extent::Quick => cells.retain(|cell| cell.quick),
                Extent::Usual if self.placement.is_none() => thin(&mut cells),
                Extent::Usual | Extent::All => {}
            }
            return cells;
        };
        let exact = cells.iter().any(|cell| cell.name == *part);
        let meant = |cell: &Cell| cell.name == *part || !exact && cell.name.contains(part.as_str());
        cells.into_iter().filter(meant).collect()
    }

    /// Of a cell that has it.
    pub fn takes_placement(
        &self,
        experiment: &Works,
        cell: &Cell,
        placement: Placement,
        offered: &[Placement],
        extent: Extent,
    ) -> bool {
        if let Some(name) = &self.placement {
            return placement.name() == name;
        }
        match extent {
            Extent::Quick => matches!(
                placement,
                Placement::Apart | Placement::Same | Placement::SameBusy
            ),
            Extent::Usual if self.cell.is_none() => {
                let usual = tables::usual(experiment.name, cell);
                let is_usual = |own: &Placement| usual.contains(own) && offered.contains(own);
                let has_usual = cell.placements.iter().any(is_usual);
                usual.contains(&placement) || !has_usual && !usual.is_empty()
            }
            Extent::Usual | Extent::All => true,
        }
    }

    pub fn names_placement(&self) -> bool {
        self.placement.is_some()
    }

    fn whole(name: &str) -> Selection {
        Selection {
            experiment: name.to_string(),
            cell: None,
            placement: None,
        }
    }

    /// Refuses a part of a name that no cell has.
    fn check_cell(&self) -> Result<(), String> {
        let (Some(part), Some(experiment)) = (&self.cell, experiments::by_name(&self.experiment))
        else {
            return Ok(());
        };
        let cells = experiment.cells();
        match cells.iter().any(|cell| cell.name.contains(part.as_str())) {
            true => Ok(()),
            false => Err(format!(
                "{} has no cell {part}; `headwater bench list` names them",
                self.experiment
            )),
        }
    }

    fn parse_one(name: &str) -> Result<Selection, String> {
        let mut parts = name.splitn(3, '/').map(str::to_string);
        let selection = Selection {
            experiment: parts.next().unwrap_or_default(),
            cell: parts.next().filter(|part| !part.is_empty()),
            placement: parts.next().filter(|part| !part.is_empty()),
        };
        if !experiments::names().contains(&selection.experiment.as_str()) {
            return Err(format!(
                "there is no experiment {}; there are: {}",
                selection.experiment,
                experiments::names().join(" ")
            ));
        }
        selection.check_cell()?;
        let named = selection.placement.as_ref();
        if let Some(unknown) = named.filter(|name| Placement::named(name).is_none()) {
            let names = Placement::ALL.map(Placement::name).join(" ");
            return Err(format!(
                "there is no placement {unknown}; there are: {names}"
            ));
        }
        Ok(selection)
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.experiment)?;
        match (&self.cell, &self.placement) {
            (None, None) => Ok(()),
            (cell, None) => write!(f, "/{}", cell.as_deref().unwrap_or_default()),
            (cell, Some(placement)) => {
                write!(f, "/{}/{placement}", cell.as_deref().unwrap_or_default())
            }
        }
    }
}

/// Whether HEADWATER_BENCH_ARMS, a list with commas, leaves an arm in.
pub fn takes_arm(arm: Arm) -> bool {
    match std::env::var("HEADWATER_BENCH_ARMS") {
        Ok(list) if !list.is_empty() => list.split(',').any(|name| name.trim() == arm.name),
        _ => true,
    }
}

#[cfg(test)]
mod tests;
