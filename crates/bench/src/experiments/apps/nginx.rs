//! nginx with a small file, asked by wrk.

use std::fs;
use std::process::Command;

use rustix::process::geteuid;

use super::rates::COLD;
use super::{Work, ends, silently, wrk};
use crate::carriage::Proof;
use crate::exchange::Exchange;
use crate::experiment::{ACCELERATED, Cell, Job, Sample, TCP, Unit};
use crate::failure::Result;
use crate::{tables, tools};

pub fn nginx(connections: u32) -> Box<dyn Work> {
    Box::new(Nginx {
        connections,
        keep_alive: true,
    })
}

/// A connection for each request.
pub fn nginx_closing(connections: u32) -> Box<dyn Work> {
    Box::new(Nginx {
        connections,
        keep_alive: false,
    })
}

struct Nginx {
    connections: u32,
    keep_alive: bool,
}

impl Work for Nginx {
    fn cell(&self) -> Cell {
        let (name, proof) = match self.keep_alive {
            true => ("nginx", ends(self.connections)),
            // A connection may be over before it is taken over.
            false => ("nginx-close", Proof::Loaded),
        };
        let name = format!("{name}-c{}", self.connections);
        Cell {
            proof,
            // It ends at tenths of a second.
            stretch: 1.2 * COLD,
            ..Cell::new(name, Unit::Rate, vec![TCP, ACCELERATED])
        }
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        match self.keep_alive {
            true => self.asked(job),
            false => silently(job, |job| self.asked(job)),
        }
    }
}

impl Nginx {
    fn asked(&self, job: &Job<'_>) -> Result<Sample> {
        let server = tools::installed("nginx")?;
        let folder = job.site.scratch.join("nginx");
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("small.html"), "0123456789abcde\n".repeat(38))?;
        let command = |port: u16| {
            fs::write(folder.join("nginx.conf"), configuration(port))?;
            let mut command = Command::new(&server);
            command
                .arg("-p")
                .arg(&folder)
                .args(["-c", "nginx.conf", "-e", "stderr"]);
            Ok(command)
        };
        let served = Exchange::serve_on_port(None, job, "nginx", command, |_| true)?;
        wrk::ask(job, served, self.connections, self.keep_alive, "small.html")
    }
}

fn configuration(port: u16) -> String {
    // A worker of another user would be another uid's process, which is not what is measured.
    let user = if geteuid().is_root() {
        "user root;"
    } else {
        ""
    };
    let words = [("user", user), ("port", &port.to_string())];
    tables::filled(include_str!("../../../tables/nginx.conf"), &words)
}
