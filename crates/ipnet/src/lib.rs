//! The kernel's IP as the network under transports of our own: its addresses and control messages, datagrams in batches, and
//! raw sockets of IPv4 and IPv6 (raw(7)), which need CAP_NET_RAW.
//!
//! ```text
//!   address    struct sockaddr_in, sockaddr_in6                    control   control messages
//!   incoming   datagrams that arrive, many in one call             outgoing  a datagram that leaves
//!   slots      room for what arrives
//!   socket     a raw socket: hidden, close-on-exec, not blocking      batch     many packets in one call, either way
//!   filter     which packets the kernel keeps for us                  checksum  of RFC 1071, with pseudo headers
//!   icmp       what an ICMP error says, and of which packet           errors    the same from a socket's error queue
//!   options    type of service and time to live of one packet     route     the MTU towards a destination
//! ```
//!
//! A raw socket gets a copy of every packet of its protocol that comes to this host, after reassembly. Those of IPv4 begin with
//! the IP header; those of IPv6 begin with what follows the headers. Packets leave without an IP header: the kernel makes it.

pub mod address;
pub mod batch;
pub mod checksum;
pub mod control;
pub mod errors;
pub mod filter;
pub mod icmp;
pub mod incoming;
pub mod options;
pub mod outgoing;
pub mod route;
mod slots;
pub mod socket;

pub use address::Address;
pub use batch::{Inbox, Packet};
pub use filter::Program;
pub use socket::RawSocket;

pub use headwater_host::sys::again;

pub const ICMP: u8 = 1;
pub const TCP: u8 = 6;
pub const UDP: u8 = 17;
pub const ICMPV6: u8 = 58;
pub const SCTP: u8 = 132;
/// No protocol: the user's packets begin with the IP header, and nothing is received (IPPROTO_RAW).
pub const RAW: u8 = 255;
