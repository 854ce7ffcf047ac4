//! Sockets as members of poll, select and epoll sets.

use headwater_channel::bell;
use headwater_host::counters::{self, Reason};
use headwater_host::poll::SHARED_SLICE;
use headwater_host::sync::Ordering;
use headwater_host::table::{Arrivals, Descriptor, Ends, Handle};
use headwater_host::{epoll, sys};

use crate::conn::{self, Phase, rest};
use crate::pins::{self, entered};
use crate::record::{APART, ATTACHED, SHUT_RD, SHUT_WR};
use crate::segment::{PIN, TCPONLY, Tx, View, WITHDRAWS};
use crate::{look, switch, takeover, tcp_counts};

const IN: u32 = (libc::POLLIN | libc::POLLRDNORM) as u32;
const OUT: u32 = (libc::POLLOUT | libc::POLLWRNORM) as u32;
const ALWAYS: u32 = (libc::POLLHUP | libc::POLLERR) as u32;
const GONE: u32 = (libc::POLLRDHUP | libc::POLLHUP | libc::POLLERR) as u32;

pub struct Sockets;

/// What `f` says of a carried connection.
#[inline(always)]
fn on<T>(h: Handle, f: impl FnOnce(&'static conn::Conn, View<'static>) -> T) -> Option<T> {
    let looks = entered();
    let (c, v) = conn::carried(h, &looks)?;
    Some(f(c, v))
}

/// May the kernel have to tell more than shared memory does? The peer has shut or closed something, this end has, or part of what
/// is asked for is the kernel's.
fn has_more(c: &conn::Conn, v: &View<'_>, want: u32) -> bool {
    look::peer_was_here(v)
        || c.record().has(SHUT_WR)
        || look::has_shut(v)
        || want & libc::POLLPRI as u32 != 0 && may_be_urgent(v)
        || want & OUT != 0 && switch::writable(c, v).is_none()
        || want & IN != 0 && !switch::ring_comes_first(v)
}

/// Urgent bytes never go by the ring, and who sends one goes to TCP first, until everything is read.
fn may_be_urgent(v: &View<'_>) -> bool {
    v.inn().tx().has(TCPONLY) || !switch::ring_comes_first(v)
}

impl Descriptor for Sockets {
    #[inline]
    fn ready(&self, h: Handle, want: u32) -> u32 {
        let Some(c) = conn::get(h) else { return 0 };
        if c.phase() != Phase::Carried {
            return self.ready_elsewhere(c, h, want);
        }
        let looks = entered();
        let Some(v) = c.view(&looks) else {
            return self.ready_elsewhere(c, h, want);
        };
        switch::help_withdraw(c, &v);
        let mut ready = 0;
        if want & IN != 0 {
            if switch::readable(&v) {
                ready |= if enough(c, &v) { want & IN } else { 0 };
            } else if switch::is_behind_kernel(&v) {
                // The kernel told of its bytes when they came, and not of those behind them.
                ready |= look::told(c, want & IN) & want & IN;
            }
        }
        if want & OUT != 0 && switch::writable(c, &v) == Some(true) {
            ready |= want & OUT;
        }
        // Who has shut that has nothing to wait for: it can be read, whatever comes and is taken.
        let is_shut = want & IN != 0 && c.record().has(SHUT_RD);
        if is_shut || ready != 0 && has_more(c, &v, want) {
            // What holds is told together, as the kernel does.
            let told = look::told(c, self.kernel_events(h, want));
            ready |= self.kernel_reported(h, told) & (want | ALWAYS);
        }
        ready
    }

    fn arm(&self, h: Handle, want: u32) {
        on(h, |c, v| {
            c.see_wait(want);
            if want & IN != 0 {
                v.in_ring().reader_sleeps();
            }
            if want & OUT != 0 {
                switch::begin_stall(c, &v);
                v.out_ring().writer_sleeps();
            }
        });
    }

    fn disarm(&self, h: Handle, want: u32) {
        on(h, |c, v| {
            if want & IN != 0 {
                pins::stop_reading(&v);
            }
            if want & OUT != 0 {
                pins::stop_writing(c, &v);
            }
        });
    }

    fn armed_by_parent(&self, _: Handle, _: u32) -> bool {
        true
    }

    fn bell(&self, h: Handle) -> Option<i32> {
        on(h, |_, v| v.own_bell())
    }

