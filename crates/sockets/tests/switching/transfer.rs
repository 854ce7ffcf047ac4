//! One direction of one end: pieces of random size by random calls, each byte checked against its position.

use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

use libc::iovec;

use crate::common::calls::{Errno, Socket, piece};
use crate::common::stream::{Hash, Random, Stream};
use crate::common::world;
use crate::plan::Plan;

/// What the processes of a case share.
pub struct World {
    pub port: AtomicU32,
    /// Bytes moved by each end, for its own events.
    pub written: [AtomicU64; 2],
    pub read: [AtomicU64; 2],
    /// Hashes of what each direction's sender sent and its receiver received.
    pub sent: [AtomicU64; 2],
    pub received: [AtomicU64; 2],
    /// Both directions of an end are done.
    pub over: [AtomicU32; 2],
    pub sibling: AtomicU32,
    /// Event descriptor that fires when somebody is to be killed.
    pub trigger: AtomicI32,
    pub carried: AtomicU32,
    pub switches: AtomicU64,
    pub unswitches: AtomicU64,
    pub ring_bytes: AtomicU64,
}

/// The case of this process and which end it is.
#[derive(Clone, Copy)]
pub struct Side {
    pub plan: &'static Plan,
    pub world: &'static World,
    pub end: usize,
    pub socket: Socket,
    /// This process is the child of its end's fork.
    pub forked: bool,
}

impl Side {
    /// Ends the process and says why.
    pub fn fail(&self, what: std::fmt::Arguments<'_>) -> ! {
        let state = self
            .socket
            .view()
            .map(|v| crate::common::calls::describe(&v));
        eprintln!(
            "seed {}: end {}: {what}; {state:?}",
            self.plan.seed, self.end
        );
        world::leave(1)
    }

    /// Kills become due by the bytes that an end has moved.
    fn tell(&self) {
        let Some(kill) = self.plan.kill else { return };
        let w = self.world;
        let moved = w.read[self.end].load(Ordering::Relaxed);
        if kill.end == self.end && moved >= kill.after {
            let one = 1u64.to_ne_bytes();
            // SAFETY: eight readable bytes.
            unsafe { libc::write(w.trigger.load(Ordering::Relaxed), one.as_ptr() as _, 8) };
        }
    }

    fn gone(&self, e: Errno) -> bool {
        self.plan.loses_tail() && (e == libc::ECONNRESET || e == libc::EPIPE)
    }
}

/// How far a call got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    More,
    /// EAGAIN.
    Later,
    End,
}

pub struct Writer {
    pub pos: u64,
    stream: Stream,
    total: u64,
    hash: Hash,
    random: Random,
    calls: u32,
    buf: Vec<u8>,
}

impl Writer {
    pub fn new(side: &Side) -> Writer {
        Writer {
            pos: 0,
            stream: side.plan.stream(side.end),
            total: side.plan.total[side.end],
            hash: Hash::new(),
            random: Random::new(side.plan.seed ^ 0x5eed_0000 ^ side.end as u64),
            calls: 0,
            buf: Vec::new(),
        }
    }

    pub fn step(&mut self, side: &Side) -> Flow {
        if self.pos == self.total {
            return Flow::End;
        }
        self.calls += 1;
        // The first calls are small, so that the connection is taken over soon.
        let most = if self.calls < 10 {
            200
        } else {
            side.plan.largest
        };
        let n = (self.random.scale(1, most) as u64).min(self.total - self.pos) as usize;
        self.buf.resize(n, 0);
        self.stream.fill(self.pos, &mut self.buf);
        if self.random.one_in(side.plan.unswitch[side.end]) {
            side.socket.unswitch();
        }
        let flags = if self.random.one_in(8) {
            libc::MSG_DONTWAIT
        } else {
            0
        };
        let sent = if self.random.one_in(4) {
            side.socket.send(&split(&mut self.random, &self.buf), flags)
        } else {
            side.socket.send(&[piece(&self.buf)], flags)
        };
        match sent {
            Ok(n) if n <= self.buf.len() => {
                self.hash.add(&self.buf[..n]);
                self.pos += n as u64;
                side.world.written[side.end].store(self.pos, Ordering::Relaxed);
                side.world.sent[side.end].store(self.hash.0, Ordering::Relaxed);
                Flow::More
            }
            Ok(n) => side.fail(format_args!("sent {n} of {} bytes", self.buf.len())),
            Err(libc::EAGAIN) => Flow::Later,
            Err(e) if side.gone(e) => {
                self.total = self.pos;
                Flow::End
            }
            Err(e) => side.fail(format_args!("send at {}: errno {e}", self.pos)),
        }
    }
}

