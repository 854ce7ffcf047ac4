//! How long each call takes, where that is asked for.

use std::time::Instant;

use headwater_load::latency::Recorder;

/// The reads and writes of one end, and at a client what a message takes there and back.
#[derive(Default)]
pub struct Watch {
    pub read: Recorder,
    pub write: Recorder,
    pub round_trip: Recorder,
}

/// The time, where it is wanted: asking for it costs as much as a small copy.
#[inline]
pub fn time(wanted: bool) -> Option<Instant> {
    wanted.then(Instant::now)
}

/// Records what lies between two times.
#[inline]
pub fn note(recorder: &mut Recorder, from: Option<Instant>, to: Option<Instant>) {
    if let (Some(from), Some(to)) = (from, to) {
        recorder.record((to - from).as_nanos() as u64);
    }
}
