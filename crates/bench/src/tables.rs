//! What is data and not code: the experiments' texts, what is wanted of their cells, which are part of a quick run and of a usual
//! one, what is compared with what, the heads of tables and plots, and the figures of the papers; files of comma-separated values
//! under `tables/`.

use std::sync::LazyLock;

use serde::de::value::Error;
use serde::de::{DeserializeOwned, IntoDeserializer};
use serde::{Deserialize, Deserializer};

use crate::experiment::{Against, Cell, Goal, Metric};
use crate::findings::{Axis, Column, Curve, Measure, Plot, Scale, Sheet};
use crate::placement::Placement;

macro_rules! table {
    ($name:ident: $row:ty, $file:literal) => {
        pub static $name: LazyLock<Vec<$row>> =
            LazyLock::new(|| rows($file, include_str!(concat!("../tables/", $file))));
    };
}

table!(TEXTS: Texts, "experiments.csv");
table!(QUICK: Quick, "quick.csv");
table!(USUAL: Usual, "usual.csv");
table!(COMPARED: Compared, "comparisons.csv");
table!(HEADLINES: Told, "headlines.csv");
table!(GOALS: Wanted, "goals.csv");
table!(SHEETS: Head, "sheets.csv");
table!(PLOTS: Drawn, "plots.csv");
table!(READING: Meaning, "reading.csv");
table!(SPEED: Speed, "figures-of-speed.csv");
table!(ROUND_TRIPS: RoundTrip, "round-trips-of-fast-sockets.csv");
table!(BANDWIDTHS: Bandwidth, "bandwidth-of-fast-sockets.csv");

/// An experiment, for the list and the report.
#[derive(Deserialize)]
pub struct Texts {
    pub name: String,
    pub describe: String,
    /// What it asks: one sentence.
    pub question: String,
    /// How it is measured: a sentence or two.
    pub method: String,
}

/// A cell of a quick run. An experiment's most telling ones come first: it has as many as its time suffices for.
#[derive(Deserialize)]
pub struct Quick {
    pub experiment: String,
    pub cell: String,
}

/// The placements that a usual run has of some cells, as in [`Wanted`]; the first row of a cell counts.
#[derive(Deserialize)]
pub struct Usual {
    experiment: String,
    cells: String,
    #[serde(deserialize_with = "placements")]
    placements: &'static [Placement],
}

/// Two arms of a cell that stand in a table and a plot of the experiment.
#[derive(Deserialize)]
pub struct Compared {
    pub experiment: String,
    pub group: String,
    pub label: String,
    pub cell: String,
    pub arm: String,
    pub against: String,
    pub metric: Metric,
}

/// Two arms of a cell on the report's first screen, from the first of these placements that was measured.
#[derive(Deserialize)]
pub struct Told {
    pub experiment: String,
    pub label: String,
    /// What is compared with what.
    pub of: String,
    pub cell: String,
    pub arm: String,
    pub against: String,
    pub metric: Metric,
    #[serde(deserialize_with = "placements")]
    pub placements: &'static [Placement],
}

