//! Chunks into packets.

use super::outstanding::{Chunk, State};
use super::store::{Part, Slot};
use super::{MOST_OUTSTANDING, Sender};
use crate::recv::OVERHEAD;
use crate::wire::{DataHead, PacketBuilder};
use crate::{Mid, Path, PathId, Paths, Ssn, Time, Timer, Timers, Tsn};

/// The common header of a packet.
const COMMON: usize = 12;

/// The longest fragment: a chunk's length has 16 bits.
const LONGEST: usize = 65_000;

impl Sender {
    /// May something go out on this path now? What was lost goes first, on whichever path; then new data, as far as the congestion
    /// window, the burst limit, the peer's window and Nagle let it.
    pub fn wants(&self, now: Time, id: PathId, paths: &Paths) -> bool {
        let Some(path) = paths.get(id) else {
            return false;
        };
        let open = path.flight < self.limit(id, path);
        if !self.out.lost.is_empty() {
            return self.fast || open;
        }
        if !open || self.out.len() >= MOST_OUTSTANDING {
            return false;
        }
        let Some((_, slot)) = self.queues.turn() else {
            return false;
        };
        let part = &self.store[slot];
        if part.deadline <= now && self.may_abandon(slot) {
            return true;
        }
        let size = part
            .unsent()
            .min(self.largest_fragment(path.mtu))
            .min(self.most_fragment);
        self.window_takes(size) && !self.waits_for_company(path)
    }

    /// Puts DATA or I-DATA chunks into the packet, and says how many.
    pub fn fill(
        &mut self,
        now: Time,
        id: PathId,
        paths: &mut Paths,
        timers: &mut Timers,
        packet: &mut PacketBuilder<'_>,
    ) -> usize {
        let Some(path) = paths.get_mut(id) else {
            return 0;
        };
        let side = self.out.side(id);
        if path.flight == 0 && side.last_sent != Time(0) {
            let (idle, rto) = (now.since(side.last_sent), path.rto.current());
            if idle > rto {
                path.window.on_idle(now, idle, rto);
                side.last_sent = now;
            }
        }
        let (mut chunks, moved) = self.fill_lost(now, id, paths, timers, packet);
        if !moved {
            chunks += self.fill_new(now, id, &mut paths[id], packet, chunks > 0);
        }
        self.queues.packet_done();
        if chunks > 0 {
            let path = &paths[id];
            let side = self.out.side(id);
            side.peak = path.flight;
            side.last_sent = now;
            timers.set_if_stopped(Timer::T3(id), now + path.rto.current());
        }
        self.debug_check(paths);
        chunks
    }

    /// Where the next message wants to go, if that is not where it would go anyway.
    pub fn wished_path(&self, paths: &Paths) -> Option<PathId> {
        let part = self.next_choosy()?;
        let id = paths.find(part.about.to?)?;
        paths[id].is_usable().then_some(id)
    }

    /// The key that the next message wants its packet signed with.
    pub fn wished_key(&self) -> Option<u16> {
        self.next_choosy()?.about.key
    }

    /// The message in front, where messages have wishes.
    fn next_choosy(&self) -> Option<&Part> {
        if !self.has_preferences || !self.out.lost.is_empty() {
            return None;
        }
        let (_, slot) = self.queues.turn()?;
        Some(&self.store[slot])
    }

    /// The path on which the next chunk to be retransmitted was lost by T3: another one is to be preferred (RFC 9260 section 6.4.1).
    /// Fast retransmissions go where the data went.
    pub fn lost_on(&self) -> Option<PathId> {
        let chunk = self.out.get(*self.out.lost.first()?);
        self.out.path_of(chunk).filter(|_| chunk.timed_out)
    }

    /// Where the chunk went that probes the peer's shut window.
    pub fn probed_path(&self) -> Option<PathId> {
        let probe = self.probe.filter(|probe| *probe >= self.out.first())?;
        let chunk = self.out.get(probe);
        (chunk.state == State::InFlight).then_some(chunk.path)
    }

