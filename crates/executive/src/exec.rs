//! The executive: what makes queues run.
//!
//! ```text
//!   perimeter   the lock that a stream's procedures run in, and the queues enabled in it
//!   attach      queue pairs: made, linked into a stream and out of it; the lower side of a multiplexer
//!   module      the `Module` and `Mux` traits, and `Queue`: modules and drivers in Rust
//!   registry    modules and devices by name
//!   timer       timeout, bufcall
//! ```
//!
//! A caller of the stream head enters the stream's perimeter, calls procedures, and leaves; on leaving the queues that were
//! enabled meanwhile are serviced, on the same thread.

pub mod attach;
pub mod guarded;
pub mod module;
pub mod perimeter;
pub mod queue;
pub mod registry;
pub mod timer;

pub use attach::*;
pub use module::{Flow, Info, Module, Mux, OpenFlag, streamtab_of};
pub use perimeter::{Guard, Held, Perimeter, hold_all, move_stream};
pub use queue::Queue;

#[cfg(test)]
mod tests;
