//! What a receive that only peeks sees, and waits for.

use core::time::Duration;

use headwater_host::sync::Ordering;
use headwater_host::{signal, sys};
use libc::{EAGAIN, EINTR};

use crate::buffers::Buffers;
use crate::conn::Conn;
use crate::pins::{self, Sleep};
use crate::recv::step::step;
use crate::recv::wait::sleep;
use crate::segment::View;
use crate::{guard, look, switch, tcp_counts};

/// What a receive that only peeks knows from one look to the next.
#[derive(Default)]
pub(super) struct Peek {
    /// Bytes that it saw before it waited. They are its result at least, even if somebody else has taken them since.
    pub(super) seen: usize,
    /// What had arrived before the last look, and what had been taken before the first.
    arrived: (u64, u64),
    taken: Option<Taken>,
    /// Others have taken some of it meanwhile: it goes on behind what it has seen with what is there now.
    pub(super) others_took: bool,
    /// The stream had ended before the last look.
    has_ended: bool,
}

/// Bytes that were taken out of what comes to this end: as those say who have the library, and by the ring and as the kernel says,
/// which knows of all.
#[derive(Clone, Copy, Default)]
struct Taken {
    told: u64,
    known: Option<u64>,
}

impl Taken {
    fn so_far(c: &Conn, v: &View<'_>) -> Taken {
        let by_kernel = v.inn().receive.krecv.load(Ordering::Acquire);
        let by_ring = v.in_ring().consumed().0;
        // Of what is unread behind an urgent byte the kernel does not tell.
        let is_urgent = look::told(c, libc::POLLPRI as u32) & libc::POLLPRI as u32 != 0;
        let counts = (!is_urgent).then(|| tcp_counts::counts(c.fd(), v.end == 0).ok());
        Taken {
            told: by_kernel.wrapping_add(by_ring),
            known: counts.flatten().map(|by| by.read.wrapping_add(by_ring)),
        }
    }

    fn is_more_than(self, before: Taken) -> bool {
        match (self.known, before.known) {
            (Some(now), Some(before)) => now != before,
            _ => self.told != before.told,
        }
    }
}

impl Peek {
    /// A look begins, behind which the call may wait for more.
    pub(super) fn looks(&mut self, c: &Conn, v: &View<'_>, buffers: &Buffers<'_>) {
        if buffers.done == 0 {
            self.taken = Some(Taken::so_far(c, v));
        }
        self.has_ended = look::events(c) != 0;
        self.arrived = arrived(c, v);
    }

    /// Wants more than it has seen, and waits until there may be. False: that is all.
    pub(super) fn waits(
        &mut self,
        c: &'static Conn,
        v: &View<'static>,
        buffers: &mut Buffers<'_>,
        flags: i32,
        end: Option<u64>,
    ) -> bool {
        signal::let_any_end();
        loop {
            let more = wait_for_more(c, v, end, self.arrived.0) == Ok(true);
            let took = |before| Taken::so_far(c, v).is_more_than(before);
            self.others_took |= self.taken.is_some_and(took);
            if !more && self.others_took && !self.has_ended {
                // Whatever wakes it, it looks once more.
                let _ = guard(c, || step(c, v, buffers, flags));
            }
            if !more {
                return false;
            }
            if !self.others_took || arrived(c, v) != self.arrived {
                break;
            }
        }
        self.seen = buffers.done;
        if !self.others_took {
            buffers.rewind();
        }
        true
    }

    pub(super) fn count(&self, buffers: &mut Buffers<'_>) {
        buffers.advance(self.seen.saturating_sub(buffers.done));
    }
}

/// Changes with every arrival. What comes by the kernel counts as the kernel says: not each sender tells of it.
fn arrived(c: &Conn, v: &View<'_>) -> (u64, u64) {
    let told = || v.inn().send.ksent.load(Ordering::Acquire);
    let by_kernel = tcp_counts::received(c.fd()).unwrap_or_else(told);
    (switch::arrival_edge(v), by_kernel)
}

/// How long a peek that wants all leaves what the kernel has unlooked at: nothing tells of more beside what is unread.
const PEEK_AGAIN: u64 = Duration::from_millis(5).as_nanos() as u64;

/// A peek that wants all: waits until more may have arrived than there was `before` it. False: the stream has ended.
fn wait_for_more(
    c: &'static Conn,
    v: &View<'static>,
    end: Option<u64>,
    before: u64,
) -> Result<bool, i32> {
    if look::events(c) != 0 {
        return Ok(false);
    }
    let is_elsewhere = switch::is_pinned(v.inn()) || switch::behind(v);
    let by_kernel = is_elsewhere || v.inn().receive.re.load(Ordering::Relaxed) & 1 == 0;
    let again = by_kernel.then(|| sys::now() + PEEK_AGAIN);
    let bound = [end, again].into_iter().flatten().min();
    let has_more = || switch::arrival_edge(v) != before;
    let slept = pins::sleep(c, v, Sleep::Reading, has_more, || {
        sleep(c, v, libc::POLLRDHUP, bound, &c.reading)
    });
    match slept {
        Err(EAGAIN) if end.is_none_or(|end| sys::now() < end) => Ok(true),
        Err(EINTR) if !signal::interrupted() && end.is_none() => Ok(true),
        slept => slept.map(|()| true),
    }
}
