//! One association: its state, and what its user asks of it.
//!
//! ```text
//!   opening    the handshake, from both sides        input    what chunks do
//!   output     packets, and what goes into them      clock    what timers do
//!   routes     which path; heartbeats, failover      closing  shutdown, abort, the end
//!   changes    resets of streams, addresses          offer    what the sides offer each other
//! ```

mod changes;
mod clock;
mod closing;
mod input;
mod offer;
mod opening;
mod output;
mod routes;

use core::net::IpAddr;
use core::time::Duration;
use std::collections::VecDeque;
use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;

pub use changes::ChangeRefused;
pub(crate) use changes::keys;
pub(crate) use closing::LastPacket;
pub(crate) use offer::{Offer, chunks_to_authenticate, describe, uses_auth};
pub(crate) use opening::SetUp;

use crate::asconf::Asconf;
use crate::auth::Auth;
use crate::reset::Reset;
pub use crate::send::SendError;
use crate::wire::CauseOwned;
use crate::{
    AssocConfig, Event, Features, Outgoing, Path, PathId, PathState, Paths, Received, Receiver,
    Sender, Time, Timer, Timers, Tsn,
};

/// Names an association of an endpoint; never used twice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct AssocId {
    pub(crate) place: u32,
    pub(crate) generation: u32,
}

/// Events that nobody has taken: beyond that some are dropped, and the endpoint takes no more for the time being.
pub(crate) const MOST_EVENTS: usize = 256;

/// RFC 9260 section 4.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum State {
    #[default]
    Closed,
    CookieWait,
    CookieEchoed,
    Established,
    ShutdownPending,
    ShutdownSent,
    ShutdownReceived,
    ShutdownAckSent,
}

/// Counts since the association began.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Stats {
    pub packets_in: u64,
    pub packets_out: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub messages_in: u64,
    pub messages_out: u64,
    pub timeouts: u64,
    /// Chunks: SACKs, and gap blocks in them; data, ordered and unordered; the others.
    pub sacks_in: u64,
    pub sacks_out: u64,
    pub gaps_in: u64,
    pub ordered_in: u64,
    pub unordered_in: u64,
    pub duplicates_in: u64,
    pub control_in: u64,
    pub control_out: u64,
}

/// A control chunk that waits to be sent.
#[derive(Debug, PartialEq, Eq)]
enum Control {
    CookieAck,
    HeartbeatAck(Vec<u8>),
    Error(Vec<CauseOwned>),
    Shutdown,
    ShutdownAck,
    /// A whole chunk.
    Whole(Vec<u8>),
}

#[derive(Debug)]
pub struct Association {
    id: AssocId,
    local_port: u16,
    peer_port: u16,
    local_tag: u32,
    peer_tag: u32,
    /// As they were told in our INIT or INIT ACK; for a peer that restarts.
    local_tsn: Tsn,
    state: State,
    config: Box<AssocConfig>,
    /// What both sides can do.
    features: Features,
    /// Our addresses, where they were named.
    local: Vec<IpAddr>,
    /// One of them was given up: the network's choice is not to be trusted any more.
    has_left: bool,
    paths: Paths,
    primary: PathId,
    /// Where data came from last: SACKs go there.
    last_from: PathId,
    pub(crate) timers: Timers,
    sender: Sender,
    receiver: Receiver,
    opening: Option<Box<opening::Opening>>,
    control: VecDeque<(Option<PathId>, Control)>,
    pub(crate) sack_now: bool,
    auth: Option<Box<Auth>>,
    /// The key that the peer signs with.
    peer_key: u16,
    reset: Reset,
    asconf: Asconf,
    /// Errors in a row, on all paths.
    errors: u32,
    events: VecDeque<Event>,
    /// A send found no room, or somebody waits for it; how much is worth telling.
    was_full: bool,
    room_wanted: usize,
    /// The user knows that there is something to receive.
    told_readable: bool,
    /// The user wants to know of whatever comes, though there is something to receive already.
    each_arrival: bool,
    peer_has_shut_down: bool,
    pub(crate) last_packet: Option<LastPacket>,
    last_traffic: Time,
    /// For nonces that a peer can't guess.
    secret: u64,
    nonces: u64,
    stats: Stats,
    /// Of the endpoint: it is in the queue of those that may have something to send; the deadline that it knows.
    pub(crate) queued: bool,
    pub(crate) indexed: Option<Time>,
    /// Events of it in the endpoint's queue.
    pub(crate) untaken: usize,
    /// Nobody will ask for it any more.
    pub(crate) orphaned: bool,
    pub(crate) accepted: bool,
    /// It waits for a former association with its peer to end, before its INIT leaves.
    pub(crate) held: bool,
}

