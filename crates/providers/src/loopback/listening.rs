//! A listening endpoint: the requests that have come, in their order, until they are answered.
//!
//! A request is one message on a UNIX socket that has connected to the address: {MAGIC, REQUEST, lengths, the maker of the
//! pipe}, then the caller's address, the one that is called, options and data, with the descriptors of the pipe: memfd and
//! bells. A refusal is {MAGIC, REFUSAL} and data; without one the end of the socket says the same.
//!
//! The descriptor is an epoll set, since three kinds of things wake a listener: a connection, a request on one that was
//! silent at first, and the end of one whose request is not answered yet.

use std::collections::VecDeque;
use std::sync::Arc;

use headwater_host::lifecycle;
use headwater_host::{handed, hidden, memory, process, sys};
use headwater_streams::attach::rights::{self, Body};
use headwater_streams::head::life::{self, Borrowed};
use headwater_tpi::Refusal;
use headwater_tpi::error::TBADSEQ;

use super::idle_sockets::{IdleSockets, Line};
use super::link::{Call, maker};
use super::pool::{self, Mapped};
use super::{MOST, Owned, Space, name};
use crate::provider::{Arrived, Event, Outcome};

const MAGIC: u64 = 0x4857_5452_4c42;
const REQUEST: u64 = 1;
const REFUSAL: u64 = 2;

/// In a request's body: which pipe it is for, if that is one of a former connection by the same socket.
pub const INODE: usize = 4;

const READABLE: u32 = libc::EPOLLIN as u32;
const ENDED: u32 = libc::EPOLLRDHUP as u32;
/// Descriptors that a request takes: its socket, memfd, bells, and those that are on their way to their numbers.
const PARTS: usize = 8;
/// For a socket that may stay in the set for another request: what happens is told once.
const ONCE: u32 = READABLE | ENDED | libc::EPOLLET as u32;

/// Somebody wants a connection. Dropped, it is refused.
pub struct Request {
    pub socket: Owned,
    pub space: Space,
    pub from: Vec<u8>,
    pub to: Vec<u8>,
    pub opts: Vec<u8>,
    pub data: Vec<u8>,
    pub pipe: Brought,
    /// The listener, if it may have the socket back: then the socket stays in its set.
    pub idle_sockets: Option<Arc<IdleSockets>>,
    /// Forks of this process before it was accepted.
    pub forks: u32,
    /// Its maker went before the user was told of it.
    gone: bool,
}

/// The pipe that came with a request. It is mapped before the request is told of: who is told of one has what it takes to accept it.
pub enum Brought {
    Mapped(Mapped),
    /// Made by this process, which has it mapped.
    Local(Borrowed),
}

impl Brought {
    /// EPROTO: it is none. EMFILE, ENOMEM: there was no room for what has come.
    fn with(mut parts: rights::Received) -> sys::Result<Brought> {
        if !parts.has(3) {
            return Err(if parts.cut {
                libc::EMFILE
            } else {
                libc::EPROTO
            });
        }
        if memory::is_scarce() {
            return Err(libc::ENOMEM);
        }
        let fds = [0, 1, 2].map(|i| parts.take(i));
        let inode = handed::identity(fds[0]);
        let here = match parts.body[3] == process::owner().bits() {
            // The caller may have left it, and what it said is still to be read.
            true => life::borrow_pipe(inode).map(Brought::Local),
            false => pool::known(inode).map(Brought::Mapped),
        };
        if let Some(here) = here {
            fds.into_iter().for_each(hidden::close);
            return Ok(here);
        }
        let [memfd, first, second] = fds.map(|fd| hidden::hide_or_keep(fd).map(Owned));
        Mapped::new(memfd?, [first?, second?]).map(Brought::Mapped)
    }
}

/// The message that asks for a connection.
pub fn request(call: &Call<'_>) -> (Body, Vec<u8>) {
    let parts = [call.from, call.to, call.opts, call.data];
    let lengths = parts
        .iter()
        .rev()
        .fold(0, |all, part| all << 16 | part.len() as u64);
    (
        [MAGIC, REQUEST, lengths, maker(), 0, 0, 0, 0],
        parts.concat(),
    )
}

/// Ends an attempt at a connection, from either side, with data.
pub fn say_last(socket: i32, data: &[u8]) {
    let _ = rights::send_with(
        socket,
        &[MAGIC, REFUSAL, 0, 0, 0, 0, 0, 0],
        data,
        &[],
        false,
    );
}

/// What the other side had to say when it ended the attempt.
pub fn last_words(socket: i32) -> Vec<u8> {
    refusal(socket).unwrap_or_default()
}