    /// Chunks that wait to be retransmitted.
    pub fn lost(&self) -> usize {
        self.out.lost.len()
    }

    /// Retransmissions; how many, and whether some of them change their path.
    fn fill_lost(
        &mut self,
        now: Time,
        id: PathId,
        paths: &mut Paths,
        timers: &mut Timers,
        packet: &mut PacketBuilder<'_>,
    ) -> (usize, bool) {
        let (mut count, mut moved) = (0, false);
        let fast = self.fast;
        let limit = self.limit(id, &paths[id]);
        let mtu = paths[id].mtu;
        while let Some(place) = self.out.lost.first().copied() {
            if !fast && paths[id].flight >= limit {
                break;
            }
            let chunk = *self.out.get(place);
            if self.gives_up(&chunk, now) {
                self.abandon(chunk.slot);
                debug_assert!(
                    self.out.lost.first() != Some(&place),
                    "given up, and still to be sent again"
                );
                continue;
            }
            let size = DataHead::len(self.config.interleave) + usize::from(chunk.len);
            // A chunk that was cut for a longer path MTU can't be cut again: it goes alone, in a packet that IP has to fragment.
            let too_long = size > self.whole(mtu) && is_whole(packet, mtu);
            if size > packet.room() && (!too_long || count > 0) {
                break;
            }
            if usize::from(chunk.len) > self.peer_window() {
                self.probe = Some(place);
            }
            let earlier = self.out.path_of(&chunk);
            let again = self.out.send_again(place, id, paths);
            self.put(place, &again, packet);
            paths[id].retransmissions += 1;
            self.counts.again += 1;
            moved |= earlier.is_some_and(|earlier| earlier != id);
            count += 1;
            if self.out.earliest(id) == place {
                timers.set(Timer::T3(id), now + paths[id].rto.current());
            }
        }
        if count > 0 || self.out.lost.is_empty() {
            self.fast = false;
        }
        (count, moved)
    }

    fn fill_new(
        &mut self,
        now: Time,
        id: PathId,
        path: &mut Path,
        packet: &mut PacketBuilder<'_>,
        in_company: bool,
    ) -> usize {
        let limit = self.limit(id, path);
        let header = DataHead::len(self.config.interleave);
        let whole = self.largest_fragment(path.mtu);
        self.full_chunk = whole;
        let mut count = 0;
        let key = self.wished_key();
        while self.out.lost.is_empty()
            && path.flight < limit
            && self.out.len() < MOST_OUTSTANDING
            && let Some((stream, slot)) = self.queues.turn()
        {
            let part = &self.store[slot];
            if part.deadline <= now && self.may_abandon(slot) {
                self.abandon(slot);
                continue;
            }
            if count == 0 && !in_company && self.waits_for_company(path) {
                break;
            }
            if self.has_preferences && (count > 0 || in_company) {
                let elsewhere = part.about.to.is_some_and(|to| to != path.addr);
                if elsewhere || part.about.key != key {
                    break;
                }
            }
            let rest = part.unsent().min(self.most_fragment);
            let room = packet.room().saturating_sub(header).min(LONGEST);
            let mut size = rest;
            if rest > room {
                // A message that fits a packet is not cut, but waits for the next.
                let fits_alone = part.sent == 0 && rest <= whole;
                if fits_alone && is_whole(packet, path.mtu) && count == 0 && !in_company {
                    self.ill_fitting += 1;
                }
                if room == 0 || fits_alone && self.ill_fitting < 3 {
                    break;
                }
                size = room;
            }
            if !self.window_takes(size) {
                break;
            }
            self.send_new(now, id, path, stream, slot, size, packet);
            count += 1;
        }
        if count > 0 {
            self.ill_fitting = 0;
        }
        count
    }

