//! What a ring has no room for yet: whole messages are taken whatever the ring holds, and moved on by every later call of
//! the program, by the thread that sends what is held back, and at the end of the process.
//!
//! Frames of a message that is here in part are in the ring already, so nothing of that kind may pass it: who sends looks
//! here first. A child of fork has a copy, which is not its to send.

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;

use headwater_host::guarded::Private;
use headwater_host::sync::{AtomicUsize, Ordering, fence};
use headwater_host::{process, sys};
use headwater_streams::head::Head;
use headwater_streams::pipe::words::state;
use libc::iovec;

use super::data::put_piece;
use super::{Label, Link, PIECE, put_control, word};
use crate::flusher::{self, Holder, Went};
use crate::loopback::buffers::{self, Source};

/// A note that says no more than that there is something to look at.
const NOTHING: u32 = 15;
/// What a message costs besides its bytes.
const COST: usize = 64;
/// The end of the process waits for peers that take nothing no longer than this, in nanoseconds, and looks so often.
const EXIT_TIMEOUT: u64 = Duration::from_secs(2).as_nanos() as u64;
const MOMENT: u64 = Duration::from_micros(200).as_nanos() as u64;

pub struct Outbox {
    head: &'static Head,
    /// The process whose it is.
    owner: u64,
    /// Bytes, and the cost of each message.
    held: AtomicUsize,
    most: AtomicUsize,
    /// Somebody was refused so many bytes.
    refused: AtomicUsize,
    queue: Private<Queue>,
}

#[derive(Default)]
struct Queue {
    messages: VecDeque<Message>,
    released: bool,
}

#[derive(Default)]
struct Message {
    label: Label,
    /// It goes on in the next.
    more: bool,
    bytes: Vec<u8>,
    moved: usize,
    /// None at all, but the end of all of them.
    release: bool,
}

/// Those that hold something.
static HOLDING: Private<Vec<Arc<Outbox>>> = Private::new(Vec::new());
/// Ends that were given up, and have something to deliver.
static LEAVING: Private<Vec<(Link, Arc<Outbox>)>> = Private::new(Vec::new());

impl Outbox {
    pub fn new(head: &'static Head, most: usize) -> Arc<Outbox> {
        Arc::new(Outbox {
            head,
            owner: process::owner().bits(),
            held: AtomicUsize::new(0),
            most: AtomicUsize::new(most),
            refused: AtomicUsize::new(0),
            queue: Private::new(Queue::default()),
        })
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.held.load(Ordering::Acquire) == 0
    }

    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Bytes that it takes, and the longest message.
    pub fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    pub fn set_most(&self, bytes: usize) {
        self.most.store(bytes, Ordering::Relaxed);
    }

    /// Would a message be taken that is at least as long as the last that was not?
    pub fn has_room(&self) -> bool {
        self.is_empty() || self.held() + self.refused.load(Ordering::Relaxed).max(1) <= self.most()
    }

    /// Does a message of so many bytes fit? An empty one takes any. The sleepers of the head are woken once it does.
    pub fn fits(&self, bytes: usize) -> bool {
        let fits = self.is_empty() || self.held() + bytes <= self.most();
        self.refused
            .store(if fits { 0 } else { bytes }, Ordering::Relaxed);
        fits
    }

    /// Takes a message, or the rest of one that was begun. EPIPE: the other end takes none.
    pub fn push(
        self: &Arc<Self>,
        label: Label,
        more: bool,
        data: &[iovec],
        begins: bool,
    ) -> sys::Result<()> {
        let mut bytes = vec![0; buffers::len(data)];
        Source::new(data).take(&mut bytes);
        let message = Message {
            label,
            more,
            bytes,
            ..Message::default()
        };
        self.put(message, begins)
    }

    /// The peer is told behind everything else that nothing more comes.
    pub fn push_release(self: &Arc<Self>) {
        let release = Message {
            release: true,
            ..Message::default()
        };
        let _ = self.put(release, false);
    }

    fn put(self: &Arc<Self>, message: Message, begins: bool) -> sys::Result<()> {
        let size = message.bytes.len() + COST;
        let words = self.head.words();
        let first = self.queue.with(|queue| {
            words.set(state::HOLDS);
            // Either we see that nothing more is taken, or who said so sees that we hold something.
            fence(Ordering::SeqCst);
            if begins && words.has(state::HUSHED) {
                self.tell_emptiness(queue);
                return Err(libc::EPIPE);
            }
            queue.messages.push_back(message);
            Ok(self.held.fetch_add(size, Ordering::AcqRel) == 0)
        })?;
        // Whoever emptied it a moment ago may not have unlisted it yet, and will not.
        let listed = first
            && HOLDING.with(|all| {
                let known = all.iter().any(|other| Arc::ptr_eq(other, self));
                if !known {
                    all.push(Arc::clone(self));
                }
                !known
            });
        if listed {
            flusher::ask(Holder::Outboxes, &(flush_due as fn(u64)));
            flusher::hold();
        }
        Ok(())
    }

