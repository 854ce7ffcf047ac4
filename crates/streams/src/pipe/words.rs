//! The words of a stream head that all processes holding it share: in the segment of a pipe, on the heap for a driver's
//! stream, which is one process's own.

use core::mem::offset_of;

use headwater_channel::ring::RingState;
use headwater_channel::shm::SharedSafe;
use headwater_host::sync::{AtomicU32, AtomicU64, Ordering};

/// Changes with every change of the layouts in this file; the size is in it, so that another layout is never mapped.
pub const ABI: u32 = 6 << 16 | size_of::<Header>() as u32;

/// What lies behind the segment's preamble. Ring 0 carries what side 0 writes.
#[derive(SharedSafe)]
#[repr(C)]
pub struct Header {
    pub rings: [RingState; 2],
    pub ends: [HeadWords; 2],
    pub cpus: [CpuLine; 2],
    pub bands: [BandLine; 2],
}

/// Bits of [`HeadWords::state`]. While none is set, reading and writing need no closer look.
pub mod state {
    /// The other end is gone, or a module sent M_HANGUP.
    pub const HANGUP: u32 = 1;
    /// M_ERROR for reading, for writing: the errno is in `read_error`, `write_error`.
    pub const READ_ERROR: u32 = 2;
    pub const WRITE_ERROR: u32 = 4;
    /// What waits in the ring is for the head itself: M_ERROR, M_HANGUP and the like of a module at the other end.
    pub const FOR_HEAD: u32 = 8;
    /// Write options, packet sizes or marks differ from a fresh pipe's.
    pub const UNUSUAL_WRITE: u32 = 0x10;
    /// Read options differ from RNORM with RPROTNORM.
    pub const UNUSUAL_READ: u32 = 0x20;
    /// Linked below a multiplexer.
    pub const LINKED: u32 = 0x40;
    /// Some holder has queues of its own between head and ring.
    pub const QUEUED: u32 = 0x80;
    /// A process wants SIGPOLL for what happens here.
    pub const SIGNALS: u32 = 0x100;
    /// A band other than 0 has been written.
    pub const BANDED: u32 = 0x200;
    /// Opened for writing only, for reading only.
    pub const NO_READ: u32 = 0x400;
    pub const NO_WRITE: u32 = 0x800;
    /// SO_MREADON: a read that finds nothing sends M_READ.
    pub const TELLS_READS: u32 = 0x1000;
    /// Of a transport connection: the other end has shut down, and takes what was begun, but no new message.
    pub const HUSHED: u32 = 0x2000;
    /// Of the same: messages wait outside of the ring.
    pub const HOLDS: u32 = 0x4000;
    /// Of the same: one of several processes that hold the end has closed it in peace.
    pub const LEFT: u32 = 0x8000;

    pub const STOPS_READ: u32 = READ_ERROR | UNUSUAL_READ | LINKED | NO_READ | FOR_HEAD;
    pub const STOPS_WRITE: u32 =
        HANGUP | WRITE_ERROR | UNUSUAL_WRITE | LINKED | NO_WRITE | FOR_HEAD;
}

