//! Scripts over sockets.

mod near;
mod options;
mod slots;
mod starts;
mod stdio;

use headwater_e2e::chance::Chance;

pub use near::near;

use super::{Makes, PROCESSES, Pen, SLOTS};
use crate::script::{Mix, Over, Script, Step};
use slots::{Kind, Slots};

struct Maker {
    pen: Pen,
    mix: Mix,
    slots: Slots,
}

pub fn sockets(mix: Mix, seed: u64) -> Script {
    let mut chance = Chance::new(seed);
    let two = match mix {
        Mix::Blocked => true,
        Mix::Transfer | Mix::Options => false,
        _ => chance.below(3) == 0,
    };
    let mut maker = Maker {
        pen: Pen::new(chance, Over::Sockets, if two { 2 } else { 1 }),
        mix,
        slots: slots::at_first(),
    };
    maker.make();
    spare_peeks(&mut maker.pen.script);
    maker.pen.script
}

impl Makes for Maker {
    fn pen(&mut self) -> &mut Pen {
        &mut self.pen
    }

    fn put(&mut self, mut step: Step) {
        spare_rows(self.mix, self.pen.script.threads, &mut step);
        slots::follow(&mut self.slots, &step);
        self.pen.script.steps.push(step);
    }
}

/// What the rows of docs/deviations.md say by themselves is not asked for.
fn spare_rows(mix: Mix, threads: usize, step: &mut Step) {
    let many = matches!(mix, Mix::Processes | Mix::All);
    let waits = |flags: i64| flags & libc::MSG_DONTWAIT as i64 == 0;
    match (step.name.as_str(), &mut step.numbers[..]) {
        // A thread with a table of its own.
        ("close_range", [_, _, flags]) if threads > 1 => *flags &= !2,
        // By another number it has what the kernel has: what the ring holds comes with its sender's next call.
        ("spawn", [_, 1, what, _]) => *what = (*what).min(1),
        // A wait for nothing on a shared end.
        ("recv" | "recvfrom", [_, n, flags]) if many && waits(*flags) => *n = (*n).max(1),
        ("recvmsg" | "recvmmsg", [_, n, _, flags, ..]) if many && waits(*flags) => {
            *n = (*n).max(1);
        }
        _ => {}
    }
}

/// Where a step that sends or receives has its flags.
fn flags_at(step: &Step) -> Option<usize> {
    match step.name.as_str() {
        "send" | "sendto" | "recv" | "recvfrom" => Some(2),
        "sendmsg" | "sendmmsg" | "recvmsg" | "recvmmsg" => Some(3),
        _ => None,
    }
}

/// The row of peeks that wait for all while urgent bytes come, or others take what they have seen.
fn spare_peeks(script: &mut Script) {
    const PEEK: i64 = libc::MSG_PEEK as i64;
    const ALL: i64 = libc::MSG_WAITALL as i64;
    let flags = |step: &Step| flags_at(step).map_or(0, |at| step.numbers[at]);
    let is_urgent = |step: &Step| flags(step) & libc::MSG_OOB as i64 != 0;
    let takes = |step: &Step| {
        let reads = ["read", "recv", "splice", "fread", "getc"];
        reads.iter().any(|name| step.name.starts_with(name)) && flags(step) & PEEK == 0
    };
    let disturbs = |step: &Step| match step.name.starts_with("send") {
        true => is_urgent(step),
        false => takes(step),
    };
    if script.threads == 1 || !script.steps.iter().any(disturbs) {
        return;
    }
    for step in &mut script.steps {
        if let Some(at) = flags_at(step).filter(|_| flags(step) & (PEEK | ALL) == PEEK | ALL) {
            step.numbers[at] &= !ALL;
        }
    }
}

impl Maker {
    fn make(&mut self) {
        for pair in 0..1 + self.below(2) {
            self.pair(0, 0, pair * 2, pair * 2 + 1);
        }
        if self.one_in(2) {
            for slot in 0..2 {
                self.say(0, 0, "nonblock", &[slot, 1, 0]);
            }
        }
        if self.has_sets() {
            self.say(0, 0, "epoll_create", &[8]);
        }
        if self.mix == Mix::Processes {
            self.fork(0);
        }
        for _ in 0..self.steps(6, 24) {
            self.step();
        }
    }

