//! sendmsg and its kind.

use core::net::IpAddr;
use core::time::Duration;

use headwater_host::{stand_in, sys};
use headwater_providers::loopback::buffers::{self, Source};
use headwater_sctp_stack::{Addresses, errno, until};
use headwater_streams::head::arming::Want;
use libc::iovec;

use super::abi::{SCTP_ABORT, SCTP_ADDR_OVER, SCTP_EOF, SCTP_SENDALL};
use super::gathering::setup_error;
use super::{AssocT, Body, Core, For, SendInfo, Socket, State, Style, control};

/// Who has waited so long for room in a ring may be the one who would have to read it, in nanoseconds.
const NOBODY_READS: u64 = Duration::from_millis(2).as_nanos() as u64;

/// Of a byte stream, in bytes: as much as one frame of a ring takes.
const MOST_AT_ONCE: usize = headwater_providers::loopback::link::PIECE;

pub struct Sending<'a> {
    /// A sockaddr; empty: none.
    pub to: &'a [u8],
    pub data: &'a [iovec],
    pub control: &'a [u8],
    pub flags: i32,
}

/// What a call has come to.
enum Step {
    Sent(usize),
    /// The association has only begun: a call that may wait waits for it.
    Begun(AssocT, usize),
    NoRoom(AssocT),
}

impl Socket {
    /// The way of most messages: to the peer of a connected one-to-one socket, with nothing said of them, at once. `None`: by
    /// [`Socket::send`].
    #[inline(always)]
    pub fn send_at_once(&self, data: &[iovec]) -> Option<usize> {
        if self.style != Style::One || self.remote.get().is_some() {
            return None;
        }
        self.core.try_enter_briefly()?.send_simply(data)
    }

    /// Bytes sent: of a message all, of a byte stream perhaps only some. EAGAIN: no room; EINVAL, EMSGSIZE, ENOTCONN, EPIPE,
    /// ECONNRESET ...; EPIPE raises no signal here.
    pub fn send(&self, what: &Sending<'_>) -> sys::Result<usize> {
        let pieces = buffers::len(what.data) > MOST_AT_ONCE
            && what.control.is_empty()
            && self.core.enter().options.byte_stream;
        match pieces {
            true => self.send_in_pieces(what),
            false => self.send_message(what),
        }
    }

    /// Of a byte stream, which takes more than a message may have, or a part of it.
    fn send_in_pieces(&self, what: &Sending<'_>) -> sys::Result<usize> {
        let mut done = 0;
        loop {
            let piece = buffers::front(&buffers::rest(what.data, done), MOST_AT_ONCE);
            if piece.is_empty() {
                return Ok(done);
            }
            let data = &piece[..];
            match self.send_message(&Sending { data, ..*what }) {
                Ok(sent) => done += sent,
                Err(_) if done > 0 => return Ok(done),
                Err(errno) => return Err(errno),
            }
        }
    }

    fn send_message(&self, what: &Sending<'_>) -> sys::Result<usize> {
        elsewhere!(self.send(what));
        let total = buffers::len(what.data);
        let waits = self.may_wait(what.flags);
        if waits
            && what.to.is_empty()
            && what.control.is_empty()
            && self.look(Want::ROOM)?
            && let Some(sent) = self.send_at_once(what.data)
        {
            return Ok(sent);
        }
        let mut core = self.core.enter();
        let first = core.try_send(what, total, self, false);
        let timeout = core.options.send_timeout;
        drop(core);
        let until = if waits { until(timeout) } else { 0 };
        match first? {
            Step::Sent(sent) => Ok(sent),
            Step::Begun(id, sent) => {
                self.changed();
                if waits {
                    self.await_up(id, timeout)?;
                }
                Ok(sent)
            }
            // Who may not wait has the send buffer, whatever a ring has room for.
            Step::NoRoom(id) if !waits => {
                let mut core = self.core.enter();
                match core.try_send(what, total, self, true)? {
                    Step::Sent(sent) | Step::Begun(_, sent) => Ok(sent),
                    Step::NoRoom(_) => {
                        core.tell_full(id);
                        Err(libc::EAGAIN)
                    }
                }
            }
            Step::NoRoom(id) => {
                let core = self.core.enter();
                let told = core.assocs.get(&id).is_some_and(|a| a.told_full);
                drop(core);
                let soon = match told {
                    true => until,
                    false => sys::now().saturating_add(NOBODY_READS).min(until),
                };
                match self.send_when_there_is_room(what, id, soon, false) {
                    Err(libc::EAGAIN) if soon < until => {
                        self.send_when_there_is_room(what, id, until, true)
                    }
                    done => done,
                }
            }
        }
    }

