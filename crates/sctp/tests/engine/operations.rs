//! Any sequence of what users and networks do: nothing is lost, nothing hangs, nothing panics.

use std::time::Duration;

use headwater_sctp::event::Down;
use headwater_sctp::send::Reliability;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::sim;
use crate::sim::{Pair, Setup};

const LONG: Duration = Duration::from_secs(8 * 3600);

#[derive(Clone, Debug)]
enum Operation {
    Send {
        side: usize,
        stream: u16,
        unordered: bool,
        len: usize,
    },
    SendPartial {
        side: usize,
        stream: u16,
        len: usize,
        reliability: u8,
    },
    /// Reads nothing from now on, or again.
    Lazy {
        side: usize,
        lazy: bool,
    },
    Steps(u8),
    Wait(Duration),
    Reset {
        side: usize,
        streams: Vec<u16>,
    },
    AddStreams {
        side: usize,
    },
    AddAddress {
        side: usize,
    },
    RemoveAddress {
        side: usize,
        path: u8,
    },
    Primary {
        side: usize,
        path: u8,
    },
    Cut {
        side: usize,
        path: u8,
    },
    Mend {
        side: usize,
        path: u8,
    },
    Loss(u32),
    Shutdown {
        side: usize,
    },
    Abort {
        side: usize,
    },
    /// Loses all state and connects again.
    Restart,
}

fn operation() -> impl Strategy<Value = Operation> {
    use Operation::*;
    let (side, path, stream) = (0..2_usize, 0..3_u8, 0..4_u16);
    let len = prop_oneof![4 => 1..200_usize, 3 => 1000..4000_usize, 1 => 10_000..60_000_usize];
    prop_oneof![
        20 => (side.clone(), stream.clone(), any::<bool>(), len.clone())
            .prop_map(|(side, stream, unordered, len)| Send { side, stream, unordered, len }),
        5 => (side.clone(), stream.clone(), len, any::<u8>())
            .prop_map(|(side, stream, len, reliability)| SendPartial { side, stream, len, reliability }),
        3 => (side.clone(), any::<bool>()).prop_map(|(side, lazy)| Lazy { side, lazy }),
        15 => (1..30_u8).prop_map(Steps),
        6 => (0..5000_u64).prop_map(|ms| Wait(Duration::from_millis(ms))),
        1 => (1..90_u64).prop_map(|s| Wait(Duration::from_secs(s))),
        2 => (side.clone(), prop::collection::vec(stream, 0..3)).prop_map(|(side, streams)| Reset { side, streams }),
        1 => side.clone().prop_map(|side| AddStreams { side }),
        1 => side.clone().prop_map(|side| AddAddress { side }),
        // By one side only: two that both take away what the other still uses can lose each other, and nobody can help that.
        1 => path.clone().prop_map(|path| RemoveAddress { side: 0, path }),
        1 => (side.clone(), path.clone()).prop_map(|(side, path)| Primary { side, path }),
        2 => (side.clone(), path.clone()).prop_map(|(side, path)| Cut { side, path }),
        2 => (side.clone(), path).prop_map(|(side, path)| Mend { side, path }),
        2 => prop::sample::select(vec![0, 20, 200]).prop_map(Loss),
        1 => side.clone().prop_map(|side| Shutdown { side }),
    ]
}

/// Those after which data may be missing.
fn violent() -> impl Strategy<Value = Operation> {
    prop_oneof![
        30 => operation(),
        1 => (0..2_usize).prop_map(|side| Operation::Abort { side }),
        1 => Just(Operation::Restart),
    ]
}

fn setup(seed: u64) -> Setup {
    let interleave = seed.is_multiple_of(2);
    let asconf = !seed.is_multiple_of(3);
    Setup::new(seed).paths(2).each(|config| {
        config.interleave = interleave;
        config.authentication = asconf;
        config.address_reconfiguration = asconf;
        config.receive_window = [20_000, 1 << 20][seed as usize / 6 % 2];
        config.association_retransmissions = 500;
        config.path_retransmissions = 3;
        config.heartbeat_interval = Duration::from_secs(3);
    })
}

