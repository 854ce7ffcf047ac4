//! How far a run is, and how long it will still take.

use std::io::{self, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Drawn only between samples: a ticking thread would disturb them.
pub struct Progress(ProgressBar);

impl Progress {
    /// Of a run that takes about so long.
    pub fn new(takes: Duration) -> Progress {
        let style = ProgressStyle::with_template("{bar:30} {percent:>3} % {msg}  {eta} left")
            .expect("the template is well-formed");
        Progress(ProgressBar::new(ticks(takes)).with_style(style))
    }

    pub fn now(&self, what: String) {
        self.0.set_message(what);
    }

    /// What was expected to take so long is done.
    pub fn step(&self, took: Duration) {
        self.0.inc(ticks(took));
    }

    pub fn longer(&self, by: Duration) {
        self.0.inc_length(ticks(by));
    }

    /// Prints above the bar, and also where there is no terminal to draw one on.
    pub fn say(&self, text: &str) {
        self.0.suspend(|| say(text));
    }

    pub fn end(&self) {
        self.0.finish_and_clear();
    }
}

/// Prints a line. Who reads may have had enough: what is measured is in files.
pub fn say(line: impl std::fmt::Display) {
    let _ = writeln!(io::stdout(), "{line}");
}

fn ticks(time: Duration) -> u64 {
    time.as_millis() as u64
}
