//! recvmsg: notifications and messages, in their order.

use core::net::IpAddr;

use headwater_host::{stand_in, sys};
use headwater_providers::loopback::buffers;
use headwater_sctp::Received;
use headwater_sctp_stack::until;
use headwater_streams::head::arming::Want;
use libc::iovec;

use super::abi::{SCTP_NOTIFICATION, sctp_nxtinfo};
use super::control::{self, Came};
use super::{AssocT, Body, Core, For, Socket, State, Style, abi, notice};

/// What a call receives into; then what it got.
pub struct Receiving<'a> {
    pub into: &'a [iovec],
    pub flags: i32,
    pub wants_control: bool,
    pub wants_from: bool,
    pub from: Vec<u8>,
    pub control: Vec<u8>,
    pub out_flags: i32,
}

impl Receiving<'_> {
    /// Nothing is to be said of the message.
    fn is_plain(&self) -> bool {
        !self.wants_control && !self.wants_from
    }

    /// It is only looked at.
    fn peeks(&self) -> bool {
        self.flags & libc::MSG_PEEK != 0
    }
}

/// A message that was looked at, or the part of it that was there.
pub struct Peeked {
    pub assoc: AssocT,
    pub received: Received,
    pub data: Vec<u8>,
    pub taken: usize,
}

/// What is looked at, at most, if it is not all there.
const MOST_PEEKED: usize = 1 << 20;

impl Socket {
    /// The way of most messages: from the peer of a connected one-to-one socket, with nothing to be said of them, at once.
    /// Bytes, and MSG_EOR with the last of the message. `None`: by [`Socket::receive`].
    #[inline(always)]
    pub fn receive_at_once(&self, into: &[iovec]) -> Option<(usize, i32)> {
        if self.style != Style::One || self.remote.get().is_some() {
            return None;
        }
        self.core.try_enter_briefly()?.receive_simply(into)
    }

    /// Bytes received: of one message or notification, as much as there is room for; the rest comes by the next calls, the last one with
    /// MSG_EOR. 0: the peer of a one-to-one socket has shut down. EAGAIN, ENOTCONN, ECONNRESET, ETIMEDOUT, EINTR.
    pub fn receive(&self, what: &mut Receiving<'_>) -> sys::Result<usize> {
        elsewhere!(self.receive(what));
        let waits = self.may_wait(what.flags);
        let looked = waits && what.is_plain();
        if looked
            && self.look(Want::DATA)?
            && !what.peeks()
            && let Some((len, flags)) = self.receive_at_once(what.into)
        {
            what.out_flags = flags;
            return Ok(len);
        }
        let mut core = self.core.enter();
        if let Some(done) = core.try_receive(what) {
            return done;
        }
        if !waits {
            let pumps = core.has_packets();
            drop(core);
            // Perhaps something has come.
            if pumps && let Some(stack) = headwater_sctp_stack::stack::existing() {
                stack.pump();
                core = self.core.enter();
                return core.try_receive(what).unwrap_or(Err(libc::EAGAIN));
            }
            return Err(libc::EAGAIN);
        }
        let timeout = core.options.receive_timeout;
        drop(core);
        self.wait_for(until(timeout), For::News, looked, |core| {
            let received = core.try_receive(what);
            received.or_else(|| core.expects_nobody().then_some(Err(libc::ENOTCONN)))
        })
    }

    /// Of a one-to-one socket that listens nothing is received.
    pub fn takes_data(&self) -> bool {
        let core = self.core.enter();
        core.style == Style::Many || !core.listening
    }

    /// FIONREAD: of the message in front.
    pub fn unread(&self) -> usize {
        elsewhere!(self.unread());
        stand_in::glance();
        let mut core = self.core.enter();
        core.gather();
        if let Some(notice) = core.notices.front() {
            return notice.bytes.len() - notice.taken;
        }
        let Some(id) = core.front() else { return 0 };
        let assoc = core.assocs.get_mut(&id);
        assoc.map_or(0, |a| a.body.unread())
    }
}

