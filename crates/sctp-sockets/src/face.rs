//! Descriptors of SCTP sockets. A number is a UNIX datagram socket that nobody can reach; the descriptor table has a slot for it,
//! which numbers made by dup share. What waits for readiness is in `watch`, what poll, select and epoll ask in `readiness`.
//!
//! Locks, from the outside: an epoll set's, a slot's or a watch's, the socket's own.

use std::sync::Arc;

use headwater_host::counters::{self, Counter};
use headwater_host::log::{self, Level};
use headwater_host::numbers::Numbers;
use headwater_host::sync::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use headwater_host::sys;
use headwater_host::table::{self, Handle, Kind};
use headwater_sctp_stack::Guarded;

use super::{Socket, Style};

pub mod count;
mod last;
mod readiness;
mod watch;

use last::Using;
pub use readiness::Sctps;
use watch::Watch;

/// Sockets of a process at most.
const MOST: usize = 1 << 16;

headwater_host::large! {
    rarely:
    static SLOTS: [AtomicPtr<Slot>; MOST] = [const { AtomicPtr::new(core::ptr::null_mut()) }; MOST];
}
/// One past the highest slot ever used; under the lock of `FREE`.
static TOP: AtomicU32 = AtomicU32::new(0);
static FREE: Guarded<Vec<u32>> = Guarded::new(Vec::new());

/// Never freed, but used again: a handle's generation tells.
struct Slot {
    /// Changed under the lock.
    numbers: Numbers,
    open: Guarded<Option<Arc<Open>>>,
}

/// A socket that is open: its last holder, a descriptor or a call in progress, closes it.
pub struct Open {
    pub socket: Arc<Socket>,
    watch: Watch,
    ended: AtomicBool,
}

impl Open {
    /// A call may have made or ended associations: whoever sleeps in a set of the program's watches the new ones too.
    #[inline]
    pub fn called(&self) {
        self.watch.refresh(&self.socket);
    }

    /// As [`called`](Open::called), after data was moved or looked for; is something else watched now?
    #[inline]
    pub fn moved(&self) -> bool {
        self.socket.style == Style::Many && self.watch.refresh(&self.socket)
    }

    fn end(&self) {
        if !self.ended.swap(true, Ordering::AcqRel) {
            self.socket.close();
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.end();
    }
}

/// What socket(2) with IPPROTO_SCTP can be asked for: {AF_INET6?, style}.
pub fn serves(domain: i32, kind: i32) -> Option<(bool, Style)> {
    let v6 = match domain {
        libc::AF_INET => false,
        libc::AF_INET6 => true,
        _ => return None,
    };
    let style = match kind & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC) {
        libc::SOCK_STREAM => Style::One,
        libc::SOCK_SEQPACKET => Style::Many,
        _ => return None,
    };
    Some((v6, style))
}

/// socket(2), for what [`serves`] has said. `kind` has the flags. EMFILE, ENFILE, ENOMEM.
pub fn open((v6, style): (bool, Style), kind: i32) -> sys::Result<i32> {
    if headwater_host::memory::is_scarce() {
        return Err(libc::ENOMEM);
    }
    let number = Number::new(kind)?;
    let socket = Socket::open(v6, style, kind & libc::SOCK_NONBLOCK != 0);
    number.stands_for(Arc::new(socket))
}

/// A descriptor that the program does not know yet; closed when dropped.
pub struct Number(i32);

impl Number {
    /// With the flags SOCK_CLOEXEC and SOCK_NONBLOCK of `kind`. EMFILE, ENFILE, ENOMEM.
    pub fn new(kind: i32) -> sys::Result<Number> {
        let flags = kind & (libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK);
        let fd = sys::socket(libc::AF_UNIX, libc::SOCK_DGRAM | flags, 0)?;
        Ok(Number(fd))
    }

    /// One of an earlier image of this process.
    pub fn inherited(fd: i32) -> Number {
        Number(fd)
    }

    /// Gives it to a socket. EMFILE.
    pub fn stands_for(self, socket: Arc<Socket>) -> sys::Result<i32> {
        let open = Arc::new(Open {
            socket,
            watch: Watch::new(),
            ended: AtomicBool::new(false),
        });
        let h = enter(open).ok_or(libc::EMFILE)?;
        if !table::set(self.0, h) {
            let_go(h);
            return Err(libc::EMFILE);
        }
        counters::add(Counter::SctpSockets, 1);
        let fd = self.0;
        core::mem::forget(self);
        Ok(fd)
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        let _ = sys::close(self.0);
    }
}

/// The socket behind a handle; `None` once it was closed.
#[inline]
pub fn get(h: Handle) -> Option<Using> {
    let slot = slot(h)?;
    match last::get(h) {
        Some(open) if slot.numbers.are_of(h) => Some(open),
        _ => get_another(slot, h),
    }
}

#[cold]
fn get_another(slot: &Slot, h: Handle) -> Option<Using> {
    let place = slot.open.enter();
    let open = place.as_ref().filter(|_| slot.numbers.are_of(h));
    let open = open.cloned()?;
    drop(place);
    Some(last::keep(h, open))
}

