//! Many associations of one endpoint: what an idle one takes, and whether many active ones slow each other down.

use crate::sctpperf::engine::Wire;
use crate::sctpperf::{Measured, Options};
use crate::sys::pages;

/// Resident bytes of each end, after a message that was read and acknowledged.
pub fn idle(options: &Options) -> String {
    // What is allocated once for all is there already.
    let mut first = Wire::new(8);
    first.connect(0);
    let before = resident();
    let mut wire = Wire::new(options.count + 1);
    let ids: Vec<_> = (0..options.count as u32)
        .map(|number| wire.connect(number))
        .collect();
    // So that all have been used.
    for (number, id) in ids.iter().enumerate() {
        wire.one(number as u32, *id, options.size);
    }
    let taken = resident().saturating_sub(before);
    Measured {
        messages: options.count as u64,
        seconds: 1.0,
        memory: Some(taken as f64 / (2 * options.count) as f64),
        ..Measured::default()
    }
    .line()
}

pub fn active(options: &Options) -> String {
    let mut wire = Wire::new(options.count + 1);
    let ids: Vec<_> = (0..options.count as u32)
        .map(|number| wire.connect(number))
        .collect();
    wire.run(&ids, options).line()
}

/// Of this process.
fn resident() -> u64 {
    let [_, pages] = pages().expect("procfs");
    pages as u64 * 4096
}
