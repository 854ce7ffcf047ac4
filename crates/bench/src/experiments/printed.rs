//! The line of JSON that our own programs end with.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::exchange::Outcome;
use crate::experiment::Sample;
use crate::failure::{Failure, Result};

/// What a program of `headwater-load` tells of its work, as far as it is of the kind; the rest is nothing.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Told {
    pub messages: u64,
    /// With the warm-up, where there is one.
    pub all_messages: Option<u64>,
    pub seconds: f64,
    pub bytes: u64,
    pub p50_ns: u64,
    pub p99_ns: u64,
    pub cpu_ns: u64,
    pub switches: u64,
    /// The parts of both.
    #[serde(flatten)]
    pub spent: Spent,
    pub congestion: Option<String>,
}

/// What one end tells, and all that a server does.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Spent {
    pub user_ns: u64,
    pub system_ns: u64,
    pub voluntary: u64,
    pub involuntary: u64,
    /// Whether all bytes were right, where the program does not fail of wrong ones.
    pub verified: Option<bool>,
}

/// Reads a program's closing line.
pub fn parse<T: DeserializeOwned>(program: &str, said: &str) -> Result<T> {
    let line = said.trim().lines().next_back().unwrap_or_default();
    serde_json::from_str(line).map_err(|_| Failure::Output(program.to_string(), line.to_string()))
}

impl Spent {
    /// It received what was sent.
    pub fn check(&self, program: &str) -> Result<()> {
        match self.verified {
            Some(false) => Err(Failure::Contents(program.to_string())),
            _ => Ok(()),
        }
    }
}

impl Told {
    /// Of a program that worked for some time.
    pub fn read(program: &str, said: &str) -> Result<Told> {
        let told: Told = parse(program, said)?;
        if told.seconds == 0.0 {
            return Err(Failure::Output(program.to_string(), said.to_string()));
        }
        told.spent.check(program)?;
        Ok(told)
    }

    pub fn all_messages(&self) -> u64 {
        self.all_messages.unwrap_or(self.messages)
    }

    pub fn per_message(&self, count: u64) -> f64 {
        count as f64 / self.messages.max(1) as f64
    }

    pub fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.seconds.max(1e-9)
    }

    pub fn sample(&self) -> Sample {
        let known = |count: u64| (count > 0).then_some(count);
        let spent = &self.spent;
        let cpu_ns = self.cpu_ns + spent.user_ns + spent.system_ns;
        let switches = self.switches + spent.voluntary + spent.involuntary;
        Sample {
            messages: self.messages,
            all_messages: self.all_messages(),
            rate: self.per_second(self.messages),
            bytes_rate: known(self.bytes).map(|bytes| self.per_second(bytes)),
            p50_ns: known(self.p50_ns).map(|ns| ns as f64),
            p99_ns: known(self.p99_ns).map(|ns| ns as f64),
            cpu_ns: Some(self.per_message(cpu_ns)),
            switches: Some(self.per_message(switches)),
            congestion: self.congestion.clone(),
            ..Sample::default()
        }
    }
}

/// What the client and the server of `headwater-load echo` tell.
pub fn echoed(outcome: &Outcome) -> Result<(Told, Spent)> {
    let told = Told::read("headwater-load echo client", &outcome.client_said)?;
    let served: Spent = parse("headwater-load echo server", &outcome.server_said)?;
    served.check("headwater-load echo server")?;
    Ok((told, served))
}

/// Their sample, with the server's costs: its own account of switches leaves out starting and warming up.
pub fn both_ends(outcome: Outcome) -> Result<Sample> {
    let (told, served) = echoed(&outcome)?;
    let per = 1.0 / told.all_messages().max(1) as f64;
    let switches = (served.voluntary + served.involuntary) as f64 * per;
    let own = told.sample();
    Ok(Sample {
        cpu_ns: own
            .cpu_ns
            .map(|own| own + outcome.server_cpu_ns as f64 * per),
        switches: own.switches.map(|own| own + switches),
        loopback_bytes: Some(outcome.loopback_bytes),
        counters: outcome.counters,
        ..own
    })
}
