//! How the comparisons of a run ended, and which did not end well.

use crate::cells::CellReport;
use crate::report::Report;
use crate::verdict::{Comparison, Figure, Verdict};

#[derive(Clone, Copy, Default, Debug, PartialEq)]
pub struct Tally {
    pub aim: usize,
    pub must: usize,
    pub missed: usize,
    pub held: usize,
    pub slower: usize,
    pub not_carried: usize,
    /// Arms that have no sample at all.
    pub silent: usize,
}

/// A comparison that did not end well; once more where it was measured once more.
pub struct Shortfall<'a> {
    pub cell: &'a str,
    pub place: String,
    pub first: &'a Comparison,
    pub again: Option<&'a Comparison>,
}

/// Arms that have no sample, for one reason, and the cells where that is so.
#[derive(Debug, PartialEq)]
pub struct Silence<'a> {
    pub arms: Vec<&'a str>,
    pub reason: &'a str,
    pub cells: Vec<String>,
}

impl Tally {
    pub fn of<'a>(reports: impl IntoIterator<Item = &'a Report>) -> Tally {
        let mut tally = Tally::default();
        for report in reports {
            let best = report.conclusion.best.iter().map(|best| &best.comparison);
            let all = report.cells.iter().flat_map(|cell| &cell.comparisons);
            all.chain(best)
                .for_each(|comparison| tally.count(comparison.verdict));
            let arms = report.cells.iter().flat_map(|cell| &cell.arms);
            tally.silent += arms.filter(|arm| arm.samples == 0).count();
        }
        tally
    }

    pub fn bad(&self) -> usize {
        self.missed + self.slower + self.not_carried
    }

    pub fn judged(&self) -> usize {
        self.aim + self.must + self.held + self.bad()
    }

    fn count(&mut self, verdict: Verdict) {
        *match verdict {
            Verdict::Seen => return,
            Verdict::Aim => &mut self.aim,
            Verdict::Must => &mut self.must,
            Verdict::Missed => &mut self.missed,
            Verdict::NotSlower => &mut self.held,
            Verdict::Slower => &mut self.slower,
            Verdict::NotCarried => &mut self.not_carried,
        } += 1;
    }
}

pub fn is_short(verdict: Verdict) -> bool {
    verdict.is_bad() || verdict == Verdict::NotCarried
}

/// The worst first.
pub fn shortfalls(report: &Report) -> Vec<Shortfall<'_>> {
    let within = |cell: &'_ CellReport| cell.placement.name().to_string();
    let cells = report.cells.iter().flat_map(|cell| {
        let all = cell.comparisons.iter();
        all.filter(|one| is_short(one.verdict))
            .map(move |first| Shortfall {
                cell: &cell.cell,
                place: within(cell),
                first,
                again: cell.again(first),
            })
    });
    let best = report
        .conclusion
        .best
        .iter()
        .filter(|best| is_short(best.comparison.verdict));
    let best = best.map(|best| Shortfall {
        cell: &best.cell,
        place: format!("best ({})", best.placement.name()),
        first: &best.comparison,
        again: None,
    });
    let mut all: Vec<Shortfall<'_>> = cells.chain(best).collect();
    all.sort_by(|a, b| badness(a.first).total_cmp(&badness(b.first)));
    all
}

/// How much of what was wanted is there; what was never carried comes first, differences last.
fn badness(comparison: &Comparison) -> f64 {
    match comparison.figure {
        _ if comparison.verdict == Verdict::NotCarried => f64::NEG_INFINITY,
        Figure::Ratio(ratio) => ratio / comparison.must.unwrap_or(1.0).max(f64::MIN_POSITIVE),
        Figure::More(_) => f64::INFINITY,
    }
}

pub fn silences(report: &Report) -> Vec<Silence<'_>> {
    let mut found: Vec<Silence<'_>> = Vec::new();
    for cell in &report.cells {
        for arm in cell.arms.iter().filter(|arm| arm.samples == 0) {
            let reason = arm
                .failures
                .first()
                .map_or("it gave no reason", String::as_str);
            let cell = format!("{} {}", cell.cell, cell.placement.name());
            match found.iter_mut().find(|one| one.reason == reason) {
                Some(silence) => silence.add(&arm.arm, cell),
                None => found.push(Silence {
                    arms: vec![&arm.arm],
                    reason,
                    cells: vec![cell],
                }),
            }
        }
    }
    found
}

impl<'a> Silence<'a> {
    fn add(&mut self, arm: &'a str, cell: String) {
        if !self.arms.contains(&arm) {
            self.arms.push(arm);
        }
        if !self.cells.contains(&cell) {
            self.cells.push(cell);
        }
    }
}