/// What is wanted of some cells: by name, all of a work, those of a work from one size to another (`udp-1..1024`), or all (`*`).
#[derive(Deserialize)]
pub struct Wanted {
    pub experiment: String,
    cells: String,
    #[serde(deserialize_with = "placements")]
    placements: &'static [Placement],
    arm: String,
    relation: Relation,
    /// An arm, or nanoseconds.
    against: String,
    metric: Metric,
    must: f64,
    aim: Option<f64>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Relation {
    Over,
    MoreThan,
    Within,
}

/// A table without its rows. What stands in braces is filled in; columns are `head:unit`, and with `counts` those that explain a
/// rate come after them.
#[derive(Deserialize)]
pub struct Head {
    experiment: String,
    name: String,
    title: String,
    caption: String,
    columns: String,
    counts: bool,
}

/// A plot without its curves.
#[derive(Deserialize)]
pub struct Drawn {
    experiment: String,
    name: String,
    title: String,
    caption: String,
    x: String,
    x_unit: Measure,
    x_scale: Scale,
    y: String,
    y_unit: Measure,
    y_scale: Scale,
}

/// What a word of the report means.
#[derive(Deserialize)]
pub struct Meaning {
    pub word: String,
    pub meaning: String,
}

/// A figure of the Speed library's paper; the name says its unit.
#[derive(Deserialize)]
pub struct Speed {
    pub figure: String,
    pub size: usize,
    /// The paper's name for what carried the messages; none where nothing did.
    pub way: String,
    pub value: f64,
}

/// The line through the times of round trips in the paper on Fast Sockets, of all sizes or of those below 1 KiB.
#[derive(Deserialize)]
pub struct RoundTrip {
    pub layer: String,
    /// Ours that stands where the layer did.
    pub arm: String,
    pub sizes: String,
    pub per_byte_us: f64,
    pub t0_us: f64,
    pub start_up_us: f64,
}

/// The saturation curve of a layer in the same paper.
#[derive(Deserialize)]
pub struct Bandwidth {
    pub work: String,
    pub layer: String,
    pub arm: String,
    pub rmax_mb_s: f64,
    pub half_bytes: f64,
}

pub fn texts(experiment: &str) -> Option<&'static Texts> {
    TEXTS.iter().find(|texts| texts.name == experiment)
}

/// The cells of an experiment's quick run, in their order.
pub fn quick(experiment: &str) -> Vec<&'static str> {
    let own = QUICK.iter().filter(|quick| quick.experiment == experiment);
    own.map(|quick| quick.cell.as_str()).collect()
}

/// The placements of a cell that a reader of the whole needs, and so a run of everything has; none: it is left to `--all`.
pub fn usual(experiment: &str, cell: &Cell) -> &'static [Placement] {
    let mut rows = USUAL.iter();
    let row = rows.find(|row| row.experiment == experiment && is_of(&row.cells, cell));
    row.map_or(&[], |row| row.placements)
}

fn is_of(cells: &str, cell: &Cell) -> bool {
    cells.split(' ').any(|name| {
        let Some((first, last)) = name.split_once("..") else {
            return name == "*" || name == cell.name || name == cell.work;
        };
        let (work, first) = first.rsplit_once('-').unwrap_or((first, ""));
        let [first, last] = [first, last].map(|end| end.parse().unwrap_or(0));
        work == cell.work && cell.size.is_some_and(|size| (first..=last).contains(&size))
    })
}

impl Wanted {
    fn goal(&'static self) -> Goal {
        Goal {
            arm: &self.arm,
            against: match self.relation {
                Relation::Over => Against::Arm(&self.against),
                Relation::MoreThan => Against::MoreThan(&self.against),
                Relation::Within => Against::Time(self.against.parse().unwrap_or(f64::NAN)),
            },
            metric: self.metric,
            placements: self.placements,
            must: self.must,
            aim: self.aim,
        }
    }
}

/// What is wanted of a cell, by those of its arms that are there.
pub fn goals(experiment: &str, cell: &Cell) -> Vec<Goal> {
    let has = |name: &str| cell.arms.iter().any(|arm| arm.name == name);
    let own = GOALS
        .iter()
        .filter(|row| row.experiment == experiment && is_of(&row.cells, cell));
    let goals = own.map(Wanted::goal);
    goals
        .filter(|goal| has(goal.arm) && goal.against.arm().is_none_or(has))
        .collect()
}

/// Names, or `undisturbed`, `all` or `none`.
fn placements<'de, D: Deserializer<'de>>(from: D) -> Result<&'static [Placement], D::Error> {
    let text = String::deserialize(from)?;
    let one = |name: &str| Placement::named(name).ok_or_else(|| serde::de::Error::custom(name));
    match text.as_str() {
        "all" => Ok(&Placement::ALL),
        "none" => Ok(&[]),
        "undisturbed" => Ok(Placement::UNDISTURBED),
        names => Ok(names
            .split(' ')
            .map(one)
            .collect::<Result<Vec<_>, _>>()?
            .leak()),
    }
}

/// The columns that explain a rate.
const COUNTS: &str = "wake-ups/msg:count|switches/msg:count|calls/msg:count";

