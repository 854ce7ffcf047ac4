//! Associations over a link, as Rust programs use them. No call waits but those that say so.

use core::fmt;
use core::net::IpAddr;
use core::time::Duration;
use std::sync::Arc;

use headwater_host::sys;
use headwater_host::worker::{self, Client};
use headwater_sctp::association::SendError;
use headwater_sctp::{
    AssocId, Association as Engine, Down, Endpoint, Event, Outgoing, Received, Time,
};
use libc::iovec;

use super::stack::{Inner, Served, Stack};
use super::{Attached, Signal, Sink, until};

/// Bytes received after which the peer's window is looked at, whatever is left to receive.
const LOOK: usize = 64 << 10;

/// One end of an association. Dropping it shuts the association down; what was sent is still delivered.
///
/// ```
/// use std::time::Duration;
/// use headwater_sctp_stack::{Association, Outgoing, Port, Via, Want};
///
/// # fn main() -> Result<(), i32> {
/// let here = ["127.0.0.1".parse().unwrap()];
/// let config = Default::default();
/// let mut port = Port::bind(&here, 0, &config)?;
/// port.listen(1)?;
///
/// let client = Association::connect(&here, port.port(), &config, Via::Udp(9899))?;
/// client.established(Some(Duration::from_secs(5)))?;
/// client.send(&Outgoing { stream: 3, ..Default::default() }, b"hello", false)?;
///
/// port.wait(None)?;
/// let server = port.accept()?;
/// server.wait(Want::READABLE, None)?;
/// let mut buffer = [0; 100];
/// let got = server.receive(&mut buffer)?.expect("a message, not the end");
/// assert_eq!((got.stream, &buffer[..got.len]), (3, &b"hello"[..]));
/// # Ok(())
/// # }
/// ```
pub struct Association {
    served: Arc<Served>,
    id: AssocId,
    signal: Arc<Signal>,
    over: bool,
}

/// What to wait for: any of these.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Want {
    /// A message, or a part of one, or the end.
    pub readable: bool,
    /// Room to send.
    pub writable: bool,
    /// An event to take.
    pub event: bool,
}

impl Want {
    pub const READABLE: Want = Want::of(true, false, false);
    pub const WRITABLE: Want = Want::of(false, true, false);
    pub const EVENT: Want = Want::of(false, false, true);

    const fn of(readable: bool, writable: bool, event: bool) -> Want {
        Want {
            readable,
            writable,
            event,
        }
    }
}

impl Association {
    pub fn new(served: Arc<Served>, id: AssocId, signal: Arc<Signal>) -> Association {
        Association {
            served,
            id,
            signal,
            over: false,
        }
    }

    /// Waits until the association is there. ECONNREFUSED, ETIMEDOUT, ECONNABORTED, EINTR.
    pub fn established(&self, timeout: Option<Duration>) -> sys::Result<()> {
        let until = until(timeout);
        loop {
            match self.event()? {
                Some(Event::Up { .. }) => return Ok(()),
                Some(Event::Down(Down::Aborted { by_peer: true, .. })) => {
                    return Err(libc::ECONNREFUSED);
                }
                Some(Event::Down(why)) => return Err(errno(&why)),
                Some(_) => {}
                None => {
                    if !self.wait_until(Want::EVENT, until)? {
                        return Err(libc::ETIMEDOUT);
                    }
                }
            }
        }
    }

    /// Sends a message, or a part of one (`more`: it goes on in the next call for this stream): whole or not at all. It may wait
    /// a moment for others to leave with, unless the association's `nagle` is off. EAGAIN: no room; EINVAL: no such stream; EMSGSIZE:
    /// larger than the send buffer, or empty; EPIPE, ECONNRESET, ETIMEDOUT: the association is over; EBADF: it is another process's.
    #[inline]
    pub fn send(&self, message: &Outgoing, data: &[u8], more: bool) -> sys::Result<()> {
        match self.try_send(message, data, more) {
            Ok(left) => {
                if left {
                    self.stack().pump();
                }
                Ok(())
            }
            // Perhaps there is room when what has come is looked at.
            Err(libc::EAGAIN) => {
                self.stack().pump();
                self.try_send(message, data, more).map(drop)
            }
            Err(errno) => Err(errno),
        }
    }

