//! The board: memory that a user's programs share, where listeners are posted and connections offered.
//!
//! Nothing on it is trusted: it is a hint of where a segment may be had. That the segment is for this very connection is said
//! in the segment, and that the process behind it holds the other end is asked of the kernel where it is another user's. So a
//! wrong entry costs an acceleration, never data. Entries name the seat of their process: what a dead one left is taken by who
//! needs room.

use headwater_channel::lock::Owner;
use headwater_channel::shm::SharedSafe;

use crate::seats::{self, Seat, Seats};
use crate::shared::Shared;
pub use crate::shared::{OpenError, folder};
use crate::sync::{AtomicU32, AtomicU64, Exchange, Ordering, fence};
use crate::{process, sys};

/// Changes with every change of any shared layout: board, segment header, link messages.
const ABI: u32 = 4;

/// As the library's file has it: what is changed there (by a test) is another version.
#[repr(C)]
struct Stamp {
    mark: [u8; 16],
    abi: u32,
}

#[used]
static STAMP: Stamp = Stamp {
    mark: *b"headwater's ABI:",
    abi: ABI,
};

/// The version of the layouts that this process shares with others.
pub fn abi() -> u32 {
    // SAFETY: a static; read where the file has it, whatever the compiler knows of it.
    unsafe { (&raw const STAMP.abi).read_volatile() }
}

/// The name in the runtime folder, as [`Shared::open`] takes it. The layout's version is part of it: different versions simply do
/// not meet.
pub fn file(abi: u32) -> String {
    format!("board.{abi}")
}

const LISTENERS: usize = 4096;
const OFFERS: usize = 16384;
const PROBES: usize = 16;

/// A TCP endpoint, IPv4 as an IPv4-mapped IPv6 address.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Addr {
    pub ip: u128,
    pub port: u16,
}

/// A connection as both ends know it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tuple {
    pub client: Addr,
    pub server: Addr,
    pub netns: u64,
}

impl Tuple {
    /// As plain words, for shared memory.
    pub fn words(&self) -> [u64; 6] {
        let [[client, high], [server, server_high]] =
            [self.client, self.server].map(|a| split(a.ip));
        let ports = (self.client.port as u64) << 16 | self.server.port as u64;
        [client, high, server, server_high, ports, self.netns]
    }

    fn of_words([client, high, server, server_high, ports, netns]: [u64; 6]) -> Tuple {
        let addr = |ip, port: u64| Addr {
            ip: join(ip),
            port: port as u16,
        };
        Tuple {
            client: addr([client, high], ports >> 16),
            server: addr([server, server_high], ports),
            netns,
        }
    }
}

#[derive(SharedSafe)]
#[repr(C)]
struct ListenerSlot {
    /// Seat of the process that posted it; 0: free.
    seat: AtomicU64,
    ip: [AtomicU64; 2],
    netns: AtomicU64,
    port: AtomicU64,
    /// The same process's owner bits, to be shown.
    owner: AtomicU64,
    /// What taking over its connections has brought in, for sockets' `worth`.
    account: AtomicU64,
    reserved: u64,
}

/// State of an offer; the low byte of [`OfferSlot::st`]. Above it are the generation, 32 bits, and the number of the seat of
/// the process that writes it, 24 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum State {
    Free = 0,
    Writing = 1,
    Offered = 2,
    Accepted = 3,
    Attached = 4,
    Cancelled = 5,
}

#[derive(SharedSafe)]
#[repr(C, align(64))]
pub struct OfferSlot {
    st: AtomicU64,
    /// [`Tuple::words`].
    tuple: [AtomicU64; 6],
    client: AtomicU64,
    server: AtomicU64,
    /// Written by the claimer: which link of the client, and which segment on it.
    pub link: AtomicU64,
    pub segment: AtomicU64,
    /// Seconds of CLOCK_MONOTONIC when it was offered.
    pub since: AtomicU64,
    /// Bytes by ring, client to server and back; refreshed now and then, for `headwater stat`.
    pub bytes: [AtomicU64; 2],
    pub client_uid: AtomicU32,
    reserved: AtomicU32,
    /// Seat of the process that offers.
    seat: AtomicU64,
}

#[derive(SharedSafe)]
#[repr(C)]
struct Layout {
    seats: seats::Table,
    listeners: [ListenerSlot; LISTENERS],
    offers: [OfferSlot; OFFERS],
}

/// Of the memory that the board's file leads to.
pub const SIZE: usize = size_of::<Layout>();

