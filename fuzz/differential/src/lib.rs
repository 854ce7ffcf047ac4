//! Sequences of calls by chance, run on the plain kernel and under Headwater. What differs is a fault.
//!
//! ```text
//!     make::generate ── Script ─┬─ natively, as often as its answers vary ─ the answers there may be ─┐
//!                               └─ with the library preloaded ───────────── an answer ───────────────┴─ compare
//!                                                                                                          │ differs, also when slow
//!                                                              shrink ── a script, and a program in C ─────┘
//! ```
//!
//! `c/steps.c` runs the scripts. `faults` asks whether any of this would find what was mended, were it taken back.

pub mod faults;
pub mod hunt;
pub mod kept;
pub mod machine;
pub mod make;
pub mod program;
pub mod rows;
pub mod script;
pub mod shrink;

pub use machine::{Machine, Verdict};
pub use script::{Mix, Script};
