//! A run as files that people look at: tables as CSV, plots as SVG, and a report that is one HTML file.
//!
//! ```text
//!   format   numbers with their units        tally   what ended well, what did not
//!   csv      one file per table              plot    one SVG per plot
//!   html     the report, with the plots in it
//! ```

mod csv;
mod format;
mod html;
mod plot;
mod tally;

use std::path::{Path, PathBuf};

use plot::palette::Palette;

use crate::failure::Result;
use crate::files;
use crate::findings::{Column, Measure, Sheet, Value};
use crate::report::Report;
use crate::results::Run;
use crate::tables;

/// Writes everything below `out`, and returns what it wrote. Each file is replaced as a whole.
pub fn all(run: &Run, out: &Path) -> Result<Vec<PathBuf>> {
    let mut written = Written {
        out,
        paths: Vec::new(),
    };
    for report in &run.experiments {
        for (name, table) in csv::tables(report)? {
            written.put(&report.experiment, &name, "csv", &table)?;
        }
        let palette = Palette::of(&report.conclusion.plots);
        for plot in &report.conclusion.plots {
            if let Some(drawing) = plot::file(plot, &palette) {
                written.put(&report.experiment, &plot.name, "svg", drawing.as_bytes())?;
            }
        }
    }
    let path = out.join("report.html");
    files::replace(&path, html::page(run).as_bytes())?;
    written.paths.push(path);
    Ok(written.paths)
}

struct Written<'a> {
    out: &'a Path,
    paths: Vec<PathBuf>,
}

impl Written<'_> {
    /// Two tables of one name become two files.
    fn put(&mut self, experiment: &str, name: &str, kind: &str, bytes: &[u8]) -> Result<()> {
        let stem = stem(experiment, name);
        let mut path = self.out.join(file_name(experiment, name, kind));
        let mut turn = 2;
        while self.paths.contains(&path) {
            path = self.out.join(format!("{stem}-{turn}.{kind}"));
            turn += 1;
        }
        files::replace(&path, bytes)?;
        self.paths.push(path);
        Ok(())
    }
}

fn stem(experiment: &str, name: &str) -> String {
    format!("{}-{}", slug(experiment), slug(name))
}

/// Of an experiment's first table, or plot, of that name.
fn file_name(experiment: &str, name: &str, kind: &str) -> String {
    format!("{}.{kind}", stem(experiment, name))
}

/// Fit for a file's name and for the name of a place in a page.
fn slug(name: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "-_%".contains(c) {
            c
        } else {
            '-'
        }
    };
    let slug: String = name.chars().take(80).map(plain).collect();
    match slug.trim_matches('-') {
        "" => "unnamed".to_string(),
        slug => slug.replace('%', "percent"),
    }
}

/// The regressions as a table like others.
fn regressions(report: &Report) -> Option<Sheet> {
    let lines = &report.conclusion.regressions;
    if lines.is_empty() {
        return None;
    }
    let mut sheet = tables::sheet("all", "regression", &[]);
    sheet.rows = lines
        .iter()
        .map(|line| {
            vec![
                Value::from(line.work.as_str()),
                Value::from(line.placement.name()),
                Value::from(line.arm.as_str()),
                Value::from(line.sizes as f64),
                Value::from(line.delay_ns),
                Value::from(line.delay_factor),
                Value::from(line.bytes_per_second),
                Value::from(line.throughput_factor),
                Value::from(line.r_squared),
            ]
        })
        .collect();
    Some(sheet)
}

/// A column's head with what its bare numbers count, for whoever reads them without the report.
fn head_with_unit(column: &Column) -> String {
    let unit = match column.unit {
        Measure::Text | Measure::Count => return column.head.clone(),
        Measure::Nanoseconds => "ns",
        Measure::Bytes => "bytes",
        Measure::BytesPerSecond => "bytes/s",
        Measure::PerSecond => "1/s",
        Measure::Share => "of 1",
        Measure::Factor => "times",
        Measure::Percent => "%",
    };
    format!("{} ({unit})", column.head)
}

#[cfg(test)]
mod tests;
