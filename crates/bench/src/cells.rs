//! What is left of a cell as JSON: medians of its arms, and what follows from them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::carriage::Counters;
use crate::experiment::{Cell, Metric, Sample, Unit};
use crate::failure::tells_wrong_bytes;
use crate::latency::Latency;
use crate::placement::Placement;
use crate::stats::{self, Spread, median};
use crate::verdict::{self, Comparison, Series, Syscalls};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CellReport {
    pub cell: String,
    pub work: String,
    pub size: Option<usize>,
    pub unit: Unit,
    pub placement: Placement,
    pub arms: Vec<ArmReport>,
    /// Whether bytes that were received in any of its samples, also in those that don't count, differed from the sent ones.
    #[serde(default)]
    pub wrong_contents: bool,
    pub comparisons: Vec<Comparison>,
    /// The same once more, where the first looked bad.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rerun: Option<Vec<Comparison>>,
}

/// Medians of an arm's samples; counts are per message, of both ends.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ArmReport {
    pub arm: String,
    /// How many were taken, of as many rounds as `rates` has places.
    pub samples: usize,
    /// Measured in all samples together.
    pub messages: u64,
    pub rate: Option<f64>,
    pub bytes_rate: Option<f64>,
    pub p50_ns: Option<f64>,
    pub p99_ns: Option<f64>,
    pub cpu_ns: Option<f64>,
    pub switches: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_ns: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_ns: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voluntary: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub involuntary: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tx_rate: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rx_rate: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_share: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_space: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    pub syscalls: Option<Syscalls>,
    pub doorbells: Option<f64>,
    pub sleeps: Option<f64>,
    pub loopback_bytes: Option<f64>,
    pub congestion: Option<String>,
    /// Whether the traffic was proved to go through shared memory; null where that is not claimed.
    pub carried: Option<CarriedReport>,
    /// The library's counters of the last sample.
    pub counters: Option<Counters>,
    pub failures: Vec<String>,
    /// Medians over the rounds of each figure of the distributions; the counts are summed, the extremes are those of all.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub latencies: BTreeMap<String, Latency>,
    /// Medians of what else the experiment tells.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, f64>,
    /// How the rounds spread, by the name of the field that has their median.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub spreads: BTreeMap<String, Spread>,
    /// The rate of each round, as `compare` needs it; null where the round has no sample.
    #[serde(default)]
    pub rates: Vec<Option<f64>>,
    /// The single samples by round; they leave with `Run::without_samples`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub all: Vec<Option<Sample>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CarriedReport {
    pub yes: usize,
    pub of: usize,
    pub objection: Option<String>,
}

impl CellReport {
    pub fn new(cell: &Cell, placement: Placement, all: &[Series]) -> CellReport {
        CellReport {
            cell: cell.name.clone(),
            work: cell.work.clone(),
            size: cell.size,
            unit: cell.unit,
            placement,
            arms: all
                .iter()
                .map(|series| ArmReport::new(cell, series, all))
                .collect(),
            wrong_contents: all.iter().any(|series| series.wrong_contents),
            comparisons: verdict::compare(cell, placement, all),
            rerun: None,
        }
    }

    /// Of a second measuring only the comparisons are kept, and what must not be lost.
    pub fn measured_again(&mut self, cell: &Cell, all: &[Series]) {
        self.rerun = Some(verdict::compare(cell, self.placement, all));
        for series in all.iter().filter(|series| series.wrong_contents) {
            self.wrong_contents = true;
            let wrong = series
                .failures
                .iter()
                .filter(|words| tells_wrong_bytes(words));
            if let Some(arm) = self.arms.iter_mut().find(|arm| arm.arm == series.arm.name) {
                arm.failures.extend(wrong.cloned());
            }
        }
    }

    pub fn has_samples(&self) -> bool {
        self.arms.iter().any(|arm| arm.samples > 0)
    }

    /// What came of a comparison when everything was measured once more.
    pub fn again(&self, first: &Comparison) -> Option<&Comparison> {
        let is_it = |other: &&Comparison| {
            (&other.arm, &other.against, other.metric) == (&first.arm, &first.against, first.metric)
                && other.must == first.must
        };
        self.rerun.as_ref()?.iter().find(is_it)
    }

    /// The arms whose figures count.
    pub fn measured(&self) -> impl Iterator<Item = &ArmReport> {
        let counts = |arm: &&ArmReport| arm.samples > 0 && arm.is_proved();
        self.arms.iter().filter(counts)
    }

    pub fn arm(&self, name: &str) -> Option<&ArmReport> {
        self.arms.iter().find(|arm| arm.arm == name)
    }
}

impl CarriedReport {
    /// Every sample was carried.
    pub fn holds(&self) -> bool {
        self.yes == self.of
    }
}

impl ArmReport {
    /// Whether its figures count: those of an arm that was not carried as it claims say nothing of it.
    pub fn is_proved(&self) -> bool {
        self.carried.as_ref().is_none_or(CarriedReport::holds)
    }

    /// The median of what its samples tell.
    pub fn median(&self, of: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
        stats::known_median(self.all.iter().flatten().filter_map(of))
    }

    /// Of its rates, where there are any.
    pub fn spread(&self) -> Option<&Spread> {
        self.spreads.get("rate").filter(|spread| spread.max > 0.0)
    }

