//! The background of a process: it works for its clients while no call of the program does. Its thread is started when the first of them needs
//! it, has all signals blocked and a small stack, and does not outlive a fork: a child's own is started when it needs one.
//!
//! A client's work is done in *turns*: each does what there is to do and says until when, and at which descriptors, it then rests. The thread
//! rests where all its clients do. Between two turns of one the others that are due have theirs, so that whoever has much to do takes it piece
//! by piece. One that panics has no further turn.
//!
//! No turn waits, but those of STREAMS may: they run procedures of modules, which may be the program's, enter perimeters that others hold
//! while they find a way to another process (for a second at most), and close streams that drain before that (for as long as I_SETCLTIME
//! says). So STREAMS has a thread of its own, the *patient* one; packets, their timers and what is held back wait for none of that.
//!
//! Where a thread can't be started, calls that wait do the work: see [`stand_in`](crate::stand_in).

use core::cell::Cell;
use core::ptr::null_mut;
use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};

use headwater_channel::bell;
use headwater_channel::waiter::{self, Alone};

use crate::hook::Hook;
use crate::lifecycle::{self, Part};
use crate::log::{self, Level};
use crate::next::seldom;
use crate::sync::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Exchange, Ordering};
use crate::{hidden, process, sys};

/// Who has work to do. Those that are due at the same time have their turns in this order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Client {
    /// What is held back is sent.
    Flusher,
    /// Packets of SCTP, and its timers.
    Sctp,
    /// Sockets of SCTP that other processes have.
    Sharing,
    /// Names, timers, SIGPOLL and idle pumps of STREAMS. May wait.
    Streams,
}

const CLIENTS: usize = Client::Streams as usize + 1;
const PATIENT: u32 = Client::Streams.bit();
const PROMPT: u32 = Client::Flusher.bit() | Client::Sctp.bit() | Client::Sharing.bit();

impl Client {
    const fn bit(self) -> u32 {
        1 << self as u32
    }

    fn worker(self) -> &'static Worker {
        &WORKERS[usize::from(self.bit() & PATIENT != 0)]
    }
}

/// Does what there is to do, and says how the client then rests.
pub type Turn = fn(&mut Rest);

/// What a call that waits does where there is no thread; it does not wait either. Gives for how long, in nanoseconds, there is nothing to do.
pub type Work = fn() -> u64;

/// What ends a client's rest, besides a [`call`]: something at one of its descriptors, or its time. None of either when a turn begins, but for
/// the descriptors of before, which say what has come.
pub struct Rest {
    set: Vec<libc::pollfd>,
    until: u64,
}

impl Default for Rest {
    fn default() -> Rest {
        Rest {
            set: Vec::new(),
            until: u64::MAX,
        }
    }
}

impl Rest {
    /// At no descriptor, as yet: a turn begins with those of the rest before.
    pub fn clear(&mut self) {
        self.set.clear();
    }

    /// Until something has come, or happened, there at the latest. Gives its place.
    pub fn at(&mut self, fd: i32, events: i16) -> usize {
        self.set.push(sys::entry(fd, events));
        self.set.len() - 1
    }

    /// Until that time (CLOCK_MONOTONIC, nanoseconds) at the latest. 0: another turn at once, after those of others.
    pub fn until(&mut self, at: u64) {
        self.until = self.until.min(at);
    }

    /// What ended the rest, by place.
    pub fn set(&self) -> &[libc::pollfd] {
        &self.set
    }

    /// Has something come at that place?
    pub fn came(&self, place: usize) -> bool {
        self.set.get(place).is_some_and(|at| at.revents != 0)
    }

    fn is_over(&self, now: u64) -> bool {
        self.until <= now || self.set.iter().any(|at| at.revents != 0)
    }

    /// Rests, for one who has a client's turns in a thread of his own.
    pub fn take(&mut self) {
        let _ = sys::ppoll(&mut self.set, left(self.until));
        self.until = u64::MAX;
    }
}

fn left(until: u64) -> Option<u64> {
    (until != u64::MAX).then(|| until.saturating_sub(sys::now()))
}

struct Place {
    turn: Hook<Turn>,
    instead: Hook<Work>,
}

