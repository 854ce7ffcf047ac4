//! The order of messages on a queue: high priority, then bands from the highest, then normal; first come, first served
//! within each. What each band holds is counted, and writers are back-enabled when it falls below the low-water mark.
//!
//! # Contract
//! As for [`super::queue`]: inside the perimeter. A message put on a queue belongs to it.

use super::block::OnQueue;
use super::message::*;
use super::owned::Message;
use super::queue::*;

pub const FLUSHALL: isize = 1;
pub const FLUSHDATA: isize = 0;

/// What flushq and flushband take off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flush {
    All = FLUSHALL,
    /// M_DATA, M_PROTO, M_PCPROTO and M_DELAY only.
    Data = FLUSHDATA,
}

/// Class of high-priority messages; below it a class is a band.
const HIGH: u16 = 256;

impl Queue {
    /// putq(9F): puts a message behind those of its priority. A high-priority message enables the queue, a banded one unless
    /// noenable is in force, a normal one if besides the queue was found empty.
    #[inline]
    pub fn putq(self, m: Message) {
        let class = class(&m);
        let behind = match class {
            0 => self.q_last.get(),
            _ => self.last_of(class),
        };
        self.insert_behind(behind, m, class);
        let flag = self.flags();
        if class == HIGH || flag & QNOENB == 0 && (class > 0 || flag & QWANTR != 0) {
            self.qenable();
        }
    }

    /// putbq(9F): puts a message before those of its priority. Enables the queue for high priority, or if a reader found it
    /// empty.
    #[inline]
    pub fn putbq(self, m: Message) {
        let class = class(&m);
        let behind = match class {
            HIGH => None,
            _ => self.last_of(class + 1),
        };
        self.insert_behind(behind, m, class);
        self.enable_for(class);
    }

    /// insq(9F): puts a message before `at`, which is on this queue, or at the end. Gives it back if it would be out of order there.
    pub fn insq(self, at: Option<OnQueue>, m: Message) -> Result<(), Message> {
        let class = class(&m);
        let behind = at.map_or(self.q_last.get(), |at| at.first().b_prev.get());
        let fits = at.is_none_or(|at| self::class(&at) <= class)
            && behind.is_none_or(|behind| self::class(&behind) >= class);
        if !fits {
            return Err(m);
        }
        self.insert_behind(behind, m, class);
        self.enable_for(class);
        Ok(())
    }

    /// getq(9F): takes the first message. On an empty queue asks to be enabled by the next one.
    #[inline]
    pub fn getq(self) -> Option<Message> {
        let Some(first) = self.q_first.get() else {
            self.raise(QWANTR);
            return None;
        };
        self.lower(QWANTR);
        // SAFETY: what is first on this queue is on it.
        Some(unsafe { self.rmvq(first) })
    }

    /// rmvq(9F): takes a message off.
    ///
    /// # Safety
    /// It is on this queue.
    #[inline]
    pub unsafe fn rmvq(self, m: OnQueue) -> Message {
        // SAFETY: it is on this queue, as the caller says.
        let m = unsafe { self.unlink(m) };
        self.relieve(m.band());
        m
    }

    /// flushq(9F): frees all messages, or those of data types.
    pub fn flushq(self, what: Flush) {
        self.flush(what, |_| true);
        for n in 0..=self.q_nband.get() {
            self.relieve(n);
        }
    }

    /// flushband(9F): as flushq for one band; band 0 has the normal and the high-priority messages.
    pub fn flushband(self, pri: u8, what: Flush) {
        self.flush(what, |band| band == pri);
        self.relieve(pri);
    }

    /// qsize(9F): messages on the queue.
    pub fn qsize(self) -> usize {
        self.messages().count()
    }

    /// The messages on it, in order.
    pub fn messages(self) -> impl Iterator<Item = OnQueue> {
        core::iter::successors(self.q_first.get(), |m| m.first().b_next.get())
    }

    /// The same, from the last one on.
    pub fn messages_back(self) -> impl Iterator<Item = OnQueue> {
        core::iter::successors(self.q_last.get(), |m| m.first().b_prev.get())
    }

    /// The last message of this class or a higher one.
    fn last_of(self, class: u16) -> Option<OnQueue> {
        let last = self.q_last.get()?;
        if self::class(&last) >= class {
            return Some(last);
        }
        let last_in = |n: u16| self.find_band(n as u8)?.qb_last.get();
        (class..=self.q_nband.get().into())
            .find_map(last_in)
            // Only high priority is before: few, so from the front.
            .or_else(|| {
                self.messages()
                    .take_while(|m| self::class(m) >= class)
                    .last()
            })
    }

    #[inline]
    fn enable_for(self, class: u16) {
        if class == HIGH || self.flags() & (QNOENB | QWANTR) == QWANTR {
            self.qenable();
        }
    }

