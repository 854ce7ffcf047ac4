//! A listening endpoint: the requests that have come, in their order, until they are answered.
//!
//! The descriptor is an epoll set, since three kinds of things wake a listener: a connection, a request on one that was
//! silent at first, and the end of one whose request is not answered yet.

use std::collections::VecDeque;
use std::sync::Arc;

use headwater_host::{hidden, sys};
use headwater_tpi::Refusal;
use headwater_tpi::error::TBADSEQ;

use super::idle_sockets::IdleSockets;
use super::request::{Brought, Request, last_words};
use super::{Owned, Space, name};
use crate::provider::{Arrived, Event, Outcome};

const READABLE: u32 = libc::EPOLLIN as u32;
const ENDED: u32 = libc::EPOLLRDHUP as u32;
/// Descriptors that a request takes: its socket, memfd, bells, and those that are on their way to their numbers.
const PARTS: usize = 8;
/// For a socket that may stay in the set for another request: what happens is told once.
const ONCE: u32 = READABLE | ENDED | libc::EPOLLET as u32;

pub struct Listening {
    set: Owned,
    space: Space,
    qlen: usize,
    /// Connected, and silent until now.
    silent: Vec<Owned>,
    waiting: VecDeque<Request>,
    /// Told to the user, who has not answered.
    outstanding: Vec<(i32, Request)>,
    /// Of those: gone before they were answered.
    lost: VecDeque<Arrived>,
    next: i32,
    /// The names are watched: there may be more outstanding.
    attentive: bool,
    /// Other processes have the set, who are not to become deaf by what is outstanding here.
    shared: bool,
    /// A request is one although its maker has gone: what it sent can still be received.
    pub keeps_departed: bool,
    /// Why somebody who has come could not be let in when it was last looked: EMFILE, ENFILE, ENOMEM. He waits where he is.
    lacking: Option<sys::Errno>,
    idle_sockets: Arc<IdleSockets>,
}

impl Listening {
    pub fn new(space: Space, qlen: u32, names: &[Owned]) -> sys::Result<Listening> {
        let set = sys::epoll_create()
            .and_then(hidden::hide_needed)
            .map(Owned)?;
        let mut listening = Listening::with_set(set, space, qlen);
        listening.idle_sockets = Arc::new(IdleSockets::new(true));
        listening.attentive = true;
        for name in names {
            listening.watch(name.number(), READABLE)?;
        }
        Ok(listening)
    }

    /// With a set in which the names are already.
    pub fn with_set(set: Owned, space: Space, qlen: u32) -> Listening {
        Listening {
            set,
            space,
            qlen: qlen as usize,
            silent: Vec::new(),
            waiting: VecDeque::new(),
            outstanding: Vec::new(),
            lost: VecDeque::new(),
            next: 1,
            // Who had the set before may have had no room.
            attentive: false,
            shared: false,
            keeps_departed: false,
            lacking: None,
            idle_sockets: Arc::new(IdleSockets::new(false)),
        }
    }

    pub fn descriptor(&self) -> i32 {
        self.set.number()
    }

    pub fn qlen(&self) -> usize {
        self.qlen
    }

    pub fn outstanding(&self) -> usize {
        self.outstanding.len()
    }

    /// Watches the names as long as more requests can be told.
    fn attend(&mut self, names: &[Owned]) {
        let attends = self.is_open() || self.shared;
        if attends != self.attentive {
            for name in names {
                let wanted = if attends { READABLE } else { 0 };
                let _ = self.change(libc::EPOLL_CTL_MOD, name.number(), wanted);
            }
            self.attentive = attends;
        }
    }

    fn is_open(&self) -> bool {
        self.outstanding.len() < self.qlen
    }

    pub fn event(&mut self, names: &[Owned]) -> Option<Event> {
        self.attend(names);
        // What is known already is told before anything new is looked for.
        if !self.has_news() {
            self.gather(names);
        }
        if !self.lost.is_empty() {
            return Some(Event::Disconnect);
        }
        (self.is_open() && !self.waiting.is_empty()).then_some(Event::Listen)
    }

    /// Something is known that the set may not tell of.
    pub fn has_news(&self) -> bool {
        !self.lost.is_empty() || !self.waiting.is_empty() && self.is_open()
    }

