//! Takes packets and runs timers while no call of the program does, in the [background](worker): it leads (see [`stack`](super)) once
//! nobody has pumped for a millisecond, and dozes otherwise, so that it does not wake for every packet of a program that is in calls.

use core::time::Duration;

use headwater_host::sync::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use headwater_host::worker::{self, Client, Rest};
use headwater_host::{hidden, sys};

use super::{Stack, existing, report};
use crate::stat;

/// For how long callers must have been away.
const AWAY: u64 = Duration::from_millis(1).as_nanos() as u64;

const AWAKE: u32 = 0;
/// Looks again in a moment.
const DOZING: u32 = 1;
/// A caller leads, and says when it leaves.
const HANDED: u32 = 2;

pub struct Background {
    started: AtomicBool,
    state: AtomicU32,
    /// Somebody is about to wait outside of our calls.
    hurry: AtomicBool,
    /// How often callers had pumped at the last turn.
    seen: AtomicU64,
    /// Until when it sleeps at the links; 0: it does not.
    until: AtomicU64,
    /// Where others ask for statistics; -1: nowhere.
    stat: AtomicI32,
}

impl Default for Background {
    fn default() -> Background {
        Background {
            started: AtomicBool::new(false),
            state: AtomicU32::new(AWAKE),
            hurry: AtomicBool::new(false),
            seen: AtomicU64::new(0),
            until: AtomicU64::new(0),
            stat: AtomicI32::new(-1),
        }
    }
}

impl Background {
    /// Has the turns begin, once. Where there is no thread, associations live while calls are made.
    pub fn start(&self) {
        if self.started.swap(true, Ordering::AcqRel) {
            return;
        }
        if self.stat.load(Ordering::Acquire) < 0 {
            self.stat
                .store(stat::open().unwrap_or(-1), Ordering::Release);
        }
        let turns = worker::begin_in_time(Client::Sctp, turn, Some(turn_of_a_call));
        self.started.store(turns.is_ok(), Ordering::Release);
    }

    /// In a process that goes on with a copy of the stack: what there was is another process's.
    pub fn begin_anew(&self) {
        hidden::close(self.stat.swap(-1, Ordering::AcqRel));
        self.state.store(AWAKE, Ordering::SeqCst);
        self.hurry.store(false, Ordering::SeqCst);
        self.until.store(0, Ordering::SeqCst);
        self.started.store(false, Ordering::SeqCst);
        self.start();
    }

    pub fn forked(&self) {
        hidden::close(self.stat.swap(-1, Ordering::AcqRel));
    }

    /// If it sleeps at the links for longer than that, it has a turn now.
    pub fn wake_before(&self, at: u64) {
        if self.until.load(Ordering::SeqCst) > at {
            worker::call(Client::Sctp);
        }
    }
}

fn turn(rest: &mut Rest) {
    // The links stand before the statistics in a rest there.
    let links = rest.set().len().saturating_sub(1);
    let came = (0..links).any(|link| rest.came(link));
    rest.clear();
    let Some(stack) = existing() else {
        return;
    };
    let background = &stack.background;
    background.state.store(AWAKE, Ordering::SeqCst);
    background.until.store(0, Ordering::SeqCst);
    if came {
        stack.suspect();
    }
    stat::answer(background.stat.load(Ordering::Acquire), report::page);
    if !stack.leading.is_by_background() {
        let pumps = stack.pumps.load(Ordering::Relaxed);
        let before = background.seen.swap(pumps, Ordering::Relaxed);
        let hurry = background.hurry.swap(false, Ordering::SeqCst);
        let led = stack.leading.is_by_caller();
        if led || pumps != before && !hurry {
            let rests = led && pumps == before;
            return doze(stack, rest, if rests { HANDED } else { DOZING });
        }
        if !stack.leading.begin_in_background() {
            return rest.until(0);
        }
    }
    lead(stack, rest);
}

/// While callers are at it.
fn doze(stack: &Stack, rest: &mut Rest, state: u32) {
    let background = &stack.background;
    background.state.store(state, Ordering::SeqCst);
    let stays = state == DOZING || stack.leading.is_by_caller();
    if !stays || background.hurry.load(Ordering::SeqCst) {
        return rest.until(0);
    }
    rest.at(background.stat.load(Ordering::Acquire), libc::POLLIN);
    if state == DOZING {
        rest.until(sys::now() + AWAY);
    }
}

/// Until a caller comes.
fn lead(stack: &Stack, rest: &mut Rest) {
    let background = &stack.background;
    let pumped = stack.turn();
    if !pumped
        || !stack.is_ours()
        || !stack.leading.is_by_background()
        || stack.pumps.load(Ordering::Relaxed) != background.seen.load(Ordering::Relaxed)
    {
        stack.leading.end_in_background();
        return rest.until(0);
    }
    for link in stack.links() {
        rest.at(link.descriptor(), libc::POLLIN);
    }
    rest.at(background.stat.load(Ordering::Acquire), libc::POLLIN);
    let until = stack.deadline();
    background.until.store(until, Ordering::SeqCst);
    // Who lowers it from here on calls.
    rest.until(until.min(stack.deadline()));
}

impl Stack {
    /// A caller that led has left.
    pub fn caller_left(&self) {
        if self.background.state.load(Ordering::SeqCst) == HANDED {
            worker::call(Client::Sctp);
        }
    }

    /// The program is about to wait for a descriptor of ours outside of our calls: the background takes over at once.
    pub fn hand_over(&self) {
        self.background.hurry.store(true, Ordering::SeqCst);
        if self.background.state.load(Ordering::SeqCst) != AWAKE {
            worker::call(Client::Sctp);
        }
    }
}

/// Where there is no thread, a call that waits takes packets now and then.
fn turn_of_a_call() -> u64 {
    let Some(stack) = existing().filter(|stack| stack.serves_any()) else {
        return u64::MAX;
    };
    stack.pump();
    stat::answer(stack.background.stat.load(Ordering::Acquire), report::page);
    AWAY
}
