//! Receiving. [`recv`] is what read(2), readv(2), recv(2), recvfrom(2) and recvmsg(2) come down to.
//!
//! A call is a loop of *steps*, which never block and in which a panic is caught, and *waits*, which own nothing that needs
//! dropping, so that a cancelled thread or a siglongjmp may leave them.

use headwater_channel::bell;
use headwater_channel::ring::{Corrupt, Ring};
use headwater_channel::wait::Outcome;
use headwater_host::counters::{self, Counter, Reason};
use headwater_host::poll::SHARED_SLICE;
use headwater_host::sync::{Ordering, fence};
use headwater_host::{next, process, signal, sleeps, stand_in, sys};
use libc::{
    EAGAIN, EBADF, ECONNRESET, EFAULT, EINTR, MSG_DONTWAIT, MSG_PEEK, MSG_TRUNC, MSG_WAITALL, iovec,
};

use crate::buffers::{Buffers, EMPTY, ROOM, length};
use crate::conn::{self, Conn, Phase};
use crate::look::Shown;
use crate::pins::{Pin, Sleep};
use crate::record::{NONBLOCK, SHUT_WR};
use crate::segment::{PIN, TCPONLY, Tx, View};
use crate::{comeback, confine, guard, link, look, options, pins, switch, takeover, unseen};

/// Pauses, a fraction of a microsecond together, for which a reader of a one-way stream leaves the writer alone.
const GATHER: u32 = 16;

/// Looks at a sender's epoch in one step.
const MOST_TURNS: u32 = 10_000;

/// What a step came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Bytes were taken.
    Data(usize),
    Eof,
    /// Nothing yet.
    Again,
    /// The kernel alone decides from here on: make the plain call.
    Kernel,
    Error(i32),
}

/// A result: bytes, or an errno.
pub type Outcome1 = Result<usize, i32>;

/// The call that the program made, on this number and these buffers: what the kernel is to serve is asked for by that very
/// call, since a program may have forbidden itself all others.
pub type Own<'a> = &'a dyn Fn(i32, &[iovec]) -> isize;

/// Receives into `iov`, as recv(2) does. `None`: make the C library's own call instead.
///
/// # Safety
/// The buffers are valid.
pub unsafe fn recv(c: &'static Conn, fd: i32, iov: &[iovec], flags: i32) -> Option<Outcome1> {
    recv_as(c, fd, iov, flags, &|fd, iov| kernel_call(fd, iov, flags))
}

/// Receives into `iov` in the name of a call that `own` is.
///
/// # Safety
/// The buffers are valid.
pub unsafe fn recv_as(
    c: &'static Conn,
    fd: i32,
    iov: &[iovec],
    flags: i32,
    own: Own<'_>,
) -> Option<Outcome1> {
    if flags & (libc::MSG_OOB | libc::MSG_ERRQUEUE) != 0 {
        return None;
    }
    match c.phase() {
        Phase::Carried => {}
        Phase::Tracked => {
            takeover::progress(c, fd);
            match c.phase() {
                Phase::Carried => {}
                Phase::Tracked => return tracked(c, fd, iov, flags, own),
                _ => return None,
            }
        }
        Phase::Rest => return confine::receive(c, fd, iov, flags, own),
        _ => return None,
    }
    carried(c, fd, iov, flags, own)
}

// ---- not (yet) carried: the kernel's own call, counted ----

/// While a call is in the kernel it counts as busy, so nobody takes the connection over under it; the thread that comes
/// back takes the next step with its next call.
unsafe fn tracked(
    c: &'static Conn,
    fd: i32,
    iov: &[iovec],
    flags: i32,
    own: Own<'_>,
) -> Option<Outcome1> {
    let r = c.record();
    let Ok(ticket) = r.enter_settled() else {
        return carried(c, fd, iov, flags, own);
    };
    let n = own(fd, iov);
    let errno = next::errno();
    if n > 0 && flags & MSG_PEEK == 0 {
        c.operations.fetch_add(1, Ordering::Relaxed);
        counters::add(Counter::KernelMsgsRx, 1);
        r.leave_counted(ticket, &r.received, n as usize);
    } else {
        r.leave(ticket);
    }
    Some(if n < 0 { Err(errno) } else { Ok(n as usize) })
}

/// A call of the C library that receives on a tracked connection in its own way; counted like any other. `bytes` says of its
/// result how much that was. `None`: it is carried by now, and the call was not made.
///
/// # Safety
/// `call` receives on the descriptor `fd` of `c`, if it is tracked.
pub unsafe fn counted(
    c: &'static Conn,
    fd: i32,
    call: impl FnOnce() -> isize,
    bytes: impl FnOnce(isize) -> usize,
) -> Option<isize> {
    let r = c.record();
    if c.phase() == Phase::Tracked {
        takeover::progress(c, fd);
    }
    let ticket = match c.phase() {
        Phase::Tracked => r.enter_settled().ok()?,
        Phase::Carried | Phase::Rest => return None,
        _ => return Some(call()),
    };
    let n = call();
    let errno = next::errno();
    let moved = if n > 0 { bytes(n) } else { 0 };
    if n > 0 {
        c.operations.fetch_add(1, Ordering::Relaxed);
    }
    r.leave_counted(ticket, &r.received, moved);
    next::set_errno(errno);
    Some(n)
}