/// True where the association may end otherwise than by a shutdown.
fn perform(pair: &mut Pair, operation: &Operation) -> bool {
    use Operation::*;
    let over = |pair: &Pair, side: usize| pair.down(side).is_some();
    match *operation {
        Send {
            side,
            stream,
            unordered,
            len,
        } => {
            if !over(pair, side) {
                pair.send(side, stream, unordered, len, Reliability::Full);
            }
        }
        SendPartial {
            side,
            stream,
            len,
            reliability,
        } => {
            let reliability = match reliability % 3 {
                0 => Reliability::Ttl(Duration::from_millis(u64::from(reliability) * 10)),
                1 => Reliability::Rtx(u32::from(reliability) / 64),
                _ => Reliability::Prio(u32::from(reliability)),
            };
            if !over(pair, side) {
                pair.send(side, stream, false, len, reliability);
            }
        }
        Lazy { side, lazy } => pair.ends[side].lazy = lazy,
        Steps(count) => (0..count).for_each(|_| {
            pair.step();
        }),
        Wait(time) => pair.run_for(time),
        Reset { side, ref streams } => {
            pair.reset_streams(side, streams);
        }
        AddStreams { side } => {
            pair.add_streams(side, 3);
        }
        AddAddress { side } => {
            pair.add_address(side, sim::address(side, 2));
        }
        RemoveAddress { side, path } => {
            pair.remove_address(side, sim::address(side, path));
        }
        Primary { side, path } => {
            let id = pair.id(side);
            pair.ends[side]
                .endpoint
                .change(id, |a| a.set_primary(sim::address(1 - side, path)));
        }
        Cut { side, path } => pair.net.cut(sim::address(side, path)),
        Mend { side, path } => pair.net.mend(sim::address(side, path)),
        Loss(loss) => pair.net.faults.loss = loss,
        Shutdown { side } => pair.shutdown(side),
        Abort { side } => {
            let id = pair.id(side);
            pair.ends[side].endpoint.abort(pair.now, id, b"because");
            return true;
        }
        Restart => {
            let setup = setup(1);
            let seed = pair.chance.seed();
            let addresses = [sim::address(0, 0), sim::address(0, 1)];
            pair.ends[0].endpoint = sim::endpoint(0, &setup.config[0], &addresses, seed);
            pair.ends[0].addresses = addresses.to_vec();
            pair.ends[0].events.clear();
            pair.ends.iter_mut().for_each(|end| end.ledger.forget());
            let config = setup.config[0].clone();
            pair.connect(0, &config);
            return true;
        }
    }
    false
}

fn mend_all(pair: &mut Pair) {
    for side in [0, 1] {
        (0..3).for_each(|path| pair.net.mend(sim::address(side, path)));
        pair.ends[side].lazy = false;
    }
    pair.net.faults.loss = 0;
}

fn both_over(pair: &Pair) -> bool {
    (0..2).all(|side| pair.down(side).is_some())
}

/// The same cases each time; PROPTEST_RNG_SEED and PROPTEST_CASES choose others and more.
fn config() -> ProptestConfig {
    let mut config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 1200;
    }
    if std::env::var_os("PROPTEST_RNG_SEED").is_none() {
        config.rng_seed = RngSeed::Fixed(4960);
    }
    config
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn whatever_is_done_all_that_was_accepted_comes(
        seed in any::<u16>(),
        operations in prop::collection::vec(operation(), 0..120),
    ) {
        let mut pair = setup(u64::from(seed)).together();
        for operation in &operations {
            perform(&mut pair, operation);
        }
        mend_all(&mut pair);
        let id = pair.id(0);
        pair.ends[0].endpoint.shutdown(pair.now, id);
        prop_assert!(pair.run_until(LONG, both_over), "{:?} {:?}", pair.ends[0].events, pair.ends[1].events);
        for side in [0, 1] {
            prop_assert_eq!(pair.down(side), Some(Down::Shutdown));
            pair.read(side);
        }
        pair.settle_partial();
    }

    #[test]
    fn after_aborts_and_restarts_nothing_is_left(
        seed in any::<u16>(),
        operations in prop::collection::vec(violent(), 0..120),
    ) {
        let mut pair = setup(u64::from(seed)).together();
        for operation in &operations {
            perform(&mut pair, operation);
        }
        mend_all(&mut pair);
        pair.run_for(Duration::from_secs(100));
        for side in [0, 1] {
            let id = pair.id(side);
            pair.ends[side].endpoint.abort(pair.now, id, b"");
            pair.ends[side].endpoint.release(pair.now, id);
            while pair.ends[side].endpoint.event().is_some() {}
        }
        pair.run_for(Duration::from_secs(10_000));
        for end in &mut pair.ends {
            let left: Vec<_> = end.endpoint.associations().map(|a| a.id()).collect();
            for id in left {
                end.endpoint.release(pair.now, id);
            }
            prop_assert_eq!(end.endpoint.timeout(), None);
            prop_assert_eq!(end.endpoint.associations().count(), 0);
        }
    }
}
