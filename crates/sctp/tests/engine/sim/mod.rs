//! Two endpoints under one virtual clock, a network between them, and a ledger of every message.
//!
//! ```text
//!   End 0 ── Endpoint ─┐                       ┌─ Endpoint ── End 1
//!      └ Ledger (sent) └──── Network (faults) ─┘  Ledger ┘
//! ```
//!
//! Address number n of one end talks to number n of the other: cutting one cuts that path.

pub mod chance;
pub mod changes;
pub mod craft;
pub mod ledger;
pub mod network;

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use headwater_sctp::Time;
use headwater_sctp::config::{AssocConfig, Config};
use headwater_sctp::cookie::RotatingKeys;
use headwater_sctp::endpoint::{Arrived, AssocId, Endpoint, Peer};
use headwater_sctp::event::{Down, Event};
use headwater_sctp::send::{Outgoing, Reliability};

use chance::Chance;
use ledger::Ledger;
use network::{Faults, Network};

pub const PORTS: [u16; 2] = [5000, 5001];
/// More events than any of these runs need at one point in time: beyond, somebody runs in a circle.
const CIRCLE: usize = 100_000;

pub struct End {
    pub endpoint: Endpoint,
    pub addresses: Vec<IpAddr>,
    pub id: Option<AssocId>,
    pub events: Vec<Event>,
    /// What this end sends.
    pub ledger: Ledger,
    /// Reads nothing while set.
    pub lazy: bool,
}

pub struct Pair {
    pub now: Time,
    pub net: Network,
    pub ends: [End; 2],
    pub chance: Chance,
    steps_at_now: usize,
    out: Vec<u8>,
}

/// What a pair is made of.
pub struct Setup {
    pub seed: u64,
    pub faults: Faults,
    pub config: [AssocConfig; 2],
    pub paths: u8,
}

impl Setup {
    pub fn new(seed: u64) -> Setup {
        Setup {
            seed,
            faults: Faults::default(),
            config: [patient(), patient()],
            paths: 1,
        }
    }

    pub fn each(mut self, change: impl Fn(&mut AssocConfig)) -> Setup {
        self.config.iter_mut().for_each(change);
        self
    }

    pub fn faults(mut self, change: impl FnOnce(&mut Faults)) -> Setup {
        change(&mut self.faults);
        self
    }

    pub fn paths(mut self, paths: u8) -> Setup {
        self.paths = paths;
        self
    }

    /// Two endpoints that know nothing of each other yet.
    pub fn apart(self) -> Pair {
        let mut chance = Chance::new(self.seed);
        let config = self.config;
        let ends = [0, 1].map(|side| {
            let addresses: Vec<_> = (0..self.paths).map(|path| address(side, path)).collect();
            End {
                endpoint: endpoint(side, &config[side], &addresses, chance.seed()),
                addresses,
                id: None,
                events: Vec::new(),
                ledger: Ledger::new(self.seed << 1 | side as u64),
                lazy: false,
            }
        });
        Pair {
            now: Time(1_000_000_000),
            net: Network::new(self.faults, self.seed ^ 0xfeed),
            ends,
            chance,
            steps_at_now: 0,
            out: Vec::new(),
        }
    }

    /// End 0 has connected to end 1.
    pub fn together(self) -> Pair {
        let config = self.config[0].clone();
        let mut pair = self.apart();
        pair.ends[1].endpoint.listen(16);
        pair.connect(0, &config);
        pair.until_up();
        pair
    }
}

/// The defaults, but a shutdown may take as long as it takes.
pub fn patient() -> AssocConfig {
    AssocConfig {
        guard: Some(Duration::from_secs(1_000_000)),
        ..AssocConfig::default()
    }
}

pub fn address(side: usize, path: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, path, 0, side as u8 + 1))
}

pub fn endpoint(
    side: usize,
    config: &AssocConfig,
    addresses: &[IpAddr],
    seed: [u8; 32],
) -> Endpoint {
    let mut key_seed = seed;
    key_seed[0] ^= 0xff;
    let config = Config {
        association: config.clone(),
        ..Config::new(Box::new(RotatingKeys::new(key_seed)))
    };
    Endpoint::new(config, PORTS[side], addresses.to_vec(), seed)
}

