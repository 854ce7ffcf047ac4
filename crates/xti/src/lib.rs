//! XTI: the t_ calls, on endpoints of any provider.
//!
//! ```text
//!   calls      what each call does, checks and answers (XNS 5.2)
//!   port       what they need of an endpoint      direct, messages   the two ways to have one
//!   api        endpoints for programs in Rust         netaddr    addresses of <netdir.h>, as bytes and as text
//! ```

pub mod api;
pub mod calls;
pub mod direct;
pub mod messages;
pub mod netaddr;
pub mod port;

use headwater_endpoints::stream;
use headwater_host::table::{self, Kind};
use headwater_tpi::{Refusal, error};

pub use headwater_providers::provider::Outcome;
pub use port::Port;

/// Runs a call on the endpoint behind a descriptor. TBADF.
#[inline]
pub fn with<T>(fd: i32, call: impl FnOnce(&dyn Port) -> Outcome<T>) -> Outcome<T> {
    let (direct, messages);
    // In one place, so that the call is one with its caller.
    let port: &dyn Port = if let Some(h) = table::lookup(fd)
        && h.kind() == Kind::Endpoint
        && let Some(at) = direct::Direct::at(fd, h)
    {
        direct = at;
        &direct
    } else {
        messages = otherwise(fd)?;
        &messages
    };
    call(port)
}

/// By messages, or another thread is about to make a stream of it.
#[cold]
#[inline(never)]
fn otherwise(fd: i32) -> Outcome<messages::Messages> {
    if table::stream(fd).is_none() {
        stream::wait_for_others();
    }
    messages::Messages::at(fd).ok_or(NO_ENDPOINT)
}

/// As [`with`], for t_sync: makes an endpoint of a transport device that was opened by open(2).
pub fn syncing<T>(fd: i32, call: impl FnOnce(&dyn Port) -> Outcome<T>) -> Outcome<T> {
    if table::stream(fd).is_some() {
        return call(&messages::Messages::begin(fd)?);
    }
    with(fd, call)
}

/// Is it a stream with a transport at its bottom, whatever modules are on it?
pub fn is_transport(fd: i32) -> bool {
    messages::Messages::of(fd).is_some()
}

const NO_ENDPOINT: Refusal = Refusal::new(error::TBADF);
