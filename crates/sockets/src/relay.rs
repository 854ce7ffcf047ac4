//! A descriptor goes to a process that knows nothing of rings, and the ring holds bytes that come before any of the kernel's.
//! Where the peer is asleep in a call of ours it takes them back when its bell wakes it. Where it is busy elsewhere, or has ended
//! its sending, the stranger gets an end of a UNIX socket pair instead, and a process like a [keeper](crate::keeper) serves the
//! other: it receives as this end would, and sends by the kernel, until both directions have ended.

use core::time::Duration;

use headwater_host::counters::{self, Reason};
use headwater_host::sync::Ordering;
use headwater_host::sys;
use headwater_host::table::Handle;
use libc::{
    EAGAIN, EINTR, MSG_DONTWAIT, MSG_NOSIGNAL, MSG_PEEK, POLLERR, POLLHUP, POLLIN, POLLOUT,
    POLLRDHUP,
};

use crate::buffers::Buffers;
use crate::conn::{self, Conn};
use crate::pins::{self, Sleep};
use crate::recv::{self, Step};
use crate::segment::{CLOSING, PIN, View};
use crate::{freeze, guard, keeper, look, send, switch};

/// How long a peer that sleeps in a call of ours may take to wake and send what is unread.
const WAKING: u64 = Duration::from_millis(100).as_nanos() as u64;
const SLICE: u64 = Duration::from_millis(500).as_nanos() as u64;
const PAUSE: u64 = Duration::from_millis(5).as_nanos() as u64;

/// A pair that is to go in place of a connection's descriptor. Dropped, it never was.
pub struct Relay {
    c: Handle,
    /// The connection's number in this process, and whether it is the relay's own: the standard numbers are the program's.
    shadow: (i32, bool),
    pair: [i32; 2],
}

/// Brings a carried connection into the state in which its descriptor can be passed to anybody; else a relay for it. ENOBUFS: it
/// can't be passed now, since there is no relay to be had for what is unread.
pub fn prepare(c: &'static Conn, v: View<'static>, reason: Reason) -> Result<Option<Relay>, i32> {
    catch_up(c, &v);
    if !has_unread(&v) || may_pin(&v, || look::events(c)) && sleeps(&v) {
        freeze::for_good(c, &v, None, reason);
        if is_withdrawn_in_time(c, &v) {
            return Ok(None);
        }
        // Who slept was killed, or is stopped.
        switch::unpin(c, &v);
        if switch::is_pinned(v.inn()) {
            return Ok(None);
        }
    }
    let Some(relay) = Relay::new(c, c.fd()) else {
        freeze::for_good(c, &v, None, reason);
        if !is_withdrawn_in_time(c, &v) && has_unread(&v) {
            // Who gets it would wait for the peer's next call, which may never come, and the passer would not know why.
            counters::note(Reason::NoMemory);
            return Err(libc::ENOBUFS);
        }
        return Ok(None);
    };
    Ok(Some(relay))
}

/// For what an image gets in place of `fd`, where others have the connection too, and the bytes that are unread would never come by
/// the kernel: the peer has shut its sending, or is gone.
pub fn for_input(c: &'static Conn, v: View<'static>, fd: i32) -> Option<Relay> {
    if !has_unread(&v) || may_pin(&v, || look::events_of(fd)) {
        return None;
    }
    let relay = Relay::new(c, fd);
    if relay.is_none() {
        counters::note(Reason::NoMemory);
    }
    relay
}

/// Before this process becomes an image that knows nothing of rings: is there something unread that would not come by itself, and
/// does nobody else hold this end? A relay reads ahead, and would take it from them. A peer that is about to wait for an answer,
/// and a parent that is about to close its copy, have time for that until `patience`.
pub fn is_needed(c: &Conn, v: &View<'_>, patience: u64) -> bool {
    loop {
        catch_up(c, v);
        let may_pin = may_pin(v, || look::events(c));
        if !has_unread(v) {
            return false;
        }
        let is_alone = v.own().holders.load(Ordering::SeqCst) == 1;
        let sleeps = may_pin && sleeps(v);
        if sleeps || is_alone && !may_pin || sys::now() >= patience {
            return is_alone;
        }
        let _ = sys::ppoll(&mut [], Some(PAUSE / 10));
    }
}

impl Relay {
    fn new(c: &'static Conn, fd: i32) -> Option<Relay> {
        let shadow = match fd {
            0..3 => (sys::dup_above(fd, 3).ok()?, true),
            _ => (fd, false),
        };
        let Ok(pair) = sys::socket_pair() else {
            if shadow.1 {
                let _ = sys::close(shadow.0);
            }
            return None;
        };
        if c.is_nonblocking() {
            // That was the description's, whoever has it.
            let _ = sys::fcntl(pair[1], libc::F_SETFL, libc::O_NONBLOCK as usize);
        }
        Some(Relay {
            c: conn::handle(c),
            shadow,
            pair,
        })
    }