    fn settle(&self, h: Handle) {
        on(h, |c, v| pins::settle(c, &v));
    }

    fn kernel_events(&self, h: Handle, want: u32) -> u32 {
        let asked = |_: &conn::Conn, v: View<'_>| {
            if switch::must_withdraw(&v) {
                return want | OUT;
            }
            if v.out().tx().by_ring() && want & OUT != 0 {
                // Room is the ring's matter, but a peer that goes away must wake the writer.
                return want & !OUT | libc::POLLRDHUP as u32;
            }
            want
        };
        on(h, asked).unwrap_or(want)
    }

    fn is_held(&self, h: Handle) -> bool {
        conn::get(h).is_some_and(conn::Conn::is_left)
    }

    fn edges(&self, h: Handle) -> (u64, u64) {
        let edges = on(h, |c, v| {
            switch::help_withdraw(c, &v);
            let again = c.told_again.load(Ordering::Relaxed) as u64;
            let arrived = v.in_ring().tail().wrapping_add(again << 48);
            (arrived, c.full.load(Ordering::Relaxed))
        });
        edges.unwrap_or((0, 0))
    }

    fn kernel_arrivals(&self, h: Handle) -> Arrivals {
        let arrivals = on(h, |c, v| {
            let d = v.inn();
            // Before the count: what is sent now is counted when it has arrived.
            let w = d.tx();
            let came = came(c, &v, w);
            // Behind it: the count is never too high. What had come before this connection was carried is no arrival.
            let before = d.send.before.load(Ordering::Acquire);
            let taken_back = d.send.taken_back.load(Ordering::Acquire);
            Arrivals {
                count: came.saturating_sub(before).wrapping_sub(taken_back),
                taken_back,
                certain: is_settled(w) && !w.has(TCPONLY),
            }
        });
        arrivals.unwrap_or_default()
    }

    fn has_counted_all(&self, h: Handle) -> bool {
        let counted = on(h, |c, v| {
            let received = || tcp_counts::received(c.shadow()?.fd());
            let w = v.inn().tx();
            is_settled(w) && received() == Some(came(c, &v, w))
        });
        counted.unwrap_or(false)
    }

    fn kernel_received(&self, h: Handle) -> Option<u64> {
        on(h, |c, _| tcp_counts::received(c.shadow()?.fd())).flatten()
    }

    fn has_taken_arrivals(&self, h: Handle) -> bool {
        let taken = on(h, |c, v| {
            let d = v.inn();
            let w = d.tx();
            if w.has(PIN) {
                // What is read there is not counted.
                let is_drained = |s: conn::Shadow| sys::ioctl_int(s.fd(), libc::FIONREAD) == Ok(0);
                return c.shadow().is_some_and(is_drained);
            }
            d.receive.krecv.load(Ordering::Relaxed) == came(c, &v, w)
        });
        taken.unwrap_or(true)
    }

    fn ends(&self, h: Handle) -> Ends {
        conn::get(h).map_or(Ends::default(), |c| Ends {
            shut: c.shuts.load(Ordering::Relaxed),
            reset: c.resets.load(Ordering::Relaxed),
        })
    }

    fn has_kernel_room(&self, h: Handle) -> bool {
        let has = on(h, |c, v| {
            switch::writable(c, &v).is_none() && look::told(c, libc::POLLOUT as u32) & OUT != 0
        });
        has.unwrap_or(false)
    }

    fn kernel_holds(&self, h: Handle, reported: u32, asked: u32) -> u32 {
        on(h, |c, _| look::told(c, asked) & asked).unwrap_or(reported)
    }

    fn kernel_reported(&self, h: Handle, events: u32) -> u32 {
        let looks = entered();
        let Some((c, v)) = conn::carried(h, &looks) else {
            return events;
        };
        switch::help_withdraw(c, &v);
        if events & (GONE | IN) != 0 {
            c.look_now.store(1, Ordering::Relaxed);
        }
        let events = events | kept_error(h);
        // Where both directions have ended there is room too; the kernel may not have been asked for it.
        let by_ring = v.out().tx().by_ring();
        if !by_ring && events & libc::POLLHUP as u32 == 0 {
            return match events & GONE {
                0 => events,
                // Told together, as one edge.
                _ => events | look::told(c, OUT),
            };
        }
        if events & GONE != 0 {
            events | OUT
        } else {
            events & !OUT
        }
    }

    #[inline]
    fn peer_cpu(&self, h: Handle) -> u32 {
        on(h, |_, v| v.peer().cpu.load(Ordering::Relaxed)).unwrap_or(u32::MAX)
    }

    fn busy(&self, h: Handle, change: i32) -> bool {
        let Some(c) = conn::get(h) else { return true };
        if c.phase() == Phase::Listener {
            return true;
        }
        let ticket = c.record().ticket();
        if change > 0 {
            if c.phase() == Phase::Tracked {
                takeover::progress(c, c.fd());
            }
            return c.phase() == Phase::Tracked && c.record().enter().is_ok();
        }
        // Closed meanwhile, it has gone with its record.
        if conn::get(h).is_some() {
            c.record().leave(ticket);
        }
        true
    }

    fn is_apart(&self, h: Handle) -> bool {
        conn::get(h).is_some_and(|c| c.record().has(APART))
    }

    fn slice(&self, h: Handle, want: u32) -> Option<u64> {
        let looks = entered();
        let (c, v) = conn::carried(h, &looks)?;
        if want & OUT != 0 && switch::writable(c, &v) == Some(false) {
            return Some(switch::STALL);
        }
        v.is_shared().then_some(SHARED_SLICE)
    }

    fn slice_over(&self, h: Handle, want: u32) {
        let looks = entered();
        if want & OUT != 0
            && let Some((c, v)) = conn::carried(h, &looks)
            && switch::writable(c, &v) == Some(false)
        {
            switch::end_stall(c, &v);
        }
    }
}

