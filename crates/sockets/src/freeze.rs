//! A connection leaves the rings in both directions.

use headwater_channel::bell;
use headwater_host::counters::Reason;
use headwater_host::log::{self, Level};
use headwater_host::reclaim::enter;
use headwater_host::sync::Ordering;

use crate::conn::{self, Conn};
use crate::keeper::{self, Then};
use crate::record::{DROPPED, IN_STAYS, OUT_STAYS};
use crate::segment::{PIN, TCPONLY, Tx, View};
use crate::switch::{
    help_withdraw, pin_for_now, pin_if_empty, recover_reader, tcp_only, tcp_only_for_now, unswitch,
    withdraw, withdraw_to,
};

/// Has it done so for good?
pub fn is_for_good(v: &View<'_>) -> bool {
    v.record.has(OUT_STAYS) && v.record.has(IN_STAYS) && is_frozen(v)
}

/// Has this end left the rings in both directions?
fn is_frozen(v: &View<'_>) -> bool {
    v.out().tx().has(TCPONLY) && v.inn().tx().has(PIN)
}

/// Takes a connection off the rings for good, as far as this end can: before its descriptor is passed on, for example. `childs`: the
/// number of the shadow in a child of vfork, which has numbers of its own.
pub fn for_good(c: &'static Conn, v: &View<'static>, childs: Option<i32>, reason: Reason) {
    if is_for_good(v) {
        return;
    }
    v.record.set(OUT_STAYS | IN_STAYS, true);
    for_now(c, v, childs, reason);
}

/// The same until those who go round us are gone (see comeback.rs), unless there is another reason.
pub fn for_now(c: &'static Conn, v: &View<'static>, childs: Option<i32>, reason: Reason) {
    if childs.is_none() && v.out_ring().unread() > 0 {
        let looks = enter();
        let other = conn::other_end(v, &looks);
        other.inspect(|(other, its)| take_back(other, its, c, v));
    }
    let withdrawn = match childs {
        Some(fd) => withdraw_to(c, v, fd),
        None => !help_withdraw(c, v),
    };
    let fd = || childs.unwrap_or_else(|| c.fd());
    if !withdrawn {
        keeper::leave(c, v, fd(), Then::Close);
    }
    let frozen = is_frozen(v);
    tcp_only_for_now(v);
    unswitch(v);
    if childs.is_none() {
        take_back_own(c, v);
    }
    if !pin_for_now(c, v, childs) && v.in_ring().unread() > 0 {
        let fd = fd();
        let text = format_args!(
            "descriptor {fd} is passed on with bytes in its ring: they stay with this process"
        );
        log::write(Level::Warn, text);
    }
    if !frozen {
        c.falls_back(reason);
    }
}

/// What this process has sent to an end of its own, and not read there, comes by the kernel: as another image, or with its last call made,
/// it would not answer the bell.
pub fn take_back_own(c: &'static Conn, v: &View<'static>) {
    if v.in_ring().unread() == 0 {
        return;
    }
    let looks = enter();
    let other = conn::other_end(v, &looks);
    other.inspect(|(sender, its)| take_back(c, v, sender, its));
}

/// The same, of an end `c` and its `sender`.
fn take_back(c: &'static Conn, v: &View<'static>, sender: &'static Conn, its: &View<'static>) {
    // Held, so that nobody else's file gets their numbers meanwhile.
    let (Some(_held), Some(shadow)) = (c.shadow(), sender.shadow()) else {
        return;
    };
    if pin_for_now(c, v, None) && help_withdraw(sender, its) {
        keeper::leave(sender, its, shadow.fd(), Then::Close);
    }
}

/// As [`for_good`], for what this process itself asks of the kernel. But while something is unread in the ring, that direction
/// stays: its sender may make no call any more, and what comes late may never come. False then.
pub fn if_read(c: &Conn, v: &View<'_>, reason: Reason) -> bool {
    let frozen = is_frozen(v);
    help_withdraw(c, v);
    tcp_only(v);
    unswitch(v);
    let pinned = pin_if_empty(c, v) == Some(true);
    if !frozen {
        c.falls_back(reason);
    }
    pinned || v.in_ring().is_empty()
}

/// The kernel's connection was undone by this end. What its own ring holds the peer may still read, before the reset; what
/// the other holds is dropped. Whatever the descriptor is connected to later goes by the kernel.
pub fn disconnect(c: &Conn, v: &View<'_>) {
    tcp_only(v);
    // The kernel refuses what a peer that is pinned has not read.
    withdraw(c, v);
    unswitch(v);
    {
        v.record.set(IN_STAYS | DROPPED, true);
        let _section = v.lock_in(|| recover_reader(c, v));
        let d = v.inn();
        let w = Tx(d.send.tx.fetch_or(PIN, Ordering::AcqRel));
        d.receive.re.store(w.epoch() as u64, Ordering::Release);
    }
    c.record().error.store(0, Ordering::Relaxed);
    c.gone.store(0, Ordering::Relaxed);
    v.own().look.fetch_add(1, Ordering::Release);
    bell::ring(v.peer_bell());
    bell::ring(v.own_bell());
}
