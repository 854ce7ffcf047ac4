//! uWSGI with a page of Python, asked by wrk: a connection for each request, as its HTTP socket has it.

use std::fs;
use std::process::Command;

use super::rates::COLD;
use super::{Work, silently, wrk};
use crate::carriage::Proof;
use crate::exchange::Exchange;
use crate::experiment::{ACCELERATED, Cell, Job, Sample, TCP, Unit};
use crate::failure::Result;
use crate::tools;

/// The same number of bytes as nginx's file.
const PAGE: &str = include_str!("../../../tables/page.py");

const CONNECTIONS: u32 = 4;

pub fn uwsgi() -> Box<dyn Work> {
    Box::new(Uwsgi)
}

struct Uwsgi;

impl Work for Uwsgi {
    fn cell(&self) -> Cell {
        Cell {
            // A connection may be over before it is taken over.
            proof: Proof::Loaded,
            // Python's start.
            stretch: 1.2 * COLD,
            ..Cell::new(
                format!("uwsgi-c{CONNECTIONS}"),
                Unit::Rate,
                vec![TCP, ACCELERATED],
            )
        }
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        let server = tools::installed("uwsgi")?;
        let folder = job.site.scratch.join("uwsgi");
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("page.py"), PAGE)?;
        let command = |port: u16| {
            let mut command = Command::new(&server);
            command
                .args(["--plugin", "python3", "--die-on-term", "--need-app"])
                .args(["--disable-logging", "--http-socket"])
                .arg(format!("127.0.0.1:{port}"))
                .arg("--wsgi-file")
                .arg(folder.join("page.py"));
            Ok(command)
        };
        silently(job, |job| {
            let served = Exchange::serve_on_port(None, job, "uwsgi", command, |_| true)?;
            wrk::ask(job, served, CONNECTIONS, false, "")
        })
    }
}
