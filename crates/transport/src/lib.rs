//! The endpoints through which transport providers are used, their face of messages, and SCTP.
//!
//! ```text
//!   endpoint    state, lock and descriptor of one endpoint      device      the providers by name
//!   sctp        SCTP of our own: links, the stack, associations
//!   stream      the message face: TPI drivers, timod, tirdwr, sockmod
//! ```

/// Tests of this crate and those beside it share pieces, which call it by its name.
#[cfg(test)]
extern crate self as headwater_transport;

use headwater_providers::flusher::Holders;

pub mod device;
pub mod endpoint;
pub mod sctp;
pub mod stream;

/// Before something is held back: endpoints and associations are asked by the flusher from then on.
fn answer_the_flusher() {
    static HOLDERS: Holders = [|_| endpoint::flush_due(), sctp::stack::flush_due];
    headwater_providers::flusher::ask(&HOLDERS);
}

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
