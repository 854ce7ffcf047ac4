//! When what was taken out of every list may be freed: once no thread can be looking at it any more. See [`epoch`].
//!
//! Who looks at something shared without holding it has [entered](enter), for as long as it looks: a plain store when it begins, and
//! another when it ends. That is for what goes on by itself. Who sleeps, or makes a call that may wait, holds what it goes on with instead,
//! by a count of that one thing, and [rests](Entered::rest) meanwhile: else nothing at all could be freed until it comes back.
//!
//! A thread may also leave a look for good: by siglongjmp(3), which tells [`unwound_to`]; by its end, however that comes; or because
//! the process was forked, and the thread is another process's. Where a look goes on for long the kernel is asked whether its thread lives.
//! A child of vfork(2) is its parent's thread, to whom the parent's look is one that a handler interrupted.

use core::cell::Cell;
use core::marker::PhantomData;
use core::ptr::null_mut;
use core::time::Duration;

use headwater_channel::epoch::{self, Epoch, Word};

use crate::sync::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Exchange, Ordering, fence};
use crate::thread_end::ThreadEnd;
use crate::{process, sys};

/// What one thread says of itself. Never freed: threads that come take the places of those that have gone.
#[repr(align(64))]
struct Place {
    word: Word,
    /// An address in the stack frame that looks.
    frame: AtomicUsize,
    /// A handler of the program runs, and has interrupted the look.
    interrupted: AtomicBool,
    /// {how many have had it: 32, the thread's number, 0 for none: 32}
    thread: AtomicU64,
    next: AtomicPtr<Place>,
}

#[unsafe(link_section = ".data")]
static EPOCH: Epoch = Epoch::new();
static PLACES: AtomicPtr<Place> = AtomicPtr::new(null_mut());
static NOBODYS: Place = Place::new(0);
static REFUSED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static MINE: Cell<Option<&'static Place>> = const { Cell::new(None) };
}

/// This thread looks at what it does not hold: nothing that it finds from here on is freed before that ends.
pub struct Entered {
    place: &'static Place,
    /// It is for this one to end the look: it has begun it, and does not rest.
    announces: Cell<bool>,
    /// It is of one thread.
    _here: PhantomData<*const ()>,
}

/// Begins to look.
#[inline(always)]
pub fn enter() -> Entered {
    let entered = Entered {
        place: MINE.get().unwrap_or_else(join),
        announces: Cell::new(false),
        _here: PhantomData,
    };
    entered.again();
    entered
}

impl Entered {
    /// Looks again after a [`rest`](Entered::rest), at what it finds from here on.
    #[inline(always)]
    pub fn again(&self) {
        let here = 0u8;
        let frame = (&raw const here).addr();
        let place = self.place;
        // Known at any moment at which a handler may leave it. One that interrupts between the first two, and looks, has its own there.
        if place.word.announced() == 0 {
            place.frame.store(frame, Ordering::Relaxed);
            place.word.announce(&EPOCH);
            place.frame.store(frame, Ordering::Relaxed);
            self.announces.set(true);
        }
    }

    /// Does not look until it looks [again](Entered::again).
    ///
    /// # Safety
    /// Of what it has found so far only that is used from here on which is held in another way.
    #[inline(always)]
    pub unsafe fn rest(&self) {
        self.end();
    }

    #[inline(always)]
    fn end(&self) {
        if self.announces.replace(false) {
            self.place.word.leave();
        }
    }
}

impl Drop for Entered {
    #[inline(always)]
    fn drop(&mut self) {
        self.end();
    }
}

/// Does this thread look at anything?
#[inline]
pub fn any() -> bool {
    MINE.get().is_some_and(|place| place.word.announced() != 0)
}

/// Control goes to a frame at `target` for good: looks of calls below it are over.
pub fn unwound_to(target: usize) {
    if let Some(place) = MINE.get().filter(|_| any())
        && place.frame.load(Ordering::Relaxed) < target
    {
        place.word.leave();
        place.interrupted.store(false, Ordering::Relaxed);
    }
}

/// Runs a handler of the program: what it does by itself is no part of the look that it may have interrupted.
#[inline]
pub fn in_handler(run: impl FnOnce()) {
    let Some(place) = MINE.get() else {
        return run();
    };
    let before = place.interrupted.load(Ordering::Relaxed);
    let is_looking = place.word.announced() != 0;
    place.interrupted.store(is_looking, Ordering::Relaxed);
    run();
    place.interrupted.store(before, Ordering::Relaxed);
}