    /// Somebody has come, and there is nothing to let him in with. Who would wait for a request is to be told that, since nothing
    /// wakes him when there is.
    pub fn lacks(&self) -> Option<sys::Errno> {
        self.lacking.filter(|_| !self.has_news())
    }

    pub fn take(&mut self, names: &[Owned]) -> Option<Arrived> {
        match self.event(names)? {
            Event::Disconnect => self.lost.pop_front(),
            _ => {
                let mut request = self.waiting.pop_front()?;
                let seq = self.next;
                self.next = self.next.checked_add(1).unwrap_or(1);
                if request.idle_sockets.is_none() {
                    let _ = self.watch(request.socket.number(), ENDED);
                }
                let (from, opts) = (request.from.clone(), request.opts.clone());
                let data = core::mem::take(&mut request.data);
                if request.gone && !self.keeps_departed {
                    self.lost.push_back(reset(seq, request));
                } else {
                    self.outstanding.push((seq, request));
                    // Who polls is not told of what can't be taken now.
                    self.attend(names);
                }
                Some(Arrived::Request {
                    seq,
                    from,
                    opts,
                    data,
                })
            }
        }
    }

    /// TBADSEQ.
    pub fn take_out(&mut self, seq: i32, names: &[Owned]) -> Outcome<Request> {
        let (_, request) = self
            .remove(|(known, _)| *known == seq)
            .ok_or(Refusal::new(TBADSEQ))?;
        self.attend(names);
        Ok(request)
    }

    pub fn put_back(&mut self, seq: i32, request: Request, names: &[Owned]) {
        if request.idle_sockets.is_none() {
            let _ = self.watch(request.socket.number(), ENDED);
        } else if request.has_gone() {
            self.lost.push_back(reset(seq, request));
            return;
        }
        let at = self.outstanding.partition_point(|(other, _)| *other < seq);
        self.outstanding.insert(at, (seq, request));
        self.attend(names);
    }

    /// A request was used up without becoming a connection.
    pub fn lose(&mut self, seq: i32) {
        self.lost.push_back(Arrived::ended(libc::ECONNABORTED, seq));
    }

    /// The set will be shared, and what is told once may be told to the other process.
    pub fn forking(&mut self) {
        self.idle_sockets.close();
        self.shared = true;
        let kept = |r: &mut Request| r.idle_sockets.take().map(|_| r.socket.number());
        let outstanding = self.outstanding.iter_mut().map(|(_, r)| r);
        for fd in outstanding.filter_map(kept).collect::<Vec<_>>() {
            let _ = self.change(libc::EPOLL_CTL_MOD, fd, ENDED);
        }
        for fd in self.waiting.iter_mut().filter_map(kept).collect::<Vec<_>>() {
            self.forget(fd);
        }
    }

    /// In a child: what is not told yet is the parent's to tell.
    pub fn forked(&mut self) {
        self.idle_sockets.close();
        self.waiting.clear();
        self.silent.clear();
    }

