//! Sending. [`send`] is what write(2), writev(2), send(2), sendto(2), sendmsg(2) and sendfile(2) come down to.

use std::cell::Cell;

use headwater_channel::ring::{Corrupt, Meta, Ring};
use headwater_channel::wait::Outcome;
use headwater_host::counters::{self, Counter, Reason};
use headwater_host::sync::Ordering;
use headwater_host::{next, process, signal, sleeps, sys};
use libc::{EAGAIN, ECONNRESET, EINTR, MSG_DONTWAIT, iovec};

use crate::buffers::{Buffers, EMPTY, ROOM, length, message};
use crate::conn::{Conn, Phase, Shadow};
use crate::pins::{self, Entered, Pin, Sleep};
use crate::record::{NONBLOCK, SHUT_WR, URGENT};
use crate::recv::{self, Moved, Own, moved, partial};
use crate::segment::{CLOSING, PIN, TCPONLY, Tx, View};
use crate::{comeback, guard, look, switch, takeover, unseen};

/// A large write is published in pieces, so that the reader copies one while the writer copies the next.
const CHUNK: usize = 16 << 10;
/// Messages between two updates of what `headwater stat` shows.
const TOTALS_EVERY: u64 = 1024;
/// Flags that only the kernel can serve.
const KERNEL_FLAGS: i32 = libc::MSG_OOB | libc::MSG_ZEROCOPY;

enum Step<'a> {
    Sent,
    /// No room for now.
    Full,
    /// By the kernel; the send is counted as begun.
    ByTcp(Shadow<'a>),
    Error(i32),
}

/// Sends `iov`, as send(2) does. `None`: make the C library's own call instead.
///
/// # Safety
/// The buffers are valid.
pub unsafe fn send(c: &'static Conn, fd: i32, iov: &[iovec], flags: i32) -> Option<Moved> {
    // SAFETY: the buffers are the caller's.
    unsafe { send_as(c, fd, iov, flags, &|fd, iov| kernel_send(fd, iov, flags)) }
}

/// Sends `iov` in the name of a call that `own` is.
///
/// # Safety
/// The buffers are valid.
pub unsafe fn send_as(
    c: &'static Conn,
    fd: i32,
    iov: &[iovec],
    flags: i32,
    own: Own<'_>,
) -> Option<Moved> {
    match recv::progressed(c, fd) {
        Phase::Carried => carried(c, fd, iov, flags, own),
        Phase::Tracked => tracked(c, fd, iov, flags, own),
        _ => None,
    }
}

fn tracked(c: &'static Conn, fd: i32, iov: &[iovec], flags: i32, own: Own<'_>) -> Option<Moved> {
    let r = c.record();
    let Ok(ticket) = r.enter_settled() else {
        return carried(c, fd, iov, flags, own);
    };
    let counts = |n| {
        counters::add(Counter::KernelMsgsTx, 1);
        n as usize
    };
    let n = recv::count(c, r, ticket, &r.sent, || own(fd, iov), counts);
    Some(moved(n))
}

/// A call of the C library that sends on a tracked connection in its own way; counted like any other. `bytes` says of its
/// result how much that was.
///
/// # Safety
/// `call` sends on the descriptor of `c`, if it is tracked.
pub unsafe fn counted(
    c: &'static Conn,
    call: impl FnOnce() -> isize,
    bytes: impl FnOnce(isize) -> usize,
) -> Option<isize> {
    let r = c.record();
    let ticket = match c.phase() {
        Phase::Tracked => r.enter_settled().ok()?,
        Phase::Carried => return None,
        _ => return Some(call()),
    };
    Some(recv::count(c, r, ticket, &r.sent, call, bytes))
}

