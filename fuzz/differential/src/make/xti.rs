//! Scripts over transport endpoints.

use headwater_e2e::chance::Chance;

use super::{Makes, PROCESSES, Pen};
use crate::script::{Over, Script};

/// Addresses that scripts name; 0 is not bound, as a rule.
const ADDRESSES: i64 = 5;
/// For endpoints. Behind them is an epoll set of each process.
const SLOTS: i64 = super::SLOTS - PROCESSES as i64;
/// Bytes sent by a script at most, beside those of floods.
const MOST: i64 = 30_000;

const T_MORE: i64 = 1;
const T_EXPEDITED: i64 = 2;
const T_PUSH: i64 = 4;
/// T_NEGOTIATE, T_CHECK, T_DEFAULT, T_CURRENT, and one that is none.
const REQUESTS: [i64; 5] = [0x04, 0x08, 0x10, 0x80, 0x4000];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Provider {
    Ticlts,
    Ticots,
    Ticotsord,
    Tcp,
    Udp,
    Udp2,
    Sctp,
}
use Provider::*;

impl Provider {
    fn has_connections(self) -> bool {
        matches!(self, Ticots | Ticotsord | Tcp | Sctp)
    }
}

/// What lies in a slot, as far as the generator knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Nothing,
    Unbound,
    Bound(i64),
    Listener(i64),
    /// And the slot of its peer.
    Connected(i64),
    /// To a peer that is gone.
    Left,
}

struct Maker {
    pen: Pen,
    provider: Provider,
    /// Of each slot, and the process that it is in.
    slots: [(Kind, usize); SLOTS as usize],
    processes: usize,
    /// Several requests are outstanding at a time. Then no client takes one back: whether that is told before a later request
    /// is not the same for all ways.
    many: bool,
    next_address: i64,
    sent: i64,
    has_set: [bool; PROCESSES],
    /// Are endpoints in it asked for room?
    has_room: [bool; PROCESSES],
    /// Of what each slot is an endpoint.
    providers: [Provider; SLOTS as usize],
    /// In which another thread may wait. It is not closed nor cut off: by messages such a call goes on.
    may_wait: [bool; SLOTS as usize],
}

