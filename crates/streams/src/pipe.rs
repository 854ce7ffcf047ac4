//! Pipes and FIFOs: one segment with two rings, two bells, and a pair of UNIX sockets as the visible descriptors.
//!
//! An end is nothing but numbers and shared memory, so a child of fork has it, and another process can be given it:
//! see [`Pipe::open`]. A FIFO is a pipe of one end whose writing goes to its own reading; an eventfd is its descriptor.

pub mod section;
pub mod words;

use headwater_channel::bell;
use headwater_channel::ring::{Data, Ring};
use headwater_channel::segment::{HEADER_SIZE, Segment};
use headwater_host::sync::{AtomicI32, AtomicPtr, AtomicU32, Exchange, Ordering};
use headwater_host::{hidden, sys};

use words::{ABI, HeadWords, Header};

/// Bytes of each direction's ring. Double mapping makes that half a MiB of addresses for a pipe.
pub const RING: usize = 128 << 10;
/// Those of transport endpoints may be larger, by a power of two.
pub const LARGEST_RING: usize = RING << 4;
/// Ordinary messages fill a ring up to here; the rest is for bands, high priority and the executive's own messages.
pub const LIMIT: usize = 96 << 10;
/// A full ring takes ordinary messages again at this fill.
pub const LOW: usize = 64 << 10;
/// The longest message that lies in the ring itself; a longer one travels in a memfd of its own.
pub const INLINE: usize = 64 << 10;

/// Departures of an end that was left once, for another use of the pipe.
const SETTLED: u32 = 2;

/// A segment as mapped here. Shared by the heads of both ends if both are in this process.
pub struct Pipe {
    segment: Segment,
    pub memfd: i32,
    /// The bell of each side; -1 until somebody of this process may sleep there, or another process gets the pipe.
    bells: [AtomicI32; 2],
    /// Identity of the segment on this machine.
    pub inode: u64,
    /// The heads of this process, by side: see [`head`](crate::head).
    pub(crate) heads: [AtomicPtr<()>; 2],
    users: AtomicU32,
    /// Somebody keeps it mapped for another use: see [`keep`](Pipe::keep).
    kept: AtomicU32,
    pub fifo: bool,
    /// Of a FIFO with a name, the kernel's FIFO that it is opened by: see [`gate`](crate::attach::gate). -1: it has none.
    gate: AtomicI32,
}

/// The ring's words and bytes in a mapped segment.
///
/// # Safety
/// `base` is a mapped segment with rings of this size, for `'a`.
#[inline(always)]
pub unsafe fn ring_at<'a>(base: *mut u8, index: u32, size: usize) -> Ring<'a> {
    // SAFETY: the segment is mapped with rings of this size, as the caller says: words and bytes lie in it.
    unsafe {
        let header = &*(base.add(USER) as *const Header);
        let i = (index & 1) as usize;
        Ring::new(
            &header.rings[i],
            Data::new(base.add(HEADER_SIZE + i * 2 * size), size),
        )
    }
}

/// As the channel crate places a user's words behind its own.
const USER: usize = 256;

/// # Safety
/// As [`ring_at`].
#[inline(always)]
pub unsafe fn header_at<'a>(base: *mut u8) -> &'a Header {
    // SAFETY: the segment is mapped, as the caller says, and begins with the header.
    unsafe { &*(base.add(USER) as *const Header) }
}

impl Pipe {
    /// A new pipe; the visible descriptors are returned, side 0 first. A FIFO has only the first.
    pub fn create(fifo: bool, flags: i32) -> sys::Result<(&'static Pipe, [i32; 2])> {
        let visible = if fifo {
            [placeholder(flags)?, -1]
        } else {
            socketpair(flags)?
        };
        match Pipe::bare(fifo, RING) {
            Ok(pipe) => Ok((pipe, visible)),
            Err(e) => {
                for fd in visible.into_iter().filter(|&fd| fd >= 0) {
                    let _ = sys::close(fd);
                }
                Err(e)
            }
        }
    }

