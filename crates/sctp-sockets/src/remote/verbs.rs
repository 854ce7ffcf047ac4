//! The verbs of a socket that another process owns: each is a call to the owner, which never waits. What blocks does so here: at a
//! bell that the owner rings, so that signals and timeouts are this process's own.

use core::time::Duration;
use std::sync::Arc;

use headwater_channel::bell;
use headwater_host::sync::{AtomicI32, Ordering};
use headwater_host::{hidden, signal, sys};
use headwater_providers::loopback::buffers;
use headwater_streams::pipe;

use super::link::{Answer, Link};
use super::wire::{Reader, Verb, Writer};
use crate::waiting::{IN, OUT};
use crate::{Receiving, Sending, Socket, Source, Style, abi};

const GONE: u32 = (libc::POLLERR | libc::POLLHUP) as u32;
/// Bytes that one call receives at most.
pub const LARGEST: usize = 64 << 20;
/// How often a one-to-many socket's association is asked for while it is being established, in nanoseconds.
const ASK_AGAIN: u64 = Duration::from_millis(5).as_nanos() as u64;
/// How long one waits for room in an association of such a socket before trying again.
const NO_ROOM: u64 = Duration::from_micros(500).as_nanos() as u64;
/// Longest sleep at a bell.
const SLICE: u64 = Duration::from_millis(50).as_nanos() as u64;

/// What a socket of the owner's is here.
pub struct Remote {
    link: Arc<Link>,
    id: u64,
    /// -1: nobody has waited yet.
    bell: AtomicI32,
}

impl Remote {
    pub fn new(link: Arc<Link>, id: u64) -> Remote {
        Remote {
            link,
            id,
            bell: AtomicI32::new(-1),
        }
    }

    /// In a child of this process: the bell is the parent's.
    pub fn forked(&self) {
        hidden::close(self.bell.swap(-1, Ordering::AcqRel));
    }

    pub fn id(&self) -> u64 {
        self.id
    }

    /// Is its owner at the other end of this link?
    pub fn is_of(&self, link: &Arc<Link>) -> bool {
        Arc::ptr_eq(&self.link, link)
    }

    fn asking(&self, verb: Verb) -> Writer {
        Writer::asking(verb, self.id)
    }

    fn ask(&self, request: Writer) -> sys::Result<Answer> {
        match self.link.ask(request, None)? {
            answer if answer.errno == 0 => Ok(answer),
            answer => Err(answer.errno),
        }
    }

    // ---- opening ----

    pub fn bind(&self, _: &Socket, addr: &[u8]) -> sys::Result<()> {
        self.ask(self.asking(Verb::Bind).bytes(addr)).map(drop)
    }

    pub fn listen(&self, _: &Socket, backlog: i32) -> sys::Result<()> {
        self.ask(self.asking(Verb::Listen).word(backlog as u32))
            .map(drop)
    }

    pub fn connect(&self, socket: &Socket, addr: &[u8]) -> sys::Result<()> {
        signal::begin_wait();
        let begin = || self.ask(self.asking(Verb::Connect).bytes(addr)).map(drop);
        match begin() {
            Err(libc::EINPROGRESS) if socket.may_wait(0) => {}
            done => return done,
        }
        match socket.style {
            Style::One => self.await_connection(socket),
            // Its readiness says nothing of one association.
            Style::Many => loop {
                nap(ASK_AGAIN)?;
                match begin() {
                    Err(libc::EALREADY) => {}
                    Err(libc::EISCONN) => return Ok(()),
                    // What was begun before has failed.
                    Err(libc::EINPROGRESS) => return Err(libc::ECONNREFUSED),
                    done => return done,
                }
            },
        }
    }

    fn await_connection(&self, socket: &Socket) -> sys::Result<()> {
        signal::begin_wait();
        let until = self.until(socket, libc::SO_SNDTIMEO);
        match self.wait(socket, OUT, until) {
            Err(libc::EAGAIN) => return Err(libc::EINPROGRESS),
            waited => waited?,
        }
        let mut value = Vec::new();
        self.get_option(socket, libc::SOL_SOCKET, libc::SO_ERROR, &mut value, 4)?;
        match abi::read(&value).unwrap_or(0) {
            0 => Ok(()),
            errno => Err(errno),
        }
    }

