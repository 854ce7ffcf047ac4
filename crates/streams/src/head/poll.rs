//! Streams as members of poll, select and epoll sets: poll(2) of System V.

use core::time::Duration;

use headwater_host::poll::SHARED_SLICE;
use headwater_host::process;
use headwater_host::reclaim::enter;
use headwater_host::sync::Ordering::Relaxed;
use headwater_host::table::{Descriptor, Handle};

use super::arming::Want;
use super::inlet::{Front, Inlet, is_readable};
use super::wait::WITHOUT_BELL;
use super::{Head, local, opening};
use crate::pipe::section;
use crate::pipe::words::state;

const IN: u32 = libc::POLLIN as u32;
const PRI: u32 = libc::POLLPRI as u32;
const OUT: u32 = libc::POLLOUT as u32;
const ERR: u32 = libc::POLLERR as u32;
const HUP: u32 = libc::POLLHUP as u32;
const NVAL: u32 = libc::POLLNVAL as u32;
const RDNORM: u32 = libc::POLLRDNORM as u32;
const RDBAND: u32 = libc::POLLRDBAND as u32;
const WRNORM: u32 = libc::POLLWRNORM as u32;
const WRBAND: u32 = libc::POLLWRBAND as u32;
const READING: u32 = IN | PRI | RDNORM | RDBAND;
const WRITING: u32 = OUT | WRNORM | WRBAND;

/// Longest sleep on a stream whose queues wait for room in the ring, in nanoseconds.
const BLOCKED_SLICE: u64 = Duration::from_millis(10).as_nanos() as u64;

pub struct Streams;

/// The same for arming and disarming, whatever happens in between.
fn want_of(events: u32) -> Want {
    let mut want = Want(0);
    if events & READING != 0 {
        want.0 |= Want::DATA.0;
    }
    if events & WRITING != 0 {
        want.0 |= Want::ROOM.0;
    }
    want
}

impl Head {
    /// All events that hold, whatever was asked for; only those of `want` cost anything.
    pub fn events(&self, want: u32) -> u32 {
        let _ = self.attend();
        let hung_up = self.has_hung_up();
        let s = self.words().state();
        if s & state::LINKED != 0 {
            return NVAL;
        }
        let mut events = 0;
        if s & (state::READ_ERROR | state::WRITE_ERROR) != 0 {
            events |= ERR;
        }
        if want & READING != 0 {
            events |= self.read_events();
        }
        if hung_up {
            return events | HUP;
        }
        if want & WRITING != 0 {
            events |= self.write_events(want);
        }
        events
    }

    /// What the message in front, the next one that read(2) or getmsg(2) takes, makes readable.
    fn read_events(&self) -> u32 {
        let mut first = First::default();
        if self.is_queued() {
            let mut look = |inlet: &mut dyn Inlet| inlet.each(&mut |f| first.look(f));
            let _ = local::with_inlet(self, &mut look);
            return first.events();
        }
        let ring = self.incoming();
        if ring.specials() == 0 {
            return if self.has_visible() { IN | RDNORM } else { 0 };
        }
        let _quiet = process::Quiet::new();
        let Some(section) = section::reading(&ring) else {
            return ERR;
        };
        let walked = ring.find(|frame| {
            first.look(&super::inlet::front_of(frame));
            false
        });
        drop(section);
        if walked.is_err() { ERR } else { first.events() }
    }

    fn write_events(&self, want: u32) -> u32 {
        let mut events = 0;
        if local::can_put(self, 0) {
            events |= OUT | WRNORM;
        }
        if want & WRBAND != 0 && self.words().has(state::BANDED) && local::can_put(self, 1) {
            events |= WRBAND;
        }
        events
    }
}

/// Finds the first of the messages that wait, whatever order they are seen in.
#[derive(Default)]
struct First {
    rank: Option<(bool, u8)>,
    /// Something waits for the head itself, which acts on it when it is read.
    odd: bool,
}

impl First {
    fn look(&mut self, message: &Front) {
        if is_readable(message.kind) {
            self.rank = self.rank.max(Some((message.is_high(), message.band)));
        } else {
            self.odd = true;
        }
    }

    fn events(&self) -> u32 {
        let events = match self.rank {
            None => 0,
            Some((true, _)) => PRI,
            Some((false, 0)) => IN | RDNORM,
            Some(_) => IN | RDBAND,
        };
        if self.odd {
            events | IN | RDNORM
        } else {
            events
        }
    }
}

/// Of an open head, for as long as this looks.
fn with<T>(h: Handle, f: impl FnOnce(&'static Head) -> T) -> Option<T> {
    let looks = enter();
    super::get(h, &looks).map(f)
}

impl Descriptor for Streams {
    fn ready(&self, h: Handle, want: u32) -> u32 {
        with(h, |head| {
            let mut events = head.events(want);
            if opening::hangs_up(h) {
                events = events & !WRITING | HUP;
            }
            events & (want | ERR | HUP | NVAL)
        })
        .unwrap_or(NVAL)
    }

    fn arm(&self, h: Handle, want: u32) {
        with(h, |head| {
            head.bell();
            if head.arm_for(h, want_of(want)) && head.is_queued() {
                // Asked again, so that a full queue below knows that somebody wants to write.
                head.events(want);
            }
        });
    }

    fn disarm(&self, h: Handle, want: u32) {
        with(h, |head| {
            head.disarm(want_of(want));
            head.used_at.store(1, Relaxed);
        });
    }

    fn armed_by_parent(&self, h: Handle, _: u32) -> bool {
        with(h, Head::armed_by_parent);
        true
    }

    fn bell(&self, h: Handle) -> Option<i32> {
        with(h, Head::bell).filter(|&bell| bell >= 0)
    }

    fn settle(&self, h: Handle) {
        with(h, Head::settle);
    }

    fn kernel_events(&self, _: Handle, _: u32) -> u32 {
        // What the shadow has to read is for us; that its peer is gone is always reported.
        0
    }

    fn edges(&self, h: Handle) -> (u64, u64) {
        with(h, |head| {
            let version = head.version() as u64;
            let arrived = if head.has_pipe() {
                head.incoming().tail()
            } else {
                0
            };
            let full = head.words().full_count.load(Relaxed) as u64;
            (arrived.wrapping_add(version << 40), full)
        })
        .unwrap_or_default()
    }

    fn kernel_reported(&self, h: Handle, events: u32) -> u32 {
        with(h, |head| {
            // An eventfd stands for a stream without a peer: it says nothing.
            if head.shadow_poll().fd < 0 {
                return events & NVAL;
            }
            head.note_shadow(events as i16);
            events & (HUP | NVAL)
        })
        .unwrap_or(events)
    }

    fn peer_cpu(&self, h: Handle) -> u32 {
        with(h, Head::peer_cpu).unwrap_or(u32::MAX)
    }

    fn slice(&self, h: Handle, want: u32) -> Option<u64> {
        with(h, |head| {
            if head.known_bell() < 0 {
                return Some(WITHOUT_BELL);
            }
            if head.is_blocked() || want & WRBAND != 0 && head.words().has(state::BANDED) {
                // What waits for room in the ring is moved by whoever looks.
                return Some(BLOCKED_SLICE);
            }
            head.is_shared().then_some(SHARED_SLICE)
        })
        .flatten()
    }

    fn slice_over(&self, h: Handle, _: u32) {
        with(h, Head::look_for_names);
    }
}
