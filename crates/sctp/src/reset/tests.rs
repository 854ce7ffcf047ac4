use proptest::prelude::*;

use super::*;
use crate::RtoLimits;
use crate::congestion::Rfc9260;
use crate::path::{Path, PathId, PathState, Paths};
use crate::pmtu::Pmtu;
use crate::recv::ReceiveConfig;
use crate::rto::Rto;
use crate::sched::SchedulerKind;
use crate::send::{Outgoing, Reliability, SendConfig};
use crate::time::Time;
use crate::timer::Timers;
use crate::wire::{Chunk, Packet};

const PATH: PathId = PathId(0);
const STREAMS: u16 = 4;

/// One side of an association: what takes part in resets.
struct Side {
    sender: Sender,
    receiver: Receiver,
    reset: Reset,
    paths: Paths,
    timers: Timers,
    events: Vec<Event>,
    now: Time,
}

impl Side {
    fn new(local: Tsn, peer: Tsn) -> Side {
        let mut paths = Paths::default();
        paths.add(Path {
            addr: [10, 0, 0, 1].into(),
            encap: None,
            from: None,
            heard: None,
            state: PathState::Active,
            rto: Rto::new(RtoLimits::default()),
            window: Box::new(Rfc9260::new(1452)),
            flight: 0,
            mtu: 1452,
            probing: Pmtu::new(1232, 1232),
            errors: 0,
            last_sent: Time(0),
            heartbeat: None,
            heartbeats: true,
            heartbeat_interval: None,
            most_errors: None,
            potentially_failed: None,
            heartbeat_wanted: false,
            probe: None,
            retransmissions: 0,
        });
        let config = SendConfig {
            nagle: false,
            joins: false,
            max_burst: 4,
            interleave: false,
            partial_reliability: true,
            buffer: 1 << 16,
            scheduler: SchedulerKind::default(),
        };
        Side {
            sender: Sender::new(config, local, STREAMS, 1 << 16),
            receiver: Receiver::new(ReceiveConfig::default(), peer, STREAMS),
            reset: Reset::new(local, peer),
            paths,
            timers: Timers::default(),
            events: Vec::new(),
            now: Time(1),
        }
    }

    fn send(&mut self, stream: u16, text: &str) {
        let message = Outgoing {
            stream,
            ppid: 0,
            unordered: false,
            sack_now: false,
            reliability: Reliability::Full,
            context: 0,
            to: None,
            key: None,
        };
        self.sender
            .enqueue(self.now, &message, text.as_bytes(), false)
            .expect("there is room");
    }

    fn ask(&mut self, ask: Ask) {
        self.reset
            .ask(ask, &self.sender, &self.receiver)
            .expect("it is allowed");
    }

    /// A packet with SACK, re-configuration and data, as far as there is any.
    fn packet(&mut self) -> Option<Vec<u8>> {
        self.now.0 += 1_000_000;
        let mut out = Vec::new();
        let mut packet = PacketBuilder::begin(&mut out, 1, 2, 3, 1452);
        if self.receiver.sack_wanted() != crate::recv::SackWanted::No {
            self.receiver.write_sack(&mut packet);
        }
        if self.reset.wants(&self.sender) {
            self.reset.write(&mut self.sender, &mut packet);
        }
        self.sender.fill(
            self.now,
            PATH,
            &mut self.paths,
            &mut self.timers,
            &mut packet,
        );
        if packet.is_empty() {
            packet.cancel();
            return None;
        }
        packet.finish(None, true);
        Some(out)
    }

    fn handle(&mut self, bytes: &[u8]) {
        self.now.0 += 1_000_000;
        for chunk in Packet::parse(bytes).expect("a packet").chunks() {
            match chunk.expect("a right chunk") {
                Chunk::Data(_) | Chunk::Sack(_) if self.reset.is_restarting() => {}
                Chunk::Data(data) => {
                    self.receiver.on_data(&data).expect("right data");
                }
                Chunk::Sack(sack) => {
                    self.sender
                        .on_sack(self.now, &sack, &mut self.paths, &mut self.timers)
                        .expect("a right SACK");
                }
                Chunk::ReConfig(params) => {
                    let events =
                        self.reset
                            .on_re_config(params, &mut self.sender, &mut self.receiver);
                    self.events.extend(events);
                }
                other => panic!("{other:?}"),
            }
        }
        self.receiver.end_of_packet();
        self.receiver.check();
        self.sender.check(&self.paths);
    }