    fn has_sets(&self) -> bool {
        matches!(self.mix, Mix::Ready | Mix::Urgent | Mix::All)
    }

    fn pair(&mut self, p: usize, t: usize, a: i64, b: i64) {
        match self.one_in(5) {
            true => {
                let way = self.below(2);
                self.say(p, t, "pair6", &[a, b, way]);
            }
            false => self.say(p, t, "pair", &[a, b]),
        }
        // An edge may be told twice when a connection is taken over.
        if self.has_sets() || !self.one_in(6) {
            self.say(p, t, "warm", &[a, b]);
        }
    }

    fn fork(&mut self, process: usize) {
        let Some(child) = (1..PROCESSES).find(|&p| self.slots[p].is_none()) else {
            return;
        };
        self.say(process, 0, "fork", &[child as i64]);
    }

    /// A slot of a kind if there is one; now and then any.
    fn slot(&mut self, process: usize, kind: Kind) -> i64 {
        let slots = self.slots[process].unwrap_or([Kind::Nothing; SLOTS as usize]);
        let fit: Vec<i64> = (0..SLOTS).filter(|&i| slots[i as usize] == kind).collect();
        if fit.is_empty() || self.one_in(40) {
            return self.below(SLOTS);
        }
        self.of(&fit)
    }

    /// Fewer than both ends of one connection: most steps would be on none.
    fn has_few(&self, process: usize) -> bool {
        let is_connection = |k: &&Kind| matches!(k, Kind::Connection | Kind::Stream);
        self.slots[process].is_some_and(|slots| slots.iter().filter(is_connection).count() < 2)
    }

    fn free_slot(&mut self, process: usize) -> i64 {
        self.slot(process, Kind::Nothing)
    }

    fn conn(&mut self, process: usize) -> i64 {
        // What goes round a stream's buffer, now and then.
        let around = self.mix == Mix::Stdio && self.one_in(4);
        self.slot(
            process,
            if around {
                Kind::Stream
            } else {
                Kind::Connection
            },
        )
    }

    /// Few bytes as a rule: what the kernel's buffers hold is not what a ring holds.
    fn length(&mut self) -> i64 {
        match self.below(12) {
            0 => 0,
            1 => 1,
            2 => 1 + self.below(4000),
            3 => 1 + self.below(16000),
            _ => 1 + self.below(200),
        }
    }

    fn step(&mut self) {
        let alive: Vec<usize> = (0..PROCESSES)
            .filter(|&p| self.slots[p].is_some())
            .collect();
        let Some(_) = alive.first() else { return };
        let p = self.of(&alive);
        let t = self.below(self.pen.script.threads as i64) as usize;
        if self.has_few(p) && self.one_in(6) {
            let (a, b) = (self.free_slot(p), self.free_slot(p));
            if a != b {
                return self.pair(p, t, a, b);
            }
        }
        let weights: [u64; 9] = match self.mix {
            Mix::Transfer => [40, 6, 12, 0, 0, 3, 0, 0, 0],
            Mix::Ready => [22, 30, 8, 0, 0, 3, 0, 0, 1],
            Mix::Blocked => [36, 14, 8, 0, 14, 3, 0, 0, 0],
            Mix::Processes => [34, 8, 10, 12, 0, 2, 0, 0, 4],
            Mix::Urgent => [36, 16, 8, 0, 3, 1, 0, 0, 0],
            Mix::Stdio => [20, 4, 6, 2, 1, 1, 36, 0, 1],
            Mix::Options => [16, 2, 4, 0, 0, 3, 0, 40, 0],
            _ => [30, 16, 10, 6, 6, 3, 6, 4, 2],
        };
        match self.weighed(&weights) {
            0 if self.one_in(2) => self.sends(p, t),
            0 => self.receives(p, t),
            1 => self.waits(p, t),
            2 => self.changes(p, t),
            3 => self.processes(p, t),
            4 => self.signals(p, t),
            5 => self.opens(p, t),
            6 => self.stdio(p, t),
            7 => self.options(p, t),
            _ => self.starts(p, t),
        }
    }