impl Core {
    #[inline(always)]
    fn receive_simply(&mut self, into: &[iovec]) -> Option<(usize, i32)> {
        let is_plain = !self.listening
            && !self.read_shut
            && self.current.is_none()
            && self.notices.is_empty()
            && self.peeked.is_none()
            && !self.tells_control()
            && !self.has_news();
        let assoc = self.assocs.first_entry().filter(|_| is_plain)?.into_mut();
        if !assoc.late.is_empty() {
            return None;
        }
        let joins = self.options.byte_stream;
        let (len, end) = match &mut assoc.body {
            Body::ByMemory(by_memory) if joins => (by_memory.receive_joined(into)?, false),
            Body::ByPackets(_) if joins => return None,
            Body::ByMemory(by_memory) => (by_memory.receive_whole(into)?, true),
            Body::ByPackets(_) if buffers::len(into) == 0 => return None,
            Body::ByPackets(by_packets) => match by_packets.receive(into) {
                Ok(Some(received)) if received.aborted => {
                    let id = assoc.id;
                    self.tell_aborted(id, &received);
                    return None;
                }
                Ok(Some(received)) => (received.len, received.end),
                Ok(None) | Err(_) => return None,
            },
        };
        self.tally.received(&assoc.body, len);
        if end {
            return Some((len, libc::MSG_EOR));
        }
        let id = assoc.id;
        self.goes_on(id);
        Some((len, 0))
    }

    /// A byte stream: behind what was received, what else is there, as much as fits; bytes in all.
    fn receive_more(&mut self, id: AssocT, first: usize, into: &[iovec]) -> usize {
        let (mut len, room) = (first, buffers::len(into));
        while len < room
            && let Some(assoc) = self.assocs.get_mut(&id)
            && let Ok(Some(next)) = assoc.body.receive(&buffers::rest(into, len))
        {
            self.tally.received(&assoc.body, next.len);
            len += next.len;
            if next.aborted {
                self.tell_aborted(id, &next);
                break;
            }
        }
        len
    }

    /// The rest of the message comes before anything else, unless the program has it otherwise.
    fn goes_on(&mut self, id: AssocT) {
        let alone = self.options.interleave == 0 && !self.options.byte_stream;
        self.current = alone.then_some(id);
    }

    /// The rest of a message does not come: there is a notification for who wants it.
    fn tell_aborted(&mut self, id: AssocT, received: &Received) {
        self.current = None;
        if let Some(assoc) = self.assocs.get(&id)
            && assoc.options.events.has(abi::SCTP_PARTIAL_DELIVERY_EVENT)
        {
            let told = notice::partial_delivery_aborted(id, received.stream, received.ssn.0);
            self.notices.push_front(assoc.notice(told));
        }
    }

    /// `None`: there is nothing.
    fn try_receive(&mut self, what: &mut Receiving<'_>) -> Option<sys::Result<usize>> {
        if what.peeks() {
            return self.peek(what);
        }
        if self.style == Style::One
            && what.is_plain()
            && let Some((len, flags)) = self.receive_simply(what.into)
        {
            what.out_flags = flags;
            return Some(Ok(len));
        }
        // Data in a hurry: events wait for a moment in which there is none, unless they have been told of.
        if self.notices.is_empty() && self.peeked.is_none() {
            if self.style == Style::One
                && !self.has_news()
                && let Some(assoc) = self.only()
                && assoc.late.is_empty()
            {
                let id = assoc.id;
                if let Some(done) = self.receive_from(id, what) {
                    return Some(done);
                }
            }
            if self.style == Style::Many
                && let Some(done) = self.receive_in_a_hurry(what)
            {
                return Some(done);
            }
            self.gather_to_receive();
        } else if self.has_news() {
            self.gather();
        }
        if let Some(done) = self.receive_peeked(what) {
            return Some(Ok(done));
        }
        if self.current.is_none() && !self.notices.is_empty() {
            return Some(Ok(self.take_notice(what)));
        }
        while let Some(id) = self.front() {
            if let Some(done) = self.receive_from(id, what) {
                return Some(done);
            }
            if self.current == Some(id) {
                return self.broken_off(id, what);
            }
            self.attend_to(id);
            self.unlist(id);
        }
        if !self.notices.is_empty() {
            return Some(Ok(self.take_notice(what)));
        }
        self.end(what).or_else(|| self.lacking.map(Err))
    }

    /// From those that are known to have something, without a look for anything else, which is dear: so often in a row.
    fn receive_in_a_hurry(&mut self, what: &mut Receiving<'_>) -> Option<sys::Result<usize>> {
        if self.hurries == 0 || self.has_news() {
            return None;
        }
        self.hurries -= 1;
        let id = self.front()?;
        let assoc = self.assocs.get(&id)?;
        match assoc.late.is_empty() && assoc.state == State::Up {
            true => self.receive_from(id, what),
            false => None,
        }
    }

