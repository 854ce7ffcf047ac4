//! A request for a connection, and its refusal: what a caller and a listener say to each other before there is a link.
//!
//! A request is one message on a UNIX socket that has connected to the address: {MAGIC, REQUEST, lengths, the maker of the
//! pipe}, then the caller's address, the one that is called, options and data, with the descriptors of the pipe: memfd and
//! bells. A refusal is {MAGIC, REFUSAL} and data; without one the end of the socket says the same.

use std::sync::Arc;

use headwater_host::{handed, hidden, lifecycle, memory, process, sys};
use headwater_streams::attach::rights::{self, Body};
use headwater_streams::head::life::{self, Borrowed};

use super::idle_sockets::{IdleSockets, Line};
use super::pool::{self, Mapped};
use super::{MOST, Owned, Space, name};

const MAGIC: u64 = 0x4857_5452_4c42;
const REQUEST: u64 = 1;
const REFUSAL: u64 = 2;

/// In a request's body: which pipe it is for, if that is one of a former connection by the same socket.
pub const INODE: usize = 4;

/// A request as it is sent.
pub struct Call<'a> {
    pub space: Space,
    pub from: &'a [u8],
    pub to: &'a [u8],
    pub opts: &'a [u8],
    pub data: &'a [u8],
    /// How large the rings are to be.
    pub ring: usize,
}

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
    pub gone: bool,
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
        let here = match parts.body[3] == maker() {
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
pub fn message(call: &Call<'_>) -> (Body, Vec<u8>) {
    let parts = [call.from, call.to, call.opts, call.data];
    let lengths = parts
        .iter()
        .rev()
        .fold(0, |all, part| all << 16 | part.len() as u64);
    let body = rights::body([MAGIC, REQUEST, lengths, maker()]);
    (body, parts.concat())
}

/// Ends an attempt at a connection, from either side, with data.
pub fn say_last(socket: i32, data: &[u8]) {
    let _ = rights::send_with(socket, &rights::body([MAGIC, REFUSAL]), data, &[], false);
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
    pub fn read(socket: &mut Option<Owned>, space: Space) -> sys::Result<Request> {
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
    pub fn read_again(line: Line, space: Space) -> Result<Request, Option<Line>> {
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

/// This process, as requests name who made their pipe.
fn maker() -> u64 {
    process::owner().bits()
}