const _: () = assert!(size_of::<ListenerSlot>() == 64);
const _: () = assert!(size_of::<OfferSlot>() == 128);

/// An offer that this process made or claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    pub slot: u32,
    pub generation: u32,
    /// [`Board::number`].
    pub board: u32,
}

/// The board, attached for as long as the process lives.
pub struct Board {
    at: &'static Layout,
    seats: Seats,
    /// Which of this process's boards it is, where it has used more than one: offers carry it.
    pub number: u32,
}

/// What became of a posting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Posting {
    Done,
    /// Too many listeners near its place.
    Full,
    /// This process can't own anything on the board.
    NoSeat,
}

/// A live connection, for `headwater stat`.
#[derive(Clone, Debug)]
pub struct Connection {
    pub tuple: Tuple,
    pub client: Owner,
    pub server: Owner,
    pub attached: bool,
    pub since: u64,
    pub bytes: [u64; 2],
}

/// A posted listener, for `headwater stat`.
#[derive(Clone, Debug)]
pub struct Listener {
    pub addr: Addr,
    pub owner: Owner,
    pub netns: u64,
}

impl Board {
    /// Opens the user's board, making folder and board when `create` and they are not there.
    pub fn open(folder: &str, create: bool) -> Result<Board, OpenError> {
        Board::open_version(folder, abi(), create)
    }

    fn open_version(folder: &str, abi: u32, create: bool) -> Result<Board, OpenError> {
        let shared = Shared::open(folder, &file(abi), SIZE, create)?;
        // SAFETY: attached for the life of the process, and any bits are valid.
        let at = unsafe { &*(shared.at as *const Layout) };
        Ok(Board {
            at,
            seats: Seats::new(&at.seats, shared),
            number: 0,
        })
    }

    /// Do programs that come now find another board by this name?
    pub fn is_replaced(&self) -> bool {
        self.seats.file().is_replaced()
    }

    /// After another board was opened, which may be by the same file.
    pub fn hold_seat(&self) {
        self.seats.hold();
    }

    // ---- listeners ----