    /// The rest of the message does not come, or not yet.
    fn broken_off(&mut self, id: AssocT, what: &mut Receiving<'_>) -> Option<sys::Result<usize>> {
        let over = self
            .assocs
            .get(&id)
            .is_none_or(|assoc| assoc.state == State::Over);
        if !over {
            return None;
        }
        self.current = None;
        self.attend_to(id);
        if self.notices.is_empty() {
            return self.end(what);
        }
        Some(Ok(self.take_notice(what)))
    }

    fn unlist(&mut self, id: AssocT) {
        self.ready.retain(|&ready| ready != id);
        if let Some(assoc) = self.assocs.get_mut(&id) {
            assoc.listed = false;
        }
    }

    /// Whose message is next.
    fn front(&mut self) -> Option<AssocT> {
        if self.current.is_some() {
            return self.current;
        }
        if self.style == Style::One {
            return self.only().filter(|a| a.listed).map(|a| a.id);
        }
        self.ready.front().copied()
    }

    fn receive_from(&mut self, id: AssocT, what: &mut Receiving<'_>) -> Option<sys::Result<usize>> {
        let room = buffers::len(what.into);
        if self.read_shut {
            return None;
        }
        let assoc = self.assocs.get_mut(&id)?;
        if room == 0 {
            return assoc.body.readable().then_some(Ok(0));
        }
        let received = match assoc.body.receive(what.into) {
            Ok(Some(received)) => received,
            // The end, and what goes wrong, are events.
            Ok(None) | Err(_) => return None,
        };
        self.tally.received(&assoc.body, received.len);
        if received.aborted {
            self.tell_aborted(id, &received);
            return match self.notices.is_empty() {
                true => None,
                false => Some(Ok(self.take_notice(what))),
            };
        }
        let len = match self.options.byte_stream {
            true => self.receive_more(id, received.len, what.into),
            false => received.len,
        };
        self.finish(id, &received, what);
        Some(Ok(len))
    }

    /// Says what goes with a message, or a part of one.
    fn finish(&mut self, id: AssocT, received: &Received, what: &mut Receiving<'_>) {
        let bounded = !self.options.byte_stream;
        what.out_flags = if received.end && bounded {
            libc::MSG_EOR
        } else {
            0
        };
        self.current = None;
        if !received.end {
            self.goes_on(id);
        }
        if self.style == Style::Many && received.end && self.ready.len() > 1 {
            // The others have their turn.
            self.ready.rotate_left(1);
        }
        if let Some(assoc) = self.assocs.get(&id) {
            self.tell_from(assoc.peer, what);
        }
        // Told to who has no room for it too: that call has to say so.
        if what.wants_control || self.tells_control() {
            self.tell_control(id, received, what);
        }
    }

    /// Something comes with messages in their control data.
    #[inline(always)]
    fn tells_control(&self) -> bool {
        let options = &self.options;
        options.data_io | options.recv_rcvinfo | options.recv_nxtinfo
    }

    fn tell_from(&self, (host, port): (IpAddr, u16), what: &mut Receiving<'_>) {
        if what.wants_from {
            what.from = self.address(host, port).to_vec();
        }
    }

    fn tell_control(&mut self, id: AssocT, received: &Received, what: &mut Receiving<'_>) {
        let options = &self.options;
        let wants = (options.data_io, options.recv_rcvinfo);
        what.control.clear();
        if !self.tells_control() {
            return;
        }
        let next = match options.recv_nxtinfo {
            true => self.next(),
            false => None,
        };
        let Some(assoc) = self.assocs.get_mut(&id) else {
            return;
        };
        let came = Came {
            received,
            assoc: id,
            context: assoc.options.context,
            cumtsn: assoc.body.cumtsn(),
        };
        control::write(&mut what.control, wants, &came, next.as_ref());
    }

    /// What would be received next.
    fn next(&mut self) -> Option<sctp_nxtinfo> {
        if let (None, Some(notice)) = (self.current, self.notices.front()) {
            return Some(sctp_nxtinfo {
                nxt_flags: SCTP_NOTIFICATION,
                nxt_length: notice.bytes.len() as u32,
                nxt_assoc_id: notice.assoc,
                ..Default::default()
            });
        }
        let one = self.only().map(|assoc| assoc.id);
        let first = self.current.or(one.filter(|_| self.style == Style::One));
        for &id in first.iter().chain(&self.ready) {
            if let Some(assoc) = self.assocs.get_mut(&id)
                && let Some(next) = assoc.body.peek()
            {
                return Some(sctp_nxtinfo {
                    nxt_sid: next.stream,
                    nxt_flags: control::unordered(next.unordered),
                    nxt_ppid: next.ppid.to_be(),
                    nxt_length: next.len as u32,
                    nxt_assoc_id: id,
                });
            }
        }
        None
    }