pub struct Reader {
    pub pos: u64,
    stream: Stream,
    total: u64,
    hash: Hash,
    random: Random,
    buf: Vec<u8>,
}

impl Reader {
    pub fn new(side: &Side) -> Reader {
        Reader {
            pos: 0,
            stream: side.plan.stream(1 - side.end),
            total: side.plan.total[1 - side.end],
            hash: Hash::new(),
            random: Random::new(side.plan.seed ^ 0xeead_0000 ^ side.end as u64),
            buf: Vec::new(),
        }
    }

    pub fn has_all(&self) -> bool {
        self.pos == self.total
    }

    /// `patient`: the call may block.
    pub fn step(&mut self, side: &Side, patient: bool) -> Flow {
        let n = self.random.scale(1, side.plan.largest);
        self.buf.resize(n, 0);
        if self.random.one_in(8) {
            self.peek(side, n);
        }
        let rest = (self.total - self.pos) as usize;
        let (result, discarded) = match self.random.below(12) {
            0 => (side.socket.recv(&[null(n)], libc::MSG_TRUNC), true),
            1 if patient && rest > 0 => {
                let n = n.min(rest);
                self.buf.truncate(n);
                let all = side.socket.recv(&[piece(&self.buf)], libc::MSG_WAITALL);
                if all.is_ok_and(|got| got < n) && !side.plan.loses_tail() {
                    side.fail(format_args!("MSG_WAITALL at {}: {all:?} of {n}", self.pos));
                }
                (all, false)
            }
            2..5 => (
                side.socket.recv(&split(&mut self.random, &self.buf), 0),
                false,
            ),
            5 => (
                side.socket.recv(&[piece(&self.buf)], libc::MSG_DONTWAIT),
                false,
            ),
            _ => (side.socket.recv(&[piece(&self.buf)], 0), false),
        };
        match result {
            Ok(0) => self.end(side),
            Ok(n) => {
                if self.pos + n as u64 > self.total {
                    side.fail(format_args!("{n} bytes at {} of {}", self.pos, self.total));
                }
                self.buf.truncate(n);
                if discarded {
                    self.stream.fill(self.pos, &mut self.buf);
                }
                if let Some(at) = self.stream.difference(self.pos, &self.buf) {
                    side.fail(format_args!("wrong byte at {at}, read {n} at {}", self.pos));
                }
                self.hash.add(&self.buf);
                self.pos += n as u64;
                side.world.read[side.end].store(self.pos, Ordering::Relaxed);
                side.world.received[1 - side.end].store(self.hash.0, Ordering::Relaxed);
                side.tell();
                Flow::More
            }
            Err(libc::EAGAIN) => Flow::Later,
            Err(e) if side.gone(e) => Flow::End,
            Err(e) => side.fail(format_args!("recv at {}: errno {e}", self.pos)),
        }
    }

    fn peek(&mut self, side: &Side, n: usize) {
        let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
        if let Ok(n) = side.socket.recv(&[piece(&self.buf)], flags)
            && let Some(at) = self.stream.difference(self.pos, &self.buf[..n])
        {
            side.fail(format_args!(
                "wrong byte at {at}, peeked {n} at {}",
                self.pos
            ));
        }
        self.buf.resize(n, 0);
    }

    fn end(&mut self, side: &Side) -> Flow {
        if self.pos < self.total && !side.plan.loses_tail() {
            side.fail(format_args!(
                "end of file at {} of {}",
                self.pos, self.total
            ));
        }
        Flow::End
    }
}

fn null(n: usize) -> iovec {
    iovec {
        iov_base: core::ptr::null_mut(),
        iov_len: n,
    }
}

/// The buffer in up to five parts, some of them empty.
fn split(random: &mut Random, mut buf: &[u8]) -> Vec<iovec> {
    let mut parts = Vec::new();
    for _ in 0..random.below(5) {
        let (a, b) = buf.split_at(random.below(buf.len() + 1));
        parts.push(piece(a));
        buf = b;
    }
    parts.push(piece(buf));
    parts
}