/// The C library's own receive, which may block and is a cancellation point.
unsafe fn kernel_call(fd: i32, iov: &[iovec], flags: i32) -> isize {
    if let [one] = iov {
        return next::recv(fd, one.iov_base, one.iov_len, flags);
    }
    let mut msg: libc::msghdr = core::mem::zeroed();
    msg.msg_iov = iov.as_ptr() as *mut iovec;
    msg.msg_iovlen = iov.len() as _;
    next::recvmsg(fd, &mut msg, flags)
}

// ---- carried ----

unsafe fn carried(
    c: &'static Conn,
    fd: i32,
    iov: &[iovec],
    flags: i32,
    own: Own<'_>,
) -> Option<Outcome1> {
    let v = c.view()?;
    v.publish_cpu();
    next::pthread_testcancel();
    let mut buffers = Buffers::new(iov);
    let result = as_often_as_begun(c, fd, |pinned| {
        attempt(c, &v, &mut buffers, flags, own, pinned)
    });
    match result {
        Some(Ok(())) => Some(Ok(buffers.done)),
        Some(Err(e)) => {
            c.ends_with(e);
            Some(partial(buffers.done, e))
        }
        None if buffers.done > 0 => Some(Ok(buffers.done)),
        None => None,
    }
}

/// Steps and waits until enough is there. `None`: the kernel alone decides.
unsafe fn attempt(
    c: &'static Conn,
    v: &View<'static>,
    buffers: &mut Buffers<'_>,
    flags: i32,
    own: Own<'_>,
    pinned: &mut Option<Pin>,
) -> Option<Result<(), i32>> {
    let r = v.record;
    // As the call begins, whatever is set meanwhile.
    let at_once = flags & MSG_DONTWAIT != 0 || r.has(NONBLOCK);
    let mut end = None;
    // A receive of nothing has done its work with its wait, whatever ended that.
    let nothing = buffers.left == 0;
    let mut waited = false;
    let shuts = || (c.shuts.load(Ordering::Relaxed), r.has(SHUT_WR));
    let shut = nothing.then(shuts);
    // The time limit, as its first wait begins.
    let mut began_with = 0;
    let peeks = flags & MSG_PEEK != 0;
    let mut peek = Peek::default();
    loop {
        if peeks {
            peek.looks(v, buffers);
        }
        // Written in place: to copy it as a whole would wait for its parts.
        let mut came_to = Step::Again;
        if let Err(e) = guard(c, || came_to = step(c, v, buffers, flags)) {
            came_to = Step::Error(e);
        }
        match came_to {
            // A short read must mean that all was taken: edge-triggered programs rely on it.
            Step::Data(_)
                if buffers.left > 0 && switch::behind(v) && !peeks && !is_at_mark(c, v) => {}
            Step::Data(_) => {
                let all = buffers.left + buffers.done;
                let low = r.low_water.load(Ordering::Relaxed) as usize;
                let target = if flags & MSG_WAITALL != 0 {
                    all
                } else {
                    low.min(all)
                };
                if buffers.done >= target || at_once || c.found_nonblocking() {
                    return Some(Ok(()));
                }
                if ends_at_mark(c, v, flags) {
                    return Some(Ok(()));
                }
                if peeks {
                    if !pin(c, v, pinned, &mut end) {
                        return Some(Err(EBADF));
                    }
                    if !peek.waits(c, v, buffers, flags, end) {
                        return Some(Ok(()));
                    }
                }
            }
            Step::Eof => {
                peek.count(buffers);
                return Some(Ok(()));
            }
            Step::Error(EFAULT) => {
                // What was taken before it came to the wrong pointer.
                if let Some(mark) = buffers.mark.take() {
                    let taken = v.in_ring().consumed().0.wrapping_sub(mark) as usize;
                    buffers.advance(taken.min(buffers.left));
                }
                return Some(Err(EFAULT));
            }
            Step::Error(e) => {
                if nothing && waited {
                    c.record().error.store(e, Ordering::Relaxed);
                    return Some(Ok(()));
                }
                peek.count(buffers);
                if buffers.done > 0 {
                    // Told by the next call.
                    c.record().error.store(e, Ordering::Relaxed);
                }
                return Some(Err(e));
            }
            Step::Again
                if buffers.done > 0
                    && flags & MSG_WAITALL == 0
                    && buffers.done >= r.low_water.load(Ordering::Relaxed) as usize =>
            {
                return Some(Ok(()));
            }
            Step::Kernel
                if buffers.done > 0
                    && !peek.others_took
                    && flags & (MSG_WAITALL | MSG_PEEK) != MSG_WAITALL =>
            {
                return Some(Ok(()));
            }
            Step::Kernel => {
                // By the shadow's own number: the program's may be gone by now.
                if !pin(c, v, pinned, &mut end) {
                    return Some(Err(EBADF));
                }
                // The kernel's call would wait as long as the time limit says by now.
                let other = waited && r.receive_timeout.load(Ordering::Relaxed) != began_with;
                if other && look::poll(c.fd(), libc::POLLIN | libc::POLLRDHUP) == 0 {
                    match wait(c, v, end) {
                        Ok(()) => continue,
                        Err(e) => return Some(Err(e)),
                    }
                }
                let mut room = [EMPTY; ROOM];
                let rest = if buffers.done == 0 {
                    buffers.whole()
                } else {
                    buffers.rest(&mut room)
                };
                let asked = length(rest);
                sleeps::end();
                // O_NONBLOCK was set after the call began.
                let is_late = || !at_once && peek.seen == 0 && r.has(NONBLOCK);
                let was_late = is_late();
                let n = own(c.fd(), rest);
                let errno = next::errno();
                if peek.seen > buffers.done && n < peek.seen as isize {
                    peek.count(buffers);
                    if n >= 0 {
                        return Some(Ok(()));
                    }
                }
                if n < 0 && errno == EAGAIN && is_late() && !c.found_nonblocking() {
                    if process::is_confined() {
                        return by_own(c, buffers, own);
                    }
                    if buffers.done > 0 {
                        signal::let_any_end();
                    }
                    match wait(c, v, end) {
                        Ok(()) => continue,
                        Err(e) => return Some(Err(e)),
                    }
                }
                if n < 0 && buffers.done > 0 {
                    if !matches!(errno, EAGAIN | EINTR) {
                        // Told by the next call.
                        r.error.store(errno, Ordering::Relaxed);
                    }
                    return Some(Ok(()));
                }
                if n < 0 {
                    return Some(Err(errno));
                }
                if n == 0 && switch::behind_pin(v) {
                    continue;
                }
                buffers.advance((n as usize).min(buffers.left));
                let wants_all = flags & (MSG_WAITALL | MSG_PEEK) == MSG_WAITALL;
                let goes_on = was_late && n > 0 && wants_all && !ends_at_mark(c, v, flags);
                if buffers.left == 0 || (n as usize) < asked && !goes_on {
                    return Some(Ok(()));
                }
            }
            Step::Again => {
                if at_once || c.found_nonblocking() {
                    // A look by the way is not followed by a wait.
                    if !peeks && !unseen::nothing_to_read(c, v) {
                        continue;
                    }
                    return Some(Err(EAGAIN));
                }
                c.see_blocking(unseen::IN);
                if !waited {
                    began_with = r.receive_timeout.load(Ordering::Relaxed);
                }
                if !pin(c, v, pinned, &mut end) {
                    return Some(Err(EBADF));
                }
                // Who has something has that, whatever the handler's SA_RESTART.
                if nothing || buffers.done > 0 || peek.seen > 0 {
                    signal::let_any_end();
                }
                if process::is_confined() {
                    return by_own(c, buffers, own);
                }
                if let Err(e) = wait(c, v, end) {
                    // Where there was no wait at all, it has not.
                    let had_none = began_with == options::AT_ONCE;
                    peek.count(buffers);
                    return Some(if nothing && !had_none { Ok(()) } else { Err(e) });
                }
                waited = true;
                if shut.is_some_and(|shut| shuts() != shut) {
                    // The kernel wakes its sleepers at a shutdown of either direction.
                    return Some(Ok(()));
                }
            }
        }
    }
}

