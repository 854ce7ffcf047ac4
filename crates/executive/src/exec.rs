//! The executive: what makes queues run.
//!
//! ```text
//!   perimeter   how the lock of a stream's procedures is entered, and the queues enabled in it are serviced
//!   attach      queue pairs: made, linked into a stream and out of it; the lower side of a multiplexer
//!   module      the `Module` and `Mux` traits, and `Queue`: modules and drivers in Rust
//!   registry    modules and devices by name
//!   timer       timeout, bufcall
//!   fork        all of it held while the process forks
//! ```
//!
//! A caller of the stream head enters the stream's perimeter, calls procedures, and leaves; on leaving the queues that were
//! enabled meanwhile are serviced, on the same thread.

pub mod attach;
pub mod fork;
pub mod module;
pub mod perimeter;
pub mod queue;
pub mod registry;
pub mod timer;

pub use attach::*;
pub use fork::{Held, hold_all};
pub use module::{Flow, Info, Module, Mux, OpenFlag, streamtab_of};
pub use perimeter::{Guard, Perimeter};
pub use queue::Queue;

#[cfg(test)]
mod tests;