impl Association {
    pub fn id(&self) -> AssocId {
        self.id
    }

    pub fn state(&self) -> State {
        self.state
    }

    pub fn is_open(&self) -> bool {
        self.state != State::Closed
    }

    /// The handshake is not over.
    pub(crate) fn is_opening(&self) -> bool {
        matches!(self.state, State::CookieWait | State::CookieEchoed)
    }

    pub(crate) fn local_tsn(&self) -> Tsn {
        self.local_tsn
    }

    pub(crate) fn path_mut(&mut self, id: PathId) -> &mut Path {
        &mut self.paths[id]
    }

    pub fn local_port(&self) -> u16 {
        self.local_port
    }

    pub fn peer_port(&self) -> u16 {
        self.peer_port
    }

    pub fn local_tag(&self) -> u32 {
        self.local_tag
    }

    pub fn peer_tag(&self) -> u32 {
        self.peer_tag
    }

    /// Ours, and the peer's.
    pub(crate) fn tags(&self) -> (u32, u32) {
        (self.local_tag, self.peer_tag)
    }

    pub fn config(&self) -> &AssocConfig {
        &self.config
    }

    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    pub fn primary(&self) -> PathId {
        self.primary
    }

    /// Our addresses, where they were named.
    pub fn local_addresses(&self) -> &[IpAddr] {
        &self.local
    }

    pub fn stats(&self) -> Stats {
        self.stats
    }

    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    pub fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    pub fn features(&self) -> Features {
        self.features
    }

    /// Takes a message, or the next part of one (`more`: it goes on in the next call for this stream): whole or not at all.
    pub(crate) fn send(
        &mut self,
        now: Time,
        message: &Outgoing,
        data: &[u8],
        more: bool,
    ) -> Result<(), SendError> {
        if !self.is_opening() && self.state != State::Established {
            return Err(SendError::Closed);
        }
        let taken = self.sender.enqueue(now, message, data, more);
        match taken {
            Ok(()) => {
                self.stats.messages_out += u64::from(!more);
                self.set_expiry();
                self.last_traffic = now;
            }
            Err(SendError::NoRoom) => self.want_room(1),
            Err(_) => {}
        }
        taken
    }

    /// Receives from the message in front, or from the rest of it.
    pub(crate) fn receive(&mut self, into: &mut [u8]) -> Option<Received> {
        let received = self.receiver.read(into)?;
        self.stats.messages_in += u64::from(received.end);
        if !self.receiver.readable() {
            self.told_readable = false;
        }
        if self.receiver.window_update_due() {
            self.sack_now = true;
        }
        Some(received)
    }

    pub fn readable(&self) -> bool {
        self.receiver.readable()
    }

    /// Is there room for a message of at least one byte? Once there was too little, not until [`Event::Writable`] is due: who
    /// waits for room would find as good as none.
    pub fn has_room(&self) -> bool {
        let least = if self.was_full { self.room_wanted } else { 1 };
        self.sender.room() >= least
    }

    /// [`Event::Writable`] is to tell when there is room for so many bytes, or for a quarter of the buffer if that is more.
    pub(crate) fn want_room(&mut self, bytes: usize) {
        let buffer = self.config.send_buffer;
        self.was_full = true;
        self.room_wanted = bytes.max(buffer / 4).min(buffer);
    }

    /// The peer has shut down, and everything it sent was received by the user.
    pub fn at_end(&self) -> bool {
        (self.peer_has_shut_down || !self.is_open()) && !self.readable()
    }

    pub fn peer_has_shut_down(&self) -> bool {
        self.peer_has_shut_down
    }

    pub fn set_scheduler(&mut self, kind: crate::sched::SchedulerKind) {
        self.config.scheduler = kind;
        self.sender.set_scheduler(kind);
    }

    pub fn set_stream_value(&mut self, stream: u16, value: u16) -> bool {
        self.sender.set_stream_value(stream, value)
    }