    fn time_out(&mut self) {
        self.reset.on_timeout();
        self.time_out_data();
    }

    fn time_out_data(&mut self) {
        if self.sender.outstanding() > 0 {
            self.sender
                .on_t3(self.now, PATH, &mut self.paths, &mut self.timers);
        }
    }

    fn read(&mut self) -> Vec<(u16, u16, String)> {
        let mut buffer = [0; 100];
        let mut list = Vec::new();
        while let Some(got) = self.receiver.read(&mut buffer) {
            let text = String::from_utf8_lossy(&buffer[..got.len]).into_owned();
            list.push((got.stream, got.ssn.0, text));
        }
        list
    }
}

fn pair() -> (Side, Side) {
    let (a, b) = (Tsn(u32::MAX - 1), Tsn(500));
    (Side::new(a, b), Side::new(b, a))
}

/// Exchanges packets until there are none; `lost` says of each packet, in turn, whether it is lost.
fn exchange(a: &mut Side, b: &mut Side, mut lost: impl FnMut() -> bool) {
    let (mut quiet, mut rounds, mut silences) = (0, 0, 0);
    while quiet < 3 {
        rounds += 1;
        assert!(rounds < 10_000, "no end: {:?} {:?}", a.reset, b.reset);
        let packets = (a.packet(), b.packet());
        quiet = if packets == (None, None) {
            quiet + 1
        } else {
            0
        };
        for (packet, to) in [(packets.0, &mut *b), (packets.1, &mut *a)] {
            if let Some(packet) = packet.filter(|_| !lost()) {
                to.handle(&packet);
            }
        }
        if quiet > 0 {
            silences += 1;
            for side in [&mut *a, &mut *b] {
                // Not both at once: data that comes while an answer is awaited may be dropped.
                if silences % 2 == 0 {
                    side.time_out_data()
                } else {
                    side.reset.on_timeout()
                }
            }
        }
        let pending = |side: &Side| {
            side.reset.is_outstanding() || !side.reset.queue.is_empty() || !side.sender.is_idle()
        };
        if pending(a) || pending(b) {
            quiet = quiet.min(2);
        }
    }
}

fn settle(a: &mut Side, b: &mut Side) {
    exchange(a, b, || false);
}

fn streams(incoming: bool, streams: &[u16], outcome: Outcome) -> Event {
    Event::StreamsReset {
        incoming,
        streams: streams.to_vec(),
        outcome,
    }
}

#[test]
fn an_outgoing_stream_begins_anew_after_what_was_sent_before() {
    let (mut a, mut b) = pair();
    a.send(1, "before");
    a.send(2, "other");
    a.ask(Ask::Outgoing(vec![1]));
    a.packet().expect("data, and the stream is held");
    a.send(1, "after");
    a.time_out();
    settle(&mut a, &mut b);
    assert_eq!(a.events, [streams(false, &[1], Outcome::Done)]);
    assert_eq!(b.events, [streams(true, &[1], Outcome::Done)]);
    let got = b.read();
    assert!(got.contains(&(1, 0, "before".into())) && got.contains(&(1, 0, "after".into())));
    a.send(2, "goes on");
    settle(&mut a, &mut b);
    assert_eq!(b.read(), [(2, 1, "goes on".into())]);
}

#[test]
fn the_peer_resets_its_streams_when_asked() {
    let (mut a, mut b) = pair();
    b.send(3, "before");
    settle(&mut a, &mut b);
    a.ask(Ask::Incoming(vec![3]));
    settle(&mut a, &mut b);
    assert_eq!(a.events, [streams(true, &[3], Outcome::Done)]);
    assert_eq!(b.events, [streams(false, &[3], Outcome::Done)]);
    b.send(3, "after");
    settle(&mut a, &mut b);
    assert_eq!(a.read(), [(3, 0, "before".into()), (3, 0, "after".into())]);
}

