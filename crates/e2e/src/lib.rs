//! What the end-to-end tests share: a *lab* in which real programs run, natively or with the library preloaded.
//!
//! ```text
//!   both ── Lab (native)      ─ programs ─ result ─┐
//!        └─ Lab (accelerated) ─ programs ─ result ─┴─ equal?
//!                 └─ stats lines, loopback counters: was the traffic carried, and did the kernel see little of it?
//! ```
//!
//! Each lab has its own folder, runtime folder, statistics file and, where that is permitted, network namespace, so that
//! ports are free and the kernel's loopback counters belong to one test. Programs die with their lab.

pub mod cases;
pub mod census;
pub mod chance;
pub mod compile;
pub mod disk;
pub mod inject;
pub mod lab;
pub mod network;
pub mod program;
pub mod stats;

pub use lab::{Lab, Mode, accelerated, both, carried, carrying, judged, native};
pub use program::{Output, Running};
pub use stats::Line;

use std::time::Duration;

/// Bound on every wait. Nothing here takes nearly as long unless something hangs.
pub const PATIENCE: Duration = Duration::from_secs(60);
