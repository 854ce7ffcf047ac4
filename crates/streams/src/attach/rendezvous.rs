//! How an opener gets an attached stream from a process that holds it: an abstract UNIX socket for each attachment. Whoever
//! has bound it answers; only processes of the same user are asked and answered.

use core::time::Duration;

use headwater_host::{hidden, shared, signal, sys};
use libc::c_int;

use super::registry::{Key, Place};
use super::rights::{self, Body, Received};
use super::unix;
use crate::pipe::Owned;

const MAGIC: u64 = 0x4857_4154;
/// How long an answer may take, in nanoseconds, and how often a signal is looked for meanwhile.
const ANSWER_TIMEOUT: u64 = Duration::from_secs(10).as_nanos() as u64;
const SLICE: u64 = Duration::from_millis(50).as_nanos() as u64;

/// What an opener asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum Request {
    /// The stream.
    Open = 1,
    /// Whether it is there.
    Probe = 2,
    /// Nothing now: the connection's end tells when somebody else has to answer.
    Watch = 3,
}

/// What is answered.
pub enum Answer {
    /// An end of a pipe, or a FIFO, that others hold too.
    Shared(Received),
    /// The opener's end of a new pipe: connld.
    Connection(Received),
    /// It is there.
    Present,
    Failed(sys::Errno),
}

const SHARED: u64 = 1;
const CONNECTION: u64 = 2;
const PRESENT: u64 = 3;
const FAILED: u64 = 4;

/// Why there is no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Silence {
    /// Nobody has bound the address.
    Nobody,
    /// Who had bound it went away, or does not hold the stream any more.
    Gone,
    Failed(sys::Errno),
}

/// Binds the address of an attachment. EADDRINUSE: somebody has it.
pub fn listen(place: &Place) -> sys::Result<Owned> {
    let fd = socket()?;
    sys::bind(fd.number(), &address(place))?;
    sys::listen(fd.number(), 128)?;
    Ok(fd)
}

/// A request that came; `None` at the end of the connection. EAGAIN.
pub fn next_request(fd: c_int) -> sys::Result<Option<Request>> {
    let Some(received) = rights::receive(fd)? else {
        return Ok(None);
    };
    let [magic, what, ..] = received.body;
    let mut all = [Request::Open, Request::Probe, Request::Watch].into_iter();
    Ok(all.find(|&request| magic == MAGIC && what == request as u64))
}

pub fn answer_present(fd: c_int) {
    let _ = rights::send(fd, &body(PRESENT, 0), &[], false);
}

pub fn answer_failed(fd: c_int, errno: sys::Errno) {
    let _ = rights::send(fd, &body(FAILED, errno as u64), &[], false);
}

/// `fds`: shadow, memfd, bells.
pub fn answer_end(fd: c_int, connection: bool, side: u32, fifo: bool, fds: [c_int; 4]) {
    let what = if connection { CONNECTION } else { SHARED };
    let which = side as u64 | (fifo as u64) << 1;
    if let Err(e) = rights::send(fd, &body(what, which), &fds, false) {
        answer_failed(fd, e);
    }
}

/// Side and whether it is a FIFO, of an end in an [`Answer`].
pub fn which(end: &Received) -> (u32, bool) {
    (end.body[2] as u32 & 1, end.body[2] & 2 != 0)
}

fn body(what: u64, more: u64) -> Body {
    rights::body([MAGIC, what, more])
}

/// Connects to whoever has bound the address, and asks. The connection comes back with the answer; it ends when the other
/// side gives the stream up. Failed(EINTR): a signal was caught.
pub fn ask(place: &Place, request: Request) -> Result<(Answer, Owned), Silence> {
    let fd = connect(place, request)?;
    Ok((wait_for_answer(fd.number())?, fd))
}

/// Connects and leaves a request, which need not be answered.
pub fn connect(place: &Place, request: Request) -> Result<Owned, Silence> {
    let fd = socket().map_err(Silence::Failed)?;
    unix::connect(fd.number(), &address(place)).map_err(|e| match e {
        libc::ECONNREFUSED => Silence::Nobody,
        // Its backlog is full: later.
        libc::EAGAIN => Silence::Gone,
        e => Silence::Failed(e),
    })?;
    rights::send(fd.number(), &body(request as u64, 0), &[], false).map_err(|_| Silence::Gone)?;
    Ok(fd)
}

/// Waits until the other side ends the connection, for a while.
pub fn wait_for_end(fd: c_int) {
    let until = sys::now() + ANSWER_TIMEOUT / 5;
    while sys::now() < until {
        if unix::poll(fd, libc::POLLIN, SLICE) & (libc::POLLHUP | libc::POLLERR | libc::POLLIN) != 0
        {
            return;
        }
    }
}

fn wait_for_answer(fd: c_int) -> Result<Answer, Silence> {
    let until = sys::now() + ANSWER_TIMEOUT;
    loop {
        match rights::receive(fd) {
            Ok(Some(received)) => return understand(received),
            Err(libc::EAGAIN) if sys::now() < until => {}
            Err(libc::EAGAIN) => return Err(Silence::Failed(libc::ENXIO)),
            Err(libc::EINTR) => {}
            Ok(None) | Err(libc::ECONNRESET | libc::EPIPE) => return Err(Silence::Gone),
            Err(e) => return Err(Silence::Failed(e)),
        }
        if signal::interrupted() {
            return Err(Silence::Failed(libc::EINTR));
        }
        unix::poll(fd, libc::POLLIN, SLICE);
    }
}

fn understand(received: Received) -> Result<Answer, Silence> {
    let [magic, what, more, ..] = received.body;
    match what {
        _ if magic != MAGIC => Err(Silence::Failed(libc::EPROTO)),
        SHARED | CONNECTION if !received.has(4) => Err(Silence::Failed(libc::EMFILE)),
        SHARED => Ok(Answer::Shared(received)),
        CONNECTION => Ok(Answer::Connection(received)),
        PRESENT => Ok(Answer::Present),
        FAILED => Ok(Answer::Failed(more as sys::Errno)),
        _ => Err(Silence::Failed(libc::EPROTO)),
    }
}

/// Waits a moment before asking again.
pub fn pause(ns: u64) {
    let _ = sys::ppoll(&mut [], Some(ns));
}

fn socket() -> sys::Result<Owned> {
    unix::socket().and_then(hidden::hide).map(Owned)
}

fn address(place: &Place) -> (libc::sockaddr_un, u32) {
    // Another runtime folder is another world, with the same names and generations.
    let world = Key::of_name(shared::folder().as_bytes()).ino;
    let Key { dev, ino } = place.key;
    sys::abstract_text(format_args!(
        "headwater.stream.{}.{world:x}.{dev:x}.{ino:x}.{:x}",
        sys::getuid(),
        place.generation
    ))
}
