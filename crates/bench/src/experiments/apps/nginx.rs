//! nginx with a small file, asked by wrk.

use std::fs;
use std::process::Command;
use std::time::Duration;

use super::rates::COLD;
use super::{Work, ends, number_after};
use crate::exchange::Exchange;
use crate::experiment::{ACCELERATED, Cell, Job, Proof, Sample, TCP, Unit};
use crate::failure::{Failure, Result};
use crate::tools;

/// Longer than any sample: it is interrupted, as it knows times only in whole seconds.
const ENDLESS: &str = "-d3600s";

/// By then it has started, and takes an interruption for its end.
const STARTED: Duration = Duration::from_millis(50);

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
        let server = tools::installed("nginx")?;
        let mut client = Command::new(tools::installed("wrk")?);
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
        let (exchange, port) = Exchange::serve_on_port(None, job, "nginx", command, |_| true)?;
        client.args(["-t1", "--latency", &format!("-c{}", self.connections)]);
        if !self.keep_alive {
            client.args(["-H", "Connection: close"]);
        }
        client.args([ENDLESS, &format!("http://127.0.0.1:{port}/small.html")]);
        let both = exchange.join("wrk", client)?;
        both.interrupt_after(job.time.mul_f64(COLD).max(STARTED))?;
        let outcome = both.finish(Some(libc::SIGTERM))?;
        let said = &outcome.client_said;
        if said.contains("Non-2xx") || said.contains("Socket errors") {
            return Err(Failure::Output("wrk".to_string(), said.clone()));
        }
        let requests = said.lines().find(|line| line.contains(" requests in "));
        let requests = requests.and_then(|line| line.split_whitespace().next()?.parse().ok());
        let (Some(requests), Some(rate)) = (requests, number_after(said, "Requests/sec:")) else {
            return Err(Failure::Output("wrk".to_string(), said.clone()));
        };
        Ok(Sample {
            p50_ns: time_after(said, "50%"),
            p99_ns: time_after(said, "99%"),
            ..outcome.sample(requests, rate)
        })
    }
}

fn configuration(port: u16) -> String {
    // SAFETY: geteuid always succeeds.
    let root = unsafe { libc::geteuid() } == 0;
    // A worker of another user would be another uid's process, which is not what is measured.
    let user = if root { "user root;" } else { "" };
    format!(
        "{user}
daemon off;
worker_processes 1;
pid nginx.pid;
error_log stderr error;
events {{ }}
http {{
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    server {{
        listen 127.0.0.1:{port};
        root .;
    }}
}}
"
    )
}

/// A time as wrk writes it in its distribution after `mark`: 12.00us, 1.50ms or 2.00s; in nanoseconds.
fn time_after(said: &str, mark: &str) -> Option<f64> {
    let distribution = said.split_once("Latency Distribution")?.1;
    let word = distribution.split_once(mark)?.1.split_whitespace().next()?;
    let split = word.find(|c: char| c.is_ascii_alphabetic())?;
    let scale = match &word[split..] {
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    Some(word[..split].parse::<f64>().ok()? * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_wrk_writes_them() {
        let said = "    Latency    59.80us   10.10us   1.20ms   96.50%\n  Latency Distribution\n     50%   12.50us\n     99%    1.25ms\n";
        assert_eq!(time_after(said, "50%"), Some(12_500.0));
        assert_eq!(time_after(said, "99%"), Some(1_250_000.0));
        assert_eq!(time_after(said, "90%"), None);
    }
}
