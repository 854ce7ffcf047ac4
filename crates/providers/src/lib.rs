//! Transport providers, each behind [`provider::Provider`]; a program uses them through an endpoint, which is a crate above this.
//!
//! ```text
//!   provider    what a provider has to offer                    options     t_optmgmt, for all of them
//!   loopback    ticlts, ticots, ticotsord: rings between processes of one user
//!   inet        tcp and udp over the kernel's sockets, Fast Sockets where both ends are ours
//!   udp2        UDP of our own: rings within the host, sockets or raw packets beyond it
//!   rawip       IP itself as a provider                         flusher     sends what is held back
//! ```

pub mod flusher;
pub mod inet;
pub mod loopback;
pub mod options;
pub mod provider;
pub mod rawip;
pub mod udp2;