/// The data of a refusal, if one has come.
pub fn refusal(socket: i32) -> Option<Vec<u8>> {
    let mut data = vec![0; MOST];
    // The first answer may be an error that the kernel keeps.
    for _ in 0..2 {
        if let Ok(said) = rights::receive_with(socket, &mut data) {
            let (_, len) =
                said.filter(|(said, _)| said.body[0] == MAGIC && said.body[1] == REFUSAL)?;
            data.truncate(len);
            return Some(data);
        }
    }
    None
}

impl Request {
    /// Reads it from a socket. EAGAIN: not yet. Where something is lacking for it, it stays there.
    fn read(socket: &mut Option<Owned>, space: Space) -> sys::Result<Request> {
        let mut bytes = [0; 4 * MOST];
        let fd = socket.as_ref().map_or(-1, Owned::number);
        let (parts, len) = rights::peek_with(fd, &mut bytes)?.ok_or(libc::EPROTO)?;
        let body = parts.body;
        let pipe = Brought::with(parts)?;
        rights::discard(fd)?;
        let socket = socket.take().ok_or(libc::EBADF)?;
        Request::made_of(&body, &bytes[..len], socket, space, pipe)
    }

    /// Another one by a known socket. EAGAIN, with the line: none yet.
    fn read_again(line: Line, space: Space) -> Result<Request, Option<Line>> {
        let mut bytes = [0; 4 * MOST];
        let (parts, len) = match rights::receive_with(line.socket.number(), &mut bytes) {
            Err(libc::EAGAIN) => return Err(Some(line)),
            Ok(Some(came)) if came.0.body[INODE] == line.pipe.inode && line.pipe.heads_gone() => {
                came
            }
            _ => {
                line.end();
                return Err(None);
            }
        };
        let pipe = Brought::Mapped(Mapped::from(line.pipe));
        Request::made_of(&parts.body, &bytes[..len], line.socket, space, pipe).map_err(|_| None)
    }

    fn made_of(
        body: &Body,
        bytes: &[u8],
        socket: Owned,
        space: Space,
        pipe: Brought,
    ) -> sys::Result<Request> {
        let [magic, what, lengths, ..] = *body;
        if magic != MAGIC || what != REQUEST {
            return Err(libc::EPROTO);
        }
        let mut rest = bytes;
        let mut part = |at: u32| {
            let part = rest.split_off(..(lengths >> (16 * at)) as u16 as usize);
            part.map(<[u8]>::to_vec)
                .filter(|part| part.len() <= MOST)
                .ok_or(libc::EPROTO)
        };
        let (from, to, opts, data) = (part(0)?, part(1)?, part(2)?, part(3)?);
        let forks = lifecycle::forks();
        Ok(Request {
            socket,
            space,
            from,
            to,
            opts,
            data,
            pipe,
            idle_sockets: None,
            forks,
            gone: false,
        })
    }

    pub fn has_gone(&self) -> bool {
        name::has_hung_up(self.socket.number())
    }
}

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
        let at = self.outstanding.iter().position(|(known, _)| *known == seq);
        let (_, request) = self.outstanding.remove(at.ok_or(Refusal::new(TBADSEQ))?);
        if request.idle_sockets.is_none() {
            self.forget(request.socket.number());
        }
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
        self.lost.push_back(Arrived::Disconnected {
            reason: libc::ECONNABORTED,
            seq,
            data: Vec::new(),
        });
    }

    /// The set will be shared, and what is told once may be told to the other process.
    pub fn forking(&mut self) {
        self.idle_sockets.close();
        self.shared = true;
        let mut kept = Vec::new();
        for (_, request) in &mut self.outstanding {
            if request.idle_sockets.take().is_some() {
                kept.push(request.socket.number());
            }
        }
        for fd in kept {
            let _ = self.change(libc::EPOLL_CTL_MOD, fd, ENDED);
        }
        let kept: Vec<i32> = self
            .waiting
            .iter_mut()
            .filter_map(|r| r.idle_sockets.take().map(|_| r.socket.number()))
            .collect();
        kept.into_iter().for_each(|fd| self.forget(fd));
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
        if let Some(request) = self
            .waiting
            .iter_mut()
            .find(|request| request.socket.number() == fd)
        {
            request.gone |= request.has_gone();
        }
        let at = self
            .outstanding
            .iter()
            .position(|(_, request)| request.socket.number() == fd && request.has_gone());
        let Some(at) = at else { return };
        let (seq, request) = self.outstanding.remove(at);
        if request.idle_sockets.is_none() {
            self.forget(fd);
        }
        self.lost.push_back(reset(seq, request));
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
        let event = libc::epoll_event {
            events,
            u64: fd as u64,
        };
        sys::epoll_set(self.set.number(), what, fd, event)
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