    /// As [`Association::send`], of several parts.
    ///
    /// # Safety
    /// The parts are readable.
    pub unsafe fn send_parts(
        &self,
        message: &Outgoing,
        parts: &[iovec],
        more: bool,
    ) -> sys::Result<()> {
        let bytes = |v: &iovec| match v.iov_len {
            0 => &[][..],
            // SAFETY: the caller's promise.
            len => unsafe { core::slice::from_raw_parts(v.iov_base as *const u8, len) },
        };
        if let [one] = parts {
            return self.send(message, bytes(one), more);
        }
        self.served.enter()?;
        let mut whole = self.stack().take_buffer();
        parts.iter().for_each(|v| whole.extend_from_slice(bytes(v)));
        let sent = self.send(message, &whole, more);
        self.stack().give_buffer(whole);
        sent
    }

    /// True: everything has left.
    #[inline]
    fn try_send(&self, message: &Outgoing, data: &[u8], more: bool) -> sys::Result<bool> {
        let mut inner = self.served.enter()?;
        let inner = &mut *inner;
        let now = sys::now();
        match inner.engine.send(Time(now), self.id, message, data, more) {
            Ok(()) => {
                let at_once = message.sack_now || inner.is_urgent(self.id);
                Ok(self.served.gather(inner, now, data.len(), at_once))
            }
            Err(SendError::NoRoom) => {
                self.served.act(inner, now);
                inner.engine.want_room(self.id, data.len());
                inner.raise(self.id);
                Err(libc::EAGAIN)
            }
            Err(SendError::BadStream) => Err(libc::EINVAL),
            Err(SendError::TooBig) => Err(libc::EMSGSIZE),
            Err(SendError::Closed) => Err(self.why(inner).map_or(libc::EPIPE, errno)),
        }
    }

    /// Receives from the message in front, or from the rest of it. `None`: the peer has shut down, and everything was received.
    /// EAGAIN; ECONNRESET, ETIMEDOUT: the association has failed; EBADF.
    #[inline]
    pub fn receive(&self, into: &mut [u8]) -> sys::Result<Option<Received>> {
        self.receive_with(|engine, id| engine.receive(id, into))
    }

    /// As [`Association::receive`], into several parts.
    ///
    /// # Safety
    /// The parts are writable.
    pub unsafe fn receive_parts(&self, parts: &[iovec]) -> sys::Result<Option<Received>> {
        self.receive_with(|engine, id| {
            let mut all: Option<Received> = None;
            for v in parts.iter().filter(|v| v.iov_len > 0) {
                if all.as_ref().is_some_and(|r| r.end) {
                    break;
                }
                // SAFETY: the caller's promise.
                let into =
                    unsafe { core::slice::from_raw_parts_mut(v.iov_base as *mut u8, v.iov_len) };
                let Some(next) = engine.receive(id, into) else {
                    break;
                };
                let len = all.as_ref().map_or(0, |r| r.len) + next.len;
                let full = next.len == v.iov_len;
                all = Some(Received { len, ..next });
                if !full {
                    break;
                }
            }
            all
        })
    }

    #[inline]
    fn receive_with(
        &self,
        mut receive: impl FnMut(&mut Endpoint, AssocId) -> Option<Received>,
    ) -> sys::Result<Option<Received>> {
        for pumped in [false, true] {
            let mut inner = self.served.enter()?;
            if let Some(received) = receive(&mut inner.engine, self.id) {
                self.note_received(&mut inner, received.len);
                return Ok(Some(received));
            }
            inner.raise(self.id);
            if inner.engine.association(self.id).is_none_or(Engine::at_end) {
                return match self.why(&inner).map(errno) {
                    None | Some(libc::EPIPE) => Ok(None),
                    Some(errno) => Err(errno),
                };
            }
            if !pumped {
                self.served.flush_inside(&mut inner);
                drop(inner);
                self.stack().pump();
            }
        }
        Err(libc::EAGAIN)
    }