/// What ends an attempt at a call that has done nothing yet, and that a handler with SA_RESTART has begin anew: the kernel's own ERESTARTSYS,
/// which no program sees.
pub const ANEW: i32 = 512;

/// Makes `attempt` at a call on the number `fd`, and once more after each that [`ANEW`] ends: whether it may wait, and how long, is asked
/// anew. What it pins goes with it. EBADF: the number stands for another connection by now, or for none.
#[inline(always)]
pub fn as_often_as_begun<T>(
    c: &'static Conn,
    fd: i32,
    mut attempt: impl FnMut(&mut Option<Pin>) -> Option<Result<T, i32>>,
) -> Option<Result<T, i32>> {
    loop {
        let mut pinned = None;
        let result = attempt(&mut pinned);
        if let Some(pin) = pinned {
            pins::unpin(c, pin);
        }
        match result {
            Some(Err(ANEW)) if conn::is_at(fd, c) => {}
            Some(Err(ANEW)) => return Some(Err(EBADF)),
            other => return other,
        }
    }
}

/// Changes with every arrival; what comes by the kernel counts once its sender says so.
fn arrived(v: &View<'_>) -> (u64, u64) {
    let by_kernel = v.inn().send.ksent.load(Ordering::Acquire);
    (switch::arrival_edge(v), by_kernel)
}

/// Bytes that this end has taken.
fn taken_so_far(v: &View<'_>) -> u64 {
    let by_kernel = v.inn().receive.krecv.load(Ordering::Acquire);
    by_kernel.wrapping_add(v.in_ring().consumed().0)
}