    fn is_urgent(&mut self) -> bool {
        match self.mix {
            Mix::Urgent => self.one_in(3),
            Mix::All => self.one_in(20),
            _ => false,
        }
    }

    fn send_flags(&mut self) -> i64 {
        let flags = [
            0,
            libc::MSG_DONTWAIT,
            libc::MSG_DONTWAIT | libc::MSG_EOR,
            libc::MSG_CONFIRM,
            libc::MSG_DONTROUTE,
            libc::MSG_ZEROCOPY,
        ];
        let urgent = if self.is_urgent() { libc::MSG_OOB } else { 0 };
        let quiet = if self.one_in(2) {
            libc::MSG_NOSIGNAL
        } else {
            0
        };
        (self.of(&flags) | urgent | quiet | self.strange_flag()) as i64
    }

    fn sends(&mut self, p: usize, t: usize) {
        let slot = self.conn(p);
        let (n, m, k) = (self.length(), self.length(), self.length());
        let flags = self.send_flags();
        if self.pours() {
            return self.pour(p, t, slot);
        }
        match self.below(11) {
            0..=2 => self.say(p, t, "write", &[slot, n]),
            3 | 4 => self.say(p, t, "send", &[slot, n, flags]),
            5 => {
                let len = self.of(&[0, 16, 16, 16, 4, 200, -1]);
                self.say(p, t, "sendto", &[slot, n, flags, len]);
            }
            6 => self.say(p, t, "writev", &[slot, n, m, k]),
            7 => self.say(p, t, "sendmsg", &[slot, n, m, flags]),
            8 => self.say(p, t, "sendmmsg", &[slot, n, m, flags]),
            9 => {
                let way = self.below(2);
                self.say(p, t, "piped", &[slot, n, m, way]);
            }
            _ => self.say(p, t, "sendfile", &[slot, n, k]),
        }
    }

    /// Where nobody else may take what is poured, or be woken by it in the midst.
    fn pours(&mut self) -> bool {
        let alone = matches!(self.mix, Mix::Transfer | Mix::Ready | Mix::Options);
        alone && self.pen.script.threads == 1 && self.one_in(25)
    }

    /// Fills a connection, whose other end is as a rule the slot beside it, and empties it again.
    fn pour(&mut self, p: usize, t: usize, slot: i64) {
        let (piece, room) = (
            self.of(&[1000, 4096, 5000, 777]),
            self.of(&[5000, 4999, 600]),
        );
        let what = self.of(&[0, 0, 1, 2, 3]);
        self.say(p, t, "pour", &[slot, piece, slot ^ 1, room, what]);
    }

    /// One that means nothing to TCP, or that no program may set; seldom.
    fn strange_flag(&mut self) -> i32 {
        if !self.one_in(12) {
            return 0;
        }
        self.of(&[
            libc::MSG_CTRUNC,
            0x10,
            libc::MSG_FIN,
            libc::MSG_SYN,
            libc::MSG_RST,
            libc::MSG_WAITFORONE,
            libc::MSG_FASTOPEN,
            0x40000,
            i32::MIN,
        ])
    }

    fn receive_flags(&mut self) -> i64 {
        let mut flags = 0;
        for (flag, share) in [
            (libc::MSG_DONTWAIT, 2),
            (libc::MSG_PEEK, 5),
            (libc::MSG_TRUNC, 8),
            (libc::MSG_WAITALL, 8),
            (libc::MSG_CMSG_CLOEXEC, 12),
            (libc::MSG_ERRQUEUE, 25),
        ] {
            if self.one_in(share) {
                flags |= flag;
            }
        }
        if self.is_urgent() {
            flags |= libc::MSG_OOB;
        }
        (flags | self.strange_flag()) as i64
    }

