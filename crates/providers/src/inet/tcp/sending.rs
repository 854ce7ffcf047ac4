//! How data leaves a TCP endpoint: at once, gathered by copying, or gathered by the kernel.

use core::time::Duration;

use headwater_host::sys;
use headwater_tpi::Refusal;
use headwater_tpi::error::{TFLOW, TLOOK};
use libc::iovec;

use super::super::coalesce::LARGE;
use super::super::{keeper, length};
use super::Tcp;
use crate::flusher::{self, Went};
use crate::provider::{Outcome, Sending};

/// From here on a ring's own work for a message is not worth gathering.
const LARGE_IN_RING: usize = 2 << 10;

/// How long a closing endpoint waits for a peer that takes nothing, in nanoseconds.
const CLOSE_TIMEOUT: u64 = Duration::from_secs(5).as_nanos() as u64;

impl Tcp {
    #[inline]
    pub fn put(&mut self, data: &[iovec], how: Sending) -> Outcome<usize> {
        if self.error.is_some() {
            return Err(Refusal::new(TLOOK));
        }
        let at_once = how.push || self.nodelay;
        if at_once && !how.expedited && self.keeps_nothing() && !self.socket.is_watched() {
            return self.put_plainly(data);
        }
        let total = length(data);
        if how.expedited {
            self.end_run();
            self.socket.leave_to_kernel();
            return self.transfer(data, total, libc::MSG_OOB);
        }
        // A ring takes what is large as it is; small data is gathered for it as for the kernel.
        if at_once || total >= LARGE_IN_RING && self.socket.is_carried() {
            self.end_run();
            return self.transfer_behind(data, total);
        }
        if total >= LARGE || self.run.stalled {
            return self.put_large(data, total);
        }
        self.end_run();
        let fits = total <= self.held.room();
        if fits && (self.held.pending() > 0 || self.held.pace.may_begin()) {
            return Ok(self.held.append(data, 0));
        }
        self.transfer_or_hold(data, total)
    }

    /// Is everything with the kernel, and on its way?
    #[inline]
    pub fn keeps_nothing(&self) -> bool {
        self.held.pending() == 0 && !self.run.is_gathered()
    }

