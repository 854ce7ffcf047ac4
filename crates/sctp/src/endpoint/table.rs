//! The associations of an endpoint, by name, by address of the peer, and by tag.

use core::net::IpAddr;
use std::collections::HashMap;

use super::AssocId;
use crate::Association;

#[derive(Debug, Default)]
pub(super) struct Table {
    places: Vec<Place>,
    free: Vec<u32>,
    /// Every address of every peer, with its port.
    by_address: HashMap<(IpAddr, u16), AssocId>,
    by_tag: HashMap<u32, AssocId>,
}

#[derive(Debug, Default)]
struct Place {
    generation: u32,
    association: Option<Box<Association>>,
    /// Under what it is listed.
    tag: u32,
    addresses: Vec<(IpAddr, u16)>,
}

impl Table {
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// The name of the association that is inserted next.
    pub fn next_id(&self) -> AssocId {
        match self.free.last() {
            Some(&place) => AssocId {
                place,
                generation: self.places[place as usize].generation,
            },
            None => AssocId {
                place: self.places.len() as u32,
                generation: 0,
            },
        }
    }

    pub fn insert(&mut self, association: Association) -> AssocId {
        let id = association.id();
        if self.free.pop().is_none() {
            self.places.push(Place::default());
        }
        self.places[id.place as usize].association = Some(Box::new(association));
        id
    }

    pub fn get(&self, id: AssocId) -> Option<&Association> {
        let place = self.places.get(id.place as usize)?;
        (place.generation == id.generation).then_some(place.association.as_deref()?)
    }

    pub fn get_mut(&mut self, id: AssocId) -> Option<&mut Association> {
        let place = self.places.get_mut(id.place as usize)?;
        (place.generation == id.generation).then_some(place.association.as_deref_mut()?)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Association> {
        self.places
            .iter()
            .filter_map(|place| place.association.as_deref())
    }

    pub fn find(&self, addr: IpAddr, port: u16) -> Option<AssocId> {
        self.by_address.get(&(addr, port)).copied()
    }

    pub fn find_tag(&self, tag: u32) -> Option<AssocId> {
        self.by_tag.get(&tag).copied()
    }

    /// Lists the association under the tag and the addresses that it has now. Addresses that are another's already stay so.
    pub fn list(&mut self, id: AssocId) {
        let Some(place) = self.places.get_mut(id.place as usize) else {
            return;
        };
        let Some(association) = place.association.as_deref() else {
            return;
        };
        let port = association.peer_port();
        let same = place.tag == association.local_tag()
            && place.addresses.len() == association.paths().len()
            && association
                .paths()
                .iter()
                .all(|(_, path)| place.addresses.contains(&(path.addr, port)));
        if same {
            return;
        }
        let tag = association.local_tag();
        let paths = association.paths().iter();
        let now: Vec<_> = paths.map(|(_, path)| (path.addr, port)).collect();
        let before = core::mem::take(&mut place.addresses);
        if place.tag != tag {
            self.by_tag.remove(&place.tag);
            place.tag = tag;
            self.by_tag.insert(tag, id);
        }
        for address in before.iter().filter(|a| !now.contains(a)) {
            if self.by_address.get(address) == Some(&id) {
                self.by_address.remove(address);
            }
        }
        for address in &now {
            self.by_address.entry(*address).or_insert(id);
        }
        place.addresses = now;
    }

    /// It is over: its tag and its addresses are free again.
    pub fn unlist(&mut self, id: AssocId) {
        let Some(place) = self.places.get_mut(id.place as usize) else {
            return;
        };
        if place.generation != id.generation {
            return;
        }
        if self.by_tag.get(&place.tag) == Some(&id) {
            self.by_tag.remove(&place.tag);
        }
        place.tag = 0;
        for address in core::mem::take(&mut place.addresses) {
            if self.by_address.get(&address) == Some(&id) {
                self.by_address.remove(&address);
            }
        }
    }

    #[cfg(test)]
    pub fn take(&mut self, id: AssocId) -> Option<Box<Association>> {
        self.places[id.place as usize].association.take()
    }

    pub fn remove(&mut self, id: AssocId) {
        self.unlist(id);
        if let Some(place) = self.places.get_mut(id.place as usize)
            && place.generation == id.generation
            && place.association.take().is_some()
        {
            place.generation += 1;
            self.free.push(id.place);
        }
    }
}