/// All that are open.
pub fn all() -> Vec<Arc<Open>> {
    slots()
        .filter_map(|slot| slot.open.enter().clone())
        .collect()
}

fn slot(h: Handle) -> Option<&'static Slot> {
    // SAFETY: slots are never freed.
    unsafe { SLOTS.get(h.index())?.load(Ordering::Acquire).as_ref() }
}

fn slots() -> impl Iterator<Item = &'static Slot> {
    let top = TOP.load(Ordering::Acquire) as usize;
    // SAFETY: slots are never freed.
    SLOTS[..top]
        .iter()
        .filter_map(|slot| unsafe { slot.load(Ordering::Acquire).as_ref() })
}

fn enter(open: Arc<Open>) -> Option<Handle> {
    let mut free = FREE.enter();
    let index = match free.pop() {
        Some(index) => index,
        None => {
            let top = TOP.load(Ordering::Relaxed);
            let place = SLOTS.get(top as usize)?;
            let slot = Slot {
                numbers: Numbers::new(),
                open: Guarded::new(None),
            };
            place.store(Box::into_raw(Box::new(slot)), Ordering::Release);
            TOP.store(top + 1, Ordering::Release);
            top
        }
    };
    let bare = Handle::new(Kind::Sctp, 0, index);
    let slot = slot(bare)?;
    let mut place = slot.open.enter();
    let generation = slot.numbers.begin()?;
    *place = Some(open);
    Some(Handle::new(Kind::Sctp, generation, index))
}

/// A number of `h` is gone.
fn let_go(h: Handle) {
    let Some(slot) = slot(h) else { return };
    let mut place = slot.open.enter();
    if !slot.numbers.fewer(h) {
        return;
    }
    let open = place.take();
    drop(place);
    FREE.enter().push(h.index() as u32);
    // Outside of all locks: it may linger.
    if let Some(open) = open
        && !open.ended.swap(true, Ordering::AcqRel)
    {
        open.socket.abandon();
    }
    last::forget();
}

/// Another number for the same socket.
pub fn duplicated(h: Handle, fd: i32) {
    let Some(slot) = slot(h) else { return };
    let place = slot.open.enter();
    // It may have been closed this moment.
    let is_more = slot.numbers.more(h);
    drop(place);
    if is_more && !table::set(fd, h) {
        let_go(h);
    }
}

/// Before close(2) of `fd`, or dup2(2) over it. To be finished when the kernel has closed it.
pub fn closing(fd: i32, h: Handle) -> Closing {
    if let Some(slot) = slot(h) {
        slot.numbers.closing(fd);
    }
    Closing(h)
}

#[must_use]
pub struct Closing(Handle);

impl Closing {
    /// May wait, where SO_LINGER says so.
    pub fn finish(self) {
        let_go(self.0);
    }
}

/// What sockets have counted is added to the process's counters.
pub fn tell_counts() {
    for open in all() {
        open.socket.tell_counts();
    }
}

/// The process ends: its associations too, gracefully where there is time.
pub fn exiting() {
    for open in all() {
        open.end();
    }
    headwater_providers::loopback::link::outbox::exiting();
}

/// The sockets that a new image would get the number of, and nothing else.
pub fn lost_by_exec() -> usize {
    let inherited = |&(fd, h): &(i32, Handle)| h.kind() == Kind::Sctp && sys::survives_exec(fd);
    table::entries().filter(inherited).count()
}

/// A number of an SCTP socket goes to another image, which can do nothing with it.
pub fn note_lost(sockets: usize) {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if sockets == 0 {
        return;
    }
    counters::add(Counter::SctpLost, sockets as u64);
    if !TOLD.swap(true, Ordering::Relaxed) {
        let told = "a program that was started by system, popen or the like has a dead descriptor of an SCTP socket: SOCK_CLOEXEC spares it that";
        log::write(Level::Info, format_args!("{told}"));
    }
}

/// Why an SCTP socket can't be sent to another process: no kernel could serve it there.
pub fn refuse_passing() -> i32 {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if !TOLD.swap(true, Ordering::Relaxed) {
        let told = "an SCTP socket cannot be passed to another process: accept it there, or fork after it was accepted; EOPNOTSUPP";
        log::write(Level::Warn, format_args!("{told}"));
    }
    libc::EOPNOTSUPP
}

/// What [`before_fork`] holds.
static HELD: AtomicPtr<Vec<Arc<Open>>> = AtomicPtr::new(core::ptr::null_mut());

/// Around fork: no slot, and no watch, is in the middle of a change.
pub fn before_fork() {
    // The child has a copy of what is not told.
    tell_counts();
    FREE.shut();
    let open = Box::new(all());
    slots().for_each(|slot| slot.open.shut());
    open.iter().for_each(|open| open.watch.shut());
    HELD.store(Box::into_raw(open), Ordering::Relaxed);
}

pub fn after_fork(in_child: bool) {
    let held = HELD.swap(core::ptr::null_mut(), Ordering::Relaxed);
    if held.is_null() {
        return;
    }
    // SAFETY: from `before_fork`, in this thread.
    let open = unsafe { Box::from_raw(held) };
    open.iter().for_each(|open| open.watch.reopen(in_child));
    slots().for_each(|slot| slot.open.reopen());
    FREE.reopen();
}