    /// What is looked at stays in front.
    fn take_notice(&mut self, what: &mut Receiving<'_>) -> usize {
        let Some(notice) = self.notices.front_mut() else {
            return 0;
        };
        let peer = notice.peer;
        let n = buffers::scatter(what.into, &notice.bytes[notice.taken..]);
        let taken = notice.taken + n;
        let whole = taken == notice.bytes.len();
        what.out_flags = abi::MSG_NOTIFICATION | if whole { libc::MSG_EOR } else { 0 };
        if !what.peeks() {
            notice.taken = taken;
            if whole {
                self.notices.pop_front();
            }
        }
        what.control.clear();
        self.tell_from(peer, what);
        n
    }

    // ---- MSG_PEEK ----

    fn peek(&mut self, what: &mut Receiving<'_>) -> Option<sys::Result<usize>> {
        self.gather();
        if self.peeked.is_none() {
            if self.current.is_none() && !self.notices.is_empty() {
                return Some(Ok(self.take_notice(what)));
            }
            if !self.take_aside() {
                return self.end(what);
            }
        }
        self.receive_peeked(what).map(Ok)
    }

    /// Receives the message in front, to be received again.
    fn take_aside(&mut self) -> bool {
        while let Some(id) = self.front() {
            let Some(assoc) = self.assocs.get_mut(&id) else {
                return false;
            };
            let mut data = Vec::new();
            let mut all: Option<Received> = None;
            let joins = self.options.byte_stream;
            while data.len() < MOST_PEEKED && all.as_ref().is_none_or(|r| !r.end || joins) {
                let mut piece = vec![0; 64 << 10];
                let into = [sys::buffer(piece.as_mut_ptr(), piece.len())];
                let Ok(Some(next)) = assoc.body.receive(&into) else {
                    break;
                };
                if next.aborted {
                    break;
                }
                data.extend_from_slice(&piece[..next.len]);
                all = Some(next);
            }
            if let Some(received) = all {
                self.peeked = Some(Peeked {
                    assoc: id,
                    received,
                    data,
                    taken: 0,
                });
                return true;
            }
            if self.current == Some(id) {
                return false;
            }
            self.unlist(id);
        }
        false
    }

    /// From the message that was looked at, or looks at it again. `None`: there is none.
    fn receive_peeked(&mut self, what: &mut Receiving<'_>) -> Option<usize> {
        let peeked = self.peeked.as_mut()?;
        let n = buffers::scatter(what.into, &peeked.data[peeked.taken..]);
        let taken = peeked.taken + n;
        let whole = taken == peeked.data.len();
        let received = Received {
            len: n,
            end: whole && peeked.received.end,
            ..peeked.received
        };
        let (id, current) = (peeked.assoc, self.current);
        if !what.peeks() {
            peeked.taken = taken;
            self.peeked.take_if(|_| whole);
        }
        self.finish(id, &received, what);
        if what.peeks() {
            self.current = current;
        }
        Some(n)
    }

    // ---- the end ----

    /// No peer is there, and none can come: who waited would wait for ever.
    fn expects_nobody(&self) -> bool {
        self.style == Style::Many && !self.listening && self.assocs.is_empty()
    }

    /// What a call gets that finds nothing; `None`: it may wait.
    fn end(&mut self, what: &mut Receiving<'_>) -> Option<sys::Result<usize>> {
        what.out_flags = 0;
        if self.error != 0 {
            return Some(Err(core::mem::take(&mut self.error)));
        }
        if self.read_shut {
            return Some(Ok(0));
        }
        if self.style == Style::Many {
            return None;
        }
        if self.listening {
            return Some(Err(libc::ENOTCONN));
        }
        let was_connected = self.was_connected;
        match self.only() {
            // The end of the association, a moment later, is told by a notification.
            Some(assoc)
                if assoc.state == State::Up
                    && assoc.peer_released
                    && assoc.body.unsent() == 0
                    && assoc.options.events.has(abi::SCTP_ASSOC_CHANGE) =>
            {
                None
            }
            None if was_connected => Some(Ok(0)),
            None => Some(Err(libc::ENOTCONN)),
            Some(assoc) => {
                let ended = assoc.state == State::Over || assoc.peer_released;
                let rest = !assoc.late.is_empty() || assoc.body.readable();
                (ended && !rest).then_some(Ok(0))
            }
        }
    }
}
