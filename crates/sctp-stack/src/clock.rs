//! Moments of CLOCK_MONOTONIC, which is the engine's time too.

use core::time::Duration;

use headwater_host::sys;

/// The moment that is so far away; none: never.
pub fn until(timeout: Option<Duration>) -> u64 {
    let ns = timeout.and_then(|t| u64::try_from(t.as_nanos()).ok());
    ns.map_or(u64::MAX, |ns| sys::now().saturating_add(ns))
}
