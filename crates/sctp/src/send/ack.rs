//! SACKs.
//!
//! The cost is in what is acknowledged for the first time and in the number of gap blocks: what blocks say again is skipped.

use core::time::Duration;

use super::outstanding::{Chunk, State, difference, normalize};
use super::{Acked, MOST_TAKEN_BACK, SackError, Sender};
use crate::path::PATHS;
use crate::wire::Sack;
use crate::{PathId, Paths, Time, Timer, Timers, Tsn};

/// Missing reports until a chunk is fast retransmitted.
const MISSES: u8 = 3;

/// What one SACK acknowledges for the first time.
#[derive(Default)]
struct Tally {
    /// The cumulative acknowledgement is further than before, and Fast Recovery was on.
    advanced: bool,
    recovering: bool,
    bytes: [usize; PATHS],
    /// What was sent on paths that are gone.
    elsewhere: usize,
    /// Of the bytes of paths what was in flight until now and is cumulatively acknowledged.
    landed: [usize; PATHS],
    /// Paths on which something arrived, and those whose earliest chunk did.
    paths: u64,
    earliest: u64,
    /// One after the highest TSN newly acknowledged; the same of those that were sent just once.
    newest: u64,
    newest_first: u64,
    rtt: Option<(PathId, Duration)>,
}

impl Sender {
    /// Takes a SACK. One that is older than another before is ignored; one that acknowledges what was never sent changes nothing.
    pub fn on_sack(
        &mut self,
        now: Time,
        sack: &Sack<'_>,
        paths: &mut Paths,
        timers: &mut Timers,
    ) -> Result<Acked, SackError> {
        let Some(upto) = self.cumulative(sack.cumulative)? else {
            return Ok(Acked::default());
        };
        let mut gaps = core::mem::take(&mut self.gaps);
        gaps.clear();
        // The TSN after the cumulative one is missing by definition: a block that has it all the same would leave us without any.
        let blocks = sack.gaps().filter(|(first, _)| *first > 0);
        let blocks = blocks.map(|(first, last)| (first.max(2), last));
        for (first, last) in blocks.filter(|(first, last)| first <= last) {
            gaps.push((upto + u64::from(first) - 1, upto + u64::from(last)));
        }
        if gaps.iter().any(|(_, to)| *to > self.out.next()) {
            self.gaps = gaps;
            return Err(SackError);
        }
        normalize(&mut gaps);
        let news = (sack.window as usize, &mut gaps);
        let acked = self.acknowledge(now, upto, Some(news), paths, timers);
        self.gaps = gaps;
        self.debug_check(paths);
        Ok(acked)
    }

    /// Takes the cumulative acknowledgement of a SHUTDOWN.
    pub fn on_cumulative(
        &mut self,
        now: Time,
        cumulative: Tsn,
        paths: &mut Paths,
        timers: &mut Timers,
    ) -> Result<Acked, SackError> {
        let Some(upto) = self.cumulative(cumulative)? else {
            return Ok(Acked::default());
        };
        let acked = self.acknowledge(now, upto, None, paths, timers);
        self.debug_check(paths);
        Ok(acked)
    }

    /// The place after a cumulative acknowledgement; none if it is an old one.
    fn cumulative(&self, tsn: Tsn) -> Result<Option<u64>, SackError> {
        let upto = self.out.place(tsn) + 1;
        if upto > self.out.next() {
            // After TSNs began anew (RFC 6525 5.2.4) those of before, which a late SACK may have, seem to be half the space ahead.
            let former = self.renamed && upto - self.out.next() > 1 << 30;
            return if former { Ok(None) } else { Err(SackError) };
        }
        Ok((upto >= self.out.first()).then_some(upto))
    }

    fn acknowledge(
        &mut self,
        now: Time,
        upto: u64,
        news: Option<(usize, &mut Vec<(u64, u64)>)>,
        paths: &mut Paths,
        timers: &mut Timers,
    ) -> Acked {
        let mut tally = Tally {
            advanced: upto > self.out.first(),
            recovering: self.recovery.is_some(),
            ..Tally::default()
        };
        self.pop_acknowledged(now, upto, &mut tally, paths);
        let window = news.as_ref().map(|(window, _)| *window);
        if let Some((_, gaps)) = news
            && !(gaps.is_empty() && self.out.sacked.is_empty())
        {
            self.take_gaps(now, gaps, &mut tally, paths, timers);
        }
        if self.recovery.is_some_and(|exit| upto >= exit) {
            self.recovery = None;
        }
        let acked = self.grow_windows(now, &tally, paths);
        if !self.out.sacked.is_empty() {
            self.count_missing(now, &tally, paths);
        }
        if let Some(window) = window {
            self.new_window(now, window, paths);
        }
        self.advance();
        self.forward_after_sack(now, paths);
        self.restart_timers(now, &tally, paths, timers);
        Acked {
            all: self.is_idle(),
            ..acked
        }
    }

