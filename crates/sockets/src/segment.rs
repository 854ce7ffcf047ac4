//! What the two ends of a carried connection share, beside the rings' bytes. Words and rules are those of the switch
//! protocol in ARCHITECTURE.md; end 0 is the client, end 1 the server, direction `i` is what end `i` sends.

use crate::record::Record;
use headwater_channel::lock::Taken;
use headwater_channel::ring::{Ring, RingState};
use headwater_channel::segment::Segment;
use headwater_channel::shm::SharedSafe;
use headwater_host::board::Tuple;
use headwater_host::process::{self, Section};
use headwater_host::sync::{AtomicU32, AtomicU64, Exchange, Ordering};

/// The `tx` word of a direction, one atomic: {epoch: 16, inflight: 16, generation: 16, flags}.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tx(pub u64);

/// A receiver is in an unlimited kernel read.
pub const KREAD: u64 = 1 << 48;
/// The receiver reads only the kernel from here on.
pub const PIN: u64 = 1 << 49;
/// The last sender is about to close.
pub const CLOSING: u64 = 1 << 50;
/// The sender never switches again.
pub const TCPONLY: u64 = 1 << 51;
/// The sender withdraws what is in the ring: the receiver can't take its pin back any more.
pub const WITHDRAWS: u64 = 1 << 52;
const INFLIGHT: u64 = 0xffff << 16;
pub const ONE_INFLIGHT: u64 = 1 << 16;

impl Tx {
    pub fn fresh(generation: u16) -> Tx {
        Tx((generation as u64) << 32)
    }
    #[inline]
    pub fn epoch(self) -> u16 {
        self.0 as u16
    }
    /// Odd epochs send by the ring, even ones by TCP.
    #[inline]
    pub fn by_ring(self) -> bool {
        self.0 & 1 == 1
    }
    #[inline]
    pub fn has(self, flags: u64) -> bool {
        self.0 & flags != 0
    }
    #[inline]
    pub fn generation(self) -> u16 {
        (self.0 >> 32) as u16
    }
    pub fn idle(self) -> bool {
        self.0 & (INFLIGHT | KREAD | PIN | CLOSING | TCPONLY) == 0
    }
    /// Kernel sends between their beginning and their count.
    pub fn sends(self) -> u64 {
        (self.0 & INFLIGHT) / ONE_INFLIGHT
    }
    pub fn inflight_full(self) -> bool {
        self.0 & INFLIGHT == INFLIGHT
    }
    pub fn next_epoch(self) -> Tx {
        Tx(self.0 & !0xffff | self.epoch().wrapping_add(1) as u64)
    }
}

#[derive(SharedSafe)]
#[repr(C, align(128))]
pub struct SendLine {
    pub tx: AtomicU64,
    /// Kernel bytes sent; frozen while the epoch is odd. None are known before this end has taken the connection over.
    pub ksent: AtomicU64,
    /// How many there were when the accepting end did: no arrivals of a carried connection.
    pub before: AtomicU64,
    /// How many of them had been in the ring before: taken back, and counted here first.
    pub taken_back: AtomicU64,
    /// N and M of the last ring stretch.
    pub nat: AtomicU64,
    pub mat: AtomicU64,
}

#[derive(SharedSafe)]
#[repr(C, align(128))]
pub struct ReceiveLine {
    /// Epoch that the receiver has followed to.
    pub re: AtomicU64,
    /// Kernel bytes taken.
    pub krecv: AtomicU64,
}

#[derive(SharedSafe)]
#[repr(C, align(128))]
pub struct Direction {
    pub send: SendLine,
    pub receive: ReceiveLine,
    pub ring: RingState,
}

#[derive(SharedSafe)]
#[repr(C, align(128))]
pub struct End {
    /// Where this end ran last; `u32::MAX` before.
    pub cpu: AtomicU32,
    /// Processes that hold this end: a hint, kills make it too high.
    pub holders: AtomicU32,
    /// Raised when this end has just closed or shut something.
    pub look: AtomicU32,
    /// The generation that this end has finished with.
    pub released: AtomicU32,
}

/// How far the two ends have come with taking a connection over. It is here and not on the board, where others may write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Agreement {
    Nothing = 0,
    /// By the accepting end: it may still go back.
    Accepted = 1,
    /// By the connecting end: both may send by the rings.
    Attached = 2,
    Cancelled = 3,
}

#[derive(SharedSafe)]
#[repr(C, align(128))]
pub struct Header {
    pub generation: AtomicU32,
    /// The connection was shared over fork: its segment is not used again.
    pub shared: AtomicU32,
    /// {generation: 32, [`Agreement`]: 32}
    agreement: AtomicU64,
    /// The connection that the accepting end has claimed, as [`Tuple::words`].
    tuple: [AtomicU64; 6],
    reserved: [u64; 8],
    pub ends: [End; 2],
    pub directions: [Direction; 2],
}

