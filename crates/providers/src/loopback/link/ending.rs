//! The end of a link: how it is told to the peer, in peace or not, and whether its socket and its pipe serve another.

use headwater_channel::ring::Meta;
use headwater_host::lifecycle;
use headwater_host::sync::Ordering;
use headwater_host::{hidden, process};
use headwater_streams::ddi::M_PROTO;
use headwater_streams::head::life;
use headwater_streams::pipe::Pipe;
use headwater_streams::pipe::words::state;
use headwater_tpi::Refusal;
use headwater_tpi::error::TLOOK;

use super::frames::{control, word};
use super::{Link, Phase};
use crate::loopback::pool::{self, Way};
use crate::loopback::{Owned, name, request};
use crate::provider::{Event, Outcome};

impl Link {
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
            request::say_last(self.socket.number(), data);
        }
        // A request may have been accepted meanwhile.
        self.tell_last(&[word::DISCONNECT], libc::ECONNRESET, data);
        self.over = true;
    }

    /// The end of one who has nothing more to say, whatever it has not read: a release, unless there was one, and word of the end. A
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
        self.told_of_the_end |= told == Ok(true);
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
            && (self.told_of_the_end || self.parted)
            && self.forks == lifecycle::forks()
            && !head.is_shared()
            && !head.words().has(state::READ_ERROR)
            && peer
                .is_some_and(|words| words.user.load(Ordering::Relaxed) != process::owner().bits())
    }

    /// Not where a request may still be answered, unless what is there for whoever takes it is all that it will be.
    fn may_be_used_again(&self) -> bool {
        self.phase == Phase::Open
            || self.phase == Phase::Asked && self.told_of_the_end && !self.over
    }

    /// Gives the socket to whoever keeps it for another connection.
    fn keep_socket(&mut self, pipe: &'static Pipe) -> Option<Way> {
        if !self.parts_in_peace() {
            return None;
        }
        // Nobody would notice that the caller has gone if that was told already.
        if self.idle_sockets.is_some() && name::has_hung_up(self.socket.number()) {
            return None;
        }
        let socket = core::mem::replace(&mut self.socket, Owned(-1));
        if let Some(idle_sockets) = &self.idle_sockets {
            if let Err(socket) = idle_sockets.give(socket, pipe) {
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
