//! Connection requests: taken from the kernel, told to the user, accepted or refused.

use std::collections::VecDeque;

use headwater_host::lifecycle::forks;
use headwater_host::sys;
use headwater_ipnet::Address;
use headwater_tpi::Refusal;
use headwater_tpi::error::TBADSEQ;

use super::super::connection::Socket;
use super::super::poll;
use crate::loopback::listening::is_lack;
use crate::provider::{Arrived, Outcome};

/// A connection that a peer has made and the user has not accepted; refused when dropped.
pub struct Request {
    pub seq: i32,
    pub from: Address,
    pub socket: Option<Socket>,
    /// Forks of this process before it was taken from the kernel.
    forks: u32,
}

impl Drop for Request {
    fn drop(&mut self) {
        // After a fork it may be accepted in the other process.
        if self.forks == forks()
            && let Some(socket) = &self.socket
        {
            let _ = socket.abort();
        }
    }
}

impl Request {
    fn is_gone(&self) -> Option<i32> {
        let socket = self.socket.as_ref()?;
        let gone = poll(socket.fd(), 0) & (libc::POLLERR | libc::POLLHUP) != 0;
        gone.then(|| socket.take_error().unwrap_or(libc::ECONNRESET))
    }
}

#[derive(Default)]
pub struct Listener {
    pub qlen: u32,
    last_seq: i32,
    /// Not yet told of.
    pub waiting: VecDeque<Request>,
    /// Told of, not answered.
    outstanding: Vec<Request>,
    /// Why the kernel's next could not be taken: EMFILE, ENFILE, ENOMEM.
    pub lacking: Option<sys::Errno>,
}

impl Listener {
    pub fn new(qlen: u32) -> Listener {
        Listener {
            qlen,
            ..Listener::default()
        }
    }

    /// Is the user to be told of no further request for now?
    pub fn is_full(&self) -> bool {
        self.outstanding.len() >= self.qlen as usize
    }

    /// Takes a request from the kernel, if the user may be told of one.
    pub fn look(&mut self, socket: &Socket) -> bool {
        self.lacking = None;
        if self.is_full() {
            return false;
        }
        while self.waiting.is_empty() {
            match socket.accept() {
                Ok(socket) => self.add(socket),
                Err(errno) => {
                    self.lacking = Some(errno).filter(|&errno| is_lack(errno));
                    return false;
                }
            }
        }
        true
    }

    /// Another connection; it may be gone already.
    pub fn add(&mut self, socket: Socket) {
        let from = sys::sock_name(socket.fd(), true).ok();
        let Some(from) = from.as_ref().and_then(Address::of_storage) else {
            return;
        };
        self.last_seq = self.last_seq.checked_add(1).unwrap_or(1);
        self.waiting.push_back(Request {
            seq: self.last_seq,
            from,
            socket: Some(socket),
            forks: forks(),
        });
    }

    /// Tells the user of the first.
    pub fn tell(&mut self) -> Option<Arrived> {
        let request = self.waiting.pop_front()?;
        let (seq, from) = (request.seq, request.from.to_vec());
        self.outstanding.push(request);
        Some(Arrived::request(seq, from))
    }

    /// TBADSEQ.
    pub fn remove(&mut self, seq: i32) -> Outcome<Request> {
        let removed = self.outstanding.extract_if(.., |r| r.seq == seq).next();
        removed.ok_or(Refusal::new(TBADSEQ))
    }

    pub fn put_back(&mut self, request: Request) {
        let at = self.outstanding.partition_point(|r| r.seq < request.seq);
        self.outstanding.insert(at, request);
    }

    /// Has the peer of one that was told of gone away?
    pub fn has_gone(&self) -> bool {
        self.gone().is_some()
    }

    fn gone(&self) -> Option<(usize, i32)> {
        let mut requests = self.outstanding.iter().enumerate();
        requests.find_map(|(at, r)| Some((at, r.is_gone()?)))
    }

    pub fn tell_gone(&mut self) -> Option<Arrived> {
        let (at, reason) = self.gone()?;
        Some(Arrived::ended(reason, self.outstanding.remove(at).seq))
    }

    pub fn clear(&mut self) {
        self.waiting.clear();
        self.outstanding.clear();
    }
}
