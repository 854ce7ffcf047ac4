//! Random traffic over a random network: everything arrives, once and in order, and the invariants hold throughout.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::world::{World, config, ms, on_stream};
use super::*;

#[derive(Clone, Debug)]
struct Case {
    seed: u64,
    initial: u32,
    loss: u64,
    jitter: u64,
    room: usize,
    buffer: usize,
    mtu: usize,
    max_burst: u32,
    nagle: bool,
    interleave: bool,
    reneges: bool,
    kind: SchedulerKind,
    messages: Vec<(u16, usize, bool, bool)>,
}

fn kinds() -> impl Strategy<Value = SchedulerKind> {
    prop_oneof![
        Just(SchedulerKind::Fcfs),
        Just(SchedulerKind::RoundRobin),
        Just(SchedulerKind::RoundRobinPacket),
        Just(SchedulerKind::Priority),
        Just(SchedulerKind::FairCapacity),
        Just(SchedulerKind::WeightedFair),
    ]
}

fn sizes() -> impl Strategy<Value = usize> {
    prop_oneof![1..100_usize, 1000..1500_usize, 1..20_000_usize]
}

fn cases() -> impl Strategy<Value = Case> {
    let network = (
        any::<u64>(),
        0..4_u64,
        0..20_u64,
        2_000..100_000_usize,
        500..3000_usize,
    );
    let initial = prop_oneof![Just(u32::MAX), u32::MAX - 50..=u32::MAX, any::<u32>()];
    let settings = (
        0..6_u32,
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        kinds(),
        initial,
    );
    // A message's last field: more parts of it follow.
    let message = (0..4_u16, sizes(), any::<bool>(), prop::bool::weighted(0.2));
    (
        network,
        settings,
        prop::collection::vec(message, 1..60),
        20_000..200_000_usize,
    )
        .prop_map(
            |((seed, loss, jitter, room, mtu), settings, messages, buffer)| {
                let (max_burst, nagle, interleave, reneges, kind, initial) = settings;
                let loss = [0, 10, 100, 300][loss as usize];
                Case {
                    seed,
                    initial,
                    loss,
                    jitter,
                    room,
                    buffer,
                    mtu,
                    max_burst,
                    nagle,
                    interleave,
                    reneges,
                    kind,
                    messages,
                }
            },
        )
}

fn run(case: &Case) {
    let settings = SendConfig {
        nagle: case.nagle,
        max_burst: case.max_burst,
        interleave: case.interleave,
        buffer: case.buffer,
        scheduler: case.kind,
        ..config()
    };
    let mut world = World::new(settings, case.initial, case.room, case.seed);
    world.loss = case.loss;
    world.jitter = ms(case.jitter);
    for id in world.desk.paths.ids() {
        world.desk.paths[id].mtu = case.mtu;
        world.desk.paths[id].window.set_mtu(case.mtu);
    }
    for stream in 0..4 {
        world.desk.sender.set_stream_value(stream, stream * 3);
    }
    let mut expected: BTreeMap<(u16, bool), Vec<Vec<u8>>> = BTreeMap::new();
    let mut open: BTreeMap<(u16, bool), Vec<u8>> = BTreeMap::new();
    for (n, (stream, len, unordered, more)) in case.messages.iter().enumerate() {
        let len = (*len).min(case.buffer);
        let data: Vec<u8> = (0..len).map(|i| (i * 7 + n * 13) as u8).collect();
        let key = (*stream, *unordered);
        let last = case.messages.iter().rposition(|m| (m.0, m.2) == key) == Some(n);
        let more = *more && !last;
        let message = Outgoing {
            unordered: *unordered,
            ..on_stream(*stream)
        };
        let mut steps = 0;
        while let Err(why) = world
            .desk
            .sender
            .enqueue(world.desk.now, &message, &data, more)
        {
            assert_eq!(why, SendError::NoRoom);
            // All others may wait for the end of a message that is in parts: then nothing moves before its turn comes.
            if !world.step() {
                return;
            }
            steps += 1;
            assert!(steps < 100_000, "no room for ever");
        }
        let mut whole = open.remove(&key).unwrap_or_default();
        whole.extend_from_slice(&data);
        match more {
            true => drop(open.insert(key, whole)),
            false => expected.entry(key).or_default().push(whole),
        }
        world.receiver.reneges |= case.reneges && n % 5 == 0;
        if n % 3 == 0 {
            world.step();
        }
        if n == case.messages.len() / 2 {
            world.desk.sender.set_scheduler(SchedulerKind::RoundRobin);
            world.desk.sender.set_scheduler(case.kind);
        }
    }
    world.finish();
    let mut arrived = world.receiver.messages();
    for (key, expected) in expected {
        let mut arrived = arrived.remove(&key).unwrap_or_default();
        if !key.1 {
            arrived.sort_by_key(|(number, _)| *number);
            let numbers: Vec<u32> = arrived.iter().map(|(number, _)| *number).collect();
            let all: Vec<u32> = (0..expected.len() as u32).collect();
            assert_eq!(numbers, all);
        }
        let arrived: Vec<Vec<u8>> = arrived.into_iter().map(|(_, whole)| whole).collect();
        assert!(arrived == expected, "messages of {key:?} differ");
    }
    assert!(arrived.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn everything_arrives(case in cases()) {
        run(&case);
    }

    /// Whatever SACKs a peer makes up, nothing breaks.
    #[test]
    fn sacks_of_a_madman(
        sizes in prop::collection::vec(1..3000_usize, 1..30),
        sacks in prop::collection::vec((0..40_u32, any::<u16>(), prop::collection::vec((0..30_u16, 0..30_u16), 0..6), 0..12_u8), 1..60),
    ) {
        let mut desk = super::world::Desk::new(config(), u32::MAX - 10);
        for (n, len) in sizes.iter().enumerate() {
            let reliability = if n % 3 == 0 { Reliability::Rtx(1) } else { Reliability::Full };
            let message = Outgoing { reliability, ..on_stream((n % 8) as u16) };
            desk.sender.enqueue(desk.now, &message, &vec![0; *len], false).unwrap();
        }
        for (cumulative, window, gaps, then) in sacks {
            desk.flush();
            let cumulative = (u32::MAX - 12).wrapping_add(cumulative);
            let _ = desk.sack(cumulative, u32::from(window), &gaps);
            desk.check();
            if then == 0 && desk.timers.get(crate::timer::Timer::T3(super::A)).is_some() {
                desk.t3(super::A);
            }
        }
    }
}
