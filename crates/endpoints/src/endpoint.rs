//! An endpoint: a provider with its state, its lock, and the descriptor that the program has for it.
//!
//! The program's number is a copy of the provider's own descriptor, so that the kernel's poll(2) is right wherever the
//! kernel knows; [`Endpoints`] adds what this process or a ring knows.

use core::cell::UnsafeCell;

use headwater_channel::bell;
use headwater_channel::lock::Lock;
use headwater_host::handed::{self, identity};
use headwater_host::sync::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use headwater_host::sys::Errno;
use headwater_host::table::{self, Handle, Kind};
use headwater_host::{epoll, hidden, poll, process, signal, sys};
use headwater_providers::flusher::{self, Holder, Went};
use headwater_providers::provider::{
    Arrived, Datagram, Event, Look, Outcome, Provider, Received, Sending, Sleep, Waiter,
};
use headwater_streams::head::Head;
use headwater_streams::head::wait::Want;
use headwater_streams::pipe;
use headwater_tpi::option::{List, Options, T_ALLOPT, T_CURRENT, T_NOTSUPPORT};
use headwater_tpi::prim::T_CLTS;
use headwater_tpi::state::{self, Event as Move, State};
use headwater_tpi::{Info, Refusal, error};
use libc::iovec;

use crate::device::Device;

mod readiness;
mod shared;
pub use readiness::Endpoints;
use shared::Shared;

/// What an exec hands to the next image: see [`save`].
pub const VARIABLE: &str = "HEADWATER_ENDPOINTS";

/// Endpoints of a process at most.
const MOST: usize = 1 << 16;

headwater_host::large! {
    rarely:
    static SLAB: [AtomicPtr<Endpoint>; MOST] = [const { AtomicPtr::new(core::ptr::null_mut()) }; MOST];
}
/// One past the highest index ever used, under the lock.
static TOP: AtomicU32 = AtomicU32::new(0);
static SLAB_LOCK: Lock = Lock::new();

/// How long sleepers are waited for when their endpoint becomes a stream, in nanoseconds.
const TURNING_OUT: u64 = 20_000_000;

/// Never freed, but used again: a handle's generation tells.
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
    /// Threads asleep at the provider's descriptor and the bell.
    asleep: AtomicU32,
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
// SAFETY: as above; providers are Send.
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

/// All slots, closed ones too: the same before and after a fork, whatever other threads close meanwhile.
fn ever() -> impl Iterator<Item = &'static Endpoint> {
    let top = TOP.load(Ordering::Acquire) as usize;
    // SAFETY: endpoints are never freed.
    SLAB[..top]
        .iter()
        .filter_map(|slot| unsafe { slot.load(Ordering::Acquire).as_ref() })
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

/// The endpoint that an earlier image left at `fd`.
fn restore(
    device: Device,
    fd: i32,
    state: State,
    qlen: u32,
    saved: &str,
) -> Option<&'static Endpoint> {
    handed::never_blocks(fd);
    let provider = device.restore(fd, saved)?;
    let e = settle(device, provider, state).ok()?;
    e.enter().as_mut()?.set_qlen(qlen);
    e.fd.store(fd, Ordering::Relaxed);
    table::set(fd, e.handle()).then_some(e)
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
        let left = e.holds.load(Ordering::Acquire) == 0 && e.asleep.load(Ordering::SeqCst) == 0;
        if left
            && e.holds
                .compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        {
            return Some(e);
        }
    }
    if top as usize >= MOST {
        return None;
    }
    let e = Box::leak(Box::new(Endpoint {
        index: top,
        generation: AtomicU32::new(0),
        holds: AtomicU32::new(1),
        fd: AtomicI32::new(-1),
        nonblocking: AtomicU32::new(0),
        inner: AtomicU64::new(0),
        carried: AtomicU32::new(0),
        bell: AtomicI32::new(-1),
        asleep: AtomicU32::new(0),
        armed: AtomicU32::new(0),
        shared: AtomicPtr::new(core::ptr::null_mut()),
        blocked: AtomicU32::new(0),
        fed: AtomicU32::new(0),
        lock: Lock::new(),
        core: UnsafeCell::new(None),
    }));
    SLAB[top as usize].store(e, Ordering::Release);
    TOP.store(top + 1, Ordering::Release);
    Some(e)
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

fn refuse<T>(tli: i32) -> Outcome<T> {
    Err(Refusal::new(tli))
}

impl Core {
    fn next(&self, m: Move) -> Outcome<State> {
        if !m.suits(self.provider.info().serv) {
            return refuse(error::TNOTSUPPORT);
        }
        state::next(self.state, m).ok_or(Refusal::new(error::TOUTSTATE))
    }

    /// May data be sent in this state?
    #[inline]
    fn may(&self, m: Move) -> Outcome<()> {
        match state::next(self.state, m) {
            Some(_) => Ok(()),
            None => self.next(m).map(|_| ()),
        }
    }