/// What stands where: a change of this is one of the board's ABI.
const _: () = {
    use core::mem::offset_of;
    assert!(offset_of!(SendLine, ksent) == 8 && offset_of!(SendLine, before) == 16);
    assert!(offset_of!(SendLine, taken_back) == 24 && offset_of!(SendLine, nat) == 32);
    assert!(offset_of!(SendLine, mat) == 40 && offset_of!(ReceiveLine, krecv) == 8);
    assert!(offset_of!(Direction, receive) == 128 && offset_of!(Direction, ring) == 256);
    assert!(offset_of!(End, released) == 12 && offset_of!(Header, ends) == 128);
};
const _: () = assert!(size_of::<SendLine>() == 128 && size_of::<ReceiveLine>() == 128);
const _: () = assert!(size_of::<End>() == 128 && size_of::<Direction>() == 640);
const _: () = assert!(size_of::<Header>() == 128 + 2 * 128 + 2 * 640);

impl Header {
    /// Other processes may hold an end of it, too.
    pub fn share(&self) {
        self.shared.store(1, Ordering::Release);
        headwater_host::table::share_ends();
    }
}

/// A segment in this process, with the two ends' doorbells.
pub struct Mapped {
    pub segment: Segment,
    /// The segment's descriptor, for images that inherit the connection; -1: none.
    pub memory: i32,
    pub bells: [i32; 2],
    pub link: u64,
    pub index: u32,
    /// A connection of this process uses it; unlike the header's words, nobody else can change that.
    pub in_use: AtomicU32,
}

/// In [`End::released`]: the end has attached and not yet finished.
pub const HELD: u32 = u32::MAX;

/// One end's view of a mapped segment.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub header: &'a Header,
    /// The connection's generation: a late caller finds another one in the segment.
    pub generation: u16,
    pub mapped: &'a Mapped,
    pub record: &'a Record,
    pub end: usize,
}

impl Direction {
    /// What its sender's word says.
    #[inline(always)]
    pub fn tx(&self) -> Tx {
        Tx(self.send.tx.load(Ordering::Acquire))
    }

    /// Changes the sender's word, unless it is another by now than was seen.
    #[inline(always)]
    pub fn change(&self, seen: Tx, to: u64) -> bool {
        self.send.tx.exchange(seen.0, to)
    }

    /// The accepting end takes the connection over, when this much has been sent.
    pub fn claim(&self, sent: u64) {
        self.send.before.store(sent, Ordering::Release);
    }

    /// The sending end has taken the connection over, and has sent this much before.
    pub fn begin(&self, sent: u64) {
        self.send.ksent.store(sent, Ordering::Release);
    }
}

impl Mapped {
    pub fn header(&self) -> &Header {
        self.segment.header()
    }

    /// Prepares the segment for its next connection; nobody uses it now.
    pub fn renew(&self) -> u16 {
        let h = self.header();
        let generation = h.generation.load(Ordering::Relaxed).wrapping_add(1) as u16;
        // Zero is what a wiped segment shows.
        let generation = if generation == 0 { 1 } else { generation };
        h.shared.store(0, Ordering::Relaxed);
        for (i, d) in h.directions.iter().enumerate() {
            let s = &d.send;
            for word in [&s.ksent, &s.before, &s.taken_back, &s.nat, &s.mat] {
                word.store(0, Ordering::Relaxed);
            }
            d.receive.re.store(0, Ordering::Relaxed);
            d.receive.krecv.store(0, Ordering::Relaxed);
            Ring::new(&d.ring, self.segment.ring_data(i)).reset();
            d.send.tx.store(Tx::fresh(generation).0, Ordering::Release);
        }
        for e in &h.ends {
            e.cpu.store(u32::MAX, Ordering::Relaxed);
            e.holders.store(1, Ordering::Relaxed);
            e.look.store(0, Ordering::Relaxed);
            e.released.store(0, Ordering::Relaxed);
        }
        h.agreement.store(0, Ordering::Relaxed);
        h.generation.store(generation as u32, Ordering::Release);
        generation
    }

    /// The accepting end has claimed this connection for it.
    pub fn accept(&self, tuple: &Tuple) {
        let h = self.header();
        for (word, value) in h.tuple.iter().zip(tuple.words()) {
            word.store(value, Ordering::Relaxed);
        }
        let generation = h.generation.load(Ordering::Relaxed);
        let accepted = agreement(generation, Agreement::Accepted);
        h.agreement.store(accepted, Ordering::Release);
    }

