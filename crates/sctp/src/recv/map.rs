//! Which TSNs have come: the cumulative one, and the runs of those behind gaps.

use std::collections::VecDeque;

use crate::Tsn;

/// How far beyond the cumulative TSN a chunk may be. SSNs of what waits then always have an order, and gap blocks hold the offset.
pub const REACH: u64 = 1 << 15;
/// Most runs behind gaps; what would make another one is not taken.
const MOST_RUNS: usize = 4096;

/// TSNs are kept in 64 bits here, so that they can be sorted: the wire's are the lower half.
#[derive(Debug)]
pub struct TsnMap {
    cumulative: u64,
    /// First and last TSN of each run, ascending, never adjacent to each other or to the cumulative TSN.
    runs: VecDeque<(u64, u64)>,
}

impl TsnMap {
    pub fn new(first_expected: Tsn) -> TsnMap {
        TsnMap {
            cumulative: (1 << 32) + u64::from(first_expected.0) - 1,
            runs: VecDeque::new(),
        }
    }

    /// The 64-bit form of a TSN that is within half the space of the cumulative one.
    #[inline]
    pub fn unwrap(&self, tsn: Tsn) -> u64 {
        let ahead = tsn.0.wrapping_sub(self.cumulative as u32) as i32;
        self.cumulative.wrapping_add_signed(i64::from(ahead))
    }

    #[inline]
    pub fn cumulative(&self) -> u64 {
        self.cumulative
    }

    pub fn has_gaps(&self) -> bool {
        !self.runs.is_empty()
    }

    /// Has it come before?
    #[inline]
    pub fn contains(&self, tsn: u64) -> bool {
        if tsn <= self.cumulative {
            return true;
        }
        let after = self.runs.partition_point(|run| run.1 < tsn);
        self.runs.get(after).is_some_and(|run| run.0 <= tsn)
    }

    /// May a TSN that has not come be noted?
    #[inline]
    pub fn can_hold(&self, tsn: u64) -> bool {
        tsn == self.cumulative + 1
            || (tsn - self.cumulative <= REACH && self.runs.len() < MOST_RUNS)
    }

    /// Notes a TSN that has not come before.
    #[inline]
    pub fn insert(&mut self, tsn: u64) {
        if tsn == self.cumulative + 1 {
            self.cumulative = tsn;
            self.close_first_gap();
        } else {
            self.insert_run(tsn);
        }
    }

    /// Everything up to there counts as come.
    pub fn advance(&mut self, cumulative: u64) {
        self.cumulative = self.cumulative.max(cumulative);
        while self
            .runs
            .front()
            .is_some_and(|run| run.0 <= self.cumulative + 1)
        {
            let run = self.runs.pop_front().expect("there is one");
            self.cumulative = self.cumulative.max(run.1);
        }
    }

    /// Takes back what was noted beyond the cumulative TSN: a run of TSNs that have all come.
    pub fn take_back(&mut self, first: u64, last: u64) {
        let at = self.runs.partition_point(|run| run.1 < first);
        let run = self.runs[at];
        debug_assert!(run.0 <= first && last <= run.1);
        let before = (run.0 < first).then(|| (run.0, first - 1));
        let after = (last < run.1).then(|| (last + 1, run.1));
        match (before, after) {
            (Some(before), Some(after)) => {
                self.runs[at] = before;
                self.runs.insert(at + 1, after);
            }
            (Some(one), None) | (None, Some(one)) => self.runs[at] = one,
            (None, None) => {
                self.runs.remove(at);
            }
        }
    }

    /// Gap blocks as a SACK has them: offsets from the cumulative TSN.
    pub fn gaps(&self) -> impl Iterator<Item = (u16, u16)> + '_ {
        let offset = |tsn: u64| (tsn - self.cumulative) as u16;
        self.runs
            .iter()
            .map(move |run| (offset(run.0), offset(run.1)))
    }

    pub fn check(&self) {
        let mut end = self.cumulative;
        for run in &self.runs {
            assert!(run.0 > end + 1 && run.1 >= run.0, "runs of TSNs touch");
            end = run.1;
        }
        assert!(end - self.cumulative <= REACH);
    }

    #[inline]
    fn close_first_gap(&mut self) {
        if let Some(run) = self.runs.front().filter(|run| run.0 == self.cumulative + 1) {
            self.cumulative = run.1;
            self.runs.pop_front();
        }
    }

    fn insert_run(&mut self, tsn: u64) {
        let at = self.runs.partition_point(|run| run.1 < tsn);
        let joins_before = at > 0 && self.runs[at - 1].1 + 1 == tsn;
        let joins_after = self.runs.get(at).is_some_and(|run| run.0 == tsn + 1);
        match (joins_before, joins_after) {
            (true, true) => {
                self.runs[at - 1].1 = self.runs[at].1;
                self.runs.remove(at);
            }
            (true, false) => self.runs[at - 1].1 = tsn,
            (false, true) => self.runs[at].0 = tsn,
            (false, false) => self.runs.insert(at, (tsn, tsn)),
        }
    }
}
