//! fork(2): the child has all ends too.

use headwater_host::sync::Ordering;
use headwater_host::{counters, epoll, process, sys};

use crate::conn::{self, Conn, Phase};
use crate::life::close::last_pin_gone;
use crate::life::exec::change_holds;
use crate::record::{self, Takeover};
use crate::{holders, inherit, lend, limits, link, takeover};

/// Does this process listen? Its children then serve.
pub fn listens() -> bool {
    conn::all().any(|c| c.phase() == Phase::Listener)
}

/// Before a fork whose handlers hold what a thread inside an epoll set may wait for: the sets first. A takeover that has begun
/// looks at sets, so it must be over.
pub fn hold_sets() {
    let mut turns = sys::Turns::default();
    loop {
        epoll::before_fork();
        let changing = |c: &Conn| c.record().takeover() == Takeover::Changing;
        if !conn::all().any(changing) {
            return;
        }
        epoll::after_fork();
        turns.give_way();
    }
}

#[unsafe(link_section = ".text.life")]
pub fn before_fork() {
    inherit::before_fork();
    conn::before_fork();
    for c in conn::all() {
        if c.phase() == Phase::Tracked {
            takeover::withdraw_if_offered(c);
            c.record().holders.fetch_add(1, Ordering::SeqCst);
            // A takeover that began before sees its end; a later one sees two holders.
            let mut turns = sys::Turns::default();
            while c.record().takeover() == Takeover::Changing {
                turns.give_way();
            }
            if c.phase() == Phase::Tracked {
                continue;
            }
            c.record().holders.fetch_sub(1, Ordering::AcqRel);
        }
        match c.phase() {
            Phase::Tracked => {}
            Phase::Carried => {
                c.record().holders.fetch_add(1, Ordering::AcqRel);
                if let Some(v) = c.view() {
                    let was_shared = v.is_shared();
                    v.own().holders.fetch_add(1, Ordering::AcqRel);
                    v.header.shared.store(1, Ordering::Release);
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
            Phase::Free | Phase::Rest => {}
        }
    }
    epoll::before_fork();
    link::before_fork();
    record::before_fork();
    lend::before_fork();
    holders::before_fork();
    limits::before_fork();
    // The last: what others make, they may make with any of these in their hands.
    process::before_fork();
}

#[unsafe(link_section = ".text.life")]
fn after_fork() {
    process::after_fork();
    limits::after_fork();
    holders::after_fork();
    lend::after_fork();
    record::after_fork();
    conn::after_fork();
    link::after_fork();
    epoll::after_fork();
    inherit::after_fork();
}

pub fn after_fork_in_parent() {
    after_fork();
}

/// Who the process is was told to [`process`] before.
#[unsafe(link_section = ".text.life")]
pub fn after_fork_in_child() {
    after_fork();
    counters::reset();
    link::in_child();
    lend::in_child();
    epoll::in_child();
    for c in conn::all() {
        c.forget_calls();
        c.restart_counts();
        // Closed in the parent while calls waited there: nobody waits here.
        last_pin_gone(c);
    }
}

/// fork(2) failed after `before_fork`.
pub fn fork_failed() {
    change_holds(-1);
}