    /// A new pipe without any visible descriptor, with rings of this size, from [`RING`] to [`LARGEST_RING`].
    pub fn bare(fifo: bool, ring: usize) -> sys::Result<&'static Pipe> {
        let (segment, memfd) = Segment::create(ring, ABI)?;
        debug_assert!(core::ptr::eq(
            segment.header::<Header>(),
            // SAFETY: just mapped.
            unsafe { header_at(segment.base()) }
        ));
        let memfd = hidden::hide_needed(memfd)?;
        let inode = sys::fstat(memfd).map_or(0, |st| st.st_ino);
        let pipe = Pipe::leak(segment, memfd, [-1, -1], inode, fifo);
        pipe.renew();
        Ok(pipe)
    }

    /// As new. Only while nobody uses it.
    fn renew(&self) {
        let header = self.header();
        // Where the ends ran last is as good a guess as any.
        for end in &header.ends {
            end.renew(crate::tunables::get().close_time_ms);
        }
        for (i, _) in header.rings.iter().enumerate() {
            let ring = self.ring(i as u32);
            ring.reset();
            ring.set_low_water(LOW);
        }
    }

    /// Renews a pipe that one process made and another has used with it, if both have left it in peace: no other holds it,
    /// nobody was killed inside, and no sleeper has yet to take its name off.
    pub fn try_renew(&self) -> bool {
        let header = self.header();
        let is_alone = |end: &HeadWords| end.shared.load(Ordering::Acquire) == 0;
        let left = header.ends[1].departures.load(Ordering::Acquire) > 0
            && header.ends.iter().all(is_alone);
        let quiet = header.rings.iter().all(|ring| {
            let sleep = &ring.sleep;
            ring.writer.lock.owner().bits() | ring.reader.lock.owner().bits() == 0
                && !sleep.readers.any()
                && !sleep.writers.any()
        });
        let idle = left && quiet && self.heads_gone();
        if idle {
            self.renew();
        }
        idle
    }

    /// This process has left the end `side`, and keeps what is needed to use it again. The last that it does there.
    pub fn settle(&self, side: u32) {
        if self.heads_gone() {
            self.words(side).departures.exchange(1, SETTLED);
        }
    }

    /// Has the process that did not make the pipe [settled](Pipe::settle)?
    pub fn is_settled(&self) -> bool {
        self.words(1).departures.load(Ordering::Acquire) == SETTLED
    }

    /// Has this process no head of it?
    pub fn heads_gone(&self) -> bool {
        self.heads
            .iter()
            .all(|head| head.load(Ordering::Acquire).is_null())
    }

    pub fn is_kept(&self) -> bool {
        self.kept.load(Ordering::Acquire) != 0
    }

    /// Keeps it mapped when its heads are gone, to be used again: one more user, unless it is kept already. Until
    /// [`life::give_up`](crate::head::life::give_up).
    pub fn keep(&self) {
        if self.kept.swap(1, Ordering::AcqRel) == 0 {
            self.users.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Takes back [`keep`](Pipe::keep); true if that was the last user.
    pub(crate) fn give_up(&self) -> bool {
        self.kept.swap(0, Ordering::AcqRel) == 1 && self.leave()
    }

    /// A pipe that another process made. The descriptors are taken over, also when it fails; not the second bell of a FIFO, which has one.
    pub fn open(fifo: bool, memfd: i32, [first, second]: [i32; 2]) -> sys::Result<&'static Pipe> {
        // Each of them, before the first failure is told: nobody else closes them.
        let (memfd, first) = (Owned::hide(memfd), Owned::hide(first));
        let second = if fifo {
            Ok(Owned(-1))
        } else {
            Owned::hide(second)
        };
        Pipe::open_hidden(fifo, memfd?, [first?, second?])
    }

    /// As [`open`](Pipe::open), with descriptors that are hidden already. The second bell of a FIFO is none.
    pub fn open_hidden(fifo: bool, memfd: Owned, bells: [Owned; 2]) -> sys::Result<&'static Pipe> {
        let segment = Segment::open(memfd.number(), ABI)?;
        // Numbers that an image before this one told may be something else by now, which is not to be written to.
        let mut used = bells.iter().take(if fifo { 1 } else { 2 });
        let sizes = RING..=LARGEST_RING;
        if !sizes.contains(&segment.ring_size())
            || !used.all(|bell| bell::may_be_eventfd(bell.number()))
        {
            return Err(libc::EPROTO);
        }
        let (memfd, bells) = (memfd.into_number(), bells.map(Owned::into_number));
        let inode = sys::fstat(memfd).map_or(0, |st| st.st_ino);
        Ok(Pipe::leak(segment, memfd, bells, inode, fifo))
    }

    fn leak(
        segment: Segment,
        memfd: i32,
        bells: [i32; 2],
        inode: u64,
        fifo: bool,
    ) -> &'static Pipe {
        Box::leak(Box::new(Pipe {
            segment,
            memfd,
            bells: bells.map(AtomicI32::new),
            inode,
            heads: Default::default(),
            users: AtomicU32::new(0),
            kept: AtomicU32::new(0),
            fifo,
            gate: AtomicI32::new(-1),
        }))
    }

    /// The bell of a side, if there is one yet; -1: nobody sleeps there.
    #[inline]
    pub fn known_bell(&self, side: u32) -> i32 {
        let side = if self.fifo { 0 } else { side & 1 };
        self.bells[side as usize].load(Ordering::Acquire)
    }

    /// The bell of a side, made now if need be. Errors: those of eventfd(2); EMFILE.
    pub fn bell(&self, side: u32) -> sys::Result<i32> {
        let side = if self.fifo { 0 } else { side & 1 };
        bell_in(&self.bells[side as usize])
    }

    /// Both bells, for another process. As [`bell`](Pipe::bell).
    pub fn both_bells(&self) -> sys::Result<[i32; 2]> {
        Ok([self.bell(0)?, self.bell(1)?])
    }

    pub fn gate(&self) -> Option<i32> {
        let gate = self.gate.load(Ordering::Acquire);
        (gate >= 0).then_some(gate)
    }

    /// Gives a FIFO its gate, a hidden descriptor; closes it if it has one.
    pub fn take_gate(&self, gate: i32) {
        if !self.gate.exchange(-1, gate) {
            hidden::close(gate);
        }
    }

    pub fn base(&self) -> *mut u8 {
        self.segment.base()
    }

    pub fn header(&self) -> &Header {
        self.segment.header()
    }

    pub fn words(&self, side: u32) -> &HeadWords {
        &self.header().ends[(side & 1) as usize]
    }

    pub fn ring_size(&self) -> usize {
        self.segment.ring_size()
    }

    /// The ring that carries what `side` writes.
    pub fn ring(&self, side: u32) -> Ring<'_> {
        // SAFETY: mapped while self lives.
        unsafe { ring_at(self.base(), side, self.ring_size()) }
    }

    /// One more user; undone by [`leave`](Pipe::leave).
    pub(crate) fn join(&self) {
        self.users.fetch_add(1, Ordering::AcqRel);
    }

    /// True for the last.
    pub(crate) fn leave(&self) -> bool {
        self.users.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Unmaps and closes.
    ///
    /// # Safety
    /// From [`leak`](Pipe::leak), without users, and no call that might still hold a reference is running.
    pub unsafe fn bury(this: &'static Pipe) {
        hidden::close(this.memfd);
        hidden::close(this.gate.load(Ordering::Relaxed));
        for bell in &this.bells {
            hidden::close(bell.load(Ordering::Relaxed));
        }
        // SAFETY: `leak` took it out of a box, and nobody refers to it any more, as the caller says.
        drop(unsafe { Box::from_raw(this as *const Pipe as *mut Pipe) });
    }
}

