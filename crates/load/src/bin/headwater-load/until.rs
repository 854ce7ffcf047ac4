//! When a client has measured enough.

use std::time::Duration;

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Until {
    Time(Duration),
    /// Messages, as the program counts them.
    Count(u64),
}

impl Until {
    /// How much to run before measuring, which takes no longer than `most`.
    pub fn warm_up(self, most: Duration) -> Until {
        match self {
            Until::Time(time) => Until::Time((time / 5).min(most)),
            Until::Count(count) => Until::Count((count / 10).max(20)),
        }
    }

    pub fn reached(self, elapsed: Duration, count: u64) -> bool {
        match self {
            Until::Time(time) => elapsed >= time,
            Until::Count(limit) => count >= limit,
        }
    }
}