    /// A request: checked, done, acknowledged by the move `ack`.
    fn request<T>(
        &mut self,
        m: Move,
        ack: Move,
        act: impl FnOnce(&mut dyn Provider) -> Outcome<T>,
    ) -> Outcome<T> {
        let waiting = self.next(m)?;
        let next = state::next(waiting, ack).ok_or(Refusal::new(error::TOUTSTATE))?;
        let result = act(&mut *self.provider)?;
        self.state = next;
        self.publish(&[m, ack]);
        Ok(result)
    }

    /// The provider has told something.
    fn told(&mut self, m: Move) {
        if let Some(next) = state::next(self.state, m) {
            self.state = next;
        }
        self.publish(&[m]);
    }

    /// Other processes learn of it when they ask.
    fn publish(&self, moves: &[Move]) {
        if let Some(shared) = self.shared {
            shared.moved(moves);
        }
    }

    fn set_qlen(&mut self, qlen: u32) {
        self.qlen = qlen;
        if let Some(shared) = self.shared {
            shared.set_qlen(qlen);
        }
    }

    /// What other processes have done with the endpoint.
    fn catch_up(&mut self) {
        let Some(now) = self.shared.and_then(Shared::standing) else {
            return;
        };
        if now.outstanding == 0 {
            // They were answered elsewhere.
            for seq in core::mem::take(&mut self.doubled) {
                if self.outstanding.contains(&seq) {
                    self.answered(seq);
                    drop(self.provider.take_request(seq));
                }
            }
        }
        if now.state == self.state {
            return;
        }
        let connected = |s| {
            matches!(
                s,
                State::WconCreq | State::DataXfer | State::WindOrdrel | State::WreqOrdrel
            )
        };
        if connected(self.state) && !connected(now.state) {
            self.provider.connection_over();
        }
        if now.state == State::Unbnd {
            let _ = self.provider.unbind();
        }
        self.state = now.state;
        self.qlen = now.qlen;
        self.provider.catch_up(now.state, now.qlen);
    }

    /// Does the provider have options of this level?
    fn has_level(&mut self, level: u32) -> Outcome<bool> {
        let mut all = List::new();
        all.push(level, T_ALLOPT, 0, &[]);
        let (worst, _) = self.provider.negotiate(T_CURRENT as u32, all.bytes())?;
        Ok(worst != T_NOTSUPPORT as u32)
    }

    fn answered(&mut self, seq: i32) {
        self.outstanding.retain(|&s| s != seq);
    }
}

const READABLE: u32 = libc::POLLIN as u32;

fn watched(fd: i32, events: u32) -> libc::pollfd {
    libc::pollfd {
        fd,
        events: events as i16,
        revents: 0,
    }
}

/// What an ended connection makes of a call that sends.
fn gone(e: Refusal) -> Refusal {
    match e.unix {
        libc::EPIPE | libc::ECONNRESET | libc::ENOTCONN | libc::ETIMEDOUT
            if e.tli == error::TSYSERR =>
        {
            Refusal::new(error::TLOOK)
        }
        _ => e,
    }
}

impl Endpoint {
    pub fn handle(&self) -> Handle {
        Handle::new(
            Kind::Endpoint,
            self.generation.load(Ordering::Relaxed),
            self.index,
        )
    }

