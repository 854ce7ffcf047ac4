//! One end of a connection: an end of a pipe whose shadow is a UNIX socket that the table does not know.
//!
//! A plain frame is data, one with a band is expedited data; both say whether their data unit goes on. What else the ends
//! have to tell each other are frames with a control part, so that it stays behind the data: {what, reason, lengths of
//! address and options}, and as their data the address, the options and the user's data. Only what comes before there are
//! two ends, a request and its refusal, goes by the socket. Data of an SCTP association has a control part too, its
//! [`Label`], unless that says nothing.

mod calling;
mod data;
mod ending;
mod events;
mod frames;
pub mod outbox;
mod passage;

use std::sync::Arc;

use calling::Again;
use headwater_channel::lock::Taken;
use headwater_channel::ring::Meta;
use headwater_host::sync::{Ordering, fence};
use headwater_host::sys;
use headwater_streams::ddi::M_PROTO;
use headwater_streams::head::{Head, life};
use headwater_streams::pipe::section;
use headwater_streams::pipe::words::state;

use super::idle_sockets::IdleSockets;
use super::request::{Brought, Request};
use super::{Owned, Space};
use crate::provider::Arrived;

pub use frames::{Front, Label, MORE, front, read_label};
use frames::{control, says_closed, word};
pub use passage::{from_hex, named, taken, to_hex};

/// Most data in one frame: several are under way in a ring.
pub const PIECE: usize = 32 << 10;

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

    /// As the user of the connection is told of it.
    pub fn told(self) -> Arrived {
        let End { reason, data } = self;
        let seq = -1;
        Arrived::Disconnected { reason, seq, data }
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
    idle_sockets: Option<Arc<IdleSockets>>,
    /// Forks of this process before there was the socket.
    forks: u32,
    /// One end has told the other that it goes, so that the socket need not.
    told_of_the_end: bool,
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

impl Link {
    /// Makes the other end of what was asked for, and says so. ENOSR, EPROTO: the request is refused.
    pub fn accept(
        request: Request,
        by: &[u8],
        opts: &[u8],
        data: &[u8],
    ) -> Result<Link, sys::Errno> {
        let shadow = request.socket.number();
        let head = match request.pipe {
            Brought::Mapped(pipe) => pipe.adopt(shadow)?,
            Brought::Local(pipe) => life::adopt_hidden(pipe.pipe(), 1, shadow)?,
        };
        let mut link = Link::new(head, request.socket, Phase::Open, request.from);
        link.local = Some(request.to);
        link.idle_sockets = request.idle_sockets;
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
            idle_sockets: None,
            forks: 0,
            told_of_the_end: false,
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

    fn tell(&self, what: u32, reason: i32, parts: [&[u8]; 3]) -> Result<bool, sys::Errno> {
        put_control(self.head, what, reason, parts)
    }
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
