//! A two-way channel between threads or processes: messages or bytes, blocking or not, copied or in place.
//!
//! ```text
//!   Channel     the two verbs in their forms          send, receive, in_place, io
//!   section     a locked stretch of work on one ring; its end wakes the peer
//!   waiting     spin, yield, arm, fence, look again, sleep in poll on {bell, shadow}; settle
//!   end         the words of the segment that belong to an end
//!   fds, pass   taking an end apart and handing it to another process
//! ```
//!
//! Each end has a *bell*, an eventfd (a timerfd where holders don't trust each other) that the peer rings when this end said that it sleeps, and a *shadow*, one end of a
//! UNIX socket pair on which nothing is ever sent. The kernel closes the shadow when the last process that holds the end
//! has closed it or died, and that is how the peer learns of it.

mod end;
mod error;
mod fds;
mod in_place;
mod io;
mod pass;
mod receive;
mod section;
mod send;
#[cfg(test)]
mod tests;
mod waiting;

use std::os::fd::AsRawFd;
use std::time::Instant;

pub use error::{OpenError, ReceiveError, SendError};
pub use fds::{Fds, Side};
pub use in_place::{FrameRef, Reservation};
pub use receive::Message;

use crate::ring::Ring;
use crate::segment::{MAX_RING, MIN_RING, Segment};
use crate::wait::Learner;
use end::{Header, Seen};
use section::Holders;

/// Bytes of a ring when nothing is said: room for what two busy ends exchange between two looks.
pub const DEFAULT_RING: usize = 256 << 10;

/// Frame overhead that one message may cost: its header, the length of its control part, the header behind it.
const OVERHEAD: usize = 24;

/// One end of a channel.
///
/// All calls take `&self`: an end may be used by several threads at once, and by a child of fork(2) together with its
/// parent. What is sent by one holder of an end may be received by any holder of the other. Not async-signal-safe: a
/// handler must not use an end that the code it interrupted may be using.
///
/// Dropping the last holder of an end closes it: the peer reads what was sent and then gets [`ReceiveError::Closed`].
///
/// ```
/// use headwater_channel::{Channel, ReceiveError};
///
/// let (a, b) = Channel::pair(64 << 10)?;
/// let echo = std::thread::spawn(move || {
///     let mut buf = [0; 100];
///     loop {
///         match b.recv(&mut buf) {
///             Ok(n) => b.send(&buf[..n]).unwrap(),
///             Err(ReceiveError::Closed) => break,
///             Err(e) => panic!("{e}"),
///         }
///     }
/// });
/// let mut buf = [0; 100];
/// a.send(b"hello")?;
/// assert_eq!(a.recv(&mut buf)?, 5);
/// assert_eq!(&buf[..5], b"hello");
/// drop(a);
/// echo.join().unwrap();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Channel {
    segment: Segment,
    side: Side,
    spin: bool,
    /// `None` only while the end is taken apart.
    fds: Option<Fds>,
    reading: Learner,
    writing: Learner,
    seen: Seen,
    holders: Holders,
}

/// Options of a new channel.
///
/// ```
/// use headwater_channel::Channel;
///
/// let (a, b) = Channel::builder().ring_bytes(1 << 20).spin(false).pair()?;
/// # let _ = (a, b);
/// # Ok::<(), headwater_channel::OpenError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Builder {
    ring: usize,
    spin: bool,
    guarded: bool,
}

impl Builder {
    /// Size of each direction's ring in bytes: a power of two from 4 KiB to 64 MiB. It costs address space at once and
    /// memory only as data flows.
    pub fn ring_bytes(mut self, bytes: usize) -> Builder {
        self.ring = bytes;
        self
    }

    /// May a blocking call spin and yield before it sleeps? On by default. Without, it sleeps at once: for ends that
    /// wait long and often, where a wake-up's 5 to 50 µs do not matter.
    pub fn spin(mut self, spin: bool) -> Builder {
        self.spin = spin;
        self
    }

    /// Will an end be held by somebody who is not trusted? Off by default. Then no holder of the other end can keep a call of
    /// this one waiting: a wake-up takes a timer in place of an eventfd, and a few microseconds more.
    pub fn guarded(mut self, guarded: bool) -> Builder {
        self.guarded = guarded;
        self
    }

    /// Makes the two ends.
    pub fn pair(self) -> Result<(Channel, Channel), OpenError> {
        if !self.ring.is_power_of_two() || !(MIN_RING..=MAX_RING).contains(&self.ring) {
            return Err(OpenError::RingSize);
        }
        let (a, b) = Fds::pair(self.ring, self.guarded)?;
        let (mut a, mut b) = (Channel::from_fds(a)?, Channel::from_fds(b)?);
        a.spin = self.spin;
        b.spin = self.spin;
        Ok((a, b))
    }
}

/// How long a call may wait.
#[derive(Clone, Copy)]
enum Patience {
    Now,
    Until(Instant),
    Forever,
}

impl Channel {
    /// Two connected ends with rings of `ring_bytes` (a power of two, 4 KiB to 64 MiB) in each direction.
    ///
    /// Errors: those of memfd_create(2), mmap(2), eventfd(2) and socketpair(2), as [`OpenError::System`]; EMFILE where
    /// the process has fewer than eight descriptors left.
    pub fn pair(ring_bytes: usize) -> Result<(Channel, Channel), OpenError> {
        Channel::builder().ring_bytes(ring_bytes).pair()
    }

    /// Options for a new pair, [`DEFAULT_RING`] bytes each way at first.
    pub fn builder() -> Builder {
        Builder {
            ring: DEFAULT_RING,
            spin: true,
            guarded: false,
        }
    }

    /// The longest message, control and data part together, in bytes: a little less than half a ring, so that a writer
    /// which is woken at the low-water mark finds room for whatever it waits with. Bytes written through [`std::io::Write`]
    /// have no such limit.
    pub fn max_message(&self) -> usize {
        self.segment.ring_size() / 2 - OVERHEAD
    }

    /// Bytes that wait to be received, control parts included. A hint while others use the end.
    pub fn unread(&self) -> usize {
        self.incoming().unread()
    }

    /// As [`Builder::spin`], for this end, as used by this process.
    pub fn set_spin(&mut self, spin: bool) {
        self.spin = spin;
    }

    fn header(&self) -> &Header {
        self.segment.header()
    }

    fn outgoing(&self) -> Ring<'_> {
        let i = self.side.index();
        Ring::new(&self.header().rings[i], self.segment.ring_data(i))
    }

    fn incoming(&self) -> Ring<'_> {
        let i = self.side.peer().index();
        Ring::new(&self.header().rings[i], self.segment.ring_data(i))
    }

    fn open_fds(&self) -> &Fds {
        match &self.fds {
            Some(fds) => fds,
            None => unreachable!("taken only by what consumes the channel"),
        }
    }

    fn own_bell(&self) -> i32 {
        self.open_fds().bell.as_raw_fd()
    }

    fn peer_bell(&self) -> i32 {
        self.open_fds().peer_bell.as_raw_fd()
    }

    fn shadow(&self) -> i32 {
        self.open_fds().shadow.as_raw_fd()
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // The descriptors first: whoever follows the hint must find the shadow closed.
        if self.fds.take().is_some() {
            self.header().ends[self.side.index()].leave();
        }
    }
}

impl core::fmt::Debug for Channel {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Channel")
            .field("side", &self.side)
            .field("ring_bytes", &self.segment.ring_size())
            .field("unread", &self.unread())
            .finish_non_exhaustive()
    }
}