    fn gather(&mut self, names: &[Owned]) {
        let lacked = self.lacking.take().is_some();
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 16];
        let n = sys::epoll_poll(self.set.number(), &mut events).unwrap_or(0);
        let told = || events.iter().take(n).map(|event| event.u64 as i32);
        let is_name = |fd: &i32| names.iter().any(|name| name.number() == *fd);
        for fd in told().filter(|fd| !is_name(fd)) {
            self.attend_to(fd, names);
        }
        for fd in told().filter(is_name) {
            // Who could not be let in would be lost, or take room from others: he stays in the kernel's queue.
            let room = match self.lacking {
                Some(errno) => Err(errno),
                None if lacked => hidden::room(PARTS),
                None => Ok(()),
            };
            match room {
                Err(errno) => self.could_not(errno),
                Ok(()) => self.attend_to(fd, names),
            }
        }
    }

    /// Something is said to have happened at `fd`, in this process or in one that shares the set.
    fn attend_to(&mut self, fd: i32, names: &[Owned]) {
        if names.iter().any(|name| name.number() == fd) {
            // One after the other: the rest waits in the kernel.
            if !self.waiting.is_empty() || self.outstanding.len() >= self.qlen {
                return;
            }
            match name::accept(fd) {
                Ok(Some(socket)) => self.hear(socket, false),
                Ok(None) => {}
                Err(errno) => self.could_not(errno),
            }
        } else if let Some(line) = self.idle_sockets.take(fd) {
            match Request::read_again(line, self.space) {
                Ok(request) => self.waiting.push_back(Request {
                    idle_sockets: Some(Arc::clone(&self.idle_sockets)),
                    ..request
                }),
                Err(Some(line)) => drop(self.idle_sockets.give(line.socket, line.pipe)),
                Err(None) => {}
            }
        } else if let Some(at) = self.silent.iter().position(|socket| socket.number() == fd) {
            let socket = self.silent.remove(at);
            self.hear(socket, true);
        } else {
            self.find_lost(fd);
        }
    }

    fn hear(&mut self, socket: Owned, watched: bool) {
        let fd = socket.number();
        let mut socket = Some(socket);
        let heard = Request::read(&mut socket, self.space);
        let stays = |errno| errno == libc::EAGAIN || is_lack(errno);
        if watched && !matches!(heard, Err(errno) if stays(errno)) {
            self.forget(fd);
        }
        match heard {
            Ok(mut request) => {
                let may_stay =
                    !matches!(request.pipe, Brought::Local(..)) && self.idle_sockets.is_open();
                if may_stay && self.watch(fd, ONCE).is_ok() {
                    request.idle_sockets = Some(Arc::clone(&self.idle_sockets));
                }
                self.waiting.push_back(request);
            }
            Err(errno) if stays(errno) => {
                self.could_not(errno);
                let heard_later = match watched {
                    true => Ok(()),
                    false => self.watch(fd, READABLE),
                };
                match heard_later {
                    Ok(()) => self.silent.extend(socket),
                    // It would never be heard.
                    Err(errno) => self.could_not(errno),
                }
            }
            Err(errno) => self.could_not(errno),
        }
    }

    fn could_not(&mut self, errno: sys::Errno) {
        if is_lack(errno) {
            self.lacking = Some(errno);
        }
    }

    fn find_lost(&mut self, fd: i32) {
        let mut waiting = self.waiting.iter_mut();
        if let Some(request) = waiting.find(|request| request.socket.number() == fd) {
            request.gone |= request.has_gone();
        }
        let is_lost = |(_, r): &(i32, Request)| r.socket.number() == fd && r.has_gone();
        if let Some((seq, request)) = self.remove(is_lost) {
            self.lost.push_back(reset(seq, request));
        }
    }

    /// Takes a request out that the user was told of.
    fn remove(&mut self, wanted: impl Fn(&(i32, Request)) -> bool) -> Option<(i32, Request)> {
        let removed = self
            .outstanding
            .extract_if(.., |told| wanted(told))
            .next()?;
        if removed.1.idle_sockets.is_none() {
            self.forget(removed.1.socket.number());
        }
        Some(removed)
    }

    /// Something else that makes the descriptor readable: its user looks after it.
    pub fn watch_too(&self, fd: i32) -> sys::Result<()> {
        self.watch(fd, READABLE)
    }

    fn watch(&self, fd: i32, events: u32) -> sys::Result<()> {
        self.change(libc::EPOLL_CTL_ADD, fd, events)
    }

    /// Closing is not enough where another process has a copy.
    fn forget(&self, fd: i32) {
        let _ = self.change(libc::EPOLL_CTL_DEL, fd, 0);
    }

    fn change(&self, what: i32, fd: i32, events: u32) -> sys::Result<()> {
        sys::epoll_set(self.set.number(), what, fd, sys::event(events, fd as u64))
    }
}

/// Something has run out here, which is no fault of the peer's.
pub fn is_lack(errno: sys::Errno) -> bool {
    matches!(
        errno,
        libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::ENOBUFS | libc::ENOSPC
    )
}

/// What is told of a request whose maker has gone.
fn reset(seq: i32, request: Request) -> Arrived {
    Arrived::Disconnected {
        reason: libc::ECONNRESET,
        seq,
        data: last_words(request.socket.number()),
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.idle_sockets.close();
    }
}
