//! The paths of an association: one for each address of the peer.

use core::net::IpAddr;
use core::ops::{Index, IndexMut};
use core::time::Duration;

use crate::{CongestionControl, Pmtu, Rto, Time};

/// Most paths of an association: more addresses than that are not used.
pub const PATHS: usize = 16;

/// An address that a host may have.
pub(crate) fn is_host(addr: IpAddr) -> bool {
    let broadcast = matches!(addr, IpAddr::V4(v4) if v4.is_broadcast());
    !(addr.is_unspecified() || addr.is_multicast() || broadcast)
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PathId(pub u8);

impl PathId {
    /// The paths that have a bit in a set.
    #[inline]
    pub(crate) fn each(mut bits: u64) -> impl Iterator<Item = PathId> {
        core::iter::from_fn(move || {
            let id = PathId(bits.trailing_zeros() as u8);
            (bits != 0).then(|| bits &= bits - 1).map(|()| id)
        })
    }
}

/// In the order of T_SCTP_PATH_INACTIVE and so on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathState {
    Inactive,
    Active,
    /// Too many errors to be used by choice (RFC 7829).
    PotentiallyFailed,
    /// Not yet known to be the peer's (RFC 9260 5.4): nothing but HEARTBEATs go there.
    Unconfirmed,
}

#[derive(Debug)]
pub struct Path {
    pub addr: IpAddr,
    /// The peer's UDP port, where packets are encapsulated (RFC 6951).
    pub encap: Option<u16>,
    /// Our address, as the peer's last packet named it; `None`: the kernel's choice.
    pub from: Option<IpAddr>,
    /// Our address that its last packet came to.
    pub heard: Option<IpAddr>,
    pub state: PathState,
    pub rto: Rto,
    pub window: Box<dyn CongestionControl>,
    /// Bytes of user data outstanding; the sender keeps it.
    pub flight: usize,
    /// The largest packet, SCTP header included.
    pub mtu: usize,
    pub probing: Pmtu,
    pub errors: u32,
    /// When data was last sent there.
    pub last_sent: Time,
    /// The nonce of the HEARTBEAT that is on its way, and when it left.
    pub heartbeat: Option<(u64, Time)>,
    pub heartbeats: bool,
    /// Its own, where they are not the association's: time between HEARTBEATs, errors until it is inactive, and potentially failed.
    pub heartbeat_interval: Option<Duration>,
    pub most_errors: Option<u32>,
    pub potentially_failed: Option<u32>,
    /// A HEARTBEAT is to be sent as soon as may be.
    pub heartbeat_wanted: bool,
    /// The probe for a larger packet that is on its way: its nonce and size.
    pub probe: Option<(u64, usize)>,
    pub retransmissions: u64,
}

impl Path {
    pub fn is_usable(&self) -> bool {
        matches!(self.state, PathState::Active | PathState::PotentiallyFailed)
    }
}

/// The primary is chosen among them by the association. A path that is removed leaves its place empty, so that numbers last.
#[derive(Debug, Default)]
pub struct Paths {
    places: Vec<Option<Box<Path>>>,
}

impl Paths {
    pub fn add(&mut self, path: Path) -> Option<PathId> {
        let place = match self.places.iter().position(Option::is_none) {
            Some(place) => place,
            None if self.places.len() < PATHS => {
                self.places.push(None);
                self.places.len() - 1
            }
            None => return None,
        };
        self.places[place] = Some(Box::new(path));
        Some(PathId(place as u8))
    }

    pub fn remove(&mut self, id: PathId) -> Option<Box<Path>> {
        self.places.get_mut(usize::from(id.0))?.take()
    }

    pub fn get(&self, id: PathId) -> Option<&Path> {
        self.places.get(usize::from(id.0))?.as_deref()
    }

    pub fn get_mut(&mut self, id: PathId) -> Option<&mut Path> {
        self.places.get_mut(usize::from(id.0))?.as_deref_mut()
    }

    pub fn iter(&self) -> impl Iterator<Item = (PathId, &Path)> {
        self.places
            .iter()
            .enumerate()
            .filter_map(|(i, p)| Some((PathId(i as u8), p.as_deref()?)))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (PathId, &mut Path)> {
        self.places
            .iter_mut()
            .enumerate()
            .filter_map(|(i, p)| Some((PathId(i as u8), p.as_deref_mut()?)))
    }

    pub fn ids(&self) -> impl Iterator<Item = PathId> + use<> {
        (0..self.places.len() as u8).map(PathId)
    }

    pub fn find(&self, addr: IpAddr) -> Option<PathId> {
        self.iter().find(|(_, p)| p.addr == addr).map(|(id, _)| id)
    }

    pub fn len(&self) -> usize {
        self.places.iter().flatten().count()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Index<PathId> for Paths {
    type Output = Path;

    fn index(&self, id: PathId) -> &Path {
        self.get(id).expect("a path that is in use")
    }
}

impl IndexMut<PathId> for Paths {
    fn index_mut(&mut self, id: PathId) -> &mut Path {
        self.get_mut(id).expect("a path that is in use")
    }
}