    /// What the stranger is to get.
    pub fn end(&self) -> i32 {
        self.pair[1]
    }

    /// It has got it, or is about to.
    pub fn start(&self) {
        let (fd, ours) = (self.shadow.0, self.pair[0]);
        let looks = pins::entered();
        let carried = conn::carried(self.c, &looks);
        // Else another thread has closed it meanwhile, and what the stranger gets ends at once.
        let Some((c, v)) = carried else { return };
        switch::tcp_only(&v);
        let mut tries = 20;
        while !keeper::fork(c, &v, || serve(c, &v, fd, ours)) {
            tries -= 1;
            if tries == 0 {
                // Closed with something unread, the pair tells the stranger of an error rather than of an end.
                let _ = sys::send_bytes(self.pair[1], &[0], MSG_NOSIGNAL);
                return c.falls_back(Reason::NoMemory);
            }
            let _ = sys::ppoll(&mut [], Some(PAUSE));
        }
        counters::note(Reason::Relayed);
        c.falls_back(Reason::PassedOn);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let own = self.shadow.1.then_some(self.shadow.0);
        for fd in self.pair.into_iter().chain(own) {
            let _ = sys::close(fd);
        }
    }
}

/// Follows the sender as far as nothing has to be taken for it: not to a reset, which the kernel tells but once.
fn catch_up(c: &Conn, v: &View<'_>) {
    if c.shadow().is_none_or(|shadow| look::is_over(shadow.fd())) {
        return;
    }
    let mut byte = 0u8;
    let iov = [sys::buffer(&raw mut byte, 1)];
    let _ = guard(c, || {
        recv::step(c, v, &mut Buffers::new(&iov), MSG_PEEK | MSG_DONTWAIT)
    });
}

/// Are there bytes of the ring that come before some of the kernel's? Also behind a pin, until their sender has taken them back.
fn has_unread(v: &View<'_>) -> bool {
    let w = v.inn().tx();
    (!w.has(PIN) || w.by_ring()) && v.in_ring().unread() > 0
}

fn may_pin(v: &View<'_>, events: impl FnOnce() -> i16) -> bool {
    let w = v.inn().tx();
    !w.has(CLOSING) && (w.by_ring() || !switch::behind(v)) && events() == 0
}

/// Is the peer asleep in a call of ours, so that a ring of its bell is heard?
fn sleeps(v: &View<'_>) -> bool {
    let (reads, writes) = (&v.out().ring.sleep, &v.inn().ring.sleep);
    reads.readers.any() || writes.writers.any()
}

/// Has the peer taken back what was unread? It has little time for that, and can't where it has gone on by the kernel behind it.
fn is_withdrawn_in_time(c: &Conn, v: &View<'_>) -> bool {
    let until = sys::now() + WAKING;
    while has_unread(v) {
        if look::events(c) != 0 || sys::now() >= until {
            return false;
        }
        let _ = sys::ppoll(&mut [], Some(50_000));
    }
    true
}

// ---- the process that serves ----

/// Bytes on their way in one direction.
struct Piece {
    buf: &'static mut [u8],
    from: usize,
    to: usize,
    ended: bool,
    /// The other side has been told of the end.
    told: bool,
}

impl Piece {
    fn new(which: usize) -> Piece {
        Piece {
            buf: keeper::buffer(which),
            from: 0,
            to: 0,
            ended: false,
            told: false,
        }
    }

    fn is_empty(&self) -> bool {
        self.from == self.to
    }

    fn wants(&self) -> bool {
        self.is_empty() && !self.ended
    }

    fn filled(&mut self, n: usize) {
        (self.from, self.to) = (0, n);
        self.ended |= n == 0;
    }

    fn rest(&self) -> &[u8] {
        &self.buf[self.from..self.to]
    }
}

fn serve(c: &'static Conn, v: &View<'static>, fd: i32, pair: i32) {
    let Some([shadow, pair]) = keeper::become_nobody(c, v, [fd, pair]) else {
        return;
    };
    let (mut down, mut up) = (Piece::new(0), Piece::new(1));
    while turn(c, v, shadow, pair, &mut down, &mut up).is_some() {}
    let _ = sys::close(pair);
    keeper::kept(c, v, shadow);
}