    fn receives(&mut self, p: usize, t: usize) {
        let slot = self.conn(p);
        let (mut n, mut m) = (self.length(), self.length());
        let flags = self.receive_flags();
        if matches!(self.mix, Mix::Processes | Mix::All) && flags & libc::MSG_DONTWAIT as i64 == 0 {
            // A wait for nothing on a shared end is a row of docs/deviations.md.
            (n, m) = (n.max(1), m.max(1));
        }
        match self.below(10) {
            0 | 1 => self.say(p, t, "read", &[slot, n]),
            2..=5 => self.say(p, t, "recv", &[slot, n, flags]),
            6 => self.say(p, t, "recvfrom", &[slot, n, flags]),
            7 => self.say(p, t, "readv", &[slot, n, m]),
            8 => self.say(p, t, "recvmsg", &[slot, n, m, flags]),
            _ => {
                let ms = if self.one_in(6) {
                    self.wrong_time()
                } else {
                    self.of(&[-1, 0, 20])
                };
                let flags = flags | self.of(&[0, libc::MSG_WAITFORONE]) as i64;
                self.say(p, t, "recvmmsg", &[slot, n, m, flags, ms]);
            }
        }
    }

    /// As `during` in `c/any.c` has them.
    fn wrong_time(&mut self) -> i64 {
        -2 - self.below(4)
    }

    /// The same for a call that says its time in seconds and parts of them.
    fn exact_limit(&mut self) -> i64 {
        match self.one_in(10) {
            true => self.wrong_time(),
            false => self.limit(),
        }
    }

    /// As `masking` in `c/any.c` has it.
    fn mask(&mut self) -> i64 {
        self.of(&[0, 0, 1, 2])
    }

    fn limit(&mut self) -> i64 {
        let blocked = self.mix == Mix::Blocked;
        match self.below(8) {
            0 => 20,
            1 if blocked => -1,
            _ => 0,
        }
    }

    fn events(&mut self) -> i64 {
        let mut events = 0;
        for (event, share) in [
            (libc::POLLIN, 1),
            (libc::POLLOUT, 2),
            (libc::POLLRDHUP, 3),
            (libc::POLLPRI, 4),
            (libc::POLLRDNORM, 8),
            (libc::POLLWRNORM, 8),
        ] {
            if self.one_in(share) {
                events |= event;
            }
        }
        if self.one_in(8) { 0 } else { events as i64 }
    }

    fn waits(&mut self, p: usize, t: usize) {
        match self.below(10) {
            way @ 0..=2 => {
                let exact = way == 0;
                let ms = if exact {
                    self.exact_limit()
                } else {
                    self.limit()
                };
                let mut numbers = vec![ms];
                for _ in 0..3 {
                    let kind = self.of(&[Kind::Connection, Kind::Connection, Kind::Set]);
                    let slot = self.slot(p, kind);
                    let what = slot | self.events() << 4;
                    numbers.push(if self.one_in(3) { -1 } else { what });
                }
                if exact {
                    let mask = self.mask();
                    numbers.push(mask);
                }
                self.say(p, t, if exact { "ppoll" } else { "poll" }, &numbers);
            }
            3 => {
                let mut mask = || {
                    let slot = self.conn(p);
                    let other = self.slot(p, Kind::Connection);
                    if self.one_in(3) {
                        0
                    } else {
                        1 << slot | 1 << other
                    }
                };
                let masks = [mask(), mask(), mask()];
                let ms = self.exact_limit();
                let (name, last) = match self.one_in(2) {
                    true => ("select", i64::from(self.one_in(12))),
                    false => ("pselect", self.mask()),
                };
                self.say(p, t, name, &[ms, masks[0], masks[1], masks[2], last]);
            }
            4..=6 => {
                let set = self.slot(p, Kind::Set);
                // What a set has no room for is told in an order of its own.
                let room = if self.one_in(10) {
                    self.of(&[0, -1])
                } else {
                    SLOTS
                };
                match self.below(8) {
                    0 => {
                        let (ms, mask) = (self.limit(), self.mask());
                        self.say(p, t, "epoll_pwait", &[set, room, ms, mask]);
                    }
                    1 => {
                        let (ms, mask) = (self.exact_limit(), self.mask());
                        self.say(p, t, "epoll_pwait2", &[set, room, ms, mask]);
                    }
                    2 => {
                        let room = self.of(&[1, 1, 2, 3]);
                        self.say(p, t, "epoll_little", &[set, room]);
                    }
                    _ => {
                        let ms = self.limit();
                        self.say(p, t, "epoll_wait", &[set, room, ms]);
                    }
                }
            }
            _ => {
                let set = self.slot(p, Kind::Set);
                let kind = self.of(&[
                    Kind::Connection,
                    Kind::Connection,
                    Kind::Connection,
                    Kind::Set,
                ]);
                let slot = self.slot(p, kind);
                let mut events = self.events();
                for (flag, share) in [
                    (libc::EPOLLET, 2),
                    (libc::EPOLLONESHOT, 4),
                    (libc::EPOLLEXCLUSIVE, 12),
                ] {
                    if self.one_in(share) {
                        events |= flag as u32 as i64;
                    }
                }
                let op = self.of(&[
                    libc::EPOLL_CTL_ADD,
                    libc::EPOLL_CTL_ADD,
                    libc::EPOLL_CTL_MOD,
                    libc::EPOLL_CTL_DEL,
                ]);
                self.say(p, t, "epoll_ctl", &[set, op as i64, slot, events]);
            }
        }
    }

