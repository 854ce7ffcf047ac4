//! The steps: what there is right now is taken, of the ring or of the kernel. None of them blocks.

use headwater_channel::bell;
use headwater_channel::ring::Corrupt;
use headwater_host::counters::{self, Counter, Reason};
use headwater_host::sync::{Ordering, fence};
use headwater_host::{process, sys};
use libc::{EAGAIN, EBADF, ECONNRESET, EFAULT, MSG_DONTWAIT, MSG_PEEK, MSG_TRUNC, iovec};

use crate::buffers::Buffers;
use crate::conn::Conn;
use crate::look::Shown;
use crate::outcome::Step;
use crate::record::SHUT_RD;
use crate::recv::sink::Sink;
use crate::segment::{Direction, PIN, TCPONLY, Tx, View};
use crate::{comeback, guard, look, switch, takeover};

/// Looks at a sender's epoch in one step.
const MOST_TURNS: u32 = 10_000;

/// What there is right now, of ring or kernel, whichever comes first.
pub fn take_now(c: &'static Conn, v: &View<'static>, iov: &[iovec]) -> Step {
    let mut buffers = Buffers::new(iov);
    guard(c, || step(c, v, &mut buffers, MSG_DONTWAIT)).unwrap_or(Step::Error(ECONNRESET))
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
    if result == Ok(Step::Kernel)
        && let Some(e) = look::left_error(c)
    {
        return Step::Error(e);
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
        if !d.tx().has(PIN) {
            None
        } else if buffers.left() == 0 {
            return nothing(c, v);
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

/// A receive of nothing, which takes nothing: is there something, or an end?
fn nothing(c: &Conn, v: &View<'_>) -> Step {
    if switch::readable(v) {
        return Step::Data(0);
    }
    match look::shown(c) {
        // The urgent byte itself, which isn't read in line.
        Shown::Nothing if is_at_mark(c, v) => Step::Data(0),
        Shown::Nothing => Step::Again,
        Shown::Bytes => Step::Data(0),
        Shown::End(end) => {
            c.record().error.store(0, Ordering::Relaxed);
            end
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
        let pinned = d.tx().has(PIN);
        if pinned {
            return Ok(Step::Kernel);
        }
        return Ok(nothing(c, v));
    }
    // A few where the sender moves just now; a hostile one could keep us here.
    for _ in 0..MOST_TURNS {
        let w = d.tx();
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
            if !look::due(c, v) && !v.record.has(SHUT_RD) {
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
        if d.tx().epoch() != w.epoch() {
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
                    let between = buffers.take_ring(&ring, flags, end)?;
                    if end.is_some() && buffers.left() > 0 {
                        peek_behind(c, buffers, flags, got, between);
                    }
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
    if d.tx().epoch() != w.epoch() || limit == 0 {
        return Ok(());
    }
    if is_at_mark(c, v) {
        return Ok(());
    }
    if w.by_ring() && limit > 1 << 60 {
        return Err(Corrupt);
    }
    let more = kernel_step(c, d, buffers, flags, limit.min(usize::MAX as u64) as usize);
    if let Step::Error(e) = more
        && e != EFAULT
    {
        // Looking takes it out of the shadow.
        c.record().error.store(e, Ordering::Relaxed);
    }
    Ok(())
}

/// A peek has seen the `known` bytes of the kernel's stretch and the ring's stretch behind it: what the kernel has follows that.
#[cold]
fn peek_behind<S: Sink>(c: &Conn, buffers: &mut S, flags: i32, known: usize, between: usize) {
    let Some(shadow) = c.shadow() else { return };
    let flags = flags & (MSG_PEEK | MSG_TRUNC) | MSG_DONTWAIT;
    match buffers.peek_behind(shadow.fd(), flags, known, between) {
        Ok(_) | Err(EAGAIN | EFAULT) => {}
        // Looking takes it out of the shadow.
        Err(e) => c.record().error.store(e, Ordering::Relaxed),
    }
}

/// A kernel read of at most `limit` bytes, counted.
fn kernel_step<S: Sink>(
    c: &Conn,
    d: &Direction,
    buffers: &mut S,
    flags: i32,
    limit: usize,
) -> Step {
    let flags = flags & (MSG_PEEK | MSG_TRUNC) | MSG_DONTWAIT;
    let Some(shadow) = c.shadow() else {
        return Step::Error(EBADF);
    };
    let result = buffers.take_kernel(shadow.fd(), flags, limit);
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

/// Is an urgent byte the next one that the kernel has? What comes before it is read apart. An urgent byte never goes by the ring,
/// nor anything after it.
pub(crate) fn is_at_mark(c: &Conn, v: &View<'_>) -> bool {
    Tx(v.inn().send.tx.load(Ordering::Relaxed)).has(TCPONLY) && sys::is_at_mark(c.fd())
}
