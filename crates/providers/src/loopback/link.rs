//! One end of a connection: an end of a pipe whose shadow is a UNIX socket that the table does not know.
//!
//! A plain frame is data, one with a band is expedited data; both say whether their data unit goes on. What else the ends
//! have to tell each other are frames with a control part, so that it stays behind the data: {what, reason, lengths of
//! address and options}, and as their data the address, the options and the user's data. Only what comes before there are
//! two ends, a request and its refusal, goes by the socket. Data of an SCTP association has a control part too, its
//! [`Label`], unless that says nothing.

mod calling;
mod frames;
pub mod outbox;
mod passage;

use std::sync::Arc;

use calling::Again;
use headwater_channel::lock::Taken;
use headwater_channel::ring::Meta;
use headwater_host::sync::{Ordering, fence};
use headwater_host::{hidden, process, sys};
use headwater_streams::background;
use headwater_streams::ddi::{M_DATA, M_PROTO};
use headwater_streams::head::{Head, life};
use headwater_streams::pipe::words::state;
use headwater_streams::pipe::{Parts, Pipe, section};
use headwater_tpi::Refusal;
use headwater_tpi::error::{TFLOW, TLOOK, TNODATA};
use libc::iovec;

use super::buffers::{self, Source};
use super::home::Home;
use super::listening::{self, Brought, Request};
use super::pool::{self, Way};
use super::{Owned, Space, name};
use crate::provider::{Arrived, Event, Outcome, Received, Sending};

pub use calling::Call;
use frames::{EXPEDITED, Told, control, says_closed, take_by_rank, take_plain, word};
pub use frames::{Front, Label, MORE, front, read_label};
pub use passage::{from_hex, to_hex};

/// Most data in one frame: several are under way in a ring.
pub const PIECE: usize = 32 << 10;
/// The same for expedited data, for which there is room beside a ring full of other data.
const EXPEDITED_PIECE: usize = 8 << 10;
/// Room that expedited data leaves to what ends a connection.
const RESERVE: usize = 8 << 10;

/// A killed peer leaves no hint: the kernel is asked now and then by who finds nothing, in nanoseconds.
const LOOK_EVERY: u64 = 1_000_000;
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// The listener's backlog was full.
    Calling,
    /// The request is under way.
    Asked,
    Open,
}

/// Why there is no connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct End {
    pub reason: i32,
    pub data: Vec<u8>,
}

impl End {
    pub fn of(reason: i32) -> End {
        End {
            reason,
            data: Vec::new(),
        }
    }
}

pub struct Link {
    head: &'static Head,
    socket: Owned,
    phase: Phase,
    remote: Vec<u8>,
    /// The address that the caller asked for, at the accepting end.
    local: Option<Vec<u8>>,
    again: Option<Again>,
    /// At the calling end: whom it called.
    called: Option<(Space, Vec<u8>)>,
    /// At the accepting end: the listener that may get the socket back.
    home: Option<Arc<Home>>,
    /// Forks of this process before there was the socket.
    forks: u32,
    /// One end has told the other that it goes, so that the socket need not.
    farewell: bool,
    /// A message was begun, and goes on in the next frame.
    goes_on: bool,
    released: bool,
    peer_released: bool,
    /// The peer has closed its end in peace.
    parted: bool,
    /// Data was to be sent to one who has parted.
    broken: bool,
    end: Option<End>,
    /// The user knows of the end.
    over: bool,
    looked_at: u64,
    /// What the peer's user has noted, not taken by ours.
    notes: Vec<(u32, Vec<u8>)>,
}

/// Notes kept at most: a peer's nonsense goes no further.
const MOST_NOTES: usize = 64;

impl Link {
    /// Makes the other end of what was asked for, and says so. The errors are those of the pipe.
    pub fn accept(
        request: Request,
        by: &[u8],
        opts: &[u8],
        data: &[u8],
    ) -> Result<Link, sys::Errno> {
        let head = take_brought(request.pipe, request.socket.number())?;
        let mut link = Link::new(head, request.socket, Phase::Open, request.from);
        link.local = Some(request.to);
        link.home = request.home;
        link.forks = request.forks;
        link.tell(word::CONFIRM, 0, [by, opts, data])?;
        Ok(link)
    }