pub fn xti(seed: u64) -> Script {
    let mut chance = Chance::new(seed);
    let many = chance.below(4) == 0;
    let threads = if chance.below(4) == 0 { 2 } else { 1 };
    let mut maker = Maker {
        pen: Pen::new(chance, Over::Xti, threads),
        provider: Ticots,
        slots: [(Kind::Nothing, 0); SLOTS as usize],
        processes: 1,
        many,
        next_address: 1,
        sent: 0,
        has_set: [false; PROCESSES],
        has_room: [false; PROCESSES],
        providers: [Ticots; SLOTS as usize],
        may_wait: [false; SLOTS as usize],
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
        self.provider = self.of(&[
            Ticlts, Ticots, Ticots, Ticotsord, Ticotsord, Ticotsord, Tcp, Tcp, Udp, Udp2, Sctp,
            Sctp,
        ]);
        if self.one_in(5) {
            self.say(0, 0, "fork", &[1]);
            self.processes = 2;
        }
        match self.provider.has_connections() {
            true => self.connection(),
            false => {
                for _ in 0..2 {
                    self.opened();
                }
            }
        }
        for _ in 0..self.steps(8, 30) {
            self.step();
        }
    }

    fn at(&mut self, slot: i64, name: &str, numbers: &[i64]) {
        let all: Vec<i64> = [slot].iter().chain(numbers).copied().collect();
        let process = self.slots[slot as usize].1;
        let thread = self.thread();
        self.say(process, thread, name, &all);
    }

    fn threads(&mut self) -> usize {
        self.pen.script.threads
    }

    fn thread(&mut self) -> usize {
        match self.threads() {
            1 => 0,
            threads => self.below(threads as i64) as usize,
        }
    }

    /// Is there nobody but who makes the next step?
    fn is_alone(&mut self) -> bool {
        self.processes == 1 && self.threads() == 1
    }

    fn set(&mut self, slot: i64, kind: Kind) {
        self.slots[slot as usize].0 = kind;
    }

    /// This end of a connection is closed or cut off. From now on the other end sends nothing: whether it hears what was told
    /// before, or of its failure first, is not the same for all ways.
    fn left(&mut self, slot: i64) {
        if let Kind::Connected(peer) = self.slots[slot as usize].0 {
            self.set(peer, Kind::Left);
        }
    }

    fn free(&mut self) -> i64 {
        let free: Vec<i64> = (0..SLOTS)
            .filter(|&i| self.slots[i as usize].0 == Kind::Nothing)
            .collect();
        // Not all ways end a wait at what is closed under it.
        let idle: Vec<i64> = (0..SLOTS).filter(|&i| !self.may_wait[i as usize]).collect();
        match (&free[..], &idle[..]) {
            ([slot, ..], _) => *slot,
            ([], []) => self.below(SLOTS),
            ([], idle) => self.of(idle),
        }
    }

    /// Calls that would wait fail, but where somebody else can go on.
    fn nonblocking(&mut self) -> i64 {
        let waits = !self.is_alone() && self.one_in(2) || self.one_in(30);
        i64::from(!waits)
    }

    fn open(&mut self) -> i64 {
        let slot = self.free();
        self.left(slot);
        let process = self.below(self.processes as i64) as usize;
        self.slots[slot as usize] = (Kind::Unbound, process);
        let provider = match self.one_in(30) {
            true => self.of(&[Ticlts, Ticots, Ticotsord, Tcp, Udp, Udp2, Sctp]),
            false => self.provider,
        };
        self.providers[slot as usize] = provider;
        let nonblocking = self.nonblocking();
        self.may_wait[slot as usize] = nonblocking == 0 && self.threads() > 1;
        self.at(slot, "t_open", &[provider as i64, nonblocking]);
        slot
    }

    /// A bound one, with connections a listener now and then.
    fn opened(&mut self) {
        let slot = self.open();
        let listens = self.provider.has_connections() && self.one_in(2);
        self.bind(slot, listens);
    }

    fn bind(&mut self, slot: i64, listens: bool) {
        let address = match self.below(8) {
            0 => -1,
            1 => 1 + self.below(ADDRESSES - 1),
            _ => {
                self.next_address = self.next_address % (ADDRESSES - 1) + 1;
                self.next_address
            }
        };
        let qlen = match (listens, self.many) {
            (true, true) => 1 + self.below(3),
            (listens, _) => i64::from(listens),
        };
        self.at(slot, "t_bind", &[address, qlen]);
        let has = |&(kind, _): &(Kind, usize)| {
            address >= 0 && [Kind::Bound(address), Kind::Listener(address)].contains(&kind)
        };
        // A second time, or to what another one has, it fails.
        if self.slots[slot as usize].0 == Kind::Unbound && !self.slots.iter().any(has) {
            self.set(
                slot,
                match listens {
                    true => Kind::Listener(address),
                    false => Kind::Bound(address),
                },
            );
        }
    }

    fn listener(&mut self) -> (i64, i64) {
        for slot in 0..SLOTS {
            if let (Kind::Listener(address), _) = self.slots[slot as usize]
                && self.below(3) > 0
            {
                return (slot, address);
            }
        }
        let slot = self.open();
        self.bind(slot, true);
        match self.slots[slot as usize].0 {
            Kind::Listener(address) => (slot, address),
            _ => (slot, -1),
        }
    }

    /// The whole of it, with something else in between now and then.
    fn connection(&mut self) {
        let (listener, address) = self.listener();
        let client = self.open();
        self.bind(client, false);
        let data = self.call_data();
        let room = self.room_for_call();
        self.at(client, "t_connect", &[address, data, room]);
        self.between();
        let room = self.room_for_call();
        self.at(listener, "t_listen", &[room]);
        self.between();
        let on = match self.one_in(8) {
            true => listener,
            false => {
                let on = self.open();
                self.slots[on as usize].1 = self.slots[listener as usize].1;
                if let Some(step) = self.pen.script.steps.last_mut() {
                    step.process = self.slots[listener as usize].1;
                }
                if self.one_in(4) {
                    self.bind(on, false);
                }
                on
            }
        };
        let data = self.call_data();
        self.at(listener, "t_accept", &[on, 0, data]);
        // What is sent now may come before the connection is confirmed.
        if self.one_in(4) {
            self.asks();
        }
        let room = self.room_for_call();
        self.at(client, "t_rcvconnect", &[room]);
        for (end, peer) in [(client, on), (on, client)] {
            match (self.slots[end as usize].0, self.slots[peer as usize].0) {
                (Kind::Nothing, _) => {}
                (_, Kind::Nothing) => self.set(end, Kind::Left),
                // Nothing was accepted.
                _ if self.provider == Tcp && data > 0 => self.set(end, Kind::Left),
                _ => self.set(end, Kind::Connected(peer)),
            }
        }
    }

    fn between(&mut self) {
        if self.one_in(4) {
            self.step();
        }
    }

    fn call_data(&mut self) -> i64 {
        // TCP and SCTP have none, and say so.
        match matches!(self.provider, Tcp | Sctp) && !self.one_in(20) {
            true => self.of(&[-1, 0]),
            false => self.of(&[-1, -1, -1, 0, 7, 1000]),
        }
    }

    fn room_for_call(&mut self) -> i64 {
        self.of(&[2000, 2000, 2000, 2000, -1, 3])
    }

    fn length(&mut self) -> i64 {
        let n = match self.below(14) {
            0 => 0,
            1 => 1,
            2 => 1 + self.below(4000),
            _ => 1 + self.below(100),
        };
        if self.sent + n > MOST {
            return 1;
        }
        self.sent += n;
        n
    }

    /// One that is open as a rule.
    fn any(&mut self) -> i64 {
        let open: Vec<i64> = (0..SLOTS)
            .filter(|&i| self.slots[i as usize].0 != Kind::Nothing)
            .collect();
        if open.is_empty() || self.one_in(50) {
            return self.below(SLOTS);
        }
        self.of(&open)
    }

    /// One of a connection, and its peer.
    fn connected(&mut self) -> (i64, i64) {
        let ends: Vec<(i64, i64)> = (0..SLOTS)
            .filter_map(|i| match self.slots[i as usize].0 {
                Kind::Connected(peer) => Some((i, peer)),
                _ => None,
            })
            .collect();
        if !ends.is_empty() && !self.one_in(30) {
            return self.of(&ends);
        }
        let (slot, other) = (self.any(), self.any());
        match self.slots[slot as usize].0 {
            Kind::Left => (self.free(), other),
            _ => (slot, other),
        }
    }

    /// One that has, or had, a connection.
    fn receiver(&mut self) -> i64 {
        let left: Vec<i64> = (0..SLOTS)
            .filter(|&i| self.slots[i as usize].0 == Kind::Left)
            .collect();
        match left.is_empty() || self.one_in(2) {
            true => self.connected().0,
            false => self.of(&left),
        }
    }

    fn step(&mut self) {
        match self.provider.has_connections() {
            true => match self.weighed(&[24, 26, 14, 12, 8, 6, 6, 4, 8]) {
                0 => self.sends(),
                1 => self.receives(),
                2 => self.asks(),
                3 => self.waits(),
                4 => self.ends(),
                5 => self.connects(),
                6 => self.closes(),
                7 => self.options(),
                _ => {
                    let slot = self.any();
                    self.at(slot, "t_turn", &[]);
                }
            },
            false => match self.weighed(&[30, 30, 14, 12, 6, 4, 4, 6]) {
                0 => self.sends_datagrams(),
                1 => self.receives_datagrams(),
                2 => self.asks(),
                3 => self.waits(),
                4 => self.opened(),
                5 => self.closes(),
                6 => self.options(),
                _ => {
                    let slot = self.any();
                    self.at(slot, "t_turn", &[]);
                }
            },
        }
    }

    fn sends(&mut self) {
        let (slot, peer) = self.connected();
        let (kind, provider) = (self.slots[slot as usize].0, self.providers[slot as usize]);
        // Its peer may have left, of which nobody knows here.
        if provider == Tcp && !matches!(kind, Kind::Nothing | Kind::Connected(_)) {
            return self.asks();
        }
        let flags = self.of(&[
            0,
            0,
            0,
            0,
            T_MORE,
            T_MORE,
            T_EXPEDITED,
            T_EXPEDITED | T_MORE,
            T_PUSH,
            8,
        ]);
        if provider == Tcp && flags & T_EXPEDITED != 0 {
            // TCP knows of one urgent byte at a time: an earlier one that was not received is data again.
            if !self.is_alone() || self.slots[slot as usize].0 != Kind::Connected(peer) {
                return self.asks();
            }
            let room = self.of(&[1, 5, 5000]);
            return self.at(slot, "t_urgent", &[peer, room]);
        }
        let n = self.length();
        match self.below(16) {
            0..=2 => {
                let (m, k) = (self.length(), self.length());
                self.at(slot, "t_sndv", &[n, m, k, flags]);
            }
            3 if self.is_alone() && self.slots[slot as usize].0 == Kind::Connected(peer) => {
                let piece = self.of(&[100, 1000, 4000]);
                self.at(slot, "t_flood", &[piece, peer]);
            }
            _ => self.at(slot, "t_snd", &[n, flags]),
        }
    }

    fn room(&mut self) -> i64 {
        self.of(&[0, 1, 5, 50, 200, 5000, 5000, 5000])
    }

    fn receives(&mut self) {
        let (slot, n, m) = (self.receiver(), self.room(), self.room());
        match self.below(5) {
            // Of two that wait either may be the first.
            _ if self.may_wait[slot as usize] => self.asks(),
            0 => self.at(slot, "t_rcvv", &[n, m]),
            _ => self.at(slot, "t_rcv", &[n]),
        }
    }

    fn asks(&mut self) {
        let slot = self.any();
        match self.below(10) {
            0..=3 => self.at(slot, "t_look", &[]),
            4..=6 => self.at(slot, "t_getstate", &[]),
            7 => self.at(slot, "t_sync", &[]),
            8 => self.at(slot, "t_getinfo", &[]),
            _ if self.slots[slot as usize].0 == Kind::Left => self.at(slot, "t_look", &[]),
            _ => {
                let room = self.of(&[300, 300, 0, 3]);
                self.at(slot, "t_getprotaddr", &[room]);
            }
        }
    }

    /// An epoll set of the process that the endpoint is in, edge-triggered ones apart: by messages several arrivals may be one edge.
    fn set_waits(&mut self, slot: i64) {
        let process = self.slots[slot as usize].1;
        let set = SLOTS + process as i64;
        if !self.has_set[process] {
            self.has_set[process] = true;
            self.say(process, 0, "epoll_create", &[set]);
        }
        let room = match self.providers[slot as usize].has_connections() {
            true => 0,
            false => self.of(&[0, libc::EPOLLOUT]),
        };
        let once = self.of(&[0, 0, 0, libc::EPOLLONESHOT]);
        let events = (libc::EPOLLIN | room | once) as i64;
        let which = self.below(8);
        self.has_room[process] |= room != 0 && which <= 3;
        match which {
            0..=2 => self.say(
                process,
                0,
                "epoll_ctl",
                &[set, libc::EPOLL_CTL_ADD.into(), slot, events],
            ),
            3 => self.say(
                process,
                0,
                "epoll_ctl",
                &[set, libc::EPOLL_CTL_MOD.into(), slot, events],
            ),
            4 => self.say(
                process,
                0,
                "epoll_ctl",
                &[set, libc::EPOLL_CTL_DEL.into(), slot, 0],
            ),
            // Of room poll can't leave out what the steps do.
            5 if !self.has_room[process] => {
                let of = |slot: i64| slot | i64::from(libc::POLLIN) << 4;
                self.say(process, 0, "poll", &[0, of(set), of(slot), -1]);
            }
            _ => {
                let ms = self.of(&[0, 0, 0, 20]);
                self.say(process, 0, "t_epoll_wait", &[set, 4, ms]);
            }
        }
    }

    fn waits(&mut self) {
        let slot = self.any();
        if self.one_in(2) {
            return self.set_waits(slot);
        }
        // Of room where there is some, or none: of what has ended, and of a stream, poll says other things.
        let events = match self.provider.has_connections() {
            true => libc::POLLIN,
            false => libc::POLLIN | self.of(&[0, libc::POLLOUT]),
        } as i64;
        let ms = self.of(&[0, 0, 0, 20]);
        self.at(slot, "t_poll", &[events, ms]);
    }

    fn ends(&mut self) {
        let (slot, _) = self.connected();
        let n = self.of(&[-1, -1, 0, 5, 1000]);
        match self.below(12) {
            0..=2 => self.at(slot, "t_sndrel", &[]),
            3..=5 => {
                let slot = self.receiver();
                self.at(slot, "t_rcvrel", &[]);
            }
            6 | 7 => {
                // Of a request that is taken back a listener may have heard already.
                let connected = matches!(self.slots[slot as usize].0, Kind::Connected(_));
                if self.may_wait[slot as usize] || !connected && (self.many || self.provider == Tcp)
                {
                    return self.asks();
                }
                self.left(slot);
                let which = self.of(&[-1, -1, -1, 0, 1]);
                self.at(slot, "t_snddis", &[which, n]);
            }
            8 | 9 => {
                let (slot, room) = (self.receiver(), self.of(&[2000, 2000, -1, 2]));
                self.at(slot, "t_rcvdis", &[room]);
            }
            10 => self.at(slot, "t_sndreldata", &[n.max(0)]),
            _ => self.at(slot, "t_rcvreldata", &[100]),
        }
    }

    fn connects(&mut self) {
        let (slot, room) = (self.any(), self.room_for_call());
        match self.below(8) {
            0 => self.connection(),
            1 => self.opened(),
            2 => {
                let (address, data) = (self.below(ADDRESSES), self.call_data());
                // Whose request the next is that is heard there nobody knows here.
                let listens = |&(kind, _): &(Kind, usize)| kind == Kind::Listener(address);
                if self.provider == Tcp && self.slots.iter().any(listens) {
                    return self.asks();
                }
                self.at(slot, "t_connect", &[address, data, room]);
            }
            3 => {
                let (listener, _) = self.listener();
                self.at(listener, "t_listen", &[room]);
            }
            4 => {
                let (listener, _) = self.listener();
                let (on, which, data) = (self.any(), self.of(&[0, 0, 1, -1]), self.call_data());
                self.at(listener, "t_accept", &[on, which, data]);
                // Whose connection that is nobody knows here, nor when its peer leaves.
                if self.provider == Tcp && on != listener {
                    self.set(on, Kind::Left);
                }
            }
            5 => {
                let (listener, _) = self.listener();
                let (which, data) = (self.of(&[0, 0, 1, -1]), self.call_data());
                // Its client may hear of that alone, or of T_CONNECT before; who waits there may wait on.
                if self.provider == Tcp || self.may_wait[listener as usize] {
                    return;
                }
                self.at(listener, "t_snddis", &[which, data]);
            }
            6 => self.at(slot, "t_rcvconnect", &[room]),
            _ => self.at(slot, "t_rcvdis", &[2000]),
        }
    }

    fn closes(&mut self) {
        let slot = self.any();
        let connected = matches!(self.slots[slot as usize].0, Kind::Connected(_) | Kind::Left);
        if !connected && (self.many || self.provider == Tcp) {
            return self.asks();
        }
        let which = match self.may_wait[slot as usize] {
            true => 4,
            false => self.below(8),
        };
        match which {
            0 => {
                self.at(slot, "t_unbind", &[]);
                self.set(slot, Kind::Unbound);
            }
            1 => self.bind(slot, false),
            2 | 3 => {
                self.left(slot);
                self.at(slot, "close", &[]);
                self.set(slot, Kind::Nothing);
            }
            4 => {
                let on = self.nonblocking();
                self.may_wait[slot as usize] |= on == 0 && self.threads() > 1;
                self.at(slot, "nonblock", &[on, 0]);
            }
            _ => {
                self.left(slot);
                self.at(slot, "t_close", &[]);
                self.set(slot, Kind::Nothing);
            }
        }
    }

    fn options(&mut self) {
        let slot = self.any();
        let (request, which) = (self.of(&REQUESTS), self.below(22));
        // Buffers stay large: when an endpoint is full is not the same for all ways.
        let value = match which {
            0 | 1 if matches!(self.providers[slot as usize], Ticlts | Udp2) => {
                self.of(&[100_000, -1])
            }
            0 | 1 => self.of(&[100_000, 0, -1]),
            2 | 3 => 1,
            _ => self.of(&[0, 1, 5, 64, -1]),
        };
        // Eight bytes hold a mark that no connection reaches, and what came before it was set is told or not. One byte
        // would be a small buffer.
        let lengths = match which {
            0 | 1 => [4, 4, 4, 8, 4, 0, 3],
            2 | 3 => [4, 4, 4, 4, 1, 0, 3],
            _ => [4, 4, 4, 8, 1, 0, 3],
        };
        let (len, room) = (self.of(&lengths), self.of(&[1000, 1000, 1000, 20, 3]));
        self.at(slot, "t_optmgmt", &[request, which, value, len, room]);
    }

    fn sends_datagrams(&mut self) {
        let slot = self.any();
        let bound: Vec<i64> = (0..SLOTS)
            .filter_map(|i| match self.slots[i as usize].0 {
                Kind::Bound(address) => Some(address),
                _ => None,
            })
            .collect();
        // When the network's refusal is heard of is a matter of time, for which `t_refused` waits.
        let provider = self.provider;
        let address = match provider {
            _ if self.one_in(12) => -1,
            Udp | Udp2 if !bound.is_empty() => self.of(&bound),
            Udp | Udp2 => -1,
            _ => self.below(ADDRESSES),
        };
        let (n, m) = (self.length(), self.length());
        if self.threads() == 1
            && matches!(self.providers[slot as usize], Udp | Udp2)
            && self.one_in(6)
        {
            return self.at(slot, "t_refused", &[n]);
        }
        match self.below(5) {
            0 => self.at(slot, "t_sndvudata", &[address, n, m]),
            _ => self.at(slot, "t_sndudata", &[address, n]),
        }
    }

    fn receives_datagrams(&mut self) {
        let slot = self.any();
        let (n, m) = (self.room(), self.room());
        let address = self.of(&[300, 300, 300, 300, 0, 5]);
        match self.below(8) {
            0 => self.at(slot, "t_rcvvudata", &[n, m, address]),
            1 => {
                let room = self.of(&[300, -1, 0, 4]);
                self.at(slot, "t_rcvuderr", &[room]);
            }
            _ => self.at(slot, "t_rcvudata", &[n, address]),
        }
    }
}
