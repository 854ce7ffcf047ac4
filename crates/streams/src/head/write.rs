//! write(2) and writev(2).

use headwater_channel::lock::Taken;
use headwater_channel::ring::Meta;
use headwater_host::process;
use headwater_host::sys::Errno;
use headwater_host::{signal, sys};
use libc::iovec;

pub use super::outgoing::Source;
use super::{Head, Plain, copying, is_bad, local, opening};
use crate::pipe::words::state;
use crate::pipe::{INLINE, LIMIT, LOW, section};
use crate::tunables;

/// I_SWROPT: write(2) of nothing sends a message of no bytes.
pub const SNDZERO: u32 = 1;
impl Head {
    /// Writes bytes. Blocks while the stream is full unless O_NONBLOCK; returns how many were written.
    /// Errors: EAGAIN, EINTR, EPIPE (with SIGPIPE), ERANGE, the errno of an M_ERROR.
    #[inline]
    pub fn write(&self, buf: &[u8]) -> Result<usize, Errno> {
        if let Some(plain) = self.plain(state::STOPS_WRITE)
            && buf.len().wrapping_sub(1) < INLINE
            && let Some(n) = self.write_plain(plain, buf)
        {
            return Ok(n);
        }
        self.write_slowly(&[sys::buffer(buf.as_ptr(), buf.len())])
    }

    /// One message into the ring, if nothing is in the way.
    #[inline(always)]
    fn write_plain(&self, plain: Plain, buf: &[u8]) -> Option<usize> {
        if self.is_other_gone(plain.base) {
            return None;
        }
        self.enter_plain(plain);
        let _quiet = process::Quiet::new();
        let ring = self.plain_outgoing(plain);
        let section = section::enter(&ring.state.writer.lock)?;
        if section.taken == Taken::Stolen {
            self.recover_writing().ok()?;
        }
        if !ring.may_send(buf.len(), LIMIT, LOW) {
            return None;
        }
        let n = if buf.len() >= copying::LONG && self.peer_cpu() != sys::cpu() {
            let plan = self.copying.plan();
            let n = if plan.streaming {
                ring.push_streaming(buf, Meta::default())
            } else {
                ring.push(buf, Meta::default())
            };
            drop(section);
            self.copying.done(plan, buf.len());
            n.ok()?
        } else {
            let n = ring.push(buf, Meta::default());
            drop(section);
            n.ok()?
        };
        if ring.wakes_reader() {
            self.ring_peer();
        }
        self.tell_local_peer_at(plain.base);
        if self.unanswered.load(Relaxed) != 0 {
            self.unanswered.store(0, Relaxed);
        }
        (n > 0).then_some(n)
    }

    /// writev(2): one message, or as many as the packet size asks for.
    #[cold]
    pub fn write_slowly(&self, iov: &[iovec]) -> Result<usize, Errno> {
        signal::begin_wait();
        let total = iov.iter().map(|v| v.iov_len).sum::<usize>();
        if iov.iter().any(|v| is_bad(v.iov_base) && v.iov_len > 0) {
            return Err(libc::EFAULT);
        }
        self.check_writable().map_err(with_signal)?;
        if total == 0 && self.words().write_options.load(Relaxed) & SNDZERO == 0 {
            return Ok(0);
        }
        let (least, most) = self.packet_sizes();
        if least > 0 && (total < least || total > most) {
            return Err(libc::ERANGE);
        }
        let mut source = Source::new(iov);
        let mut done = 0;
        loop {
            let n = (total - done).min(most);
            let sent = self.send_patiently(0, n, None, || match self.is_queued() {
                true => local::write(self, &mut source, n),
                false => self.push_data(&mut source, n),
            });
            match sent {
                Ok(()) => done += n,
                Err(_) if done > 0 => return Ok(done),
                Err(e) => return Err(with_signal(e)),
            }
            if done >= total || self.check_writable().is_err() {
                return Ok(done);
            }
        }
    }