/// What they are, for a caption.
const MEANING: &str = "Wake-ups, context switches and system calls of a message are those of both ends; wake-ups are the library's \
     own, calls were counted in runs of their own.";

/// A table of an experiment, with these words in place of those in braces; its rows are still to come.
pub fn sheet(experiment: &str, name: &str, words: &[(&str, &str)]) -> Sheet {
    let mut rows = SHEETS.iter();
    let row = rows.find(|row| row.experiment == experiment && row.name == name);
    let row = row.unwrap_or_else(|| panic!("tables/sheets.csv: no {experiment} {name}"));
    let mut sheet = Sheet {
        name: filled(&row.name, words),
        title: filled(&row.title, words),
        caption: filled(&row.caption, words),
        columns: row.columns.split('|').filter_map(column).collect(),
        rows: Vec::new(),
    };
    if row.counts {
        sheet.caption = format!("{} {MEANING}", sheet.caption);
        sheet.columns.extend(COUNTS.split('|').filter_map(column));
    }
    sheet
}

fn column(text: &str) -> Option<Column> {
    let (head, unit) = text.rsplit_once(':')?;
    let unit: Result<Measure, Error> = Measure::deserialize(unit.into_deserializer());
    Some(Column {
        head: head.to_string(),
        unit: unit.ok()?,
    })
}

/// A plot of an experiment in the same way, of those curves that have points.
pub fn plot(
    experiment: &str,
    name: &str,
    words: &[(&str, &str)],
    curves: impl IntoIterator<Item = Curve>,
) -> Plot {
    let mut rows = PLOTS.iter();
    let row = rows.find(|row| row.experiment == experiment && row.name == name);
    let row = row.unwrap_or_else(|| panic!("tables/plots.csv: no {experiment} {name}"));
    let curves = curves.into_iter();
    Plot {
        name: filled(&row.name, words),
        title: filled(&row.title, words),
        caption: filled(&row.caption, words),
        x: Axis::new(&row.x, row.x_unit, row.x_scale),
        y: Axis::new(&row.y, row.y_unit, row.y_scale),
        curves: curves.filter(|curve| !curve.points.is_empty()).collect(),
    }
}

/// A text with words in place of those in braces.
pub fn filled(text: &str, words: &[(&str, &str)]) -> String {
    let fill =
        |text: String, (name, word): &(&str, &str)| text.replace(&format!("{{{name}}}"), word);
    words.iter().fold(text.to_string(), fill)
}

/// The messages that machines of 2007 received of a size, in the test of netperf, in one column for each stack.
pub struct Machines {
    pub columns: Vec<&'static str>,
    pub rows: Vec<(&'static str, usize, Vec<f64>)>,
}

pub static UDP_OF_2007: LazyLock<Machines> =
    LazyLock::new(|| Machines::read(include_str!("../tables/machines-of-2007-udp.csv")));
pub static TCP_OF_2007: LazyLock<Machines> =
    LazyLock::new(|| Machines::read(include_str!("../tables/machines-of-2007-tcp.csv")));

impl Machines {
    /// The columns after machine and size have the names of what was measured; no field has a quotation mark or a comma of its own
    /// but the machine's.
    fn read(text: &'static str) -> Machines {
        let mut lines = text.lines();
        let head = lines.next().unwrap_or_default();
        let row = |line: &'static str| {
            let (machine, rest) = line.trim_start_matches('"').split_once("\",")?;
            let mut numbers = rest.split(',').map(str::parse::<f64>);
            let size = numbers.next()?.ok()? as usize;
            let counts: Result<Vec<f64>, _> = numbers.collect();
            Some((machine, size, counts.ok()?))
        };
        Machines {
            columns: head.split(',').skip(2).collect(),
            rows: lines.filter_map(row).collect(),
        }
    }
}

/// These files are part of the program, and the tests read each.
fn rows<T: DeserializeOwned>(file: &str, text: &str) -> Vec<T> {
    let all: Result<Vec<T>, csv::Error> = csv::Reader::from_reader(text.as_bytes())
        .into_deserialize()
        .collect();
    all.unwrap_or_else(|error| panic!("tables/{file}: {error}"))
}

#[cfg(test)]
mod tests;