/// What a receive that only peeks knows from one look to the next.
#[derive(Default)]
struct Peek {
    /// Bytes that it saw before it waited. They are its result at least, even if somebody else has taken them since.
    seen: usize,
    /// What had arrived before the last look, and what had been taken before the first.
    arrived: (u64, u64),
    taken: u64,
    /// Others have taken some of it meanwhile: it goes on behind what it has seen with what is there now.
    others_took: bool,
}

impl Peek {
    /// A look begins.
    fn looks(&mut self, v: &View<'_>, buffers: &Buffers<'_>) {
        if buffers.done == 0 {
            self.taken = taken_so_far(v);
        }
        self.arrived = arrived(v);
    }

    /// Wants more than it has seen, and waits until there may be. False: that is all.
    unsafe fn waits(
        &mut self,
        c: &'static Conn,
        v: &View<'static>,
        buffers: &mut Buffers<'_>,
        flags: i32,
        end: Option<u64>,
    ) -> bool {
        signal::let_any_end();
        loop {
            let more = wait_for_more(c, v, end, self.arrived.0) == Ok(true);
            self.others_took |= taken_so_far(v) != self.taken;
            if !more && self.others_took {
                // Whatever wakes it, it looks once more.
                let _ = guard(c, || step(c, v, buffers, flags));
            }
            if !more {
                return false;
            }
            if !self.others_took || arrived(v) != self.arrived {
                break;
            }
        }
        self.seen = buffers.done;
        if !self.others_took {
            buffers.rewind();
        }
        true
    }

    fn count(&self, buffers: &mut Buffers<'_>) {
        buffers.advance(self.seen.saturating_sub(buffers.done));
    }
}

/// The process has confined itself while this call waited: the program's own call goes on, on what the kernel has.
#[cold]
unsafe fn by_own(c: &Conn, buffers: &mut Buffers<'_>, own: Own<'_>) -> Option<Result<(), i32>> {
    sleeps::end();
    let mut room = [EMPTY; ROOM];
    let n = own(c.fd(), buffers.rest(&mut room));
    if n < 0 && buffers.done == 0 {
        return Some(Err(next::errno()));
    }
    buffers.advance((n.max(0) as usize).min(buffers.left));
    Some(Ok(()))
}

/// Is an urgent byte the next one that the kernel has? What comes before it is read apart. An urgent byte never goes by the ring,
/// nor anything after it.
fn is_at_mark(c: &Conn, v: &View<'_>) -> bool {
    Tx(v.inn().send.tx.load(Ordering::Relaxed)).has(TCPONLY) && sys::is_at_mark(c.fd())
}

/// Has a receive that has got something, and wants more, come to the mark? It ends there, though it was to wait for all.
fn ends_at_mark(c: &Conn, v: &View<'_>, flags: i32) -> bool {
    if flags & MSG_PEEK == 0 {
        return is_at_mark(c, v);
    }
    // A peek moves nothing: where it begins at the mark it goes beyond, and else it has stopped there.
    Tx(v.inn().send.tx.load(Ordering::Relaxed)).has(TCPONLY)
        && match is_at_mark(c, v) {
            true => v.in_ring().unread() > 0,
            false => look::told(c, libc::POLLPRI as u32) & libc::POLLPRI as u32 != 0,
        }
}

/// What there is right now, of ring or kernel, whichever comes first.
pub fn take_now(c: &'static Conn, v: &View<'static>, iov: &[iovec]) -> Step {
    let mut buffers = Buffers::new(iov);
    guard(c, || step(c, v, &mut buffers, MSG_DONTWAIT)).unwrap_or(Step::Error(ECONNRESET))
}

/// Before the first wait of a call. False when the program has closed the connection.
pub fn pin(
    c: &'static Conn,
    v: &View<'_>,
    pinned: &mut Option<Pin>,
    end: &mut Option<u64>,
) -> bool {
    if pinned.is_none() {
        *pinned = pins::pin(c, v, &raw const *pinned as usize);
        *end = deadline(c.record().receive_timeout.load(Ordering::Relaxed));
    }
    pinned.is_some()
}

/// How long a peek that wants all leaves what the kernel has unlooked at: nothing tells of more beside what is unread.
const PEEK_AGAIN: u64 = 5_000_000;

/// A peek that wants all: waits until more may have arrived than there was `before` it. False: the stream has ended.
unsafe fn wait_for_more(
    c: &'static Conn,
    v: &View<'static>,
    end: Option<u64>,
    before: u64,
) -> Result<bool, i32> {
    if look::events(c) != 0 {
        return Ok(false);
    }
    let by_kernel = v.inn().receive.re.load(Ordering::Relaxed) & 1 == 0;
    let again = by_kernel.then(|| sys::now() + PEEK_AGAIN);
    pins::fall_asleep(v, Sleep::Reading);
    let slept = if switch::arrival_edge(v) == before {
        let bound = [end, again].into_iter().flatten().min();
        match sleep(c, v, libc::POLLRDHUP, bound, &c.reading) {
            Err(EAGAIN) if end.is_none_or(|end| sys::now() < end) => Ok(()),
            Err(EINTR) if !signal::interrupted() && end.is_none() => Ok(()),
            slept => slept,
        }
    } else {
        Ok(())
    };
    pins::wake_up(c, v, Sleep::Reading);
    if bell::take(v.own_bell()) {
        switch::settle(c, v);
    }
    slept.map(|()| true)
}