    /// Where a listener at this port has its place.
    fn listeners_at(&self, port: u16) -> impl Iterator<Item = &'static ListenerSlot> + use<> {
        let (all, first) = (&self.at.listeners, (port as usize).wrapping_mul(0x9e37));
        (0..PROBES).map(move |i| &all[(first % LISTENERS + i) % LISTENERS])
    }

    /// Posts a listener of this process, unless it is there already.
    pub fn post_listener(&self, addr: Addr) -> Posting {
        let Some(me) = self.seats.mine() else {
            return Posting::NoSeat;
        };
        let netns = process::netns();
        let slots = || self.listeners_at(addr.port);
        let is = |slot: &&ListenerSlot| slot.matches(addr, netns);
        if slots().any(|slot| slot.seat() == me && is(&slot)) {
            return Posting::Done;
        }
        let empty = |slot: &ListenerSlot| slot.seat().bits() == 0;
        let left = |slot: &ListenerSlot| {
            let seat = slot.seat();
            (seat.bits() != 0 && self.seats.is_vacant(seat)).then_some(seat)
        };
        // What an earlier process left of the same listener, an empty place, what another left: so the kernel is hardly asked.
        let same = slots().filter(is).filter_map(|s| Some((s, left(s)?)));
        let empty = slots().filter(|s| empty(s)).map(|s| (s, Seat::NONE));
        let other = slots().filter_map(|s| Some((s, left(s)?)));
        for (slot, seen) in same.chain(empty).chain(other) {
            if slot.take(seen, me, addr, netns) {
                return Posting::Done;
            }
        }
        // Posted by a sibling, it is found as well.
        if slots().any(|slot| is(&slot)) {
            Posting::Done
        } else {
            Posting::Full
        }
    }

    /// Takes back this process's posting.
    pub fn remove_listener(&self, addr: Addr) {
        let Some(me) = self.seats.mine() else { return };
        for slot in self.listeners_at(addr.port) {
            if slot.seat() == me && slot.matches(addr, process::netns()) {
                slot.clear(me);
            }
        }
    }

    /// Takes away postings for `to` of processes that have ended, whose port may be another's by now.
    pub fn forget_dead_listeners(&self, to: Addr) {
        for slot in self.listeners_at(to.port) {
            let seat = slot.seat();
            if seat.bits() != 0 && slot.serves(to, process::netns()) && self.seats.is_vacant(seat) {
                slot.clear(seat);
            }
        }
    }

    /// The account of the listener with the library where a connection to `addr` of this network namespace would end; siblings at one
    /// address have one.
    pub fn account(&self, addr: Addr) -> Option<&'static AtomicU64> {
        let netns = process::netns();
        let slots = self.listeners_at(addr.port);
        let mut serving = slots.filter(|slot| slot.seat().bits() != 0 && slot.serves(addr, netns));
        serving.next().map(|slot| &slot.account)
    }

    // ---- offers ----

    /// Posts an offer for `tuple`. `None`: no slot near its place.
    pub fn offer(&self, tuple: Tuple) -> Option<Offer> {
        let me = self.seats.mine()?;
        for i in offer_probes(&tuple) {
            let slot = &self.at.offers[i];
            let seen = slot.st.load(Ordering::Acquire);
            if !self.is_reusable(slot, seen) {
                continue;
            }
            let generation = ((seen >> 8) as u32).wrapping_add(1);
            let writing = word(me, generation, State::Writing);
            if !slot.st.exchange(seen, writing) {
                continue;
            }
            slot.write(&tuple, me);
            slot.st
                .store(word(me, generation, State::Offered), Ordering::Release);
            return Some(Offer {
                slot: i as u32,
                generation,
                board: self.number,
            });
        }
        None
    }

    /// Finds the offer for a connection that was accepted here.
    pub fn find(&self, tuple: &Tuple) -> Option<Offer> {
        offer_probes(tuple).find_map(|i| {
            let slot = &self.at.offers[i];
            let seen = slot.st.load(Ordering::Acquire);
            if seen as u8 != State::Offered as u8 || slot.tuple() != *tuple {
                return None;
            }
            fence(Ordering::Acquire);
            (slot.st.load(Ordering::Relaxed) == seen).then_some(Offer {
                slot: i as u32,
                generation: (seen >> 8) as u32,
                board: self.number,
            })
        })
    }

    #[inline]
    pub fn slot(&self, offer: Offer) -> &OfferSlot {
        &self.at.offers[offer.slot as usize % OFFERS]
    }

    /// The state of an offer; `Free` once the slot has gone to another.
    #[inline]
    pub fn state(&self, offer: Offer) -> State {
        let st = self.slot(offer).st.load(Ordering::Acquire);
        if (st >> 8) as u32 != offer.generation {
            return State::Free;
        }
        state_of(st)
    }

    /// Moves an offer from one state to another; false when it was in a third.
    pub fn advance(&self, offer: Offer, from: State, to: State) -> bool {
        let st = &self.slot(offer).st;
        let seen = st.load(Ordering::Acquire);
        (seen >> 8) as u32 == offer.generation
            && state_of(seen) == from
            && st.exchange(seen, with_state(seen, to))
    }

    /// Gives the slot back, whatever its state.
    pub fn release(&self, offer: Offer) {
        let slot = self.slot(offer);
        let seen = slot.st.load(Ordering::Acquire);
        if (seen >> 8) as u32 == offer.generation {
            slot.st.exchange(seen, with_state(seen, State::Free));
        }
    }

    fn is_reusable(&self, slot: &OfferSlot, st: u64) -> bool {
        match state_of(st) {
            State::Free | State::Cancelled => true,
            // Its seat is not in the slot yet.
            State::Writing => self.seats.is_vacant_number((st >> 40) as u32),
            _ => self.is_abandoned(slot),
        }
    }

    /// The client is gone without giving the slot back.
    fn is_abandoned(&self, slot: &OfferSlot) -> bool {
        let seat = slot.seat.load(Ordering::Relaxed);
        self.seats.is_vacant(Seat::from_bits(seat))
    }

    // ---- for `headwater stat` ----

    pub fn connections(&self) -> Vec<Connection> {
        let live = |slot: &OfferSlot| {
            let state = state_of(slot.st.load(Ordering::Acquire));
            matches!(state, State::Accepted | State::Attached) && !self.is_abandoned(slot)
        };
        self.at
            .offers
            .iter()
            .filter(|slot| live(slot))
            .map(|slot| Connection {
                tuple: slot.tuple(),
                client: Owner::from_bits(slot.client.load(Ordering::Relaxed)),
                server: Owner::from_bits(slot.server.load(Ordering::Relaxed)),
                attached: slot.st.load(Ordering::Acquire) as u8 == State::Attached as u8,
                since: slot.since.load(Ordering::Relaxed),
                bytes: [0, 1].map(|i| slot.bytes[i].load(Ordering::Relaxed)),
            })
            .collect()
    }

    pub fn listeners(&self) -> Vec<Listener> {
        self.at
            .listeners
            .iter()
            .filter_map(|slot| {
                let seat = slot.seat();
                let owner = Owner::from_bits(slot.owner.load(Ordering::Relaxed));
                let port = slot.port.load(Ordering::Relaxed) as u16;
                (seat.bits() != 0 && port != 0 && !self.seats.is_vacant(seat)).then(|| Listener {
                    addr: Addr {
                        ip: slot.ip(),
                        port,
                    },
                    owner,
                    netns: slot.netns.load(Ordering::Relaxed),
                })
            })
            .collect()
    }
}

