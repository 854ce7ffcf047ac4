//! The board: a small mapped file in the user's runtime folder where listeners are posted and connections offered.
//!
//! Nothing on it is trusted: it is a hint of where a segment may be had. That the segment is for this very connection is said
//! in the segment, and that the process behind it holds the other end is asked of the kernel where it is another user's. So a
//! wrong entry costs an acceleration, never data. The folder is `/dev/shm/headwater-UID` (HEADWATER_DIR overrides), mode 0700.

use std::ffi::CString;

use headwater_channel::lock::Owner;
use headwater_channel::shm::SharedSafe;

use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};
use crate::{config, process, sys};

const MAGIC: u64 = u64::from_le_bytes(*b"HWBOARD\0");
/// Changes with every change of any shared layout: board, segment header, link messages.
pub const ABI: u32 = 2;
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
        let [client, server] = [self.client.ip, self.server.ip];
        [
            client as u64,
            (client >> 64) as u64,
            server as u64,
            (server >> 64) as u64,
            (self.client.port as u64) << 16 | self.server.port as u64,
            self.netns,
        ]
    }
}

#[derive(SharedSafe)]
#[repr(C)]
struct Header {
    magic: AtomicU64,
    abi: AtomicU32,
    listeners: AtomicU32,
    offers: AtomicU32,
    slot: AtomicU32,
    reserved: [u64; 5],
}

#[derive(SharedSafe)]
#[repr(C)]
struct ListenerSlot {
    /// Owner bits of the process that posted it; 0: free.
    owner: AtomicU64,
    ip: [AtomicU64; 2],
    netns: AtomicU64,
    port: AtomicU64,
    reserved: [u64; 3],
}

/// State of an offer; the low byte of [`OfferSlot::st`], the rest being the generation.
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
    client_ip: [AtomicU64; 2],
    server_ip: [AtomicU64; 2],
    ports: AtomicU64,
    netns: AtomicU64,
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
    reserved2: u64,
}

#[derive(SharedSafe)]
#[repr(C)]
struct Layout {
    header: Header,
    listeners: [ListenerSlot; LISTENERS],
    offers: [OfferSlot; OFFERS],
}

const _: () = assert!(size_of::<Header>() == 64 && size_of::<ListenerSlot>() == 64);
const _: () = assert!(size_of::<OfferSlot>() == 128);

/// An offer that this process made or claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    pub slot: u32,
    pub generation: u32,
}

/// The mapped board.
pub struct Board {
    at: &'static Layout,
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

/// Why there is no board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenError {
    /// The folder or file could not be made or opened: errno.
    Failed(&'static str, sys::Errno),
    /// The folder or file belongs to somebody else, is a link, or lets others in.
    Unsafe(&'static str),
    /// Another version of Headwater made it.
    OtherVersion,
}

/// Who may use a runtime folder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Access {
    /// This user alone.
    Own,
    /// A group, in a folder that HEADWATER_DIR names, when HEADWATER_PEERS names other users.
    Peers,
}

impl Access {
    /// What owner and mode of a folder or board allow, if that is safe.
    fn of(st: &libc::stat) -> Option<Access> {
        let c = config::get();
        let ours = st.st_uid == sys::getuid();
        if ours && st.st_mode & 0o077 == 0 {
            return Some(Access::Own);
        }
        let by_root = st.st_uid == 0 || ours || c.uid_allowed(sys::getuid(), st.st_uid, st.st_gid);
        let shared = !c.peers.is_empty() && c.dir.is_some();
        (shared && by_root && st.st_mode & 0o007 == 0).then_some(Access::Peers)
    }

