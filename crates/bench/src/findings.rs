//! What an experiment shows beside its cells: tables and plots as data, which the terminal, the files and the report draw
//! each in its own way.

use serde::{Deserialize, Serialize};

use crate::lenient;
use crate::stats;

/// A table. `name` is that of its CSV file, without the experiment's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sheet {
    pub name: String,
    pub title: String,
    /// What the figures mean, in a sentence or two.
    pub caption: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Value>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    pub head: String,
    pub unit: Measure,
}

/// In what a column's or an axis's numbers are given, and how they are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    Text,
    /// Of its own kind: messages, calls, switches.
    Count,
    /// Shown with the unit that suits.
    Nanoseconds,
    Bytes,
    BytesPerSecond,
    PerSecond,
    /// Of 1, shown in percent.
    Share,
    /// Times as good.
    Factor,
    /// In percent.
    Percent,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    Number(f64),
    Text(String),
    Missing(()),
}

/// A drawing. `name` is that of its SVG file, without the experiment's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plot {
    pub name: String,
    pub title: String,
    pub caption: String,
    pub x: Axis,
    pub y: Axis,
    pub curves: Vec<Curve>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    pub label: String,
    pub unit: Measure,
    pub scale: Scale,
    /// Where the places along x have names instead of values: those of the points 0, 1, 2 ...; drawn as bars.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    Linear,
    Log2,
    Log10,
}

/// The points of one arm, and the line that was fitted to them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    pub name: String,
    pub points: Vec<Point>,
    /// As points to be joined; empty: the points themselves are joined.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "lenient::pairs"
    )]
    pub fit: Vec<(f64, f64)>,
}

/// With the quartiles, where they are known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    #[serde(deserialize_with = "lenient::number")]
    pub x: f64,
    #[serde(deserialize_with = "lenient::number")]
    pub y: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}

/// A figure of a seed document beside the one measured here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seed {
    /// The document's file name.
    pub file: String,
    /// What was measured, on what.
    pub what: String,
    /// Theirs, with its unit.
    pub theirs: String,
    /// Ours; empty where this run has none.
    pub ours: String,
}

/// A ratio for the first screen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Headline {
    /// "a round trip of 70 bytes, on two CPUs".
    pub what: String,
    /// "through shared memory, over the kernel's TCP".
    pub of: String,
    #[serde(deserialize_with = "lenient::number")]
    pub factor: f64,
    #[serde(deserialize_with = "lenient::number")]
    pub low: f64,
    #[serde(deserialize_with = "lenient::number")]
    pub high: f64,
}

impl Seed {
    pub fn new(file: &str, what: String, theirs: String, ours: Option<String>) -> Seed {
        Seed {
            file: file.to_string(),
            what,
            theirs,
            ours: ours.unwrap_or_default(),
        }
    }
}

impl Curve {
    /// Its points are joined.
    pub fn new(name: &str, points: impl IntoIterator<Item = Point>) -> Curve {
        Curve {
            name: name.to_string(),
            points: points.into_iter().collect(),
            fit: Vec::new(),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_string())
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Value {
        Value::from(Some(number))
    }
}

impl From<Option<f64>> for Value {
    fn from(number: Option<f64>) -> Value {
        // JSON has no other numbers.
        number
            .filter(|n| n.is_finite())
            .map_or(Value::Missing(()), Value::Number)
    }
}

impl Axis {
    pub fn new(label: &str, unit: Measure, scale: Scale) -> Axis {
        Axis {
            label: label.to_string(),
            unit,
            scale,
            names: Vec::new(),
        }
    }
}

impl Point {
    pub fn new(x: f64, y: f64) -> Point {
        let (low, high) = (None, None);
        Point { x, y, low, high }
    }

    /// Between these.
    pub fn within(x: f64, y: f64, low: f64, high: f64) -> Point {
        let (low, high) = (Some(low), Some(high));
        Point { x, y, low, high }
    }

    /// The median of values with their quartiles.
    pub fn of(x: f64, values: &[f64]) -> Option<Point> {
        let spread = stats::quartiles(values)?;
        Some(Point::within(x, spread.median, spread.q1, spread.q3))
    }
}