    /// `behind`: nothing, or on this queue.
    #[inline(always)]
    fn insert_behind(self, behind: Option<OnQueue>, m: Message, class: u16) {
        let bytes = m.len();
        let m = OnQueue::new(m);
        let before = match &behind {
            None => self.q_first.replace(Some(m)),
            Some(behind) => behind.first().b_next.replace(Some(m)),
        };
        m.first().b_prev.set(behind);
        m.first().b_next.set(before);
        match &before {
            None => self.q_last.set(Some(m)),
            Some(before) => before.first().b_prev.set(Some(m)),
        }
        if class == 0 || class == HIGH {
            self.q_count.set(self.q_count.get() + bytes);
            if self.q_count >= self.q_hiwat && self.flags() & QFULL == 0 {
                self.raise(QFULL);
                self.q_fulls.set(self.q_fulls.get() + 1);
            }
        } else {
            self.count_in_band(m, bytes);
        }
    }

    /// `m` is on this queue, in a band above 0.
    fn count_in_band(self, m: OnQueue, bytes: usize) {
        let n = m.band();
        let band = self.make_band(n);
        let in_band = |other: Option<OnQueue>| other.is_some_and(|other| class(&other) == n.into());
        if !in_band(m.first().b_prev.get()) {
            band.qb_first.set(Some(m));
        }
        if !in_band(m.first().b_next.get()) {
            band.qb_last.set(Some(m));
        }
        band.qb_count.set(band.qb_count.get() + bytes);
        if band.qb_count >= band.qb_hiwat && band.qb_flag.get() & QB_FULL == 0 {
            band.qb_flag.set(band.qb_flag.get() | QB_FULL);
            self.q_fulls.set(self.q_fulls.get() + 1);
        }
    }

    /// Takes a message off and out of the counts.
    ///
    /// # Safety
    /// It is on this queue.
    #[inline(always)]
    unsafe fn unlink(self, m: OnQueue) -> Message {
        let n = m.band();
        let bytes = m.len();
        let (prev, next) = (m.first().b_prev.take(), m.first().b_next.take());
        if n == 0 {
            self.q_count.set(self.q_count.get().saturating_sub(bytes));
        } else if let Some(band) = self.find_band(n) {
            band.qb_count.set(band.qb_count.get().saturating_sub(bytes));
            if band.qb_first == band.qb_last {
                band.qb_first.set(None);
                band.qb_last.set(None);
            } else if band.qb_first.get() == Some(m) {
                band.qb_first.set(next);
            } else if band.qb_last.get() == Some(m) {
                band.qb_last.set(prev);
            }
        }
        match &prev {
            None => self.q_first.set(next),
            Some(prev) => prev.first().b_next.set(next),
        }
        match &next {
            None => self.q_last.set(prev),
            Some(next) => next.first().b_prev.set(prev),
        }
        // SAFETY: it was on this queue, as the caller says, and nothing leads to it any more.
        unsafe { m.taken() }
    }

    fn flush(self, what: Flush, wanted: impl Fn(u8) -> bool) {
        let mut next = self.q_first.get();
        while let Some(m) = next {
            next = m.first().b_next.get();
            if wanted(m.band()) && (what == Flush::All || datamsg(m.kind()) != 0) {
                // SAFETY: it is on this queue, which has been walked up to here.
                drop(unsafe { self.unlink(m) });
            }
        }
    }

    /// Below the low-water mark the band is not full any more, and who wanted to write is enabled.
    #[inline(always)]
    pub(super) fn relieve(self, n: u8) {
        if n == 0 {
            let flag = self.flags();
            if flag & (QFULL | QWANTW) != 0 && is_low(self.q_count.get(), self.q_lowat.get()) {
                self.lower(QFULL | QWANTW);
                if flag & QWANTW != 0 {
                    self.back_enable();
                }
            }
        } else if let Some(band) = self.find_band(n) {
            let flag = band.qb_flag.get();
            if is_low(band.qb_count.get(), band.qb_lowat.get()) {
                band.qb_flag.set(flag & !(QB_FULL | QB_WANTW));
                if flag & QB_WANTW != 0 {
                    self.back_enable();
                }
            }
        }
    }

    /// Enables the nearest queue behind that has a service procedure.
    #[cold]
    fn back_enable(self) {
        self.q_wakeups.set(self.q_wakeups.get() + 1);
        let mut behind = core::iter::successors(self.back(), |q| q.back());
        if let Some(q) = behind.find(|q| q.procedures().qi_srvp.is_some()) {
            q.qenable();
        }
    }
}

#[inline(always)]
fn class(m: &Message) -> u16 {
    if m.is_priority() {
        // A high-priority message is in no band.
        m.first().b_band.set(0);
        HIGH
    } else {
        m.band().into()
    }
}

#[inline(always)]
fn is_low(count: usize, lowat: usize) -> bool {
    count < lowat || count == 0
}