#[test]
fn a_whole_association_begins_anew() {
    let (mut a, mut b) = pair();
    a.send(0, "a");
    b.send(0, "b");
    a.ask(Ask::Association);
    settle(&mut a, &mut b);
    assert_eq!(
        (&a.events[..], &b.events[..]),
        (
            &[Event::Reset {
                outcome: Outcome::Done
            }][..],
            &[Event::Reset {
                outcome: Outcome::Done
            }][..]
        )
    );
    let expected = Tsn(u32::MAX - 1).next().plus(1 << 31);
    assert_eq!(
        (a.sender.next_tsn(), b.receiver.cumulative().next()),
        (expected, expected)
    );
    a.send(0, "anew");
    b.send(0, "anew");
    settle(&mut a, &mut b);
    assert_eq!(b.read(), [(0, 0, "a".into()), (0, 0, "anew".into())]);
    assert_eq!(a.read(), [(0, 0, "b".into()), (0, 0, "anew".into())]);
}

#[test]
fn streams_are_added_on_both_sides() {
    let (mut a, mut b) = pair();
    a.ask(Ask::AddOutgoing(6));
    a.ask(Ask::AddIncoming(2));
    settle(&mut a, &mut b);
    assert_eq!(
        (a.sender.streams(), b.receiver.streams()),
        (STREAMS + 6, STREAMS + 6)
    );
    assert_eq!(
        (b.sender.streams(), a.receiver.streams()),
        (STREAMS + 2, STREAMS + 2)
    );
    let added = |incoming, outgoing| Event::StreamsAdded {
        incoming,
        outgoing,
        outcome: Outcome::Done,
    };
    assert_eq!(a.events, [added(0, 6), added(2, 0)]);
    assert_eq!(b.events, [added(6, 0), added(0, 2)]);
    a.send(9, "new stream");
    settle(&mut a, &mut b);
    assert_eq!(b.read(), [(9, 0, "new stream".into())]);
    let refused = a
        .reset
        .ask(Ask::AddOutgoing(u16::MAX), &a.sender, &a.receiver);
    assert_eq!(refused, Err(AskRefused::TooMany));
    let refused = a.reset.ask(Ask::Outgoing(vec![77]), &a.sender, &a.receiver);
    assert_eq!(refused, Err(AskRefused::BadStream));
}

#[test]
fn what_is_denied_leaves_everything_as_it_was() {
    let (mut a, mut b) = pair();
    b.reset.allowed = Allowed::default();
    a.send(1, "one");
    for ask in [
        Ask::Outgoing(vec![1]),
        Ask::Incoming(vec![1]),
        Ask::Association,
        Ask::AddOutgoing(1),
        Ask::AddIncoming(1),
    ] {
        a.ask(ask);
    }
    a.send(1, "two");
    settle(&mut a, &mut b);
    assert_eq!(b.read(), [(1, 0, "one".into()), (1, 1, "two".into())]);
    assert_eq!(b.events, []);
    let denied = Outcome::Denied;
    let expected = [
        streams(false, &[1], denied),
        streams(true, &[1], denied),
        Event::Reset { outcome: denied },
        Event::StreamsAdded {
            incoming: 0,
            outgoing: 1,
            outcome: denied,
        },
        Event::StreamsAdded {
            incoming: 1,
            outgoing: 0,
            outcome: denied,
        },
    ];
    assert_eq!(a.events, expected);
}

#[test]
fn a_request_that_comes_again_is_answered_alike_and_not_done_again() {
    let (mut a, mut b) = pair();
    a.ask(Ask::AddOutgoing(1));
    let request = a.packet().expect("a request");
    b.handle(&request);
    let answer = b.packet().expect("an answer");
    b.handle(&request);
    assert_eq!(b.packet().as_ref(), Some(&answer));
    assert_eq!((b.receiver.streams(), b.events.len()), (STREAMS + 1, 1));
    a.handle(&answer);
    a.handle(&answer);
    assert_eq!((a.sender.streams(), a.events.len()), (STREAMS + 1, 1));
}

#[test]
fn numbers_that_are_not_expected_change_nothing() {
    let (_, mut b) = pair();
    let mut out = Vec::new();
    let mut packet = PacketBuilder::begin(&mut out, 1, 2, 3, 1452);
    packet.re_config(|params| {
        params.put(&Param::AddOutgoing {
            request: 5,
            streams: 1,
        });
    });
    packet.finish(None, true);
    b.handle(&out);
    assert_eq!((b.receiver.streams(), b.events.len()), (STREAMS, 0));
    assert_eq!(
        b.reset.unsent,
        [Answer {
            number: Tsn(5),
            result: result::BAD_NUMBER,
            next: None
        }]
    );
}

