//! Where the two ends run, and who disturbs them.

use serde::{Deserialize, Serialize};

use crate::failure::Result;
use crate::process::{self, Running};
use crate::tools::Tools;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Wherever the scheduler likes.
    Free,
    /// A CPU each.
    Apart,
    /// Both on one.
    Same,
    /// A CPU each, and a process that never rests on the server's.
    ApartBusy,
    /// Both on one, and a process that never rests beside them.
    SameBusy,
}

impl Placement {
    pub const ALL: [Placement; 5] = [
        Placement::Apart,
        Placement::Same,
        Placement::Free,
        Placement::ApartBusy,
        Placement::SameBusy,
    ];

    /// Those in which nobody disturbs.
    pub const UNDISTURBED: &'static [Placement] =
        &[Placement::Apart, Placement::Same, Placement::Free];

    pub fn named(name: &str) -> Option<Placement> {
        Placement::ALL.into_iter().find(|one| one.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Placement::Free => "free",
            Placement::Apart => "apart",
            Placement::Same => "same",
            Placement::ApartBusy => "apart-busy",
            Placement::SameBusy => "same-busy",
        }
    }

    /// Those that a machine with these CPUs offers.
    pub fn offered(cpus: &[usize]) -> impl Iterator<Item = Placement> {
        let apart = cpus.len() > 1;
        Placement::ALL.into_iter().filter(move |placement| {
            apart || !matches!(placement, Placement::Apart | Placement::ApartBusy)
        })
    }

    pub fn server_cpu(self, cpus: &[usize]) -> Option<usize> {
        match self {
            Placement::Free => None,
            _ => cpus.first().copied(),
        }
    }

    pub fn client_cpu(self, cpus: &[usize]) -> Option<usize> {
        match self {
            Placement::Free => None,
            Placement::Apart | Placement::ApartBusy => cpus.get(1).copied(),
            Placement::Same | Placement::SameBusy => cpus.first().copied(),
        }
    }

    /// Those that the ends of a sample run on.
    pub fn cpus(self, cpus: &[usize]) -> Vec<usize> {
        let mut own: Vec<usize> = self
            .server_cpu(cpus)
            .into_iter()
            .chain(self.client_cpu(cpus))
            .collect();
        own.dedup();
        match own.is_empty() {
            true => cpus.to_vec(),
            false => own,
        }
    }

    /// Starts what disturbs this placement, if anything does; it ends when dropped.
    pub fn disturb(self, tools: &Tools, cpus: &[usize]) -> Result<Option<Running>> {
        if !matches!(self, Placement::ApartBusy | Placement::SameBusy) {
            return Ok(None);
        }
        let mut command = tools.load("echo");
        command.arg("spin");
        process::prepare(&mut command, self.server_cpu(cpus), None);
        Running::start("headwater-load echo spin", command).map(Some)
    }
}

#[cfg(test)]
mod tests;