impl ListenerSlot {
    fn seat(&self) -> Seat {
        Seat::from_bits(self.seat.load(Ordering::Acquire))
    }
    fn ip(&self) -> u128 {
        join(self.ip.each_ref().map(|word| word.load(Ordering::Relaxed)))
    }
    /// Takes the slot, free or left behind, for a listener of this process. False: somebody was faster.
    fn take(&self, seen: Seat, me: Seat, addr: Addr, netns: u64) -> bool {
        if !self.seat.exchange(seen.bits(), me.bits()) {
            return false;
        }
        self.port.store(0, Ordering::Relaxed);
        for (word, half) in self.ip.iter().zip(split(addr.ip)) {
            word.store(half, Ordering::Relaxed);
        }
        self.netns.store(netns, Ordering::Relaxed);
        self.owner.store(process::owner().bits(), Ordering::Relaxed);
        self.account.store(0, Ordering::Relaxed);
        self.port.store(addr.port as u64, Ordering::Release);
        true
    }
    fn clear(&self, of: Seat) {
        self.seat.exchange(of.bits(), 0);
    }
    /// Would a connection to `to` end here?
    fn serves(&self, to: Addr, netns: u64) -> bool {
        self.port.load(Ordering::Relaxed) == to.port as u64
            && self.netns.load(Ordering::Relaxed) == netns
            && (self.ip() == to.ip || is_any(self.ip()) || is_any(to.ip))
    }
    fn matches(&self, addr: Addr, netns: u64) -> bool {
        self.port.load(Ordering::Relaxed) == addr.port as u64
            && self.netns.load(Ordering::Relaxed) == netns
            && self.ip() == addr.ip
    }
}

impl OfferSlot {
    fn write(&self, t: &Tuple, seat: Seat) {
        self.seat.store(seat.bits(), Ordering::Relaxed);
        for (word, value) in self.tuple.iter().zip(t.words()) {
            word.store(value, Ordering::Relaxed);
        }
        self.client
            .store(process::owner().bits(), Ordering::Relaxed);
        self.server.store(0, Ordering::Relaxed);
        self.client_uid.store(sys::getuid(), Ordering::Relaxed);
        self.since
            .store(sys::now() / 1_000_000_000, Ordering::Relaxed);
        for word in &self.bytes {
            word.store(0, Ordering::Relaxed);
        }
    }

    fn tuple(&self) -> Tuple {
        let word = |word: &AtomicU64| word.load(Ordering::Relaxed);
        Tuple::of_words(self.tuple.each_ref().map(word))
    }

    /// The process that offers.
    pub fn client(&self) -> Owner {
        Owner::from_bits(self.client.load(Ordering::Relaxed))
    }

    /// The claimer signs before it advances the state.
    pub fn sign(&self, link: u64, segment: u64) {
        self.server
            .store(process::owner().bits(), Ordering::Relaxed);
        self.link.store(link, Ordering::Relaxed);
        self.segment.store(segment, Ordering::Release);
    }
}

/// The endpoint in a socket address; `None` unless it is IPv4 or IPv6.
pub fn addr_of(sa: &libc::sockaddr_storage) -> Option<Addr> {
    match sa.ss_family as i32 {
        libc::AF_INET => {
            // SAFETY: the family says so, and the storage is large enough.
            let sin = unsafe { &*(sa as *const _ as *const libc::sockaddr_in) };
            let v4 = u32::from_be(sin.sin_addr.s_addr);
            Some(Addr {
                ip: v4_mapped(v4),
                port: u16::from_be(sin.sin_port),
            })
        }
        libc::AF_INET6 => {
            // SAFETY: the family says that it is one of IPv6, and the storage has room for every family's.
            let sin6 = unsafe { &*(sa as *const _ as *const libc::sockaddr_in6) };
            Some(Addr {
                ip: u128::from_be_bytes(sin6.sin6_addr.s6_addr),
                port: u16::from_be(sin6.sin6_port),
            })
        }
        _ => None,
    }
}

fn v4_mapped(v4: u32) -> u128 {
    0xffff << 32 | v4 as u128
}