/// Words that are all 0 at first, or nearly so.
macro_rules! words {
    ($(#[$about:meta])* pub struct $words:ident { $($(#[$doc:meta])* pub $word:ident: $kind:ty,)* }) => {
        $(#[$about])*
        pub struct $words { $($(#[$doc])* pub $word: $kind),* }

        impl $words {
            fn zero(&self) {
                $(self.$word.store(0, Ordering::Relaxed);)*
            }
        }
    };
}

words! {
/// One stream head. Read with nearly every call, written rarely.
#[derive(SharedSafe, Default)]
#[repr(C, align(128))]
pub struct HeadWords {
    pub state: AtomicU32,
    /// O_NONBLOCK, as the descriptor has it.
    pub nonblocking: AtomicU32,
    /// How often a holder has closed the end; a hint to look at the shadow.
    pub departures: AtomicU32,
    /// Several processes hold the end: then a kill can swallow a wake-up, and sleeps are cut into slices.
    pub shared: AtomicU32,
    /// The process that used the end first.
    pub user: AtomicU64,
    /// Read mode and protocol mode, as I_SRDOPT takes them.
    pub read_options: AtomicU32,
    /// As I_SWROPT takes them.
    pub write_options: AtomicU32,
    /// RERRNORM ..., WERRNORM ..., as I_SERROPT takes them.
    pub error_options: AtomicU32,
    pub read_error: AtomicU32,
    pub write_error: AtomicU32,
    /// Milliseconds that close may wait for data to drain.
    pub close_time: AtomicU32,
    /// Marks of the head's read queue: what the other end may put into the ring. 0: as much as it holds.
    pub hiwat: AtomicU32,
    pub lowat: AtomicU32,
    /// Packet sizes for writing; and the room left in front of written data.
    pub min_packet: AtomicU32,
    pub max_packet: AtomicU32,
    pub write_offset: AtomicU32,
    /// The other end of a connld connection was taken by I_RECVFD.
    pub accepted: AtomicU32,
    /// How often a writer found no room; how often a sleeper was woken.
    pub full_count: AtomicU32,
    pub wakeups: AtomicU32,
    /// How often the end was given a name: holders that did not do it learn of it by this.
    pub names: AtomicU32,
    /// Processes that hold the end of a transport connection, for whom its last close is more than a hangup; 0: not counted.
    /// One that was killed stays counted.
    pub holders: AtomicU32,
    /// Bytes that the user of a transport endpoint wants to be held of what it sends, and of what it is sent; 0: not said.
    pub send_buffer: AtomicU32,
    pub receive_buffer: AtomicU32,
    /// Bytes of room that its user waits for, and bytes that are there before it sees them; 0: not said.
    pub send_low: AtomicU32,
    pub receive_low: AtomicU32,
    /// High and low water mark of what it sends, as they follow from both ends' wishes; 0: the usual ones.
    pub limit: AtomicU32,
    pub low: AtomicU32,
}
}

/// Where an end last ran, plus one; 0 when unknown. Written only when it changes, on a line of its own.
#[derive(SharedSafe)]
#[repr(C, align(128))]
pub struct CpuLine {
    pub cpu: AtomicU32,
}

/// Bytes of each band in a ring, for flow control by bands; band 0 is the ring's own matter.
#[derive(SharedSafe)]
#[repr(C, align(128))]
pub struct BandLine {
    pub bytes: [AtomicU32; 256],
}

const _: () = {
    assert!(size_of::<HeadWords>() == 128);
    assert!(offset_of!(Header, ends) == 2 * size_of::<RingState>());
    assert!(size_of::<BandLine>() == 1024);
};

impl HeadWords {
    /// As at the first open.
    pub fn renew(&self, close_time: u32) {
        self.zero();
        self.max_packet.store(u32::MAX, Ordering::Relaxed);
        self.close_time.store(close_time, Ordering::Release);
    }

    #[inline(always)]
    pub fn state(&self) -> u32 {
        self.state.load(Ordering::Acquire)
    }

    pub fn has(&self, bits: u32) -> bool {
        self.state() & bits != 0
    }

    pub fn set(&self, bits: u32) {
        self.state.fetch_or(bits, Ordering::AcqRel);
    }

    pub fn clear(&self, bits: u32) {
        self.state.fetch_and(!bits, Ordering::AcqRel);
    }

    pub fn set_read_options(&self, options: u32) {
        self.read_options.store(options, Ordering::Relaxed);
        match options {
            0 => self.clear(state::UNUSUAL_READ),
            _ => self.set(state::UNUSUAL_READ),
        }
    }

    /// As stroptions(9S) has it, whatever a peer wrote there.
    pub fn write_offset(&self) -> usize {
        self.write_offset.load(Ordering::Relaxed) as u16 as usize
    }

    #[inline(always)]
    pub fn is_nonblocking(&self) -> bool {
        self.nonblocking.load(Ordering::Relaxed) != 0
    }
}