/// A call of this thread does not look, whoever of it has entered, until this is dropped. A look that a handler has interrupted goes on.
pub struct Rest {
    place: Option<&'static Place>,
    frame: usize,
}

/// The call rests.
///
/// # Safety
/// Of what the call has found so far only that is used from here on which is held in another way: beyond the rest, until another look.
pub unsafe fn rest() -> Rest {
    let mine =
        |place: &&Place| place.word.announced() != 0 && !place.interrupted.load(Ordering::Relaxed);
    let place = MINE.get().filter(mine);
    let frame = place.map_or(0, |place| place.frame.load(Ordering::Relaxed));
    if let Some(place) = place {
        place.word.leave();
    }
    Rest { place, frame }
}

impl Drop for Rest {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            // As in `again`, with the frame of who goes on.
            place.frame.store(self.frame, Ordering::Relaxed);
            place.word.announce(&EPOCH);
            place.frame.store(self.frame, Ordering::Relaxed);
        }
    }
}

/// In the child of fork(2), whose only thread has another number.
#[inline]
pub fn in_child() {
    if MINE.get().is_some() {
        in_child_as(me());
    }
}

/// The same where the C library does not know that number.
pub fn in_child_as(thread: u32) {
    if let Some(place) = MINE.get() {
        let last = place.thread.load(Ordering::Relaxed);
        place.thread.store(next(last, thread), Ordering::Relaxed);
    }
}

/// Before the program runs.
pub fn prepare() {
    END.prepare();
}

static END: ThreadEnd = ThreadEnd::new(ended);

unsafe extern "C" fn ended(_: *mut libc::c_void) {
    process::without_handlers(|| {
        if let Some(place) = MINE.take() {
            place.word.leave();
            place.interrupted.store(false, Ordering::Relaxed);
            let last = place.thread.load(Ordering::Relaxed);
            place.thread.store(next(last, 0), Ordering::Release);
        }
    });
}

fn me() -> u32 {
    sys::thread_id().unwrap_or_else(sys::gettid) as u32
}

/// The word of a place that goes on to another thread.
fn next(last: u64, thread: u32) -> u64 {
    ((last >> 32) + 1) << 32 | thread as u64
}

/// A place for this thread, which has none yet.
#[cold]
fn join() -> &'static Place {
    if process::is_confined() {
        // Which may not have the memory for a place, and frees nothing.
        return &NOBODYS;
    }
    process::without_handlers(|| {
        if let Some(place) = MINE.get() {
            return place;
        }
        END.ask();
        if sys::is_single_threaded() {
            // Later it takes the kernel long: it waits for each processor.
            let _ = sys::membarrier(REGISTER);
        }
        let place = places().find(|p| p.take()).unwrap_or_else(more);
        MINE.set(Some(place));
        place
    })
}

fn more() -> &'static Place {
    let place: &'static Place = Box::leak(Box::new(Place::new(me())));
    let at = place as *const Place as *mut Place;
    let before = |first| {
        place.next.store(first, Ordering::Relaxed);
        Some(at)
    };
    let _ = PLACES.fetch_update(Ordering::AcqRel, Ordering::Acquire, before);
    place
}

fn places() -> impl Iterator<Item = &'static Place> {
    let at = |place: *mut Place| {
        // SAFETY: null, or a leaked box that was whole before it was on the list.
        unsafe { place.as_ref() }
    };
    core::iter::successors(at(PLACES.load(Ordering::Acquire)), move |place| {
        at(place.next.load(Ordering::Acquire))
    })
}

/// In [`Place::thread`]: it is being cleared.
const CLEARED: u32 = u32::MAX;

impl Place {
    const fn new(thread: u32) -> Place {
        Place {
            word: Word::new(),
            frame: AtomicUsize::new(0),
            interrupted: AtomicBool::new(false),
            thread: AtomicU64::new(thread as u64),
            next: AtomicPtr::new(null_mut()),
        }
    }

    /// For this thread, if it is nobody's.
    fn take(&self) -> bool {
        let last = self.thread.load(Ordering::Acquire);
        last as u32 == 0 && self.thread.exchange(last, next(last, me()))
    }