fn is_any(ip: u128) -> bool {
    ip == 0 || ip == v4_mapped(0)
}

fn state_of(st: u64) -> State {
    match st as u8 {
        1 => State::Writing,
        2 => State::Offered,
        3 => State::Accepted,
        4 => State::Attached,
        5 => State::Cancelled,
        _ => State::Free,
    }
}

fn word(seat: Seat, generation: u32, state: State) -> u64 {
    (seat.number() as u64) << 40 | (generation as u64) << 8 | state as u64
}

fn with_state(word: u64, state: State) -> u64 {
    word & !0xff | state as u64
}

fn join([low, high]: [u64; 2]) -> u128 {
    low as u128 | (high as u128) << 64
}

fn split(ip: u128) -> [u64; 2] {
    [ip as u64, (ip >> 64) as u64]
}

fn offer_probes(t: &Tuple) -> impl Iterator<Item = usize> + use<> {
    let mut h = t.netns ^ (t.client.port as u64) << 48 ^ (t.server.port as u64) << 32;
    for part in [t.client.ip, t.server.ip] {
        h = (h ^ part as u64 ^ (part >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        h ^= h >> 29;
    }
    let first = (h >> 20) as usize % OFFERS;
    (0..PROBES).map(move |i| (first + i) % OFFERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board() -> (tempfile::TempDir, Board) {
        process::identify();
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("run");
        let board = Board::open(folder.to_str().unwrap(), true).unwrap();
        (dir, board)
    }

    fn tuple(port: u16) -> Tuple {
        let ip = v4_mapped(0x7f00_0001);
        Tuple {
            client: Addr { ip, port },
            server: Addr { ip, port: 80 },
            netns: process::netns(),
        }
    }

    #[test]
    fn an_offer_is_found_by_its_tuple_and_taken_once() {
        let (_dir, b) = board();
        let made = b.offer(tuple(1000)).unwrap();
        b.offer(tuple(1001)).unwrap();
        let found = b.find(&tuple(1000)).unwrap();
        assert_eq!(made, found);
        assert!(b.advance(found, State::Offered, State::Accepted));
        assert!(!b.advance(found, State::Offered, State::Cancelled));
        assert!(b.find(&tuple(1000)).is_none());
        assert!(b.advance(made, State::Accepted, State::Attached));
        assert_eq!(b.connections().len(), 1);
        b.release(made);
        assert_eq!(b.state(made), State::Free);
    }

    #[test]
    fn a_released_slot_ignores_its_former_owner() {
        let (_dir, b) = board();
        let old = b.offer(tuple(7)).unwrap();
        b.release(old);
        let new = b.offer(tuple(7)).unwrap();
        assert_eq!((old.slot, old.generation + 1), (new.slot, new.generation));
        assert!(!b.advance(old, State::Offered, State::Accepted));
        b.release(old);
        assert_eq!(b.state(new), State::Offered);
    }

    #[test]
    fn a_wildcard_listener_serves_every_address() {
        let (_dir, b) = board();
        let to = tuple(0).server;
        assert!(b.account(to).is_none());
        let any = Addr { ip: 0, port: 80 };
        assert!(b.post_listener(any) == Posting::Done && b.account(to).is_some());
        b.remove_listener(any);
        assert!(b.account(to).is_none());
    }

    #[test]
    fn versions_do_not_meet() {
        let (dir, ours) = board();
        let folder = dir.path().join("run");
        let next = Board::open_version(folder.to_str().unwrap(), ABI + 1, true).unwrap();
        let addr = tuple(0).server;
        assert_eq!(next.post_listener(addr), Posting::Done);
        assert!(next.account(addr).is_some() && ours.account(addr).is_none());
        assert_eq!(ours.post_listener(addr), Posting::Done);
        next.remove_listener(addr);
        assert!(ours.account(addr).is_some() && !ours.is_replaced());
    }

    #[test]
    fn a_listener_is_posted_once() {
        let (_dir, b) = board();
        let addr = tuple(0).server;
        for _ in 0..2 * PROBES {
            assert_eq!(b.post_listener(addr), Posting::Done);
        }
        assert_eq!(b.listeners().len(), 1);
        let others = (1..=PROBES as u128).map(|ip| Addr { ip, port: 80 });
        let posted: Vec<_> = others.map(|addr| b.post_listener(addr)).collect();
        assert_eq!(posted.last(), Some(&Posting::Full));
        assert!(posted[..PROBES - 1].iter().all(|p| *p == Posting::Done));
    }
}
