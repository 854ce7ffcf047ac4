//! The proof that a sample's traffic went through shared memory: what the library counted in both programs, and what the
//! kernel's loop-back device did not see.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The library's counters, summed over the processes of a sample.
#[derive(Clone, Default, Debug, Serialize, Deserialize, PartialEq)]
#[serde(default)]
pub struct Counters {
    pub accelerated: u64,
    pub fallback: u64,
    pub fallback_reasons: BTreeMap<String, u64>,
    pub shm_bytes_tx: u64,
    pub shm_bytes_rx: u64,
    pub kernel_bytes_tx: u64,
    pub kernel_bytes_rx: u64,
    pub doorbells: u64,
    pub sleeps: u64,
    pub spins: u64,
    pub switches: u64,
    pub unswitches: u64,
    /// Processes that wrote their counters.
    #[serde(skip_deserializing)]
    pub processes: u64,
}

impl Counters {
    /// Reads HEADWATER_STATS_FILE: one line of JSON per process. A missing file is a library that never spoke.
    pub fn read(path: &Path) -> Counters {
        let lines = fs::read_to_string(path).unwrap_or_default();
        let mut sum = Counters::default();
        for line in lines.lines() {
            if let Ok(counters) = serde_json::from_str::<Counters>(line) {
                sum.add(counters);
            }
        }
        sum
    }

    fn add(&mut self, other: Counters) {
        self.accelerated += other.accelerated;
        self.fallback += other.fallback;
        for (reason, count) in other.fallback_reasons {
            *self.fallback_reasons.entry(reason).or_default() += count;
        }
        self.shm_bytes_tx += other.shm_bytes_tx;
        self.shm_bytes_rx += other.shm_bytes_rx;
        self.kernel_bytes_tx += other.kernel_bytes_tx;
        self.kernel_bytes_rx += other.kernel_bytes_rx;
        self.doorbells += other.doorbells;
        self.sleeps += other.sleeps;
        self.spins += other.spins;
        self.switches += other.switches;
        self.unswitches += other.unswitches;
        self.processes += 1;
    }
}

/// What an accelerated sample must show to count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// At least so many accelerated ends of connections, and a quiet loop-back device.
    Carried { ends: u64 },
    /// At least so many accelerated ends, whatever else rightly goes by TCP.
    Counted { ends: u64 },
    /// That the library was there, and the loop-back device quiet beside messages of this size: no connections are counted.
    Quiet { size: usize },
    /// That the library was there: nothing is to be carried, or it rightly ends before it is.
    Loaded,
    /// Nothing.
    None,
}

/// Whether a sample was carried, or what speaks against it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carried {
    Yes,
    /// The library never spoke.
    NotLoaded,
    /// It counted no accelerated connection, or too few.
    NotCounted,
    /// The loop-back device carried it all the same.
    SeenByKernel,
}

impl Carried {
    /// What is wrong, in words.
    pub fn objection(self) -> Option<&'static str> {
        match self {
            Carried::Yes => None,
            Carried::NotLoaded => Some("the library was not there"),
            Carried::NotCounted => Some("too few accelerated connections were counted"),
            Carried::SeenByKernel => Some("the loop-back device saw the traffic"),
        }
    }
}

/// Judges a sample that claims to be accelerated; where traffic is to be carried, by what the loop-back device carried per
/// message, beside the native arm's median of that.
///
/// A fifth of it is allowed: connections begin over TCP. Where no native sample was taken only the count speaks. Where
/// nothing is counted, beside the message itself: datagrams that the kernel carries may share their headers.
pub fn judge(
    proof: Proof,
    counters: &Counters,
    loopback_per_message: f64,
    native: Option<f64>,
) -> Carried {
    let ends = match proof {
        Proof::Carried { ends } => ends,
        Proof::Quiet { .. } if counters.processes == 0 => return Carried::NotLoaded,
        Proof::Quiet { size } => return quiet(loopback_per_message, size as f64),
        Proof::Counted { ends } if counters.accelerated < ends => return Carried::NotCounted,
        Proof::Loaded if counters.processes == 0 => return Carried::NotLoaded,
        Proof::Counted { .. } | Proof::Loaded | Proof::None => return Carried::Yes,
    };
    if counters.accelerated < ends {
        return Carried::NotCounted;
    }
    native.map_or(Carried::Yes, |native| quiet(loopback_per_message, native))
}

fn quiet(loopback_per_message: f64, native: f64) -> Carried {
    match is_quiet(loopback_per_message, native) {
        true => Carried::Yes,
        false => Carried::SeenByKernel,
    }
}

/// Whether the loop-back device saw next to nothing of what it sees, or would see, of a message by the kernel.
pub fn is_quiet(loopback_per_message: f64, native: f64) -> bool {
    loopback_per_message <= native / 5.0
}

#[cfg(test)]
mod tests;