/// A bell that is -1 until somebody may sleep there, made now if need be. EMFILE.
pub fn bell_in(word: &AtomicI32) -> sys::Result<i32> {
    made_in(word, || bell::create().and_then(hidden::hide_needed))
}

/// The same of any hidden descriptor.
pub fn made_in(word: &AtomicI32, make: impl FnOnce() -> sys::Result<i32>) -> sys::Result<i32> {
    let known = word.load(Ordering::Acquire);
    if known >= 0 {
        return Ok(known);
    }
    let fresh = make()?;
    let first = word.compare_exchange(-1, fresh, Ordering::AcqRel, Ordering::Acquire);
    if first.is_err() {
        hidden::close(fresh);
    }
    Ok(first.err().unwrap_or(fresh))
}

/// A hidden descriptor that is closed with its owner.
#[derive(Debug)]
pub struct Owned(pub i32);

impl Owned {
    pub fn number(&self) -> i32 {
        self.0
    }

    pub fn into_number(self) -> i32 {
        let fd = self.0;
        core::mem::forget(self);
        fd
    }

    /// What polls as nothing at all.
    pub fn silent() -> sys::Result<Owned> {
        Owned::hide(placeholder(libc::O_CLOEXEC | libc::O_NONBLOCK)?)
    }

    /// A descriptor of ours that stands for the same as `fd`.
    pub fn copy_of(fd: i32) -> sys::Result<Owned> {
        Owned::hide(sys::dup_above(fd, 0)?)
    }

