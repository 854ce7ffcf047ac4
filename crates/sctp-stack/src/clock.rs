//! The engine's time: CLOCK_MONOTONIC.

use headwater_host::sys;
use headwater_sctp::Time;

#[inline]
pub fn now() -> Time {
    Time(sys::now())
}
