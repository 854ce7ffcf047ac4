//! exec(2): it closes what is not to outlive it.

use headwater_host::sync::Ordering;
use headwater_host::sys;
use headwater_host::table::{self, Handle};

use crate::conn::{self, Conn};
use crate::keeper::{self, Then};
use crate::reset::{AT_ONCE, is_last_to_read, linger, set_linger};
use crate::{pins, switch};

/// What [`replaced`] does to a connection that the exec closes. With [`EXEC_RESETS`] stands the SO_LINGER that it had: on in the bit
/// above, and the seconds.
const EXEC_PINS: u32 = 1;
const EXEC_RESETS: u32 = 2;

/// Before an exec of this process.
pub fn replaced() {
    for c in conn::all() {
        let looks = pins::entered();
        let Some(v) = c.view(&looks) else { continue };
        if switch::help_withdraw(c, &v) {
            // The image to come knows nothing of it.
            keeper::leave(c, &v, c.fd(), Then::Close);
        }
        if v.own().holders.load(Ordering::Acquire) > 1 || stays_open(c) {
            continue;
        }
        let pins = !switch::is_taken_back(&v) && switch::pin_if_empty(c, &v) == Some(true);
        let change = if pins {
            // The kernel closes it later, and tells senders of the end that we can't.
            EXEC_PINS
        } else if is_last_to_read(c, &v) {
            resets(c.fd())
        } else {
            0
        };
        c.closed_by_exec.store(change, Ordering::Relaxed);
    }
    change_holds(-1);
}

/// The exec failed.
pub fn not_replaced() {
    change_holds(1);
    for c in conn::all() {
        match c.closed_by_exec.swap(0, Ordering::Relaxed) {
            EXEC_PINS => {
                let looks = pins::entered();
                c.view(&looks).inspect(|v| switch::unpin(c, v));
            }
            change if change & EXEC_RESETS != 0 && linger(c.fd()) == Some(AT_ONCE) => {
                set_linger(c.fd(), [(change >> 2 & 1) as i32, (change >> 3) as i32]);
            }
            _ => {}
        }
    }
}

/// Has it a number that outlives an exec?
pub fn outlives_exec(h: Handle) -> bool {
    table::numbers(h).any(sys::survives_exec)
}

/// The same, quicker for most.
fn stays_open(c: &Conn) -> bool {
    let others = c.refs.load(Ordering::Acquire) > 1;
    sys::survives_exec(c.fd()) || others && outlives_exec(conn::handle(c))
}

/// The exec's close is to be a reset: how to take that back. 0: it is one already.
fn resets(fd: i32) -> u32 {
    match linger(fd) {
        None | Some(AT_ONCE) => 0,
        Some(_) if !set_linger(fd, AT_ONCE) => 0,
        Some([on, seconds]) => {
            let seconds = (seconds.max(0) as u32).min(u32::MAX >> 3);
            EXEC_RESETS | u32::from(on != 0) << 2 | seconds << 3
        }
    }
}

/// fork(2) failed: there is no child that has all ends too.
pub fn fork_failed() {
    change_holds(-1);
}

/// This process gives up its holds of all ends (before an exec), or takes them back (when the exec failed).
fn change_holds(change: i32) {
    for c in conn::all() {
        let looks = pins::entered();
        let own = c.view(&looks).map(|v| &v.own().holders);
        for count in [Some(&c.record().holders), own].into_iter().flatten() {
            count.fetch_add(change.cast_unsigned(), Ordering::AcqRel);
        }
    }
}
