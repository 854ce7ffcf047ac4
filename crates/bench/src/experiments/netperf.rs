//! The three scripts that the documents of 2007 list, run by our own sender and receiver and printed as netperf prints them.

mod format;

use format::Run;

use super::ranges;
use super::tcp::SIZES;
use super::work::{Work, Works};
use super::xti::flow::highest;
use super::xti::pair::{Pair, Way};
use super::xti::sockets;
use crate::cells::{ArmReport, CellReport};
use crate::conclusion::Conclusion;
use crate::experiment::{Arm, Sample, TCP, Unit, shared, streams};
use crate::findings::{Sheet, Value};
use crate::placement::Placement;
use crate::{sizes, tables};

const UDP: Arm = sockets("udp");
const XTI_UDP: Arm = streams("xti-udp");
const UDP2: Arm = shared("udp2");
const XTI_TCP: Arm = streams("xti-tcp");
/// As two programs with the library have it.
const XTI_SHARED: Arm = shared("xti-shm");
const SCTP: Arm = streams("sctp");

/// netperf's -s and -S.
const BUFFERS: &[&str] = &["--buffers", "131071"];
/// netperf's XTI test says on every t_snd that the data unit goes on.
const MORE: &[&str] = &["--buffers", "131071", "--more"];

/// A family of cells.
struct Script {
    name: &'static str,
    title: &'static str,
    /// In the order in which it has them.
    ranges: &'static [Range],
    /// At -20 and 19.
    nice: bool,
}

/// One range of a script, or its equal.
struct Range {
    way: Way,
    test: &'static str,
    print: fn(&Run) -> String,
}

const TCP_RANGE: Range = Range {
    way: Way::both(TCP, "tcp").with(BUFFERS),
    test: "TCP_STREAM",
    print: |run| run.stream("TCP"),
};
const XTI_TCP_RANGE: Range = Range {
    way: Way::both(XTI_TCP, "/dev/tcp").with(BUFFERS).by_kernel(),
    test: "XTI_TCP_STREAM -X /dev/tcp",
    print: |run| run.stream("TCP"),
};
const SCTP_RANGE: Range = Range {
    way: Way::both(SCTP, "/dev/sctp_t").with(MORE),
    test: "XTI_SCTP_STREAM -X /dev/sctp_t",
    print: |run| run.stream("SCTP"),
};

const SCRIPTS: [Script; 3] = [
    Script {
        name: "udp",
        title: "netperf_benchmark, UDP",
        ranges: &[
            Range {
                way: Way::both(UDP2, "/dev/udp2").with(BUFFERS),
                test: "XTI_UDP_STREAM -X /dev/udp2",
                print: Run::datagrams,
            },
            Range {
                way: Way::both(UDP, "udp").with(BUFFERS),
                test: "UDP_STREAM",
                print: Run::datagrams,
            },
            Range {
                way: Way::both(XTI_UDP, "/dev/udp").with(BUFFERS),
                test: "XTI_UDP_STREAM -X /dev/udp",
                print: Run::datagrams,
            },
        ],
        nice: false,
    },
    Script {
        name: "benchmark",
        title: "netperf_benchmark, TCP and SCTP",
        ranges: &[SCTP_RANGE, TCP_RANGE, XTI_TCP_RANGE],
        nice: false,
    },
    Script {
        name: "nice2",
        title: "netperf_nice2",
        ranges: &[TCP_RANGE, XTI_TCP_RANGE, SCTP_RANGE],
        nice: true,
    },
];

/// The test that no script has, and a user of netperf looks for.
const ROUND_TRIPS: Script = Script {
    name: "rr",
    title: "TCP_RR",
    ranges: &[
        Range {
            way: Way::both(TCP, "tcp").with(BUFFERS),
            test: "TCP_RR",
            print: Run::transactions,
        },
        Range {
            way: Way::both(XTI_TCP, "/dev/tcp").with(BUFFERS).by_kernel(),
            test: "XTI_TCP_RR -X /dev/tcp",
            print: Run::transactions,
        },
        Range {
            way: Way::both(XTI_SHARED, "/dev/tcp").with(BUFFERS),
            test: "XTI_TCP_RR -X /dev/tcp",
            print: Run::transactions,
        },
    ],
    nice: false,
};

pub fn experiment() -> Works {
    let sized = SIZES.into_iter().flat_map(|size| {
        let pair = move |script: &Script| Box::new(script.pair(size)) as Box<dyn Work>;
        SCRIPTS.each_ref().map(pair)
    });
    let trips = Box::new(ROUND_TRIPS.pair(1)) as Box<dyn Work>;
    Works::new("netperf", sized.chain([trips]), conclude)
}

impl Script {
    fn pair(&self, size: usize) -> Pair {
        let nice = |way: Way| match self.nice {
            true => way.at(highest().1, 19),
            false => way,
        };
        let (work, unit) = match self.name {
            "rr" => ("trips", Unit::RoundTrip),
            "udp" => ("datagrams", Unit::Datagrams),
            _ => ("flow", Unit::Messages),
        };
        let ways = self.ranges.iter().map(|range| nice(range.way)).collect();
        Pair::new(format!("{}-{size}", self.name), work, unit, size, ways)
    }

