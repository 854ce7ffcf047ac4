//! Chunks that were sent and are not cumulatively acknowledged.
//!
//! Chunks have places: numbers that do not wrap, and whose lower half is the TSN.
//!
//! From the frontier on nothing has happened to chunks since they were sent. Those before it that are in flight stand in lists of their
//! own, so that what a SACK or a retransmission costs does not grow with what was acknowledged or lost around them.

use std::collections::{BTreeSet, VecDeque};

use super::store::Slot;
use crate::{PathId, Paths, Time, Tsn};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum State {
    /// On its way, as far as we know; counted in its path's flight.
    #[default]
    InFlight,
    /// Acknowledged by a gap block.
    Acked,
    /// To be sent again.
    Lost,
    /// Given up; a FORWARD-TSN passes over it.
    Skipped,
}

/// A chunk; `slot` has the rest.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chunk {
    pub slot: Slot,
    pub at: u32,
    pub len: u16,
    pub sends: u16,
    pub fragment: u32,
    /// So many places before this one is the chunk before it of the same part; 0: it is the first.
    pub back: u32,
    /// The place of the first new chunk after its last retransmission.
    pub after: u64,
    pub path: PathId,
    /// The round of its path in which it came out of flight.
    pub round: u32,
    pub state: State,
    /// Missing reports.
    pub missing: u8,
    pub begin: bool,
    pub end: bool,
    /// Was fast retransmitted in its round. It is so again only if chunks that were first sent after that arrive, and it does not.
    pub fast: bool,
    /// Lost by T3.
    pub timed_out: bool,
    /// Its message was given up.
    pub abandoned: bool,
}

/// What the sender knows of a path.
#[derive(Clone, Debug, Default)]
pub(super) struct Side {
    /// The chunk that times the round trip, and when it was sent.
    pub timed: Option<(u64, Time)>,
    /// The flight that may be reached before the next SACK (Max.Burst).
    pub ceiling: usize,
    /// The flight after data was last sent, and when.
    pub peak: usize,
    pub last_sent: Time,
    /// No chunk from the frontier on and before this one is in flight here.
    untouched: u64,
    /// What is in flight here before the frontier.
    flying: BTreeSet<u64>,
    /// T3 and the end of a path begin a new round, so that neither has to look at all that was ever sent here. Chunks of earlier
    /// rounds than `since` were on another path, which had this number and is gone.
    pub round: u32,
    since: u32,
}

#[derive(Debug, Default)]
pub(super) struct Outstanding {
    /// The place of the first one: one after the cumulative acknowledgement.
    first: u64,
    chunks: VecDeque<Chunk>,
    pub lost: BTreeSet<u64>,
    /// Places that gap blocks have acknowledged: [from, to) in order, apart from each other.
    pub sacked: Vec<(u64, u64)>,
    /// Bytes in flight, of all paths.
    pub flight: usize,
    sides: Vec<Side>,
    frontier: u64,
    /// In flight before the frontier: the chunks that any acknowledgement of a later one reports missing, and those that were fast
    /// retransmitted, by what has to be acknowledged for that.
    holes: BTreeSet<u64>,
    again: BTreeSet<(u64, u64)>,
}

impl Outstanding {
    pub fn new(initial: Tsn) -> Outstanding {
        // Places before the first one exist, for old SACKs.
        let first = (1 << 32) + u64::from(initial.0);
        Outstanding {
            first,
            frontier: first,
            ..Outstanding::default()
        }
    }

    pub fn len(&self) -> usize {
        self.chunks.len()
    }

    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    pub fn first(&self) -> u64 {
        self.first
    }

    /// The place of the next new chunk.
    #[inline]
    pub fn next(&self) -> u64 {
        self.first + self.chunks.len() as u64
    }

    /// The place of a TSN near the first one.
    #[inline]
    pub fn place(&self, tsn: Tsn) -> u64 {
        let distance = tsn.0.wrapping_sub(self.first as u32) as i32;
        self.first.wrapping_add_signed(i64::from(distance))
    }

    #[inline]
    pub fn get(&self, place: u64) -> &Chunk {
        &self.chunks[(place - self.first) as usize]
    }

    #[inline]
    pub fn get_mut(&mut self, place: u64) -> &mut Chunk {
        &mut self.chunks[(place - self.first) as usize]
    }

    pub fn iter(&self) -> impl Iterator<Item = (u64, &Chunk)> {
        (self.first..).zip(&self.chunks)
    }