/// The same on a connection that may be carried: its direction goes to the kernel for the call, which may wait there. `None`: make
/// the call as it is.
///
/// # Safety
/// `call` sends at most `asked` bytes on the descriptor `fd` of `c`; `is_left` says whether, or that perhaps, there is more of what it sends.
pub unsafe fn by_kernel(
    c: &'static Conn,
    fd: i32,
    asked: usize,
    call: impl Fn() -> isize,
    is_left: impl Fn() -> bool,
) -> Option<Moved> {
    recv::as_often_as_begun(c, fd, |looks, pinned| {
        once_by_kernel(c, asked, &call, &is_left, looks, pinned)
    })
}

fn once_by_kernel(
    c: &'static Conn,
    asked: usize,
    call: impl Fn() -> isize,
    is_left: impl Fn() -> bool,
    looks: &Entered,
    pinned: &mut Option<Pin>,
) -> Option<Moved> {
    // SAFETY: `call` is what `by_kernel` was given, and sends on this connection.
    if let Some(n) = unsafe { counted(c, &call, |n| n as usize) } {
        return Some(moved(n));
    }
    let v = c.view(looks)?;
    if !recv::hold(c, &v, looks, pinned) {
        return None;
    }
    let r = c.record();
    let end = recv::deadline(r.send_timeout.load(Ordering::Relaxed));
    let at_once = r.has(NONBLOCK);
    let begun = loop {
        match guard(c, || leave_ring(c, &v)).unwrap_or(Step::Error(ECONNRESET)) {
            Step::Full if at_once || c.found_nonblocking() => break Err(EAGAIN),
            Step::Full => {
                if let Err(e) = wait(c, &v, 1, end) {
                    break Err(e);
                }
            }
            Step::Error(e) => break Err(e),
            // A look has taken it out of the kernel, which would say that there is no pipe any more.
            Step::Sent | Step::ByTcp(_) => match r.error.swap(0, Ordering::Relaxed) {
                0 => break Ok(()),
                e => {
                    switch::end_kernel_send(v.out(), 0);
                    break Err(told(e, 0));
                }
            },
        }
    };
    let sent = begun.and_then(|()| {
        let sent = moved(call());
        switch::end_kernel_send(v.out(), sent.unwrap_or(0));
        sent
    });
    let is_short = sent == Err(EAGAIN) || sent.is_ok_and(|n| n < asked);
    if is_short && (begun.is_err() || is_left()) {
        c.note_full();
    }
    if let Err(errno) = sent {
        c.ends_with(errno);
    }
    Some(sent)
}

/// Begins a send by the kernel. False: what comes before it finds no room there; `None`: the connection has ended.
pub fn begins_by_kernel(c: &Conn, v: &View<'_>) -> Option<bool> {
    match guard(c, || leave_ring(c, v)).ok()? {
        Step::Sent | Step::ByTcp(_) => Some(true),
        Step::Full => Some(false),
        Step::Error(_) => None,
    }
}