    /// `anyway`: what has no room in a ring is kept until it has, up to the size of the send buffer.
    fn send_when_there_is_room(
        &self,
        what: &Sending<'_>,
        id: AssocT,
        until: u64,
        anyway: bool,
    ) -> sys::Result<usize> {
        let total = buffers::len(what.data);
        self.wait_for(until, For::Room(id), false, |core| {
            match core.try_send(what, total, self, anyway) {
                Ok(Step::Sent(sent) | Step::Begun(_, sent)) => Some(Ok(sent)),
                Ok(Step::NoRoom(_)) => None,
                Err(errno) => Some(Err(errno)),
            }
        })
    }

    /// SIOCOUTQ.
    pub fn unsent(&self) -> usize {
        elsewhere!(self.unsent());
        stand_in::glance();
        let core = self.core.enter();
        core.assocs.values().map(|a| a.body.unsent()).sum()
    }
}

impl Core {
    #[inline(always)]
    fn send_simply(&mut self, data: &[iovec]) -> Option<usize> {
        let total = buffers::len(data);
        let too_long = total > self.options.sndbuf as usize;
        if too_long || self.options.disable_fragments || self.error != 0 || self.listening {
            return None;
        }
        let assoc = self.assocs.first_entry()?.into_mut();
        let info = &assoc.options.send;
        if assoc.state != State::Up || assoc.released || !info.is_plain() || total == 0 {
            return None;
        }
        let sent = match &mut assoc.body {
            Body::ByMemory(by_memory) => {
                let ppid = u32::from_be(info.raw.snd_ppid);
                by_memory.send_whole(info.raw.snd_sid, ppid, data, total)
            }
            Body::ByPackets(by_packets) => by_packets.send(&info.outgoing(), data, false).is_ok(),
        };
        if !sent {
            return None;
        }
        assoc.told_full = false;
        self.tally.sent(&assoc.body, total);
        Some(total)
    }

    fn try_send(
        &mut self,
        what: &Sending<'_>,
        total: usize,
        socket: &Socket,
        anyway: bool,
    ) -> sys::Result<Step> {
        self.gather_known();
        if self.error != 0 {
            return Err(core::mem::take(&mut self.error));
        }
        let asked = control::read(what.control, &self.options.send)?;
        if let Some(init) = &asked.init {
            self.options.apply_init(init);
        }
        let info = &asked.info;
        let ends = info.has(SCTP_EOF | SCTP_ABORT);
        if ends && self.style == Style::One || info.has(SCTP_ADDR_OVER) && what.to.is_empty() {
            return Err(libc::EINVAL);
        }
        let empty = total == 0 && !self.options.byte_stream;
        if !ends && empty || info.has(SCTP_EOF) && total > 0 {
            return Err(libc::EINVAL);
        }
        if info.has(SCTP_SENDALL) && self.style == Style::Many {
            return self.send_to_all(what, total, info);
        }
        let mut found = self.find(what.to, &asked, socket);
        if !matches!(found, Ok(Found::Known(..))) && self.listening {
            // It may be that the peer has come this moment.
            self.gather();
            found = self.find(what.to, &asked, socket);
        }
        let (id, to) = match found? {
            Found::Known(id, to) => (id, to),
            Found::New(_) if ends => return Err(libc::EINVAL),
            Found::New(to) => {
                self.check_length(total)?;
                let id = self.begin(&to)?;
                (id, None)
            }
        };
        let begun = self
            .assocs
            .get(&id)
            .is_some_and(|a| a.state == State::Calling);
        let assoc = self.assocs.get_mut(&id).ok_or(libc::EPIPE)?;
        if assoc.state == State::Over {
            return Err(match (&assoc.down, self.style) {
                (Some(why), Style::Many) => errno(why),
                _ => libc::EPIPE,
            });
        }
        // What was set for the association holds where nothing was said.
        let info = asked.over(&assoc.options.send);
        if info.has(SCTP_ABORT) {
            let mut reason = vec![0; total];
            Source::new(what.data).take(&mut reason);
            assoc.body.abort(&reason);
            self.gather();
            return Ok(Step::Sent(total));
        }
        if info.has(SCTP_EOF) {
            assoc.released = true;
            assoc.body.shutdown();
            return Ok(Step::Sent(0));
        }
        if assoc.released {
            return Err(libc::EPIPE);
        }
        if total == 0 {
            return Ok(Step::Sent(0));
        }
        if info.key.is_some_and(|key| !self.can_sign(id, key)) {
            return Err(libc::EINVAL);
        }
        self.check_length(total)?;
        if self.options.disable_fragments && total > self.fragment(id) as usize {
            return Err(libc::EMSGSIZE);
        }
        let one = self.style == Style::One;
        let assoc = self.assocs.get_mut(&id).ok_or(libc::EPIPE)?;
        let mut message = info.outgoing();
        message.to = to.filter(|_| info.has(SCTP_ADDR_OVER) || one);
        let sent = assoc.body.send(&message, what.data, anyway);
        if sent.is_ok() {
            assoc.told_full = false;
            self.tally.sent(&assoc.body, total);
        }
        match sent {
            Ok(()) if begun => Ok(Step::Begun(id, total)),
            Ok(()) => Ok(Step::Sent(total)),
            Err(libc::EAGAIN) => Ok(Step::NoRoom(id)),
            Err(libc::EPIPE) => {
                self.gather();
                Err(match core::mem::take(&mut self.error) {
                    0 => libc::EPIPE,
                    told => told,
                })
            }
            Err(errno) => {
                self.hold_on_to(id);
                self.gather();
                self.error = 0;
                // Refused before anything could be sent.
                let down = self.assocs.get(&id).and_then(|a| a.down.as_ref());
                let errno = down.filter(|_| begun).map_or(errno, setup_error);
                self.let_be_forgotten(id);
                Err(errno)
            }
        }
    }

