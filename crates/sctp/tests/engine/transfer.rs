//! Messages over bad lines: each comes whole, once, in the order of its stream.

use std::time::Duration;

use headwater_sctp::sched::SchedulerKind;
use headwater_sctp::send::Reliability;

use crate::sim::Setup;
use crate::sim::chance::{Chance, for_seeds};
use crate::sim::network::Faults;

const LONG: Duration = Duration::from_secs(4 * 3600);

#[test]
fn every_message_comes_over_any_line() {
    for_seeds(2400, |seed| {
        let mut chance = Chance::new(seed);
        let mut setup = Setup::new(seed);
        setup.faults = Faults::by(&mut chance);
        let mtu = setup.faults.mtu.min(1452);
        let interleave = chance.coin();
        let (nagle, sack_every) = (chance.coin(), chance.pick(&[1, 2, 4]));
        let (receive_window, point) = (
            chance.pick(&[8 << 10, 64 << 10, 1 << 20]),
            chance.pick(&[1 << 10, 1 << 17]),
        );
        let send_buffer = chance.pick(&[20_000, 1 << 20]);
        let (authentication, most_mtu) = (chance.coin(), chance.pick(&[0, 9000]).max(mtu));
        let (burst, paths) = (chance.pick(&[1, 4]), chance.pick(&[1, 1, 2]));
        // Also where nobody is to give up, whatever the losses.
        let setup = setup.paths(paths).each(|config| {
            config.mtu = mtu;
            config.most_mtu = most_mtu;
            config.max_burst = burst;
            config.authentication = authentication;
            config.address_reconfiguration = authentication;
            config.interleave = interleave;
            config.nagle = nagle;
            config.sack_every = sack_every;
            config.receive_window = receive_window;
            config.partial_delivery_point = point;
            config.send_buffer = send_buffer;
            config.association_retransmissions = 100;
            config.path_retransmissions = 100;
            config.init_retransmissions = 100;
        });
        let mut pair = setup.together();
        let largest = chance.pick(&[1, 100, 3000, 16_000]);
        for _ in 0..chance.below(150) {
            let side = chance.below(2);
            let (stream, unordered) = (chance.below(10) as u16, chance.per_mille(200));
            pair.send_all(
                side,
                stream,
                unordered,
                1 + chance.below(largest),
                Reliability::Full,
            );
            if chance.per_mille(100) {
                pair.step();
            }
        }
        if chance.coin() {
            pair.until_delivered(LONG);
        }
        pair.until_shut_down(chance.below(2));
        pair.settle();
    });
}

#[test]
fn every_scheduler_delivers_all() {
    use SchedulerKind::*;
    for_seeds(480, |seed| {
        let mut chance = Chance::new(seed);
        let scheduler = [
            Fcfs,
            RoundRobin,
            RoundRobinPacket,
            Priority,
            FairCapacity,
            WeightedFair,
        ][seed as usize % 6];
        let interleave = chance.coin();
        let mut pair = Setup::new(seed)
            .faults(|faults| faults.loss = 20)
            .each(|config| {
                config.scheduler = scheduler;
                config.interleave = interleave;
            })
            .together();
        for _ in 0..100 {
            let len = 1 + chance.below(5000);
            pair.send_all(
                0,
                chance.below(10) as u16,
                chance.per_mille(100),
                len,
                Reliability::Full,
            );
        }
        pair.until_delivered(LONG);
        pair.until_shut_down(1);
    });
}

#[test]
fn a_window_of_zero_opens_again() {
    for_seeds(800, |seed| {
        let mut chance = Chance::new(seed);
        let interleave = chance.coin();
        let loss = chance.pick(&[0, 50]);
        let mut pair = Setup::new(seed)
            .faults(|faults| faults.loss = loss)
            .each(|config| {
                config.receive_window = 6000;
                config.interleave = interleave;
                config.association_retransmissions = 100;
                config.path_retransmissions = 100;
            })
            .together();
        pair.ends[1].lazy = true;
        let len = chance.pick(&[64, 1000, 3000, 20_000]);
        for _ in 0..20 {
            pair.send_all(0, chance.below(3) as u16, false, len, Reliability::Full);
        }
        pair.run_for(Duration::from_secs(300));
        assert!(
            pair.down(0).is_none(),
            "a peer that does not read is no dead peer"
        );
        pair.ends[1].lazy = false;
        pair.until_delivered(LONG);
        pair.until_shut_down(0);
    });
}