    #[inline]
    pub fn push(&mut self, chunk: Chunk) {
        if chunk.state == State::InFlight {
            self.flight += usize::from(chunk.len);
        }
        self.chunks.push_back(chunk);
    }

    /// Takes the first one, which is acknowledged. A flight that it was in is left to the caller.
    #[inline]
    pub fn pop(&mut self) -> Option<Chunk> {
        let chunk = self.chunks.pop_front()?;
        match chunk.state {
            State::InFlight => {
                self.flight -= usize::from(chunk.len);
                if self.first < self.frontier {
                    self.unlist(self.first, &chunk);
                }
            }
            State::Lost => {
                self.lost.remove(&self.first);
            }
            State::Acked | State::Skipped => {}
        }
        self.first += 1;
        Some(chunk)
    }

    /// Forgets all of them, as if they were acknowledged.
    pub fn clear(&mut self) {
        self.first = self.next();
        self.chunks.clear();
        self.lost.clear();
        self.sacked.clear();
        self.flight = 0;
        self.sides.clear();
        self.holes.clear();
        self.again.clear();
    }

    pub fn trim(&mut self) {
        self.chunks.shrink_to_fit();
        self.sacked.shrink_to_fit();
    }

    /// TSNs go on at another one, and places too: upwards, so that no place has two meanings. A message that was half sent before
    /// knows places of both kinds.
    pub fn rename(&mut self, next: Tsn) {
        debug_assert!(self.is_empty());
        self.first += u64::from(next.since(Tsn(self.first as u32)));
        self.sides.clear();
    }

    /// The chunk is no more in flight; it becomes `state`.
    pub fn land(&mut self, place: u64, state: State, paths: &mut Paths) {
        let chunk = *self.get(place);
        debug_assert_eq!(chunk.state, State::InFlight);
        if place < self.frontier {
            self.unlist(place, &chunk);
        } else {
            self.move_frontier(place);
            self.frontier = place + 1;
        }
        let (id, len) = (chunk.path, usize::from(chunk.len));
        let round = self.side(id).round;
        let landed = self.get_mut(place);
        (landed.state, landed.round) = (state, round);
        self.flight -= len;
        if let Some(path) = paths.get_mut(id) {
            path.flight -= len;
        }
        if state != State::Acked {
            self.spoil_timing(place, id);
        }
        if state == State::Lost {
            self.lost.insert(place);
        }
    }

    /// The chunk is in flight again, on `path`.
    pub fn fly(&mut self, place: u64, path: PathId, paths: &mut Paths) {
        if self.get(place).state == State::Lost {
            self.lost.remove(&place);
        }
        let before = *self.get(place);
        let fast = before.fast && before.round == self.side(before.path).round;
        let chunk = self.get_mut(place);
        chunk.fast = fast;
        chunk.state = State::InFlight;
        chunk.path = path;
        let chunk = *chunk;
        let len = usize::from(chunk.len);
        self.flight += len;
        if let Some(path) = paths.get_mut(path) {
            path.flight += len;
        }
        debug_assert!(place < self.frontier, "it was in flight before");
        self.list(place, &chunk);
    }

    /// The path that a chunk was sent on last, unless that is gone.
    #[inline]
    pub fn path_of(&self, chunk: &Chunk) -> Option<PathId> {
        let here = |side: &Side| chunk.round >= side.since;
        let stays = chunk.state == State::InFlight || self.side_of(chunk.path).is_none_or(here);
        stays.then_some(chunk.path)
    }

    /// The path is gone, and nothing in flight there.
    pub fn forget_path(&mut self, path: PathId) {
        let side = self.side(path);
        debug_assert!(side.flying.is_empty());
        let round = side.round + 1;
        *side = Side {
            round,
            since: round,
            ..Side::default()
        };
    }

    /// Sends again what was lost, on `path`.
    pub fn send_again(&mut self, place: u64, path: PathId, paths: &mut Paths) -> Chunk {
        let next = self.next();
        let chunk = self.get_mut(place);
        chunk.sends = chunk.sends.saturating_add(1);
        chunk.missing = 0;
        chunk.after = next;
        self.fly(place, path, paths);
        *self.get(place)
    }

    /// Counts a missing report for each chunk in flight before `limit`; for one that was fast retransmitted only where chunks arrived
    /// that were first sent after that, the last of them before `newest`. Hands out those that have had `most`.
    pub fn missing(&mut self, limit: u64, newest: u64, most: u8, into: &mut Vec<u64>) {
        self.move_frontier(limit);
        let again = self.again.range(..(newest, 0));
        let again = again.map(|(_, place)| *place).filter(|at| *at < limit);
        for place in self.holes.range(..limit).copied().chain(again) {
            let chunk = &mut self.chunks[(place - self.first) as usize];
            chunk.missing = chunk.missing.saturating_add(1);
            if chunk.missing >= most {
                into.push(place);
            }
        }
        into.sort_unstable();
    }

