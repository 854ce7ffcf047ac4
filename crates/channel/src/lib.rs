//! Shared-memory channels for programs on one host.
//!
//! ```text
//!   channel   Channel::pair(): messages and bytes; blocking, non-blocking and with a deadline; copied or in place
//!   wait      spin, then timed yields; budgets learnt at run time
//!   waiter    arm, look again, sleep, settle: for whoever sleeps beside shared memory
//!   ring      one direction: frames {length, kind, band, flags, control} in a bounded byte ring
//!   copy      copies that survive a wrong pointer
//!   lock      writer and reader locks that survive the death of their owner
//!   identity  who we are as a lock's owner, and whether another owner lives
//!   bell      eventfd doorbells
//!   roster    who sleeps at a bell that several watch
//!   pass      descriptors in messages on UNIX sockets
//!   epoch     when what was taken out of reach may be freed
//!   segment   sealed memfd, mapped so that a ring's bytes are always contiguous
//!   sync      the only place where atomics come from; swaps to loom under test
//! ```
//!
//! Programs use a [`Channel`]; the layers below serve those who put rings behind other interfaces.
//!
//! A [`ring::Ring`] carries bytes or messages from one end to the other. Nothing a peer writes is trusted: every word
//! read from a segment is read once and clamped, so the worst a broken peer can do is to spoil its own data.

// Lets the derive's generated paths resolve inside this crate too.
extern crate self as headwater_channel;

#[cfg(not(loom))]
pub mod bell;
#[cfg(not(loom))]
pub mod channel;
pub mod copy;
pub mod epoch;
#[cfg(not(loom))]
pub mod identity;
pub mod lock;
#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(not(loom))]
pub mod pass;
pub mod ring;
pub mod roster;
#[cfg(not(loom))]
pub mod segment;
pub mod shm;
pub mod sync;
#[cfg(not(loom))]
pub mod sys;
#[cfg(not(loom))]
pub mod wait;
pub mod waiter;
mod zeroed;

#[cfg(not(loom))]
pub use channel::{
    Builder, Channel, DEFAULT_RING, Fds, FrameRef, Message, OpenError, ReceiveError, Reservation,
    SendError, Side,
};