    #[inline]
    fn note_received(&self, inner: &mut Inner, len: usize) {
        inner.note_received();
        let readable = inner.engine.readable(self.id);
        let Some(entry) = inner.entries.get_mut(&self.id) else {
            return;
        };
        entry.consumed += len;
        if entry.consumed >= LOOK || !readable {
            let look = core::mem::take(&mut entry.consumed) >= LOOK;
            let association = inner.engine.association(self.id);
            if look || association.is_some_and(|a| a.receiver().window_update_due()) {
                self.served.act(inner, sys::now());
            }
            inner.raise(self.id);
        }
    }

    /// The event in front. EBADF.
    pub fn event(&self) -> sys::Result<Option<Event>> {
        let mut inner = self.served.enter()?;
        let event = inner
            .entries
            .get_mut(&self.id)
            .and_then(|e| e.events.pop_front());
        inner.raise(self.id);
        Ok(event)
    }

    /// Tells by [`Event::Dry`] each time when everything sent was acknowledged. EBADF.
    pub fn want_dry(&self, on: bool) -> sys::Result<()> {
        if let Some(entry) = self.served.enter()?.entries.get_mut(&self.id) {
            entry.wants_dry = on;
        }
        Ok(())
    }

    /// Does what packets and timers ask for, without waiting.
    pub fn pump(&self) {
        if self.stack().is_ours() {
            self.served.flush();
            self.stack().pump();
        }
    }

    /// As [`Association::pump`], where there is no thread that does it between calls.
    #[inline]
    pub fn pump_if_alone(&self) {
        if !worker::is_there(Client::Sctp) {
            self.pump();
        }
    }

    /// Waits for any of these; false: the time is over. EINTR, EBADF.
    pub fn wait(&self, want: Want, timeout: Option<Duration>) -> sys::Result<bool> {
        self.wait_until(want, until(timeout))
    }

    fn wait_until(&self, want: Want, until: u64) -> sys::Result<bool> {
        self.served.flush_inside(&mut *self.served.enter()?);
        self.stack()
            .wait(&self.signal, until, &[], || self.is_ready(want))
    }

    /// Does any of these hold? Nothing is taken from the network.
    pub fn is_ready(&self, want: Want) -> bool {
        let Ok(inner) = self.served.enter() else {
            return true;
        };
        let association = inner.engine.association(self.id);
        let entry = inner.entries.get(&self.id);
        let ends = || association.is_none_or(Engine::at_end) && !self.signal.knows_end();
        want.readable && (association.is_some_and(Engine::readable) || ends())
            || association.is_none() && ends()
            || want.writable && inner.has_room(self.id)
            || want.event && entry.is_none_or(|e| !e.events.is_empty())
    }

    /// A hidden descriptor that is readable while there is a message, an event or the end; and while there is room to send, as
    /// long as [`Association::want_room`] asks for that. It belongs to the association.
    pub fn descriptor(&self) -> sys::Result<i32> {
        let inner = self.served.enter()?;
        let fd = self.signal.descriptor()?;
        inner.raise(self.id);
        Ok(fd)
    }

    pub fn want_room(&self, on: bool) {
        if let Ok(inner) = self.served.enter() {
            self.signal.want_room(on);
            inner.raise(self.id);
        }
    }

    /// Its user was told that nothing more comes: that wakes nobody from now on. What is an event still does.
    pub fn note_end(&self) {
        self.signal.note_end();
        if let Ok(inner) = self.served.enter() {
            inner.raise(self.id);
        }
    }

    /// The program is about to wait for the descriptor by poll(2) or the like: what comes is taken by the background thread from
    /// now on. Without this the thread finds out in a millisecond.
    pub fn hand_over(&self) {
        self.served.flush();
        self.stack().hand_over();
    }

    /// What small messages wait for does not matter any more: they leave.
    pub fn flush(&self) {
        self.served.flush();
    }

    /// Nothing more will be sent; the association ends when both sides have everything. EBADF.
    pub fn shutdown(&self) -> sys::Result<()> {
        self.change_engine(|engine, now, id| engine.shutdown(now, id))
    }

