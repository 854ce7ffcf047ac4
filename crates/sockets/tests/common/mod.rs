//! What the tests of this folder share: real processes, forked, that use the crate as the preloaded library does.
//!
//! ```text
//!   calls    a small C library: socket calls through the crate where it looks after the descriptor
//!   stream   reproducible random choices, and bytes that know their position
//!   users    processes of several users
//!   world    worker processes with an environment of their own, and children with a deadline
//! ```

#![allow(dead_code)] // Each test uses its own part.

pub mod calls;
pub mod stream;
pub mod users;
pub mod world;