/// Brings the direction to the kernel; a send there is counted as begun.
fn leave_ring(c: &Conn, v: &View<'_>) -> Step<'static> {
    let d = v.out();
    loop {
        let w = d.tx();
        if !c.serves(v) || w.generation() != v.generation {
            return Step::Error(libc::EBADF);
        }
        if !w.by_ring() {
            match switch::begin_kernel_send(d) {
                Ok(true) => return Step::Sent,
                Ok(false) => {}
                Err(Corrupt) => return corrupt(),
            }
        } else if !w.has(PIN) {
            switch::unswitch(v);
        } else if !switch::withdraw(c, v) {
            return Step::Full;
        }
    }
}

fn carried(c: &'static Conn, fd: i32, iov: &[iovec], flags: i32, own: Own<'_>) -> Option<Moved> {
    // SAFETY: a thread that is cancelled here leaves nothing behind that needs dropping.
    unsafe { next::pthread_testcancel() };
    if flags & libc::MSG_FASTOPEN != 0 {
        // It asks for a connection, tcp(7), and is refused where there is one, whatever has become of that.
        return None;
    }
    let mut buffers = Buffers::new(iov);
    if buffers.left == 0 {
        let looks = pins::entered();
        let v = c.view(&looks)?;
        v.publish_cpu();
        // It sends nothing, and says what a call that sends something would be refused for.
        return match look::take_error(c) {
            None => v.record.has(SHUT_WR).then(|| Err(broken_pipe(flags))),
            Some(e) => Some(Err(told(e, flags))),
        };
    }
    let result = recv::as_often_as_begun(c, fd, |looks, pinned| {
        let v = c.view(looks)?;
        v.publish_cpu();
        Some(attempt(
            c,
            &v,
            &mut buffers,
            flags,
            (fd, own),
            looks,
            pinned,
        ))
    });
    Some(match result? {
        Ok(()) => Ok(buffers.done),
        Err(e) => {
            c.ends_with(e);
            partial(buffers.done, e)
        }
    })
}

/// Steps and waits until all is sent.
fn attempt(
    c: &'static Conn,
    v: &View<'static>,
    buffers: &mut Buffers<'_>,
    flags: i32,
    (fd, own): (i32, Own<'_>),
    looks: &Entered,
    pinned: &mut Option<Pin>,
) -> Result<(), i32> {
    let r = v.record;
    let mut end = None;
    // As the call begins, whatever is set meanwhile.
    let waits = flags & MSG_DONTWAIT == 0 && !r.has(NONBLOCK);
    let (mut began_with, mut has_waited) = (0, false);
    while buffers.left > 0 {
        let patient = waits && !c.found_nonblocking();
        // Written in place: to copy it as a whole would wait for its parts.
        let mut step = Step::Full;
        if let Err(e) = guard(c, || step = self::step(c, v, buffers, flags)) {
            step = Step::Error(e);
        }
        if pinned.is_none() && patient && matches!(step, Step::ByTcp(_) | Step::Full) {
            if !recv::hold(c, v, looks, pinned) {
                if let Step::ByTcp(_shadow) = &step {
                    switch::end_kernel_send(v.out(), 0);
                }
                return Err(libc::EBADF);
            }
            began_with = r.send_timeout.load(Ordering::Relaxed);
            end = recv::deadline(began_with);
        }
        match step {
            Step::Sent => {}
            Step::Error(e) => return Err(e),
            Step::ByTcp(shadow) => {
                let mut room = [EMPTY; ROOM];
                let rest = buffers.rest(&mut room);
                let asked = length(rest);
                let limit = r.send_timeout.load(Ordering::Relaxed);
                // The kernel knows nothing of a part that went by the ring, and would begin anew after a handler with SA_RESTART; nor of what
                // was so when the call began, before O_NONBLOCK was set or another time limit. So it would on the shadow's own number,
                // by which a call goes on that has waited: the program's may be gone by now.
                let is_changed = r.has(NONBLOCK) || limit != began_with;
                let is_elsewhere = has_sent(buffers) || is_changed || has_waited && c.fd() != fd;
                let is_ours = patient && is_elsewhere && !process::is_confined();
                let sent = if patient && !is_ours {
                    // The pin keeps the shadow; signals must reach a call that may block.
                    drop(shadow);
                    sleeps::end();
                    let by = if has_waited { c.fd() } else { fd };
                    let sent = match own(by, rest) {
                        n if n < 0 => Err(next::errno()),
                        n => Ok(n as usize),
                    };
                    switch::end_kernel_send(v.out(), sent.unwrap_or(0));
                    sent
                } else {
                    let rest = message(rest);
                    // SAFETY: buffers of the program, as far as they are not sent.
                    let sent = unsafe { sys::sendmsg(shadow.fd(), &rest, flags | MSG_DONTWAIT) };
                    switch::end_kernel_send(v.out(), sent.unwrap_or(0));
                    drop(shadow);
                    sent
                };
                if sent == Err(EAGAIN) || sent.is_ok_and(|n| n < asked) {
                    c.note_full();
                }
                if patient && sent == Err(EAGAIN) && (is_ours || r.has(NONBLOCK)) {
                    // Not in the kernel's call, or O_NONBLOCK was set after the call began.
                    ended_by_any(buffers);
                    let has_moved = || v.out().tx().by_ring();
                    pins::sleep(c, v, Sleep::Writing, has_moved, || {
                        recv::sleep(c, v, libc::POLLOUT, end, &c.writing)
                    })?;
                    has_waited = true;
                    continue;
                }
                let n = sent?;
                counters::add(Counter::KernelBytesTx, n as u64);
                counters::add(Counter::KernelMsgsTx, 1);
                buffers.advance(n);
                // The kernel is full, or a signal or a time limit cut a blocked call short.
                if n < asked && !is_ours {
                    break;
                }
            }
            Step::Full => {
                if !patient {
                    if !unseen::no_room(c, v) {
                        continue;
                    }
                    c.note_full();
                    return Err(EAGAIN);
                }
                c.see_blocking(unseen::OUT);
                ended_by_any(buffers);
                wait(c, v, buffers.left, end)?;
                has_waited = true;
            }
        }
    }
    Ok(())
}

/// Has the call sent a part already?
fn has_sent(buffers: &Buffers<'_>) -> bool {
    buffers.done > 0 || signal::goes_on()
}

/// A call that has sent a part is not begun anew by SA_RESTART.
fn ended_by_any(buffers: &Buffers<'_>) {
    if has_sent(buffers) {
        signal::let_any_end();
    }
}

/// One publication, or the decision for the kernel. Never blocks.
fn step<'a>(c: &'a Conn, v: &View<'_>, buffers: &mut Buffers<'_>, flags: i32) -> Step<'a> {
    let d = v.out();
    if flags & libc::MSG_OOB != 0 {
        begin_urgent(c, v);
    }
    loop {
        if !c.serves(v) {
            return Step::Error(libc::EBADF);
        }
        let w = d.tx();
        if w.generation() != v.generation {
            return Step::Error(libc::EBADF);
        }
        if w.by_ring() {
            if w.has(PIN) {
                if c.record().has(SHUT_WR) {
                    return Step::Error(broken_pipe(flags));
                }
                if !switch::withdraw(c, v) {
                    return Step::Full;
                }
                continue;
            }
            if w.has(CLOSING) || must_leave_ring(c, v, flags) {
                switch::unswitch(v);
                continue;
            }
            // By our own count: that of the ring lies where its reader looks.
            if c.sent().is_multiple_of(TOTALS_EVERY) {
                takeover::publish_totals(c, v);
            }
            match by_ring(c, v, buffers) {
                Ok(Some(step)) => return step,
                Ok(None) => continue,
                Err(Corrupt) => return corrupt(),
            }
        }
        takeover::see_attached(c, v);
        if !w.has(TCPONLY | PIN)
            && switch::may_switch(c)
            && !must_leave_ring(c, v, flags)
            && switch::try_switch(v)
        {
            continue;
        }
        if w.has(TCPONLY) && comeback::sending(c, v) {
            continue;
        }
        // A look has taken it out of the kernel, which would say that there is no pipe any more.
        match c.record().error.swap(0, Ordering::Relaxed) {
            0 => {}
            e => return Step::Error(told(e, flags)),
        }
        // Held over the count, so that nobody makes the segment another connection's in between.
        let Some(shadow) = c.shadow() else {
            return Step::Error(libc::EBADF);
        };
        match switch::begin_kernel_send(d) {
            Ok(true) => return Step::ByTcp(shadow),
            Ok(false) => {}
            Err(Corrupt) => return corrupt(),
        }
    }
}