    /// What happened before this place may have left chunks in flight there.
    fn move_frontier(&mut self, to: u64) {
        for place in self.frontier.max(self.first)..to {
            let chunk = *self.get(place);
            if chunk.state == State::InFlight {
                self.list(place, &chunk);
            }
        }
        self.frontier = self.frontier.max(to);
    }

    fn list(&mut self, place: u64, chunk: &Chunk) {
        self.side(chunk.path).flying.insert(place);
        match chunk.fast {
            true => self.again.insert((chunk.after, place)),
            false => self.holes.insert(place),
        };
    }

    fn unlist(&mut self, place: u64, chunk: &Chunk) {
        self.side(chunk.path).flying.remove(&place);
        match chunk.fast {
            true => self.again.remove(&(chunk.after, place)),
            false => self.holes.remove(&place),
        };
    }

    #[inline]
    pub fn side(&mut self, path: PathId) -> &mut Side {
        let at = usize::from(path.0);
        if at >= self.sides.len() {
            self.sides.resize_with(at + 1, Side::default);
        }
        &mut self.sides[at]
    }

    #[inline]
    pub fn side_of(&self, path: PathId) -> Option<&Side> {
        self.sides.get(usize::from(path.0))
    }

    /// The first chunk that is in flight on the path.
    pub fn earliest(&mut self, path: PathId) -> u64 {
        let (from, next) = (self.frontier.max(self.first), self.next());
        let side = self.side(path);
        if let Some(place) = side.flying.first() {
            return *place;
        }
        let mut at = side.untouched.max(from);
        while at < next && (self.get(at).state != State::InFlight || self.get(at).path != path) {
            at += 1;
        }
        self.side(path).untouched = at;
        at
    }

    /// The lists have what they should have.
    pub fn check(&self) {
        let old = self.iter().filter(|(place, chunk)| {
            assert!(
                *place < self.frontier || matches!(chunk.state, State::InFlight | State::Skipped),
                "something has happened behind the frontier"
            );
            *place < self.frontier && chunk.state == State::InFlight
        });
        let mut count = 0;
        for (place, chunk) in old {
            let listed = match chunk.fast {
                true => self.again.contains(&(chunk.after, place)),
                false => self.holes.contains(&place),
            };
            let side = &self.sides[usize::from(chunk.path.0)];
            assert!(listed && side.flying.contains(&place), "not listed");
            count += 1;
        }
        let flying = self.sides.iter().map(|side| side.flying.len());
        assert_eq!(flying.sum::<usize>(), count, "listed, and not in flight");
        assert_eq!(self.holes.len() + self.again.len(), count);
    }

    /// A chunk does not time a round trip any more (Karn).
    fn spoil_timing(&mut self, place: u64, path: PathId) {
        let side = self.side(path);
        if side.timed.is_some_and(|(timed, _)| timed == place) {
            side.timed = None;
        }
    }
}

/// Calls `found` with each range that is in `these` and not in `those`; both in order.
pub(super) fn difference(
    these: &[(u64, u64)],
    those: &[(u64, u64)],
    mut found: impl FnMut(u64, u64),
) {
    let mut skip = 0;
    for &(mut from, to) in these {
        while from < to {
            while skip < those.len() && those[skip].1 <= from {
                skip += 1;
            }
            match those.get(skip) {
                Some(&(start, end)) if start <= from => from = end,
                Some(&(start, _)) => {
                    found(from, to.min(start));
                    from = to.min(start);
                }
                None => {
                    found(from, to);
                    from = to;
                }
            }
        }
    }
}

/// Puts ranges into order and joins those that touch.
pub(super) fn normalize(ranges: &mut Vec<(u64, u64)>) {
    let orderly = ranges.windows(2).all(|pair| pair[0].1 < pair[1].0);
    if orderly {
        return;
    }
    ranges.sort_unstable();
    let mut kept = 0;
    for at in 1..ranges.len() {
        let (from, to) = ranges[at];
        if from <= ranges[kept].1 {
            ranges[kept].1 = ranges[kept].1.max(to);
        } else {
            kept += 1;
            ranges[kept] = (from, to);
        }
    }
    ranges.truncate(kept + 1);
}

#[cfg(test)]
mod tests;