    fn changes(&mut self, p: usize, t: usize) {
        let slot = self.conn(p);
        match self.below(20) {
            0 | 1 => {
                let how = self.of(&[libc::SHUT_RD, libc::SHUT_WR, libc::SHUT_RDWR, 3]);
                self.say(p, t, "shutdown", &[slot, how as i64]);
            }
            2 | 3 => {
                self.say(p, t, "close", &[slot]);
            }
            4 => {
                let to = self.free_slot(p);
                let name = self.of(&["dup", "dupfd"]);
                self.say(p, t, name, &[to, slot]);
            }
            5 => {
                let onto = self.conn(p);
                let flags = self.of(&[0, libc::O_CLOEXEC, 1]);
                match self.one_in(2) {
                    true => self.say(p, t, "dup2", &[onto, slot]),
                    false => self.say(p, t, "dup3", &[onto, slot, flags as i64]),
                }
            }
            6 | 7 => {
                let (on, way) = (self.below(2), self.below(2));
                self.say(p, t, "nonblock", &[slot, on, way]);
            }
            8 => self.say(p, t, "getfl", &[slot]),
            9..=11 => match self.below(4) {
                0 => self.say(p, t, "atmark", &[slot]),
                _ => {
                    let request = self.of(&[libc::FIONREAD as i64, 0x8905]);
                    self.say(p, t, "number", &[slot, request]);
                }
            },
            12..=14 => {
                let (level, option) = self.of(&[
                    (libc::SOL_SOCKET, libc::SO_ERROR),
                    (libc::SOL_SOCKET, libc::SO_TYPE),
                    (libc::SOL_SOCKET, libc::SO_ACCEPTCONN),
                    (libc::SOL_SOCKET, libc::SO_RCVLOWAT),
                    (libc::SOL_SOCKET, libc::SO_PROTOCOL),
                    (libc::SOL_SOCKET, libc::SO_DOMAIN),
                    (libc::SOL_SOCKET, libc::SO_KEEPALIVE),
                    (libc::SOL_SOCKET, libc::SO_LINGER),
                    (libc::IPPROTO_TCP, libc::TCP_NODELAY),
                    (libc::IPPROTO_TCP, 9999),
                ]);
                let room = self.of(&[4, 4, 1, 8, 0]);
                self.say(p, t, "getopt", &[slot, level as i64, option as i64, room]);
            }
            15 | 16 => {
                let (level, option, value) = self.of(&[
                    (libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1),
                    (libc::SOL_SOCKET, libc::SO_RCVLOWAT, 1),
                    (libc::SOL_SOCKET, libc::SO_OOBINLINE, 1),
                    (libc::SOL_SOCKET, libc::SO_OOBINLINE, 0),
                    (libc::IPPROTO_TCP, libc::TCP_NODELAY, 1),
                    (libc::IPPROTO_TCP, libc::TCP_QUICKACK, 1),
                    (libc::IPPROTO_TCP, 9999, 1),
                ]);
                let len = self.of(&[4, 4, 4, 1]);
                let numbers = [slot, level as i64, option as i64, value, len];
                self.say(p, t, "setopt", &numbers);
            }
            17 => {
                let option = self.of(&[libc::SO_RCVTIMEO, libc::SO_SNDTIMEO]) as i64;
                if self.one_in(3) {
                    let (seconds, micros) = self.of(&[
                        (0, 20_000),
                        (0, -1),
                        (-1, 0),
                        (0, 1_000_000),
                        (-1, -1),
                        (0, 0),
                    ]);
                    let len = self.of(&[16, 16, 16, 8, 0, 24, -1]);
                    return self.say(p, t, "limit", &[slot, option, seconds, micros, len]);
                }
                self.say(p, t, "timeout", &[slot, option, 20]);
            }
            18 => {
                let (on, seconds) = self.of(&[(0, 0), (1, 0), (1, 1)]);
                self.say(p, t, "linger", &[slot, on, seconds]);
            }
            _ => {
                let name = self.of(&["names", "stat"]);
                self.say(p, t, name, &[slot]);
            }
        }
    }

