//! Two endpoints in memory: what one sends is handed to the other by a copy of its bytes and nothing else.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Instant;

use headwater_sctp::Time;
use headwater_sctp::config::{AssocConfig, Config};
use headwater_sctp::cookie::RotatingKeys;
use headwater_sctp::endpoint::{Arrived, AssocId, Endpoint, Peer};
use headwater_sctp::send::Outgoing;

use crate::sctpperf::{Measured, Options, cpu};

/// Packets of one transmission, as an offloading link takes them.
const SEGMENTS: usize = 44;
/// Messages between two looks at the clock.
const ROUND: usize = 256;

/// Of both ends of one association: an endpoint has one association with each address.
fn addresses(number: u32) -> [IpAddr; 2] {
    [0x0b00_0000, 0x0c00_0000].map(|net: u32| IpAddr::V4(Ipv4Addr::from_bits(net + number)))
}

pub struct Wire {
    ends: [Endpoint; 2],
    origin: Instant,
    out: Vec<u8>,
    into: Vec<u8>,
}

impl Wire {
    pub fn new(most: usize) -> Wire {
        let ends = [0_u8, 1].map(|side| {
            let config = Config {
                most_associations: most,
                ..Config::new(Box::new(RotatingKeys::new([side; 32])))
            };
            let mut end = Endpoint::new(config, 5000 + u16::from(side), Vec::new(), [side + 7; 32]);
            end.listen(most);
            end
        });
        Wire {
            ends,
            origin: Instant::now(),
            out: Vec::with_capacity(1 << 17),
            into: vec![0; 1 << 17],
        }
    }

    fn now(&self) -> Time {
        Time(self.origin.elapsed().as_nanos() as u64)
    }

    pub fn connect(&mut self, number: u32) -> [AssocId; 2] {
        let now = self.now();
        let [own, other] = addresses(number);
        let peer = Peer {
            addresses: &[other],
            port: self.ends[1].port(),
            encap: None,
        };
        let config = AssocConfig {
            heartbeats: false,
            ..AssocConfig::default()
        };
        let id = self.ends[0]
            .connect(now, &peer, &config)
            .expect("a new peer");
        self.exchange(now, [own, other]);
        let accepted = self.ends[1].accept().expect("nothing is lost here");
        self.forget_events();
        [id, accepted]
    }

    /// Until both have nothing more to send.
    fn exchange(&mut self, now: Time, from: [IpAddr; 2]) {
        loop {
            let moved = self.carry(now, 0, from) | self.carry(now, 1, from);
            if !moved {
                return;
            }
        }
    }

    /// One transmission from `side` to the other.
    fn carry(&mut self, now: Time, side: usize, from: [IpAddr; 2]) -> bool {
        self.out.clear();
        let Some(transmit) = self.ends[side].transmit(now, &mut self.out, SEGMENTS) else {
            return false;
        };
        for packet in self.out.chunks(transmit.segment) {
            let arrived = Arrived {
                from: from[side],
                to: transmit.to,
                encap: None,
                packet,
            };
            self.ends[1 - side].handle(now, &arrived);
        }
        true
    }

    /// What was sent on one association arrives and is acknowledged; so many messages.
    fn deliver(&mut self, now: Time, receiver: AssocId, from: [IpAddr; 2]) -> u64 {
        let mut messages = 0;
        while self.carry(now, 0, from) {
            messages += self.receive(receiver);
            while self.carry(now, 1, from) {}
        }
        messages
    }

    /// A message of this size through one association.
    pub fn one(&mut self, number: u32, [sender, receiver]: [AssocId; 2], size: usize) {
        let now = self.now();
        let message = Outgoing {
            sack_now: true,
            ..Outgoing::default()
        };
        self.ends[0]
            .send(now, sender, &message, &vec![1; size], false)
            .expect("room");
        assert_eq!(self.deliver(now, receiver, addresses(number)), 1);
        self.forget_events();
    }

    fn receive(&mut self, id: AssocId) -> u64 {
        let mut whole = 0;
        while let Some(piece) = self.ends[1].receive(id, &mut self.into) {
            whole += u64::from(piece.end);
        }
        whole
    }

    fn forget_events(&mut self) {
        for end in &mut self.ends {
            while end.event().is_some() {}
        }
    }

    fn timers(&mut self, now: Time) {
        for end in &mut self.ends {
            if end.timeout().is_some_and(|at| at <= now) {
                end.on_timeout(now);
            }
        }
    }

    /// Sends on each association in turn, so many messages of a size at once, for a while.
    pub fn run(&mut self, ids: &[[AssocId; 2]], options: &Options) -> Measured {
        let message = Outgoing {
            ppid: 7,
            ..Outgoing::default()
        };
        let bytes = vec![0x5a; options.size];
        let burst = (ROUND * 64 / options.size.max(64)).clamp(4, ROUND);
        let (begun, cpu_before) = (Instant::now(), cpu());
        let mut messages = 0;
        let mut turn = 0;
        while begun.elapsed() < options.time {
            let now = self.now();
            let number = turn % ids.len();
            let [sender, receiver] = ids[number];
            let from = addresses(number as u32);
            for _ in 0..burst {
                if self.ends[0]
                    .send(now, sender, &message, &bytes, false)
                    .is_err()
                {
                    break;
                }
            }
            messages += self.deliver(now, receiver, from);
            self.timers(now);
            self.forget_events();
            turn += 1;
        }
        Measured {
            messages,
            seconds: begun.elapsed().as_secs_f64(),
            cpu_ns: cpu() - cpu_before,
            ..Measured::default()
        }
    }
}

pub fn run(options: &Options) -> String {
    let mut wire = Wire::new(1);
    let ids = [wire.connect(0)];
    wire.run(&ids, options).line()
}
