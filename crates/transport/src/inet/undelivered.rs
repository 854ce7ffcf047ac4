//! Datagrams of a connectionless endpoint that did not arrive, as far as the kernel tells: T_UDERROR_IND.

use std::collections::VecDeque;

use headwater_host::sys;
use headwater_tpi::Refusal;
use headwater_tpi::error::{TACCES, TBADADDR, TBADDATA, TFLOW, TLOOK};
use libc::iovec;

use super::address::Address;
use super::batch;
use crate::ip::errors::{self, Failure};
use crate::provider::{Arrived, Outcome};

/// Remembered at most; what comes beyond is forgotten.
const MOST: usize = 64;
/// So often a datagram is tried that has met an error of others.
const TRIES: usize = 3;
/// Room for what a report quotes of a datagram.
const QUOTE: usize = 64;

#[derive(Default)]
pub struct Undelivered(VecDeque<(Address, i32)>);

/// Does a report of the kernel's, which quotes this much, concern the endpoint?
pub type Concerns<'a> = &'a dyn Fn(&Failure, &[u8]) -> bool;

/// A socket of UDP hears only of its own.
pub const ALL: Concerns<'static> = &|_, _| true;

impl Undelivered {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    pub fn push(&mut self, to: Address, errno: i32) {
        if self.0.len() < MOST {
            self.0.push_back((to, errno));
        }
    }

    pub fn take(&mut self) -> Option<Arrived> {
        let (to, error) = self.0.pop_front()?;
        Some(Arrived::Undelivered {
            to: to.to_vec(),
            opts: Vec::new(),
            error,
        })
    }

    /// What the network has said about earlier datagrams. Was there anything new?
    pub fn read(&mut self, fd: i32, concerns: Concerns<'_>) -> bool {
        let mut any = false;
        let mut quote = [0; QUOTE];
        while let Some(failure) = errors::next(fd, &mut quote) {
            if concerns(&failure, &quote[..failure.quoted]) {
                self.push(failure.to, failure.errno);
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

    /// Sends one datagram. TFLOW, TBADDATA, TBADADDR, TACCES; TLOOK: an earlier one has failed, this one did not leave.
    pub fn send(
        &mut self,
        fd: i32,
        to: &Address,
        data: &[iovec],
        control: &[u8],
        concerns: Concerns<'_>,
    ) -> Outcome<()> {
        let mut tries = 0;
        loop {
            let refusal = match batch::send(fd, to, data, control) {
                Ok(()) => return Ok(()),
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
