//! Shared-memory channels for programs on one host.
//!
//! ```text
//!   channel   Channel::pair(): blocking, non-blocking and deadline calls on a message channel
//!   wait      spin, then timed yields, then sleep; budgets learnt at run time
//!   ring      one direction: frames {length, kind, band, flags, control} in a bounded byte ring
//!   lock      writer and reader locks that survive the death of their owner
//!   bell      eventfd doorbells
//!   segment   sealed memfd, mapped so that a ring's bytes are always contiguous
//!   sync      the only place where atomics come from; swaps to loom under test
//! ```
//!
//! A [`ring::Ring`] carries bytes or messages from one end to the other. Nothing a peer writes is trusted: every word
//! read from a segment is read once and clamped, so the worst a broken peer can do is to spoil its own data.

// Lets the derive's generated paths resolve inside this crate too.
extern crate self as headwater_channel;

#[cfg(not(loom))]
pub mod bell;
pub mod lock;
pub mod ring;
#[cfg(not(loom))]
pub mod segment;
pub mod shm;
pub mod sync;
#[cfg(not(loom))]
pub mod sys;
#[cfg(not(loom))]
pub mod wait;
