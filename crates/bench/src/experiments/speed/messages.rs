//! One message after the other: the document's sizes, the time of each call, many threads, messages larger than a slot.

use super::Work;
use super::way::{COPY_ALONE, DOORBELL, HAND_OFF, Runs, SEMAPHORE, ZERO_COPY, ways};
use crate::experiment::{ACCELERATED_NODELAY, Arm, TCP_NODELAY};
use crate::placement::Placement::{self, Apart, Same};

pub const SIZES: [usize; 3] = [70, 512, 1000];
/// Messages of the document's outlook.
pub const THREADED: usize = 7000;
pub const THREADS: [usize; 3] = [1, 5, 20];
/// A slot of the document's configuration, and how many of them.
pub const SLOT: usize = 1024;
const SLOTS: usize = 128;
pub const LARGER: [usize; 4] = [512, 4096, 16384, 65536];

const ALL: [Arm; 7] = [
    TCP_NODELAY,
    HAND_OFF,
    DOORBELL,
    SEMAPHORE,
    ACCELERATED_NODELAY,
    ZERO_COPY,
    COPY_ALONE,
];

/// What 100,000 messages take.
pub fn base() -> Vec<Box<dyn Work>> {
    let cell = |size: usize| Runs {
        words: format!("--size {size}"),
        placements: Placement::UNDISTURBED,
        ..Runs::new(format!("messages-{size}"), ways(&ALL))
    };
    SIZES.map(|size| cell(size).boxed()).into()
}

/// How long each read and each write takes. Runs of their own: asking for the time costs as much as some of the calls.
pub fn latencies() -> Vec<Box<dyn Work>> {
    let cell = |size: usize| Runs {
        words: format!("--size {size} --latencies"),
        placements: &[Apart, Same],
        stretch: 0.5,
        ..Runs::new(format!("latency-{size}"), ways(&ALL[..6]))
    };
    SIZES.map(|size| cell(size).boxed()).into()
}

/// Connections at once, with a thread at each end.
pub fn threads() -> Vec<Box<dyn Work>> {
    let cell = |threads: usize| Runs {
        words: format!("--size {THREADED} --threads {threads}"),
        stretch: 0.5,
        ends: 2 * threads as u64,
        ..Runs::new(format!("threads{threads}-{THREADED}"), ways(&ALL[..6]))
    };
    THREADS.map(|threads| cell(threads).boxed()).into()
}

/// Messages that go in several frames, beside TCP, which does not mind.
pub fn larger() -> Vec<Box<dyn Work>> {
    let cell = |size: usize| Runs {
        words: format!("--size {size} --slot {SLOT} --slots {SLOTS}"),
        stretch: 0.5,
        ..Runs::new(
            format!("larger-{size}"),
            ways(&[TCP_NODELAY, DOORBELL, SEMAPHORE, ACCELERATED_NODELAY]),
        )
    };
    LARGER.map(|size| cell(size).boxed()).into()
}
