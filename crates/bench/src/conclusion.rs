//! What follows from many cells together: the best of all placements, and lines through times over sizes.

use serde::{Deserialize, Serialize};

use crate::cells::{ArmReport, CellReport, distinct};
use crate::experiment::{Arm, Goal};
use crate::findings::{Headline, Plot, Seed, Sheet};
use crate::lenient;
use crate::numbers::{duration, number};
use crate::placement::Placement;
use crate::stats::least_squares;
use crate::table;
use crate::verdict::{self, Comparison};

#[derive(Clone, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Conclusion {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub best: Vec<Best>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub regressions: Vec<Regression>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sheets: Vec<Sheet>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plots: Vec<Plot>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub seeds: Vec<Seed>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headlines: Vec<Headline>,
}

/// An arm in its best placement against another in the other's.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Best {
    pub cell: String,
    pub placement: Placement,
    pub against_placement: Placement,
    #[serde(flatten)]
    pub comparison: Comparison,
}

/// How the time of a message grows with its size.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Regression {
    pub work: String,
    pub placement: Placement,
    pub arm: String,
    pub sizes: usize,
    /// The intercept: what a message costs however small it is.
    #[serde(deserialize_with = "lenient::number")]
    pub delay_ns: f64,
    /// Of the slope; none where more bytes took no more time, or the line explains too little.
    pub bytes_per_second: Option<f64>,
    #[serde(deserialize_with = "lenient::number")]
    pub r_squared: f64,
    /// How many times better than the baseline; none where one of both makes no sense.
    pub delay_factor: Option<f64>,
    pub throughput_factor: Option<f64>,
}

impl Best {
    /// Compares the rates of a cell's arms, each in that of `placements` where its median is highest, round by round.
    pub fn of(
        cells: &[CellReport],
        cell: &str,
        placements: &[Placement],
        goal: &Goal,
        against: Arm,
    ) -> Option<Best> {
        let best = |arm: &str| {
            let offered = cells
                .iter()
                .filter(|found| found.cell == cell && placements.contains(&found.placement));
            offered
                .filter_map(|found| {
                    let arm = found.arm(arm)?;
                    Some((found.placement, arm, arm.rate?))
                })
                .max_by(|a, b| a.2.total_cmp(&b.2))
        };
        let (placement, mine, _) = best(goal.arm)?;
        let (against_placement, other, _) = best(against.name)?;
        let rounds = mine.rates.iter().zip(&other.rates);
        let ratios: Vec<f64> = rounds.filter_map(|(a, b)| Some((*a)? / (*b)?)).collect();
        let name = format!("{} ({})", against.name, against_placement.name());
        let wanted = Some((goal.must, goal.aim));
        Some(Best {
            cell: cell.to_string(),
            placement,
            against_placement,
            comparison: verdict::judge(goal, name, &ratios, wanted, true)?,
        })
    }
}

impl Regression {
    /// One line for each placement and arm of the cells `WORK-SIZE`, with sizes up to `largest`.
    pub fn all(
        cells: &[CellReport],
        work: &'static str,
        largest: usize,
        baseline: Arm,
    ) -> Vec<Regression> {
        let size = |cell: &CellReport| -> Option<usize> {
            let size = cell.cell.strip_prefix(work)?.strip_prefix('-')?;
            size.parse().ok().filter(|&size| size <= largest)
        };
        let sized: Vec<(usize, &CellReport)> = cells
            .iter()
            .filter_map(|cell| Some((size(cell)?, cell)))
            .collect();
        let mut lines = Vec::new();
        for placement in Placement::ALL {
            let here: Vec<_> = sized
                .iter()
                .filter(|(_, cell)| cell.placement == placement)
                .collect();
            let arms = here.iter().flat_map(|(_, cell)| &cell.arms);
            let names = distinct(arms.map(|arm| &arm.arm));
            let mut found: Vec<Regression> = names
                .into_iter()
                .filter_map(|name| {
                    let time = |arm: &ArmReport| arm.rate.map(|rate| 1e9 / rate);
                    let points: Vec<(f64, f64)> = here
                        .iter()
                        .filter_map(|(size, cell)| Some((*size as f64, time(cell.arm(name)?)?)))
                        .collect();
                    Regression::line(work, placement, name, &points)
                })
                .collect();
            compare(&mut found, baseline);
            lines.extend(found);
        }
        lines
    }

    fn line(
        work: &str,
        placement: Placement,
        arm: &str,
        points: &[(f64, f64)],
    ) -> Option<Regression> {
        let line = least_squares(points)?;
        let rising = line.told().filter(|line| line.slope > 0.0);
        Some(Regression {
            work: work.to_string(),
            placement,
            arm: arm.to_string(),
            sizes: points.len(),
            delay_ns: line.intercept,
            bytes_per_second: rising.map(|line| 1e9 / line.slope),
            r_squared: line.r_squared,
            delay_factor: None,
            throughput_factor: None,
        })
    }
}

fn compare(lines: &mut [Regression], baseline: Arm) {
    let Some(base) = lines.iter().find(|line| line.arm == baseline.name) else {
        return;
    };
    let (delay_ns, bytes_per_second) = (base.delay_ns, base.bytes_per_second);
    for line in lines.iter_mut() {
        let sensible = delay_ns > 0.0 && line.delay_ns > 0.0;
        line.delay_factor = sensible.then_some(delay_ns / line.delay_ns);
        line.throughput_factor = line
            .bytes_per_second
            .zip(bytes_per_second)
            .map(|(own, base)| own / base);
    }
}

impl Conclusion {
    /// For people; nothing where nothing follows.
    pub fn tables(&self) -> String {
        let mut text = String::new();
        for best in &self.best {
            text += &format!(
                "\n{}, each in its best placement ({})\n  {}\n",
                best.cell,
                best.placement.name(),
                table::sentence(&best.comparison)
            );
        }
        if self.regressions.is_empty() {
            return text;
        }
        let mut lines = table::new("work|placement|arm|sizes|delay|factor|throughput|factor|R²");
        let factor =
            |value: Option<f64>| value.map_or(String::new(), |value| format!("{}x", number(value)));
        for line in &self.regressions {
            let throughput = |value| format!("{} GB/s", number(value / 1e9));
            table::row(
                &mut lines,
                [
                    line.work.to_string(),
                    line.placement.name().to_string(),
                    line.arm.to_string(),
                    line.sizes.to_string(),
                    delay(line.delay_ns),
                    factor(line.delay_factor),
                    line.bytes_per_second.map_or(String::new(), throughput),
                    factor(line.throughput_factor),
                    number(line.r_squared),
                ],
            );
        }
        text + &format!("\nregression of the time of a message over its size\n{lines}\n")
    }
}

/// An intercept may be negative, where the line is bent.
fn delay(ns: f64) -> String {
    match ns < 0.0 {
        true => format!("-{}", duration(-ns)),
        false => duration(ns),
    }
}

#[cfg(test)]
mod tests;