    fn processes(&mut self, p: usize, t: usize) {
        match self.below(10) {
            0 | 1 => self.fork(p),
            2 => {
                // Epoll sets and connections stay; nothing here is closed to exec but by `cloexec` and `dupfd`.
                self.say(p, 0, "exec", &[]);
            }
            3 => {
                let (slot, on) = (self.conn(p), self.below(2));
                self.say(p, t, "cloexec", &[slot, on]);
            }
            4 | 5 => {
                let slot = self.conn(p);
                self.say(p, t, "give", &[slot]);
                let alive: Vec<usize> = (0..PROCESSES)
                    .filter(|&q| self.slots[q].is_some())
                    .collect();
                let q = self.of(&alive);
                let to = self.free_slot(q);
                self.say(q, t, "take", &[to]);
            }
            6 if p > 0 => {
                self.say(p, 0, "kill", &[]);
            }
            7 if p > 0 => {
                let way = self.below(2);
                self.say(p, 0, "exit", &[way]);
            }
            _ => {
                let slot = self.conn(p);
                self.say(p, t, "close", &[slot]);
            }
        }
    }

    fn signals(&mut self, p: usize, t: usize) {
        match self.below(10) {
            0 if self.mix == Mix::Urgent => {
                let slot = self.conn(p);
                return self.say(p, t, "own", &[slot]);
            }
            0 | 1 => return self.say(p, t, "handled", &[]),
            2 => {
                let on = self.below(2);
                return self.say(p, t, "block", &[on]);
            }
            _ => {}
        }
        let other = (t + 1) % self.pen.script.threads;
        self.say(p, t, "signal", &[other as i64]);
    }

    fn opens(&mut self, p: usize, t: usize) {
        match self.below(6) {
            0 => {
                let slot = self.free_slot(p);
                self.say(p, t, "epoll_create", &[slot]);
            }
            1 => {
                let slot = self.free_slot(p);
                self.say(p, t, "listen", &[slot, 5]);
            }
            2 => {
                let (slot, to) = (self.free_slot(p), self.slot(p, Kind::Listener));
                let non = self.below(2);
                self.say(p, t, "connect", &[slot, to, non]);
            }
            3 => {
                let (slot, from) = (self.free_slot(p), self.slot(p, Kind::Listener));
                let name = self.of(&["accept", "accept4"]);
                self.say(p, t, name, &[slot, from]);
            }
            4 => {
                let (a, b) = (self.free_slot(p), self.free_slot(p));
                if a != b {
                    self.say(p, t, "pipe", &[a, b]);
                }
            }
            _ => {
                let (from, to) = (self.conn(p), self.slot(p, Kind::Pipe));
                let n = self.length();
                let flags = (libc::SPLICE_F_NONBLOCK) as i64;
                self.say(p, t, "splice", &[from, to, n, flags]);
            }
        }
    }
}
