//! Where datagrams to a place go: looked up once, and again when the owner of the ring has gone, when somebody may have come,
//! or when the address may have moved.

use core::time::Duration;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use headwater_host::sys;
use headwater_ipnet::Address;
use headwater_streams::head::Head;

use super::here::Here;
use super::names::{self, Name};
use crate::loopback::connectionless::Own;
use crate::loopback::directory::{Lost, Route, SeenEnds};
use crate::loopback::{Owned, Space, name};

/// Rings of others that are kept mapped.
const MOST_RINGS: usize = 32;
/// Places that are known to have none.
const MOST_OTHERS: usize = 4096;
/// Nanoseconds for which it is not asked again whether a place on this host, or elsewhere, has got a ring; whether the address
/// is still here, or has a nearer owner; and for which an owner that did not answer is left in peace.
const ASK_HERE: u64 = Duration::from_millis(100).as_nanos() as u64;
const ASK_ELSEWHERE: u64 = Duration::from_secs(1).as_nanos() as u64;
const ASK_RING: u64 = Duration::from_secs(1).as_nanos() as u64;
const ASK_SILENT: u64 = Duration::from_secs(10).as_nanos() as u64;

/// What is known of a place.
pub enum Way<'a> {
    Ring(&'a RingWay),
    Wire,
    Unknown,
}

/// A ring to put into.
pub struct RingWay {
    to: Address,
    name: Name,
    route: Route,
    /// The sender's address, as the owner of the ring is to see it.
    pub from: Address,
    /// Nothing can become different before.
    until: u64,
}

impl RingWay {
    #[inline]
    pub fn head(&self) -> &'static Head {
        self.route.head
    }

    #[inline]
    fn is_good(&self) -> bool {
        !self.route.is_over() && (self.until == u64::MAX || sys::now_roughly() < self.until)
    }
}

type Place = (IpAddr, u16);

#[derive(Default)]
pub struct Ways {
    rings: Vec<RingWay>,
    /// The one used last.
    last: usize,
    ends: SeenEnds,
    /// Places without one, and until when that holds.
    others: HashMap<Place, u64>,
    last_other: (Address, u64),
    here: Here,
    /// For asking whether a name is anybody's.
    probe: Option<Owned>,
}