static PLACES: [Place; CLIENTS] = [const {
    Place {
        turn: Hook::new(),
        instead: Hook::new(),
    }
}; CLIENTS];

/// A thread, and how to reach it.
struct Worker {
    clients: u32,
    /// The process whose thread it is; 0: none.
    of: AtomicI32,
    /// Clients that are to have a turn.
    called: AtomicU32,
    /// The thread is about to sleep, or does: the bell wakes it.
    sleeps: AtomicBool,
    bell: AtomicI32,
    /// It could not be started, when that was last tried.
    missing: AtomicBool,
    /// Its client has not begun: calls that stand in don't start it.
    refused: AtomicBool,
    /// Until when it is not tried again, and why.
    pauses: AtomicU64,
    failed: AtomicI32,
}

static WORKERS: [Worker; 2] = [Worker::new(PROMPT), Worker::new(PATIENT)];

const STACK: usize = 256 << 10;
/// Where a thread could not be started, those who ask with each call try again so much later, in nanoseconds.
const PAUSE: u64 = Duration::from_millis(20).as_nanos() as u64;
/// Where the kernel refuses to sleep at the descriptors, the thread looks so often.
const BLIND: u64 = Duration::from_millis(5).as_nanos() as u64;

/// The client has a turn soon, and more of them as it rests; `instead` is what calls do where there is no thread. Each time the same. Errors:
/// those of making the thread.
pub fn begin(client: Client, turn: Turn, instead: Option<Work>) -> sys::Result<()> {
    let place = &PLACES[client as usize];
    match instead {
        Some(work) => place.instead.set(work),
        None => place.instead.clear(),
    }
    place.turn.set_first(turn);
    if !is_there(client) {
        client.worker().start()?;
    }
    call(client);
    Ok(())
}

/// As [`begin`], for who asks again at each call. Errors: also that of an attempt a little before.
pub fn begin_in_time(client: Client, turn: Turn, instead: Option<Work>) -> sys::Result<()> {
    let worker = client.worker();
    if worker.pauses() && !worker.is_there() {
        return Err(worker.failed.load(Ordering::Relaxed));
    }
    begin(client, turn, instead)
}

/// What the client needs besides a thread can't be had: calls do its work, until it [begins](begin).
pub fn refuse(client: Client, instead: Work) {
    let place = &PLACES[client as usize];
    place.instead.set(instead);
    client.worker().refused.store(true, Ordering::Release);
    client.worker().missing.store(true, Ordering::Release);
}

/// Has this process a thread for the client?
#[inline]
pub fn is_there(client: Client) -> bool {
    client.worker().is_there()
}

/// The client has a turn soon, whatever it rests for. Takes no lock and allocates nothing.
pub fn call(client: Client) {
    let worker = client.worker();
    worker.called.fetch_or(client.bit(), Ordering::SeqCst);
    if worker.sleeps.load(Ordering::SeqCst) && worker.sleeps.swap(false, Ordering::SeqCst) {
        bell::ring(worker.bell.load(Ordering::Acquire));
    }
}

thread_local! {
    /// The process that this thread is about to copy; 0: none.
    static COPIED: Cell<i32> = const { Cell::new(0) };
}

/// A child that this thread forks has one thread, whatever its clients ask for, until it says that no more.
pub fn start_none_in_child(on: bool) {
    COPIED.set(if on { process::pid() } else { 0 });
}

/// Is there a thread missing?
#[inline]
pub(crate) fn any_is_missing() -> bool {
    WORKERS.iter().any(|w| w.missing.load(Ordering::Relaxed))
}

/// Does the work of threads that are missing, unless they are there by now. Gives the least of `most` and what is given for that.
pub(crate) fn stand_in(most: u64) -> u64 {
    let missing = WORKERS.iter().filter(|worker| worker.is_missing_now());
    let clients = missing.fold(0, |clients, worker| clients | worker.clients);
    let places = PLACES.iter().enumerate();
    let works = places.filter(|&(client, _)| clients >> client & 1 != 0);
    works.fold(most, |most, (_, place)| {
        let Some(work) = place.instead.get() else {
            return most;
        };
        match catch_unwind(work) {
            Ok(next) => most.min(next),
            Err(_) => {
                place.instead.clear();
                let told = "internal error in the work of a thread that could not be started";
                log::write(Level::Error, format_args!("{told}"));
                most
            }
        }
    })
}