/// The urgent byte is not read in line, so kernel bytes can't be counted to an N any more.
#[cold]
fn begin_urgent(c: &Conn, v: &View<'_>) {
    if c.record().has(SHUT_WR) {
        // It is refused, and moves nothing.
        return;
    }
    if c.record().has(URGENT) && switch::is_ring_unread(v) {
        // To the kernel the one before may be the next to be read, which another one replaces.
        counters::note(Reason::UrgentAhead);
    }
    c.record().set(URGENT, true);
    switch::tcp_only(v);
    // What stands before it is to do so in the kernel too, if it takes all of that at once: nobody else would go on with the rest.
    let unread = v.out_ring().unread();
    if unread == 0 || !has_kernel_room(c, unread) || !switch::pin_other_end(v) {
        switch::unswitch(v);
    }
}

/// Does the kernel take so much without waiting? Its buffer counts what it needs for itself too.
fn has_kernel_room(c: &Conn, bytes: usize) -> bool {
    let Some(shadow) = c.shadow() else {
        return false;
    };
    let size = sys::sockopt::<i32>(shadow.fd(), libc::SOL_SOCKET, libc::SO_SNDBUF).unwrap_or(0);
    let queued = sys::ioctl_int(shadow.fd(), libc::TIOCOUTQ).unwrap_or(i32::MAX);
    bytes.saturating_add(queued.max(0) as usize) <= size.max(0) as usize / 4
}