    /// The tests of a range in a placement, by size: of each arm the sample whose rate is in the middle.
    fn runs<'a>(
        &self,
        cells: &'a [CellReport],
        placement: Placement,
        range: &Range,
    ) -> Vec<(Run, &'a ArmReport)> {
        let here = cells
            .iter()
            .filter(|cell| cell.work == self.name && cell.placement == placement);
        let mut runs: Vec<(Run, &ArmReport)> = here
            .filter_map(|cell| {
                let arm = cell.arm(range.way.arm.name).filter(|arm| arm.is_proved())?;
                Some((Run::of(middle(arm)?, cell.size?)?, arm))
            })
            .collect();
        runs.sort_by_key(|(run, _)| run.size);
        runs
    }

    fn sheet(&self, name: &str, words: &[(&str, &str)]) -> Sheet {
        let priorities = self.priorities();
        let own = [
            ("script", self.name),
            ("title", self.title),
            ("priorities", &priorities),
        ];
        tables::sheet("netperf", name, &[&own, words].concat())
    }

    /// What netperf would have printed.
    fn log(&self, cells: &[CellReport], placement: Placement) -> Sheet {
        let words = [("placement", placement.name())];
        let mut sheet = self.sheet("{script}-log-{placement}", &words);
        for range in self.ranges {
            for (run, _) in self.runs(cells, placement, range) {
                let lines = format!("{}\n{}", self.command(range, &run), (range.print)(&run));
                sheet
                    .rows
                    .extend(lines.lines().map(|line| vec![line.into()]));
            }
        }
        sheet
    }

    /// That of netperf which the test is the equal of.
    fn command(&self, range: &Range, run: &Run) -> String {
        let (test, device) = range.test.split_once(' ').unwrap_or((range.test, ""));
        let size = match self.name {
            "rr" => format!("-r {}", run.size),
            _ => format!("-m {}", run.size),
        };
        let nice = match self.nice {
            true => format!("nice -n {} ", highest().1),
            false => String::new(),
        };
        let command = format!(
            "# {nice}netperf -t {test} -H 127.0.0.1 -l {:.2} -- -s 131071 -S 131071 {size} {device}",
            run.elapsed
        );
        command.trim_end().to_string()
    }

    fn priorities(&self) -> String {
        match self.nice {
            true => format!(
                ", the sender at priority {}, the receiver at 19",
                highest().1
            ),
            false => String::new(),
        }
    }

    /// The same in columns.
    fn results(&self, cells: &[CellReport]) -> Sheet {
        let mut sheet = self.sheet("{script}-results", &[]);
        for placement in Placement::ALL {
            for range in self.ranges {
                for (run, arm) in self.runs(cells, placement, range) {
                    sheet.explained(row(placement, range, &run, arm), Some(arm));
                }
            }
        }
        sheet
    }
}

fn row(placement: Placement, range: &Range, run: &Run, arm: &ArmReport) -> Vec<Value> {
    let ([send, _], [_, receive]) = (run.local, run.remote);
    let numbers = [
        run.size as f64,
        send as f64,
        receive as f64,
        run.elapsed * 1e9,
        run.sent as f64,
        run.received as f64,
        run.megabits(run.sent),
        run.megabits(run.received),
    ];
    let mut row: Vec<Value> = vec![placement.name().into(), range.test.into()];
    row.extend(numbers.map(Value::from));
    row.push(middle(arm).and_then(|sample| sample.rx_rate).into());
    row
}

fn middle(arm: &ArmReport) -> Option<&Sample> {
    let mut taken: Vec<&Sample> = arm.all.iter().flatten().collect();
    taken.sort_by(|a, b| a.rate.total_cmp(&b.rate));
    taken.get(taken.len().checked_sub(1)? / 2).copied()
}

fn conclude(cells: &[CellReport]) -> Conclusion {
    let normal = [(0, TCP), (2, XTI_TCP), (3, SCTP)];
    let mut seeds = ranges::UDP.seeds(cells, "udp", &[(0, UDP), (1, XTI_UDP), (2, UDP2)]);
    seeds.extend(ranges::TCP.seeds(cells, "benchmark", &normal));
    seeds.extend(ranges::TCP.seeds(cells, "nice2", &[(1, TCP)]));
    let mut plots = sizes::four(cells, "udp", SCRIPTS[0].title, UDP.name);
    for script in &SCRIPTS[1..] {
        plots.extend(sizes::four(cells, script.name, script.title, TCP.name));
    }
    let scripts = || SCRIPTS.iter().chain([&ROUND_TRIPS]);
    let results = scripts().map(|script| script.results(cells));
    let fits = SCRIPTS
        .iter()
        .flat_map(|script| sizes::sheets(cells, script.name, script.title));
    let logs = scripts().flat_map(|script| {
        let log = |placement| script.log(cells, placement);
        Placement::ALL.into_iter().map(log)
    });
    Conclusion {
        plots,
        sheets: results.chain(fits).chain(logs).collect(),
        seeds,
        ..Conclusion::default()
    }
}

#[cfg(test)]
#[path = "netperf/tests.rs"]
mod tests;