    /// Nothing stands between the user and the kernel.
    #[inline]
    fn put_plainly(&mut self, data: &[iovec]) -> Outcome<usize> {
        match self.socket.send_by_kernel(data) {
            Ok(0) if length(data) > 0 => Err(Refusal::new(TFLOW)),
            Ok(n) => Ok(n),
            Err(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => Err(Refusal::new(TFLOW)),
            Err(errno) => Err(self.fail(errno)),
        }
    }

    fn put_large(&mut self, data: &[iovec], total: usize) -> Outcome<usize> {
        if self.run.next() {
            self.socket.bound();
            self.socket.gather(true);
        }
        let sent = self.transfer_behind(data, total);
        self.run.stalled = sent.map_or_else(|refusal| refusal.tli == TFLOW, |n| n < total);
        sent
    }

    /// What the kernel gathered goes.
    #[inline]
    pub fn end_run(&mut self) {
        if self.run.end() {
            self.socket.gather(false);
        }
    }

    /// To the kernel (or the ring) at once: what is held, then the data. TFLOW: nothing of the data went.
    fn transfer(&mut self, data: &[iovec], total: usize, flags: i32) -> Outcome<usize> {
        let pending = self.held.pending();
        let sent = if pending == 0 {
            self.socket.send(data, flags)
        } else {
            let held = self.held.bytes();
            let held = sys::buffer(held.as_ptr(), pending);
            const ROOM: usize = 17;
            let mut few = [held; ROOM];
            if data.len() < ROOM {
                few[1..=data.len()].copy_from_slice(data);
                self.socket.send(&few[..=data.len()], flags)
            } else {
                let all: Vec<iovec> = core::iter::once(held).chain(data.iter().copied()).collect();
                self.socket.send(&all, flags)
            }
        };
        let sent = match sent {
            Ok(n) => n,
            Err(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => 0,
            Err(errno) => return Err(self.fail(errno)),
        };
        self.held.consume(sent.min(pending));
        let sent = sent - sent.min(pending);
        if sent == 0 && total > 0 {
            Err(Refusal::new(TFLOW))
        } else {
            Ok(sent)
        }
    }

    /// As [`transfer`](Self::transfer); behind what is held and does not go, it is held too: then there is room as long as that is so.
    fn transfer_behind(&mut self, data: &[iovec], total: usize) -> Outcome<usize> {
        match self.held.pending() {
            0 => self.transfer(data, total, 0),
            _ => self.transfer_or_hold(data, total),
        }
    }

    /// The kernel is full: what fits is held all the same, if somebody will send it.
    fn transfer_or_hold(&mut self, data: &[iovec], total: usize) -> Outcome<usize> {
        let sent = match self.transfer(data, total, 0) {
            Err(refusal) if refusal.tli == TFLOW => 0,
            result => result?,
        };
        if sent == total {
            return Ok(sent);
        }
        let kept = match self.held.pending() > 0 || flusher::is_there() {
            true => self.held.append(data, sent),
            false => 0,
        };
        if sent + kept == 0 {
            Err(Refusal::new(TFLOW))
        } else {
            Ok(sent + kept)
        }
    }

    pub fn send_held(&mut self) {
        if self.held.pending() > 0 {
            let before = self.held.pending();
            let _ = self.transfer(&[], 0, 0);
            flusher::note(if self.held.pending() < before {
                Went::Sent
            } else {
                Went::Stuck
            });
        }
        if self.release_due && self.held.pending() == 0 {
            self.release_due = false;
            self.keep_address();
            if self.socket.shut_writing().is_err()
                && let Some(errno) = self.socket.take_error()
            {
                self.fail(errno);
            }
        }
    }

    /// Sends what nobody else will; in the flusher's thread only what is due.
    pub fn send_kept(&mut self) {
        if self.run.is_gathered() && flusher::tick().is_none_or(|now| self.run.rests(now)) {
            self.end_run();
        }
        if self.held.pending() == 0 && !self.release_due {
            return;
        }
        if flusher::tick().is_none_or(|now| self.release_due || self.held.is_due(now)) {
            self.send_held();
        }
    }

    /// What is held goes out, if the peer takes anything at all: nobody sends it later. `last`: this end of the connection sends nothing
    /// more, and never waits for a peer that does not read.
    pub fn push_out(&mut self, last: bool) {
        let begun = sys::now();
        self.wait_for_any_room();
        self.end_run();
        self.send_held();
        if self.held.pending() > 0 && self.socket.is_carried() {
            // The ring is full. The kernel has room behind it, and says when.
            self.socket.leave_to_kernel();
            self.send_held();
        }
        if !last || self.held.pending() == 0 {
            return self.wait_and_send(begun, CLOSE_TIMEOUT);
        }
        match self.socket.lingers() {
            // A reset loses what the peer has not got, held or not.
            Some(Duration::ZERO) => return self.held.clear(),
            Some(bound) => self.wait_and_send(begun, bound.as_nanos() as u64),
            None => {}
        }
        if self.held.pending() == 0 || self.error.is_some() {
            return;
        }
        // What is in the ring goes before it, which is for Fast Sockets to send.
        let is_plain = !self.socket.is_carried();
        if is_plain && keeper::leave(self.socket.fd(), self.held.bytes(), self.release_due) {
            self.held.clear();
            self.release_due = false;
        } else {
            self.wait_and_send(begun, CLOSE_TIMEOUT);
        }
    }

    fn wait_and_send(&mut self, begun: u64, bound: u64) {
        while self.held.pending() > 0 && self.error.is_none() && sys::now() - begun < bound {
            let mut set = [sys::entry(self.socket.fd(), libc::POLLOUT)];
            let _ = sys::ppoll(&mut set, Some(CLOSE_TIMEOUT / 100));
            self.send_held();
        }
    }

    /// [`push_out`](Self::push_out) of an endpoint that closes.
    pub fn drain(&mut self) {
        self.push_out(true);
        self.held.clear();
    }
}