    /// Gathers `n` bytes into one frame; false when there is no room.
    fn push_data(&self, source: &mut Source<'_>, n: usize) -> Result<bool, Errno> {
        self.enter();
        let _quiet = process::Quiet::new();
        let ring = self.outgoing();
        let section = self.begin_writing(&ring)?;
        let (limit, low) = self.marks();
        if !ring.may_send(n, limit, low) {
            return Ok(false);
        }
        let sent = if n == 0 {
            ring.push_empty(Meta::default())
        } else {
            match ring.reserve(n, false) {
                Ok(Some(room)) if room.len >= n => {
                    // SAFETY: the reservation is writable for its length.
                    source.take(unsafe { core::slice::from_raw_parts_mut(room.ptr, n) });
                    ring.commit(n, Meta::default());
                    Ok(true)
                }
                Ok(_) => Ok(false),
                Err(e) => Err(e),
            }
        };
        drop(section);
        self.ring_peer_for_data(&ring);
        self.tell_local_peer();
        sent.map_err(|_| self.spoiled())
    }

    /// Is something to be said to a writer or reader who waits?
    #[inline]
    pub fn is_upset(&self) -> bool {
        self.words().has(
            state::HANGUP
                | state::READ_ERROR
                | state::WRITE_ERROR
                | state::LINKED
                | state::FOR_HEAD,
        ) || self.has_hung_up()
    }

    /// May `n` bytes of ordinary data go into the ring? A hint.
    pub fn has_room(&self, n: usize) -> bool {
        let (limit, low) = self.marks();
        let ring = self.outgoing();
        !ring.is_full_hint(limit, low) && (ring.fill() as usize + n <= limit || ring.fill() == 0)
    }

    /// High and low water mark of what we write, in bytes of the ring.
    pub fn marks(&self) -> (usize, usize) {
        if self.words().limit.load(Relaxed) != 0 {
            return self.transport_marks();
        }
        let Some(peer) = self.peer_words() else {
            return (LIMIT, LOW);
        };
        match peer.hiwat.load(Relaxed) as usize {
            0 => (LIMIT, LOW),
            hiwat => (
                hiwat.min(LIMIT),
                (peer.lowat.load(Relaxed) as usize).min(LOW),
            ),
        }
    }

    /// Smallest and largest data part of a message from here.
    pub fn packet_sizes(&self) -> (usize, usize) {
        let words = self.words();
        let (least, most) = (
            words.min_packet.load(Relaxed),
            words.max_packet.load(Relaxed),
        );
        let most = if self.is_queued() {
            most as usize
        } else {
            (most as usize).min(INLINE)
        };
        (least as usize, most.min(tunables::get().strmsgsz).max(1))
    }

    /// The error that a write finds, if any.
    #[inline]
    pub fn check_writable(&self) -> Result<(), Errno> {
        let words = self.words();
        self.attend()?;
        let hung_up = self.has_hung_up();
        let s = words.state();
        if s & state::NO_WRITE != 0 {
            return Err(libc::EBADF);
        }
        if s & state::LINKED != 0 {
            return Err(libc::EINVAL);
        }
        if s & state::WRITE_ERROR != 0 {
            return Err(self.take_error(false));
        }
        if hung_up || self.is_one_way() && opening::is_over(self) {
            return Err(libc::EPIPE);
        }
        Ok(())
    }

    /// The peer wrote nonsense into the segment: this stream is over, nothing else is.
    pub fn spoiled(&self) -> Errno {
        let words = self.words();
        words.read_error.store(libc::EPROTO as u32, Relaxed);
        words.write_error.store(libc::EPROTO as u32, Relaxed);
        words.set(state::READ_ERROR | state::WRITE_ERROR);
        self.notify();
        libc::EPROTO
    }
}

/// EPIPE raises SIGPIPE.
pub fn with_signal(e: Errno) -> Errno {
    if e == libc::EPIPE {
        sys::raise(libc::SIGPIPE);
    }
    e
}

use headwater_host::sync::Ordering::Relaxed;