    /// Everything is in the ring: whoever waits for that at the other end is to look.
    fn tell_emptiness(&self, queue: &Queue) {
        let words = self.head.words();
        if queue.messages.is_empty() && words.has(state::HOLDS) {
            words.clear(state::HOLDS);
            if words.has(state::HUSHED) {
                let _ = put_control(self.head, word::NOTE + NOTHING, 0, [&[], &[], &[]]);
            }
        }
    }

    /// Moves on what there is room for; true: nothing is left.
    #[inline]
    pub fn pump(&self) -> bool {
        self.is_empty() || self.pump_slowly()
    }

    #[cold]
    fn pump_slowly(&self) -> bool {
        if !self.is_ours() || self.is_unheard() {
            self.clear();
            return true;
        }
        let done = self.queue.with(|queue| self.move_on(queue));
        let refused = self.refused.load(Ordering::Relaxed);
        if done.is_ok_and(|moved| moved > 0) && (refused > 0 || self.is_empty()) && self.has_room()
        {
            self.refused.store(0, Ordering::Relaxed);
            self.head.notify();
        }
        if done.is_err() {
            self.clear();
        } else if self.is_empty() {
            self.unlist();
        }
        self.is_empty()
    }

    /// And not a copy of the parent's.
    fn is_ours(&self) -> bool {
        self.owner == process::owner().bits()
    }

    /// The other end was taken, and let go.
    fn is_unheard(&self) -> bool {
        let taken = |words: &headwater_streams::pipe::words::HeadWords| {
            words.user.load(Ordering::Relaxed) != 0
        };
        self.head.has_hung_up() && self.head.peer_words().is_some_and(taken)
    }

    fn move_on(&self, queue: &mut Queue) -> sys::Result<usize> {
        let mut moved = 0;
        self.head.enter();
        while let Some(message) = queue.messages.front_mut() {
            let left = message.bytes.len() - message.moved;
            let n = left.min(PIECE);
            let bytes = &message.bytes[message.moved..][..n];
            let more = message.more || n < left;
            let sent = match message.release {
                false => put_piece(self.head, bytes, more, message.label, false)?,
                true => put_control(self.head, word::RELEASE, 0, [&[], &[], &[]])?,
            };
            if !sent {
                self.head.words().full_count.fetch_add(1, Ordering::Relaxed);
                break;
            }
            queue.released |= message.release;
            message.moved += n;
            let mut gone = n;
            if n == left {
                gone += COST;
                queue.messages.pop_front();
            }
            self.held.fetch_sub(gone, Ordering::AcqRel);
            moved += gone;
        }
        self.tell_emptiness(queue);
        self.head.note_sent();
        Ok(moved)
    }

    /// Forgets everything.
    pub fn clear(&self) {
        let gone = self.queue.with(|queue| {
            self.held.store(0, Ordering::Release);
            let gone = core::mem::take(&mut queue.messages);
            if self.is_ours() {
                self.tell_emptiness(queue);
            }
            gone
        });
        if !gone.is_empty() {
            self.unlist();
        }
    }

    fn unlist(&self) {
        let known = |o: &Arc<Outbox>| core::ptr::eq(Arc::as_ptr(o), self);
        let gone = HOLDING.with(|all| {
            let at = all.iter().position(known)?;
            // Something may have been put here again this moment.
            self.is_empty().then(|| all.swap_remove(at))
        });
        if gone.is_some() {
            flusher::drop_hold();
        }
    }
}

impl Link {
    /// As [`leave`](Link::leave), once everything in the outbox is moved on.
    pub fn leave_behind(mut self, outbox: Arc<Outbox>) {
        if outbox.pump() {
            self.released |= outbox.queue.with(|queue| queue.released);
            self.leave();
        } else {
            LEAVING.with(|all| all.push((self, outbox)));
        }
    }
}

/// A turn of the thread that sends what is held back.
fn flush_due(_now: u64) {
    for outbox in HOLDING.with(|all| all.clone()) {
        let before = outbox.held();
        outbox.pump();
        flusher::note(match outbox.held() < before {
            true => Went::Sent,
            false => Went::Stuck,
        });
    }
    sweep();
}

/// Ends whose last word can be said go.
fn sweep() {
    let gone: Vec<_> = LEAVING.with(|all| all.extract_if(.., |(_, o)| o.is_empty()).collect());
    for (link, outbox) in gone {
        link.leave_behind(outbox);
    }
}

/// The process ends: what peers still take is delivered.
pub fn exiting() {
    let held = || HOLDING.with(|all| all.iter().map(|o| o.held()).sum::<usize>());
    let (mut before, mut since) = (held(), sys::now());
    while before > 0 && sys::now() - since < EXIT_TIMEOUT {
        flush_due(0);
        let now = held();
        if now != before {
            since = sys::now();
        } else {
            let _ = sys::ppoll(&mut [], Some(MOMENT));
        }
        before = now;
    }
    sweep();
}