impl Pair {
    pub fn connect(&mut self, side: usize, config: &AssocConfig) {
        let peer = &self.ends[1 - side];
        let peer = Peer {
            addresses: &[peer.addresses[0]],
            port: PORTS[1 - side],
            encap: None,
        };
        let id = self.ends[side]
            .endpoint
            .connect(self.now, &peer, config)
            .expect("connect");
        self.ends[side].id = Some(id);
    }

    /// Until both ends say that the association is up.
    pub fn until_up(&mut self) {
        let up = |end: &End| {
            end.events
                .iter()
                .any(|event| matches!(event, Event::Up { .. }))
        };
        let both = self.run_until(Duration::from_secs(36_000), |pair| pair.ends.iter().all(up));
        assert!(
            both,
            "no association: {:?} {:?}",
            self.ends[0].events, self.ends[1].events
        );
    }

    /// The next thing that happens; false where nothing ever will.
    pub fn step(&mut self) -> bool {
        self.flush();
        let timers = self.ends.iter().filter_map(|end| end.endpoint.timeout());
        let Some(next) = timers.chain(self.net.next()).min() else {
            return false;
        };
        if next > self.now {
            self.now = next;
            self.steps_at_now = 0;
        }
        self.steps_at_now += 1;
        assert!(
            self.steps_at_now < CIRCLE,
            "time stands still at {:?}",
            self.now
        );
        for side in [0, 1] {
            if self.ends[side]
                .endpoint
                .timeout()
                .is_some_and(|at| at <= self.now)
            {
                self.ends[side].endpoint.on_timeout(self.now);
                let again = self.ends[side].endpoint.timeout();
                assert!(
                    again.is_none_or(|at| at > self.now),
                    "a timer stays due at {:?}",
                    self.now
                );
            }
        }
        if let Some(flight) = self.net.take(self.now) {
            self.arrive(&flight);
        }
        self.flush();
        true
    }

    fn arrive(&mut self, flight: &network::Flight) {
        let Some(end) = self
            .ends
            .iter_mut()
            .find(|end| end.addresses.contains(&flight.to))
        else {
            return;
        };
        end.endpoint.handle(
            self.now,
            &Arrived {
                from: flight.from,
                to: flight.to,
                encap: flight.encap,
                packet: &flight.bytes,
            },
        );
    }

    /// Takes out what both ends have to send, to say and, unless they are lazy, to receive.
    pub fn flush(&mut self) {
        for side in [0, 1] {
            self.take_events(side);
            if !self.ends[side].lazy {
                self.read(side);
            }
            self.take_packets(side);
            self.take_events(side);
        }
    }

    fn take_packets(&mut self, side: usize) {
        let mut count = 0;
        loop {
            self.out.clear();
            let end = &mut self.ends[side];
            let Some(transmit) = end.endpoint.transmit(self.now, &mut self.out, 16) else {
                break;
            };
            count += 1;
            assert!(count < 3000, "an endpoint never stops sending");
            assert_eq!(transmit.len, self.out.len(), "bytes of a transmission");
            assert!(transmit.len > 0 && transmit.segment > 0);
            assert!(
                transmit.len.div_ceil(transmit.segment) <= 16,
                "segments of a transmission"
            );
            let from = transmit
                .from
                .unwrap_or_else(|| self.source(side, transmit.to));
            for packet in self.out.chunks(transmit.segment) {
                self.net.send(
                    self.now,
                    side,
                    from,
                    transmit.to,
                    transmit.encap,
                    packet,
                    transmit.fragment,
                );
            }
        }
        assert!(self.out.is_empty(), "bytes without a transmission");
    }

    /// What a routing table would choose.
    fn source(&self, side: usize, to: IpAddr) -> IpAddr {
        let at = self.ends[1 - side]
            .addresses
            .iter()
            .position(|&address| address == to);
        let own = &self.ends[side].addresses;
        own.get(at.unwrap_or(0)).copied().unwrap_or(own[0])
    }

    fn take_events(&mut self, side: usize) {
        while let Some((id, event)) = self.ends[side].endpoint.event() {
            let end = &mut self.ends[side];
            match &event {
                Event::SendFailed(failed) => end.ledger.given_up(failed.message.context),
                Event::Up { .. } if end.id.is_none() => {
                    assert_eq!(
                        end.endpoint.accept(),
                        Some(id),
                        "the association that is up can be accepted"
                    );
                    end.id = Some(id);
                }
                _ => {}
            }
            if end.id == Some(id) {
                end.events.push(event);
            }
        }
    }

