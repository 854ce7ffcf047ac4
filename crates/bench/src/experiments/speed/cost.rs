//! From which size on copying is the whole cost: the time of a message beside that of its copies alone.

use super::Work;
use super::way::{COPY_ALONE, Runs, SEMAPHORE, ZERO_COPY, ways};
use crate::experiment::{ACCELERATED_NODELAY, Arm, TCP_NODELAY};
use crate::placement::Placement::{Apart, Same};

pub const WORK: &str = "copying";
/// 64 bytes to 1 MiB.
const SIZES: [usize; 8] = [64, 256, 1024, 4096, 16384, 65536, 262_144, 1_048_576];

const ARMS: [Arm; 5] = [
    TCP_NODELAY,
    SEMAPHORE,
    ACCELERATED_NODELAY,
    ZERO_COPY,
    COPY_ALONE,
];

pub fn works() -> Vec<Box<dyn Work>> {
    let cell = |size: usize| {
        // Two slots, each of which takes a message: more would leave the caches sooner.
        let slot = (size + 32).next_power_of_two().max(2048);
        Runs {
            words: format!("--size {size} --slots 2 --slot {slot}"),
            stretch: 0.5,
            placements: &[Apart, Same],
            ..Runs::new(format!("{WORK}-{size}"), ways(&ARMS))
        }
    };
    SIZES.map(|size| cell(size).boxed()).into()
}