    fn mode(self) -> u32 {
        if self == Access::Own { 0o600 } else { 0o660 }
    }
}

/// The runtime folder of this user.
pub fn folder() -> String {
    config::get()
        .dir
        .clone()
        .unwrap_or_else(|| format!("/dev/shm/headwater-{}", sys::getuid()))
}

/// Maps a file of the runtime folder, at least `size` bytes long and zeroed at first, for the life of the process. Folder
/// and file are made when `create` and they are not there.
pub fn map_shared(
    folder: &str,
    file: &str,
    size: usize,
    create: bool,
) -> Result<*mut u8, OpenError> {
    let failed = |what| move |e| OpenError::Failed(what, e);
    let dir = CString::new(folder).map_err(|_| OpenError::Failed("folder", libc::EINVAL))?;
    if create
        && let Err(e) = sys::mkdir(&dir, 0o700)
        && e != libc::EEXIST
    {
        return Err(OpenError::Failed("folder", e));
    }
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    let fd = sys::open(&dir, flags, 0).map_err(failed("folder"))?;
    let st = sys::fstat(fd);
    let _ = sys::close(fd);
    let st = st.map_err(failed("folder"))?;
    let access = Access::of(&st).ok_or(OpenError::Unsafe("folder"))?;
    let path = CString::new(format!("{folder}/{file}"))
        .map_err(|_| OpenError::Failed("board", libc::EINVAL))?;
    let flags = libc::O_RDWR | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    let flags = if create { flags | libc::O_CREAT } else { flags };
    let fd = sys::open(&path, flags, access.mode()).map_err(failed("board"))?;
    let at = map_checked(fd, access, size);
    let _ = sys::close(fd);
    at
}

fn map_checked(fd: i32, access: Access, size: usize) -> Result<*mut u8, OpenError> {
    let failed = |e| OpenError::Failed("board", e);
    let mut st = sys::fstat(fd).map_err(failed)?;
    if access == Access::Peers && st.st_uid == sys::getuid() {
        // The umask may have taken away what the folder grants.
        let _ = sys::fchmod(fd, access.mode());
        st = sys::fstat(fd).map_err(failed)?;
    }
    if Access::of(&st) != Some(access) {
        return Err(OpenError::Unsafe("board"));
    }
    if (st.st_size as usize) < size {
        sys::ftruncate(fd, size as u64).map_err(failed)?;
    }
    let rw = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a fresh shared mapping of a file at least that long; it is never unmapped.
    unsafe { sys::mmap(0, size, rw, libc::MAP_SHARED, fd, 0) }.map_err(failed)
}

impl Board {
    /// Opens the user's board, making folder and file when `create` and they are not there.
    pub fn open(folder: &str, create: bool) -> Result<Board, OpenError> {
        // The layout's version is part of the name: different versions simply do not meet.
        let file = format!("board.{ABI}");
        let at = map_shared(folder, &file, size_of::<Layout>(), create)?;
        // SAFETY: mapped for the life of the process, and any bits are valid.
        let at = unsafe { &*(at as *const Layout) };
        let h = &at.header;
        if h.magic.load(Ordering::Acquire) == 0 {
            h.abi.store(ABI, Ordering::Relaxed);
            h.listeners.store(LISTENERS as u32, Ordering::Relaxed);
            h.offers.store(OFFERS as u32, Ordering::Relaxed);
            h.slot
                .store(size_of::<OfferSlot>() as u32, Ordering::Relaxed);
            h.magic.store(MAGIC, Ordering::Release);
        }
        if h.magic.load(Ordering::Acquire) != MAGIC || h.abi.load(Ordering::Relaxed) != ABI {
            return Err(OpenError::OtherVersion);
        }
        Ok(Board { at })
    }

    // ---- listeners ----

    /// Posts a listener of this process. False when the board is full.
    pub fn post_listener(&self, addr: Addr) -> bool {
        let me = process::owner();
        for i in listener_probes(addr.port) {
            let slot = &self.at.listeners[i];
            let seen = slot.owner.load(Ordering::Acquire);
            if seen == me.bits() && slot.matches(addr, process::netns()) {
                return true;
            }
            if (seen == 0 || process::dead(Owner::from_bits(seen)))
                && slot
                    .owner
                    .compare_exchange(seen, me.bits(), Ordering::AcqRel, Ordering::Relaxed)
                    .is_ok()
            {
                slot.ip[0].store(addr.ip as u64, Ordering::Relaxed);
                slot.ip[1].store((addr.ip >> 64) as u64, Ordering::Relaxed);
                slot.netns.store(process::netns(), Ordering::Relaxed);
                slot.port.store(addr.port as u64, Ordering::Release);
                return true;
            }
        }
        false
    }

    /// Takes back this process's posting.
    pub fn remove_listener(&self, addr: Addr) {
        let me = process::owner().bits();
        for i in listener_probes(addr.port) {
            let slot = &self.at.listeners[i];
            if slot.owner.load(Ordering::Acquire) == me && slot.matches(addr, process::netns()) {
                slot.port.store(0, Ordering::Relaxed);
                slot.owner.store(0, Ordering::Release);
            }
        }
    }

    /// Is somebody with the library listening where a connection to `addr` of this network namespace would end?
    pub fn has_listener(&self, addr: Addr) -> bool {
        let netns = process::netns();
        listener_probes(addr.port).any(|i| {
            let slot = &self.at.listeners[i];
            slot.owner.load(Ordering::Acquire) != 0
                && slot.port.load(Ordering::Relaxed) == addr.port as u64
                && slot.netns.load(Ordering::Relaxed) == netns
                && (slot.ip() == addr.ip || is_any(slot.ip()) || is_any(addr.ip))
        })
    }

    // ---- offers ----

