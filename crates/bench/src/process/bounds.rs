//! How long programs are waited for in a run whose time is short, whatever the limits of each.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// What a server may take until it is ready; when all of the measuring must be over.
static BOUNDS: OnceLock<(Duration, Instant)> = OnceLock::new();

/// For the rest of this process's life.
pub fn set(ready: Duration, end: Instant) {
    let _ = BOUNDS.set((ready, end));
}

/// Is there no time left?
pub fn are_over() -> bool {
    BOUNDS.get().is_some_and(|(_, end)| Instant::now() >= *end)
}

/// As much of a limit as there is time left.
pub(super) fn left(limit: Duration) -> Duration {
    bounded(limit, BOUNDS.get().map(|(_, end)| *end))
}

/// As much of a limit as there is to get ready.
pub(super) fn ready(limit: Duration) -> Duration {
    let most = BOUNDS.get().map_or(limit, |(ready, _)| *ready);
    left(limit.min(most))
}

fn bounded(limit: Duration, end: Option<Instant>) -> Duration {
    end.map_or(limit, |end| {
        limit.min(end.saturating_duration_since(Instant::now()))
    })
}

#[cfg(test)]
mod tests;
