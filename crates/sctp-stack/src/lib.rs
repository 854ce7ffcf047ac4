//! SCTP of our own (RFC 9260) for processes of this host and others: the engine of the sctp crate, over links.
//!
//! ```text
//!   port, association   what Rust programs use                     stat       what `headwater stat sctp` asks for
//!   stack               one per process: who takes packets, who waits; the ports that it serves, and when messages leave
//!   link                udp (RFC 6951), raw                        registry   who has which port on this host
//!   body                an association, whatever carries it: by_memory, between processes of this host, or by_packets
//!   provider            /dev/sctp_t, for XTI and TPI; connection, its view of a body
//!   requests, values, option, addresses, names      its parts
//!   sink                what associations have to tell a socket above    left   what a thread holds that may leave a wait by siglongjmp(3)
//!   on_host             what associations within the host share       guarded, signal, clock, here, environment
//! ```

mod association;
pub mod clock;
pub mod environment;
pub mod guarded;
pub mod here;
pub mod left;
pub mod link;
pub mod on_host;
pub mod port;
pub mod registry;
pub mod signal;
pub mod sink;
pub mod stack;
pub mod stat;

pub mod addresses;
pub mod body;
pub mod by_memory;
pub mod by_packets;
pub mod choice;
mod connection;
pub mod names;
pub mod option;
pub mod provider;
mod requests;
mod values;

pub use addresses::Addresses;
pub use association::{Association, Want, errno};
pub use body::Body;
pub use by_memory::ByMemory;
pub use by_packets::ByPackets;
pub use choice::is_any;
pub use clock::until;
pub use guarded::{Entered, Guarded};
pub use option::orders::Order;
pub use option::status::Status;
pub use port::{Port, Via};
pub use signal::Signal;
pub use sink::{Attached, Sink};

pub use headwater_sctp::{AssocConfig, Down, Event, Outgoing, Received, Reliability};