    /// Clears it if its thread has gone, and nobody else does so or has it by now.
    fn clear_if_left(&self) -> bool {
        let last = self.thread.load(Ordering::Acquire);
        let thread = last as u32;
        if thread == 0 || thread == CLEARED || is_alive(thread) {
            return false;
        }
        let cleared = next(last, CLEARED);
        let mine = self.thread.exchange(last, cleared);
        if mine {
            self.word.leave();
            self.interrupted.store(false, Ordering::Relaxed);
            self.thread.store(next(cleared, 0), Ordering::Release);
        }
        mine
    }
}

/// A thread of this process, or of the parent whose memory a child of vfork(2) has.
fn is_alive(thread: u32) -> bool {
    sys::signal_to(process::pid(), thread as i32, 0) != Err(libc::ESRCH)
}

/// Has each thread of this process pass a fence. False: the kernel does not do that.
fn barrier() -> bool {
    if sys::is_single_threaded() {
        return true;
    }
    fence(Ordering::SeqCst);
    if REFUSED.load(Ordering::Relaxed) || process::is_confined() {
        return false;
    }
    let membarrier = |command| sys::membarrier(command).is_ok();
    let passed = membarrier(EXPEDITED) || membarrier(REGISTER) && membarrier(EXPEDITED);
    if !passed {
        REFUSED.store(true, Ordering::Relaxed);
    }
    passed
}

/// The commands MEMBARRIER_CMD_PRIVATE_EXPEDITED, and its registration, which the kernel asks for before.
const EXPEDITED: i32 = 1 << 3;
const REGISTER: i32 = 1 << 4;

/// What was taken out of reach, and is to be freed. Its owner guards it.
pub struct Retired<T> {
    list: Vec<Item<T>>,
}

struct Item<T> {
    what: T,
    epoch: u64,
    since: u64,
}

/// A look that has kept something for so long, in nanoseconds, may be one that was left.
const LONG: u64 = Duration::from_millis(20).as_nanos() as u64;

