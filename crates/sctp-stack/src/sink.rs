//! What a socket's associations by packets have to tell it: which of them have news, and that a peer's association waits to be
//! accepted. Whoever handles packets tells in constant time, however many associations there are; the socket takes the list when
//! it is looked at. An association is in the list once, until it is taken.
//!
//! Locks: the list's is the innermost, behind that of a port's endpoint.

use std::sync::Arc;

use headwater_host::sync::{AtomicBool, AtomicUsize, Ordering};
use headwater_host::sys;
use headwater_sctp::AssocId;

use crate::{Guarded, Signal};

#[derive(Default)]
pub struct Sink {
    /// Notified of everything that [`Sink::take`] and [`Sink::arrivals`] would tell.
    pub signal: Arc<Signal>,
    news: Guarded<News>,
    /// Associations of peers that wait for `Port::accept`. Changed under the lock of the port's endpoint.
    arrivals: AtomicUsize,
    /// Those who want to know of room whoever takes the news.
    room_watchers: AtomicUsize,
}

#[derive(Default)]
struct News {
    list: Vec<(u16, AssocId, Arc<AtomicBool>)>,
    /// Something in the list is more than room to send.
    loud: bool,
    kicked: bool,
    /// Kicks so far, threads that sleep at the descriptor, and how many of these slept at the last kick already: it stays readable
    /// until they have left, since poll(2) looks again before it returns, and another may have taken the news by then.
    kicks: u64,
    asleep: usize,
    owed: usize,
}

/// The sink of one association.
pub struct Attached {
    sink: Arc<Sink>,
    port: u16,
    id: AssocId,
    /// It is in the list.
    listed: Arc<AtomicBool>,
}

impl Sink {
    /// Port and name of each association that has had news since the last call: an event, something to receive after there was
    /// nothing, room after there was none, the end. The descriptor is not readable any more, but for arrivals.
    pub fn take(&self) -> Vec<(u16, AssocId)> {
        let mut news = self.news.enter();
        let list = core::mem::take(&mut news.list);
        self.signal
            .want_room(self.room_watchers.load(Ordering::SeqCst) > 0);
        news.loud = false;
        news.kicked = false;
        self.settle(&news);
        drop(news);
        let each = list.into_iter().map(|(port, id, listed)| {
            // From here on it is listed again: the caller looks at it after this.
            listed.store(false, Ordering::SeqCst);
            (port, id)
        });
        each.collect()
    }

    /// A peer's association waits to be accepted.
    #[inline]
    pub fn arrivals(&self) -> bool {
        self.arrivals.load(Ordering::SeqCst) > 0
    }

    /// An eventfd, hidden: readable while [`Sink::take`] would give something (room only if it is wanted) or associations wait.
    pub fn descriptor(&self) -> sys::Result<i32> {
        let fd = self.signal.descriptor()?;
        self.settle(&self.news.enter());
        Ok(fd)
    }

    /// Room to send is worth making the descriptor readable for, until news are taken. There may be several who wait: nobody takes
    /// that back for the others.
    pub fn want_room(&self) {
        self.signal.want_room(true);
        if self.signal.has_descriptor() {
            self.settle(&self.news.enter());
        }
    }

    /// Somebody watches for room, or no longer: for them it is not taken back with the news.
    pub fn watch_room(&self, on: bool) {
        if on {
            self.room_watchers.fetch_add(1, Ordering::SeqCst);
            self.want_room();
        } else {
            self.room_watchers.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// A thread is about to sleep at the descriptor. The kicks before.
    pub fn sleeper_came(&self) -> u64 {
        let mut news = self.news.enter();
        news.asleep += 1;
        news.kicks
    }

    /// It sleeps no longer. In the child of a fork the counts have begun anew.
    pub fn sleeper_left(&self, kicks: u64) {
        let mut news = self.news.enter();
        news.asleep = news.asleep.saturating_sub(1);
        if news.kicks != kicks {
            news.owed = news.owed.saturating_sub(1);
            self.settle(&news);
        }
    }

    /// The socket has changed: wakes everybody who waits for its signal or its descriptor. True: the leader is to be woken.
    #[must_use]
    pub fn kick(&self) -> bool {
        // Counted first: who comes to sleep at the descriptor from here on sees that; who does already is owed a look.
        let leads = self.signal.notify();
        let mut news = self.news.enter();
        news.kicked = true;
        news.kicks += 1;
        news.owed = news.asleep;
        self.settle(&news);
        leads
    }

    /// In the child of a fork, for a socket that is the child's own too: those who slept are the parent's, as is whoever was in
    /// the middle of a change.
    ///
    /// # Safety
    /// No other thread uses it.
    pub unsafe fn begin_anew(&self) {
        // SAFETY: the caller's promise. Such a socket has no associations by packets, so the list is empty.
        unsafe { self.news.begin_anew(News::default()) };
    }

    /// So many more associations wait, or fewer. True: the leader is to be woken.
    #[must_use]
    pub fn count_arrivals(&self, before: usize, now: usize) -> bool {
        if now >= before {
            self.arrivals.fetch_add(now - before, Ordering::SeqCst);
        } else {
            self.arrivals.fetch_sub(before - now, Ordering::SeqCst);
        }
        if self.signal.has_descriptor() {
            self.settle(&self.news.enter());
        }
        now > before && self.signal.notify()
    }

    /// Puts the descriptor right.
    fn settle(&self, news: &News) {
        let told = !news.list.is_empty() && (news.loud || self.signal.wants_room());
        let kicked = news.kicked || news.owed > 0;
        self.signal.raise(told || kicked || self.arrivals());
    }
}

impl Attached {
    pub fn new(sink: &Arc<Sink>, port: u16, id: AssocId) -> Attached {
        Attached {
            sink: sink.clone(),
            port,
            id,
            listed: Arc::default(),
        }
    }

    /// It has news. True: the leader is to be woken.
    #[must_use]
    pub fn tell(&self, only_room: bool) -> bool {
        let fresh = !self.listed.swap(true, Ordering::SeqCst);
        if fresh || !only_room {
            let mut news = self.sink.news.enter();
            if fresh {
                news.list.push((self.port, self.id, self.listed.clone()));
            }
            news.loud |= !only_room;
            self.sink.settle(&news);
        }
        self.sink.signal.notify()
    }
}