/// Moves what can be moved, then waits for more. `None`: both directions have ended, or one end is gone.
fn turn(
    c: &'static Conn,
    v: &View<'static>,
    shadow: i32,
    pair: i32,
    down: &mut Piece,
    up: &mut Piece,
) -> Option<()> {
    if down.wants() {
        receive(c, v, shadow, down)?;
    }
    if !down.is_empty() {
        let rest = down.rest();
        match sys::send_bytes(pair, rest, MSG_DONTWAIT | MSG_NOSIGNAL) {
            Ok(n) => down.from += n,
            Err(e) if passes(e) => {}
            // The stranger has closed its end: what it sent goes on all the same.
            Err(_) => {
                down.from = down.to;
                (down.ended, down.told) = (true, true);
            }
        }
    } else if down.ended && !down.told {
        down.told = true;
        let _ = sys::shutdown(pair, libc::SHUT_WR);
    }
    if up.wants() {
        match sys::recv_bytes(pair, up.buf, MSG_DONTWAIT) {
            Ok(n) => up.filled(n),
            Err(e) if passes(e) => {}
            Err(_) => return None,
        }
    }
    let mut full = false;
    if !up.is_empty() {
        full = !forward(c, v, shadow, up)?;
    } else if up.ended && !up.told {
        // What was sent before comes first, where the peer wants it by the kernel.
        if switch::help_withdraw(c, v) {
            full = true;
        } else if look::is_over(pair) {
            // Closed, not shut: others may have the connection, and send.
            up.told = true;
        } else if switch::begin_close(v) {
            up.told = true;
            let _ = sys::shutdown(shadow, libc::SHUT_WR);
        } else {
            full = true;
        }
    }
    if down.told && up.told {
        return None;
    }
    wait(c, v, shadow, pair, down, up, full)
}

fn receive(c: &'static Conn, v: &View<'static>, shadow: i32, down: &mut Piece) -> Option<()> {
    let iov = [sys::buffer(down.buf.as_mut_ptr(), down.buf.len())];
    match recv::take_now(c, v, &iov) {
        Step::Data(n) => down.filled(n),
        Step::Eof => down.filled(0),
        Step::Again => {}
        Step::Error(_) => return None,
        Step::Kernel => match sys::recv_bytes(shadow, down.buf, MSG_DONTWAIT) {
            Ok(n) => down.filled(n),
            Err(e) if passes(e) => {}
            Err(_) => return None,
        },
    }
    Some(())
}

/// Sends by the kernel. False: it is full.
fn forward(c: &Conn, v: &View<'_>, shadow: i32, up: &mut Piece) -> Option<bool> {
    if !send::begins_by_kernel(c, v)? {
        return Some(false);
    }
    let rest = up.rest();
    let sent = sys::send_bytes(shadow, rest, MSG_DONTWAIT | MSG_NOSIGNAL);
    switch::end_kernel_send(v.out(), sent.unwrap_or(0));
    match sent {
        Ok(n) => {
            up.from += n;
            Some(true)
        }
        Err(e) if passes(e) => Some(false),
        Err(_) => None,
    }
}

/// Is what failed so made again at the next turn?
fn passes(error: i32) -> bool {
    if !matches!(error, EAGAIN | EINTR) && sys::passes(error) {
        // There is no event that says when the kernel has memory again.
        let _ = sys::ppoll(&mut [], Some(PAUSE));
    }
    sys::passes(error)
}

fn wait(
    c: &'static Conn,
    v: &View<'static>,
    shadow: i32,
    pair: i32,
    down: &Piece,
    up: &Piece,
    full: bool,
) -> Option<()> {
    let when = |it: bool, events: i16| if it { events } else { 0 };
    let mut p = [
        (
            shadow,
            when(down.wants(), POLLIN | POLLRDHUP) | when(full, POLLOUT),
        ),
        (v.own_bell(), POLLIN),
        (
            pair,
            when(!down.is_empty(), POLLOUT) | when(up.wants(), POLLIN),
        ),
    ]
    // An end is told whatever is asked for, and of one that is not wanted now it would be told for ever.
    .map(|(fd, events)| sys::entry(if events == 0 { -1 } else { fd }, events));
    if up.is_empty() && up.ended {
        // Is its other direction closed too?
        p[2].fd = pair;
    }
    let may_go_on = || down.wants() && switch::readable(v);
    let _ = pins::sleep(c, v, Sleep::Reading, may_go_on, || {
        sys::ppoll(&mut p, Some(SLICE)).map(drop)
    });
    if p[0].revents != 0 {
        c.look_now.store(1, Ordering::Relaxed);
    }
    // The stranger has closed its end, and all that it sent has gone on.
    let closed = p[2].revents & (POLLHUP | POLLERR) != 0 && up.is_empty() && up.ended;
    (!closed).then_some(())
}
