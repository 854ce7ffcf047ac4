//! What a process has one of.
//!
//! ```text
//!   poll, select, epoll   readiness: user-space state first, then the kernel
//!   table         what each descriptor number means to us; the `Descriptor` trait
//!   numbers       how many of them one thing has
//!   board         listeners and offers of all processes of the user
//!   shared, seats memory that they share, and whose slots in it are whose
//!   signal        handlers wrapped, so that none runs inside a locked section
//!   lifecycle     what is held over a fork, in which order
//!   process       identity, sections; sleeps: the threads in waits of ours
//!   worker        the thread of our own; stand_in: who does its work where there can be none
//!   hidden        the library's own descriptors; handed: those that an earlier image has left
//!   image         what an exec is about to start
//!   hook          functions that one part gives another
//!   unwinder      what panics need, loaded when something is carried
//!   reclaim       when what was retired may be freed
//!   memory        the library's own memory, safe in handlers; guarded: what one thread has at a time
//!   netlink       the kernel's word on routes and sockets
//!   env         the variables that configure us
//!   peer          who is at the other end, and what is taken from him
//!   json          how we write it
//!   counters, log, config, sys
//! ```

pub mod aside;
pub mod board;
pub mod config;
pub mod counters;
pub mod env;
pub mod epoll;
pub mod free_list;
pub mod guarded;
pub mod handed;
pub mod hidden;
pub mod hook;
pub mod idle;
pub mod image;
pub mod json;
pub mod lifecycle;
pub mod log;
pub mod memory;
pub mod netlink;
pub mod next;
pub mod numbers;
pub mod peer;
pub mod poll;
mod postponed;
pub mod process;
pub mod reclaim;
pub mod seats;
pub mod select;
pub mod shared;
pub mod signal;
pub mod sleeps;
pub mod stand_in;
pub mod sys;
pub mod table;
pub mod thread_end;
pub mod unwinder;
pub mod worker;

pub use headwater_channel::{roster, sync};
