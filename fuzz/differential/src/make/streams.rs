//! Scripts over streams. What is under way stays below what any way of making a stream holds: where flow control begins is
//! not the same for all.

use headwater_e2e::chance::Chance;

use super::{Makes, Pen};
use crate::script::{Over, Script};

/// Slots for streams; the last is for a set.
const STREAMS: i64 = 10;
const SET: i64 = 10;
/// Bytes sent by a script at most.
const MOST: i64 = 30_000;

const IOCTLS_NOBODY_KNOWS: [i64; 2] = [(b'S' as i64) << 8 | 99, (b'z' as i64) << 8 | 1];

struct Maker {
    pen: Pen,
    used: [bool; STREAMS as usize],
    sent: i64,
}

pub fn streams(seed: u64) -> Script {
    let mut chance = Chance::new(seed);
    let two = chance.below(4) == 0;
    let mut maker = Maker {
        pen: Pen::new(chance, Over::Streams, if two { 2 } else { 1 }),
        used: [false; STREAMS as usize],
        sent: 0,
    };
    maker.make();
    maker.pen.script
}

impl Makes for Maker {
    fn pen(&mut self) -> &mut Pen {
        &mut self.pen
    }
}

impl Maker {
    fn make(&mut self) {
        match self.below(6) {
            0 => self.open(0, 0),
            1 => {
                self.open(0, 0);
                self.open(0, 1);
            }
            _ => self.pipe(0, 0),
        }
        if self.one_in(3) {
            self.say(0, 0, "epoll_create", &[SET]);
        }
        for _ in 0..self.steps(8, 30) {
            let t = self.below(self.pen.script.threads as i64) as usize;
            match self.weighed(&[30, 30, 12, 12, 6, 6, 4]) {
                0 => self.sends(t),
                1 => self.receives(t),
                2 => self.asks(t),
                3 => self.waits(t),
                4 => self.flushes(t),
                5 => self.changes(t),
                _ => self.opens(t),
            }
        }
    }

    /// Calls that would wait fail, but where another thread can go on.
    fn nonblocking(&mut self, t: usize, slot: i64) {
        if self.pen.script.threads == 1 && !self.one_in(20) || self.one_in(2) {
            self.say(0, t, "nonblock", &[slot, 1, 0]);
        }
    }

    fn pipe(&mut self, t: usize, slot: i64) {
        self.say(0, t, "streams_pipe", &[slot, slot + 1]);
        for end in [slot, slot + 1] {
            self.used[end as usize] = true;
            self.nonblocking(t, end);
        }
    }

    fn open(&mut self, t: usize, slot: i64) {
        let what = self.of(&[0, 0, 0, 1, 2, 2, 3, 4, 4, 5, 6, 7]);
        let flags = libc::O_RDWR | self.of(&[0, libc::O_NONBLOCK, libc::O_NONBLOCK]);
        self.used[slot as usize] = true;
        self.say(0, t, "sopen", &[slot, what, flags as i64]);
    }

    fn slot(&mut self) -> i64 {
        let used: Vec<i64> = (0..STREAMS).filter(|&i| self.used[i as usize]).collect();
        if used.is_empty() || self.one_in(40) {
            return self.below(STREAMS);
        }
        self.of(&used)
    }

    fn free_slot(&mut self) -> i64 {
        let free: Vec<i64> = (0..STREAMS).filter(|&i| !self.used[i as usize]).collect();
        if free.is_empty() {
            return self.below(STREAMS);
        }
        self.of(&free)
    }

    fn length(&mut self) -> i64 {
        let n = match self.below(16) {
            0 => 0,
            1 | 2 => 1,
            3 => 1 + self.below(5000),
            4 => 100,
            _ => 1 + self.below(60),
        };
        if self.sent + n > MOST {
            return 0;
        }
        self.sent += n;
        n
    }

    fn control(&mut self) -> i64 {
        match self.below(10) {
            0..=3 => -1,
            4 => 0,
            5 if self.one_in(20) => 5000,
            6 if self.one_in(10) => -2,
            _ => self.length().min(4096),
        }
    }

