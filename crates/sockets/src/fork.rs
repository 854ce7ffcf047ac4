//! What becomes of all connections together at a fork(2), whose child has all ends too, an exec and the end of the process.

use headwater_host::lifecycle::{self, Moment, Part};
use headwater_host::sync::Ordering;
use headwater_host::{epoll, process, sys};

use crate::conn::{self, Conn, Phase};
use crate::ending::last_pin_gone;
use crate::record::{self, Takeover};
use crate::{holders, images, inherit, lend, life, limits, link, pins, takeover};

/// Has forks hold what sockets have; as often as anybody asks for it.
pub fn look_after_forks() {
    lifecycle::add(Part::Sets, hold_sets, epoll::after_fork);
    lifecycle::add(Part::Sockets, before_fork, after_fork);
    lifecycle::add_told(Part::Sockets, told);
}

#[unsafe(link_section = ".text.life")]
fn told(moment: &mut Moment) {
    let is_own = !process::is_borrowed();
    match moment {
        Moment::Exec if is_own => {
            inherit::use_closing();
            if crate::started() {
                life::replaced();
            }
        }
        Moment::Counting if crate::started() => life::count_open(),
        Moment::Leaving if crate::started() => {
            inherit::exiting();
            life::exiting();
        }
        Moment::Stays if is_own && crate::started() => life::not_replaced(),
        _ => {}
    }
}

/// The sets, before anything that a thread inside one may wait for. A takeover that has begun looks at sets, so it must be over; none begins
/// while they are held.
#[unsafe(link_section = ".text.life")]
fn hold_sets() -> bool {
    let mut turns = sys::Turns::default();
    loop {
        epoll::before_fork();
        let changing = |c: &Conn| c.record().takeover() == Takeover::Changing;
        if !conn::all().any(changing) {
            return true;
        }
        epoll::let_go();
        turns.give_way();
    }
}

#[unsafe(link_section = ".text.life")]
fn before_fork() -> bool {
    process::hold_over_fork(&inherit::ADOPTING);
    process::hold_over_fork(&conn::ADOPTING);
    for c in conn::all() {
        if c.phase() == Phase::Tracked {
            takeover::withdraw_if_offered(c);
            c.record().holders.fetch_add(1, Ordering::SeqCst);
            // A takeover that began before sees its end; a later one sees two holders.
            sys::Turns::while_it_holds(|| c.record().takeover() == Takeover::Changing);
            if c.phase() == Phase::Tracked {
                continue;
            }
            c.record().holders.fetch_sub(1, Ordering::AcqRel);
        }
        match c.phase() {
            Phase::Carried => {
                c.record().holders.fetch_add(1, Ordering::AcqRel);
                let looks = pins::entered();
                if let Some(v) = c.view(&looks) {
                    let was_shared = v.is_shared();
                    v.own().holders.fetch_add(1, Ordering::AcqRel);
                    v.header.share();
                    if !was_shared {
                        // Sleepers learn that their sleeps are bounded from now on.
                        headwater_channel::bell::ring(v.own_bell());
                        headwater_channel::bell::ring(v.peer_bell());
                    }
                }
            }
            Phase::Listener => {
                c.record().holders.fetch_add(1, Ordering::AcqRel);
            }
            Phase::Tracked | Phase::Free | Phase::Rest => {}
        }
    }
    link::before_fork();
    process::hold_over_fork(&record::MAPPING);
    process::hold_over_fork(&images::PREPARING);
    lend::before_fork();
    process::hold_over_fork(&holders::LOOKING);
    process::hold_over_fork(&limits::LOCK);
    true
}

#[unsafe(link_section = ".text.life")]
fn after_fork(in_child: bool) {
    process::let_go_after_fork(&limits::LOCK);
    process::let_go_after_fork(&holders::LOOKING);
    lend::after_fork();
    process::let_go_after_fork(&images::PREPARING);
    process::let_go_after_fork(&record::MAPPING);
    process::let_go_after_fork(&conn::ADOPTING);
    link::after_fork();
    process::let_go_after_fork(&inherit::ADOPTING);
    if !in_child {
        return;
    }
    link::in_child();
    lend::in_child();
    for c in conn::all() {
        c.forget_calls();
        c.restart_counts();
        // Closed in the parent while calls waited there: nobody waits here.
        last_pin_gone(c);
    }
}
