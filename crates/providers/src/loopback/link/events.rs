//! What a link has for its user beside data: what the peer has said, and that it has gone.

use core::time::Duration;

use headwater_host::sys;
use headwater_streams::pipe::words::state;

use super::frames::{Front, Told, front, word};
use super::{End, Link, Phase};
use crate::loopback::request;
use crate::provider::{Arrived, Event};

/// A killed peer leaves no hint: the kernel is asked now and then by who finds nothing, in nanoseconds.
const LOOK_EVERY: u64 = Duration::from_millis(1).as_nanos() as u64;

/// Notes kept at most: a peer's nonsense goes no further.
const MOST_NOTES: usize = 64;

impl Link {
    #[inline]
    pub fn event(&mut self) -> Option<Event> {
        if self.phase == Phase::Open {
            let ring = self.head.incoming();
            // In this order: a special frame is counted before it is seen, so what is seen here is none.
            if self.head.has_visible() && ring.specials() == 0 {
                return Some(Event::Data);
            }
        }
        self.event_slowly()
    }

    /// Takes the event in front, unless it is data.
    pub fn take(&mut self) -> Option<Arrived> {
        let event = self.event()?;
        if matches!(event, Event::Data | Event::ExData) {
            return None;
        }
        let mut bytes = Vec::new();
        let taken = self.head.take_frames(|ring| {
            let Some(Front::Control(frame, word)) = front(ring)? else {
                return Ok(None);
            };
            bytes.resize(frame.len, 0);
            ring.copy_frame(&frame, 0, &mut bytes);
            ring.take(&frame);
            Ok(Some(word))
        });
        let told = taken.ok().flatten().map(|word| (word, Told::read(&bytes)));
        Some(match told {
            Some((word::CONFIRM, told)) => {
                self.phase = Phase::Open;
                self.again = None;
                self.remote = told.addr.clone();
                Arrived::Confirmed {
                    by: told.addr,
                    opts: told.opts,
                    data: told.data,
                }
            }
            Some((word::RELEASE, told)) => {
                self.peer_released = true;
                Arrived::Released { data: told.data }
            }
            Some((_, told)) => {
                self.over = true;
                self.told_of_the_end = true;
                let (reason, data) = (told.reason, told.data);
                End { reason, data }.told()
            }
            None => {
                self.over = true;
                self.end.take().unwrap_or_else(|| self.why()).told()
            }
        })
    }

    #[inline(never)]
    fn event_slowly(&mut self) -> Option<Event> {
        if self.over {
            return None;
        }
        if self.phase == Phase::Calling && self.end.is_none() {
            self.call_again();
        }
        if let Some(event) = self.event_in_ring() {
            return Some(event);
        }
        if self.end.is_none() {
            if !self.is_cut_off() {
                return None;
            }
            // What was sent before the end is there by now.
            if let Some(event) = self.event_in_ring() {
                return Some(event);
            }
            if self.parted && !self.broken || self.calls_afresh() {
                return None;
            }
            self.end = self.end.take().or_else(|| Some(self.why()));
        }
        Some(Event::Disconnect)
    }

    pub(super) fn event_in_ring(&mut self) -> Option<Event> {
        if !self.head.has_visible() {
            return None;
        }
        let mut parted = false;
        let notes = &mut self.notes;
        let found = self.head.take_frames(|ring| {
            loop {
                return Ok(match front(ring)? {
                    None => None,
                    Some(Front::Data) => Some(Event::Data),
                    Some(Front::Expedited(_)) => Some(Event::ExData),
                    Some(Front::Control(_, word::CONFIRM)) => Some(Event::Connect),
                    Some(Front::Control(_, word::DISCONNECT)) => Some(Event::Disconnect),
                    Some(Front::Control(_, word::RELEASE)) => Some(Event::OrdRel),
                    Some(Front::Control(frame, word)) => {
                        parted |= word == word::CLOSED;
                        if word >= word::NOTE && notes.len() < MOST_NOTES {
                            let mut bytes = vec![0; frame.len];
                            ring.copy_frame(&frame, 0, &mut bytes);
                            notes.push((word - word::NOTE, Told::read(&bytes).data));
                        }
                        ring.take(&frame);
                        continue;
                    }
                });
            }
        });
        self.parted |= parted;
        found.ok().flatten()
    }

    /// Has the other end gone, or spoiled the ring?
    fn is_cut_off(&mut self) -> bool {
        if self.head.words().has(state::READ_ERROR) {
            return true;
        }
        if self.phase == Phase::Calling {
            return false;
        }
        if self.head.has_hung_up() {
            return !self.parted || self.broken;
        }
        let now = sys::now();
        if now - self.looked_at < LOOK_EVERY {
            return false;
        }
        self.looked_at = now;
        self.head.has_hung_up_now()
    }

    fn why(&self) -> End {
        if self.head.words().has(state::READ_ERROR) {
            return End::of(libc::EPROTO);
        }
        if self.phase == Phase::Open {
            return End::of(libc::ECONNRESET);
        }
        End {
            reason: libc::ECONNREFUSED,
            data: request::last_words(self.socket.number()),
        }
    }
}
