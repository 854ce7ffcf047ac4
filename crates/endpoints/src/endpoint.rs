//! An endpoint: a provider with its state, its lock, and the descriptor that the program has for it.
//!
//! The program's number is a copy of the provider's own descriptor, so that the kernel's poll(2) is right wherever the
//! kernel knows; [`Endpoints`] adds what this process or a ring knows.
//!
//! ```text
//!   moves         the state, as requests and what the provider tells change it        shared     the same over processes
//!   connection    addresses, connections, events                                      data       what is sent and received
//!   descriptors   the program's numbers, and who holds an endpoint                    waiting    threads that sleep at one
//!   readiness     endpoints in poll, select and epoll sets                            fork_exec  copies and images of the process
//! ```

use core::cell::UnsafeCell;

use headwater_channel::lock::Lock;
use headwater_host::roster::Roster;
use headwater_host::sync::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Exchange, Ordering};
use headwater_host::table::{self, Handle, Kind};
use headwater_host::{epoll, process};
use headwater_providers::flusher::{self, Holder};
use headwater_providers::provider::{Outcome, Provider};
use headwater_tpi::option::{Options, T_NOTSUPPORT};
use headwater_tpi::state::State;
use headwater_tpi::{Info, Refusal, error, refuse};

use crate::device::Device;

mod connection;
mod data;
mod descriptors;
mod fork_exec;
mod moves;
mod readiness;
mod shared;
mod waiting;
pub use descriptors::detach;
use descriptors::renew;
use fork_exec::flush_due;
pub use fork_exec::{VARIABLE, flush_all, inherit, look_after_forks};
pub use readiness::Endpoints;
use shared::Shared;

/// Endpoints of a process at most.
const MOST: usize = 1 << 16;

headwater_host::large! {
    rarely:
    static SLAB: [AtomicPtr<Endpoint>; MOST] = [const { AtomicPtr::new(core::ptr::null_mut()) }; MOST];
}
/// One past the highest index ever used, under the lock.
static TOP: AtomicU32 = AtomicU32::new(0);
static SLAB_LOCK: Lock = Lock::new();

/// Never freed, but used again: a handle's generation tells.
#[derive(Default)]
pub struct Endpoint {
    index: u32,
    generation: AtomicU32,
    /// Descriptors of the program, and other holds.
    holds: AtomicU32,
    /// A descriptor of the program's; -1 in message mode.
    fd: AtomicI32,
    /// O_NONBLOCK of the program's descriptors.
    nonblocking: AtomicU32,
    /// The provider's `inner`, as a handle's bits.
    inner: AtomicU64,
    /// The connection is carried by Fast Sockets, and sets that watch the descriptor were told.
    carried: AtomicU32,
    /// For what has no bell of its own; -1 until a thread sleeps here, or a set watches the endpoint.
    bell: AtomicI32,
    /// Threads asleep at the provider's ring or descriptor, and the bell.
    asleep: Roster,
    /// 1: an epoll set relies on the bell.
    armed: AtomicU32,
    /// With the processes that have the endpoint by fork.
    shared: AtomicPtr<Shared>,
    /// Sends that failed with TFLOW: 1 normal data, 2 expedited.
    blocked: AtomicU32,
    /// Something was sent since the flusher last found that nothing is held back; changed under the lock.
    fed: AtomicU32,
    lock: Lock,
    core: UnsafeCell<Option<Core>>,
}

struct Core {
    device: Device,
    provider: Box<dyn Provider>,
    state: State,
    /// Requests that the user has taken and not answered.
    outstanding: Vec<i32>,
    /// Those of them that another process has too, since the last fork.
    doubled: Vec<i32>,
    qlen: u32,
    /// The copy's original, to see when it changes.
    shadow: i32,
    shared: Option<&'static Shared>,
}

// SAFETY: `core` is only reached under the lock.
unsafe impl Sync for Endpoint {}
// SAFETY: `core` is only reached under the lock, and all that is in it is Send, providers too.
unsafe impl Send for Endpoint {}

/// The endpoint behind a handle; `None` once it was closed.
#[inline(always)]
pub fn get(h: Handle) -> Option<&'static Endpoint> {
    let e = SLAB.get(h.index())?.load(Ordering::Acquire);
    // SAFETY: endpoints are never freed.
    let e = unsafe { e.as_ref() }?;
    (e.generation.load(Ordering::Relaxed) & 0xff_ffff == h.generation()).then_some(e)
}