    /// Reads all that `side` can, in pieces of any size.
    pub fn read(&mut self, side: usize) {
        let Some(id) = self.ends[side].id else { return };
        let mut buffer = [0; 4096];
        loop {
            let room = 1 + self.chance.below(buffer.len());
            let end = &mut self.ends[side];
            let Some(piece) = end.endpoint.receive(id, &mut buffer[..room]) else {
                return;
            };
            assert!(
                piece.len <= room && (piece.len > 0 || piece.end || piece.aborted),
                "an empty piece of a message"
            );
            self.ends[1 - side]
                .ledger
                .take(&piece, &buffer[..piece.len]);
        }
    }

    /// Sends the next message of the ledger; false where there is no room for it.
    pub fn send(
        &mut self,
        side: usize,
        stream: u16,
        unordered: bool,
        len: usize,
        reliability: Reliability,
    ) -> bool {
        let end = &mut self.ends[side];
        let (id, bytes) = end.ledger.draft(len);
        let message = Outgoing {
            stream,
            ppid: id,
            unordered,
            sack_now: false,
            to: None,
            key: None,
            reliability,
            context: id,
        };
        let association = end.id.expect("an association");
        let accepted = end
            .endpoint
            .send(self.now, association, &message, &bytes, false)
            .is_ok();
        if accepted {
            let reliable = matches!(reliability, Reliability::Full);
            end.ledger.sent(stream, unordered, len, reliable);
        }
        accepted
    }

    /// Sends, and waits for room where there is none.
    pub fn send_all(
        &mut self,
        side: usize,
        stream: u16,
        unordered: bool,
        len: usize,
        reliability: Reliability,
    ) {
        let mut waited = 0;
        while !self.send(side, stream, unordered, len, reliability) {
            waited += 1;
            assert!(waited < CIRCLE, "no room ever");
            assert!(self.step(), "no room, and nothing happens");
        }
    }

    /// Steps until `done` or until so much time has passed; says whether it is done.
    pub fn run_until(&mut self, limit: Duration, done: impl Fn(&Pair) -> bool) -> bool {
        let end = self.now + limit;
        self.flush();
        while !done(self) {
            if self.now >= end || !self.step() {
                return done(self);
            }
        }
        true
    }

    pub fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        self.flush();
        while self.next().is_some_and(|next| next <= end) {
            self.step();
        }
        self.now = self.now.max(end);
    }

    fn next(&self) -> Option<Time> {
        let timers = self.ends.iter().filter_map(|end| end.endpoint.timeout());
        timers.chain(self.net.next()).min()
    }

    /// Until all reliable messages of both directions have come.
    pub fn until_delivered(&mut self, limit: Duration) {
        self.run_until(limit, |pair| {
            pair.ends.iter().all(|end| end.ledger.all_reliable_came())
        });
        self.settle();
    }

    pub fn settle(&self) {
        self.ends[0].ledger.settle("0 to 1");
        self.ends[1].ledger.settle("1 to 0");
    }

    /// As [`settle`](Pair::settle), where messages that need not come may also have come by half.
    pub fn settle_partial(&self) {
        self.ends[0].ledger.settle_partial("0 to 1");
        self.ends[1].ledger.settle_partial("1 to 0");
    }

    pub fn shutdown(&mut self, side: usize) {
        let id = self.ends[side].id.expect("an association");
        self.ends[side].endpoint.shutdown(self.now, id);
    }

    /// One end shuts down; both come to the regular end.
    pub fn until_shut_down(&mut self, side: usize) {
        self.shutdown(side);
        let over = self.run_until(Duration::from_secs(3600), |pair| {
            (0..2).all(|side| pair.down(side).is_some())
        });
        assert!(
            over,
            "not over: {:?} {:?}",
            self.ends[0].events, self.ends[1].events
        );
        for side in [0, 1] {
            assert_eq!(self.down(side), Some(Down::Shutdown), "side {side}");
        }
    }

    pub fn down(&self, side: usize) -> Option<Down> {
        self.ends[side].events.iter().find_map(|event| match event {
            Event::Down(why) => Some(why.clone()),
            _ => None,
        })
    }

    pub fn id(&self, side: usize) -> AssocId {
        self.ends[side].id.expect("an association")
    }

    pub fn saw(&self, side: usize, wanted: impl Fn(&Event) -> bool) -> bool {
        self.ends[side].events.iter().any(wanted)
    }
}
