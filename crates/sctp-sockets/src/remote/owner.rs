//! The owner's side: which of its sockets others have, who they are, and what they ask for. Nothing here waits: sockets are asked by
//! one for whom [`never_waits`](super::never_waits) holds.
//!
//! Locks: that of [`OWNER`] comes before those of sockets.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use headwater_channel::bell;
use headwater_host::sync::{AtomicUsize, Ordering};
use headwater_host::{hidden, sys};
use headwater_sctp_stack::Guarded;

use super::link::CLOSE;
use super::verbs::LARGEST;
use super::wire::{self, Reader, Verb, Writer};
use crate::{Receiving, Sending, Socket, Style};

/// What is read from a line at once.
const PIECE: usize = 64 << 10;

pub static OWNER: Guarded<Option<Owner>> = Guarded::new(None);
/// Sockets that others have: while there are none nobody needs to look.
pub static SHARED: AtomicUsize = AtomicUsize::new(0);

#[derive(Default)]
pub struct Owner {
    pub sockets: HashMap<u64, Shared>,
    pub children: Vec<Child>,
    next: u32,
    /// Let go by the last who had them: to be closed without the lock.
    pub ended: Vec<Arc<Socket>>,
}

/// A socket that others have too.
pub struct Shared {
    pub socket: Arc<Socket>,
    /// The program still has it itself.
    pub own: bool,
    pub watches: Vec<Watch>,
}

/// A child's bell for a socket.
pub struct Watch {
    child: u32,
    bell: i32,
    /// What it waits for: other bits than held when it looked, or another count of arrivals.
    armed: Option<Armed>,
}

#[derive(Clone, Copy)]
struct Armed {
    want: u32,
    held: u32,
    edges: u64,
}

/// A process that has sockets of ours.
pub struct Child {
    pub key: u32,
    pub presence: i32,
    holds: HashSet<u64>,
    pub lines: Vec<Line>,
}

/// One of its lines.
#[derive(Default)]
pub struct Line {
    pub fd: i32,
    got: Vec<u8>,
    passed: Option<i32>,
    /// Not yet taken by the kernel.
    pub answer: Vec<u8>,
    pass: Option<i32>,
}

/// The name of a socket among processes: nobody else has it while it is in the table.
pub fn id(socket: &Socket) -> u64 {
    core::ptr::from_ref(socket) as u64
}

impl Owner {
    /// One more process, which has these sockets.
    pub fn adopt(&mut self, presence: i32, holds: impl Iterator<Item = u64>) {
        let holds = holds.filter(|id| self.sockets.contains_key(id)).collect();
        self.next += 1;
        self.children.push(Child {
            key: self.next,
            presence,
            holds,
            lines: Vec::new(),
        });
    }

    /// The program's own sockets, from now on of others too.
    pub fn share(&mut self, socket: &Arc<Socket>, own: bool) -> u64 {
        let id = id(socket);
        let shared = self.sockets.entry(id).or_insert_with(|| Shared {
            socket: socket.clone(),
            own,
            watches: Vec::new(),
        });
        shared.own |= own;
        SHARED.store(self.sockets.len(), Ordering::Release);
        id
    }

    /// The program has closed it: true if it lives on for others.
    pub fn keeps(&mut self, socket: &Socket) -> bool {
        let shared = self.sockets.get_mut(&id(socket));
        shared.map(|shared| shared.own = false).is_some()
    }

    /// Nobody but the program has those that no child has.
    pub fn sweep(&mut self) {
        let children = &self.children;
        let ended = &mut self.ended;
        self.sockets.retain(|id, shared| {
            let held = children.iter().any(|child| child.holds.contains(id));
            if !held {
                shared.unwatch(|_| true);
                if !shared.own {
                    ended.push(shared.socket.clone());
                }
            }
            held
        });
        SHARED.store(self.sockets.len(), Ordering::Release);
    }

    /// The child with this place has gone.
    pub fn bury(&mut self, at: usize) {
        let child = self.children.swap_remove(at);
        for shared in self.sockets.values_mut() {
            shared.unwatch(|watch| watch.child == child.key);
        }
        hidden::close(child.presence);
        child.lines.into_iter().for_each(Line::close);
        self.sweep();
    }

    /// In a child of this process: nothing of it is its own. Memory stays, since locks in it may be held.
    pub fn forget(self) {
        for child in self.children {
            hidden::close(child.presence);
            child.lines.into_iter().for_each(Line::close);
        }
        for (_, mut shared) in self.sockets {
            shared.unwatch(|_| true);
            core::mem::forget(shared.socket);
        }
        SHARED.store(0, Ordering::Release);
    }

    /// The presence of a child has something to say. False: the child has gone.
    pub fn hear(&mut self, at: usize) -> bool {
        let child = &mut self.children[at];
        let mut word = Vec::new();
        match wire::receive(child.presence, &mut word, 9, libc::MSG_DONTWAIT) {
            Ok((1, Some(fd))) => child.lines.push(Line::new(fd)),
            Ok((1, None)) | Err(libc::EAGAIN) => {}
            Ok((9, None)) => {
                if let Ok([CLOSE, id @ ..]) = <[u8; 9]>::try_from(word) {
                    self.let_go(at, u64::from_ne_bytes(id));
                }
            }
            _ => return false,
        }
        true
    }

