//! Who sleeps at the links. A caller that waits leads if no other does; those who follow sleep at their own signals. A leader
//! that leaves wakes one of them; when there is none the background leads soon.

use core::time::Duration;
use std::sync::Arc;

use headwater_channel::bell;
use headwater_channel::wait::Outcome;
use headwater_channel::waiter::{self, Alone};
use headwater_host::sync::{AtomicU32, AtomicU64, Ordering};
use headwater_host::worker::{self, Client};
use headwater_host::{hidden, signal, stand_in, sys};

use super::{Stack, existing};
use crate::left::{self, Held};
use crate::signal::readable;
use crate::{Guarded, Signal, Sink};

const FREE: u32 = 0;
const CALLER: u32 = 1;
const BACKGROUND: u32 = 2;

/// How long a leader lets another thread that pumps go on, in nanoseconds.
const OTHERS: u64 = Duration::from_micros(100).as_nanos() as u64;

pub struct Leading {
    leader: AtomicU32,
    followers: Guarded<Vec<Arc<Signal>>>,
    /// Until when a caller sleeps at the links; 0: none does.
    until: AtomicU64,
    /// Wakes it.
    bell: i32,
}

impl Leading {
    pub fn new() -> sys::Result<Leading> {
        Ok(Leading {
            leader: AtomicU32::new(FREE),
            followers: Guarded::new(Vec::new()),
            until: AtomicU64::new(0),
            bell: bell::create().and_then(hidden::hide_needed)?,
        })
    }

    pub fn is_by_caller(&self) -> bool {
        self.leader.load(Ordering::SeqCst) == CALLER
    }

    pub fn is_by_background(&self) -> bool {
        self.leader.load(Ordering::SeqCst) == BACKGROUND
    }

    fn pass(&self, from: u32, to: u32) -> bool {
        self.leader
            .compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
    }

    fn begin(&self) -> bool {
        if self.pass(FREE, CALLER) {
            return true;
        }
        let taken = self.pass(BACKGROUND, CALLER);
        if taken {
            // It would wake for every packet.
            worker::call(Client::Sctp);
        }
        taken
    }

    pub fn begin_in_background(&self) -> bool {
        self.pass(FREE, BACKGROUND)
    }

    pub fn end_in_background(&self) {
        self.pass(BACKGROUND, FREE);
    }

    /// Wakes the caller that leads.
    pub fn ring(&self) {
        bell::ring(self.bell);
    }

    /// A caller that sleeps longer than that is woken.
    pub fn wake_before(&self, at: u64) {
        if self.until.load(Ordering::SeqCst) > at {
            self.ring();
        }
    }

    fn follow(&self, signal: &Arc<Signal>) {
        self.followers.enter().push(signal.clone());
    }

    fn unfollow(&self, signal: &Arc<Signal>) {
        let mut followers = self.followers.enter();
        if let Some(at) = followers.iter().position(|f| Arc::ptr_eq(f, signal)) {
            followers.swap_remove(at);
        }
    }

    /// Wakes one that follows.
    fn promote(&self) {
        let next = self.followers.enter().pop();
        if let Some(next) = next {
            let _ = next.notify();
        }
    }

    /// In a process that goes on with a copy: those who slept or led are another process's.
    pub fn begin_anew(&self) {
        self.leader.store(FREE, Ordering::SeqCst);
        // SAFETY: no other thread knows of the stack yet.
        unsafe { self.followers.begin_anew(Vec::new()) };
        self.until.store(0, Ordering::SeqCst);
    }

    pub fn forked(&self) {
        hidden::close(self.bell);
    }
}

/// A socket has changed: wakes everybody who waits at it, the leader too.
pub fn kick(sink: &Sink) {
    if sink.kick()
        && let Some(stack) = existing()
    {
        stack.leading.ring();
    }
}

