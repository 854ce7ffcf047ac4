//! `headwater doctor`: what this machine, and a program, can do, and what to do about it.

mod kernel;
mod place;
mod preload;
mod sctp;
mod verdict;

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;

#[derive(clap::Args)]
pub struct Doctor {
    /// Look at this program too: can it be accelerated?
    #[arg(value_name = "CMD")]
    command: Option<OsString>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
enum Status {
    Ok,
    /// Works, but slower, or not for everything.
    Warn,
    /// Nothing is accelerated.
    Fail,
}

/// One thing looked at.
#[derive(Serialize, Debug)]
struct Check {
    name: &'static str,
    status: Status,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

#[derive(Serialize)]
struct Report {
    version: &'static str,
    /// No check failed.
    healthy: bool,
    checks: Vec<Check>,
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<verdict::Verdict>,
}

impl Doctor {
    pub fn execute(&self) -> ExitCode {
        let mut checks = kernel::checks();
        checks.extend(place::checks());
        checks.extend(sctp::checks());
        checks.extend(preload::checks());
        let program = self.command.as_deref().map(verdict::examine);
        let report = Report {
            version: env!("CARGO_PKG_VERSION"),
            healthy: checks.iter().all(|check| check.status != Status::Fail),
            checks,
            program,
        };
        if self.json {
            let text = serde_json::to_string_pretty(&report).expect("plain data");
            println!("{text}");
        } else {
            print(&report);
        }
        let accelerated = report.program.as_ref().is_none_or(|p| p.accelerated());
        if report.healthy && accelerated {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}

/// The name by which a program is known to the lists of programs.
pub fn comm(image: &Path) -> String {
    let real = image.canonicalize();
    let real = real.as_deref().unwrap_or(image);
    let name = real.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

impl Check {
    fn ok(name: &'static str, detail: impl Into<String>) -> Check {
        Check {
            name,
            status: Status::Ok,
            detail: detail.into(),
            remedy: None,
        }
    }

    fn warn(name: &'static str, detail: impl Into<String>, remedy: impl Into<String>) -> Check {
        Check {
            status: Status::Warn,
            remedy: Some(remedy.into()),
            ..Check::ok(name, detail)
        }
    }

    fn fail(name: &'static str, detail: impl Into<String>, remedy: impl Into<String>) -> Check {
        Check {
            status: Status::Fail,
            ..Check::warn(name, detail, remedy)
        }
    }
}

fn print(report: &Report) {
    println!("headwater {}", report.version);
    let of_program = report.program.iter().map(|verdict| &verdict.check);
    let colour = io::stdout().is_terminal();
    for check in report.checks.iter().chain(of_program) {
        let (word, code) = match check.status {
            Status::Ok => ("ok", "32"),
            Status::Warn => ("warn", "33"),
            Status::Fail => ("fail", "31"),
        };
        let word = format!("{word:<5}");
        let word = if colour {
            format!("\x1b[{code}m{word}\x1b[0m")
        } else {
            word
        };
        println!("{word} {:<20} {}", check.name, check.detail);
        if let Some(remedy) = &check.remedy {
            println!("{:>26} {remedy}", "->");
        }
    }
}