    /// The child has the socket no more.
    fn let_go(&mut self, child: usize, id: u64) {
        let child = &mut self.children[child];
        if let Some(shared) = self.sockets.get_mut(&id)
            && child.holds.remove(&id)
        {
            shared.unwatch(|watch| watch.child == child.key);
            self.sweep();
        }
    }

    /// A line has something to say, or room for it. False: it has ended.
    pub fn attend(&mut self, child: usize, line: usize) -> bool {
        let place = &mut self.children[child].lines[line];
        if !place.answer.is_empty() {
            return place.answer_on().is_ok();
        }
        let Ok(request) = place.take_request() else {
            return false;
        };
        let Some(request) = request else { return true };
        let passed = place.passed.take();
        let mut values = Writer::new(0);
        let (errno, pass) = match self.serve(child, &request, passed, &mut values) {
            Ok(pass) => (0, pass),
            Err(errno) => (errno, None),
        };
        let Ok(answer) = values.finish_with(errno as u32) else {
            return false;
        };
        let line = &mut self.children[child].lines[line];
        line.answer = answer;
        line.pass = pass;
        line.answer_on().is_ok()
    }

    /// Writes the answer's values, which may come with an error too. A descriptor to go with them.
    fn serve(
        &mut self,
        child: usize,
        request: &[u8],
        passed: Option<i32>,
        answer: &mut Writer,
    ) -> sys::Result<Option<i32>> {
        let (word, mut values) = Reader::of(request)?;
        let verb = Verb::of(word).ok_or(libc::ENOSYS)?;
        let id = values.long()?;
        if verb == Verb::Fork {
            let holds = self.children[child].holds.clone();
            self.adopt(passed.ok_or(libc::EPROTO)?, holds.into_iter());
            return Ok(None);
        }
        hidden::close(passed.unwrap_or(-1));
        if !self.children[child].holds.contains(&id) {
            return Err(libc::EBADF);
        }
        let key = self.children[child].key;
        let shared = self.sockets.get_mut(&id).ok_or(libc::EBADF)?;
        match verb {
            Verb::Close => self.let_go(child, id),
            Verb::Bell => return shared.bell_of(key).map(Some),
            Verb::Ready => {
                let (held, edges) = shared.look(key, values.word()?);
                answer.put_word(held);
                answer.put_long(edges);
            }
            _ => {
                let socket = shared.socket.clone();
                let mut found = None;
                let done = act(&socket, verb, &mut values, answer, &mut found);
                if let Some(found) = found {
                    let id = self.share(&found, false);
                    self.children[child].holds.insert(id);
                    answer.put_long(id);
                    answer.put_word(u32::from(found.v6));
                    answer.put_word(u32::from(found.style == Style::Many));
                }
                done?;
            }
        }
        Ok(None)
    }

    /// Sockets for which somebody waits.
    pub fn watched(&self) -> impl Iterator<Item = (&Arc<Socket>, u32)> {
        self.sockets.values().filter_map(|shared| {
            let armed = shared.watches.iter().filter_map(|watch| watch.armed);
            // What held when they looked is nothing to wait for.
            let want = armed
                .map(|armed| armed.want & !armed.held)
                .reduce(|a, b| a | b)?;
            (want != 0).then_some((&shared.socket, want))
        })
    }

    /// Rings for what has come. Was there anything?
    pub fn tell(&mut self) -> bool {
        let each = self.sockets.values_mut().map(Shared::tell);
        each.fold(false, |told, rang| told | rang)
    }
}

impl Shared {
    fn unwatch(&mut self, which: impl Fn(&Watch) -> bool) {
        self.watches.retain(|watch| {
            let goes = which(watch);
            if goes {
                hidden::close(watch.bell);
            }
            !goes
        });
    }

    fn bell_of(&mut self, child: u32) -> sys::Result<i32> {
        if let Some(watch) = self.watches.iter().find(|watch| watch.child == child) {
            return Ok(watch.bell);
        }
        let bell = bell::create().and_then(hidden::hide_needed)?;
        self.watches.push(Watch {
            child,
            bell,
            armed: None,
        });
        Ok(bell)
    }

    fn look(&mut self, child: u32, want: u32) -> (u32, u64) {
        let edges = self.socket.edge_count();
        let held = self.socket.ready(want);
        if let Some(watch) = self.watches.iter_mut().find(|watch| watch.child == child) {
            // Others of its threads may wait for other things.
            let before = watch.armed.map_or(0, |armed| armed.want);
            watch.armed = Some(Armed {
                want: want | before,
                held,
                edges,
            });
        }
        (held, edges)
    }