/// A message longer than the window arrives by partial delivery; the chunk that completes a message is never dropped for good.
#[test]
fn a_message_longer_than_the_window_arrives() {
    for_seeds(480, |seed| {
        let mut chance = Chance::new(seed);
        let interleave = chance.coin();
        let loss = chance.pick(&[0, 30]);
        let mut pair = Setup::new(seed)
            .faults(|faults| faults.loss = loss)
            .each(|config| {
                config.receive_window = 20_000;
                config.interleave = interleave;
                config.association_retransmissions = 100;
                config.path_retransmissions = 100;
            })
            .together();
        pair.send_all(0, 1, chance.coin(), 200_000, Reliability::Full);
        pair.send_all(0, 2, false, 100, Reliability::Full);
        pair.until_delivered(LONG);
        assert!(pair.ends[0].ledger.partial_reads > 1);
    });
}

#[test]
fn long_transfers_over_slow_and_lossy_lines_end() {
    for_seeds(8, |seed| {
        let mut pair = Setup::new(seed)
            .faults(|faults| {
                faults.loss = 10;
                faults.rate = Some(2_000_000);
                faults.delay = Duration::from_millis(20);
            })
            .together();
        for _ in 0..300 {
            pair.send_all(0, 0, false, 10_000, Reliability::Full);
        }
        let begun = pair.now;
        pair.until_delivered(LONG);
        let rate = 3_000_000.0 / pair.now.since(begun).as_secs_f64();
        // Mathis' bound for 1 % at 40 ms: 1452 * 1.22 / (0.04 * 0.1) = 443 kB/s.
        assert!(rate > 150_000.0, "{rate} bytes per second");
    });
}

/// TSNs and stream numbers pass their ends while data flows.
#[test]
fn numbers_wrap_around() {
    for interleave in [false, true] {
        let mut pair = Setup::new(1)
            .each(|config| {
                config.interleave = interleave;
                config.initial_tsn = Some(u32::MAX - 30_000);
            })
            .faults(|faults| {
                faults.delay = Duration::from_micros(10);
                faults.loss = 1;
            })
            .together();
        // More than all stream sequence numbers of one stream.
        for _ in 0..70_000 {
            pair.send_all(0, 0, false, 1, Reliability::Full);
        }
        pair.until_delivered(LONG);
    }
}

#[test]
fn an_initial_tsn_at_an_end_makes_no_difference() {
    for_seeds(200, |seed| {
        let mut chance = Chance::new(seed);
        let tsn = chance.pick(&[0, 1, 0x7fff_fff0, 0x8000_0000, u32::MAX - 40, u32::MAX]);
        let (loss, interleave) = (chance.pick(&[0, 50, 200]), chance.coin());
        let mut pair = Setup::new(seed)
            .each(|config| {
                config.initial_tsn = Some(tsn);
                config.interleave = interleave;
                config.association_retransmissions = 100;
                config.path_retransmissions = 100;
                config.init_retransmissions = 100;
            })
            .faults(|faults| {
                faults.loss = loss;
                faults.duplicate = 50;
                faults.jitter = Duration::from_millis(20);
            })
            .together();
        for _ in 0..60 {
            let reliability =
                chance.pick(&[Reliability::Full, Reliability::Full, Reliability::Rtx(0)]);
            pair.send_all(
                chance.below(2),
                chance.below(3) as u16,
                chance.coin(),
                1 + chance.below(4000),
                reliability,
            );
        }
        pair.until_shut_down(chance.below(2));
        pair.settle_partial();
    });
}