    fn data(&mut self) -> i64 {
        match self.below(10) {
            0 | 1 => -1,
            2 if self.one_in(10) => -2,
            _ => self.length(),
        }
    }

    fn band(&mut self) -> i64 {
        self.of(&[
            0,
            0,
            1,
            1,
            2,
            3,
            255,
            255,
            7,
            if self.sent % 7 == 0 { 256 } else { 2 },
        ])
    }

    fn sends(&mut self, t: usize) {
        let slot = self.slot();
        let n = self.length();
        match self.below(10) {
            0..=2 => self.say(0, t, "write", &[slot, n]),
            3 => {
                let (m, k) = (self.length(), self.length());
                self.say(0, t, "writev", &[slot, n, m, k]);
            }
            4..=6 => {
                let flags = self.of(&[0, 0, 0, 1, 1, 4]);
                let (c, d) = (self.control(), self.data());
                self.say(0, t, "putmsg", &[slot, c, d, flags]);
            }
            _ => {
                let flags = self.of(&[4, 4, 4, 4, 1, 2, 0, 5]);
                let band = if flags == 4 { self.band() } else { 0 };
                let (c, d) = (self.control(), self.data());
                self.say(0, t, "putpmsg", &[slot, c, d, band, flags]);
            }
        }
    }

    fn room(&mut self) -> i64 {
        self.of(&[-2, -1, 0, 1, 5, 20, 64, 64, 200, 6000, 6000, 6000])
    }

    fn receives(&mut self, t: usize) {
        let slot = self.slot();
        let n = self.of(&[0, 1, 5, 20, 64, 200, 6000, 6000]);
        match self.below(12) {
            0..=2 => self.say(0, t, "read", &[slot, n]),
            3 => {
                let m = self.below(100);
                self.say(0, t, "readv", &[slot, n, m]);
            }
            4..=6 => {
                let flags = self.of(&[0, 0, 0, 0, 1, 4]);
                let (c, d) = (self.room(), self.room());
                self.say(0, t, "getmsg", &[slot, c, d, flags]);
            }
            7..=9 => {
                let flags = self.of(&[2, 2, 2, 4, 4, 1, 0, 3]);
                let band = if flags == 4 { self.band() } else { 0 };
                let (c, d) = (self.room(), self.room());
                self.say(0, t, "getpmsg", &[slot, c, d, band, flags]);
            }
            10 => {
                let (c, d) = (self.room(), self.room());
                let flags = self.of(&[0, 0, 1, 2]);
                self.say(0, t, "peek", &[slot, c, d, flags]);
            }
            _ => self.say(0, t, "recvfd", &[slot]),
        }
    }

    fn asks(&mut self, t: usize) {
        let slot = self.slot();
        let band = self.band();
        match self.below(13) {
            0..=2 => self.say(0, t, "nread", &[slot]),
            3 => self.say(0, t, "fionread", &[slot]),
            4 => self.say(0, t, "ckband", &[slot, band]),
            5 => self.say(0, t, "getband", &[slot]),
            6 => {
                let what = self.of(&[1, 2, 3]);
                self.say(0, t, "atmark", &[slot, what]);
            }
            7 => self.say(0, t, "canput", &[slot, band]),
            8 => {
                let name = self.of(&[
                    "grdopt",
                    "gwropt",
                    "getcltime",
                    "isastream",
                    "getsig",
                    "getfl",
                ]);
                self.say(0, t, name, &[slot]);
            }
            9 => {
                let (c, d) = (self.room(), self.room());
                self.say(0, t, "peek", &[slot, c, d, 0]);
            }
            10 => {
                let command = self.of(&IOCTLS_NOBODY_KNOWS);
                self.say(0, t, "transparent", &[slot, command]);
            }
            11 => self.signals(t, slot),
            _ => self.say(0, t, "nread", &[slot]),
        }
    }

    /// Of what comes: how much there is room for is not the same for all ways.
    fn signals(&mut self, t: usize, slot: i64) {
        const S_OUTPUT: i64 = 4;
        const S_WRBAND: i64 = 0x100;
        let events = self.below(0x200) & !(S_OUTPUT | S_WRBAND);
        self.say(0, t, "setsig", &[slot, events]);
        self.say(0, t, "signalled", &[]);
        for _ in 0..1 + self.below(3) {
            self.sends(t);
            self.say(0, t, "signalled", &[]);
        }
        if self.one_in(2) {
            self.say(0, t, "setsig", &[slot, 0]);
        }
    }