    fn pop_acknowledged(&mut self, now: Time, upto: u64, tally: &mut Tally, paths: &mut Paths) {
        let from = self.out.first();
        if upto == from {
            return;
        }
        self.taken_back = self.taken_back.saturating_sub(upto - from);
        for place in from..upto {
            let Some(chunk) = self.out.pop() else { break };
            if matches!(chunk.state, State::InFlight | State::Lost) {
                self.tally(now, place, &chunk, tally);
                if chunk.state == State::InFlight {
                    let bit = 1 << chunk.path.0;
                    tally.earliest |= bit;
                    tally.landed[usize::from(chunk.path.0)] += usize::from(chunk.len);
                }
            }
            self.release(&chunk);
        }
        for id in PathId::each(tally.earliest) {
            if let Some(path) = paths.get_mut(id) {
                path.flight -= tally.landed[usize::from(id.0)];
            }
        }
        if self
            .out
            .sacked
            .first()
            .is_some_and(|(start, _)| *start < upto)
        {
            self.out.sacked.retain(|(_, end)| *end > upto);
            if let Some(first) = self.out.sacked.first_mut() {
                first.0 = first.0.max(upto);
            }
        }
    }

    #[inline]
    fn tally(&mut self, now: Time, place: u64, chunk: &Chunk, tally: &mut Tally) {
        tally.newest = place + 1;
        if chunk.sends == 1 {
            tally.newest_first = place + 1;
        }
        // What was given up may never have arrived: it must not open the window.
        let bytes = match chunk.abandoned {
            false => usize::from(chunk.len),
            true => 0,
        };
        let Some(id) = self.out.path_of(chunk) else {
            tally.elsewhere += bytes;
            return;
        };
        tally.paths |= 1 << id.0;
        tally.bytes[usize::from(id.0)] += bytes;
        let side = self.out.side(chunk.path);
        if let Some((timed, since)) = side.timed
            && timed == place
        {
            side.timed = None;
            if chunk.sends == 1 && !chunk.abandoned {
                tally.rtt = Some((chunk.path, now.since(since)));
            }
        }
    }

    /// A chunk is acknowledged for good.
    #[inline]
    fn release(&mut self, chunk: &Chunk) {
        if !chunk.abandoned {
            self.buffered -= usize::from(chunk.len);
        }
        let part = &mut self.store[chunk.slot];
        part.chunks -= 1;
        let stream = part.about.stream;
        let done = part.chunks == 0 && !part.queued;
        self.queues.acked(stream);
        if done {
            self.forget(chunk.slot);
        }
    }

    /// Compares the gap blocks with those of the SACK before. Those of a peer that takes back without end are as good as none: each
    /// change of its mind would cost as much as all that is outstanding.
    fn take_gaps(
        &mut self,
        now: Time,
        gaps: &mut Vec<(u64, u64)>,
        tally: &mut Tally,
        paths: &mut Paths,
        timers: &mut Timers,
    ) {
        if self.taken_back > MOST_TAKEN_BACK {
            gaps.clear();
        }
        let mut earliest = [u64::MAX; PATHS];
        for (id, path) in paths.iter() {
            if path.flight > 0 {
                earliest[usize::from(id.0)] = self.out.earliest(id);
            }
        }
        let old = core::mem::take(&mut self.out.sacked);
        difference(gaps, &old, |from, to| {
            for place in from..to {
                let chunk = *self.out.get(place);
                match chunk.state {
                    State::InFlight => self.out.land(place, State::Acked, paths),
                    State::Lost => {
                        self.out.lost.remove(&place);
                        self.out.get_mut(place).state = State::Acked;
                    }
                    State::Acked | State::Skipped => continue,
                }
                self.tally(now, place, &chunk, tally);
                if earliest[usize::from(chunk.path.0)] == place {
                    tally.earliest |= 1 << chunk.path.0;
                }
            }
        });
        difference(&old, gaps, |from, to| {
            self.taken_back += to - from;
            for place in from..to {
                self.renege(now, place, paths, timers);
            }
        });
        self.out.sacked = old;
        core::mem::swap(&mut self.out.sacked, gaps);
    }