/// Where a receive puts the bytes: the program's buffers, or a pipe.
pub trait Sink {
    /// Bytes that it still wants.
    fn left(&self) -> usize;
    /// Takes bytes out of the ring, up to `end`.
    fn take_ring(
        &mut self,
        ring: &Ring<'_>,
        flags: i32,
        end: Option<u64>,
    ) -> Result<usize, Corrupt>;
    /// Takes at most `limit` bytes out of the shadow `fd`; does not wait.
    ///
    /// # Safety
    /// What it puts them into is valid.
    unsafe fn take_kernel(&mut self, fd: i32, flags: i32, limit: usize) -> Result<usize, i32>;
    /// Has it no room, though it wants more?
    fn is_full(&self) -> bool {
        false
    }
}

impl Sink for Buffers<'_> {
    #[inline(always)]
    fn left(&self) -> usize {
        self.left
    }

    #[inline(always)]
    fn take_ring(
        &mut self,
        ring: &Ring<'_>,
        flags: i32,
        end: Option<u64>,
    ) -> Result<usize, Corrupt> {
        take_ring(ring, self, flags, end)
    }

    #[inline(always)]
    unsafe fn take_kernel(&mut self, fd: i32, flags: i32, limit: usize) -> Result<usize, i32> {
        kernel_recv(fd, self, flags, limit)
    }
}

/// Takes what there is. Under the reader lock; never blocks.
#[inline(always)]
pub fn step<S: Sink>(c: &Conn, v: &View<'_>, buffers: &mut S, flags: i32) -> Step {
    takeover::see_attached(c, v);
    switch::help_withdraw(c, v);
    let result = {
        let _section = v.lock_in(|| switch::recover_reader(c, v));
        locked(c, v, buffers, flags)
    };
    // Apart from the rest: to copy a result as a whole would wait for its parts.
    if let Ok(Step::Data(n)) = result {
        switch::ring_writer(v);
        return Step::Data(n);
    }
    // As long as the peer has not sent by the kernel what the ring holds, the kernel's end of file is not the stream's.
    if result == Ok(Step::Kernel)
        && (comeback::may_receive(v) || switch::behind_pin(v))
        && !process::is_confined()
    {
        return pinned_step(c, v, buffers, flags);
    }
    result.unwrap_or_else(|Corrupt| {
        counters::note(Reason::Corrupt);
        Step::Error(ECONNRESET)
    })
}

/// Takes what the kernel has, as long as images without the library keep the connection there, or the peer has not yet sent by it
/// what was in the ring.
#[cold]
fn pinned_step<S: Sink>(c: &Conn, v: &View<'_>, buffers: &mut S, flags: i32) -> Step {
    let took = {
        let _section = v.lock_in(|| switch::recover_reader(c, v));
        let d = v.inn();
        if !c.serves(v) {
            return Step::Error(EBADF);
        }
        if !Tx(d.send.tx.load(Ordering::Acquire)).has(PIN) {
            None
        } else if buffers.left() == 0 {
            if switch::readable(v) {
                return Step::Data(0);
            }
            return match look::shown(c) {
                Shown::Nothing if is_at_mark(c, v) => Step::Data(0),
                Shown::Nothing => Step::Again,
                Shown::Bytes => Step::Data(0),
                Shown::End(end) => {
                    c.record().error.store(0, Ordering::Relaxed);
                    end
                }
            };
        } else {
            switch::follow_withdrawn(v);
            match c.record().error.swap(0, Ordering::Relaxed) {
                0 => Some(kernel_step(c, d, buffers, flags, usize::MAX)),
                e => Some(Step::Error(e)),
            }
        }
    };
    match took {
        Some(Step::Data(n)) => {
            comeback::after_data(c, v);
            Step::Data(n)
        }
        Some(Step::Again) if switch::is_readable_behind_pin(v) => {
            match read_behind_pin(c, v, buffers, flags) {
                Ok(0) => Step::Again,
                Ok(n) => Step::Data(n),
                Err(Corrupt) => {
                    counters::note(Reason::Corrupt);
                    Step::Error(ECONNRESET)
                }
            }
        }
        Some(Step::Again) if !comeback::before_wait(c, v) => Step::Again,
        Some(Step::Again) | None => step(c, v, buffers, flags),
        Some(end) => {
            if !switch::take_pin_back_at_end(c, v) {
                return end;
            }
            if let Step::Error(e) = end {
                // It comes after what the ring holds.
                c.record().error.store(e, Ordering::Relaxed);
            }
            step(c, v, buffers, flags)
        }
    }
}