    fn hide(fd: i32) -> sys::Result<Owned> {
        hidden::hide_needed(fd).map(Owned)
    }

    /// A number that the image after exec will find again.
    pub fn pass_on(&self) -> i32 {
        let _ = sys::fcntl(self.0, libc::F_SETFD, 0);
        self.0
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        hidden::close(self.0);
    }
}

/// Another descriptor of the program's: the lowest number, closed by exec if so asked. EMFILE.
pub fn duplicate(fd: i32, cloexec: bool) -> sys::Result<i32> {
    let command = match cloexec {
        true => libc::F_DUPFD_CLOEXEC,
        false => libc::F_DUPFD,
    };
    sys::fcntl(fd, command, 0)
}

/// Flags of open(2) that eventfd(2) and socketpair(2) have too.
const OPENED: i32 = libc::O_CLOEXEC | libc::O_NONBLOCK;

/// What programs see of a stream without a socket: an eventfd that says nothing.
pub fn placeholder(flags: i32) -> sys::Result<i32> {
    const { assert!(libc::EFD_CLOEXEC | libc::EFD_NONBLOCK == OPENED) };
    sys::eventfd(0, flags & OPENED)
}

/// The descriptors that programs see. Sequenced packets, since passed descriptors must not run together.
pub(crate) fn socketpair(flags: i32) -> sys::Result<[i32; 2]> {
    const { assert!(libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK == OPENED) };
    let pair = sys::socket_pair_of(libc::SOCK_SEQPACKET | flags & OPENED)?;
    for fd in pair {
        // Who passes a descriptor is told with it.
        let _ = sys::set_sockopt(fd, libc::SOL_SOCKET, libc::SO_PASSCRED, &1i32);
    }
    Ok(pair)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What opening a pipe with this as its second bell comes to.
    fn opened_with(bell: i32) -> Option<sys::Errno> {
        let (_segment, memfd) = Segment::create(RING, ABI).unwrap();
        Pipe::open(false, memfd, [bell::create().unwrap(), bell]).err()
    }

    #[test]
    fn what_is_there_is_closed_where_one_part_is_missing() {
        for (fifo, missing) in [(false, 0), (false, 1), (false, 2), (true, 0), (true, 1)] {
            let mut ends = [0; 2];
            // SAFETY: room for two descriptors.
            assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
            let [reader, writer] = ends;
            let mut fds = [0, 1, 2].map(|_| sys::dup_above(writer, 0).unwrap());
            // Of a FIFO the second stays the caller's.
            for unused in [Some(missing), fifo.then_some(2)].into_iter().flatten() {
                sys::close(fds[unused]).unwrap();
                fds[unused] = -1;
            }
            sys::close(writer).unwrap();
            let [memfd, first, second] = fds;
            let opened = Pipe::open(fifo, memfd, [first, second]);
            assert_eq!(opened.err(), Some(libc::EBADF));
            let mut left = sys::entry(reader, libc::POLLIN);
            // SAFETY: one pollfd.
            unsafe { libc::poll(&raw mut left, 1, 0) };
            assert_eq!(left.revents, libc::POLLHUP, "{fifo} {missing}");
            sys::close(reader).unwrap();
        }
    }

    #[test]
    fn a_number_that_is_no_bell_is_refused() {
        let mut ends = [0; 2];
        // SAFETY: room for two descriptors.
        assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
        for other in ends {
            assert_eq!(opened_with(other), Some(libc::EPROTO));
        }
        assert_eq!(opened_with(bell::create().unwrap()), None);
    }
}
