//! A child's way to the process that owns sockets of its: one descriptor that says that the child is there, and lines for its
//! calls, as many as there are calls at the same time.

use std::sync::Arc;

use headwater_host::process::Quiet;
use headwater_host::sync::{AtomicI32, Ordering};
use headwater_host::{hidden, sys};
use headwater_sctp_stack::Guarded;

use super::wire::{self, Reader, Verb, Writer};

/// What is read at once.
const PIECE: usize = 16 << 10;
/// What a child says to have a line, and that it has a socket no more, whose name follows.
pub const LINE: u8 = b'l';
pub const CLOSE: u8 = b'c';

pub struct Link {
    /// -1: there is none, and the owner is out of reach.
    presence: AtomicI32,
    lines: Guarded<Lines>,
}

#[derive(Default)]
struct Lines {
    idle: Vec<i32>,
    all: Vec<i32>,
}

/// What the owner has answered.
#[derive(Debug)]
pub struct Answer {
    /// 0: it was done.
    pub errno: i32,
    frame: Vec<u8>,
    pub passed: Option<i32>,
}

impl Answer {
    pub fn values(&self) -> Reader<'_> {
        // It was looked at when it came.
        Reader::of(&self.frame).map_or_else(|_| Reader::empty(), |(_, values)| values)
    }
}

impl Link {
    pub fn new(presence: i32) -> Arc<Link> {
        Arc::new(Link {
            presence: AtomicI32::new(presence),
            lines: Guarded::new(Lines::default()),
        })
    }

    pub fn presence(&self) -> i32 {
        self.presence.load(Ordering::Acquire)
    }

    /// Has it done, and returns what the owner says to it, be it an error. ECONNRESET: the owner has gone; ENOBUFS: there is no line to
    /// be had.
    pub fn ask(&self, request: Writer, pass: Option<i32>) -> sys::Result<Answer> {
        let request = request.finish()?;
        // A handler's own calls would come between.
        let _quiet = Quiet::new();
        let line = self.take_line()?;
        match exchange(line, &request, pass) {
            Ok(answer) => {
                self.lines.enter().idle.push(line);
                Ok(answer)
            }
            Err(_) => {
                self.lines.enter().all.retain(|&fd| fd != line);
                hidden::close(line);
                Err(libc::ECONNRESET)
            }
        }
    }

    fn take_line(&self) -> sys::Result<i32> {
        if let Some(line) = self.lines.enter().idle.pop() {
            return Ok(line);
        }
        let presence = self.presence.load(Ordering::Acquire);
        if presence < 0 {
            return Err(libc::ECONNRESET);
        }
        let pair = wire::pair(libc::SOCK_STREAM);
        let [mine, owners] = pair.map_err(|_| libc::ENOBUFS)?;
        let sent = wire::send(presence, &[LINE], Some(owners), 0);
        hidden::close(owners);
        if sent.is_err() {
            hidden::close(mine);
            return Err(libc::ECONNRESET);
        }
        self.lines.enter().all.push(mine);
        Ok(mine)
    }

    /// Says that this process has a socket no more, where there is no line for it: a peer may wait for the end.
    pub fn let_go(&self, id: u64) {
        let mut word = [CLOSE; 9];
        word[1..].copy_from_slice(&id.to_ne_bytes());
        let _ = wire::send(self.presence(), &word, None, 0);
    }

    /// Before a fork: the child's presence, known to the owner; -1 if there is none to be had.
    pub fn forking(&self) -> i32 {
        let Ok([mine, owners]) = wire::pair(libc::SOCK_SEQPACKET) else {
            return -1;
        };
        let told = self.ask(Writer::asking(Verb::Fork, 0), Some(owners));
        hidden::close(owners);
        match told {
            Ok(answer) if answer.errno == 0 => mine,
            _ => {
                hidden::close(mine);
                -1
            }
        }
    }

    /// In the child: what is inherited is the parent's.
    pub fn forked(&self, presence: i32) {
        hidden::close(self.presence.swap(presence, Ordering::AcqRel));
        let mut lines = self.lines.enter();
        lines.idle.clear();
        lines.all.drain(..).for_each(hidden::close);
    }

    /// Around a fork.
    pub fn shut(&self) {
        self.lines.shut();
    }

    pub fn reopen(&self) {
        self.lines.reopen();
    }
}

fn exchange(line: i32, request: &[u8], pass: Option<i32>) -> sys::Result<Answer> {
    let mut sent = 0;
    while sent < request.len() {
        let pass = pass.filter(|_| sent == 0);
        sent += wire::send(line, &request[sent..], pass, 0)?;
    }
    let mut frame = Vec::new();
    let mut passed = None;
    while !wire::receive_frame(line, &mut frame, &mut passed, PIECE, 0)? {}
    let (errno, _) = Reader::of(&frame)?;
    Ok(Answer {
        errno: errno as i32,
        frame,
        passed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An owner that answers each request on one line with errno 7, its own word, and a pipe end if `passes`.
    fn answer_once(line: i32, passes: Option<i32>) {
        let mut frame = Vec::new();
        while !wire::receive_frame(line, &mut frame, &mut None, PIECE, 0).unwrap() {}
        let (word, _) = Reader::of(&frame).unwrap();
        let answer = Writer::new(7)
            .word(word)
            .bytes(&vec![9; 100_000])
            .finish()
            .unwrap();
        let mut sent = 0;
        while sent < answer.len() {
            sent += wire::send(line, &answer[sent..], passes.filter(|_| sent == 0), 0).unwrap();
        }
    }

    #[test]
    fn a_call_gets_its_answer_and_the_next_one_takes_the_same_line() {
        let [mine, owners] = wire::pair(libc::SOCK_SEQPACKET).unwrap();
        let link = Link::new(mine);
        let owner = std::thread::spawn(move || {
            let (n, line) = wire::receive(owners, &mut Vec::new(), 8, 0).unwrap();
            assert_eq!(n, 1);
            answer_once(line.unwrap(), Some(owners));
            answer_once(line.unwrap(), None);
            hidden::close(line.unwrap());
        });
        let first = link.ask(Writer::asking(Verb::Bell, 3), None).unwrap();
        assert_eq!((first.errno, first.passed.is_some()), (7, true));
        let mut values = first.values();
        assert_eq!(values.word(), Ok(Verb::Bell as u32));
        assert_eq!(values.bytes().map(<[u8]>::len), Ok(100_000));
        let large = Writer::asking(Verb::Send, 3).bytes(&vec![1; 3 << 20]);
        assert_eq!(link.ask(large, None).unwrap().errno, 7);
        owner.join().unwrap();
        // The line has ended.
        let after = link.ask(Writer::asking(Verb::Unread, 3), None);
        assert_eq!(after.err(), Some(libc::ECONNRESET));
    }

    #[test]
    fn nobody_is_reached_without_a_presence() {
        let link = Link::new(-1);
        let asked = link.ask(Writer::asking(Verb::Unread, 3), None);
        assert_eq!(asked.err(), Some(libc::ECONNRESET));
        assert_eq!(link.forking(), -1);
    }
}