/// What the ring holds behind the pin, as long as its sender has not begun to take it back: that is busy elsewhere, and may make no
/// call any more.
fn read_behind_pin<S: Sink>(
    c: &Conn,
    v: &View<'_>,
    buffers: &mut S,
    flags: i32,
) -> Result<usize, Corrupt> {
    let n = {
        let _section = v.lock_in(|| switch::recover_reader(c, v));
        if !c.serves(v) || !switch::lift_pin(v) {
            return Ok(0);
        }
        let n = buffers.take_ring(&v.in_ring(), flags, None);
        switch::lower_pin(c, v);
        n?
    };
    if flags & MSG_PEEK == 0 {
        c.tally(2, n);
    }
    // It sees the pin now if it has published meanwhile.
    bell::ring(v.peer_bell());
    Ok(n)
}

#[inline(always)]
fn locked<S: Sink>(c: &Conn, v: &View<'_>, buffers: &mut S, flags: i32) -> Result<Step, Corrupt> {
    let (d, ring) = (v.inn(), v.in_ring());
    if !c.serves(v) {
        return Ok(Step::Error(EBADF));
    }
    if buffers.left() == 0 {
        // recv(2) of nothing waits all the same, and takes nothing.
        let pinned = Tx(d.send.tx.load(Ordering::Acquire)).has(PIN);
        if pinned {
            return Ok(Step::Kernel);
        }
        if switch::readable(v) {
            return Ok(Step::Data(0));
        }
        return Ok(match look::shown(c) {
            // The urgent byte itself, which isn't read in line.
            Shown::Nothing if is_at_mark(c, v) => Step::Data(0),
            Shown::Nothing => Step::Again,
            Shown::Bytes => Step::Data(0),
            Shown::End(end) => {
                c.record().error.store(0, Ordering::Relaxed);
                end
            }
        });
    }
    // A few where the sender moves just now; a hostile one could keep us here.
    for _ in 0..MOST_TURNS {
        let w = Tx(d.send.tx.load(Ordering::Acquire));
        if w.generation() != v.generation {
            return Ok(Step::Error(EBADF));
        }
        if w.has(PIN) {
            return Ok(Step::Kernel);
        }
        let re = d.receive.re.load(Ordering::Relaxed) as u16;
        let ahead = w.epoch().wrapping_sub(re);
        if ahead > 2 {
            return Err(Corrupt);
        }
        if re & 1 == 1 {
            let end = (ahead > 0).then(|| d.send.mat.load(Ordering::Acquire));
            let n = buffers.take_ring(&ring, flags, end)?;
            if n > 0 {
                if flags & MSG_PEEK == 0 {
                    c.tally(2, n);
                } else if end.is_some() && buffers.left() > 0 {
                    peek_on(c, v, buffers, flags, w)?;
                }
                return Ok(Step::Data(n));
            }
            if buffers.is_full() {
                return Ok(Step::Again);
            }
            if let Some(end) = end {
                if ring.head() < end {
                    return Err(Corrupt);
                }
                d.receive
                    .re
                    .store(re.wrapping_add(1) as u64, Ordering::Release);
                continue;
            }
            if !look::due(c, v) {
                return Ok(Step::Again);
            }
            let shown = look::shown(c);
            if shown == Shown::Nothing {
                return Ok(Step::Again);
            }
            fence(Ordering::SeqCst);
            if d.send.tx.load(Ordering::Acquire) != w.0 || !ring.is_empty() {
                continue;
            }
            if let Shown::End(end) = shown {
                c.record().error.store(0, Ordering::Relaxed);
                return Ok(end);
            }
            // Where they belong in the stream nobody can tell; left alone they would wake every reader for ever.
            counters::note(Reason::Uncounted);
            return Ok(Step::Error(ECONNRESET));
        }
        if ahead == 0 {
            match c.record().error.swap(0, Ordering::Relaxed) {
                0 => {}
                e => return Ok(Step::Error(e)),
            }
            if !switch::begin_kernel_read(d, w) {
                continue;
            }
            let result = kernel_step(c, d, buffers, flags, usize::MAX);
            switch::end_kernel_read(d);
            return Ok(result);
        }
        let at = if ahead == 1 {
            &d.send.ksent
        } else {
            &d.send.nat
        };
        let n = at.load(Ordering::Acquire);
        if Tx(d.send.tx.load(Ordering::Acquire)).epoch() != w.epoch() {
            continue;
        }
        let limit = n.wrapping_sub(d.receive.krecv.load(Ordering::Relaxed));
        if limit > 1 << 60 {
            return Err(Corrupt);
        }
        if limit == 0 {
            d.receive
                .re
                .store(re.wrapping_add(1) as u64, Ordering::Release);
            continue;
        }
        return Ok(match kernel_step(c, d, buffers, flags, limit as usize) {
            Step::Eof => {
                if switch::kernel_stretch_is_whole(c, n) {
                    // The counts were off, after a recovery.
                    d.receive.krecv.store(n, Ordering::Release);
                    continue;
                }
                match c.record().error.swap(0, Ordering::Relaxed) {
                    0 => Step::Eof,
                    e => Step::Error(e),
                }
            }
            Step::Data(got) => {
                if flags & MSG_PEEK != 0 && got as u64 == limit && buffers.left() > 0 {
                    let end = (ahead == 2).then(|| d.send.mat.load(Ordering::Acquire));
                    buffers.take_ring(&ring, flags, end)?;
                }
                Step::Data(got)
            }
            step => step,
        });
    }
    Err(Corrupt)
}

