//! Calls that wait at a stream with a transport at the bottom, and with it at the endpoint: for what the driver could put up, or for
//! room for what it has to send.

use std::sync::Arc;

use headwater_host::sync::Ordering::Relaxed;
use headwater_host::sys::Errno;
use headwater_host::table::Handle;
use headwater_streams::head::arming::Want;
use headwater_streams::head::local::{self, Local};
use headwater_streams::head::{Head, below};

use super::Below;
use super::raise::{BARREN, WRITING, wanted};
use crate::endpoint;

pub fn register() {
    below::WAIT.set(wait);
    below::CALL.set(call);
}

/// The endpoint's side of a stream, for who goes on with it outside the perimeter.
fn below_in(local: &Local) -> Option<Arc<Below>> {
    let below = local.below.borrow();
    below.clone()?.downcast().ok()
}

/// See [`below::Wait`].
fn wait(
    head: &'static Head,
    want: Want,
    seen: u32,
    deadline: Option<u64>,
) -> Option<Result<(), Errno>> {
    let below = local::inside(head, below_in).flatten()?;
    let for_room = want == Want::ROOM;
    if for_room {
        below.for_room.fetch_add(1, Relaxed);
    }
    let waited = wait_at(&below, head, for_room, seen, deadline);
    if for_room {
        below.for_room.fetch_sub(1, Relaxed);
    }
    if waited.is_some() {
        if for_room && let Some(wake) = &below.wake {
            wake.fire();
        }
        // Whether the call goes on or not: nobody else has looked.
        local::look_below(head);
        let vain = match head.version() == seen {
            true => below.vain.load(Relaxed) + 1,
            false => 0,
        };
        below.vain.store(vain, Relaxed);
    }
    waited
}

fn wait_at(
    below: &Below,
    head: &Head,
    for_room: bool,
    seen: u32,
    deadline: Option<u64>,
) -> Option<Result<(), Errno>> {
    if below.turned_out.load(Relaxed) || below.vain.load(Relaxed) >= BARREN {
        return None;
    }
    if for_room {
        // The driver counts on us from here on.
        local::look_below(head);
    }
    let wanted = |local: &Local| Some(wanted(below.end, local.driver_that_looks()?));
    let [up, down] = local::inside(head, wanted).flatten()?;
    let want = if for_room { down } else { up & !WRITING };
    if want == 0 {
        return None;
    }
    let is_over = || head.version() != seen || head.is_closed();
    match below.end.wait_unless(want, deadline, is_over)? {
        // Another call has closed it, or the stream was used otherwise: what has become of it is seen by the call.
        Err(libc::EBADF) if !head.is_closed() => Some(Ok(())),
        waited => Some(waited),
    }
}

/// See [`below::CALL`].
fn call(endpoint: Handle) {
    if let Some(end) = endpoint::get(endpoint) {
        end.wake_sleepers();
    }
}
