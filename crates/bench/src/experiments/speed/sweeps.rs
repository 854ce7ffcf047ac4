//! Slots, their size and the number of windows, for the arms whose data is in shared memory.
//!
//! The channel has no slots: a ring of SLOTS x SIZE bytes takes the place of so many, and a message fills a slot but for the
//! 32 bytes that its frame needs. A window is a ring; where there are several, messages take them in turn.

use super::Work;
use super::way::{Runs, Way, arm};
use crate::experiment::{Arm, Carrier};

/// The arms of a cell, by the number of slots.
pub const SLOTS: [(Arm, usize); 6] = [
    (arm("slots-2", Carrier::Raw), 2),
    (arm("slots-8", Carrier::Raw), 8),
    (arm("slots-32", Carrier::Raw), 32),
    (arm("slots-128", Carrier::Raw), 128),
    (arm("slots-512", Carrier::Raw), 512),
    (arm("slots-1024", Carrier::Raw), 1024),
];
pub const SLOT_SIZES: [usize; 5] = [256, 1024, 4096, 16384, 65536];
pub const WINDOWS: [(Arm, usize); 4] = [
    (arm("windows-1", Carrier::Raw), 1),
    (arm("windows-2", Carrier::Raw), 2),
    (arm("windows-3", Carrier::Raw), 3),
    (arm("windows-8", Carrier::Raw), 8),
];

/// A sweep over slots: one message under way, or as many as there are slots.
pub struct Sweep {
    pub work: &'static str,
    carrier: &'static str,
    filled: bool,
}

pub const SWEEPS: [Sweep; 3] = [
    Sweep {
        work: "slots",
        carrier: "futex",
        filled: false,
    },
    Sweep {
        work: "filled",
        carrier: "futex",
        filled: true,
    },
    Sweep {
        work: "filled-ii",
        carrier: "eventfd",
        filled: true,
    },
];

/// The bytes of a slot that a message does not get.
const OVERHEAD: usize = 32;
/// The smallest ring there is.
const SMALLEST_RING: usize = 4096;
/// Time of a sample: there are many.
const STRETCH: f64 = 0.25;
const WINDOW_SLOT: usize = 1024;
const WINDOW_SLOTS: usize = 32;

pub fn works() -> Vec<Box<dyn Work>> {
    let slots = SWEEPS
        .iter()
        .flat_map(|sweep| SLOT_SIZES.map(|slot| sweep.runs(slot)));
    let windows = [("windows", 1), ("windows-filled", WINDOW_SLOTS)];
    let windows = windows.map(|(work, ahead)| over_windows(work, ahead));
    slots.chain(windows).map(Runs::boxed).collect()
}

impl Sweep {
    fn runs(&self, slot: usize) -> Runs {
        let way = |(arm, slots): (Arm, usize)| {
            let ahead = if self.filled { slots } else { 1 };
            Way::new(
                arm,
                &format!("run {} --slots {slots} --ahead {ahead}", self.carrier),
            )
        };
        let possible = SLOTS
            .into_iter()
            .filter(|(_, slots)| slots * slot >= SMALLEST_RING);
        Runs {
            words: format!("--slot {slot} --size {}", slot - OVERHEAD),
            stretch: STRETCH,
            ..Runs::new(format!("{}-{slot}", self.work), possible.map(way).collect())
        }
    }
}

fn over_windows(work: &str, ahead: usize) -> Runs {
    let way = |(arm, windows): (Arm, usize)| {
        Way::new(
            arm,
            &format!("run futex --windows {windows} --ahead {ahead}"),
        )
    };
    Runs {
        words: format!(
            "--slot {WINDOW_SLOT} --slots {WINDOW_SLOTS} --size {}",
            WINDOW_SLOT - OVERHEAD
        ),
        stretch: STRETCH,
        ..Runs::new(format!("{work}-{WINDOW_SLOT}"), WINDOWS.map(way).into())
    }
}

#[cfg(test)]
mod tests;