    fn tell(&mut self) -> bool {
        let all = self.watches.iter().filter_map(|watch| watch.armed);
        let Some(want) = all.map(|armed| armed.want).reduce(|a, b| a | b) else {
            return false;
        };
        let mut rang = false;
        let held = self.socket.ready(want);
        let edges = self.socket.edge_count();
        for watch in &mut self.watches {
            let Some(armed) = watch.armed else { continue };
            let always = (libc::POLLERR | libc::POLLHUP) as u32;
            let more = held & (armed.want | always) & !armed.held;
            if more != 0 || edges != armed.edges {
                watch.armed = None;
                bell::ring(watch.bell);
                rang = true;
            }
        }
        rang
    }
}

impl Line {
    fn new(fd: i32) -> Line {
        Line {
            fd,
            ..Line::default()
        }
    }

    fn close(self) {
        hidden::close(self.fd);
        hidden::close(self.passed.unwrap_or(-1));
    }

    /// A whole one, if it has come. An error is the end.
    fn take_request(&mut self) -> sys::Result<Option<Vec<u8>>> {
        let (got, passed) = (&mut self.got, &mut self.passed);
        loop {
            match wire::receive_frame(self.fd, got, passed, PIECE, libc::MSG_DONTWAIT) {
                Ok(true) => return Ok(Some(core::mem::take(got))),
                Ok(false) => {}
                Err(libc::EAGAIN) => return Ok(None),
                Err(errno) => return Err(errno),
            }
        }
    }

    fn answer_on(&mut self) -> sys::Result<()> {
        let mut sent = 0;
        while sent < self.answer.len() {
            match wire::send(self.fd, &self.answer[sent..], self.pass, libc::MSG_DONTWAIT) {
                Ok(n) => {
                    sent += n;
                    self.pass = None;
                }
                Err(libc::EAGAIN) => break,
                Err(errno) => return Err(errno),
            }
        }
        self.answer.drain(..sent);
        Ok(())
    }
}

/// The verbs of sockets proper. A socket that came of it is `found`; what is said of it goes behind the answer.
fn act(
    socket: &Arc<Socket>,
    verb: Verb,
    values: &mut Reader<'_>,
    answer: &mut Writer,
    found: &mut Option<Arc<Socket>>,
) -> sys::Result<()> {
    match verb {
        Verb::Bind => socket.bind(values.bytes()?)?,
        Verb::Connect => socket.connect(values.bytes()?)?,
        Verb::Listen => socket.listen(values.word()? as i32)?,
        Verb::Accept => *found = Some(socket.accept()?),
        Verb::Shutdown => socket.shutdown(values.word()? as i32)?,
        Verb::Send => send(socket, values, answer)?,
        Verb::Receive => receive(socket, values, answer)?,
        Verb::SetOption => {
            let (level, name) = (values.word()? as i32, values.word()? as i32);
            let told = socket.set_option(level, name, values.bytes()?)?;
            answer.put_word(told as u32);
        }
        Verb::GetOption => {
            let (level, name) = (values.word()? as i32, values.word()? as i32);
            let room = values.long()? as usize;
            let mut value = values.bytes()?.to_vec();
            let got = socket.get_option(level, name, &mut value, room);
            answer.put_bytes(&value);
            *found = got?;
            answer.put_word(u32::from(found.is_some()));
        }
        Verb::LocalName => answer.put_bytes(&socket.local_name()?),
        Verb::PeerName => answer.put_bytes(&socket.peer_name()?),
        Verb::Unread => answer.put_long(socket.unread() as u64),
        Verb::Unsent => answer.put_long(socket.unsent() as u64),
        Verb::Ready | Verb::Bell | Verb::Close | Verb::Fork => return Err(libc::ENOSYS),
    }
    Ok(())
}

fn send(socket: &Socket, values: &mut Reader<'_>, answer: &mut Writer) -> sys::Result<()> {
    let flags = values.word()? as i32;
    let (to, control, data) = (values.bytes()?, values.bytes()?, values.bytes()?);
    let data = [sys::buffer(data.as_ptr(), data.len())];
    let sent = socket.send(&Sending {
        to,
        data: &data,
        control,
        flags: flags | libc::MSG_DONTWAIT,
    })?;
    answer.put_long(sent as u64);
    Ok(())
}

fn receive(socket: &Socket, values: &mut Reader<'_>, answer: &mut Writer) -> sys::Result<()> {
    let room = (values.long()? as usize).min(LARGEST);
    let flags = values.word()? as i32;
    let wants = values.word()?;
    let mut data: Vec<u8> = Vec::new();
    data.try_reserve_exact(room).map_err(|_| libc::ENOMEM)?;
    let into = [sys::buffer(data.as_mut_ptr(), room)];
    let mut what = Receiving {
        into: &into,
        flags: flags | libc::MSG_DONTWAIT,
        wants_control: wants & 1 != 0,
        wants_from: wants & 2 != 0,
        from: Vec::new(),
        control: Vec::new(),
        out_flags: 0,
    };
    let told = socket.receive(&mut what)?;
    let (from, control, out_flags) = (what.from, what.control, what.out_flags);
    // SAFETY: so many bytes were written there; of a cut message more are told than there was room for.
    unsafe { data.set_len(told.min(room)) };
    answer.put_long(told as u64);
    answer.put_word(out_flags as u32);
    answer.put_bytes(&from);
    answer.put_bytes(&control);
    answer.put_bytes(&data);
    Ok(())
}