/// An error that a look has taken out of the kernel, as the kernel tells it to who sends.
fn told(e: i32, flags: i32) -> i32 {
    match e {
        libc::EPIPE => broken_pipe(flags),
        e => e,
    }
}

/// The program has shut this direction, which a keeper still has to end in the kernel.
fn broken_pipe(flags: i32) -> i32 {
    if flags & libc::MSG_NOSIGNAL == 0 {
        sys::raise(libc::SIGPIPE);
    }
    libc::EPIPE
}

fn corrupt() -> Step<'static> {
    counters::note(Reason::Corrupt);
    Step::Error(ECONNRESET)
}

/// Only the kernel can do (or refuse) what is asked for.
#[inline]
fn must_leave_ring(c: &Conn, v: &View<'_>, flags: i32) -> bool {
    if flags & KERNEL_FLAGS != 0 || v.record.has(SHUT_WR) || c.gone.load(Ordering::Relaxed) != 0 {
        return true;
    }
    if !look::overdue(c, v) {
        return false;
    }
    // A peer that takes something lives; one that was not looked at for long may have died since.
    let head = v.out_ring().head();
    if look::is_fresh(c, v) && c.head_seen.load(Ordering::Relaxed) != head {
        c.head_seen.store(head, Ordering::Relaxed);
        look::put_off(c);
        return false;
    }
    c.head_seen.store(head, Ordering::Relaxed);
    look::due(c, v) && look::peer_gone(c)
}

/// `None`: the direction moved meanwhile.
#[inline]
fn by_ring(
    c: &Conn,
    v: &View<'_>,
    buffers: &mut Buffers<'_>,
) -> Result<Option<Step<'static>>, Corrupt> {
    let (d, ring) = (v.out(), v.out_ring());
    // A reader on our own CPU gains nothing from an early start.
    let together = v.peer().cpu.load(Ordering::Relaxed) == v.own().cpu.load(Ordering::Relaxed);
    let chunk = if together { usize::MAX } else { CHUNK };
    let mut sent = 0;
    {
        let _section = v.lock_out();
        let w = d.tx();
        // A close or a shutdown in another thread waits for this section, and no longer.
        if !w.by_ring() || w.has(PIN | CLOSING) || !c.serves(v) {
            return Ok(None);
        }
        loop {
            let n = publish(&ring, buffers, chunk)?;
            c.tally(0, n);
            sent += n;
            if !together || n == 0 || buffers.left == 0 {
                break;
            }
        }
    }
    if sent == 0 {
        return Ok(Some(Step::Full));
    }
    switch::ring_reader(v);
    // A reader that went to the kernel meanwhile sees nothing of what was just published.
    if d.tx().has(PIN) {
        switch::help_withdraw(c, v);
    }
    Ok(Some(Step::Sent))
}

