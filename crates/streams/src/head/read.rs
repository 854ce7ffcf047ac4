//! read(2) and readv(2), in the read modes of I_SRDOPT.

use headwater_host::sys::Errno;
use headwater_host::{process, signal, stand_in};
use libc::iovec;

use super::arming::Want;
use super::inlet::{Front, Inlet, Sink, Trouble};
use super::{Head, Plain, is_bad, local, opening};
use crate::ddi as kind;
use crate::pipe::section;
use crate::pipe::words::state;

pub const RNORM: u32 = 0;
pub const RMSGD: u32 = 1;
pub const RMSGN: u32 = 2;
pub const RMODEMASK: u32 = 3;
pub const RPROTDAT: u32 = 4;
pub const RPROTDIS: u32 = 8;
pub const RPROTNORM: u32 = 0x10;

impl Head {
    /// Reads bytes. Blocks while there is nothing unless O_NONBLOCK; 0 after a hangup, or for a message of no bytes.
    /// Errors: EAGAIN, EBADMSG (the first message is not for read), EINTR, EINVAL (linked), the errno of an M_ERROR.
    #[inline]
    pub fn read(&self, buf: &mut [u8]) -> Result<usize, Errno> {
        if let Some(plain) = self.plain(state::STOPS_READ)
            && !buf.is_empty()
        {
            let n = self.read_plain(plain, buf);
            if n > 0 {
                return Ok(n);
            }
        }
        self.read_slowly(&[headwater_host::sys::buffer(buf.as_mut_ptr(), buf.len())])
    }

    /// Ordinary data from the ring; 0 when there is none, or something else is to be said.
    #[inline(always)]
    fn read_plain(&self, plain: Plain, buf: &mut [u8]) -> usize {
        let ring = self.plain_incoming(plain);
        if ring.is_empty() {
            return 0;
        }
        self.enter_plain(plain);
        let _quiet = process::Quiet::new();
        let Some(section) = section::reading(&ring) else {
            return 0;
        };
        let mut done = 0;
        // A module pushed meanwhile takes what is there.
        let queued = self.is_queued();
        while done < buf.len() && ring.specials() == 0 && !queued {
            let Ok(Some(frame)) = ring.peek() else { break };
            // A message of no bytes ends a read, and is read as 0 by the next.
            if frame.len == 0 || frame.special {
                break;
            }
            let n = frame.len.min(buf.len() - done);
            ring.copy_frame(&frame, 0, &mut buf[done..done + n]);
            ring.consume(&frame, n);
            done += n;
        }
        drop(section);
        if ring.wakes_writer() {
            self.ring_peer();
        }
        self.tell_local_peer_at(plain.base);
        done
    }

    #[cold]
    pub fn read_slowly(&self, iov: &[iovec]) -> Result<usize, Errno> {
        signal::begin_wait();
        if iov.iter().any(|v| is_bad(v.iov_base) && v.iov_len > 0) {
            return Err(libc::EFAULT);
        }
        self.check_readable()?;
        if iov.iter().all(|v| v.iov_len == 0) {
            return Ok(0);
        }
        let options = self.words().read_options.load(Relaxed);
        if self.words().has(state::TELLS_READS) {
            local::tell_read(self, iov.iter().map(|v| v.iov_len).sum());
        }
        let mut done = 0;
        match self.receive(None, |inlet| read_from(inlet, iov, options, &mut done)) {
            // What comes after bytes already read can wait for the next call.
            Err(_) if done > 0 => Ok(done),
            read => read,
        }
    }

    /// The loop of every call that takes a message: looks, and waits when `f` finds nothing for it. `f` returns `None` to
    /// wait. After a hangup with nothing left for it, `T::default()`.
    pub fn receive<T: Default>(
        &self,
        deadline: Option<u64>,
        mut f: impl FnMut(&mut dyn Inlet) -> Result<Option<T>, Trouble>,
    ) -> Result<T, Errno> {
        let mut left = false;
        // As it is when the call first would wait: what is set meanwhile is for later ones.
        let mut nonblocking = None;
        loop {
            self.check_readable()?;
            // Before looking: what was sent before the end is there then.
            let over = self.has_hung_up() || left;
            let seen = self.seen();
            let found = if self.is_queued() {
                local::with_inlet(self, &mut f)
            } else {
                self.with_ring_inlet(&mut f)
            };
            match found {
                Ok(Some(value)) => return Ok(value),
                Ok(None) => {}
                Err(Trouble::NeedsQueue) => {
                    local::begin(self)?;
                    continue;
                }
                Err(Trouble::Fails(libc::EPROTO)) if !self.is_queued() => {
                    return Err(self.spoiled());
                }
                Err(Trouble::Fails(e)) => return Err(e),
            }
            if over {
                return Ok(T::default());
            }
            left = opening::is_over(self);
            if left {
                continue;
            }
            if deadline.is_none()
                && *nonblocking.get_or_insert_with(|| opening::is_nonblocking(self))
            {
                stand_in::glance();
                return Err(libc::EAGAIN);
            }
            self.wait_for_message(seen, deadline)?;
        }
    }

    /// What has come so far: taken before looking, so that nothing that comes meanwhile is waited for.
    fn seen(&self) -> Seen {
        Seen {
            version: self.version(),
            tail: if self.has_pipe() {
                self.incoming().tail()
            } else {
                0
            },
        }
    }

