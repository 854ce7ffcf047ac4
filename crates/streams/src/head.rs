//! The stream head: what a descriptor of a stream is in this process.
//!
//! ```text
//!   write, read     bytes                         message   putmsg, getmsg and their band forms
//!   control         ioctl                         poll      readiness, signals
//!   life            open, close, dup, fork        wait      spin, yield, arm, fence, look again, sleep
//!   arming          what a call waits for; who relies on the bell, counted
//!   sleepers        what each thread sleeps at, for those that never come back
//!   inlet           the messages that can be read, in a ring or in a queue
//!   transport       frames of transport providers
//!   local           the queues of a head that has modules or a driver: upper, bottom, queue_inlet, requests, linking
//!   ends            how they end                     tending   what the background thread does for them, and fork
//! ```
//!
//! A pipe's head without modules is *fast*: its messages stay in the ring, where every process that holds the end finds
//! them. With modules, or a driver below, it is *queued*: see [`local`].

pub mod arming;
pub mod bottom;
pub mod control;
pub mod copying;
pub mod ends;
pub mod exec;
pub mod inlet;
pub mod life;
pub mod linking;
pub mod local;
pub mod message;
pub mod opening;
mod outgoing;
mod parcels;
pub mod passing;
pub mod poll;
pub mod queue_inlet;
pub mod read;
pub mod requests;
pub mod signals;
pub mod sleepers;
pub mod tending;
pub mod transport;
pub mod upper;
pub mod wait;
pub mod write;

use core::cell::UnsafeCell;

use headwater_channel::ring::Ring;
use headwater_channel::wait::Learner;
use headwater_host::hook::Hook;
use headwater_host::poll::Vain;
use headwater_host::reclaim::Entered;
use headwater_host::roster::Roster;
use headwater_host::sync::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Exchange, Ordering};
use headwater_host::table::{Handle, Kind};
use headwater_host::{process, sys};

use crate::board::MOST;
use crate::pipe::words::{HeadWords, state};
use crate::pipe::{self, Pipe};
use local::Local;

/// In the count of a head's names: the last has gone, and what is on the head is being taken apart.
const ENDS: u32 = 1 << 31;
/// In [`Head::base`].
const SIZE_BITS: usize = 7;

headwater_host::large! {
    rarely:
    static SLAB: [AtomicPtr<Head>; MOST] = [const { AtomicPtr::new(core::ptr::null_mut()) }; MOST];
}
/// One past the highest index ever used.
static TOP: AtomicU32 = AtomicU32::new(0);

/// Has this process answer for the names that others have given to an end of its.
pub(crate) static JOINS_NAMES: Hook<fn(&'static Head)> = Hook::new();

/// Where the segment of a pipe is mapped whose rings have the usual size, with no queues.
#[derive(Clone, Copy)]
struct Plain {
    base: *mut u8,
}

/// A stream head of this process. Never freed, but used again: a handle's generation tells.
#[derive(Default)]
pub struct Head {
    pub index: u32,
    generation: AtomicU32,
    /// Descriptors of this process.
    entries: AtomicU32,
    /// The mapped segment, and the size of its rings in the bits below a page, so that they are of one moment: by how much
    /// [`pipe::RING`] is shifted. Null for a driver's stream.
    base: AtomicPtr<u8>,
    /// The same, size and all, while the ring alone is between the two ends; null while there are queues.
    plain: AtomicPtr<u8>,
    words: AtomicPtr<HeadWords>,
    pipe: AtomicPtr<Pipe>,
    /// Bit 0: the ring we write, bit 1: the ring we read, bit 2: our side.
    rings: AtomicU32,
    own_words: HeadWords,
    /// A descriptor of this end, for looking at the shadow.
    pub fd: AtomicI32,
    /// The bell of a driver's stream; -1 until somebody may sleep at it.
    own_bell: AtomicI32,
    pub reading: Learner,
    pub writing: Learner,
    pub copying: copying::Copying,
    /// Waits for data since the last write.
    pub unanswered: AtomicU32,
    /// Of wakes at our bell.
    pub vain: Vain,
    seen_departures: AtomicU32,
    looks: AtomicU32,
    /// Names of the end that this process knows of, as the shared words count them.
    pub seen_names: AtomicU32,
    /// Counts what happens in this process that a sleeper may wait for.
    version: AtomicU32,
    /// Threads of this process asleep on the bell, and sets that rely on it.
    asleep: Roster,
    /// When a call last used the queues, in nanoseconds.
    pub used_at: AtomicU64,
    /// Events that raise SIGPOLL in this process, as I_SETSIG takes them; 0: none.
    pub signals: AtomicU32,
    /// How far the incoming ring was when it was last emptied into the queues.
    pub pumped: AtomicU64,
    /// The bottom's write queue waits for room in the ring.
    pub blocked: AtomicU32,
    /// The background thread serves this head.
    pub watched: AtomicU32,
    /// Came by fork with its queues, and was not used since: what comes is the parent's to take.
    pub inherited: AtomicU32,
    /// Modules were told that the other end is gone.
    pub ended: AtomicU32,
    /// What SIGPOLL was raised for: how far the incoming ring was, how often ours had been full, the hangup.
    pub told: signals::Told,
    local: UnsafeCell<Option<Box<Local>>>,
    pub perimeter: AtomicPtr<crate::exec::Perimeter>,
}

// SAFETY: `local` is only reached inside the perimeter; all else is atomic.
unsafe impl Sync for Head {}
// SAFETY: a head belongs to no thread, and its queues only to who is inside the perimeter.
unsafe impl Send for Head {}

/// The head behind a handle; `None` once it was closed. Its pipe stays for as long as this thread has entered, or is armed at the head
/// ([`arm`](Head::arm)) and has found it the same afterwards, or [holds](life::hold) it.
#[inline(always)]
pub fn get(h: Handle, _looks: &Entered) -> Option<&'static Head> {
    let head = SLAB.get(h.index())?.load(Ordering::Acquire);
    // SAFETY: heads are never freed.
    let head = unsafe { head.as_ref() }?;
    (head.generation.load(Ordering::Relaxed) & 0xff_ffff == h.generation()).then_some(head)
}