impl<T> Retired<T> {
    pub const fn new() -> Retired<T> {
        Retired { list: Vec::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Nobody who begins to look from here on finds `what`.
    pub fn push(&mut self, what: T) {
        self.list.push(Item {
            what,
            epoch: EPOCH.retire(),
            since: sys::now(),
        });
    }

    /// Takes out what nobody looks at any more. Where the kernel does not do its part nobody is known to have come out of a look before so many
    /// nanoseconds as `least` says of the place in the list, the oldest first, have passed besides.
    pub fn take_free(&mut self, least: impl Fn(usize) -> u64) -> Vec<T> {
        if process::is_confined() {
            // Nobody could be asked.
            return Vec::new();
        }
        let (Some(oldest), now) = (self.list.first(), sys::now()) else {
            return Vec::new();
        };
        let is_long = now.saturating_sub(oldest.since) > LONG;
        let (mut exact, first) = (false, oldest.epoch);
        let before = epoch::free_before(|| exact = barrier(), announced(first, is_long));
        let mut place = 0;
        let is_free = |item: &mut Item<T>| {
            place += 1;
            item.epoch < before && (exact || now.saturating_sub(item.since) >= least(place - 1))
        };
        let free = self.list.extract_if(.., is_free);
        free.map(|item| item.what).collect()
    }
}

impl<T> Default for Retired<T> {
    fn default() -> Retired<T> {
        Retired::new()
    }
}

/// What the threads have announced. Where `asks`, those that keep what was retired in `first` are asked for.
fn announced(first: u64, asks: bool) -> impl Iterator<Item = u64> {
    let mine = MINE.get();
    // Lazily: the list begins, and the words are read, behind the barrier.
    core::iter::once_with(places).flatten().map(move |place| {
        let word = place.word.announced();
        let is_mine = || mine.is_some_and(|mine| core::ptr::eq(mine, place));
        let keeps = word != 0 && word <= first;
        if keeps && asks && !is_mine() && place.clear_if_left() {
            return 0;
        }
        word
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    /// Words are the process's: one test at a time.
    static ONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

    fn alone() -> std::sync::MutexGuard<'static, ()> {
        ONE.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn retired() -> Retired<u32> {
        let mut retired = Retired::new();
        retired.push(1);
        retired
    }

    #[test]
    fn what_nobody_looks_at_is_freed_at_once() {
        let _alone = alone();
        assert_eq!(retired().take_free(|_| 0), [1]);
    }

    #[test]
    fn a_look_keeps_what_was_retired_since_it_began_and_no_more() {
        let _alone = alone();
        let mut before = retired();
        let (began, begins) = channel();
        let (ends, end) = channel();
        let thread = std::thread::spawn(move || {
            let look = enter();
            began.send(()).unwrap();
            end.recv().unwrap();
            drop(look);
        });
        begins.recv().unwrap();
        let mut since = retired();
        assert_eq!(before.take_free(|_| 0), [1]);
        assert!(since.take_free(|_| 0).is_empty());
        ends.send(()).unwrap();
        thread.join().unwrap();
        assert_eq!(since.take_free(|_| 0), [1]);
    }

    #[test]
    fn an_inner_look_ends_no_outer_one_and_who_rests_keeps_nothing() {
        let _alone = alone();
        let outer = enter();
        drop(enter());
        let mut kept = retired();
        assert!(kept.take_free(|_| 0).is_empty());
        // SAFETY: it has found nothing.
        unsafe { outer.rest() };
        assert_eq!(kept.take_free(|_| 0), [1]);
        outer.again();
        let mut kept = retired();
        assert!(kept.take_free(|_| 0).is_empty());
        drop(outer);
        assert_eq!(kept.take_free(|_| 0), [1]);
    }

    #[test]
    fn a_call_that_rests_keeps_nothing_unless_a_handler_makes_it_within_a_look() {
        let _alone = alone();
        let _outer = enter();
        let _inner = enter();
        let (mut first, mut second) = (retired(), retired());
        in_handler(|| {
            let _its = enter();
            // SAFETY: nothing was found.
            let _rest = unsafe { rest() };
            assert!(first.take_free(|_| 0).is_empty());
        });
        assert!(first.take_free(|_| 0).is_empty());
        // SAFETY: nothing was found.
        let rests = unsafe { rest() };
        assert_eq!(first.take_free(|_| 0), [1]);
        drop(rests);
        assert_eq!(second.take_free(|_| 0), [1]);
        assert!(retired().take_free(|_| 0).is_empty());
    }

    #[test]
    fn a_look_that_a_jump_has_left_is_over_and_one_above_it_is_not() {
        let _alone = alone();
        let here = 0u8;
        let here = (&raw const here).addr();
        core::mem::forget(enter());
        let mut kept = retired();
        unwound_to(here - (1 << 20));
        assert!(kept.take_free(|_| 0).is_empty());
        unwound_to(here + (1 << 20));
        assert_eq!(kept.take_free(|_| 0), [1]);
    }

    #[test]
    fn a_thread_that_ends_within_a_look_keeps_nothing() {
        let _alone = alone();
        std::thread::spawn(|| core::mem::forget(enter()))
            .join()
            .unwrap();
        assert_eq!(retired().take_free(|_| 0), [1]);
    }

    /// One whose end was not told: its place names a thread that does not exist.
    #[test]
    fn a_place_whose_thread_is_not_there_is_cleared() {
        let _alone = alone();
        let place = more();
        place.thread.store(i32::MAX as u64, Ordering::Relaxed);
        assert!(place.word.enter(&EPOCH));
        let mut kept = retired();
        let begun = sys::now();
        while kept.take_free(|_| 0).is_empty() {
            assert!(sys::now() - begun < 10_000_000_000);
            std::thread::yield_now();
        }
        assert_eq!(place.word.announced(), 0);
        assert!(place.take() && !place.take());
        place.thread.store(0, Ordering::Relaxed);
    }

    #[test]
    fn a_child_of_fork_keeps_what_its_own_thread_looks_at_alone() {
        let _alone = alone();
        let (began, begins) = channel();
        let (ends, end) = channel();
        let thread = std::thread::spawn(move || {
            let _look = enter();
            began.send(()).unwrap();
            end.recv().unwrap();
        });
        begins.recv().unwrap();
        let look = enter();
        // SAFETY: the child makes no use of other threads, and leaves.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                in_child();
                process::forked();
                let mut kept = retired();
                let (begun, mut held) = (sys::now(), true);
                while sys::now() - begun < 2 * LONG {
                    held &= kept.take_free(|_| 0).is_empty();
                }
                drop(look);
                let free = kept.take_free(|_| 0) == [1];
                libc::_exit(!(held && free) as i32);
            }
            let mut status = -1;
            assert_eq!(libc::waitpid(child, &mut status, 0), child);
            assert_eq!(status, 0);
        }
        ends.send(()).unwrap();
        thread.join().unwrap();
    }
}
