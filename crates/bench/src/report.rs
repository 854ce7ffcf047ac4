//! What is left of an experiment as JSON, and its summary in the terminal.

use serde::{Deserialize, Serialize};

use crate::cells::CellReport;
use crate::conclusion::Conclusion;
use crate::experiment::UNIX;
use crate::experiments::Works;
use crate::verdict::{Comparison, Verdict};
use crate::{table, tables};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    pub experiment: String,
    pub describe: String,
    #[serde(default)]
    pub question: String,
    #[serde(default)]
    pub method: String,
    pub wrong_contents: bool,
    pub cells: Vec<CellReport>,
    #[serde(flatten)]
    pub conclusion: Conclusion,
}

impl Report {
    pub fn new(experiment: &Works) -> Report {
        let texts = tables::texts(experiment.name);
        let text = |of: fn(&tables::Texts) -> &String| texts.map(of).cloned().unwrap_or_default();
        Report {
            experiment: experiment.name.to_string(),
            describe: text(|texts| &texts.describe),
            question: text(|texts| &texts.question),
            method: text(|texts| &texts.method),
            wrong_contents: false,
            cells: Vec::new(),
            conclusion: Conclusion::default(),
        }
    }

    pub fn add(&mut self, cell: CellReport) {
        self.wrong_contents |= cell.wrong_contents;
        let is_it =
            |known: &CellReport| known.cell == cell.cell && known.placement == cell.placement;
        self.cells.retain(|known| !is_it(known));
        self.cells.push(cell);
    }

    /// Every goal and every "never slower" that did not hold, or a line that all did.
    pub fn summary(&self) -> String {
        let mut goals = table::new("cell|placement|of|measured|95 %|must|aim|verdict");
        let mut shown = 0;
        let mut goal = |cell: &str, placement: &str, comparison: &Comparison| {
            shown += 1;
            let names = [cell, placement].map(str::to_string);
            let fields = names.into_iter().chain(table::fields(comparison));
            table::row(&mut goals, fields);
        };
        for found in &self.cells {
            for first in &found.comparisons {
                let aside = first.must.is_none() && first.against == UNIX.name;
                let held = first.must.is_none() && first.verdict == Verdict::NotSlower;
                if aside || held {
                    continue;
                }
                let again = found.again(first);
                for comparison in [Some(first), again].into_iter().flatten() {
                    goal(&found.cell, found.placement.name(), comparison);
                }
            }
        }
        for best in &self.conclusion.best {
            goal(&best.cell, "best", &best.comparison);
        }
        let count = |verdict: Verdict| {
            let all = self.cells.iter().flat_map(|cell| &cell.comparisons);
            let best = self.conclusion.best.iter().map(|best| &best.comparison);
            all.chain(best)
                .filter(|comparison| comparison.verdict == verdict)
                .count()
        };
        let mut text = String::new();
        if shown > 0 {
            text += &format!("\n{goals}");
        }
        text + &format!(
            "\naim met {}, must met {}, missed {}; never slower: held {}, broken {}; not carried {}; arms without a sample {}",
            count(Verdict::Aim),
            count(Verdict::Must),
            count(Verdict::Missed),
            count(Verdict::NotSlower),
            count(Verdict::Slower),
            count(Verdict::NotCarried),
            self.cells
                .iter()
                .flat_map(|cell| &cell.arms)
                .filter(|arm| arm.samples == 0)
                .count(),
        )
    }
}

#[cfg(test)]
mod tests;