/// A peek has seen the ring's stretch to its end, in the epoch that `w` shows: what the kernel has follows it.
fn peek_on<S: Sink>(
    c: &Conn,
    v: &View<'_>,
    buffers: &mut S,
    flags: i32,
    w: Tx,
) -> Result<(), Corrupt> {
    let d = v.inn();
    let limit = if w.by_ring() {
        let sent = d.send.ksent.load(Ordering::Acquire);
        sent.wrapping_sub(d.receive.krecv.load(Ordering::Relaxed))
    } else {
        u64::MAX
    };
    if Tx(d.send.tx.load(Ordering::Acquire)).epoch() != w.epoch() || limit == 0 {
        return Ok(());
    }
    if is_at_mark(c, v) {
        return Ok(());
    }
    if w.by_ring() && limit > 1 << 60 {
        return Err(Corrupt);
    }
    let more = kernel_step(c, d, buffers, flags, limit.min(usize::MAX as u64) as usize);
    if let Step::Error(e) = more {
        // Looking takes it out of the shadow.
        c.record().error.store(e, Ordering::Relaxed);
    }
    Ok(())
}

/// A kernel read of at most `limit` bytes, counted.
fn kernel_step<S: Sink>(
    c: &Conn,
    d: &crate::segment::Direction,
    buffers: &mut S,
    flags: i32,
    limit: usize,
) -> Step {
    let flags = flags & (MSG_PEEK | MSG_TRUNC) | MSG_DONTWAIT;
    let Some(shadow) = c.shadow() else {
        return Step::Error(EBADF);
    };
    // SAFETY: the program's buffers.
    let result = unsafe { buffers.take_kernel(shadow.fd(), flags, limit) };
    drop(shadow);
    match result {
        Ok(0) => Step::Eof,
        Ok(n) => {
            if flags & MSG_PEEK == 0 {
                d.receive.krecv.fetch_add(n as u64, Ordering::AcqRel);
                counters::add(Counter::KernelBytesRx, n as u64);
                counters::add(Counter::KernelMsgsRx, 1);
            }
            Step::Data(n)
        }
        Err(EAGAIN) => Step::Again,
        Err(e) => Step::Error(e),
    }
}

#[inline]
fn take_ring(
    ring: &Ring<'_>,
    buffers: &mut Buffers<'_>,
    flags: i32,
    end: Option<u64>,
) -> Result<usize, Corrupt> {
    let before = buffers.done;
    match flags & (MSG_PEEK | MSG_TRUNC) {
        MSG_TRUNC => return discard(ring, buffers, end),
        flags if flags & MSG_TRUNC != 0 => return count(ring, buffers, end),
        _ => {}
    }
    while buffers.left > 0 {
        let skip = buffers.done - before;
        buffers.mark = Some(ring.consumed().0);
        let piece = buffers.piece(usize::MAX);
        let n = if flags & MSG_PEEK != 0 {
            ring.copy_peek(piece, skip, end)?
        } else {
            ring.pop_until(piece, end)?
        };
        if n == 0 {
            break;
        }
        buffers.advance(n);
    }
    Ok(buffers.done - before)
}

/// MSG_TRUNC on a stream: takes bytes without touching the buffer.
fn discard(ring: &Ring<'_>, buffers: &mut Buffers<'_>, end: Option<u64>) -> Result<usize, Corrupt> {
    let n = ring.skip_until(buffers.left, end)?;
    buffers.advance(n);
    Ok(n)
}

/// MSG_PEEK with MSG_TRUNC: says how much there is, and touches nothing.
#[inline(never)]
fn count(ring: &Ring<'_>, buffers: &mut Buffers<'_>, end: Option<u64>) -> Result<usize, Corrupt> {
    let before = buffers.done;
    while buffers.left > 0 {
        let mut piece = [0u8; 512];
        let room = buffers.left.min(piece.len());
        match ring.copy_peek(&mut piece[..room], buffers.done - before, end)? {
            0 => break,
            n => buffers.advance(n),
        }
    }
    Ok(buffers.done - before)
}