    pub fn accept(&self, socket: &Socket) -> sys::Result<Arc<Socket>> {
        self.waiting(socket, IN, libc::SO_RCVTIMEO, 0, || {
            let answer = self.ask(self.asking(Verb::Accept))?;
            self.received(&mut answer.values())
        })
    }

    /// A socket of the owner's that this process has from now on.
    fn received(&self, values: &mut Reader<'_>) -> sys::Result<Arc<Socket>> {
        let id = values.long()?;
        let v6 = values.word()? != 0;
        let style = match values.word()? {
            0 => Style::One,
            _ => Style::Many,
        };
        let socket = Socket::open(v6, style, false);
        let _ = socket.remote.set(Remote::new(self.link.clone(), id));
        Ok(Arc::new(socket))
    }

    pub fn shutdown(&self, _: &Socket, how: i32) -> sys::Result<()> {
        self.ask(self.asking(Verb::Shutdown).word(how as u32))
            .map(drop)
    }

    pub fn close(&self) {
        if let Err(libc::ENOBUFS) = self.ask(self.asking(Verb::Close)) {
            self.link.let_go(self.id);
        }
    }

    // ---- data ----

    pub fn send(&self, socket: &Socket, what: &Sending<'_>) -> sys::Result<usize> {
        self.waiting(socket, OUT, libc::SO_SNDTIMEO, what.flags, || {
            let request = self
                .asking(Verb::Send)
                .word(what.flags as u32)
                .bytes(what.to)
                .bytes(what.control);
            let answer = self.ask(request.parts(what.data))?;
            Ok(answer.values().long()? as usize)
        })
    }

    pub fn receive(&self, socket: &Socket, what: &mut Receiving<'_>) -> sys::Result<usize> {
        let room = buffers::len(what.into);
        let answer = self.waiting(socket, IN, libc::SO_RCVTIMEO, what.flags, || {
            let request = self
                .asking(Verb::Receive)
                .long(room.min(LARGEST) as u64)
                .word(what.flags as u32)
                .word(u32::from(what.wants_control) | u32::from(what.wants_from) << 1);
            self.ask(request)
        })?;
        let mut values = answer.values();
        let told = values.long()? as usize;
        what.out_flags = values.word()? as i32;
        what.from.extend_from_slice(values.bytes()?);
        what.control.extend_from_slice(values.bytes()?);
        buffers::scatter(what.into, values.bytes()?);
        Ok(told)
    }

    // ---- options and names ----

    pub fn set_option(
        &self,
        socket: &Socket,
        level: i32,
        name: i32,
        value: &[u8],
    ) -> sys::Result<i32> {
        let request = self
            .asking(Verb::SetOption)
            .word(level as u32)
            .word(name as u32);
        let answer = self.link.ask(request.bytes(value), None)?;
        self.settle(socket, (level, name), answer.errno)?;
        Ok(answer.values().word()? as i32)
    }

    pub fn get_option(
        &self,
        socket: &Socket,
        level: i32,
        name: i32,
        value: &mut Vec<u8>,
        room: usize,
    ) -> sys::Result<Option<Arc<Socket>>> {
        let request = self
            .asking(Verb::GetOption)
            .word(level as u32)
            .word(name as u32);
        let answer = self
            .link
            .ask(request.long(room as u64).bytes(value), None)?;
        let mut values = answer.values();
        if let Ok(told) = values.bytes() {
            value.clear();
            value.extend_from_slice(told);
        }
        if self.settle(socket, (level, name), answer.errno)? {
            return Ok(None);
        }
        match values.word()? {
            0 => Ok(None),
            _ => self.received(&mut values).map(Some),
        }
    }

    /// What comes of an option's errno, for which some have to wait; true: it has begun to connect.
    fn settle(&self, socket: &Socket, option: (i32, i32), errno: i32) -> sys::Result<bool> {
        match errno {
            0 => Ok(false),
            libc::EINPROGRESS if socket.may_wait(0) && connects(option.0, option.1) => {
                if socket.style == Style::One {
                    self.await_connection(socket)?;
                }
                Ok(true)
            }
            errno => Err(errno),
        }
    }

    pub fn local_name(&self, _: &Socket) -> sys::Result<Vec<u8>> {
        self.name(Verb::LocalName)
    }

    pub fn peer_name(&self, _: &Socket) -> sys::Result<Vec<u8>> {
        self.name(Verb::PeerName)
    }

    fn name(&self, verb: Verb) -> sys::Result<Vec<u8>> {
        let answer = self.ask(self.asking(verb))?;
        Ok(answer.values().bytes()?.to_vec())
    }