/// Publishes the next bytes, of as many buffers as it takes, as one frame of at most `most` bytes; 0: no room.
#[inline]
fn publish(ring: &Ring<'_>, buffers: &mut Buffers<'_>, most: usize) -> Result<usize, Corrupt> {
    let want = buffers.left.min(most);
    // Crumbs of room are not worth a frame of their own.
    if ring.room(want)? < want.min(ring.capacity() / 8) {
        return Ok(0);
    }
    let piece = buffers.piece(want);
    if piece.len() == want {
        let n = ring.push(piece, Meta::default())?;
        buffers.advance(n);
        return Ok(n);
    }
    let Some(room) = ring.reserve(want, false)? else {
        return Ok(0);
    };
    let mut filled = 0;
    while filled < room.len {
        let piece = buffers.piece(room.len - filled);
        // SAFETY: the reservation has room for this piece, and the program's buffers are outside it.
        unsafe { headwater_channel::copy::copy(piece.as_ptr(), room.ptr.add(filled), piece.len()) };
        filled += piece.len();
        buffers.advance(piece.len());
    }
    ring.commit(filled, Meta::default());
    Ok(filled)
}

/// Waits for room: spin, then arm, look again, sleep until the ring is down to its low-water mark.
fn wait(
    c: &'static Conn,
    v: &View<'static>,
    wanted: usize,
    deadline: Option<u64>,
) -> Result<(), i32> {
    let ring = v.out_ring();
    let (peer, tx) = (&v.peer().cpu, &v.out().send.tx);
    let least = wanted.min(ring.capacity() / 4) as u64 + 16;
    // What is unread is being taken back, and the kernel is full: room in the ring is no matter.
    let withdraws = Tx(tx.load(Ordering::Acquire)).has(PIN);
    let moved = || {
        let w = Tx(tx.load(Ordering::Acquire));
        !w.by_ring() || w.has(PIN) != withdraws
    };
    let has_room = || !withdraws && ring.capacity() as u64 - ring.fill() >= least;
    let is_low = || !withdraws && ring.below_low_water();
    let spun = c.writing.wait(
        None,
        || peer.load(Ordering::Relaxed),
        || has_room() || moved() || signal::interrupted(),
    );
    if signal::interrupted() {
        return Err(EINTR);
    }
    if spun == Outcome::Ready {
        return Ok(());
    }
    switch::begin_stall(c, v);
    let has_slept = Cell::new(false);
    let may_go_on = || is_low() || moved();
    let result = pins::sleep(c, v, Sleep::Writing, may_go_on, || {
        has_slept.set(true);
        let patience = sys::now() + switch::STALL;
        let bound = deadline.map_or(patience, |d| d.min(patience));
        recv::sleep(c, v, libc::POLLRDHUP, Some(bound), &c.writing)
    });
    if !has_slept.get() {
        return Ok(());
    }
    if c.look_now.load(Ordering::Relaxed) != 0 {
        look::peer_gone(c);
    }
    switch::end_stall(c, v);
    match result {
        Err(EAGAIN) if deadline.is_none_or(|d| sys::now() < d) => Ok(()),
        Err(EINTR) if !signal::interrupted() && deadline.is_none() => Ok(()),
        other => other,
    }
}

/// The C library's own send, which may block and is a cancellation point.
fn kernel_send(fd: i32, iov: &[iovec], flags: i32) -> isize {
    // SAFETY: who calls `send` has valid buffers, and these are what is left of them.
    unsafe {
        match iov {
            [one] => next::send(fd, one.iov_base, one.iov_len, flags),
            _ => next::sendmsg(fd, &message(iov), flags),
        }
    }
}