    fn new(cell: &Cell, series: &Series, all: &[Series]) -> ArmReport {
        let last = series.taken().last();
        let counter = |of: fn(&Counters) -> u64| {
            series.median(|sample| Some(sample.per_message(of(sample.counters.as_ref()?))))
        };
        ArmReport {
            arm: series.arm.name.to_string(),
            samples: series.taken().count(),
            messages: series.taken().map(|sample| sample.messages).sum(),
            rate: series.median(|sample| sample.metric(Metric::Rate)),
            bytes_rate: series.median(|sample| sample.bytes_rate),
            p50_ns: series.median(|sample| sample.p50_ns),
            p99_ns: series.median(|sample| sample.p99_ns),
            cpu_ns: series.median(|sample| sample.cpu_ns),
            switches: series.median(|sample| sample.switches),
            user_ns: series.median(|sample| sample.user_ns),
            system_ns: series.median(|sample| sample.system_ns),
            voluntary: series.median(|sample| sample.voluntary),
            involuntary: series.median(|sample| sample.involuntary),
            tx_rate: series.median(|sample| sample.tx_rate),
            rx_rate: series.median(|sample| sample.rx_rate),
            cpu_share: series.median(|sample| sample.cpu_share),
            memory: series.median(|sample| sample.memory),
            address_space: series.median(|sample| sample.address_space),
            loss: series.median(|sample| sample.loss),
            syscalls: series.syscalls.clone(),
            doorbells: counter(|counters| counters.doorbells),
            sleeps: counter(|counters| counters.sleeps),
            loopback_bytes: series.median(Sample::loopback),
            congestion: last.and_then(|sample| sample.congestion.clone()),
            carried: series
                .carried(cell, all)
                .map(|(yes, of, objection)| CarriedReport {
                    yes,
                    of,
                    objection: objection.objection().map(str::to_string),
                }),
            counters: last.and_then(|sample| sample.counters.clone()),
            failures: series.failures.clone(),
            latencies: latencies(series),
            values: values(series),
            spreads: spreads(series),
            rates: series
                .samples
                .iter()
                .map(|sample| sample.as_ref()?.metric(Metric::Rate))
                .collect(),
            all: series.samples.clone(),
        }
    }
}

/// Each of these names once, in the order in which they first appear.
pub fn distinct<'a>(names: impl IntoIterator<Item = &'a String>) -> Vec<&'a str> {
    let mut seen: Vec<&str> = Vec::new();
    for name in names {
        if !seen.contains(&name.as_str()) {
            seen.push(name);
        }
    }
    seen
}

type Figure = fn(&Sample) -> Option<f64>;

fn spreads(series: &Series) -> BTreeMap<String, Spread> {
    let figures: [(&str, Figure); 15] = [
        ("rate", |sample| sample.metric(Metric::Rate)),
        ("bytes_rate", |sample| sample.bytes_rate),
        ("p50_ns", |sample| sample.p50_ns),
        ("p99_ns", |sample| sample.p99_ns),
        ("cpu_ns", |sample| sample.cpu_ns),
        ("switches", |sample| sample.switches),
        ("user_ns", |sample| sample.user_ns),
        ("system_ns", |sample| sample.system_ns),
        ("voluntary", |sample| sample.voluntary),
        ("involuntary", |sample| sample.involuntary),
        ("tx_rate", |sample| sample.tx_rate),
        ("rx_rate", |sample| sample.rx_rate),
        ("cpu_share", |sample| sample.cpu_share),
        ("memory", |sample| sample.memory),
        ("loss", |sample| sample.loss),
    ];
    let spread = |(name, of): (&str, Figure)| {
        let values: Vec<f64> = series.taken().filter_map(of).collect();
        Some((name.to_string(), stats::quartiles(&values)?))
    };
    figures.into_iter().filter_map(spread).collect()
}

fn latencies(series: &Series) -> BTreeMap<String, Latency> {
    let mut all: BTreeMap<&str, Vec<&Latency>> = BTreeMap::new();
    for (name, latency) in series.taken().flat_map(|sample| &sample.latencies) {
        all.entry(name).or_default().push(latency);
    }
    let together = |rounds: &[&Latency]| {
        let values = |of: fn(&Latency) -> f64| rounds.iter().map(|one| of(one)).collect::<Vec<_>>();
        let typical = |of| median(&values(of));
        Latency {
            count: rounds.iter().map(|one| one.count).sum(),
            min_ns: values(|one| one.min_ns)
                .into_iter()
                .fold(f64::INFINITY, f64::min),
            mean_ns: typical(|one| one.mean_ns),
            p50_ns: typical(|one| one.p50_ns),
            p90_ns: typical(|one| one.p90_ns),
            p99_ns: typical(|one| one.p99_ns),
            p999_ns: typical(|one| one.p999_ns),
            max_ns: values(|one| one.max_ns).into_iter().fold(0.0, f64::max),
        }
    };
    all.into_iter()
        .map(|(name, rounds)| (name.to_string(), together(&rounds)))
        .collect()
}

fn values(series: &Series) -> BTreeMap<String, f64> {
    let mut all: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (name, value) in series.taken().flat_map(|sample| &sample.values) {
        if value.is_finite() {
            all.entry(name).or_default().push(*value);
        }
    }
    all.into_iter()
        .map(|(name, values)| (name.to_string(), median(&values)))
        .collect()
}
