//! The endpoints through which transport providers are used, and their face of messages.
//!
//! ```text
//!   endpoint    state, lock and descriptor of one endpoint      device      the providers by name
//!   stream      the message face: TPI drivers, timod, tirdwr, sockmod
//! ```

pub mod device;
pub mod endpoint;
pub mod stream;

/// Makes the transports possible in this process. Once, at start, after the streams.
pub fn start() {
    use headwater_host::table::{Kind, register};
    register(Kind::Endpoint, &endpoint::Endpoints);
    endpoint::look_after_forks();
    stream::register();
    if let Some(text) = headwater_host::env::take(endpoint::VARIABLE) {
        endpoint::inherit(&text);
    }
}
