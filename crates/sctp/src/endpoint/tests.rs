//! Two endpoints that hand each other packets at once, and packets made by hand between them.

mod ending;
mod exchange;
mod handshake;

use core::time::Duration;

use super::*;
use crate::association::State;
use crate::cookie::RotatingKeys;
use crate::event::Down;
use crate::path::PathState;
use crate::wire::{CauseOwned, PacketBuilder};

const HERE: [&str; 2] = ["10.0.0.1", "10.1.0.1"];
const THERE: [&str; 2] = ["10.0.0.2", "10.1.0.2"];
const START: Time = Time(1_000_000_000);

fn addr(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

struct Pair {
    now: Time,
    ends: [Endpoint; 2],
    ids: [AssocId; 2],
    /// Packets that leave end 0 are shown to this one first; `false`: lost.
    passes: fn(usize, &[u8]) -> bool,
}

impl Pair {
    fn new(paths: usize, config: AssocConfig) -> Pair {
        let end = |seed: u8, addresses: [&str; 2]| {
            let mut own = Config::new(Box::new(RotatingKeys::new([seed; 32])));
            own.association = config.clone();
            let addresses = addresses[..paths].iter().map(|a| addr(a)).collect();
            Endpoint::new(own, 7, addresses, [seed; 32])
        };
        let mut ends = [end(1, HERE), end(2, THERE)];
        ends[1].listen(5);
        let id = AssocId {
            place: 0,
            generation: 0,
        };
        Pair {
            now: START,
            ends,
            ids: [id, id],
            passes: |_, _| true,
        }
    }

    fn connect(&mut self) -> AssocId {
        let peer = Peer {
            addresses: &[addr(THERE[0])],
            port: 7,
            encap: None,
        };
        let config = self.ends[0].config().association.clone();
        self.ids[0] = self.ends[0]
            .connect(self.now, &peer, &config)
            .expect("taken");
        self.ids[0]
    }

    fn connected(paths: usize, config: AssocConfig) -> Pair {
        let mut pair = Pair::new(paths, config);
        pair.connect();
        pair.run();
        pair.ids[1] = pair.ends[1].accept().expect("an association");
        pair
    }

    fn step(&mut self, end: usize) -> bool {
        let mut out = Vec::new();
        let Some(sent) = self.ends[end].transmit(self.now, &mut out, 1) else {
            return false;
        };
        let which = [HERE, THERE][1 - end]
            .iter()
            .position(|a| addr(a) == sent.to);
        let to = which.expect("a known address");
        if (self.passes)(end, &out) {
            let arrived = Arrived {
                from: addr([HERE, THERE][end][to]),
                to: sent.to,
                encap: sent.encap,
                packet: &out,
            };
            self.ends[1 - end].handle(self.now, &arrived);
        }
        true
    }

    fn run(&mut self) {
        for _ in 0..1000 {
            let (a, b) = (self.step(0), self.step(1));
            if !a && !b {
                return;
            }
        }
        panic!("they never stop");
    }

    /// Lets time pass, timer by timer.
    fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        self.run();
        while let Some(at) = self.ends.iter().filter_map(Endpoint::timeout).min()
            && at <= end
        {
            self.now = at.max(self.now);
            self.ends.iter_mut().for_each(|one| one.on_timeout(at));
            self.run();
        }
        self.now = end;
    }

    fn association(&self, end: usize) -> &Association {
        self.ends[end]
            .association(self.ids[end])
            .expect("it is there")
    }

    fn send(&mut self, end: usize, text: &[u8]) {
        let id = self.ids[end];
        let message = Outgoing::default();
        self.ends[end]
            .send(self.now, id, &message, text, false)
            .expect("room");
    }

    /// A packet to `end` from its peer's first address, with the given tag.
    fn forge(&mut self, end: usize, tag: u32, fill: impl FnOnce(&mut PacketBuilder<'_>)) {
        let mut bytes = Vec::new();
        let mut packet = PacketBuilder::begin(&mut bytes, 7, 7, tag, 1452);
        fill(&mut packet);
        packet.finish(None, true);
        let arrived = Arrived {
            from: addr([THERE, HERE][end][0]),
            to: addr([HERE, THERE][end][0]),
            encap: None,
            packet: &bytes,
        };
        self.ends[end].handle(self.now, &arrived);
    }

    fn events(&mut self, end: usize) -> Vec<Event> {
        core::iter::from_fn(|| self.ends[end].event())
            .map(|(_, event)| event)
            .collect()
    }
}
