//! Datagrams of a connectionless endpoint that did not arrive, as far as the kernel tells: T_UDERROR_IND.

use core::time::Duration;
use std::collections::VecDeque;

use headwater_host::sys;
use headwater_ipnet::Address;
use headwater_ipnet::errors::{self, Failure};
use headwater_ipnet::outgoing::send;
use headwater_tpi::Refusal;
use headwater_tpi::error::{TACCES, TBADADDR, TBADDATA, TFLOW, TLOOK};
use libc::iovec;

use super::poll;
use crate::provider::{Arrived, Outcome};

/// Remembered at most; what comes beyond is forgotten.
const MOST: usize = 64;
/// So often a datagram is tried that has met an error of others.
const TRIES: usize = 3;
/// Between two times that the kernel is asked what became of a datagram, in nanoseconds: twice as long each time.
const SHORTEST: u64 = Duration::from_micros(10).as_nanos() as u64;
const LONGEST: u64 = Duration::from_millis(10).as_nanos() as u64;
/// While datagrams leave one after the other and nothing is heard of them, at least this long.
const RARELY: u64 = Duration::from_micros(100).as_nanos() as u64;
/// Room for what a report quotes of a datagram.
const QUOTE: usize = 64;

#[derive(Default)]
pub struct Undelivered {
    known: VecDeque<(Address, i32)>,
    /// When the kernel is next asked what became of the datagrams that have left, and how much later once more; 0: no more.
    due: u64,
    pause: u64,
    /// When it was asked last, and how long nobody has to ask again, whatever leaves: longer each time that nothing was heard.
    asked: u64,
    quiet: u64,
}

/// Where the datagram went that a report of the kernel's, which quotes this much, is about; `None`: it does not concern the endpoint.
pub type Concerns<'a> = &'a dyn Fn(&Failure, &[u8]) -> Option<Address>;

/// A socket of UDP hears only of its own.
pub const ALL: Concerns<'static> = &|failure, _| Some(failure.to);

impl Undelivered {
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// TLOOK: there is one to be told first.
    pub fn check(&self) -> Outcome<()> {
        self.is_empty().then_some(()).ok_or(Refusal::new(TLOOK))
    }

    pub fn clear(&mut self) {
        *self = Undelivered::default();
    }

    /// A datagram has left. This host's own word about it is there at once, as a rule.
    #[inline]
    pub fn note_sent(&mut self) {
        (self.due, self.pause) = (self.asked + self.quiet, SHORTEST);
    }

    /// Is there an error? To be asked before what is done without the kernel, which would tell.
    #[inline]
    pub fn hears(&mut self, fd: i32, concerns: Concerns<'_>) -> bool {
        if self.pause > 0 && self.is_due() && poll(fd, 0) & libc::POLLERR != 0 {
            self.quiet = 0;
            self.read(fd, concerns);
        }
        !self.is_empty()
    }

    fn is_due(&mut self) -> bool {
        let now = sys::now();
        if now < self.due {
            return false;
        }
        let goes_on = now - self.asked < LONGEST;
        self.quiet = if goes_on {
            (self.quiet + SHORTEST).min(RARELY)
        } else {
            0
        };
        self.asked = now;
        self.due = now + self.pause;
        self.pause = if self.pause < LONGEST {
            self.pause * 2
        } else {
            0
        };
        true
    }

    pub fn push(&mut self, to: Address, errno: i32) {
        if self.known.len() < MOST {
            self.known.push_back((to, errno));
        }
    }

    pub fn take(&mut self) -> Option<Arrived> {
        self.take_as(|to| to)
    }

    /// The same, of addresses as the user has them.
    pub fn take_as(&mut self, named: impl FnOnce(Address) -> Address) -> Option<Arrived> {
        let (to, error) = self.known.pop_front()?;
        let (to, opts) = (named(to).to_vec(), Vec::new());
        Some(Arrived::Undelivered { to, opts, error })
    }

    /// What the network has said about earlier datagrams. Was there anything new?
    pub fn read(&mut self, fd: i32, concerns: Concerns<'_>) -> bool {
        let mut any = false;
        let mut quote = [0; QUOTE];
        while let Some(failure) = errors::next(fd, &mut quote) {
            if let Some(to) = concerns(&failure, &quote[..failure.quoted]) {
                self.push(to, failure.errno);
                any = true;
            }
        }
        // The last of them is the socket's error too.
        let _ = sys::sockopt::<i32>(fd, libc::SOL_SOCKET, libc::SO_ERROR);
        any
    }

    /// A send has failed: what the error queue knows, or this.
    pub fn blame(&mut self, fd: i32, to: Address, errno: i32, concerns: Concerns<'_>) {
        if !self.read(fd, concerns) {
            self.push(to, errno);
        }
    }

    /// Sends one datagram to `to`, which the socket is given as `at`. TFLOW, TBADDATA, TBADADDR, TACCES; TLOOK: an earlier one has failed,
    /// this one did not leave.
    pub fn send(
        &mut self,
        fd: i32,
        (to, at): (&Address, &Address),
        data: &[iovec],
        control: &[u8],
        concerns: Concerns<'_>,
    ) -> Outcome<()> {
        let mut tries = 0;
        loop {
            let refusal = match send(fd, at, data, control) {
                Ok(()) => {
                    self.note_sent();
                    return Ok(());
                }
                Err(libc::EAGAIN) => TFLOW,
                Err(libc::EMSGSIZE) => TBADDATA,
                Err(libc::EINVAL | libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL) => TBADADDR,
                Err(libc::EACCES | libc::EPERM) => TACCES,
                Err(_) if self.read(fd, concerns) => TLOOK,
                Err(errno) => {
                    tries += 1;
                    // What it was about concerns others, or another process has read it.
                    if errno == libc::ECONNREFUSED && tries < TRIES {
                        continue;
                    }
                    self.push(*to, errno);
                    return Ok(());
                }
            };
            return Err(Refusal::new(refusal));
        }
    }
}