/// The threads are the parent's.
fn after_fork(in_child: bool) {
    if !in_child {
        return;
    }
    for worker in &WORKERS {
        worker.of.store(0, Ordering::Release);
        worker.forget();
    }
    // Who has failed may begin anew; and a child shares nothing as yet.
    for (client, place) in PLACES.iter().enumerate() {
        if client == Client::Sharing as usize || place.turn.is(stopped) {
            place.turn.clear();
        }
    }
}

impl Worker {
    const fn new(clients: u32) -> Worker {
        Worker {
            clients,
            of: AtomicI32::new(0),
            called: AtomicU32::new(0),
            sleeps: AtomicBool::new(false),
            bell: AtomicI32::new(-1),
            missing: AtomicBool::new(false),
            refused: AtomicBool::new(false),
            pauses: AtomicU64::new(0),
            failed: AtomicI32::new(0),
        }
    }

    #[inline]
    fn is_there(&self) -> bool {
        self.of.load(Ordering::Acquire) == process::pid()
    }

    fn pauses(&self) -> bool {
        self.pauses.load(Ordering::Acquire).wrapping_sub(sys::now()) <= PAUSE
    }

    /// Tries again to start it where it is missing.
    fn is_missing_now(&'static self) -> bool {
        if !self.missing.load(Ordering::Relaxed) {
            return false;
        }
        if self.is_there() {
            self.missing.store(false, Ordering::Relaxed);
            return false;
        }
        self.refused.load(Ordering::Acquire) || self.pauses() || self.start().is_err()
    }

    #[cold]
    fn start(&'static self) -> sys::Result<()> {
        // What a child of vfork started would be a thread of its parent's memory; and a filter may end a process that makes one.
        if process::is_borrowed() {
            return Err(libc::EAGAIN);
        }
        if process::is_confined() {
            self.missing.store(true, Ordering::Release);
            return Err(libc::EAGAIN);
        }
        let (of, me) = (self.of.load(Ordering::Acquire), process::pid());
        if ![0, me].contains(&COPIED.get()) {
            return Ok(());
        }
        if of == me || !self.of.exchange(of, me) {
            return Ok(());
        }
        if of != 0 {
            self.forget();
        }
        lifecycle::add(Part::Worker, || true, after_fork);
        self.called.store(self.clients, Ordering::SeqCst);
        self.refused.store(false, Ordering::Release);
        let started = self.make_bell().and_then(|()| self.spawn());
        let missing = self.missing.swap(started.is_err(), Ordering::AcqRel);
        if let Err(errno) = started {
            self.of.store(0, Ordering::Release);
            self.failed.store(errno, Ordering::Relaxed);
            self.pauses.store(sys::now() + PAUSE, Ordering::Release);
            if !missing {
                let told = "calls that wait do the work of a thread that there can't be";
                log::write(Level::Warn, format_args!("{told} (errno {errno})"));
            }
        }
        started
    }

    fn make_bell(&self) -> sys::Result<()> {
        if self.bell.load(Ordering::Acquire) < 0 {
            let made = bell::create().and_then(hidden::hide_needed)?;
            self.bell.store(made, Ordering::Release);
        }
        Ok(())
    }

    /// In a child: what there was is the parent's.
    fn forget(&self) {
        self.sleeps.store(false, Ordering::SeqCst);
        hidden::close(self.bell.swap(-1, Ordering::AcqRel));
    }

    fn spawn(&'static self) -> sys::Result<()> {
        // The C library takes a program's thread-local storage out of the stack: then only its own size will do.
        match self.spawn_with(Some(STACK)) {
            Err(libc::EINVAL) => self.spawn_with(None),
            done => done,
        }
    }