    /// Waits for something new at the head.
    fn wait_for_message(&self, seen: Seen, deadline: Option<u64>) -> Result<(), Errno> {
        let mut beside = [opening::watched(self)];
        if self.is_queued() {
            return local::wait_for_change(self, seen.version, deadline, &mut beside);
        }
        let ring = self.incoming();
        // What was found not to be for us is no news.
        let empty = ring.is_empty();
        self.wait(Want::DATA, deadline, &mut beside, || {
            let come = if empty {
                !ring.is_empty()
            } else {
                ring.tail() != seen.tail
            };
            come || self.version() != seen.version || self.is_queued()
        })
    }

    /// ENXIO after a hangup.
    pub fn check_connected(&self) -> Result<(), Errno> {
        (!self.has_hung_up()).then_some(()).ok_or(libc::ENXIO)
    }

    pub fn check_not_linked(&self) -> Result<(), Errno> {
        let linked = self.words().has(state::LINKED);
        (!linked).then_some(()).ok_or(libc::EINVAL)
    }

    /// Begins a call: acts on what a module at the other end of a pipe sent for the head itself.
    #[inline]
    pub fn attend(&self) -> Result<(), Errno> {
        match self.words().has(state::FOR_HEAD) {
            true => self.attend_slowly(),
            false => Ok(()),
        }
    }

    #[cold]
    fn attend_slowly(&self) -> Result<(), Errno> {
        self.words().clear(state::FOR_HEAD);
        if !self.is_queued()
            && let Err(e) = local::begin(self)
        {
            // The next call tries again.
            self.words().set(state::FOR_HEAD);
            return Err(e);
        }
        local::serve(self.forever());
        Ok(())
    }

    /// The error that a read finds, if any.
    pub fn check_readable(&self) -> Result<(), Errno> {
        self.check_not_linked()?;
        self.attend()?;
        if self.words().has(state::NO_READ) {
            return Err(libc::EBADF);
        }
        if self.words().has(state::READ_ERROR) {
            return Err(self.take_error(true));
        }
        Ok(())
    }

    /// The errno of an M_ERROR; told once only where I_SERROPT asked for that.
    pub fn take_error(&self, reading: bool) -> Errno {
        let words = self.words();
        let (word, bit, once) = if reading {
            (&words.read_error, state::READ_ERROR, RERRNONPERSIST)
        } else {
            (&words.write_error, state::WRITE_ERROR, WERRNONPERSIST)
        };
        let errno = word.load(Relaxed) as Errno;
        if words.error_options.load(Relaxed) & once != 0 {
            words.clear(bit);
            word.store(0, Relaxed);
        }
        if errno == 0 { libc::EIO } else { errno }
    }
}

#[derive(Clone, Copy)]
struct Seen {
    version: u32,
    tail: u64,
}

/// I_SERROPT: an error is told once.
pub const RERRNONPERSIST: u32 = 2;
pub const WERRNONPERSIST: u32 = 8;

/// Does read(2) take such a message at all?
fn is_data(front: &Front, options: u32) -> bool {
    front.kind != kind::M_PASSFP
        && (front.control.is_none() || options & (RPROTDAT | RPROTDIS) != 0)
}

/// Does a read that has bytes already take more of them from this message?
fn goes_on(front: &Front, options: u32) -> bool {
    is_data(front, options) && front.total() > discarded(front, options) && !front.mark
}

/// How many bytes of its control part a read passes over.
fn discarded(front: &Front, options: u32) -> usize {
    match options & RPROTDIS {
        0 => 0,
        _ => front.control.unwrap_or(0),
    }
}

/// read(2) from the front on; `None`: nothing there. `done` bytes have been read, and stay so where this fails: it goes on behind
/// them from queues.
fn read_from(
    inlet: &mut dyn Inlet,
    iov: &[iovec],
    options: u32,
    done: &mut usize,
) -> Result<Option<usize>, Trouble> {
    let mut sink = Sink::behind(iov, *done);
    let mut dropped = false;
    while sink.left() > 0 {
        let Some(front) = inlet.front()? else {
            let more = |front: &Front| *done == 0 || goes_on(front, options);
            if (*done > 0 || dropped) && inlet.fetch(&more) {
                continue;
            }
            return Ok((*done > 0).then_some(*done));
        };
        if *done > 0 && !goes_on(&front, options) {
            break;
        }
        if !is_data(&front, options) {
            return Err(Trouble::Fails(libc::EBADMSG));
        }
        let skip = discarded(&front, options);
        if front.data.is_none() && options & RPROTDIS != 0 {
            inlet.take(front.control, None)?;
            dropped = true;
            continue;
        }
        let len = front.total() - skip;
        if len == 0 {
            if *done == 0 {
                inlet.take(front.control, front.data)?;
                return Ok(Some(0));
            }
            break;
        }
        let n = len.min(sink.left());
        // As data: the control part's bytes come first.
        let of_control = front.control.map(|c| c.min(skip + n));
        let of_data = front
            .data
            .map(|d| d.min(skip + n - of_control.unwrap_or(0)));
        let mode = options & RMODEMASK;
        if mode == RMSGD {
            sink.fill_by(skip, n, |skip, to| inlet.copy(skip, to));
            inlet.take(front.control, front.data)?;
            return Ok(Some(n));
        }
        let control_left = front.control.is_some() && of_control != front.control;
        let of_data = if control_left { None } else { of_data };
        // Copied first: taking can only fail before anything was taken, and then the copy is made again.
        sink.fill_by(skip, n, |skip, to| inlet.copy(skip, to));
        inlet.take(of_control, of_data)?;
        *done += n;
        let whole = n == len;
        if mode == RMSGN || front.delim || !whole {
            break;
        }
    }
    Ok(Some(*done))
}

use headwater_host::sync::Ordering::Relaxed;
