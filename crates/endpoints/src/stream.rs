//! The message face of the transports: endpoints at the bottom of streams, used by the primitives of TPI 2.0.
//!
//! ```text
//!   driver    requests from above become calls of an Endpoint, their results acknowledgements
//!   raise     what the endpoint has becomes indications, while there is room above
//!   watch     what wakes the driver: the endpoint's descriptor and bell, looked after by the background thread
//!   waiting   calls that wait at the stream, and with it at the endpoint
//!   convert   an endpoint of t_open becomes a stream
//!   timod, tirdwr, sockmod   the modules that go with it
//! ```
//!
//! Whatever looks for a message looks at the endpoint too, and who waits for one waits there (`waiting`). Between calls nobody looks,
//! unless somebody relies on it: then the background thread does, but not for ever. A process that has forked takes nothing more
//! from an endpoint until it uses its stream again, since what comes may be the other's.

mod convert;
mod driver;
mod raise;
mod sockmod;
mod timod;
mod tirdwr;
mod waiting;
mod watch;

use std::collections::BTreeMap;
use std::sync::Arc;

use headwater_host::guarded::Guarded;
use headwater_host::sync::Ordering::Relaxed;
use headwater_host::sync::{AtomicBool, AtomicU32};
use headwater_streams::ddi::owned::Message;
use headwater_streams::ddi::{M_PCPROTO, M_PROTO};
use headwater_streams::exec::Queue;
use headwater_streams::exec::registry::{register_device, register_module};
use headwater_streams::head::Head;
use headwater_streams::head::local::{self, Local};
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
    waiting::register();
}

/// The device at this place in [`device::ALL`], by both its names.
fn device<const D: usize>() {
    let name = device::ALL[D].0;
    let _ = register_device::<Tpi<D>>(name);
    let _ = register_device::<Tpi<D>>(&format!("inet/{name}"));
}

/// An endpoint at the bottom of a stream, and what its driver and others tell each other.
struct Below {
    end: &'static Endpoint,
    wake: Option<Arc<watch::Wake>>,
    /// What the user knew when it became a stream.
    known: Option<Known>,
    /// Primitives may have changed that.
    used: AtomicBool,
    /// What was to be sent last was dropped, since the connection is over.
    dropped: AtomicBool,
    /// Threads that wait at the endpoint for room. One that never comes back stays counted: then the driver looks by the clock.
    for_room: AtomicU32,
    /// How often in a row who waited found nothing.
    vain: AtomicU32,
    /// Threads sleep at the endpoint, perhaps, that do so since before it was a stream's.
    turned_out: AtomicBool,
}

impl Below {
    /// Wakes those who sleep at the endpoint since before it was a stream's. True while there are such.
    fn wakes_turned_out(&self) -> bool {
        if !self.turned_out.load(Relaxed) {
            return false;
        }
        let are_there = self.end.wake_sleepers();
        self.turned_out.store(are_there, Relaxed);
        are_there
    }
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
static STREAMS: Guarded<BTreeMap<u32, Arc<Below>>> = Guarded::new(BTreeMap::new());

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
    local::inside(head, endpoint_in).flatten()
}

/// Of a stream that was an endpoint of t_open: what its user knew then, if nothing was asked of it since.
pub fn known_before(head: &Head) -> Option<Known> {
    let known = |below: &Below| below.known.filter(|_| !below.used.load(Relaxed));
    local::inside(head, |local| look(local, known))
        .flatten()
        .flatten()
}

/// The same for who is inside the stream's perimeter.
pub fn endpoint_in(local: &Local) -> Option<&'static Endpoint> {
    look(local, |below| below.end)
}

/// Was what came down last, to be sent, dropped, since the connection is over?
pub fn has_dropped(local: &Local) -> bool {
    look(local, |below| below.dropped.load(Relaxed)).unwrap_or(false)
}

fn look<T>(local: &Local, f: impl FnOnce(&Below) -> T) -> Option<T> {
    let below = local.below.borrow();
    below.as_ref()?.downcast_ref().map(f)
}