impl Stack {
    /// Waits until `ready`, one of `others` is readable, or `until` has come (false). `signal` is notified of whatever may make it
    /// ready. EINTR.
    pub fn wait(
        &self,
        signal: &Arc<Signal>,
        until: u64,
        others: &[i32],
        mut ready: impl FnMut() -> bool,
    ) -> sys::Result<bool> {
        let mut followed = false;
        let done = loop {
            let seen = signal.changes();
            if ready() {
                break Ok(true);
            }
            let now = sys::now();
            if now >= until {
                break Ok(false);
            }
            let lead = || {
                self.leading
                    .begin()
                    .then_some(Held::Lead(Arc::as_ptr(signal)))
            };
            if left::take(lead) {
                let done = self.lead(signal, until, others, &mut ready);
                left::give_back(|| self.leader_left());
                return done;
            }
            followed = true;
            self.leading.follow(signal);
            // The leader may have left before it could see us.
            let ns = (until != u64::MAX).then(|| until - now);
            let slept = match self.leading.is_by_caller() {
                true if others.is_empty() => signal.sleep(seen, ns).map(|()| false),
                true => signal.sleep_beside(seen, ns, others),
                false => Ok(false),
            };
            self.leading.unfollow(signal);
            if matches!(slept, Ok(true) | Err(libc::EINTR)) {
                break slept;
            }
        };
        // Who was woken to lead and has no need to wakes another.
        if followed && !self.leading.is_by_caller() {
            self.leading.promote();
        }
        done
    }

    /// The caller that led does so no more.
    pub fn leader_left(&self) {
        self.leading.until.store(0, Ordering::SeqCst);
        self.leading.leader.store(FREE, Ordering::SeqCst);
        self.leading.promote();
        self.caller_left();
    }

    fn lead(
        &self,
        signal: &Signal,
        until: u64,
        others: &[i32],
        ready: &mut dyn FnMut() -> bool,
    ) -> sys::Result<bool> {
        loop {
            let seen = signal.changes();
            let pumped = self.pump();
            if ready() {
                return Ok(true);
            }
            if sys::now() >= until {
                return Ok(false);
            }
            if !pumped {
                // What made the links ready is in other hands, and they would stay ready.
                match signal.sleep(seen, Some(OTHERS)) {
                    Err(libc::EINTR) => return Err(libc::EINTR),
                    _ => continue,
                }
            }
            let look = || {
                self.pump();
                ready()
            };
            if signal.learner.wait_dearly(look) == Outcome::Ready {
                return Ok(true);
            }
            let until = stand_in::turn_until(until);
            if signal.sleep_led(seen, || self.sleep_at_links(until, others))? {
                return Ok(true);
            }
        }
    }

    /// Until something comes, a deadline, `until`, or the leader's bell; true: one of `others` is readable.
    fn sleep_at_links(&self, until: u64, others: &[i32]) -> sys::Result<bool> {
        let Leading {
            until: told, bell, ..
        } = &self.leading;
        let links = self.links.iter().map(|l| l.descriptor());
        let mut set = readable(links.chain([*bell]).chain(others.iter().copied()));
        let until = until.min(self.deadline());
        let slept = waiter::sleep(&mut Alone {
            // Who lowers it from here on rings.
            arm: || told.store(until, Ordering::SeqCst),
            look: || (self.deadline() < until).then_some(Ok(0)),
            sleep: || {
                let ns = (until != u64::MAX).then(|| until.saturating_sub(sys::now()));
                let slept = match signal::begin_nap(signal::ring, *bell as usize) {
                    true => sys::ppoll(&mut set, ns),
                    false => Err(libc::EINTR),
                };
                signal::end_nap();
                slept
            },
            disarm: || told.store(0, Ordering::SeqCst),
        });
        let links = self.links.len();
        if set[..links].iter().any(|link| link.revents != 0) {
            self.suspect();
        }
        if set[links].revents != 0 {
            bell::take(*bell);
        }
        slept.map(|_| set[links + 1..].iter().any(|other| other.revents != 0))
    }
}
