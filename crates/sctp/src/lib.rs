//! An SCTP engine: RFC 9260 and its extensions, without I/O and without a clock. It takes packets and the time, and hands back
//! packets, events and the time of its next deadline.
//!
//! ```text
//!   endpoint       one port: finds the association of a packet, answers INIT and what comes out of the blue
//!   association    one association: handshake, timers, paths, shutdown, extensions
//!   send   sched   messages out: queues, fragments, retransmission        congestion   windows
//!   recv           messages in: TSNs, reassembly, delivery                reset  asconf  pmtu   extensions
//!   wire           packets and chunks as bytes    auth  cookie  checksum    serial  time  timer   numbers
//!   config  features  event  packet   what goes in and out: settings, what both sides can do, news, packets with their addresses
//! ```
#![forbid(unsafe_code)]

pub mod asconf;
pub mod association;
pub mod auth;
pub mod checksum;
pub mod config;
pub mod congestion;
pub mod cookie;
pub mod endpoint;
pub mod event;
pub mod features;
pub mod packet;
pub mod path;
pub mod pmtu;
pub mod recv;
pub mod reset;
pub mod rto;
pub mod sched;
pub mod send;
pub mod serial;
pub mod time;
pub mod timer;
pub mod wire;
#[cfg(test)]
mod work;

pub use association::{AssocId, Association};
pub use config::{Allowed, AssocConfig, Config, RtoLimits};
pub use congestion::CongestionControl;
pub use endpoint::Endpoint;
pub use event::{Down, Event, Outcome, PathChange};
pub use features::Features;
pub use packet::{Arrived, Transmit};
pub use path::{Path, PathId, PathState, Paths};
pub use pmtu::Pmtu;
pub use recv::{Received, Receiver};
pub use rto::Rto;
pub use sched::SchedulerKind;
pub use send::{Outgoing, Reliability, Sender};
pub use serial::{Mid, Ssn, Tsn};
pub use time::Time;
pub use timer::{Timer, Timers};
