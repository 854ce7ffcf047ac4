//! A network under virtual time: it loses, delays, duplicates, reorders and corrupts by chance, and its paths can be cut.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::net::IpAddr;
use std::time::Duration;

use headwater_sctp::Time;

use super::chance::Chance;

/// Shares are in a thousand.
#[derive(Clone, Debug)]
pub struct Faults {
    pub loss: u32,
    pub duplicate: u32,
    pub corrupt: u32,
    pub delay: Duration,
    /// Up to so much more for each packet by itself: what reorders.
    pub jitter: Duration,
    /// Bytes per second through a queue of 100 ms; as much as one likes where there is none.
    pub rate: Option<u64>,
    /// The longest SCTP packet that gets through.
    pub mtu: usize,
}

impl Default for Faults {
    fn default() -> Faults {
        Faults {
            loss: 0,
            duplicate: 0,
            corrupt: 0,
            delay: Duration::from_millis(5),
            jitter: Duration::ZERO,
            rate: None,
            mtu: 1480,
        }
    }
}

impl Faults {
    /// Anything from a clean line to a bad one.
    pub fn by(chance: &mut Chance) -> Faults {
        Faults {
            loss: chance.pick(&[0, 0, 10, 50, 150]),
            duplicate: chance.pick(&[0, 0, 20, 100]),
            corrupt: chance.pick(&[0, 0, 20]),
            delay: Duration::from_micros(chance.pick(&[50, 1_000, 20_000, 200_000])),
            jitter: Duration::from_micros(chance.pick(&[0, 0, 500, 30_000])),
            rate: chance.pick(&[None, None, Some(1_000_000)]),
            mtu: chance.pick(&[1480, 1480, 9000, 1200, 560]),
        }
    }
}

/// A packet on its way.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flight {
    pub at: Time,
    number: u64,
    pub from: IpAddr,
    pub to: IpAddr,
    pub encap: Option<u16>,
    pub bytes: Vec<u8>,
}

pub struct Network {
    pub faults: Faults,
    pub chance: Chance,
    flights: BinaryHeap<Reverse<Flight>>,
    /// Addresses that nothing reaches and nothing leaves.
    cut: HashSet<IpAddr>,
    queue_ends: [Time; 2],
    number: u64,
    pub packets: u64,
    /// What was put on the wire, when asked for.
    pub tape: Option<Vec<Flight>>,
    trace: bool,
}

impl Network {
    pub fn new(faults: Faults, seed: u64) -> Network {
        Network {
            faults,
            chance: Chance::new(seed),
            flights: BinaryHeap::new(),
            cut: HashSet::new(),
            queue_ends: [Time(0); 2],
            number: 0,
            packets: 0,
            tape: None,
            trace: std::env::var_os("HEADWATER_SIM_TRACE").is_some(),
        }
    }

    pub fn cut(&mut self, address: IpAddr) {
        self.cut.insert(address);
    }

    pub fn mend(&mut self, address: IpAddr) {
        self.cut.remove(&address);
    }

    /// Takes a packet that leaves one side (0 or 1) now; `fragment`: in pieces that fit any path.
    #[allow(clippy::too_many_arguments)]
    pub fn send(
        &mut self,
        now: Time,
        side: usize,
        from: IpAddr,
        to: IpAddr,
        encap: Option<u16>,
        bytes: &[u8],
        fragment: bool,
    ) {
        self.packets += 1;
        let flight = Flight {
            at: now,
            number: 0,
            from,
            to,
            encap,
            bytes: bytes.to_vec(),
        };
        if let Some(tape) = &mut self.tape {
            tape.push(flight.clone());
        }
        if self.trace {
            trace(now, from, to, bytes);
        }
        let lost =
            self.chance.per_mille(self.faults.loss) || (bytes.len() > self.faults.mtu && !fragment);
        if lost || self.cut.contains(&from) || self.cut.contains(&to) {
            return;
        }
        let Some(leaves) = self.through_queue(now, side, bytes.len()) else {
            return;
        };
        let copies = 1 + usize::from(self.chance.per_mille(self.faults.duplicate));
        for _ in 0..copies {
            let mut copy = flight.clone();
            if self.chance.per_mille(self.faults.corrupt) {
                let at = self.chance.below(copy.bytes.len());
                copy.bytes[at] ^= 1 << self.chance.below(8);
            }
            let jitter = self
                .chance
                .below(self.faults.jitter.as_nanos() as usize + 1);
            copy.at = leaves + self.faults.delay + Duration::from_nanos(jitter as u64);
            self.launch(copy);
        }
    }

    /// A packet that arrives at `at`, whatever the faults are: an attacker's.
    pub fn inject(&mut self, at: Time, from: IpAddr, to: IpAddr, bytes: Vec<u8>) {
        if self.trace {
            let head = &bytes[..bytes.len().min(80)];
            eprintln!(
                "{:>12.6} injected to {to}: {} {head:02x?}",
                at.0 as f64 / 1e9,
                bytes.len()
            );
        }
        self.launch(Flight {
            at,
            number: 0,
            from,
            to,
            encap: None,
            bytes,
        });
    }

    pub fn next(&self) -> Option<Time> {
        self.flights.peek().map(|Reverse(flight)| flight.at)
    }

    pub fn take(&mut self, now: Time) -> Option<Flight> {
        if self.next()? > now {
            return None;
        }
        self.flights.pop().map(|Reverse(flight)| flight)
    }

    /// Loses all that is on its way.
    pub fn drop_all(&mut self) {
        self.flights.clear();
    }

    fn launch(&mut self, mut flight: Flight) {
        self.number += 1;
        flight.number = self.number;
        self.flights.push(Reverse(flight));
    }

    /// When the bottleneck has let it pass; nothing when its queue is full.
    fn through_queue(&mut self, now: Time, side: usize, len: usize) -> Option<Time> {
        let Some(rate) = self.faults.rate else {
            return Some(now);
        };
        let begins = self.queue_ends[side].max(now);
        if begins.since(now) > Duration::from_millis(100) {
            return None;
        }
        let end = begins + Duration::from_nanos(len as u64 * 1_000_000_000 / rate);
        self.queue_ends[side] = end;
        Some(end)
    }
}

/// A line for each packet, with the kinds of its chunks and the words that they begin with.
fn trace(now: Time, from: IpAddr, to: IpAddr, bytes: &[u8]) {
    let mut line = format!(
        "{:>12.6} {from} to {to} tag {:08x}",
        now.0 as f64 / 1e9,
        super::craft::tag(bytes)
    );
    for (kind, flags, value) in super::craft::chunks(bytes) {
        let words = value
            .chunks_exact(4)
            .take(3)
            .map(|word| super::craft::word(word, 0));
        line += &format!(
            " | {kind}/{flags:x} {:x?} {}",
            words.collect::<Vec<_>>(),
            value.len()
        );
    }
    eprintln!("{line}");
}