    pub fn unread(&self, _: &Socket) -> usize {
        self.count(Verb::Unread)
    }

    pub fn unsent(&self, _: &Socket) -> usize {
        self.count(Verb::Unsent)
    }

    fn count(&self, verb: Verb) -> usize {
        let answer = self.ask(self.asking(verb));
        answer.map_or(0, |answer| answer.values().long().unwrap_or(0) as usize)
    }

    // ---- readiness ----

    /// The bell rings when more than this may hold, or something else has come.
    pub fn ready(&self, socket: &Socket, want: u32) -> u32 {
        self.look(socket, want)
            .unwrap_or(GONE | want & (IN | OUT | libc::POLLRDHUP as u32))
    }

    fn look(&self, socket: &Socket, want: u32) -> sys::Result<u32> {
        bell::take(self.bell()?);
        let answer = self.ask(self.asking(Verb::Ready).word(want))?;
        let mut values = answer.values();
        let bits = values.word()?;
        socket.edges.store(values.long()?, Ordering::Release);
        Ok(bits)
    }

    pub fn sources(&self, _: &Socket, each: &mut dyn FnMut(Source)) {
        if let Ok(fd) = self.bell() {
            each(Source::Fd(fd));
        }
    }

    fn bell(&self) -> sys::Result<i32> {
        pipe::made_in(&self.bell, || {
            let answer = self.ask(self.asking(Verb::Bell))?;
            answer.passed.ok_or(libc::EMFILE)
        })
    }

    // ---- waiting ----

    /// Tries again whenever `want` may hold, where the call may block.
    fn waiting<T>(
        &self,
        socket: &Socket,
        want: u32,
        timeout: i32,
        flags: i32,
        mut attempt: impl FnMut() -> sys::Result<T>,
    ) -> sys::Result<T> {
        let mut until = None;
        signal::begin_wait();
        loop {
            match attempt() {
                Err(libc::EAGAIN) if socket.may_wait(flags) => {}
                done => return done,
            }
            let until = *until.get_or_insert_with(|| self.until(socket, timeout));
            self.wait(socket, want, until)?;
            if want == OUT && socket.style == Style::Many {
                // It is always ready: what is full is one of its associations.
                nap(NO_ROOM)?;
            }
        }
    }

    /// EAGAIN: the time is over; EINTR: a handler that ends the call ran since `begin_wait`.
    fn wait(&self, socket: &Socket, want: u32, until: u64) -> sys::Result<()> {
        loop {
            if self.look(socket, want)? != 0 {
                return Ok(());
            }
            let now = sys::now();
            if now >= until {
                return Err(libc::EAGAIN);
            }
            let mut set = [sys::entry(self.bell()?, libc::POLLIN)];
            // Another thread may take a ring that was for this one.
            match sys::ppoll(&mut set, Some((until - now).min(SLICE))) {
                // A handler may have run right before.
                _ if signal::interrupted() => return Err(libc::EINTR),
                Err(libc::EINTR) => {}
                slept => slept.map(drop)?,
            }
        }
    }

    /// When a call ends that begins now, as SO_RCVTIMEO or SO_SNDTIMEO says.
    fn until(&self, socket: &Socket, option: i32) -> u64 {
        let mut value = Vec::new();
        let got = self.get_option(socket, libc::SOL_SOCKET, option, &mut value, 16);
        match got.and_then(|_| abi::read::<[i64; 2]>(&value)) {
            Ok([s, us]) if s != 0 || us != 0 => {
                let ns = (s as u64).saturating_mul(1_000_000_000);
                sys::now().saturating_add(ns.saturating_add(us as u64 * 1000))
            }
            _ => u64::MAX,
        }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.forked();
    }
}

fn connects(level: i32, name: i32) -> bool {
    level == libc::IPPROTO_SCTP
        && matches!(
            name,
            abi::SCTP_SOCKOPT_CONNECTX_OLD
                | abi::SCTP_SOCKOPT_CONNECTX
                | abi::SCTP_SOCKOPT_CONNECTX3
        )
}

fn nap(ns: u64) -> sys::Result<()> {
    match sys::ppoll(&mut [], Some(ns)) {
        _ if signal::interrupted() => Err(libc::EINTR),
        Err(libc::EINTR) => Ok(()),
        slept => slept.map(drop),
    }
}