/// Waits until there may be something: spin, then arm, look again, sleep.
pub unsafe fn wait(c: &'static Conn, v: &View<'static>, deadline: Option<u64>) -> Result<(), i32> {
    // Only a ring can be watched by spinning.
    if v.inn().receive.re.load(Ordering::Relaxed) & 1 == 1 {
        let peer = &v.peer().cpu;
        let look = &v.peer().look;
        let seen = c.look_seen.load(Ordering::Relaxed);
        if c.only_receives() && peer.load(Ordering::Relaxed) != v.own().cpu.load(Ordering::Relaxed)
        {
            // Looking at each message as it is written would take the line from the writer each time.
            for _ in 0..GATHER {
                core::hint::spin_loop();
            }
        }
        let spun = c.reading.wait(
            || peer.load(Ordering::Relaxed),
            || switch::readable(v) || look.load(Ordering::Relaxed) != seen || signal::interrupted(),
        );
        if signal::interrupted() {
            return Err(EINTR);
        }
        if spun == Outcome::Ready {
            counters::add(Counter::Spins, 1);
            return Ok(());
        }
    }
    takeover::publish_totals(c, v);
    pins::fall_asleep(v, Sleep::Reading);
    if switch::readable(v) {
        pins::wake_up(c, v, Sleep::Reading);
        return Ok(());
    }
    let result = sleep(c, v, libc::POLLIN | libc::POLLRDHUP, deadline, &c.reading);
    pins::wake_up(c, v, Sleep::Reading);
    if bell::take(v.own_bell()) {
        switch::settle(c, v);
    }
    result
}

/// The kernel wait on shadow and own bell that readers and writers share. It ends at once where the program has made the
/// connection non-blocking by a call that nobody saw. [`ANEW`]: so it is with the call.
pub unsafe fn sleep(
    c: &'static Conn,
    v: &View<'_>,
    events: i16,
    deadline: Option<u64>,
    learner: &headwater_channel::wait::Learner,
) -> Result<(), i32> {
    let rest = if switch::must_withdraw(v) {
        libc::POLLOUT
    } else {
        0
    };
    let mut fds = [
        libc::pollfd {
            fd: c.fd(),
            events: events | rest,
            revents: 0,
        },
        libc::pollfd {
            fd: v.own_bell(),
            events: libc::POLLIN,
            revents: 0,
        },
    ];
    link::tidy();
    let begun = sys::now();
    if c.stopped_blocking(begun) {
        return Ok(());
    }
    let mut bound = stand_in::turn(left(deadline));
    if v.is_shared() {
        bound = Some(bound.map_or(SHARED_SLICE, |b| b.min(SHARED_SLICE)));
    }
    if !sleeps::begin() {
        return Ok(());
    }
    let ts = bound.map(sys::timespec);
    let tsp = ts.as_ref().map_or(core::ptr::null(), |t| t as *const _);
    if !signal::begin_nap(signal::ring, v.own_bell() as usize) {
        return Err(EINTR);
    }
    if signal::begins_anew() {
        signal::end_nap();
        return Err(ANEW);
    }
    let n = next::ppoll(fds.as_mut_ptr(), 2, tsp, core::ptr::null());
    let errno = next::errno();
    signal::end_nap();
    counters::add(Counter::Sleeps, 1);
    learner.slept(sys::now() - begun);
    if fds[0].revents != 0 {
        c.look_now.store(1, Ordering::Relaxed);
    }
    if n < 0 && (errno != EINTR || signal::interrupted() || deadline.is_some()) {
        return Err(errno);
    }
    if deadline.is_some_and(|d| n == 0 && sys::now() >= d) {
        return Err(EAGAIN);
    }
    Ok(())
}

/// When a wait that begins now is over. No handler has a call with a time limit begun anew, signal(7).
pub fn deadline(timeout: u64) -> Option<u64> {
    if timeout == 0 {
        return None;
    }
    signal::let_any_end();
    Some(sys::now().saturating_add(timeout))
}

fn left(deadline: Option<u64>) -> Option<u64> {
    deadline.map(|d| d.saturating_sub(sys::now()))
}

/// What was done counts; the error comes at the next call.
pub fn partial(done: usize, e: i32) -> Outcome1 {
    if done > 0 { Ok(done) } else { Err(e) }
}

/// Non-blocking kernel reads into what is left of the buffers, of at most `limit` bytes.
unsafe fn kernel_recv(
    fd: i32,
    buffers: &mut Buffers<'_>,
    flags: i32,
    limit: usize,
) -> Result<usize, i32> {
    let mut total = 0;
    loop {
        let mut room = [EMPTY; ROOM];
        let rest = buffers.part(&mut room, limit - total);
        let asked = length(rest);
        let mut msg: libc::msghdr = core::mem::zeroed();
        msg.msg_iov = rest.as_ptr() as *mut iovec;
        msg.msg_iovlen = rest.len() as _;
        let n = match sys::recvmsg(fd, &mut msg, flags) {
            Err(_) if total > 0 => return Ok(total),
            result => result?,
        };
        buffers.advance(n.min(buffers.left));
        total += n;
        // Less than what was asked for is all there is.
        if n < asked || buffers.left == 0 || total >= limit || flags & MSG_PEEK != 0 {
            return Ok(total);
        }
    }
}
