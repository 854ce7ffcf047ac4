//! wrk, which asks a web server for one page again and again.

use std::process::Command;
use std::time::Duration;

use super::number_after;
use super::rates::COLD;
use crate::exchange::Exchange;
use crate::experiment::{Job, Sample};
use crate::failure::{Failure, Result};
use crate::tools;

/// Longer than any sample: it is interrupted, as it knows times only in whole seconds.
const ENDLESS: &str = "-d3600s";

/// By then it has started, and takes an interruption for its end.
const STARTED: Duration = Duration::from_millis(50);

/// Asks for `page` on so many connections, kept or one for each request; ends the server by SIGTERM.
pub fn ask(
    job: &Job<'_>,
    (exchange, port): (Exchange<'_>, u16),
    connections: u32,
    keep_alive: bool,
    page: &str,
) -> Result<Sample> {
    let mut client = Command::new(tools::installed("wrk")?);
    client.args(["-t1", "--latency", &format!("-c{connections}")]);
    if !keep_alive {
        client.args(["-H", "Connection: close"]);
    }
    client.args([ENDLESS, &format!("http://127.0.0.1:{port}/{page}")]);
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
mod tests;