    /// Is it this connection that the accepting end has claimed?
    pub fn is_for(&self, tuple: [u64; 6]) -> bool {
        let h = self.header();
        let generation = h.generation.load(Ordering::Acquire);
        h.agreement.load(Ordering::Acquire) == agreement(generation, Agreement::Accepted)
            && h.tuple
                .iter()
                .zip(tuple)
                .all(|(word, value)| word.load(Ordering::Relaxed) == value)
    }

    /// Moves from accepted on; false when the other end was first.
    pub fn agree(&self, to: Agreement) -> bool {
        let h = self.header();
        let generation = h.generation.load(Ordering::Acquire);
        let accepted = agreement(generation, Agreement::Accepted);
        h.agreement.exchange(accepted, agreement(generation, to))
    }

    /// Have both ends finished with the current connection?
    pub fn is_free(&self) -> bool {
        let h = self.header();
        let g = h.generation.load(Ordering::Acquire);
        self.in_use.load(Ordering::Acquire) == 0
            && h.shared.load(Ordering::Acquire) == 0
            && h.ends
                .iter()
                .all(|e| e.released.load(Ordering::Acquire) == g)
    }
}

fn agreement(generation: u32, state: Agreement) -> u64 {
    (generation as u64) << 32 | state as u64
}

impl<'a> View<'a> {
    /// Has the connecting end attached?
    pub fn is_attached(&self) -> bool {
        let attached = agreement(self.generation as u32, Agreement::Attached);
        self.header.agreement.load(Ordering::Acquire) == attached
    }

    /// What this end sends.
    #[inline]
    pub fn out(&self) -> &'a Direction {
        &self.header.directions[self.end]
    }
    /// What this end receives.
    #[inline]
    pub fn inn(&self) -> &'a Direction {
        &self.header.directions[1 - self.end]
    }
    #[inline]
    pub fn out_ring(&self) -> Ring<'a> {
        Ring::new(&self.out().ring, self.mapped.segment.ring_data(self.end))
    }
    #[inline]
    pub fn in_ring(&self) -> Ring<'a> {
        Ring::new(
            &self.inn().ring,
            self.mapped.segment.ring_data(1 - self.end),
        )
    }
    #[inline]
    pub fn own(&self) -> &'a End {
        &self.header.ends[self.end]
    }
    #[inline]
    pub fn peer(&self) -> &'a End {
        &self.header.ends[1 - self.end]
    }
    pub fn own_bell(&self) -> i32 {
        self.mapped.bells[self.end]
    }
    pub fn peer_bell(&self) -> i32 {
        self.mapped.bells[1 - self.end]
    }

    /// Tells the peer where we run.
    #[inline]
    pub fn publish_cpu(&self) {
        self.own().cpu.change_to(headwater_host::sys::cpu());
    }

    /// Enters the section of this end's writers.
    #[inline(always)]
    pub fn lock_out(&self) -> Section<'a> {
        let section = process::lock(&self.record.sending.lock);
        if section.taken == Taken::Stolen {
            let _ = self.out_ring().recover_producer();
        }
        section
    }

    /// Enters the section of this end's readers; a death inside is repaired by `recover`.
    #[inline(always)]
    pub fn lock_in(&self, recover: impl FnOnce()) -> Section<'a> {
        let section = process::lock(&self.record.receiving.lock);
        if section.taken == Taken::Stolen {
            let _ = self.in_ring().recover_consumer();
            recover();
        }
        section
    }

    pub fn is_shared(&self) -> bool {
        self.header
            .ends
            .iter()
            .any(|e| e.holders.load(Ordering::Relaxed) > 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headwater_host::board::Addr;

    fn tuple(port: u16) -> Tuple {
        let [client, server] = [port, 80].map(|port| Addr { ip: 1, port });
        Tuple {
            client,
            server,
            netns: 7,
        }
    }

    #[test]
    fn a_segment_is_for_the_connection_that_was_claimed_and_no_other() {
        let (segment, fd) = Segment::create(4096, 1).unwrap();
        headwater_host::sys::close(fd).unwrap();
        let m = Mapped {
            segment,
            memory: -1,
            bells: [-1; 2],
            link: 1,
            index: 1,
            in_use: AtomicU32::new(0),
        };
        m.renew();
        assert!(!m.is_for(tuple(1).words()));
        m.accept(&tuple(1));
        assert!(m.is_for(tuple(1).words()) && !m.is_for(tuple(2).words()));
        assert!(m.agree(Agreement::Attached) && !m.agree(Agreement::Cancelled));
        m.renew();
        assert!(!m.is_for(tuple(1).words()) && !m.agree(Agreement::Attached));
    }
}