    /// The peer has thrown away what it had acknowledged by a gap block (RFC 9260 section 6.2.1 D iii).
    fn renege(&mut self, now: Time, place: u64, paths: &mut Paths, timers: &mut Timers) {
        let chunk = *self.out.get(place);
        if chunk.state != State::Acked {
            return;
        }
        if chunk.abandoned {
            self.out.get_mut(place).state = State::Skipped;
            return;
        }
        let any = || paths.iter().next().map(|(id, _)| id);
        let Some(id) = self.out.path_of(&chunk).or_else(any) else {
            return;
        };
        self.out.fly(place, id, paths);
        self.out.get_mut(place).missing = 1;
        if let Some(path) = paths.get(id) {
            timers.set_if_stopped(Timer::T3(id), now + path.rto.current());
        }
    }

    fn grow_windows(&mut self, now: Time, tally: &Tally, paths: &mut Paths) -> Acked {
        let (advanced, recovering) = (tally.advanced, tally.recovering);
        let mut bytes = tally.elsewhere;
        for id in PathId::each(tally.paths) {
            let acked = tally.bytes[usize::from(id.0)];
            bytes += acked;
            let Some(path) = paths.get_mut(id) else {
                continue;
            };
            let burst = self.config.max_burst as usize * path.mtu;
            let side = self.out.side(id);
            side.ceiling = path.flight + acked + burst;
            if acked > 0 {
                path.window
                    .on_ack(now, acked, side.peak, advanced, recovering);
            }
        }
        Acked {
            advanced,
            bytes,
            paths: tally.paths,
            all: false,
            rtt: tally.rtt,
        }
    }

    /// Counts missing reports by the HTNA algorithm, and marks what is to be fast retransmitted (RFC 9260 section 7.2.4).
    fn count_missing(&mut self, now: Time, tally: &Tally, paths: &mut Paths) {
        let highest = self.out.sacked.last().map_or(0, |(_, to)| *to);
        let limit = match tally.recovering && tally.advanced {
            true => highest,
            false => highest.min(tally.newest),
        };
        let mut missing = core::mem::take(&mut self.missing);
        missing.clear();
        // RFC 9260 lets a lost retransmission wait for T3. That the peer has what was sent later says as much, much sooner.
        let newest = tally.newest_first;
        self.out.missing(limit, newest, MISSES, &mut missing);
        if !missing.is_empty() {
            self.fast_retransmit(now, &missing, paths);
        }
        self.missing = missing;
    }

    fn fast_retransmit(&mut self, now: Time, missing: &[u64], paths: &mut Paths) {
        let mut hit = 0_u64;
        for place in missing {
            hit |= 1 << self.out.get(*place).path.0;
        }
        if self.recovery.is_none() {
            self.recovery = Some(self.out.next());
            self.fast = true;
            for id in PathId::each(hit) {
                if let Some(path) = paths.get_mut(id) {
                    path.window.on_loss(path.flight);
                }
            }
        }
        for place in missing {
            self.lose(now, *place, paths);
            let chunk = self.out.get_mut(*place);
            chunk.fast = true;
            chunk.timed_out = false;
        }
    }

    /// The peer's new window. If it has opened before a probe was acknowledged, the probe was thrown away, and need not wait for T3.
    fn new_window(&mut self, now: Time, window: usize, paths: &mut Paths) {
        let before = self.window;
        self.window = window;
        self.widest = self.widest.max(window);
        let Some(probe) = self.probe else {
            return;
        };
        if probe < self.out.first() || self.out.get(probe).state != State::InFlight {
            self.probe = None;
        } else if window > before && window >= usize::from(self.out.get(probe).len) {
            self.probe = None;
            self.lose(now, probe, paths);
        }
    }

    fn restart_timers(&mut self, now: Time, tally: &Tally, paths: &Paths, timers: &mut Timers) {
        for (id, path) in paths.iter() {
            let bit = 1 << id.0;
            if path.flight == 0 && !self.forward_pending_on(id) {
                timers.stop(Timer::T3(id));
            } else if tally.earliest & bit != 0 {
                timers.set(Timer::T3(id), now + path.rto.current());
            }
        }
    }
}