    /// Posts an offer for `tuple`. `None`: no slot near its place.
    pub fn offer(&self, tuple: Tuple) -> Option<Offer> {
        for i in offer_probes(&tuple) {
            let slot = &self.at.offers[i];
            let seen = slot.st.load(Ordering::Acquire);
            if !slot.is_reusable(seen) {
                continue;
            }
            let generation = (seen >> 8) as u32 + 1;
            let writing = word(generation, State::Writing);
            if slot
                .st
                .compare_exchange(seen, writing, Ordering::AcqRel, Ordering::Relaxed)
                .is_err()
            {
                continue;
            }
            slot.write(&tuple);
            slot.st
                .store(word(generation, State::Offered), Ordering::Release);
            return Some(Offer {
                slot: i as u32,
                generation,
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
        let g = offer.generation;
        self.slot(offer)
            .st
            .compare_exchange(
                word(g, from),
                word(g, to),
                Ordering::AcqRel,
                Ordering::Acquire,
            )
            .is_ok()
    }

    /// Gives the slot back, whatever its state.
    pub fn release(&self, offer: Offer) {
        let slot = self.slot(offer);
        let seen = slot.st.load(Ordering::Acquire);
        if (seen >> 8) as u32 == offer.generation {
            let free = word(offer.generation, State::Free);
            let _ = slot
                .st
                .compare_exchange(seen, free, Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    // ---- for `headwater stat` ----

    pub fn connections(&self) -> Vec<Connection> {
        let live = |slot: &OfferSlot| {
            let state = state_of(slot.st.load(Ordering::Acquire));
            matches!(state, State::Accepted | State::Attached) && !slot.abandoned()
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
                let owner = Owner::from_bits(slot.owner.load(Ordering::Acquire));
                let port = slot.port.load(Ordering::Relaxed) as u16;
                (owner.bits() != 0 && port != 0 && !process::dead(owner)).then(|| Listener {
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
    fn ip(&self) -> u128 {
        join(&self.ip)
    }
    fn matches(&self, addr: Addr, netns: u64) -> bool {
        self.port.load(Ordering::Relaxed) == addr.port as u64
            && self.netns.load(Ordering::Relaxed) == netns
            && self.ip() == addr.ip
    }
}

impl OfferSlot {
    fn write(&self, t: &Tuple) {
        split(&self.client_ip, t.client.ip);
        split(&self.server_ip, t.server.ip);
        let ports = (t.client.port as u64) << 16 | t.server.port as u64;
        self.ports.store(ports, Ordering::Relaxed);
        self.netns.store(t.netns, Ordering::Relaxed);
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
        let ports = self.ports.load(Ordering::Relaxed);
        Tuple {
            client: Addr {
                ip: join(&self.client_ip),
                port: (ports >> 16) as u16,
            },
            server: Addr {
                ip: join(&self.server_ip),
                port: ports as u16,
            },
            netns: self.netns.load(Ordering::Relaxed),
        }
    }

    /// The process that offers.
    pub fn client(&self) -> Owner {
        Owner::from_bits(self.client.load(Ordering::Relaxed))
    }

    pub fn server(&self) -> Owner {
        Owner::from_bits(self.server.load(Ordering::Relaxed))
    }

    /// The claimer signs before it advances the state.
    pub fn sign(&self, link: u64, segment: u64) {
        self.server
            .store(process::owner().bits(), Ordering::Relaxed);
        self.link.store(link, Ordering::Relaxed);
        self.segment.store(segment, Ordering::Release);
    }

    fn is_reusable(&self, st: u64) -> bool {
        match state_of(st) {
            State::Free | State::Cancelled => true,
            State::Writing => false,
            _ => self.abandoned(),
        }
    }

    /// The client is gone without giving the slot back.
    fn abandoned(&self) -> bool {
        process::dead(self.client())
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
            // SAFETY: as above.
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

fn word(generation: u32, state: State) -> u64 {
    (generation as u64) << 8 | state as u64
}

fn join(words: &[AtomicU64; 2]) -> u128 {
    words[0].load(Ordering::Relaxed) as u128 | (words[1].load(Ordering::Relaxed) as u128) << 64
}

fn split(words: &[AtomicU64; 2], ip: u128) {
    words[0].store(ip as u64, Ordering::Relaxed);
    words[1].store((ip >> 64) as u64, Ordering::Relaxed);
}

fn listener_probes(port: u16) -> impl Iterator<Item = usize> {
    let first = (port as usize).wrapping_mul(0x9e37) % LISTENERS;
    (0..PROBES).map(move |i| (first + i) % LISTENERS)
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
        assert!(!b.has_listener(to));
        let any = Addr { ip: 0, port: 80 };
        assert!(b.post_listener(any) && b.has_listener(to));
        b.remove_listener(any);
        assert!(!b.has_listener(to));
    }

    #[test]
    fn a_folder_that_others_may_enter_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let opened = Board::open(dir.path().to_str().unwrap(), true);
        assert_eq!(opened.err(), Some(OpenError::Unsafe("folder")));
    }
}