    fn events(&mut self) -> i64 {
        let all = [
            libc::POLLIN,
            libc::POLLOUT,
            libc::POLLPRI,
            libc::POLLRDNORM,
            libc::POLLRDBAND,
            libc::POLLWRNORM,
            libc::POLLWRBAND,
        ];
        let mut events = 0;
        for event in all {
            if self.one_in(2) {
                events |= event;
            }
        }
        events as i64
    }

    fn waits(&mut self, t: usize) {
        let ms = self.of(&[0, 0, 0, 0, 20]);
        match self.below(8) {
            0..=5 => {
                let mut numbers = vec![ms];
                for _ in 0..3 {
                    let what = self.slot() | self.events() << 4;
                    numbers.push(if self.one_in(3) { -1 } else { what });
                }
                self.say(0, t, "poll", &numbers);
            }
            6 => {
                let (op, slot) = (self.of(&[1, 1, 2, 3]), self.slot());
                let events = self.events();
                self.say(0, t, "epoll_ctl", &[SET, op, slot, events]);
            }
            _ => self.say(0, t, "epoll_wait", &[SET, 4, ms]),
        }
    }

    fn flushes(&mut self, t: usize) {
        let (slot, how, band) = (self.slot(), self.of(&[1, 2, 3, 3, 0]), self.band() & 255);
        match self.one_in(3) {
            true => self.say(0, t, "flushband", &[slot, how, band]),
            false => self.say(0, t, "flush", &[slot, how]),
        }
    }

    fn changes(&mut self, t: usize) {
        let slot = self.slot();
        match self.below(12) {
            0..=2 => {
                let mode = self.of(&[0, 1, 2, 4, 5, 6, 8, 9, 10, 16, 17, 18, 3, 12, 64]);
                self.say(0, t, "srdopt", &[slot, mode]);
            }
            3 => {
                let mode = self.of(&[0, 1, 1, 2]);
                self.say(0, t, "swropt", &[slot, mode]);
            }
            4 => {
                let ms = self.of(&[0, 1000, -1]);
                self.say(0, t, "setcltime", &[slot, ms]);
            }
            5..=7 => self.say(0, t, "sendfd", &[slot]),
            8 => {
                let bytes = self.of(&[0, 4, 100]);
                self.say(0, t, "istr", &[slot, IOCTLS_NOBODY_KNOWS[1], bytes]);
            }
            9 => {
                let on = self.below(2);
                self.say(0, t, "nonblock", &[slot, on, 0]);
            }
            _ => self.say(0, t, "turn", &[slot]),
        }
    }

    fn opens(&mut self, t: usize) {
        let slot = self.slot();
        match self.below(10) {
            // A call may wait there.
            0..=2 if self.pen.script.threads > 1 => self.say(0, t, "nread", &[slot]),
            0..=2 => {
                self.used[slot as usize] = false;
                self.say(0, t, "close", &[slot]);
            }
            3 => {
                let slot = self.free_slot().min(STREAMS - 2);
                self.pipe(t, slot);
            }
            4 | 5 => {
                let slot = self.free_slot();
                self.open(t, slot);
            }
            6 => {
                let to = self.free_slot();
                self.used[to as usize] = true;
                self.say(0, t, "dup", &[to, slot]);
            }
            7 => {
                let other = self.slot();
                self.say(0, t, "join", &[slot, other]);
            }
            8 => {
                let name = self.below(2);
                self.say(0, t, "fattach", &[slot, name]);
                let to = self.free_slot();
                self.used[to as usize] = true;
                let flags = (libc::O_RDWR | libc::O_NONBLOCK) as i64;
                self.say(0, t, "sopen", &[to, 6 + name, flags]);
            }
            _ => {
                let name = self.below(2);
                self.say(0, t, "fdetach", &[name]);
            }
        }
    }
}
