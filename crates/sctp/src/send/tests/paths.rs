//! Several paths, of which one loses, goes or shrinks.

use super::*;

#[test]
fn t3_moves_what_is_lost_to_another_path() {
    let mut desk = Desk::new(config(), 1);
    for _ in 0..3 {
        desk.send(0, 1000);
    }
    desk.flush();
    desk.t3(A);
    assert_eq!((desk.paths[A].flight, desk.sender.lost_on()), (0, Some(A)));
    let packet = world::data_of(&desk.packet_on(B));
    assert_eq!(tsns(&packet), [1]);
    assert_eq!(
        (
            desk.paths[B].flight,
            desk.timers.get(Timer::T3(B)).is_some()
        ),
        (1000, true)
    );
    let acked = desk.sack(1, WIDE, &[]).unwrap();
    assert_eq!(acked.paths, 1 << B.0);
    assert_eq!(desk.timers.get(Timer::T3(B)), None);
}

#[test]
fn a_path_that_goes_leaves_its_chunks_to_another() {
    let mut desk = Desk::new(config(), 1);
    for _ in 0..3 {
        desk.send(0, 1000);
    }
    desk.flush();
    desk.sack(0, WIDE, &[(2, 2)]).unwrap();
    desk.sender
        .remove_path(desk.now, A, &mut desk.paths, &mut desk.timers);
    desk.paths.remove(A);
    desk.check();
    assert_eq!(tsns(&world::data_of(&desk.packet_on(B))), [1]);
    // What was acknowledged by a gap block on the old path is thrown away by the peer now.
    desk.sack(1, WIDE, &[]).unwrap();
    assert_eq!(desk.paths[B].flight, 1000);
    desk.t3(B);
    while !desk.packet_on(B).is_empty() {}
    assert!(desk.sack(3, WIDE, &[]).unwrap().all);
}

#[test]
fn what_was_sent_on_a_path_that_is_gone_says_nothing_of_another_of_its_number() {
    let mut desk = Desk::new(config(), 1);
    for _ in 0..3 {
        desk.send(0, 1000);
    }
    desk.flush();
    desk.t3(A);
    assert_eq!(desk.sender.lost_on(), Some(A));
    desk.sender
        .remove_path(desk.now, A, &mut desk.paths, &mut desk.timers);
    assert_eq!((desk.sender.lost_on(), desk.sender.lost()), (None, 3));
    // It had arrived all the same.
    let acked = desk.sack(2, WIDE, &[]).unwrap();
    assert_eq!((acked.bytes, acked.paths), (2000, 0));
    assert_eq!(tsns(&world::data_of(&desk.packet_on(B))), [3]);
    assert_eq!(desk.sack(3, WIDE, &[]).unwrap().paths, 1 << B.0);
}

#[test]
fn a_thousand_packets_over_a_lossy_path_need_few_timeouts() {
    let mut world = World::new(config(), 5, 1 << 20, 99);
    world.loss = 10;
    for _ in 0..1000 {
        world.desk.send(0, 1400);
        world.step();
    }
    world.finish();
    assert_eq!(world.receiver.messages()[&(0, false)].len(), 1000);
    assert!(world.timeouts <= 4, "{} timeouts", world.timeouts);
    assert!(world.packets < 1100, "{} packets", world.packets);
}

#[test]
fn data_gets_through_when_one_path_is_cut() {
    let mut world = World::new(config(), u32::MAX - 3, 1 << 20, 7);
    for _ in 0..20 {
        world.desk.send(0, 1400);
    }
    world.cut = true;
    world.finish();
    assert_eq!(world.receiver.messages()[&(0, false)].len(), 20);
}

#[test]
fn an_idle_path_begins_again_with_a_small_window() {
    let mut desk = Desk::new(config(), 1);
    desk.sender.config.max_burst = 0;
    desk.paths[A]
        .window
        .on_ack(Time(0), 1 << 20, 1 << 20, true, false);
    desk.send(0, 100);
    desk.flush();
    desk.sack(1, WIDE, &[]).unwrap();
    desk.now = desk.now + Duration::from_secs(3600);
    for _ in 0..20 {
        desk.send(0, 1400);
    }
    assert!(desk.flush().len() <= 5);
}

#[test]
fn a_chunk_too_long_for_a_path_that_has_shrunk_goes_alone() {
    let mut desk = Desk::new(config(), 1);
    desk.send(0, 400);
    desk.send(0, 800);
    desk.flush();
    desk.paths[A].mtu = 600;
    desk.t3(A);
    assert_eq!(tsns(&desk.packet()), [1]);
    desk.sack(1, WIDE, &[]).unwrap();
    assert_eq!(tsns(&desk.packet()), [2]);
    desk.send(0, 800);
    desk.sack(2, WIDE, &[]).unwrap();
    assert_eq!(sizes(&desk.packet()), [572], "new ones are cut to fit");
}
