use super::*;

/// Sends the messages (stream, bytes), queued in this order, whole; the order in which they leave.
fn order(kind: SchedulerKind, values: &[(u16, u16)], messages: &[(u16, usize)]) -> Vec<u16> {
    let mut scheduler = kind.make();
    for (stream, value) in values {
        scheduler.set_value(*stream, *value);
    }
    let mut queues: Vec<Vec<(u64, usize)>> = vec![Vec::new(); 8];
    for (stream, bytes) in messages {
        let queue = &mut queues[usize::from(*stream)];
        queue.push((scheduler.queued(*stream, queue.is_empty()), *bytes));
    }
    let mut left = Vec::new();
    while let Some(stream) = scheduler.next() {
        let queue = &mut queues[usize::from(stream)];
        let (ticket, bytes) = queue.remove(0);
        let ended = Ended {
            part: true,
            turn: true,
            queue: queue.is_empty(),
        };
        scheduler.sent(stream, ticket, bytes, ended);
        left.push(stream);
    }
    left
}

const MESSAGES: [(u16, usize); 6] = [(1, 10), (1, 10), (1, 10), (2, 10), (3, 10), (2, 10)];

#[test]
fn each_kind_has_its_order() {
    use SchedulerKind::*;
    assert_eq!(order(Fcfs, &[], &MESSAGES), [1, 1, 1, 2, 3, 2]);
    assert_eq!(order(RoundRobin, &[], &MESSAGES), [1, 2, 3, 1, 2, 1]);
    assert_eq!(
        order(Priority, &[(1, 9), (2, 5), (3, 1)], &MESSAGES),
        [3, 2, 2, 1, 1, 1]
    );
    assert_eq!(order(FairCapacity, &[], &MESSAGES), [1, 2, 3, 1, 2, 1]);
}

#[test]
fn a_packet_of_round_robin_by_packets_has_one_stream() {
    let mut scheduler = SchedulerKind::RoundRobinPacket.make();
    let more = Ended {
        part: true,
        turn: true,
        queue: false,
    };
    let last = Ended {
        queue: true,
        ..more
    };
    let tickets = [(1, true), (1, false), (2, true)];
    let tickets = tickets.map(|(stream, first)| scheduler.queued(stream, first));
    scheduler.sent(1, tickets[0], 10, more);
    assert_eq!(scheduler.next(), Some(1));
    scheduler.sent(1, tickets[1], 10, last);
    assert_eq!(scheduler.next(), None, "the packet stays as it is");
    scheduler.packet_done();
    assert_eq!(scheduler.next(), Some(2));
}

#[test]
fn capacity_is_shared_by_bytes_and_weights() {
    for (kind, expected) in [
        (SchedulerKind::FairCapacity, 20),
        (SchedulerKind::WeightedFair, 4),
    ] {
        // Messages of stream 1 are ten times as long.
        let mut scheduler = kind.make();
        scheduler.set_value(2, 5);
        scheduler.queued(1, true);
        scheduler.queued(2, true);
        let mut sent = [0_i32; 2];
        let goes_on = Ended {
            part: true,
            turn: true,
            queue: false,
        };
        while sent[1] < 200 {
            let stream = scheduler.next().unwrap();
            scheduler.sent(stream, 0, if stream == 1 { 1000 } else { 100 }, goes_on);
            sent[usize::from(stream) - 1] += 1;
        }
        assert!((sent[0] - expected).abs() <= 1, "{kind:?}: {sent:?}");
    }
}

#[test]
fn what_is_removed_has_no_turn() {
    for kind in [
        SchedulerKind::Fcfs,
        SchedulerKind::RoundRobin,
        SchedulerKind::RoundRobinPacket,
        SchedulerKind::Priority,
        SchedulerKind::WeightedFair,
    ] {
        let mut scheduler = kind.make();
        let tickets = [(1, true), (2, true), (1, false)];
        let tickets = tickets.map(|(stream, first)| scheduler.queued(stream, first));
        scheduler.removed(1, tickets[2], false);
        scheduler.removed(1, tickets[0], true);
        assert_eq!(scheduler.next(), Some(2), "{kind:?}");
        scheduler.removed(2, tickets[1], true);
        assert_eq!(scheduler.next(), None, "{kind:?}");
    }
}

#[test]
fn streams_and_messages_that_come_and_go_cost_no_more_where_there_are_many() {
    use SchedulerKind::*;
    let kinds = [Fcfs, RoundRobin, RoundRobinPacket, Priority, WeightedFair];
    for kind in kinds {
        crate::work::assert_linear(4000, |count| {
            let mut scheduler = kind.make();
            let streams = 1..count.min(60_000) as u16;
            let tickets: Vec<_> = streams.map(|s| (s, scheduler.queued(s, true))).collect();
            let ended = Ended {
                part: true,
                turn: true,
                queue: true,
            };
            for (nth, (stream, ticket)) in tickets.into_iter().rev().enumerate() {
                match nth % 2 {
                    0 => scheduler.removed(stream, ticket, true),
                    _ => scheduler.sent(stream, ticket, 10, ended),
                }
                scheduler.next();
                scheduler.packet_done();
            }
            assert_eq!(scheduler.next(), None, "{kind:?}");
        });
    }
}

#[test]
fn first_come_first_served_knows_whose_message_was_taken_back() {
    let mut scheduler = SchedulerKind::Fcfs.make();
    let tickets = [(1, true), (2, true), (1, false), (3, true)];
    let tickets = tickets.map(|(stream, first)| scheduler.queued(stream, first));
    scheduler.removed(1, tickets[0], false);
    assert_eq!(scheduler.next(), Some(2));
    scheduler.removed(2, tickets[1], true);
    assert_eq!(scheduler.next(), Some(1));
}