#[test]
fn a_reset_of_streams_that_are_not_there_is_an_error() {
    let (_, mut b) = pair();
    let mut out = Vec::new();
    let mut packet = PacketBuilder::begin(&mut out, 1, 2, 3, 1452);
    packet.re_config(|params| {
        params.outgoing_reset(u32::MAX - 1, 0, Tsn(u32::MAX - 2), &[99]);
    });
    packet.finish(None, true);
    b.handle(&out);
    assert_eq!(b.reset.unsent[0].result, result::WRONG_STREAM);
}

#[test]
fn a_reset_waits_for_data_that_has_not_come_and_is_asked_again_under_a_new_number() {
    let (mut a, mut b) = pair();
    a.ask(Ask::Outgoing(vec![]));
    let request = a.packet().expect("a request");
    let mut out = Vec::new();
    let mut packet = PacketBuilder::begin(&mut out, 1, 2, 3, 1452);
    // As from a peer that does not wait for its data to be acknowledged.
    packet.re_config(|params| {
        params.outgoing_reset(u32::MAX - 1, 0, Tsn(u32::MAX - 1), &[]);
    });
    packet.finish(None, true);
    b.handle(&out);
    assert_eq!(b.reset.unsent[0].result, result::IN_PROGRESS);
    let answer = b.packet().expect("an answer");
    a.handle(&answer);
    assert!(a.reset.is_outstanding() && !a.reset.wants(&a.sender));
    a.time_out();
    assert_ne!(a.packet().expect("again"), request);
    a.time_out();
    settle(&mut a, &mut b);
    assert_eq!(a.events, [streams(false, &[], Outcome::Done)]);
}

#[test]
fn long_lists_are_cut() {
    let (mut a, mut b) = pair();
    a.ask(Ask::AddOutgoing(1000));
    settle(&mut a, &mut b);
    a.events.clear();
    a.ask(Ask::Outgoing((0..500).collect()));
    settle(&mut a, &mut b);
    assert_eq!(a.events.len(), 3);
}

#[test]
fn a_peer_can_not_make_any_number_of_requests_wait() {
    let (a, _) = pair();
    let mut reset = a.reset;
    for more in 1..100 {
        reset.add_outgoing(more, &a.sender);
    }
    assert_eq!(reset.queue.len(), MOST_QUEUED);
    assert_eq!(reset.add_outgoing(1, &a.sender), result::DENIED);
    let streams = [0, 1, 0, 2];
    let streams = List::parse(&streams).expect("a list");
    assert_eq!(
        reset.reset_outgoing(Tsn(5), &streams, &a.sender),
        result::DENIED
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn requests_of_both_sides_end_whatever_is_lost(
        asks in prop::collection::vec((any::<bool>(), 0u8..5, 0u16..STREAMS), 1..8),
        losses in prop::collection::vec(any::<bool>(), 0..40),
    ) {
        let (mut a, mut b) = pair();
        let mut losses = losses.into_iter();
        let mut sent = [0, 0];
        for (first, what, stream) in &asks {
            let side = if *first { &mut a } else { &mut b };
            side.ask(match what {
                0 => Ask::Outgoing(vec![*stream]),
                1 => Ask::Incoming(vec![*stream]),
                2 => Ask::Association,
                3 => Ask::AddOutgoing(1),
                _ => Ask::AddIncoming(1),
            });
            side.send(*stream, "message");
            sent[usize::from(*first)] += 1;
            let packet = side.packet();
            let other = if *first { &mut b } else { &mut a };
            if let Some(packet) = packet.filter(|_| !losses.next().unwrap_or(false)) {
                other.handle(&packet);
            }
        }
        exchange(&mut a, &mut b, || losses.next().unwrap_or(false));
        prop_assert_eq!(a.read().len(), sent[0]);
        prop_assert_eq!(b.read().len(), sent[1]);
        prop_assert_eq!(a.sender.streams(), b.receiver.streams());
        prop_assert_eq!(b.sender.streams(), a.receiver.streams());
        for side in [&mut a, &mut b] {
            (0..STREAMS).for_each(|stream| side.send(stream, "last"));
        }
        settle(&mut a, &mut b);
        prop_assert_eq!((a.read().len(), b.read().len()), (4, 4));
    }
}
