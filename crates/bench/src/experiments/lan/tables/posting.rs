//! From which size on a blocked reader's buffer had better be filled by the writer, if at all.

use super::super::POSTING;
use super::super::figures::{Figures, factor, sound, time};
use super::super::posting::POSTED;
use super::{kib, value};
use crate::experiment::{PIPE, RAW_CHANNEL};
use crate::findings::{Sheet, Value};
use crate::placement::Placement;
use crate::stats::Factor;
use crate::tables;

/// What the arms are called here.
const WAYS: [(&str, &str); 3] = [
    ("pipe", PIPE.name),
    ("ring", RAW_CHANNEL.name),
    ("posted", POSTED.name),
];

pub fn sheet(figures: &Figures<'_>) -> Sheet {
    let verdicts = verdicts(figures);
    let mut sheet = tables::sheet("lan", "posting", &[("verdicts", &verdicts)]);
    for placement in figures.placements(POSTING) {
        for cell in figures.cells(POSTING, placement) {
            for (word, name) in WAYS {
                let Some(arm) = sound(cell, name) else {
                    continue;
                };
                let over = factor(cell, name, RAW_CHANNEL.name).filter(|_| word != "ring");
                let row: Vec<Value> = vec![
                    placement.name().into(),
                    cell.size.map(|size| size as f64).into(),
                    word.into(),
                    time(arm).into(),
                    value(over),
                    over.map(|factor| factor.low).into(),
                    over.map(|factor| factor.high).into(),
                ];
                sheet.explained(row, Some(arm));
            }
        }
    }
    sheet
}

/// A sentence for each placement.
fn verdicts(figures: &Figures<'_>) -> String {
    let sentence = |placement: Placement| {
        let cells = figures.cells(POSTING, placement);
        let factors: Vec<(usize, Factor)> = cells
            .iter()
            .filter_map(|cell| Some((cell.size?, factor(cell, POSTED.name, RAW_CHANNEL.name)?)))
            .collect();
        let name = placement.name();
        Some(match pays_from(&factors) {
            _ if factors.is_empty() => return None,
            Some(size) => format!("Placed {name}, posting is faster from {} on.", kib(size)),
            None => format!("Placed {name}, there is no size from which posting is faster."),
        })
    };
    let all: Vec<String> = Placement::UNDISTURBED
        .iter()
        .copied()
        .filter_map(sentence)
        .collect();
    all.join(" ")
}

/// The size from which on all are surely faster; sizes are in order.
fn pays_from(factors: &[(usize, Factor)]) -> Option<usize> {
    let faster = factors
        .iter()
        .rev()
        .take_while(|(_, factor)| factor.low > 1.0);
    faster.last().map(|&(size, _)| size)
}

#[cfg(test)]
mod tests;
