//! The driver's view: types and routines of <sys/stream.h>, by their DDI/DKI names (section 9F of the manual).
//!
//! ```text
//!   block     mblk_t, dblk_t: allocb, esballoc, dupb, copyb, freeb
//!   message   chains of blocks: types, control structures, linkb, adjmsg, pullupmsg, msgdsize ...
//!   owned     `Message`, a chain that frees itself
//!   queue     queue_t, qinit, streamtab: flags, pairs, what a queue is made of; the perimeter that it lies in
//!   order     putq, putbq, insq, getq, rmvq, flushq: the order on a queue, what it counts, back-enabling
//!   flow      canput and its band forms, strqget, strqset
//!   pass      putnext, put, qreply, putctl
//! ```
//!
//! # Contract
//! Everything on a [`Queue`] is called inside the perimeter of its stream ([`crate::exec::perimeter`]), so nothing
//! here takes a lock. Messages may be handed between threads; a block's reference count alone is atomic.

pub mod block;
pub mod flow;
#[cfg(test)]
mod layout_tests;
pub mod message;
pub mod order;
pub mod owned;
pub mod pass;
pub mod queue;

pub use block::*;
pub use flow::*;
pub use message::*;
pub use order::*;
pub use owned::Message;
pub use queue::*;