    #[inline]
    #[allow(clippy::too_many_arguments)]
    fn send_new(
        &mut self,
        now: Time,
        id: PathId,
        path: &mut Path,
        stream: u16,
        slot: Slot,
        size: usize,
        packet: &mut PacketBuilder<'_>,
    ) {
        let place = self.out.next();
        if size > self.peer_window() {
            self.probe = Some(place);
        }
        let at = self.store[slot].sent;
        let fragment = self.queues.take(&mut self.store, stream, size);
        let part = &mut self.store[slot];
        // A message may go on after TSNs began anew.
        let back = u32::try_from(place - part.last).unwrap_or(0);
        part.last = place;
        part.chunks += 1;
        let chunk = Chunk {
            slot,
            at,
            len: size as u16,
            sends: 1,
            fragment,
            back: if at == 0 { 0 } else { back },
            after: place,
            path: id,
            begin: part.begin && at == 0,
            end: part.end && part.unsent() == 0,
            ..Chunk::default()
        };
        self.put(place, &chunk, packet);
        self.out.push(chunk);
        match self.store[slot].about.unordered {
            false => self.counts.ordered += 1,
            true => self.counts.unordered += 1,
        }
        path.flight += size;
        let side = self.out.side(id);
        if side.timed.is_none() {
            side.timed = Some((place, now));
        }
    }

    #[inline]
    fn put(&self, place: u64, chunk: &Chunk, packet: &mut PacketBuilder<'_>) {
        let part = &self.store[chunk.slot];
        let interleaved = self.config.interleave;
        let head = DataHead {
            tsn: Tsn(place as u32),
            stream: part.about.stream,
            ssn: Ssn(part.number as u16),
            mid: Mid(part.number),
            fsn: chunk.fragment,
            ppid: part.about.ppid,
            begin: chunk.begin,
            end: chunk.end,
            unordered: part.about.unordered,
            // RFC 7053 4: a shutdown waits for the acknowledgement.
            immediate: chunk.end && (part.about.sack_now || self.closed),
            interleaved,
        };
        let at = chunk.at as usize;
        packet.data(&head, &part.data[at..at + usize::from(chunk.len)]);
    }

    /// How far the path's flight may go. The congestion window, and Max.Burst (RFC 9260 section 6.1 D): not more at once than the last
    /// SACK acknowledged and some packets. A limit of so many packets alone would choke us wherever packets are received in batches,
    /// with one SACK for each.
    #[inline]
    fn limit(&self, id: PathId, path: &Path) -> usize {
        let window = path.window.window();
        if self.config.max_burst == 0 {
            return window;
        }
        let burst = self.config.max_burst as usize * path.mtu;
        let ceiling = self.out.side_of(id).map_or(0, |side| side.ceiling);
        window.min(ceiling.max(burst))
    }

    /// The peer's window has room, or nothing is in flight: then one chunk may probe it. The window is in bytes, but chunks cost more than
    /// theirs: many small ones would be thrown away that are within it. Beside what waits there, as much again may be overhead, as
    /// [ours](crate::recv) has it.
    #[inline]
    fn window_takes(&self, size: usize) -> bool {
        let overhead = (self.out.len() + 1) * OVERHEAD;
        let within = size <= self.peer_window()
            && overhead + self.out.flight + size <= self.widest + self.window;
        within || self.out.flight == 0
    }

    /// Nagle: less than a packet waits while data is in flight.
    #[inline]
    fn waits_for_company(&self, path: &Path) -> bool {
        let headers = self.queues.parts * DataHead::len(self.config.interleave);
        self.config.nagle
            && !self.closed
            && self.out.flight > 0
            && self.queues.bytes + headers < self.whole(path.mtu)
    }

    /// What chunks may take of a packet.
    #[inline]
    fn whole(&self, mtu: usize) -> usize {
        (mtu & !3).saturating_sub(COMMON + self.overhead)
    }

    /// The longest message that fits a packet of this size, or the longest fragment.
    #[inline]
    pub fn largest_fragment(&self, mtu: usize) -> usize {
        self.whole(mtu)
            .saturating_sub(DataHead::len(self.config.interleave))
            .clamp(4, LONGEST)
    }
}

/// The packet may be as long as the path takes: not one that is to be as long as others before it.
fn is_whole(packet: &PacketBuilder<'_>, mtu: usize) -> bool {
    packet.len() + packet.room() + 3 >= mtu
}