    fn new(head: &'static Head, socket: Owned, phase: Phase, remote: Vec<u8>) -> Link {
        head.words().holders.store(1, Ordering::SeqCst);
        Link {
            head,
            socket,
            phase,
            remote,
            local: None,
            again: None,
            called: None,
            home: None,
            forks: 0,
            farewell: false,
            goes_on: false,
            released: false,
            peer_released: false,
            parted: false,
            broken: false,
            end: None,
            over: false,
            looked_at: sys::now(),
            notes: Vec::new(),
        }
    }

    pub fn head(&self) -> &'static Head {
        self.head
    }

    /// The socket; `None` while it is not connected, and would poll as hung up.
    pub fn shadow(&self) -> Option<i32> {
        (self.phase != Phase::Calling).then_some(self.socket.number())
    }

    pub fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// Has the peer closed in peace, and has the user taken all that it said? Then nothing comes any more, the hangup neither.
    pub fn is_quiet(&self) -> bool {
        self.peer_released && !self.broken && self.has_parted()
    }

    /// Was the other end closed in peace, though it may not have been taken yet?
    fn has_parted(&self) -> bool {
        self.parted || self.head.take_frames(says_closed) == Ok(true)
    }

    pub fn remote(&self) -> &[u8] {
        &self.remote
    }

    pub fn local(&self) -> Option<&[u8]> {
        self.local.as_deref()
    }

    // ---- events ----

    #[inline]
    pub fn event(&mut self) -> Option<Event> {
        if self.phase == Phase::Open {
            let ring = self.head.incoming();
            // In this order: a special frame is counted before it is seen, so what is seen here is none.
            if self.head.has_visible() && ring.specials() == 0 {
                return Some(Event::Data);
            }
        }
        self.event_slowly()
    }

    #[inline(never)]
    fn event_slowly(&mut self) -> Option<Event> {
        if self.over {
            return None;
        }
        if self.phase == Phase::Calling && self.end.is_none() {
            self.call_again();
        }
        if let Some(event) = self.event_in_ring() {
            return Some(event);
        }
        if self.end.is_none() {
            if !self.is_cut_off() {
                return None;
            }
            // What was sent before the end is there by now.
            if let Some(event) = self.event_in_ring() {
                return Some(event);
            }
            if self.parted && !self.broken || self.calls_afresh() {
                return None;
            }
            self.end = self.end.take().or_else(|| Some(self.why()));
        }
        Some(Event::Disconnect)
    }

    fn event_in_ring(&mut self) -> Option<Event> {
        if !self.head.has_visible() {
            return None;
        }
        let mut parted = false;
        let notes = &mut self.notes;
        let found = self.head.take_frames(|ring| {
            loop {
                return Ok(match front(ring)? {
                    None => None,
                    Some(Front::Data) => Some(Event::Data),
                    Some(Front::Expedited(_)) => Some(Event::ExData),
                    Some(Front::Control(_, word::CONFIRM)) => Some(Event::Connect),
                    Some(Front::Control(_, word::DISCONNECT)) => Some(Event::Disconnect),
                    Some(Front::Control(_, word::RELEASE)) => Some(Event::OrdRel),
                    Some(Front::Control(frame, word)) => {
                        parted |= word == word::CLOSED;
                        if word >= word::NOTE && notes.len() < MOST_NOTES {
                            let mut bytes = vec![0; frame.len];
                            ring.copy_frame(&frame, 0, &mut bytes);
                            notes.push((word - word::NOTE, Told::read(&bytes).data));
                        }
                        ring.take(&frame);
                        continue;
                    }
                });
            }
        });
        self.parted |= parted;
        found.ok().flatten()
    }

    /// Has the other end gone, or spoiled the ring?
    fn is_cut_off(&mut self) -> bool {
        if self.head.words().has(state::READ_ERROR) {
            return true;
        }
        if self.phase == Phase::Calling {
            return false;
        }
        if self.head.has_hung_up() {
            return !self.parted || self.broken;
        }
        let now = sys::now();
        if now - self.looked_at < LOOK_EVERY {
            return false;
        }
        self.looked_at = now;
        self.head.has_hung_up_now()
    }

    fn why(&self) -> End {
        if self.head.words().has(state::READ_ERROR) {
            return End::of(libc::EPROTO);
        }
        if self.phase == Phase::Open {
            return End::of(libc::ECONNRESET);
        }
        End {
            reason: libc::ECONNREFUSED,
            data: listening::last_words(self.socket.number()),
        }
    }

    /// Takes the event in front, unless it is data.
    pub fn take(&mut self) -> Option<Arrived> {
        let event = self.event()?;
        if matches!(event, Event::Data | Event::ExData) {
            return None;
        }
        let mut bytes = Vec::new();
        let taken = self.head.take_frames(|ring| {
            let Some(Front::Control(frame, word)) = front(ring)? else {
                return Ok(None);
            };
            bytes.resize(frame.len, 0);
            ring.copy_frame(&frame, 0, &mut bytes);
            ring.take(&frame);
            Ok(Some(word))
        });
        let told = taken.ok().flatten().map(|word| (word, Told::read(&bytes)));
        Some(match told {
            Some((word::CONFIRM, told)) => {
                self.phase = Phase::Open;
                self.again = None;
                self.remote = told.addr.clone();
                Arrived::Confirmed {
                    by: told.addr,
                    opts: told.opts,
                    data: told.data,
                }
            }
            Some((word::RELEASE, told)) => {
                self.peer_released = true;
                Arrived::Released { data: told.data }
            }
            Some((_, told)) => {
                self.over = true;
                self.farewell = true;
                Arrived::Disconnected {
                    reason: told.reason,
                    seq: -1,
                    data: told.data,
                }
            }
            None => {
                self.over = true;
                let end = self.end.take().unwrap_or_else(|| self.why());
                Arrived::Disconnected {
                    reason: end.reason,
                    seq: -1,
                    data: end.data,
                }
            }
        })
    }

    // ---- data ----

    /// See [`Provider::send`](crate::provider::Provider::send).
    #[inline]
    pub fn send(&mut self, data: &[iovec], how: Sending) -> Outcome<usize> {
        self.send_labelled(data, how, Label::NONE)
    }

    /// Whether what is sent next goes on with a message, as far as that is known elsewhere.
    #[inline(always)]
    pub fn goes_on(&mut self, goes_on: bool) {
        self.goes_on = goes_on;
    }

    #[inline(always)]
    pub fn send_labelled(&mut self, data: &[iovec], how: Sending, label: Label) -> Outcome<usize> {
        let head = self.head;
        if head.has_hung_up() {
            return Err(self.unheard());
        }
        let (limit, _) = head.transport_marks();
        if let [v] = data
            && v.iov_len.wrapping_sub(1) < PIECE.min(limit)
            && !how.expedited
        {
            head.enter();
            let sent = self.send_piece(buffers::bytes(v), how.more, label)?;
            head.note_sent();
            return if sent {
                Ok(v.iov_len)
            } else {
                Err(self.full())
            };
        }
        self.send_slowly(data, how, label)
    }

    /// One frame; false: no room.
    #[inline(always)]
    fn send_piece(&mut self, bytes: &[u8], more: bool, label: Label) -> Outcome<bool> {
        let begins = !self.goes_on;
        let sent = put_piece(self.head, bytes, more, label, begins);
        let sent = sent.map_err(|_| Refusal::new(TLOOK))?;
        self.goes_on ^= sent && self.goes_on != more;
        Ok(sent)
    }

    #[inline(never)]
    fn send_slowly(&mut self, data: &[iovec], how: Sending, label: Label) -> Outcome<usize> {
        let total = buffers::len(data);
        if total == 0 && how.more {
            return Ok(0);
        }
        self.head.enter();
        let most = if how.expedited {
            EXPEDITED_PIECE
        } else {
            PIECE.min(self.head.transport_marks().0)
        };
        let mut source = Source::new(data);
        let mut done = 0;
        loop {
            let n = (total - done).min(most);
            let more = how.more || done + n < total;
            let sent = match data {
                _ if how.expedited => self.send_expedited(&mut source, n, more, label)?,
                [v] if n > 0 => self.send_piece(&buffers::bytes(v)[done..done + n], more, label)?,
                _ if label != Label::NONE => {
                    let mut bytes = vec![0; n];
                    source.take(&mut bytes);
                    self.send_piece(&bytes, more, label)?
                }
                _ => self.send_gathered(&mut source, n, more)?,
            };
            if sent {
                done += n;
            }
            if sent && done < total {
                continue;
            }
            self.head.note_sent();
            return if sent || done > 0 {
                Ok(done)
            } else {
                Err(self.full())
            };
        }
    }

    fn send_gathered(&mut self, source: &mut Source<'_>, n: usize, more: bool) -> Outcome<bool> {
        let meta = Meta {
            flags: more as u8 * MORE,
            ..Meta::default()
        };
        let is_hushed = || !self.goes_on && self.head.words().has(state::HUSHED);
        let sent = self.head.put_frames(|ring| {
            if is_hushed() {
                return Ok(None);
            }
            let (limit, low) = self.head.transport_marks();
            if !ring.may_send(n, limit, low) {
                return Ok(Some(false));
            }
            if n == 0 {
                return ring.push_empty(meta).map(Some);
            }
            let Some(mut room) = ring.reserve(n, false)?.filter(|room| room.len >= n) else {
                return Ok(Some(false));
            };
            source.take(&mut buffers::room(&mut room)[..n]);
            ring.commit(n, meta);
            Ok(Some(true))
        });
        let sent = sent.ok().flatten().ok_or(Refusal::new(TLOOK))?;
        self.goes_on ^= sent && self.goes_on != more;
        Ok(sent)
    }

    fn send_expedited(
        &mut self,
        source: &mut Source<'_>,
        n: usize,
        more: bool,
        label: Label,
    ) -> Outcome<bool> {
        let meta = Meta {
            kind: M_DATA,
            band: EXPEDITED,
            flags: more as u8 * MORE,
            control: 0,
        };
        let sent = self.head.put_frames(|ring| {
            if self.is_hushed() {
                return Ok(None);
            }
            if ring.fill() as usize + n > ring.capacity() - RESERVE - 64 {
                return Ok(Some(false));
            }
            let mut bytes = vec![0; n];
            source.take(&mut bytes);
            match label {
                Label::NONE => ring.push_special(&[], &bytes, meta).map(Some),
                label => ring.push_special(&label.to_bytes(), &bytes, meta).map(Some),
            }
        });
        sent.ok().flatten().ok_or(Refusal::new(TLOOK))
    }

    #[cold]
    fn full(&self) -> Refusal {
        self.head.words().full_count.fetch_add(1, Ordering::Relaxed);
        Refusal::new(TFLOW)
    }

    /// Nobody is there to take data.
    #[cold]
    fn unheard(&mut self) -> Refusal {
        // What the peer said last may not have been looked at yet.
        self.event_in_ring();
        self.broken |= self.has_parted();
        Refusal::new(TLOOK)
    }

    /// That data was to be sent to one who has parted ends nothing.
    #[cold]
    pub fn mend(&mut self) {
        self.broken = false;
    }

    /// See [`Provider::receive`](crate::provider::Provider::receive).
    #[inline]
    pub fn receive(&mut self, into: &[iovec]) -> Outcome<Received> {
        let mut none = Label::NONE;
        self.receive_labelled(into, &mut none)
    }

    /// The label stays as it was where the unit's earlier part was received already.
    #[inline(always)]
    pub fn receive_labelled(&mut self, into: &[iovec], label: &mut Label) -> Outcome<Received> {
        let head = self.head;
        if !head.has_visible() {
            return Err(self.nothing());
        }
        head.enter();
        let taken = head.take_frames(|ring| {
            if ring.specials() == 0 {
                take_plain(ring, into, label)
            } else {
                take_by_rank(ring, into, label)
            }
        });
        match taken {
            Ok(Some(received)) => Ok(received),
            _ => Err(self.nothing()),
        }
    }

    #[cold]
    fn nothing(&mut self) -> Refusal {
        match self.event() {
            // It came this moment; the caller looks again before it sleeps.
            None | Some(Event::Data | Event::ExData) => Refusal::new(TNODATA),
            Some(_) => Refusal::new(TLOOK),
        }
    }

    // ---- the end ----

    fn tell(&self, what: u32, reason: i32, parts: [&[u8]; 3]) -> Result<bool, sys::Errno> {
        put_control(self.head, what, reason, parts)
    }

    /// The last that the peer hears of this end, which is a hangup too.
    fn tell_last(&mut self, whats: &[u32], reason: i32, data: &[u8]) {
        let meta = Meta {
            kind: M_PROTO,
            ..Meta::default()
        };
        let head = self.head;
        head.enter();
        let told = head.put_frames(|ring| {
            for &what in whats {
                if !ring.push_special(&control(what, reason, [&[], &[], data]), data, meta)? {
                    return Ok(false);
                }
            }
            head.hang_up_peer();
            Ok(true)
        });
        head.ring_peer_that_sends();
        self.farewell |= told == Ok(true);
    }

    /// Tells the peer's user something, in order with the data; false: no room now.
    pub fn note(&mut self, what: u32, data: &[u8]) -> bool {
        matches!(self.tell(word::NOTE + what, 0, [&[], &[], data]), Ok(true))
    }

    /// What the peer's user has noted, as far as it was come across by looking for events.
    pub fn notes(&mut self) -> Vec<(u32, Vec<u8>)> {
        core::mem::take(&mut self.notes)
    }

    pub fn has_notes(&self) -> bool {
        !self.notes.is_empty()
    }

    /// The peer begins no message from now on: behind what there is nothing comes, unless it [holds](Link::peer_holds) more.
    pub fn hush_peer(&self) {
        let Some(words) = self.head.peer_words() else {
            return;
        };
        words.set(state::HUSHED);
        fence(Ordering::SeqCst);
        // Whoever is in the middle of putting something there ends it first.
        let ring = self.head.incoming();
        if let Some(section) = section::enter(&ring.state.writer.lock)
            && section.taken == Taken::Stolen
        {
            let _ = ring.recover_producer();
        }
    }

    /// Has the peer [said](Link::hush_peer) so?
    #[inline]
    pub fn is_hushed(&self) -> bool {
        self.head.words().has(state::HUSHED)
    }

    /// Has the peer messages that are not in the ring yet?
    pub fn peer_holds(&self) -> bool {
        let words = self.head.peer_words();
        words.is_some_and(|words| words.has(state::HOLDS))
    }

    /// It has no more to say, though it has not said so.
    pub fn note_peer_released(&mut self) {
        self.peer_released = true;
    }

    /// Bytes that have come and were not received; bytes that the peer has not received.
    pub fn unread(&self) -> (usize, usize) {
        (self.head.incoming().unread(), self.head.outgoing().unread())
    }

    /// No more data will be sent.
    pub fn release(&mut self) -> Outcome<()> {
        if self.head.has_hung_up() {
            self.event_in_ring();
            if self.broken || !self.has_parted() {
                return Err(Refusal::new(TLOOK));
            }
        }
        match self.tell(word::RELEASE, 0, [&[], &[], &[]]) {
            Ok(true) => {
                self.released = true;
                Ok(())
            }
            Ok(false) => Err(self.full()),
            Err(_) => Err(Refusal::new(TLOOK)),
        }
    }

    /// Ends it at once.
    pub fn disconnect(mut self, data: &[u8]) {
        self.abort(data);
    }

    /// As [`disconnect`](Link::disconnect), of one that stays until it is dropped.
    pub fn abort(&mut self, data: &[u8]) {
        if self.phase == Phase::Asked {
            listening::say_last(self.socket.number(), data);
        }
        // A request may have been accepted meanwhile.
        self.tell_last(&[word::DISCONNECT], libc::ECONNRESET, data);
        self.over = true;
    }

    /// The end of one who has nothing more to say, whatever it has not read: a release, unless there was one, and a farewell. A
    /// request need not be accepted yet: what was sent is in the ring.
    pub fn leave(mut self) {
        if self.phase == Phase::Calling || self.over {
            return;
        }
        if self.is_last() {
            let all = [word::RELEASE, word::CLOSED];
            self.tell_last(&all[self.released as usize..], 0, &[]);
        } else {
            self.head.words().set(state::LEFT);
        }
    }

    /// Has a process left the other end in peace, among several that held it? The others may have gone without a word.
    pub fn was_left(&self) -> bool {
        let words = self.head.peer_words();
        words.is_some_and(|words| words.has(state::LEFT))
    }

    /// The endpoint is closed: as close(2) of a socket, it is a release if the provider has that and nothing unread is lost.
    pub fn close(mut self, orderly: bool) {
        let alone = self.head.words().holders.load(Ordering::SeqCst) == 1;
        if self.phase != Phase::Open && alone && self.event() == Some(Event::Connect) {
            self.take();
        }
        if self.phase != Phase::Open || self.over || !self.is_last() {
            return;
        }
        let unread = matches!(self.event_in_ring(), Some(Event::Data | Event::ExData));
        match orderly && !unread {
            true if self.released => self.tell_last(&[word::CLOSED], 0, &[]),
            true => self.tell_last(&[word::RELEASE, word::CLOSED], 0, &[]),
            false => self.tell_last(&[word::DISCONNECT], libc::ECONNRESET, &[]),
        }
    }

    /// Both directions were released: the peer is not to take what follows for a failure.
    pub fn part(mut self) {
        if self.phase == Phase::Open && self.released && self.is_last() {
            self.tell_last(&[word::CLOSED], 0, &[]);
        }
    }

    /// Does no other process hold this end?
    fn is_last(&self) -> bool {
        self.head.words().holders.fetch_sub(1, Ordering::SeqCst) == 1
    }
}