    /// Where the message goes: an association, and the address of the peer that was named.
    fn find(&mut self, to: &[u8], asked: &control::Asked, socket: &Socket) -> sys::Result<Found> {
        if self.style == Style::One && self.listening {
            return Err(libc::EPIPE);
        }
        if to.is_empty() {
            let id = match self.style {
                Style::One => self.only().map(|assoc| assoc.id),
                Style::Many => {
                    Some(asked.info.raw.snd_assoc_id).filter(|id| self.assocs.contains_key(id))
                }
            };
            return match id {
                Some(id) => Ok(Found::Known(id, None)),
                None if self.style == Style::One && !self.was_connected => Err(libc::ENOTCONN),
                None => Err(libc::EPIPE),
            };
        }
        let mut all = socket.addresses(to, false)?;
        all.be_somewhere();
        let host = all.hosts[0];
        if let Some(id) = self.by_peer(host, all.port) {
            return Ok(Found::Known(id, Some(host)));
        }
        if self.style == Style::One
            && let Some(assoc) = self.only()
            && assoc.state != State::Over
        {
            return Err(libc::EADDRNOTAVAIL);
        }
        for &more in &asked.to {
            if all.hosts.len() < headwater_sctp_stack::addresses::MOST
                && !all.hosts.contains(&more.to_canonical())
            {
                all.hosts.push(more.to_canonical());
            }
        }
        Ok(Found::New(all))
    }

    fn send_to_all(
        &mut self,
        what: &Sending<'_>,
        total: usize,
        info: &SendInfo,
    ) -> sys::Result<Step> {
        self.check_length(total)?;
        let message = info.outgoing();
        for assoc in self.assocs.values_mut() {
            if assoc.state != State::Up || assoc.released {
                continue;
            }
            // Who has no room now goes without: the others are not to get it twice.
            let _ = if info.has(SCTP_ABORT) {
                assoc.body.abort(b"");
                Ok(())
            } else if info.has(SCTP_EOF) {
                assoc.released = true;
                assoc.body.shutdown();
                Ok(())
            } else {
                let sent = assoc.body.send(&message, what.data, false);
                sent.inspect(|()| self.tally.sent(&assoc.body, total))
            };
        }
        self.gather();
        Ok(Step::Sent(total))
    }

    /// The program is told that there is no room: it may wait for that by poll(2).
    fn tell_full(&mut self, id: AssocT) {
        if let Some(assoc) = self.assocs.get_mut(&id) {
            assoc.told_full = true;
            if self.style == Style::Many && !self.full.contains(&id) {
                self.full.push(id);
            }
        }
    }

    /// EMSGSIZE.
    fn check_length(&self, total: usize) -> sys::Result<()> {
        if total > self.options.sndbuf as usize {
            return Err(libc::EMSGSIZE);
        }
        Ok(())
    }
}

enum Found {
    Known(AssocT, Option<IpAddr>),
    New(Addresses),
}