/// The open heads of this process, for as long as this thread has entered.
pub fn all(_looks: &Entered) -> impl Iterator<Item = &'static Head> {
    let top = TOP.load(Ordering::Acquire) as usize;
    SLAB[..top].iter().filter_map(|slot| {
        // SAFETY: heads are never freed.
        let head = unsafe { slot.load(Ordering::Acquire).as_ref() }?;
        (head.entries.load(Ordering::Acquire) > 0).then_some(head)
    })
}

impl Head {
    fn fresh(index: u32) -> Head {
        Head {
            index,
            fd: AtomicI32::new(-1),
            own_bell: AtomicI32::new(-1),
            ..Head::default()
        }
    }

    /// Itself: heads are never freed.
    fn forever(&self) -> &'static Head {
        // SAFETY: each is a leaked box.
        unsafe { &*(self as *const Head) }
    }

    pub fn handle(&self) -> Handle {
        let generation = self.generation.load(Ordering::Relaxed);
        Handle::new(Kind::Stream, generation, self.index)
    }

    #[inline(always)]
    pub fn words(&self) -> &HeadWords {
        // SAFETY: set before the head is used, to the segment's words or our own; a segment stays mapped for who has come by `get`.
        unsafe { &*self.words.load(Ordering::Relaxed) }
    }

    /// The pipe at the bottom; `None` for a driver's stream.
    #[inline]
    pub fn pipe(&self) -> Option<&'static Pipe> {
        // SAFETY: buried only when nobody who has come by `get` can be looking.
        unsafe { self.pipe.load(Ordering::Acquire).as_ref() }
    }

    #[inline(always)]
    pub fn has_pipe(&self) -> bool {
        !self.base.load(Ordering::Relaxed).is_null()
    }

    /// A FIFO, whose ends are one; or no pipe at all.
    #[inline(always)]
    fn is_one_way(&self) -> bool {
        self.rings.load(Ordering::Relaxed) & 3 == 0
    }

    pub fn side(&self) -> u32 {
        self.rings.load(Ordering::Relaxed) >> 2 & 1
    }

    /// The ring written to. Only with a pipe.
    #[inline(always)]
    pub fn outgoing(&self) -> Ring<'_> {
        // SAFETY: the caller knows that there is a pipe; its segment stays mapped for who has come by `get`.
        unsafe { self.ring_at(self.rings.load(Ordering::Relaxed)) }
    }

    /// The ring read from. Only with a pipe.
    #[inline(always)]
    pub fn incoming(&self) -> Ring<'_> {
        // SAFETY: the caller knows that there is a pipe, whose segment is unmapped only when nobody looks who has come by `get`.
        unsafe { self.ring_at(self.rings.load(Ordering::Relaxed) >> 1) }
    }

    /// As [`outgoing`](Head::outgoing), where nothing has to be found out.
    #[inline(always)]
    fn plain_outgoing(&self, plain: Plain) -> Ring<'_> {
        // SAFETY: a `Plain` stands for a mapped segment with rings of this size.
        unsafe { pipe::ring_at(plain.base, self.rings.load(Ordering::Relaxed), pipe::RING) }
    }

    /// As [`incoming`](Head::incoming), where nothing has to be found out.
    #[inline(always)]
    fn plain_incoming(&self, plain: Plain) -> Ring<'_> {
        // SAFETY: by a `Plain` the segment is mapped, and its rings have this size.
        unsafe {
            pipe::ring_at(
                plain.base,
                self.rings.load(Ordering::Relaxed) >> 1,
                pipe::RING,
            )
        }
    }

    /// `index`: which one, in the lowest bit.
    ///
    /// # Safety
    /// There is a pipe.
    #[inline(always)]
    unsafe fn ring_at(&self, index: u32) -> Ring<'_> {
        let base = self.base.load(Ordering::Relaxed);
        let size = pipe::RING << (base.addr() & SIZE_BITS);
        // SAFETY: there is a pipe, as the caller says: its segment is mapped, and the lowest bits tell the size of the rings.
        unsafe { pipe::ring_at(base.map_addr(|at| at & !SIZE_BITS), index, size) }
    }

    #[inline(always)]
    fn base(&self) -> *mut u8 {
        let base = self.base.load(Ordering::Relaxed);
        base.map_addr(|at| at & !SIZE_BITS)
    }

    /// Bytes of each band in a direction's ring.
    pub fn band_bytes(&self, out: bool) -> &[AtomicU32; 256] {
        let rings = self.rings.load(Ordering::Relaxed);
        let index = if out { rings } else { rings >> 1 } & 1;
        // SAFETY: only asked of a head with a pipe, whose segment stays mapped for who has come by `get`.
        let header = unsafe { pipe::header_at(self.base()) };
        &header.bands[index as usize].bytes
    }

    /// The words of the other end; our own for a FIFO.
    pub fn peer_words(&self) -> Option<&'static HeadWords> {
        let pipe = self.pipe()?;
        let side = if pipe.fifo { 0 } else { self.side() ^ 1 };
        Some(pipe.words(side))
    }

    /// The head of the other end, if this process holds it.
    pub fn local_peer(&self) -> Option<&'static Head> {
        let pipe = self.pipe()?;
        pipe.head(if pipe.fifo { 0 } else { self.side() ^ 1 })
    }

    /// The bell that wakes the other end; -1: nobody sleeps there.
    pub fn peer_bell(&self) -> i32 {
        self.pipe().map_or(-1, |p| p.known_bell(self.side() ^ 1))
    }

    /// Our bell, if there is one yet.
    pub fn known_bell(&self) -> i32 {
        match self.pipe() {
            Some(pipe) => pipe.known_bell(self.side()),
            None => self.own_bell.load(Ordering::Acquire),
        }
    }

    /// Our bell, made now if need be; -1 when no descriptor is left: then sleeps are short.
    pub fn bell(&self) -> i32 {
        let bell = match self.pipe() {
            Some(pipe) => pipe.bell(self.side()),
            None => pipe::bell_in(&self.own_bell),
        };
        bell.unwrap_or(-1)
    }

    pub fn ring_own(&self) {
        let bell = self.known_bell();
        if bell >= 0 {
            headwater_channel::bell::ring(bell);
        }
    }

    /// Begins a call on a pipe: tells the peer where we run, and everybody when several processes hold the end.
    #[inline(always)]
    pub fn enter(&self) {
        self.tell_user();
        let base = self.base();
        if !base.is_null() {
            self.tell_cpu(base);
        }
    }

    /// Tells the peer where we run.
    #[inline(always)]
    fn tell_cpu(&self, base: *mut u8) {
        // SAFETY: mapped, see `outgoing`.
        let header = unsafe { pipe::header_at(base) };
        let line = &header.cpus[(self.rings.load(Ordering::Relaxed) >> 2 & 1) as usize].cpu;
        line.change_to(sys::cpu().wrapping_add(1));
    }

    /// As [`enter`](Head::enter).
    #[inline(always)]
    fn enter_plain(&self, plain: Plain) {
        self.tell_user();
        self.tell_cpu(plain.base);
    }

    #[inline(always)]
    fn tell_user(&self) {
        let me = process::owner();
        if self.words().user.load(Ordering::Relaxed) != me.bits() {
            self.announce(me.bits());
        }
    }

    #[cold]
    fn announce(&self, me: u64) {
        let words = self.words();
        let first = words
            .user
            .compare_exchange(0, me, Ordering::Relaxed, Ordering::Relaxed);
        if first.is_ok() || words.shared.swap(1, Ordering::SeqCst) != 0 {
            return;
        }
        // Sleepers learn that they must sleep in slices from now on.
        self.ring_own();
        if self.peer_bell() >= 0 {
            headwater_channel::bell::ring(self.peer_bell());
        }
    }

    /// Where the peer last ran; `u32::MAX` when unknown.
    #[inline]
    pub fn peer_cpu(&self) -> u32 {
        let base = self.base();
        if base.is_null() {
            return u32::MAX;
        }
        // SAFETY: mapped, see `outgoing`.
        let header = unsafe { pipe::header_at(base) };
        let side = self.rings.load(Ordering::Relaxed) >> 2 & 1 ^ 1;
        header.cpus[side as usize]
            .cpu
            .load(Ordering::Relaxed)
            .wrapping_sub(1)
    }

    /// Is either end held by several processes?
    pub fn is_shared(&self) -> bool {
        self.words().shared.load(Ordering::Relaxed) != 0
            || self
                .peer_words()
                .is_some_and(|w| w.shared.load(Ordering::Relaxed) != 0)
    }

    /// Has the other end been given up? Costs a load unless there is reason to ask the kernel.
    #[inline(always)]
    pub fn has_hung_up(&self) -> bool {
        self.is_other_gone(self.base())
    }

    /// `base`: where the segment is mapped, if there is one.
    #[inline(always)]
    fn is_other_gone(&self, base: *mut u8) -> bool {
        if self.words().has(state::HANGUP) {
            return true;
        }
        let looks = self.looks.load(Ordering::Relaxed).wrapping_add(1);
        self.looks.store(looks, Ordering::Relaxed);
        if base.is_null() {
            return false;
        }
        // SAFETY: mapped, see `outgoing`.
        let header = unsafe { pipe::header_at(base) };
        let peer = (self.rings.load(Ordering::Relaxed) >> 2 & 1 ^ 1) as usize;
        let departures = header.ends[peer].departures.load(Ordering::Acquire);
        if departures == self.seen_departures.load(Ordering::Relaxed)
            && !looks.is_multiple_of(LOOK_EVERY)
        {
            return false;
        }
        self.look_at_shadow(departures)
    }

    /// As [`has_hung_up`](Head::has_hung_up), asking the kernel whatever the hints say.
    pub fn has_hung_up_now(&self) -> bool {
        let departures = self
            .peer_words()
            .map_or(0, |w| w.departures.load(Ordering::Acquire));
        self.words().has(state::HANGUP) || self.look_at_shadow(departures)
    }

    #[cold]
    fn look_at_shadow(&self, departures: u32) -> bool {
        self.seen_departures.store(departures, Ordering::Relaxed);
        let mut fds = [self.shadow_poll()];
        if sys::ppoll(&mut fds, Some(0)).is_ok() {
            self.note_shadow(fds[0].revents);
        }
        self.words().has(state::HANGUP)
    }

    /// Where time is at hand, and memory may be allocated: has another process given the end a name?
    pub fn look_for_names(&self) {
        let names = self.words().names.load(Ordering::Relaxed);
        if self.seen_names.swap(names, Ordering::Relaxed) != names
            && let Some(join) = JOINS_NAMES.get()
        {
            join(self.forever());
        }
    }

    pub fn shadow_poll(&self) -> libc::pollfd {
        let is_fifo = self.pipe().is_none_or(|p| p.fifo);
        let shadow = || self.fd.load(Ordering::Relaxed);
        sys::entry(if is_fifo { -1 } else { shadow() }, 0)
    }

    /// What the kernel said of the shadow.
    pub fn note_shadow(&self, revents: i16) {
        // Of a FIFO one open is over, not all.
        let is_fifo = self.pipe().is_some_and(|p| p.fifo);
        if !is_fifo
            && revents & (libc::POLLHUP | libc::POLLERR) != 0
            && !self.words().has(state::HANGUP)
        {
            self.words().set(state::HANGUP);
            self.notify();
        }
        // What the peer published before the kernel told us is looked at after this.
        headwater_host::sync::fence(Ordering::SeqCst);
    }

    /// Something happened in this process that a sleeper may wait for.
    pub fn notify(&self) {
        self.version.fetch_add(1, Ordering::SeqCst);
        if self.asleep.call(0) {
            self.ring_own();
        }
    }

    pub fn version(&self) -> u32 {
        self.version.load(Ordering::SeqCst)
    }

    /// The mapped segment if reading (writing) goes by the ring alone, with nothing unusual, and the ring is of the usual size.
    #[inline(always)]
    fn plain(&self, stops: u32) -> Option<Plain> {
        let base = self.plain.load(Ordering::Acquire);
        let is_usual = base.addr() & SIZE_BITS == 0 && self.words().state() & stops == 0;
        (!base.is_null() && is_usual).then_some(Plain { base })
    }

    /// The state of the other end, from its words.
    #[inline(always)]
    fn peer_state(&self, base: *mut u8) -> u32 {
        if base.is_null() {
            return 0;
        }
        // SAFETY: mapped, see `outgoing`.
        let header = unsafe { pipe::header_at(base) };
        let peer = (self.rings.load(Ordering::Relaxed) >> 1 & 1) as usize;
        header.ends[peer].state()
    }

    /// After something was put into, or taken from, a ring: the other end may be in this process, with queues to serve or a
    /// signal to get.
    #[inline(always)]
    pub fn tell_local_peer(&self) {
        self.tell_local_peer_at(self.base());
    }

    #[inline(always)]
    fn tell_local_peer_at(&self, base: *mut u8) {
        if self.peer_state(base) & (state::QUEUED | state::SIGNALS) != 0 {
            self.tell_slowly();
        }
    }

    #[cold]
    fn tell_slowly(&self) {
        local::after_call(self.forever());
        if let Some(peer) = self.local_peer() {
            signals::scan(peer);
        }
    }

    /// O_RDONLY, O_WRONLY or O_RDWR, as it was opened.
    pub fn access_mode(&self) -> i32 {
        let s = self.words().state();
        match (s & state::NO_READ != 0, s & state::NO_WRITE != 0) {
            (true, _) => libc::O_WRONLY,
            (_, true) => libc::O_RDONLY,
            _ => libc::O_RDWR,
        }
    }

    /// Would closing one descriptor leave another in this process?
    pub fn has_other_descriptors(&self) -> bool {
        self.entries.load(Ordering::Acquire) & !ENDS > 1
    }

    /// Has the last hold gone? It is not used again as long as anybody looks.
    fn is_closed(&self) -> bool {
        self.entries.load(Ordering::SeqCst) == 0
    }

    /// Do threads of this process sleep here? They pump when something comes.
    pub fn has_sleepers(&self) -> bool {
        self.asleep.has_any()
    }

    /// Is there a queue between head and ring, or a driver, in this process?
    #[inline(always)]
    pub fn is_queued(&self) -> bool {
        self.plain.load(Ordering::Acquire).is_null()
    }
}

impl Pipe {
    /// The head of `side` in this process, if there is one.
    #[inline]
    pub fn head(&self, side: u32) -> Option<&'static Head> {
        let head = self.heads[(side & 1) as usize].load(Ordering::Acquire);
        // SAFETY: null or from `attach`; heads are never freed.
        unsafe { head.cast::<Head>().as_ref() }
    }

    fn attach(&self, side: u32, head: &'static Head) {
        let at = core::ptr::from_ref(head).cast_mut();
        self.heads[(side & 1) as usize].store(at.cast(), Ordering::Release);
        self.join();
    }

    /// This head of this process is gone, and another may stand there already; true if it was the last one here.
    fn detach(&self, side: u32, head: &Head) -> bool {
        let _ = self.heads[(side & 1) as usize].compare_exchange(
            core::ptr::from_ref(head).cast_mut().cast(),
            core::ptr::null_mut(),
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
        self.leave()
    }
}

/// Nothing is mapped in the first page: what is there is EFAULT, as it would be to the kernel.
pub fn is_bad<T>(pointer: *const T) -> bool {
    pointer.addr() < 4096
}

/// A call looks at the shadow once in so many times: a killed peer leaves no hint.
const LOOK_EVERY: u32 = 256;