    fn enter(&self) -> Entered<'_> {
        let _section = process::lock(&self.lock);
        Entered { e: self, _section }
    }

    /// Runs `f` inside the lock; TBADF once it is closed.
    #[inline]
    fn with<T>(&self, f: impl FnOnce(&mut Core) -> Outcome<T>) -> Outcome<T> {
        match &mut *self.enter() {
            Some(core) => f(core),
            None => refuse(error::TBADF),
        }
    }

    /// As [`with`](Endpoint::with), for what may change the provider's descriptors.
    fn changing<T>(&self, f: impl FnOnce(&mut Core) -> Outcome<T>) -> Outcome<T> {
        let mut entered = self.enter();
        let Some(core) = &mut *entered else {
            return refuse(error::TBADF);
        };
        let inner = self.inner.load(Ordering::Relaxed);
        let result = f(core);
        self.note_inner(&*core.provider);
        let now = core.provider.descriptor();
        let shown = self.fd.load(Ordering::Relaxed) >= 0;
        let is_other = core.shadow != now;
        core.shadow = now;
        if shown && epoll::any() {
            if is_other || inner != self.inner.load(Ordering::Relaxed) {
                drop(entered);
                self.renew_in_sets();
            }
        } else if shown && is_other {
            self.numbers().for_each(|fd| renew(fd, now));
        }
        result
    }

    /// Sets are held while they look at endpoints, so that none is held here.
    #[cold]
    fn renew_in_sets(&self) {
        for fd in self.numbers() {
            epoll::replace(fd, || {
                if let Some(core) = &*self.enter()
                    && table::lookup(fd) == Some(self.handle())
                {
                    renew(fd, core.shadow);
                }
            });
        }
    }

    /// Fast Sockets take a connection over while it is used: then the kernel alone does not know any more what can be read.
    #[inline]
    fn note_carried(&self) {
        let inner = self.inner.load(Ordering::Relaxed);
        if self.carried.load(Ordering::Relaxed) == 0
            && let Some(h) = Handle::from_bits(inner).filter(|h| h.kind() == Kind::Socket)
            && table::descriptor(h).is_some_and(|d| d.bell(h).is_some())
        {
            self.tell_sets();
        }
    }

    #[cold]
    fn tell_sets(&self) {
        self.carried.store(1, Ordering::Relaxed);
        self.renew_bell_in_sets();
    }

    #[cold]
    fn renew_bell_in_sets(&self) {
        let own = self.handle();
        for (fd, _) in table::entries().filter(|&(_, h)| h == own) {
            epoll::carried(fd);
        }
    }

    fn note_inner(&self, provider: &dyn Provider) {
        let bits = provider.inner().map_or(0, Handle::bits);
        self.inner.store(bits, Ordering::Release);
    }

    /// The program's.
    fn numbers(&self) -> impl Iterator<Item = i32> + use<> {
        let (own, shown) = (self.handle(), self.fd.load(Ordering::Relaxed));
        let only = (self.holds.load(Ordering::Acquire) == 1 && shown >= 0).then_some(shown);
        let all = only.is_none().then(table::entries).into_iter().flatten();
        let all = all.filter(move |&(_, h)| h == own).map(|(fd, _)| fd);
        only.into_iter().chain(all)
    }

    /// Gives the program a descriptor.
    fn show(&self, oflag: i32) -> Outcome<i32> {
        let shadow = self.descriptor();
        let cmd = if oflag & libc::O_CLOEXEC != 0 {
            libc::F_DUPFD_CLOEXEC
        } else {
            libc::F_DUPFD
        };
        let fd = match shadow {
            -1 => pipe::placeholder(oflag & libc::O_CLOEXEC | libc::O_NONBLOCK),
            _ => sys::fcntl(shadow, cmd, 0),
        };
        let fd = fd.map_err(Refusal::system)?;
        if !table::set(fd, self.handle()) {
            let _ = sys::close(fd);
            return Err(Refusal::system(libc::EMFILE));
        }
        self.nonblocking
            .store((oflag & libc::O_NONBLOCK != 0) as u32, Ordering::Relaxed);
        self.fd.store(fd, Ordering::Relaxed);
        Ok(fd)
    }

    pub fn device(&self) -> Option<Device> {
        self.enter().as_ref().map(|c| c.device)
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

    pub fn bind(&self, addr: Option<&[u8]>, qlen: u32) -> Outcome<(Vec<u8>, u32)> {
        self.changing(|c| {
            let qlen = if c.provider.info().serv == T_CLTS {
                0
            } else {
                qlen
            };
            let bound = c.request(Move::BindReq, Move::BindAck, |p| p.bind(addr, qlen))?;
            c.set_qlen(bound.1);
            let has_bell = c.provider.has_both() || bound.1 > 0;
            Ok((bound, has_bell))
        })
        .map(|(bound, has_bell)| {
            if has_bell {
                // They may have it since before it had one.
                self.renew_bell_in_sets();
            }
            bound
        })
    }

    pub fn unbind(&self) -> Outcome<()> {
        self.changing(|c| {
            c.request(Move::UnbindReq, Move::OkAck1, |p| p.unbind())?;
            c.set_qlen(0);
            Ok(())
        })
    }

    pub fn connect(&self, to: &[u8], opts: &[u8], data: &[u8]) -> Outcome<()> {
        self.changing(|c| c.request(Move::ConnReq, Move::OkAck1, |p| p.connect(to, opts, data)))
    }

    /// Accepts request `seq` on `on`, which may be this endpoint. TBADSEQ, TOUTSTATE, TPROVMISMATCH, TRESQLEN, TINDOUT.
    pub fn accept(&self, seq: i32, on: &Endpoint, opts: &[u8], data: &[u8]) -> Outcome<()> {
        if core::ptr::eq(self, on) {
            return self.accept_here(seq, opts, data);
        }
        let request = self.with(|c| {
            c.next(Move::ConnRes)?;
            c.provider.take_request(seq)
        })?;
        let mut request = Some(request);
        let adopted = on.changing(|c| {
            let give_back = |e, request| Ok(Err((e, request)));
            let Some(request) = request.take() else {
                return refuse(error::TBADSEQ);
            };
            if c.qlen > 0 {
                return give_back(Refusal::new(error::TRESQLEN), request);
            }
            let next = match c.next(Move::PassConn) {
                Ok(next) => next,
                Err(e) => return give_back(e, request),
            };
            match c.provider.adopt(request, opts, data) {
                Ok(()) => {
                    c.state = next;
                    c.publish(&[Move::PassConn]);
                    Ok(Ok(()))
                }
                Err(back) => Ok(Err(back)),
            }
        });
        let adopted = match (adopted, request) {
            (Ok(adopted), _) => adopted,
            // Closed by another thread.
            (Err(e), Some(request)) => Err((e, request)),
            (Err(e), None) => return Err(e),
        };
        self.with(|c| match adopted {
            Ok(()) => {
                c.answered(seq);
                let moves = [Move::ConnRes, Move::ok_ack(c.outstanding.len() + 1, false)];
                c.state = moves
                    .iter()
                    .fold(c.state, |s, &m| state::next(s, m).unwrap_or(s));
                c.publish(&moves);
                Ok(())
            }
            Err((e, request)) => {
                c.provider.return_request(seq, request);
                Err(e)
            }
        })
    }

    fn accept_here(&self, seq: i32, opts: &[u8], data: &[u8]) -> Outcome<()> {
        self.changing(|c| {
            let waiting = c.next(Move::ConnRes)?;
            if c.outstanding.len() > 1 {
                return refuse(error::TINDOUT);
            }
            let next = state::next(waiting, Move::OkAck2).ok_or(Refusal::new(error::TOUTSTATE))?;
            let request = c.provider.take_request(seq)?;
            match c.provider.adopt(request, opts, data) {
                Ok(()) => {
                    c.state = next;
                    c.publish(&[Move::ConnRes, Move::OkAck2]);
                    c.answered(seq);
                    Ok(())
                }
                Err((e, request)) => {
                    c.provider.return_request(seq, request);
                    Err(e)
                }
            }
        })
    }

    /// Ends the connection or, with `seq`, refuses a request. TBADSEQ.
    pub fn disconnect(&self, seq: Option<i32>, data: &[u8]) -> Outcome<()> {
        self.changing(|c| {
            let outstanding = c.outstanding.len();
            let Some(seq) = seq else {
                if outstanding > 0 {
                    return refuse(error::TBADSEQ);
                }
                return c.request(Move::DisconReq, Move::OkAck1, |p| p.disconnect(data));
            };
            if outstanding == 0 || !c.outstanding.contains(&seq) {
                c.next(Move::DisconReq)?;
                return refuse(error::TBADSEQ);
            }
            c.request(Move::DisconReq, Move::ok_ack(outstanding, false), |p| {
                p.reject(seq, data)
            })?;
            c.answered(seq);
            Ok(())
        })
    }

    pub fn release(&self) -> Outcome<()> {
        self.changing(|c| {
            let next = c.next(Move::OrdrelReq)?;
            self.note_fed();
            c.provider.release().map_err(gone)?;
            c.state = next;
            c.publish(&[Move::OrdrelReq]);
            if next == State::Idle {
                c.provider.connection_over();
            }
            Ok(())
        })
    }

    /// Requests taken and not answered, and how many may be.
    pub fn requests(&self) -> (usize, u32) {
        self.enter()
            .as_ref()
            .map_or((0, 0), |c| (c.outstanding.len(), c.qlen))
    }

    pub fn peek(&self) -> Option<Event> {
        // A connection that was made meanwhile has another descriptor than the attempt had.
        let mut event = None;
        let _ = self.changing(|c| {
            event = c.peek();
            self.tell_sleepers(c);
            Ok(())
        });
        event
    }

    /// Why nobody is told of a peer that has come: EMFILE, ENFILE, ENOMEM.
    pub fn lacks(&self) -> Option<Errno> {
        self.enter().as_ref()?.provider.lacks()
    }

    pub fn take(&self) -> Option<Arrived> {
        let mut taken = None;
        let _ = self.changing(|c| {
            taken = c.take();
            self.tell_sleepers(c);
            Ok(())
        });
        taken
    }

    /// TLOOK: the connection is over.
    #[inline]
    pub fn send(&self, data: &[iovec], how: Sending) -> Outcome<usize> {
        self.send_by(how, |p| p.send(data, how))
    }

    /// The same with options for this data unit. TBADOPT.
    pub fn send_with(&self, opts: &[u8], data: &[iovec], how: Sending) -> Outcome<usize> {
        self.send_by(how, |p| p.send_with(opts, data, how))
    }

    #[inline(always)]
    fn send_by(
        &self,
        how: Sending,
        send: impl FnOnce(&mut dyn Provider) -> Outcome<usize>,
    ) -> Outcome<usize> {
        let m = if how.expedited {
            Move::ExdataReq
        } else {
            Move::DataReq
        };
        let sent = self.with(|c| {
            c.may(m)?;
            self.note_fed();
            send(&mut *c.provider).map_err(gone)
        });
        if let Err(Refusal {
            tli: error::TFLOW, ..
        }) = sent
        {
            self.refused_for_now(how.expedited);
        }
        self.note_carried();
        sent
    }

    /// The options of what was received last: see [`Provider::received_options`].
    pub fn received_options(&self) -> Vec<u8> {
        self.enter()
            .as_mut()
            .map_or(Vec::new(), |c| c.provider.received_options())
    }

    #[inline]
    fn note_fed(&self) {
        if self.fed.load(Ordering::Relaxed) == 0 {
            self.fed.store(1, Ordering::Relaxed);
        }
    }

    /// The user is told TFLOW, unless he waits.
    #[cold]
    fn refused_for_now(&self, expedited: bool) {
        if self.is_nonblocking() {
            self.blocked
                .fetch_or(1 << expedited as u32, Ordering::Relaxed);
        }
    }

    /// There is room again after a TFLOW: for expedited data (true), or normal data. Told once.
    pub fn unblocked(&self) -> Option<bool> {
        let blocked = self.blocked.load(Ordering::Relaxed);
        if blocked == 0 || !self.has_room() || !self.may_send() {
            return None;
        }
        let expedited = blocked & 2 != 0;
        self.blocked
            .fetch_and(!(1 << expedited as u32), Ordering::Relaxed);
        Some(expedited)
    }

    /// Sends of normal data, and of expedited data, that failed with TFLOW and whose users were not told yet that there is room.
    pub fn blocked(&self) -> [bool; 2] {
        let blocked = self.blocked.load(Ordering::Relaxed);
        [blocked & 1 != 0, blocked & 2 != 0]
    }

    fn may_send(&self) -> bool {
        let sends = |c: &mut Core| {
            Ok([Move::DataReq, Move::UnitdataReq]
                .into_iter()
                .any(|m| state::next(c.state, m).is_some()))
        };
        self.with(sends).unwrap_or(false)
    }

    fn has_room(&self) -> bool {
        let mut fds = [libc::pollfd {
            fd: self.fd.load(Ordering::Relaxed),
            events: libc::POLLOUT,
            revents: 0,
        }];
        // SAFETY: no mask.
        let n = unsafe { poll::wait(&mut fds, Some(0), core::ptr::null()) };
        n > 0 && fds[0].revents & libc::POLLOUT != 0
    }

    #[inline]
    pub fn receive(&self, into: &[iovec]) -> Outcome<Received> {
        let received = self.with(|c| {
            c.may(Move::DataInd)?;
            let received = c.provider.receive(into);
            self.tell_sleepers(c);
            received
        });
        self.note_carried();
        received
    }

    #[inline]
    pub fn send_to(&self, to: &[u8], opts: &[u8], data: &[iovec]) -> Outcome<()> {
        self.with(|c| {
            c.may(Move::UnitdataReq)?;
            self.note_fed();
            let sent = c.provider.send_to(to, opts, data);
            if let Err(Refusal {
                tli: error::TFLOW, ..
            }) = sent
            {
                self.refused_for_now(false);
            }
            // What has become of earlier ones.
            self.tell_sleepers(c);
            sent
        })
    }

    /// TBADADDR.
    pub fn check_destination(&self, to: &[u8]) -> Outcome<()> {
        self.with(|c| c.provider.check_destination(to))
    }

    #[inline]
    pub fn receive_from(&self, into: &mut Datagram<'_>) -> Outcome<()> {
        self.with(|c| {
            c.may(Move::UnitdataInd)?;
            let received = c.provider.receive_from(into);
            self.tell_sleepers(c);
            received
        })
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
        if let Some(c) = &mut *self.enter() {
            c.provider.flush();
        }
    }

    /// The provider's descriptor; -1 once closed.
    pub fn descriptor(&self) -> i32 {
        self.enter()
            .as_ref()
            .map_or(-1, |c| c.provider.descriptor())
    }

    /// Sleeps until one of the poll(2) events `want` may hold, or a handler has run. Errors: EINTR when one ran that ends the
    /// call since it called [`signal::begin_wait`], ETIME at the deadline (nanoseconds), EBADF when it is closed, or has become
    /// a stream, since it was this `handle`'s.
    pub fn wait(
        &'static self,
        handle: Handle,
        want: u32,
        deadline: Option<u64>,
    ) -> Result<(), Errno> {
        match self.wait_for_any(handle, want, deadline) {
            Err(libc::EINTR) if !signal::interrupted() => Ok(()),
            waited => waited,
        }
    }

    /// As [`wait`](Endpoint::wait), but any handler may end it.
    fn wait_for_any(
        &'static self,
        handle: Handle,
        want: u32,
        deadline: Option<u64>,
    ) -> Result<(), Errno> {
        let (waiter, seen, kernel) = {
            let mut entered = self.enter();
            let core = entered.as_mut().ok_or(libc::EBADF)?;
            if self.handle() != handle {
                return Err(libc::EBADF);
            }
            core.provider.flush();
            if core.provider.ready(want) != 0 {
                return Ok(());
            }
            if let Some(sleep) = core.provider.sleep(want) {
                drop(entered);
                return self.sleep_by(handle, sleep, deadline);
            }
            let waiter = core.provider.waiter();
            let seen = match waiter {
                Waiter::Head(head) | Waiter::Both { ring: head, .. } => head.version(),
                Waiter::Poll(_) => 0,
            };
            (waiter, seen, core.provider.kernel_wants(want))
        };
        if self.look_again(want) {
            return Ok(());
        }
        let for_room = want & libc::POLLOUT as u32 != 0;
        match waiter {
            Waiter::Head(head) => self.sleep_at(handle, head, seen, want, deadline, &mut []),
            Waiter::Both {
                full: Some(head), ..
            } if for_room => self.sleep_at(handle, head, head.version(), want, deadline, &mut []),
            Waiter::Both { ring, fd, .. } if !for_room => {
                let mut beside = [watched(fd, kernel), watched(self.own_bell(), READABLE)];
                let slept = self.sleep_at(handle, ring, seen, want, deadline, &mut beside);
                if beside[1].revents != 0 {
                    bell::take(beside[1].fd);
                }
                slept
            }
            Waiter::Poll(fd) | Waiter::Both { fd, .. } => {
                self.sleep(handle, fd, want, kernel, deadline)
            }
        }
    }

    /// Sleeps at a ring, and at other descriptors `beside` it, unless the ring's head has told something since it was `seen`.
    fn sleep_at(
        &self,
        handle: Handle,
        head: &Head,
        seen: u32,
        want: u32,
        deadline: Option<u64>,
        beside: &mut [libc::pollfd],
    ) -> Result<(), Errno> {
        let side = if want & libc::POLLOUT as u32 != 0 {
            Want::ROOM
        } else {
            Want::DATA
        };
        // Counted: who sleeps here must not wake up in another endpoint.
        self.asleep.fetch_add(1, Ordering::SeqCst);
        let waited = if !beside.is_empty() && self.has_ready(want) {
            Ok(())
        } else {
            head.wait_beside(side, deadline, beside, || {
                self.handle() != handle || head.events(want) != 0 || head.version() != seen
            })
        };
        self.asleep.fetch_sub(1, Ordering::SeqCst);
        if self.handle() == handle {
            waited
        } else {
            Err(libc::EBADF)
        }
    }

    /// Sleeps as the provider has it.
    fn sleep_by(&self, handle: Handle, sleep: Sleep, deadline: Option<u64>) -> Result<(), Errno> {
        self.asleep.fetch_add(1, Ordering::SeqCst);
        let slept = if self.handle() == handle {
            sleep(deadline)
        } else {
            Ok(())
        };
        self.asleep.fetch_sub(1, Ordering::SeqCst);
        if self.handle() == handle {
            slept
        } else {
            Err(libc::EBADF)
        }
    }

    /// Looks for what probably comes at once; others get at the endpoint between the looks.
    fn look_again(&self, want: u32) -> bool {
        loop {
            let look = self
                .enter()
                .as_mut()
                .map_or(Look::Sleep, |c| c.provider.look_again(want));
            if look != Look::Again {
                return look == Look::Ready;
            }
            core::hint::spin_loop();
        }
    }

    /// Sleeps at the provider's descriptor, and at the bell: for what other threads do to the endpoint.
    fn sleep(
        &self,
        handle: Handle,
        fd: i32,
        want: u32,
        kernel: u32,
        deadline: Option<u64>,
    ) -> Result<(), Errno> {
        let fd = if kernel & table::NOT_KERNELS == 0 {
            fd
        } else {
            -1
        };
        let mut fds = [watched(fd, kernel), watched(self.own_bell(), READABLE)];
        self.asleep.fetch_add(1, Ordering::SeqCst);
        let slept = if self.handle() != handle || self.has_ready(want) {
            1
        } else {
            let timeout = deadline.map(|d| d.saturating_sub(sys::now()));
            // SAFETY: no mask. A cancelled thread stays counted, and rings of the bell are one more look.
            unsafe { poll::wait(&mut fds, timeout, core::ptr::null()) }
        };
        let errno = headwater_host::next::errno();
        self.asleep.fetch_sub(1, Ordering::SeqCst);
        if fds[1].revents != 0 {
            bell::take(fds[1].fd);
        }
        if self.handle() != handle {
            // Closed by another thread; others that sleep here are to know it too.
            self.ring();
            return Err(libc::EBADF);
        }
        match slept {
            0 => Err(libc::ETIME),
            n if n < 0 => Err(errno),
            _ => Ok(()),
        }
    }

    /// Its handle is no more: who waits by it wakes up. That takes as long as a thread takes to run, and is waited for, since whoever
    /// watches the stream takes such bells for its own; not for ever, since a sleeper's handler may run, or its thread be stopped.
    fn turn_out(&self) {
        let waiter = {
            let entered = self.enter();
            self.generation.fetch_add(1, Ordering::AcqRel);
            entered.as_ref().map(|core| core.provider.waiter())
        };
        let (mut turns, patience) = (sys::Turns::default(), sys::now() + TURNING_OUT);
        loop {
            match &waiter {
                Some(Waiter::Head(head)) => head.notify(),
                Some(Waiter::Both { ring, full, .. }) => {
                    ring.notify();
                    full.iter().for_each(|head| head.notify());
                }
                Some(Waiter::Poll(_)) | None => {}
            }
            self.ring();
            if self.asleep.load(Ordering::SeqCst) == 0 || sys::now() > patience {
                return;
            }
            turns.give_way();
        }
    }

    fn has_ready(&self, want: u32) -> bool {
        self.enter()
            .as_mut()
            .is_some_and(|c| c.provider.ready(want) != 0)
    }

    /// What was read or accepted ahead is not in the kernel any more, where other threads wait for it.
    #[inline]
    fn tell_sleepers(&self, c: &mut Core) {
        let awaited =
            self.asleep.load(Ordering::Relaxed) > 0 || self.armed.load(Ordering::Relaxed) > 0;
        if awaited && c.provider.ready(READABLE) != 0 {
            self.ring();
        }
    }

    /// Wakes those who sleep at the provider's descriptor: something happened that the kernel does not tell.
    fn ring(&self) {
        let bell = self.bell.load(Ordering::SeqCst);
        let armed =
            self.armed.load(Ordering::Relaxed) > 0 && self.armed.swap(0, Ordering::SeqCst) > 0;
        if bell >= 0 && (armed || self.asleep.load(Ordering::SeqCst) > 0) {
            bell::ring(bell);
        }
    }

    /// The bell, made now if need be; -1 when no descriptor is left.
    fn own_bell(&self) -> i32 {
        let known = self.bell.load(Ordering::Acquire);
        if known >= 0 {
            return known;
        }
        let Ok(fresh) = bell::create().and_then(hidden::hide_needed) else {
            return -1;
        };
        let first = self
            .bell
            .compare_exchange(-1, fresh, Ordering::AcqRel, Ordering::Acquire);
        first.map_or_else(
            |other| {
                hidden::close(fresh);
                other
            },
            |_| fresh,
        )
    }

    /// Is this the last process, as far as known, that has the endpoint?
    pub fn is_last_holder(&self) -> bool {
        self.count_holder(0) <= 1
    }

    fn count_holder(&self, change: i32) -> u32 {
        // SAFETY: null, or in a mapping that is never undone.
        let shared = unsafe { self.shared.load(Ordering::Acquire).as_ref() };
        shared.map_or(1, |shared| shared.count(change))
    }

    /// Another of the program's descriptors.
    pub fn duplicated(&self, fd: i32) {
        if table::set(fd, self.handle()) {
            self.holds.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// The program closes a descriptor: to be called before the kernel does, [`let_go`](Endpoint::let_go) after it.
    pub fn forget(&self, fd: i32) {
        let own = self.handle();
        table::clear_if(fd, own);
        if self.fd.load(Ordering::Relaxed) == fd {
            let may_have_other = self.holds.load(Ordering::Acquire) > 1;
            let other = may_have_other
                .then(|| table::entries().find(|&(_, h)| h == own))
                .flatten();
            self.fd
                .store(other.map_or(-1, |(fd, _)| fd), Ordering::Relaxed);
        }
        if self.holds.load(Ordering::Acquire) > 1 {
            epoll::orphaned(fd);
        } else {
            epoll::closing(fd);
        }
    }

    /// One hold fewer; the last closes the endpoint.
    pub fn let_go(&self) {
        let mut holds = self.holds.load(Ordering::Acquire);
        while holds > 1 {
            match self
                .holds
                .compare_exchange(holds, holds - 1, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return,
                Err(now) => holds = now,
            }
        }
        let mut entered = self.enter();
        let Some(mut core) = entered.take() else {
            return;
        };
        // Before the provider wakes those who wait: by this they know.
        self.generation.fetch_add(1, Ordering::AcqRel);
        drop(entered);
        if self.is_last_holder() {
            core.provider.lose_unread();
        }
        core.provider.close();
        self.count_holder(-1);
        self.ring();
        if self.asleep.load(Ordering::SeqCst) == 0 {
            hidden::close(self.bell.swap(-1, Ordering::AcqRel));
        }
        self.holds.store(0, Ordering::Release);
    }
}

impl Core {
    fn peek(&mut self) -> Option<Event> {
        match self.state {
            State::Unbnd => None,
            _ => self.provider.peek(),
        }
    }

    fn take(&mut self) -> Option<Arrived> {
        self.peek()?;
        let arrived = self.provider.take()?;
        match &arrived {
            Arrived::Request { seq, .. } => {
                self.told(Move::ConnInd);
                self.outstanding.push(*seq);
            }
            Arrived::Confirmed { .. } => self.told(Move::ConnCon),
            Arrived::Disconnected { seq, .. } => {
                self.told(Move::discon_ind(self.outstanding.len()));
                if self.outstanding.contains(seq) {
                    self.answered(*seq);
                } else {
                    self.provider.connection_over();
                }
            }
            Arrived::Released { .. } => {
                self.told(Move::OrdrelInd);
                if self.state == State::Idle {
                    self.provider.connection_over();
                }
            }
            Arrived::Undelivered { .. } => {}
        }
        Some(arrived)
    }
}

/// Takes an endpoint out of direct mode: its numbers become nobody's, to be given to a stream by the caller, who gets its
/// hold. Who waits there is told, and who has its handle has none.
pub fn detach(h: Handle) -> Option<(&'static Endpoint, Vec<i32>)> {
    let e = get(h)?;
    let numbers: Vec<i32> = table::entries()
        .filter(|&(_, x)| x == h)
        .map(|(fd, _)| fd)
        .collect();
    for &fd in &numbers {
        table::clear_if(fd, h);
    }
    e.fd.store(-1, Ordering::Relaxed);
    e.holds
        .fetch_sub(numbers.len().saturating_sub(1) as u32, Ordering::AcqRel);
    e.turn_out();
    Some((e, numbers))
}

/// A number of the program's becomes a copy of another descriptor.
fn renew(fd: i32, shadow: i32) {
    if shadow < 0 {
        // Of one that says nothing.
        if let Ok(silent) = pipe::placeholder(libc::O_CLOEXEC | libc::O_NONBLOCK) {
            renew(fd, silent);
            let _ = sys::close(silent);
        }
        return;
    }
    let _ = sys::dup_over(shadow, fd);
}

/// Sends what endpoints hold back. For the flusher.
fn flush_due(_now: u64) {
    for e in all().filter(|e| e.fed.load(Ordering::Relaxed) != 0) {
        if let Some(_section) = process::try_lock(&e.lock) {
            // SAFETY: under the lock.
            if let Some(core) = unsafe { &mut *e.core.get() } {
                core.provider.flush();
                e.fed
                    .store(core.provider.keeps_back() as u32, Ordering::Relaxed);
            }
        } else {
            flusher::note(Went::Busy);
        }
    }
}

/// Before exec, and the end of the process.
pub fn finish_all() {
    for e in all() {
        if let Some(c) = &mut *e.enter() {
            c.provider.finish();
        }
    }
    headwater_sctp_stack::stack::flush_all();
}

/// Before fork.
pub fn flush_all() {
    all().for_each(Endpoint::flush);
    headwater_sctp_stack::stack::flush_all();
}

/// Nobody is inside an endpoint while the process is copied.
pub fn before_fork() {
    flush_all();
    core::mem::forget(process::lock(&SLAB_LOCK));
    for e in ever() {
        core::mem::forget(process::lock(&e.lock));
        // SAFETY: locked by us.
        if let Some(core) = unsafe { &mut *e.core.get() } {
            e.count_holder(1);
            core.doubled.clone_from(&core.outstanding);
            core.provider.forking();
        }
    }
}

pub fn after_fork(in_child: bool) {
    for e in ever() {
        if in_child {
            // SAFETY: locked by us before the fork, and we are the only thread.
            if let Some(core) = unsafe { &mut *e.core.get() } {
                core.provider.forked();
            }
        }
        e.lock.unlock();
        process::end_section();
    }
    SLAB_LOCK.unlock();
    process::end_section();
}

/// The process ends: endpoints are closed as by t_close.
pub fn exiting() {
    for e in all() {
        e.count_holder(-1);
        let core = e.enter().take();
        if let Some(mut core) = core {
            core.provider.close();
        }
    }
    headwater_sctp_stack::stack::exiting();
}

/// What the next image needs to know of the endpoints that it inherits: for HEADWATER_ENDPOINTS. Of numbers that are the same
/// endpoint's the second says which is the first.
pub fn save() -> String {
    let mut text = String::new();
    let mut known: Vec<(i32, Handle)> = Vec::new();
    for (fd, h) in table::entries().filter(|(_, h)| h.kind() == Kind::Endpoint) {
        let Some(e) = get(h).filter(|_| sys::survives_exec(fd)) else {
            continue;
        };
        let is = identity(fd);
        if let Some((first, _)) = known.iter().find(|(_, other)| *other == h) {
            text.push_str(&format!("{fd}:{is}:={first};"));
            continue;
        }
        let Some(core) = &mut *e.enter() else {
            continue;
        };
        if let Some(saved) = core.provider.save() {
            let state = core.state.number();
            let nonblocking = e.is_nonblocking() as u32;
            let (name, qlen) = (core.device.name(), core.qlen);
            text.push_str(&format!(
                "{fd}:{is}:{name}:{state}:{nonblocking}:{qlen}:{saved};"
            ));
            known.push((fd, h));
        }
    }
    text
}

/// At start: takes over what [`save`] said. What makes no sense is left alone.
pub fn inherit(text: &str) {
    for entry in text.split(';') {
        let _ = inherit_entry(entry);
    }
}

fn inherit_entry(entry: &str) -> Option<()> {
    let mut parts = entry.splitn(7, ':');
    let mut next = || parts.next();
    let fd = next()?.parse().ok()?;
    if !handed::is_here(fd, next()?.parse().ok()?) {
        return None;
    }
    let device = next()?;
    if let Some(first) = device.strip_prefix('=') {
        at(first.parse().ok()?)?.duplicated(fd);
        return Some(());
    }
    let device = Device::find(format!("/dev/{device}").as_bytes())?;
    let state = State::from_number(next()?.parse().ok()?)?;
    let (nonblocking, qlen) = (next()? == "1", next()?.parse().ok()?);
    restore(device, fd, state, qlen, next()?)?.set_nonblocking(nonblocking);
    Some(())
}