/// The endpoint behind a descriptor in direct mode.
#[inline(always)]
pub fn at(fd: i32) -> Option<&'static Endpoint> {
    get(table::lookup(fd).filter(|h| h.kind() == Kind::Endpoint)?)
}

/// All that are open.
pub fn all() -> impl Iterator<Item = &'static Endpoint> {
    ever().filter(|e| e.holds.load(Ordering::Acquire) > 0)
}

/// Opens an endpoint in direct mode and gives the program's descriptor. Errors: TSYSERR with EMFILE, ENFILE, ENOMEM ...
pub fn open(device: Device, oflag: i32) -> Outcome<i32> {
    let e = detached(device)?;
    e.show(oflag).inspect_err(|_| e.let_go())
}

/// An endpoint without a descriptor of the program's.
pub fn detached(device: Device) -> Outcome<&'static Endpoint> {
    settle(device, device.open()?, State::Unbnd)
}

impl Endpoint {
    pub fn handle(&self) -> Handle {
        Handle::new(
            Kind::Endpoint,
            self.generation.load(Ordering::Relaxed),
            self.index,
        )
    }

    pub fn device(&self) -> Option<Device> {
        self.look(|c| c.device)
    }

    pub fn info(&self) -> Outcome<Info> {
        self.with(|c| {
            let mut info = c.provider.info();
            info.state = c.state.number();
            Ok(info)
        })
    }

    pub fn state(&self) -> Outcome<State> {
        self.with(|c| Ok(c.state))
    }

    pub fn is_nonblocking(&self) -> bool {
        self.nonblocking.load(Ordering::Relaxed) != 0
    }

    pub fn set_nonblocking(&self, on: bool) {
        self.nonblocking.store(on as u32, Ordering::Relaxed);
    }

    /// t_optmgmt: all options must be of one level, and one that the provider has.
    pub fn negotiate(&self, flags: u32, opts: &[u8]) -> Outcome<(u32, Vec<u8>)> {
        // What is malformed the provider refuses.
        let asked = Options::all(opts).unwrap_or_default();
        let level = asked.first().map(|o| o.level);
        if asked.iter().any(|o| Some(o.level) != level) {
            return refuse(error::TBADOPT);
        }
        self.with(|c| {
            let answer = c.provider.negotiate(flags, opts)?;
            match level {
                // Then nothing was changed.
                Some(level) if answer.0 == T_NOTSUPPORT as u32 && !c.has_level(level)? => {
                    refuse(error::TBADOPT)
                }
                _ => Ok(answer),
            }
        })
    }

    pub fn local(&self) -> Outcome<Option<Vec<u8>>> {
        self.with(|c| Ok(c.provider.local()))
    }

    pub fn remote(&self) -> Outcome<Option<Vec<u8>>> {
        self.with(|c| Ok(c.provider.remote()))
    }

    /// Learns the state anew: another process that has the endpoint by fork may have changed it.
    pub fn sync(&self) -> Outcome<()> {
        self.changing(|c| {
            c.catch_up();
            Ok(())
        })
    }

    pub fn flush(&self) {
        self.look(|c| c.provider.flush());
    }

    /// The provider's descriptor; -1 once closed.
    pub fn descriptor(&self) -> i32 {
        self.look(|c| c.provider.descriptor()).unwrap_or(-1)
    }

