//! The message face of the transports: endpoints at the bottom of streams, used by the primitives of TPI 2.0.
//!
//! ```text
//!   driver    requests from above become calls of an Endpoint, their results acknowledgements
//!   raise     what the endpoint has becomes indications, while there is room above
//!   watch     what wakes the driver: the endpoint's descriptor and bell, looked after by the background thread
//!   convert   an endpoint of t_open becomes a stream
//!   timod, tirdwr, sockmod   the modules that go with it
//! ```
//!
//! Whatever runs on the stream looks at the endpoint too. Between calls the background thread does, but not for ever: a
//! process that has forked takes nothing more from an endpoint until it uses its stream again, since what comes may be the
//! other's.

mod convert;
mod driver;
mod raise;
mod sockmod;
mod timod;
mod tirdwr;
mod watch;

use std::collections::BTreeMap;
use std::sync::Arc;

use headwater_host::guarded::Guarded;
use headwater_streams::ddi::owned::Message;
use headwater_streams::ddi::{M_PCPROTO, M_PROTO};
use headwater_streams::exec::Queue;
use headwater_streams::exec::registry::{register_device, register_module};
use headwater_streams::head::{Head, local};
use headwater_tpi::state::State;

pub use convert::{convert, wait_for_others};
pub use timod::{
    TI_BIND, TI_CAPABILITY, TI_GETADDRS, TI_GETINFO, TI_GETMYNAME, TI_GETPEERNAME, TI_OPTMGMT,
    TI_SYNC, TI_UNBIND,
};

use crate::device;
use crate::endpoint::Endpoint;
use driver::Tpi;

/// Numbers of these modules and drivers (mi_idnum).
mod id {
    pub const TPI: u16 = 0x4821;
    pub const TIMOD: u16 = 0x4831;
    pub const TIRDWR: u16 = 0x4832;
    pub const SOCKMOD: u16 = 0x4833;
}

/// Puts devices and modules into the registry of the streams.
pub fn register() {
    let _ = register_module::<timod::Timod>();
    let _ = register_module::<tirdwr::Tirdwr>();
    let _ = register_module::<sockmod::Sockmod>();
    macro_rules! devices {
        ($($at:literal)*) => {
            $(device::<$at>();)*
        };
    }
    devices!(0 1 2 3 4 5 6 7 8 9 10 11 12);
}

/// The device at this place in [`device::ALL`], by both its names.
fn device<const D: usize>() {
    let name = device::ALL[D].0;
    let _ = register_device::<Tpi<D>>(name);
    let _ = register_device::<Tpi<D>>(&format!("inet/{name}"));
}

/// An endpoint and what wakes its stream.
struct Open {
    end: &'static Endpoint,
    wake: Option<Arc<watch::Wake>>,
    /// What the user knew when it became a stream, until primitives change that.
    known: Option<Known>,
    /// What was to be sent last was dropped, since the connection is over.
    dropped: bool,
}

/// What the user of an endpoint knows of it, whatever the driver has told to the stream head meanwhile.
#[derive(Clone, Copy)]
pub struct Known {
    pub state: State,
    /// Connect indications heard and not answered.
    pub outstanding: usize,
    /// See [`Endpoint::blocked`].
    pub blocked: [bool; 2],
}

/// The streams with a transport at the bottom, by what I_FDINSERT calls them: ACCEPTOR_id. An endpoint found here is not
/// let go before the table is left. Entered inside a perimeter, so that a fork finds it free.
static STREAMS: Guarded<BTreeMap<u32, Open>> = Guarded::new(BTreeMap::new());

/// The message of a primitive, one that goes before others or not.
fn proto(is_high: bool, primitive: &[u8]) -> Message {
    let kind = if is_high { M_PCPROTO } else { M_PROTO };
    Message::from_bytes(kind, primitive)
}

/// The head of the stream that a queue belongs to.
fn head_of(q: Queue) -> Option<&'static Head> {
    // SAFETY: queues of streams that programs open have their head there, and heads are never freed.
    unsafe { q.stream().cast::<Head>().as_ref() }
}

/// ACCEPTOR_id of a queue's stream.
fn acceptor(q: Queue) -> u32 {
    head_of(q).map_or(0, local::acceptor)
}

/// The endpoint at the bottom of a stream.
pub fn endpoint_of(head: &Head) -> Option<&'static Endpoint> {
    look(head, |open| open.end)
}

/// Of a stream that was an endpoint of t_open: what its user knew then, if nothing was asked of it since.
pub fn known_before(head: &Head) -> Option<Known> {
    look(head, |open| open.known).flatten()
}

/// Was what came down last, to be sent, dropped, since the connection is over?
pub fn has_dropped(head: &Head) -> bool {
    look(head, |open| open.dropped).unwrap_or(false)
}

fn look<T>(head: &Head, f: impl FnOnce(&Open) -> T) -> Option<T> {
    local::inside(head, |_| STREAMS.enter().get(&local::acceptor(head)).map(f)).flatten()
}

/// Of a driver, by one of its queues.
fn change(q: Queue, f: impl FnOnce(&mut Open)) {
    if let Some(open) = STREAMS.enter().get_mut(&acceptor(q)) {
        f(open);
    }
}
