//! How fast it is: on a path that loses, and in time on the CPU.

use super::world::{A, Desk, MTU, World, config, ms, on_stream};
use super::*;

const WIDE: u32 = 1 << 20;

/// Mathis, Semke, Mahdavi, Ott: the rate of a sender that halves its window at each loss is at most 1.22 packets per round trip,
/// divided by the root of the loss rate.
#[test]
fn at_one_percent_loss_the_rate_is_near_what_is_possible() {
    near_what_is_possible(ms(20), 10_000);
}

/// A lost retransmission that had to wait for T3 would cost ten thousand round trips.
#[test]
fn on_a_short_path_too() {
    near_what_is_possible(Duration::from_micros(50), 40_000);
}

fn near_what_is_possible(delay: Duration, total: u32) {
    let mut world = World::new(config(), 5, 1 << 20, 4711);
    (world.loss, world.delay) = (10, delay);
    let begin = world.desk.now;
    let mut sent = 0;
    while sent < total {
        while sent < total && world.desk.sender.unsent() < 100_000 {
            world.desk.send(0, 1400);
            sent += 1;
        }
        world.step();
    }
    let rate = f64::from(total) / world.desk.now.since(begin).as_secs_f64();
    world.finish();
    let possible = 1.22 / (2.0 * delay.as_secs_f64()) / 0.01_f64.sqrt();
    let share = rate / possible;
    println!("{share:.2} of the bound, {} timeouts", world.timeouts);
    assert!(
        share > 0.7,
        "{share:.2} of the bound, {} timeouts",
        world.timeouts
    );
}

/// Run by hand: `cargo test --release -- --ignored --nocapture cost`.
#[test]
#[ignore = "a measurement"]
fn cost_per_message() {
    // The thread's own time on the CPU, so that others do not count.
    let clock = || -> u64 {
        let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        times.split_whitespace().next().unwrap().parse().unwrap()
    };
    for (len, most) in [(64, 150), (1024, 200), (16_384, 5000)] {
        let mut best = f64::MAX;
        for _ in 0..5 {
            let mut desk = Desk::new(
                SendConfig {
                    max_burst: 0,
                    ..config()
                },
                1,
            );
            desk.paths[A]
                .window
                .on_ack(Time(0), 1 << 20, 1 << 20, true, false);
            let data = vec![1; len];
            let message = on_stream(0);
            let mut bytes = Vec::with_capacity(1 << 16);
            let (mut sent, rounds) = (0_u32, if len > 1024 { 3_000 } else { 30_000 });
            let begin = clock();
            let batch = if len > 1024 { 4 } else { 64 };
            for _ in 0..rounds {
                for _ in 0..batch {
                    desk.sender
                        .enqueue(desk.now, &message, &data, false)
                        .unwrap();
                }
                while desk.wants() {
                    bytes.clear();
                    let mut packet = crate::wire::PacketBuilder::begin(&mut bytes, 1, 2, 3, MTU);
                    let (paths, timers) = (&mut desk.paths, &mut desk.timers);
                    sent += desk.sender.fill(desk.now, A, paths, timers, &mut packet) as u32;
                    packet.finish(None, false);
                }
                bytes.clear();
                let mut packet = crate::wire::PacketBuilder::begin(&mut bytes, 2, 1, 3, MTU);
                packet.sack(Tsn(sent), WIDE, &[], &[]);
                packet.finish(None, false);
                let packet = crate::wire::Packet::parse(&bytes).unwrap();
                let Some(Ok(crate::wire::Chunk::Sack(sack))) = packet.chunks().next() else {
                    panic!()
                };
                desk.sender
                    .on_sack(desk.now, &sack, &mut desk.paths, &mut desk.timers)
                    .unwrap();
            }
            let each = (clock() - begin) as f64 / f64::from(rounds * batch);
            best = best.min(each);
        }
        println!("{len} bytes: {best:.0} ns per message, at most {most} wanted");
    }
}