impl Sockets {
    /// Of what is not carried, or not any more.
    fn ready_elsewhere(&self, c: &conn::Conn, h: Handle, want: u32) -> u32 {
        c.see_wait(want);
        if !rest::has_rest(h) {
            return 0;
        }
        want & IN | kept_error(h)
    }
}

/// Is nothing under way by the kernel that is counted when it is there?
fn is_settled(w: Tx) -> bool {
    w.sends() == 0 && !(w.has(WITHDRAWS) && w.by_ring())
}

/// Bytes that have come by the kernel, as far as is known: who sends round the library counts nothing, but what was taken came.
fn came(c: &conn::Conn, v: &View<'_>, w: Tx) -> u64 {
    let d = v.inn();
    // A peer that has not attached counts nothing here yet: the kernel does. It attaches with its next call, or never.
    let unattached =
        c.role() == conn::Role::Server && !c.record().has(ATTACHED) && !v.is_attached();
    if unattached
        && c.asks_for_counts()
        && let Some(received) = c.shadow().and_then(|s| tcp_counts::received(s.fd()))
    {
        return received;
    }
    let sent = d.send.ksent.load(Ordering::Acquire);
    if !w.has(TCPONLY) {
        return sent;
    }
    let taken = d.receive.krecv.load(Ordering::Acquire);
    match taken.wrapping_sub(sent) as i64 > 0 {
        true => taken,
        false => sent,
    }
}

/// SO_RCVLOWAT holds for readiness too, as far as the ring is concerned.
#[inline]
fn enough(c: &conn::Conn, v: &View<'_>) -> bool {
    let low = c.record().low_water.load(Ordering::Relaxed) as usize;
    // The peer may have ended its receiving alone.
    let has_ended = || look::peer_was_here(v) && look::events(c) != 0;
    low <= 1 || v.in_ring().unread() >= low || has_ended()
}

/// SO_RCVLOWAT was set. If there is as much as it asks for, that is an edge to the kernel, whatever was told before.
pub fn low_water_set(c: &conn::Conn) {
    let looks = entered();
    let Some(v) = c.view(&looks) else { return };
    if epoll::are_nested() {
        let told = look::told(c, libc::POLLIN as u32);
        if told & libc::POLLIN as u32 != 0 {
            epoll::woken(conn::handle(c), true);
        }
        if told & libc::POLLHUP as u32 != 0 {
            // It is none where there was a reset before the end.
            counters::note(Reason::ToldAgain);
        }
    }
    if switch::readable(&v) && enough(c, &v) {
        c.told_again.fetch_add(1, Ordering::Relaxed);
        bell::ring(v.own_bell());
    }
}

/// A look has taken an error out of the kernel, which the program is to be told of.
fn kept_error(h: Handle) -> u32 {
    let kept = conn::get(h).is_some_and(|c| look::kept(c).load(Ordering::Relaxed) != 0);
    if kept { libc::POLLERR as u32 } else { 0 }
}
