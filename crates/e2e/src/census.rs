//! What processes hold, and whether it grows: for tests that go on for long.

use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::path::Path;

/// What one process holds, in numbers that do not grow for as long as its work stays the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Holds {
    pub descriptors: u64,
    /// Segments of connections that it has mapped.
    pub segments: u64,
    /// System V segments that it has attached.
    pub attached: u64,
    pub mappings: u64,
    /// Its share of the memory that it has, in KiB; a page that two processes have counts as half of one for each. Pages of
    /// files are left out: whose they are changes with who else has them.
    pub memory: u64,
}

impl Holds {
    /// `None` when it has ended.
    pub fn of(pid: u32) -> Option<Holds> {
        let at = |file: &str| format!("/proc/{pid}/{file}");
        let descriptors = fs::read_dir(at("fd")).ok()?.count() as u64;
        let maps = fs::read_to_string(at("maps")).ok()?;
        // Each in several pieces.
        let inodes = |what: &str| -> u64 {
            let pieces = maps.lines().filter(|l| l.contains(what));
            let inodes: HashSet<_> = pieces.map(|l| l.split_whitespace().nth(4)).collect();
            inodes.len() as u64
        };
        Some(Holds {
            descriptors,
            segments: inodes("memfd:headwater"),
            attached: inodes("/SYSV"),
            mappings: maps.lines().count() as u64,
            memory: memory(pid)?,
        })
    }

    /// Both together.
    pub fn plus(self, other: Holds) -> Holds {
        let (a, b) = (self.numbers(), other.numbers());
        Holds::from_numbers([0, 1, 2, 3, 4].map(|i| a[i] + b[i]))
    }

    /// Is none of the numbers larger?
    pub fn is_within(self, bound: Holds) -> bool {
        let mut pairs = self.numbers().into_iter().zip(bound.numbers());
        pairs.all(|(has, bound)| has <= bound)
    }

    fn numbers(self) -> [u64; 5] {
        [
            self.descriptors,
            self.segments,
            self.attached,
            self.mappings,
            self.memory,
        ]
    }

    fn from_numbers([descriptors, segments, attached, mappings, memory]: [u64; 5]) -> Holds {
        Holds {
            descriptors,
            segments,
            attached,
            mappings,
            memory,
        }
    }
}

impl fmt::Display for Holds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [descriptors, segments, attached, mappings, memory] = self.numbers();
        write!(
            f,
            "{descriptors} descriptors, {segments} segments, {attached} of System V, {mappings} mappings, {memory} KiB"
        )
    }
}

/// `None` when the process has ended.
fn memory(pid: u32) -> Option<u64> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let kib = |name: &str| -> Option<u64> {
        let line = rollup.lines().find_map(|l| l.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    Some(kib("Pss_Anon:")? + kib("Pss_Shmem:")?)
}

/// How many files a folder holds, and their bytes.
pub fn files(folder: &Path) -> (usize, u64) {
    let entries = fs::read_dir(folder).expect("the folder is there").flatten();
    entries.fold((0, 0), |(n, bytes), e| {
        (n + 1, bytes + e.metadata().map_or(0, |m| m.len()))
    })
}

/// What a process held from time to time.
pub struct Series {
    name: String,
    seen: Vec<Holds>,
}

impl Series {
    pub fn new(name: &str) -> Series {
        Series {
            name: name.to_string(),
            seen: Vec::new(),
        }
    }

    /// Looks once more.
    ///
    /// # Panics
    /// If the process has ended.
    pub fn look(&mut self, pid: u32) {
        let holds = Holds::of(pid);
        self.seen
            .push(holds.unwrap_or_else(|| panic!("{} has ended", self.name)));
    }

    /// The last that was seen.
    pub fn last(&self) -> Holds {
        self.seen.last().copied().unwrap_or_default()
    }

    /// The medians of the first and of the last tenth.
    fn tenths(&self) -> [Holds; 2] {
        let n = self.seen.len().div_ceil(10);
        let tenths = [&self.seen[..n], &self.seen[self.seen.len() - n..]];
        tenths.map(|tenth| {
            let median = |i: usize| {
                let mut sorted: Vec<u64> = tenth.iter().map(|h| h.numbers()[i]).collect();
                sorted.sort_unstable();
                sorted[sorted.len() / 2]
            };
            Holds::from_numbers([0, 1, 2, 3, 4].map(median))
        })
    }

    /// Asserts that the last tenth had no more than the first, but for what `slack` allows. The same work has ups and downs.
    pub fn assert_flat(&self, slack: Holds) {
        let [first, last] = self.tenths();
        println!("{}: {first}; in the end {last}", self.name);
        assert!(
            last.is_within(first.plus(slack)),
            "{} grows: {first}; in the end {last}",
            self.name
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(descriptors: impl Iterator<Item = u64>) -> Series {
        let holds = |descriptors| Holds {
            descriptors,
            ..Holds::default()
        };
        Series {
            name: "a process".to_string(),
            seen: descriptors.map(holds).collect(),
        }
    }

    const SLACK: Holds = Holds {
        descriptors: 5,
        segments: 0,
        attached: 0,
        mappings: 0,
        memory: 0,
    };

    #[test]
    fn ups_and_downs_are_flat() {
        series((0..100).map(|i| 50 + i % 7)).assert_flat(SLACK);
    }

    #[test]
    #[should_panic = "grows"]
    fn a_descriptor_now_and_then_is_not() {
        series((0..100).map(|i| 50 + i / 10)).assert_flat(SLACK);
    }

    #[test]
    fn a_process_holds_what_it_has_open() {
        let me = std::process::id();
        let before = Holds::of(me).expect("it runs");
        let _file = fs::File::open("/dev/null").expect("there");
        let after = Holds::of(me).expect("it runs");
        assert_eq!(after.descriptors, before.descriptors + 1);
        assert!(after.memory > 100);
    }
}