impl Ways {
    #[inline]
    pub fn find(&mut self, to: &Address) -> Way<'_> {
        match self.rings.get(self.last) {
            Some(way) if way.to == *to && way.is_good() => {}
            _ => {
                if self.last_other.0 == *to && sys::now_roughly() < self.last_other.1 {
                    return Way::Wire;
                }
                if !self.find_slowly(to) {
                    return self.find_other(to);
                }
            }
        }
        Way::Ring(&self.rings[self.last])
    }

    /// Nothing is kept of owners that have gone. May there have been any?
    #[inline(always)]
    pub fn drop_ended(&mut self) -> bool {
        let more = self.ends.are_more();
        if more {
            self.drop_over();
        }
        more
    }

    #[cold]
    fn drop_over(&mut self) {
        self.rings.retain(|way| !way.route.is_over());
    }

    /// Another of the rings?
    fn find_slowly(&mut self, to: &Address) -> bool {
        match self.rings.iter().position(|way| way.to == *to) {
            Some(at) if self.rings[at].is_good() || self.renew(at) => {
                self.last = at;
                true
            }
            Some(at) => {
                drop(self.rings.remove(at));
                false
            }
            None => false,
        }
    }

    fn find_other(&mut self, to: &Address) -> Way<'_> {
        match self.others.get(&destination(to)) {
            Some(&until) if sys::now_roughly() < until => {
                self.last_other = (*to, until);
                Way::Wire
            }
            _ => Way::Unknown,
        }
    }

    /// Asks who has `to`, for an endpoint that is bound to `at`.
    pub fn look_up(&mut self, to: &Address, at: &Address, own: Option<&Own>) {
        let mut until = ASK_HERE;
        let (ip, port) = destination(to);
        let source = if names::is_link_local(&ip) {
            None
        } else {
            self.here.source(ip)
        };
        match source {
            Some(source) => {
                let found = sender(at, source).map(|from| self.search(to, from, own));
                match found {
                    Some(Ok(Some(way))) => {
                        self.others.remove(&(ip, port));
                        return self.keep(way);
                    }
                    // Not to be had, for some reason: the kernel serves meanwhile.
                    Some(Err(_)) => until = ASK_SILENT,
                    Some(Ok(None)) | None => {}
                }
            }
            None => until = ASK_ELSEWHERE,
        }
        if self.others.len() >= MOST_OTHERS {
            self.others.clear();
        }
        let until = sys::now_roughly() + until;
        self.others.insert((ip, port), until);
        self.last_other = (*to, until);
    }

    fn search(
        &mut self,
        to: &Address,
        from: Address,
        own: Option<&Own>,
    ) -> Result<Option<RingWay>, Lost> {
        let (ip, port) = destination(to);
        for (at, name) in names::of_destination(ip, port).into_iter().enumerate() {
            let found = match own {
                Some(own) if own.addr == name => Route::to_self(&name, own.head),
                _ if !self.is_taken(&name) => continue,
                _ => Route::find(Space::Udp2, &name),
            };
            let route = match found {
                Ok(route) => route,
                Err(Lost::Nobody) => continue,
                Err(lost) => return Err(lost),
            };
            let is_fixed = at == 0 && ip.is_loopback();
            return Ok(Some(RingWay {
                to: *to,
                from: as_seen_by(&name, &from),
                name,
                route,
                until: if is_fixed {
                    u64::MAX
                } else {
                    sys::now_roughly() + ASK_RING
                },
            }));
        }
        Ok(None)
    }

    fn keep(&mut self, way: RingWay) {
        self.drop_over();
        if self.rings.len() >= MOST_RINGS {
            self.rings.remove(0);
        }
        self.rings.push(way);
        self.last = self.rings.len() - 1;
    }

    /// Is a ring still the right one, though its time is over?
    fn renew(&mut self, at: usize) -> bool {
        let way = &self.rings[at];
        if way.route.is_over() {
            return false;
        }
        let ((ip, port), own_name) = (destination(&way.to), way.name.clone());
        let is_here = self.here.source(ip).is_some();
        let mut nearer = names::of_destination(ip, port)
            .into_iter()
            .take_while(|name| *name != own_name);
        if !is_here || nearer.any(|name| self.is_taken(&name)) {
            return false;
        }
        self.rings[at].until = sys::now_roughly() + ASK_RING;
        true
    }

    /// Has anybody of this user the name?
    fn is_taken(&mut self, wanted: &[u8]) -> bool {
        let Some(probe) = self.probe.take().or_else(|| name::socket().ok()) else {
            return false;
        };
        match name::connect(probe.number(), Space::Udp2, wanted) {
            Err(libc::ECONNREFUSED) => {
                // Which leaves a socket as it was, if nobody was there.
                self.probe = Some(probe);
                false
            }
            Err(_) | Ok(()) => true,
        }
    }

    /// What is in the ring for `to` makes no sense: the kernel, for a while.
    pub fn spoiled(&mut self, to: &Address) {
        self.rings.retain(|way| way.to != *to);
        self.others
            .insert(destination(to), sys::now_roughly() + ASK_ELSEWHERE);
    }

    /// Has the owner of this ring gone?
    pub fn is_over(&self, head: &Head) -> bool {
        !self
            .rings
            .iter()
            .any(|way| core::ptr::eq(way.route.head, head) && !way.route.is_over())
    }

    pub fn forked(&mut self) {
        self.here.forked();
        self.probe = None;
    }
}

/// Who is meant: IPv4 in IPv6 is IPv4, and no address is this host's.
fn destination(to: &Address) -> Place {
    let ip = match to.ip().to_canonical() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    (ip, to.port())
}

/// The address and port that a datagram comes from; `None`: the kernel would not send it.
fn sender(at: &Address, source: IpAddr) -> Option<Address> {
    let ip = match at.ip().to_canonical() {
        ip if ip.is_unspecified() => source,
        ip if ip.is_ipv4() == source.is_ipv4() => ip,
        _ => return None,
    };
    Some(Address::of_ip(ip, at.port()))
}

/// An endpoint of IPv6 sees IPv4 in it.
fn as_seen_by(owner: &[u8], from: &Address) -> Address {
    match from.ip() {
        IpAddr::V4(ip) if names::is_v6(owner) => {
            Address::of_ip(IpAddr::V6(ip.to_ipv6_mapped()), from.port())
        }
        _ => *from,
    }
}
