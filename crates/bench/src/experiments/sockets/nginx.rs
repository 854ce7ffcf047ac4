//! nginx with a small file, asked by wrk.

use std::fs;
use std::process::Command;

use super::{Work, number_after};
use crate::exchange::Exchange;
use crate::experiment::{ACCELERATED, Cell, Goal, Job, Sample, TCP, Unit};
use crate::failure::{Failure, Result};
use crate::machine;
use crate::placement::Placement::{self, Apart};
use crate::tools;

pub fn works() -> Vec<Box<dyn Work>> {
    [1, 16]
        .map(|connections| Box::new(Nginx { connections }) as Box<dyn Work>)
        .into()
}

struct Nginx {
    connections: u32,
}

impl Work for Nginx {
    fn cell(&self) -> Cell {
        let name = format!("nginx-c{}", self.connections);
        let goal = match self.connections {
            1 => Goal::rate(&[Apart], 8.0, 20.0),
            _ => Goal::rate(&Placement::ALL, 2.2, 3.2),
        };
        Cell {
            goals: vec![goal],
            ..Cell::new(name, Unit::Rate, vec![TCP, ACCELERATED])
        }
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        let port = machine::free_port()?;
        let folder = job.site.scratch.join("nginx");
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("nginx.conf"), configuration(port))?;
        fs::write(folder.join("small.html"), "0123456789abcde\n".repeat(38))?;
        let wrk = tools::installed("wrk")?;
        let mut server = Command::new(tools::installed("nginx")?);
        server
            .arg("-p")
            .arg(&folder)
            .args(["-c", "nginx.conf", "-e", "stderr"]);
        let ready = |_: &_| machine::is_listening(port);
        let exchange = Exchange::serve(job, "nginx", server, ready)?;

        let mut client = Command::new(wrk);
        client
            .args(["-t1", "--latency", &format!("-c{}", self.connections)])
            .arg(format!("-d{}s", job.whole_seconds()))
            .arg(format!("http://127.0.0.1:{port}/small.html"));
        let outcome = exchange.run("wrk", client, Some(libc::SIGTERM))?;
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