impl Link {
    /// May the ends meet again by the same socket and pipe? Not if any other process may have them.
    fn parts_in_peace(&self) -> bool {
        let (head, peer) = (self.head, self.head.peer_words());
        self.may_be_used_again()
            && (self.farewell || self.parted)
            && self.forks == background::forks()
            && !head.is_shared()
            && !head.words().has(state::READ_ERROR)
            && peer
                .is_some_and(|words| words.user.load(Ordering::Relaxed) != process::owner().bits())
    }

    /// Not where a request may still be answered, unless what is there for whoever takes it is all that it will be.
    fn may_be_used_again(&self) -> bool {
        self.phase == Phase::Open || self.phase == Phase::Asked && self.farewell && !self.over
    }

    /// Gives the socket to whoever keeps it for another connection.
    fn keep_socket(&mut self, pipe: &'static Pipe) -> Option<Way> {
        if !self.parts_in_peace() {
            return None;
        }
        // Nobody would notice that the caller has gone if that was told already.
        if self.home.is_some() && name::has_hung_up(self.socket.number()) {
            return None;
        }
        let socket = core::mem::replace(&mut self.socket, Owned(-1));
        if let Some(home) = &self.home {
            if let Err(socket) = home.give(socket, pipe) {
                self.socket = socket;
            }
            return None;
        }
        match self.called.take() {
            Some((space, to)) => Some(Way {
                socket,
                space,
                to,
                forks: self.forks,
            }),
            None => {
                self.socket = socket;
                None
            }
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let (pipe, side) = (self.head.pipe(), self.head.side());
        let way = pipe.and_then(|pipe| self.keep_socket(pipe));
        // The other end is told once the kernel knows.
        self.head.fd.store(-1, Ordering::Release);
        let socket = core::mem::replace(&mut self.socket.0, -1);
        let at_home = socket < 0 && way.is_none();
        hidden::close(socket);
        life::let_go(self.head);
        match pipe {
            Some(pipe) if at_home => pipe.settle(side),
            Some(pipe) if self.may_be_used_again() => pool::give(pipe, side == 0, way),
            // Whoever has seen the request may have mapped it.
            Some(pipe) => pool::forget(pipe),
            None => {}
        }
    }
}

/// One frame of data; false: no room. EPROTO; EPIPE: the other end takes no message that begins here.
#[inline(always)]
fn put_piece(
    head: &Head,
    bytes: &[u8],
    more: bool,
    label: Label,
    begins: bool,
) -> sys::Result<bool> {
    let meta = Meta {
        flags: more as u8 * MORE,
        ..Meta::default()
    };
    let plan = head.plan_copy(bytes.len());
    let sent = head.put_frames(|ring| {
        if begins && head.words().has(state::HUSHED) {
            return Ok(None);
        }
        let (limit, low) = head.transport_marks();
        if !ring.may_send(bytes.len(), limit, low) {
            return Ok(Some(false));
        }
        let sent = match &plan {
            _ if label != Label::NONE => ring.push_message(&label.to_bytes(), bytes, meta)?,
            Some(plan) if plan.streaming => ring.push_streaming(bytes, meta)? > 0,
            _ if bytes.is_empty() => ring.push_empty(meta)?,
            _ => ring.push(bytes, meta)? > 0,
        };
        Ok(Some(sent))
    });
    if let Some(plan) = plan {
        head.copying.done(plan, bytes.len());
    }
    sent?.ok_or(libc::EPIPE)
}

/// A frame that says something; false: no room. EPROTO.
fn put_control(head: &Head, what: u32, reason: i32, parts: [&[u8]; 3]) -> sys::Result<bool> {
    let meta = Meta {
        kind: M_PROTO,
        ..Meta::default()
    };
    head.enter();
    head.put_frames(|ring| ring.push_special(&control(what, reason, parts), &parts.concat(), meta))
}

/// The accepting end of what a request brought.
fn take_brought(brought: Brought, shadow: i32) -> sys::Result<&'static Head> {
    match brought {
        Brought::Mapped(pipe) => life::adopt_hidden(pipe.take(), 1, shadow),
        Brought::Parts(parts) => take_parts(parts, shadow),
        Brought::Local(inode, parts) => {
            let Some(holder) = life::hold_pipe(inode) else {
                // The caller has left, and what it said is still to be read.
                return take_parts(parts, shadow);
            };
            let made = holder
                .pipe()
                .ok_or(libc::ECONNABORTED)
                .and_then(|pipe| life::adopt_hidden(pipe, 1, shadow));
            life::let_go(holder);
            made
        }
    }
}

fn take_parts(parts: [Owned; 3], shadow: i32) -> sys::Result<&'static Head> {
    let [memfd, first, second] = parts.map(Owned::into_number);
    let head = take_end(memfd, [first, second], 1, shadow)?;
    head.pipe().into_iter().for_each(life::keep);
    Ok(head)
}

/// Makes hidden descriptors an end of a pipe here. They are taken over, also when it fails.
fn take_end(memfd: i32, bells: [i32; 2], side: u32, shadow: i32) -> sys::Result<&'static Head> {
    let pipe = Pipe::open_hidden(&Parts {
        side,
        fifo: false,
        shadow,
        memfd,
        bells,
    })?;
    life::adopt_hidden(pipe, side, shadow)
}

/// Whether a request's pipe is one that this process made.
pub fn maker() -> u64 {
    process::owner().bits()
}
