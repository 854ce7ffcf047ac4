//! Transport providers, and the endpoints through which they are used.
//!
//! ```text
//!   endpoint    state, lock and descriptor of one endpoint      provider    what a provider has to offer
//!   device      the providers by name                           options     t_optmgmt, for all of them
//!   loopback    ticlts, ticots, ticotsord: rings between processes of one user
//!   inet        tcp and udp over the kernel's sockets, Fast Sockets where both ends are ours; flusher: what is held back
//!   udp2        UDP of our own: rings within the host, sockets or raw packets beyond it
//!   rawip       IP itself as a provider
//!   sctp        SCTP of our own: links, the stack, associations
//!   stream      the message face: TPI drivers, timod, tirdwr, sockmod
//! ```

/// Tests of this crate and those beside it share pieces, which call it by its name.
#[cfg(test)]
extern crate self as headwater_transport;

pub mod device;
pub mod endpoint;
pub mod flusher;
pub mod inet;
pub mod loopback;
pub mod options;
pub mod provider;
pub mod rawip;
pub mod sctp;
pub mod stream;
pub mod udp2;

/// Makes the transports possible in this process. Once, at start, after the streams.
pub fn start() {
    use headwater_host::table::{Kind, register};
    register(Kind::Endpoint, &endpoint::Endpoints);
    register(Kind::Sctp, &sctp::socket::face::Sctps);
    headwater_streams::head::life::around_fork(endpoint::before_fork, endpoint::after_fork);
    stream::register();
    if let Some(text) = headwater_host::env::take(endpoint::VARIABLE) {
        endpoint::inherit(&text);
    }
}