    /// Changes what may be changed while it goes on; the sizes of windows, the numbers of streams and the extensions may not.
    pub fn set_config(&mut self, now: Time, change: impl FnOnce(&mut AssocConfig)) {
        change(&mut self.config);
        let rto = self.config.rto;
        for (_, path) in self.paths.iter_mut() {
            path.rto.set_limits(rto);
        }
        self.reset.allowed = self.config.allowed;
        self.sender.follow(&self.config);
        self.receiver.follow(&self.config);
        self.set_autoclose(now);
        for id in self.paths.ids() {
            self.schedule_heartbeat(now, id);
        }
    }

    /// One path's own settings.
    pub fn set_path(&mut self, now: Time, addr: IpAddr, change: impl FnOnce(&mut Path)) -> bool {
        let Some(id) = self.paths.find(addr) else {
            return false;
        };
        change(&mut self.paths[id]);
        self.schedule_heartbeat(now, id);
        true
    }

    /// Where data goes by choice. An address that has not answered yet is the primary at once, and gets data as soon
    /// as it has (RFC 9260 5.4). During the handshake only addresses that we were given may be chosen.
    pub fn set_primary(&mut self, addr: IpAddr) -> bool {
        let confirmed = |id| self.paths[id].state != PathState::Unconfirmed;
        match self.paths.find(addr) {
            Some(id) if self.is_established() || confirmed(id) => {
                self.primary = id;
                true
            }
            _ => false,
        }
    }

    /// The longest message that is sent in one chunk, over any of the paths.
    pub fn fragmentation_point(&self) -> usize {
        let mtu = self.paths.iter().map(|(_, path)| path.mtu).min();
        self.sender
            .largest_fragment(mtu.unwrap_or(self.config.mtu))
            .min(self.config.longest_fragment())
    }

    /// Sends a HEARTBEAT to this address now.
    pub fn request_heartbeat(&mut self, addr: IpAddr) -> bool {
        let Some(id) = self.paths.find(addr) else {
            return false;
        };
        self.paths[id].heartbeat_wanted = true;
        true
    }

    pub(crate) fn take_event(&mut self) -> Option<Event> {
        if let Some(failed) = self.sender.failed() {
            return Some(Event::SendFailed(failed));
        }
        let fresh = self.each_arrival && self.receiver.take_fresh();
        if (fresh || !self.told_readable) && self.receiver.readable() {
            self.told_readable = true;
            return Some(Event::Readable);
        }
        if self.was_full && self.has_room() {
            self.was_full = false;
            return Some(Event::Writable);
        }
        self.events.pop_front()
    }

    /// What must hold between any two calls.
    pub fn check(&self) {
        if cfg!(debug_assertions) {
            self.sender.check(&self.paths);
            if self.state == State::Closed {
                assert!(
                    self.timers.next().is_none(),
                    "a timer of an association that is over"
                );
            } else {
                self.receiver.check();
                for (id, path) in self.paths.iter() {
                    assert!(
                        path.flight == 0 || self.timers.get(Timer::T3(id)).is_some(),
                        "data is outstanding and T3 is not running"
                    );
                }
            }
        }
    }

    /// Events are kept for a user who is slow to take them; of those that a peer can cause at will, or that say the same again,
    /// not any number.
    fn tell(&mut self, event: Event) {
        let again = event == Event::Dry && self.events.contains(&event);
        if event.may_be_dropped() && (again || self.events.len() >= MOST_EVENTS) {
            return;
        }
        self.events.push_back(event);
    }

    /// A number that nobody can guess.
    fn nonce(&mut self) -> u64 {
        self.nonces += 1;
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.secret);
        hasher.write_u64(self.nonces);
        hasher.finish()
    }

    fn set_expiry(&mut self) {
        match self.sender.next_expiry() {
            Some(at) => self.timers.set(Timer::Expiry, at),
            None => self.timers.stop(Timer::Expiry),
        }
    }

    fn set_autoclose(&mut self, now: Time) {
        match self.config.autoclose {
            Some(after) if after > Duration::ZERO && self.is_open() => {
                self.timers.set(Timer::Autoclose, now + after);
            }
            _ => self.timers.stop(Timer::Autoclose),
        }
    }
}