    fn spawn_with(&'static self, stack: Option<usize>) -> sys::Result<()> {
        let me = core::ptr::from_ref(self).cast_mut().cast();
        // SAFETY: a thread that owns nothing of the program's, and gets what lives for good; the mask is restored.
        unsafe {
            let all = sys::signal_set(u64::MAX);
            let mut old: libc::sigset_t = core::mem::zeroed();
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut old);
            let mut attributes: libc::pthread_attr_t = core::mem::zeroed();
            seldom::pthread_attr_init(&mut attributes);
            seldom::pthread_attr_setdetachstate(&mut attributes, libc::PTHREAD_CREATE_DETACHED);
            if let Some(stack) = stack {
                seldom::pthread_attr_setstacksize(&mut attributes, stack);
            }
            let mut thread: libc::pthread_t = core::mem::zeroed();
            let failed = seldom::pthread_create(&mut thread, &attributes, run, me);
            seldom::pthread_attr_destroy(&mut attributes);
            libc::pthread_sigmask(libc::SIG_SETMASK, &old, null_mut());
            if failed == 0 { Ok(()) } else { Err(failed) }
        }
    }

    /// Until the rest of one of the clients is over, or one is called.
    fn sleep(&self, rests: &mut [Rest; CLIENTS], set: &mut Vec<libc::pollfd>) {
        let bell = self.bell.load(Ordering::Acquire);
        set.clear();
        set.push(sys::entry(bell, libc::POLLIN));
        let mut until = u64::MAX;
        for rest in rests.iter_mut() {
            rest.set.iter_mut().for_each(|at| at.revents = 0);
            set.extend_from_slice(&rest.set);
            until = until.min(rest.until);
        }
        let slept = waiter::sleep(&mut Alone {
            arm: || self.sleeps.store(true, Ordering::SeqCst),
            look: || (self.called.load(Ordering::SeqCst) != 0).then_some(Ok(0)),
            sleep: || sys::ppoll(set, left(until)),
            disarm: || self.sleeps.store(false, Ordering::SeqCst),
        });
        if slept.is_err_and(|errno| errno != libc::EINTR) {
            // More descriptors than the program may have by now, or no memory.
            let _ = sys::ppoll(&mut [], Some(BLIND.min(left(until).unwrap_or(BLIND))));
            self.called.store(self.clients, Ordering::SeqCst);
            bell::take(bell);
            return;
        }
        let mut came = set.iter().map(|at| at.revents);
        if came.next().is_some_and(|revents| revents != 0) {
            bell::take(bell);
        }
        for at in rests.iter_mut().flat_map(|rest| &mut rest.set) {
            at.revents = came.next().unwrap_or(0);
        }
    }
}

extern "C" fn run(worker: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: what `spawn_with` was called with, which is static; C strings of at most 15 bytes; and the times of the flusher are short: they
    // are not to be rounded.
    let worker = unsafe {
        let worker = &*worker.cast::<Worker>();
        if worker.clients == PATIENT {
            libc::prctl(libc::PR_SET_NAME, c"headwater".as_ptr());
        } else {
            libc::prctl(libc::PR_SET_NAME, c"headwater-net".as_ptr());
            libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong);
        }
        worker
    };
    let mut rests = <[Rest; CLIENTS]>::default();
    let mut set = Vec::new();
    loop {
        let called = worker.called.swap(0, Ordering::SeqCst);
        let now = sys::now();
        for (client, (rest, place)) in rests.iter_mut().zip(&PLACES).enumerate() {
            if called >> client & 1 != 0 || rest.is_over(now) {
                have_turn(rest, place);
            }
        }
        worker.sleep(&mut rests, &mut set);
    }
}

fn have_turn(rest: &mut Rest, place: &Place) {
    rest.until = u64::MAX;
    let Some(turn) = place.turn.get() else { return };
    if catch_unwind(AssertUnwindSafe(|| turn(rest))).is_err() {
        stopped(rest);
        place.turn.set(stopped);
        let told = "internal error in the background: what failed is done by calls alone";
        log::write(Level::Error, format_args!("{told}"));
    }
}

/// The turn of one that has failed.
fn stopped(rest: &mut Rest) {
    rest.set.clear();
    rest.until = u64::MAX;
}

#[cfg(test)]
mod tests;