    fn enter(&self) -> Entered<'_> {
        let _section = process::lock(&self.lock);
        Entered { e: self, _section }
    }

    /// Runs `f` inside the lock; `None` once it is closed.
    #[inline]
    fn look<T>(&self, f: impl FnOnce(&mut Core) -> T) -> Option<T> {
        self.enter().as_mut().map(f)
    }

    /// Runs `f` inside the lock; TBADF once it is closed.
    #[inline]
    fn with<T>(&self, f: impl FnOnce(&mut Core) -> Outcome<T>) -> Outcome<T> {
        // Not by `look`: an outcome in an option is moved twice, which each send and receive would pay.
        match &mut *self.enter() {
            Some(core) => f(core),
            None => refuse(error::TBADF),
        }
    }

    /// As [`with`](Endpoint::with), for what may change the provider's descriptors, or what threads sleep for.
    fn changing<T>(&self, f: impl FnOnce(&mut Core) -> Outcome<T>) -> Outcome<T> {
        let mut entered = self.enter();
        let Some(core) = &mut *entered else {
            return refuse(error::TBADF);
        };
        let inner = self.inner.load(Ordering::Relaxed);
        let was_full = core.is_full();
        let result = f(core);
        if was_full && !core.is_full() {
            self.look_for_next(core);
        }
        self.note_inner(&*core.provider);
        let now = core.provider.descriptor();
        let shown = self.fd.load(Ordering::Relaxed) >= 0;
        let is_other = core.shadow != now;
        core.shadow = now;
        let is_turned = is_other || inner != self.inner.load(Ordering::Relaxed);
        if is_turned && self.asleep.has_sleepers() {
            // At what it had before.
            self.ring();
        } else {
            self.tell_sleepers(core);
        }
        if shown && epoll::any() {
            if is_turned {
                drop(entered);
                self.renew_in_sets();
            }
        } else if shown && is_other {
            self.numbers().for_each(|fd| renew(fd, now));
        }
        result
    }
}

/// Inside an endpoint's lock.
struct Entered<'a> {
    e: &'a Endpoint,
    _section: process::Section<'a>,
}

impl core::ops::Deref for Entered<'_> {
    type Target = Option<Core>;
    fn deref(&self) -> &Option<Core> {
        // SAFETY: under the lock.
        unsafe { &*self.e.core.get() }
    }
}

impl core::ops::DerefMut for Entered<'_> {
    fn deref_mut(&mut self) -> &mut Option<Core> {
        // SAFETY: under the lock.
        unsafe { &mut *self.e.core.get() }
    }
}

/// All slots, closed ones too: the same before and after a fork, whatever other threads close meanwhile.
fn ever() -> impl Iterator<Item = &'static Endpoint> {
    let top = TOP.load(Ordering::Acquire) as usize;
    // SAFETY: endpoints are never freed.
    SLAB[..top]
        .iter()
        .filter_map(|slot| unsafe { slot.load(Ordering::Acquire).as_ref() })
}

fn settle(device: Device, provider: Box<dyn Provider>, state: State) -> Outcome<&'static Endpoint> {
    if headwater_host::memory::is_scarce() {
        return Err(Refusal::system(libc::ENOMEM));
    }
    flusher::ask(Holder::Endpoints, &(flush_due as fn(u64)));
    let e = fresh().ok_or(Refusal::system(libc::ENOSR))?;
    let shadow = provider.descriptor();
    e.note_inner(&*provider);
    let shared = shared::fresh(state);
    let at = shared.map_or(core::ptr::null_mut(), |s| core::ptr::from_ref(s).cast_mut());
    e.shared.store(at, Ordering::Release);
    e.fd.store(-1, Ordering::Relaxed);
    e.nonblocking.store(0, Ordering::Relaxed);
    e.blocked.store(0, Ordering::Relaxed);
    e.carried.store(0, Ordering::Relaxed);
    *e.enter() = Some(Core {
        device,
        provider,
        state,
        outstanding: Vec::new(),
        doubled: Vec::new(),
        qlen: 0,
        shadow,
        shared,
    });
    Ok(e)
}

fn fresh() -> Option<&'static Endpoint> {
    let _section = process::lock(&SLAB_LOCK);
    let top = TOP.load(Ordering::Relaxed);
    for slot in &SLAB[..top as usize] {
        // SAFETY: endpoints are never freed.
        let e: &'static Endpoint = unsafe { &*slot.load(Ordering::Acquire) };
        let left = e.holds.load(Ordering::Acquire) == 0 && !e.asleep.has_any();
        if left && e.holds.exchange(0, 1) {
            return Some(e);
        }
    }
    if top as usize >= MOST {
        return None;
    }
    let e = Box::leak(Box::new(Endpoint {
        index: top,
        holds: AtomicU32::new(1),
        fd: AtomicI32::new(-1),
        bell: AtomicI32::new(-1),
        ..Endpoint::default()
    }));
    SLAB[top as usize].store(e, Ordering::Release);
    TOP.store(top + 1, Ordering::Release);
    Some(e)
}