    /// Ends it at once, in both directions.
    pub fn abort(mut self, reason: &[u8]) {
        self.over = true;
        self.served.let_go(self.id, Some(reason));
    }

    /// As [`Association::abort`], for one that is shared: other threads may wait for it.
    pub fn give_up(&self, reason: &[u8]) {
        self.served.let_go(self.id, Some(reason));
        let _ = self.signal.notify();
    }

    /// As [`Association::abort`], for one that is still looked at: [`Event::Down`] and what has come stay to be taken. EBADF.
    pub fn abort_now(&self, reason: &[u8]) -> sys::Result<()> {
        self.change_engine(|engine, now, id| engine.abort(now, id, reason))
    }

    pub fn id(&self) -> AssocId {
        self.id
    }

    /// It is this socket's from now on, which is told of it at once.
    pub fn attach(&self, sink: &Arc<Sink>) {
        let Ok(mut inner) = self.served.enter() else {
            return;
        };
        if let Some(entry) = inner.entries.get_mut(&self.id) {
            let attached = Attached::new(sink, self.served.port, self.id);
            let led = attached.tell(false);
            entry.sink = Some(attached);
            if led {
                self.stack().leading.ring();
            }
        }
    }

    /// Is it worth trying to send? If not, news will tell when it is.
    pub fn has_room(&self) -> bool {
        let Ok(mut inner) = self.served.enter() else {
            return true;
        };
        let room = inner.has_room(self.id);
        if !room {
            inner.engine.want_room(self.id, 1);
        }
        room
    }

    /// Looks at the association: its state, paths, options, counts. `None`: it is over and gone. EBADF.
    pub fn look<T>(&self, at: impl FnOnce(&Engine) -> T) -> sys::Result<Option<T>> {
        Ok(self.served.enter()?.engine.association(self.id).map(at))
    }

    /// Changes the association: options, streams, addresses, keys. What follows from that is sent. EBADF.
    pub fn change<T>(&self, what: impl FnOnce(&mut Engine, Time) -> T) -> sys::Result<Option<T>> {
        self.change_engine(|engine, now, id| {
            engine.change(id, |association| what(association, now))
        })
    }

    fn change_engine<T>(
        &self,
        what: impl FnOnce(&mut Endpoint, Time, AssocId) -> T,
    ) -> sys::Result<T> {
        let mut inner = self.served.enter()?;
        let now = sys::now();
        let done = what(&mut inner.engine, Time(now), self.id);
        self.served.act(&mut inner, now);
        Ok(done)
    }

    pub fn local_port(&self) -> u16 {
        self.served.port
    }

    /// Where the peer is; the primary address first. EBADF.
    pub fn peer(&self) -> sys::Result<(Vec<IpAddr>, u16)> {
        let peer = self.look(|a| {
            let primary = a.primary();
            let mut all: Vec<_> = a.paths().iter().collect();
            all.sort_by_key(|(id, _)| *id != primary);
            (
                all.iter().map(|(_, path)| path.addr).collect(),
                a.peer_port(),
            )
        })?;
        Ok(peer.unwrap_or_default())
    }

    fn why<'a>(&self, inner: &'a Inner) -> Option<&'a Down> {
        inner.entries.get(&self.id)?.down.as_ref()
    }

    fn stack(&self) -> &'static Stack {
        self.served.stack
    }
}

impl Drop for Association {
    fn drop(&mut self) {
        if !self.over {
            self.served.let_go(self.id, None);
        }
    }
}

impl fmt::Debug for Association {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Association")
            .field("local_port", &self.served.port)
            .field("id", &self.id)
            .finish()
    }
}

/// Why it is over, as a call's error.
pub fn errno(why: &Down) -> sys::Errno {
    match why {
        Down::Shutdown => libc::EPIPE,
        Down::Aborted { by_peer: true, .. } => libc::ECONNRESET,
        Down::Aborted { by_peer: false, .. } => libc::ECONNABORTED,
        Down::SetupFailed { refused: true } => libc::ECONNREFUSED,
        Down::SetupFailed { refused: false } | Down::Unreachable => libc::ETIMEDOUT,
    }
}
