//! Two endpoints that hand each other packets at once, and packets made by hand between them.

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

#[test]
fn an_abort_with_the_t_bit_has_to_have_the_peers_tag() {
    let mut pair = Pair::connected(1, AssocConfig::default());
    let (ours, theirs) = (
        pair.association(0).local_tag(),
        pair.association(0).peer_tag(),
    );
    pair.forge(0, ours, |packet| packet.abort(true, |_| {}));
    pair.forge(0, theirs, |packet| packet.abort(false, |_| {}));
    assert_eq!(pair.association(0).state(), State::Established);
    pair.forge(0, theirs, |packet| packet.abort(true, |_| {}));
    assert_eq!(pair.association(0).state(), State::Closed);
}

#[test]
fn an_abort_that_must_be_authenticated_is_not_believed_for_its_t_bit() {
    let config = AssocConfig {
        authentication: true,
        authenticated_chunks: vec![kind::ABORT],
        ..AssocConfig::default()
    };
    let mut pair = Pair::connected(1, config);
    let theirs = pair.association(0).peer_tag();
    pair.forge(0, theirs, |packet| packet.abort(true, |_| {}));
    assert_eq!(pair.association(0).state(), State::Established);
}

#[test]
fn chunks_of_every_kind_that_a_peer_wants_authenticated_are() {
    for interleave in [false, true] {
        let config = AssocConfig {
            interleave,
            authentication: true,
            authenticated_chunks: vec![
                kind::COOKIE_ECHO,
                kind::COOKIE_ACK,
                kind::I_DATA,
                kind::I_FORWARD_TSN,
                kind::HEARTBEAT,
            ],
            ..AssocConfig::default()
        };
        let mut pair = Pair::connected(1, config);
        pair.send(0, b"hello");
        pair.run();
        assert!(pair.ends[1].readable(pair.ids[1]));
        let peer = addr(THERE[0]);
        let id = pair.ids[0];
        pair.ends[0].change(id, |association| association.request_heartbeat(peer));
        pair.run();
        assert!(
            pair.association(0)
                .paths()
                .iter()
                .all(|(_, p)| p.heartbeat.is_none())
        );
    }
}

#[test]
fn a_peer_that_finds_every_cookie_stale_is_given_up() {
    let mut pair = Pair::new(1, AssocConfig::default());
    pair.ends[1].config_mut().cookie_lifetime = Duration::ZERO;
    let id = pair.connect();
    for _ in 0..100 {
        pair.step(0);
        // The INIT ACK waits for longer than any cookie lives.
        pair.now = pair.now + Duration::from_secs(100);
        pair.step(1);
    }
    let association = pair.ends[0].association(id).expect("not released");
    assert_eq!(association.state(), State::Closed);
    let refused = false;
    assert!(
        pair.events(0)
            .contains(&Event::Down(Down::SetupFailed { refused }))
    );
}

#[test]
fn an_icmp_message_that_quotes_no_initiate_tag_ends_no_handshake() {
    let mut pair = Pair::new(1, AssocConfig::default());
    let id = pair.connect();
    let mut init = Vec::new();
    pair.ends[0].transmit(START, &mut init, 1).expect("an INIT");
    let to = addr(THERE[0]);
    pair.ends[0].unreachable(START, to, Unreachable::Port, &init[..8]);
    assert_eq!(
        pair.ends[0].association(id).unwrap().state(),
        State::CookieWait
    );
    pair.ends[0].unreachable(START, to, Unreachable::Port, &init[..28]);
    assert_eq!(pair.ends[0].association(id).unwrap().state(), State::Closed);
}

#[test]
fn an_init_that_met_nobody_for_a_moment_goes_again_at_once_but_not_for_ever() {
    let limit = AssocConfig::default().init_retransmissions;
    let mut pair = Pair::new(1, AssocConfig::default());
    let id = pair.connect();
    for _ in 0..=limit {
        let mut init = Vec::new();
        let sent = pair.ends[0].transmit(START, &mut init, 1);
        assert!(sent.is_some(), "an INIT, though no time has passed");
        let to = addr(THERE[0]);
        pair.ends[0].unreachable(START, to, Unreachable::Passing, &init);
        // Of the same one, told twice.
        pair.ends[0].unreachable(START, to, Unreachable::Passing, &init);
    }
    assert_eq!(pair.ends[0].association(id).unwrap().state(), State::Closed);
    let refused = true;
    assert!(
        pair.events(0)
            .contains(&Event::Down(Down::SetupFailed { refused }))
    );
}

#[test]
fn a_shut_window_is_no_error_of_the_path() {
    let config = AssocConfig {
        receive_window: 4000,
        heartbeats: false,
        ..AssocConfig::default()
    };
    let mut pair = Pair::connected(1, config);
    for _ in 0..10 {
        pair.send(0, &[1; 1000]);
    }
    pair.wait(Duration::from_secs(600));
    let (_, path) = pair.association(0).paths().iter().next().expect("a path");
    assert_eq!(pair.association(0).state(), State::Established);
    assert_eq!((path.state, path.mtu), (PathState::Active, 1452));
}

#[test]
fn full_packets_that_are_lost_while_small_ones_pass_are_made_smaller_once() {
    let mut pair = Pair::connected(1, AssocConfig::default());
    pair.passes = |_, packet| packet.len() <= 1300;
    pair.send(0, &[1; 1400]);
    pair.wait(Duration::from_secs(100));
    let (_, path) = pair.association(0).paths().iter().next().expect("a path");
    assert!(path.mtu < 1300, "{}", path.mtu);
    // Where nothing passes at all it is not the size.
    let mut pair = Pair::connected(1, AssocConfig::default());
    pair.passes = |_, _| false;
    pair.send(0, &[1; 1400]);
    pair.wait(Duration::from_secs(60));
    let (_, path) = pair.association(0).paths().iter().next().expect("a path");
    assert_eq!(path.mtu, 1452);
}

#[test]
fn events_that_nobody_takes_do_not_pile_up() {
    let mut pair = Pair::connected(1, AssocConfig::default());
    let tag = pair.association(0).local_tag();
    for _ in 0..10_000 {
        pair.forge(0, tag, |packet| {
            packet.error(|causes| {
                causes.put(&crate::wire::Cause::OutOfResource);
            })
        });
        pair.send(0, b"x");
        pair.run();
        while pair.ends[1]
            .receive(pair.now, pair.ids[1], &mut [0; 8])
            .is_some()
        {}
    }
    let id = pair.ids[0];
    pair.ends[0].abort(pair.now, id, b"");
    assert!(pair.ends[0].events.len() <= MOST_EVENTS);
    let events = pair.events(0);
    assert!(events.len() < 3 * MOST_EVENTS, "{}", events.len());
    assert!(
        matches!(events.last(), Some(Event::Down(_))),
        "and the end is told"
    );
}

#[test]
fn a_restart_with_the_users_shutdown_under_way_is_shut_down_too() {
    let mut pair = Pair::connected(1, AssocConfig::default());
    pair.send(1, b"never acknowledged");
    let id = pair.ids[1];
    pair.ends[1].shutdown(pair.now, id);
    pair.ends[1].release(pair.now, id);
    // The peer has forgotten everything.
    let config = pair.ends[0].config().association.clone();
    let mut own = Config::new(Box::new(RotatingKeys::new([3; 32])));
    own.association = config;
    pair.ends[0] = Endpoint::new(own, 7, vec![addr(HERE[0])], [3; 32]);
    pair.connect();
    pair.wait(Duration::from_secs(5));
    assert!(
        pair.ends[1].association(id).is_none(),
        "nobody would ever end it"
    );
}

#[test]
fn data_from_an_address_that_is_not_confirmed_is_not_answered_there() {
    let mut pair = Pair::new(2, AssocConfig::default());
    // No HEARTBEAT is answered.
    pair.passes = |_, packet| packet.get(12) != Some(&kind::HEARTBEAT);
    pair.connect();
    pair.run();
    pair.ids[1] = pair.ends[1].accept().expect("an association");
    let tag = pair.association(1).local_tag();
    let tsn = pair.association(1).receiver().cumulative().next();
    let mut bytes = Vec::new();
    let mut packet = PacketBuilder::begin(&mut bytes, 7, 7, tag, 1452);
    let head = crate::wire::DataHead {
        tsn,
        begin: true,
        end: true,
        immediate: true,
        ..Default::default()
    };
    packet.data(&head, b"data");
    packet.finish(None, true);
    let arrived = Arrived {
        from: addr(HERE[1]),
        to: addr(THERE[1]),
        encap: None,
        packet: &bytes,
    };
    pair.ends[1].handle(pair.now, &arrived);
    let mut out = Vec::new();
    let sent = pair.ends[1]
        .transmit(pair.now, &mut out, 1)
        .expect("a SACK");
    assert_eq!((out[12], sent.to), (kind::SACK, addr(HERE[0])));
}

#[test]
fn a_shutdown_that_acknowledges_what_was_never_sent_is_still_a_shutdown() {
    let mut pair = Pair::connected(1, AssocConfig::default());
    let tag = pair.association(0).local_tag();
    let never = pair.association(0).sender().next_tsn().plus(1000);
    pair.forge(0, tag, |packet| packet.shutdown(never));
    assert_eq!(pair.association(0).state(), State::ShutdownAckSent);
}

#[test]
fn an_abort_takes_nothing_back_once_both_have_shut_down() {
    for shut_down in [false, true] {
        let mut pair = Pair::connected(1, AssocConfig::default());
        let tag = pair.association(0).local_tag();
        let next = pair.association(0).local_tsn();
        if shut_down {
            pair.forge(0, tag, |packet| {
                packet.shutdown(Tsn(next.0.wrapping_sub(1)))
            });
        }
        pair.forge(0, tag, |packet| packet.abort(false, |_| {}));
        let peaceful = pair.events(0).contains(&Event::Down(Down::Shutdown));
        assert_eq!(peaceful, shut_down);
    }
}

#[test]
fn a_peer_that_left_while_its_last_word_was_lost_is_not_waited_for() {
    let mut pair = Pair::connected(1, AssocConfig::default());
    pair.passes = |_, packet| packet[12] != kind::SHUTDOWN_COMPLETE;
    pair.ends[1].shutdown(pair.now, pair.ids[1]);
    pair.run();
    let (end, id) = (&mut pair.ends[0], pair.ids[0]);
    let state = |end: &Endpoint| end.association(id).expect("it is there").state();
    let there = addr(THERE[0]);
    for round in 1..=2 {
        // Another process may be about to take the port over.
        assert_eq!(state(end), State::ShutdownAckSent, "before round {round}");
        let at = end.timeout().expect("it is said again");
        end.on_timeout(at);
        let mut said = Vec::new();
        end.transmit(at, &mut said, 1).expect("a SHUTDOWN ACK");
        assert_eq!(said[12], kind::SHUTDOWN_ACK);
        // By one who has not seen the packet.
        let mut forged = said.clone();
        forged[4] ^= 1;
        end.unreachable(at, there, Unreachable::Port, &forged);
        end.unreachable(at, there, Unreachable::Host, &said);
        assert_eq!(state(end), State::ShutdownAckSent, "in round {round}");
        end.unreachable(at, there, Unreachable::Port, &said);
    }
    assert!(pair.events(0).contains(&Event::Down(Down::Shutdown)));
}

#[test]
fn unknown_parameters_are_not_reflected_without_bound() {
    let mut pair = Pair::new(1, AssocConfig::default());
    let head = crate::wire::InitHead {
        tag: 5,
        window: 10_000,
        outbound: 1,
        inbound: 1,
        tsn: Tsn(1),
    };
    pair.forge(1, 0, |packet| {
        packet.init(&head, |params| {
            let mut whole = vec![0xc1, 0xc1, 0x04, 0x00];
            whole.resize(1024, 0);
            let kind = 0xc1c1;
            params.put(&crate::wire::Param::Unknown {
                kind,
                whole: &whole,
            });
        })
    });
    let mut out = Vec::new();
    pair.ends[1]
        .transmit(START, &mut out, 1)
        .expect("an INIT ACK");
    assert!(out.len() < 600, "{}", out.len());
}

#[test]
fn causes_of_aborts_are_told() {
    let mut pair = Pair::connected(1, AssocConfig::default());
    let id = pair.ids[0];
    pair.ends[0].abort(pair.now, id, b"enough");
    pair.run();
    let causes = vec![CauseOwned::from(crate::wire::Cause::UserAbort(b"enough"))];
    let by_peer = true;
    assert!(
        pair.events(1)
            .contains(&Event::Down(Down::Aborted { by_peer, causes }))
    );
}

/// Pages of this process that are in memory, in bytes.
#[cfg(target_os = "linux")]
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("statm");
    let pages = pages
        .split(' ')
        .nth(1)
        .and_then(|n| n.parse::<usize>().ok());
    pages.expect("a number") * 4096
}

/// By hand: `--ignored --nocapture`.
#[test]
#[ignore = "a measurement, not exact beside other tests"]
#[cfg(target_os = "linux")]
fn an_idle_association_is_small() {
    const MANY: usize = 5000;
    let mut pair = Pair::new(1, AssocConfig::default());
    pair.ends[1].listen(MANY);
    let before = resident();
    let mut clients = Vec::new();
    for seed in 0..MANY as u32 {
        let mut all = [0; 32];
        all[..4].copy_from_slice(&seed.to_be_bytes());
        let own = Config::new(Box::new(RotatingKeys::new(all)));
        let port = 1000 + seed as u16;
        pair.ends[0] = Endpoint::new(own, port, vec![addr(HERE[0])], all);
        pair.connect();
        pair.run();
        pair.send(0, b"hello");
        pair.run();
        pair.ids[1] = pair.ends[1].accept().expect("an association");
        assert!(
            pair.ends[1]
                .receive(pair.now, pair.ids[1], &mut [0; 8])
                .is_some()
        );
        clients.push(pair.ends[0].table.take(pair.ids[0]));
        while pair.ends[1].event().is_some() {}
    }
    let each = (resident() - before) / (2 * MANY);
    println!("{each} bytes, {} of them itself", size_of::<Association>());
    assert!(each < 8192, "{each}");
}

/// What end 1 has received on stream 0, as (unordered, bytes).
fn received(pair: &mut Pair) -> Vec<(bool, Vec<u8>)> {
    let mut all: Vec<(bool, Vec<u8>)> = Vec::new();
    let mut whole = true;
    let mut buffer = [0; 8192];
    while let Some(got) = pair.ends[1].receive(pair.now, pair.ids[1], &mut buffer) {
        if whole {
            all.push((got.unordered, Vec::new()));
        }
        all.last_mut()
            .expect("one")
            .1
            .extend_from_slice(&buffer[..got.len]);
        whole = got.end;
    }
    all
}

#[test]
fn an_unordered_message_and_an_ordered_one_of_a_stream_may_be_unfinished_at_once() {
    let kinds = [(false, false), (false, true), (true, false), (true, true)];
    for (interleave, first) in kinds {
        let config = AssocConfig {
            interleave,
            nagle: false,
            ..AssocConfig::default()
        };
        let mut pair = Pair::connected(1, config);
        let parts: [(bool, &[u8], bool); 9] = [
            (first, b"one ", true),
            (!first, b"two ", true),
            (first, b"goes on ", true),
            (!first, b"goes on ", true),
            (first, b"and ends", false),
            (first, b"three", false),
            (!first, b"and ends", false),
            (!first, b"four", false),
            (first, b"five", false),
        ];
        for (unordered, text, more) in parts {
            let message = Outgoing {
                unordered,
                ..Outgoing::default()
            };
            let id = pair.ids[0];
            pair.ends[0]
                .send(pair.now, id, &message, text, more)
                .expect("room");
            pair.run();
        }
        pair.wait(Duration::from_secs(1));
        let mut got = received(&mut pair);
        got.sort();
        let mut expected: Vec<(bool, Vec<u8>)> = vec![
            (first, b"one goes on and ends".to_vec()),
            (!first, b"two goes on and ends".to_vec()),
            (first, b"three".to_vec()),
            (!first, b"four".to_vec()),
            (first, b"five".to_vec()),
        ];
        expected.sort();
        assert_eq!(got, expected);
        assert!(pair.association(0).sender().is_idle());
    }
}

#[test]
fn what_waits_for_the_end_of_a_message_that_is_given_up_goes_on() {
    let config = AssocConfig {
        nagle: false,
        ..AssocConfig::default()
    };
    let mut pair = Pair::connected(1, config);
    let id = pair.ids[0];
    let about = Outgoing {
        reliability: crate::send::Reliability::Ttl(Duration::from_secs(2)),
        ..Outgoing::default()
    };
    pair.passes = |_, _| false;
    pair.ends[0]
        .send(pair.now, id, &about, b"late", true)
        .expect("room");
    let other = Outgoing {
        unordered: true,
        ..Outgoing::default()
    };
    pair.ends[0]
        .send(pair.now, id, &other, b"other", false)
        .expect("room");
    pair.wait(Duration::from_secs(3));
    pair.passes = |_, _| true;
    pair.wait(Duration::from_secs(20));
    assert_eq!(received(&mut pair), [(true, b"other".to_vec())]);
}

#[test]
fn a_restart_that_names_a_known_address_from_another_one_is_refused() {
    let mut pair = Pair::connected(1, AssocConfig::default());
    let head = crate::wire::InitHead {
        tag: 5,
        window: 10_000,
        outbound: 1,
        inbound: 1,
        tsn: Tsn(1),
    };
    let mut bytes = Vec::new();
    let mut packet = PacketBuilder::begin(&mut bytes, 7, 7, 0, 1452);
    packet.init(&head, |params| {
        params.put(&crate::wire::Param::from(addr(HERE[0])));
    });
    packet.finish(None, true);
    let arrived = Arrived {
        from: addr(HERE[1]),
        to: addr(THERE[0]),
        encap: None,
        packet: &bytes,
    };
    pair.ends[1].handle(pair.now, &arrived);
    let mut out = Vec::new();
    let sent = pair.ends[1]
        .transmit(pair.now, &mut out, 1)
        .expect("an answer");
    assert_eq!((out[12], sent.to), (kind::ABORT, addr(HERE[1])));
}

#[test]
fn a_sack_is_delayed_by_no_more_than_half_a_second() {
    let config = AssocConfig {
        sack_delay: Duration::from_secs(60),
        ..AssocConfig::default()
    };
    let mut pair = Pair::connected(1, config);
    pair.send(0, b"one");
    pair.wait(Duration::from_millis(600));
    assert!(pair.association(0).sender().is_idle());
}

#[test]
fn a_cookie_is_echoed_to_no_address_that_only_the_peer_has_named() {
    let mut pair = Pair::new(2, AssocConfig::default());
    pair.ends[0].addresses.truncate(1);
    pair.passes = |_, packet| packet.get(12) != Some(&kind::COOKIE_ECHO);
    let id = pair.connect();
    pair.run();
    assert_eq!(pair.association(0).paths().len(), 2);
    for _ in 0..3 {
        pair.now = pair.ends[0].timeout().expect("T1-cookie");
        pair.ends[0].on_timeout(pair.now);
        let sent = pair.ends[0].transmit(pair.now, &mut Vec::new(), 1);
        assert_eq!(sent.expect("a COOKIE ECHO").to, addr(THERE[0]));
    }
    assert_eq!(
        pair.ends[0].association(id).unwrap().state(),
        State::CookieEchoed
    );
}

#[test]
fn data_waits_until_the_only_path_is_confirmed_and_not_for_ever() {
    let mut pair = Pair::connected(1, AssocConfig::default());
    let id = pair.ids[0];
    pair.passes = |_, _| false;
    pair.ends[0].change(id, |association| {
        association.path_mut(crate::path::PathId(0)).state = PathState::Unconfirmed;
        association
            .path_mut(crate::path::PathId(0))
            .heartbeat_wanted = true;
    });
    pair.send(0, b"not before");
    let mut out = Vec::new();
    pair.ends[0]
        .transmit(pair.now, &mut out, 1)
        .expect("a HEARTBEAT");
    assert_eq!(out[12], kind::HEARTBEAT);
    assert_eq!(pair.association(0).sender().outstanding(), 0);
    pair.wait(Duration::from_secs(3600));
    assert_eq!(pair.association(0).state(), State::Closed);
}

#[test]
fn zero_checksums_are_taken_from_the_init_ack_on_and_sent_after_the_handshake() {
    let config = AssocConfig {
        zero_checksum: Some(1),
        ..AssocConfig::default()
    };
    let mut pair = Pair::new(1, config);
    let id = pair.connect();
    pair.step(0);
    let mut answer = Vec::new();
    pair.ends[1]
        .transmit(START, &mut answer, 1)
        .expect("an INIT ACK");
    assert_ne!(answer[8..12], [0; 4]);
    answer[8..12].fill(0);
    let arrived = Arrived {
        from: addr(THERE[0]),
        to: addr(HERE[0]),
        encap: None,
        packet: &answer,
    };
    pair.ends[0].handle(START, &arrived);
    let state = |pair: &Pair| pair.ends[0].association(id).unwrap().state();
    assert_eq!(state(&pair), State::CookieEchoed);
    // The peer has no TCB that would take a packet without a checksum.
    pair.ends[0].abort(START, id, b"");
    let mut last = Vec::new();
    pair.ends[0]
        .transmit(START, &mut last, 1)
        .expect("an ABORT");
    assert_eq!(last[12], kind::ABORT);
    assert_ne!(last[8..12], [0; 4]);
}

#[test]
fn a_peer_with_many_addresses_makes_one_heartbeat_leave_at_once() {
    let mut pair = Pair::new(1, AssocConfig::default());
    for net in 1..10 {
        pair.ends[0].addresses.push(IpAddr::from([10, net, 0, 1]));
    }
    pair.connect();
    assert!(pair.step(0) && pair.step(1) && pair.step(0));
    let (mut heartbeats, mut out) = (0, Vec::new());
    while pair.ends[1].transmit(START, &mut out, 1).is_some() {
        heartbeats += u32::from(out[12] == kind::HEARTBEAT);
        out.clear();
    }
    assert_eq!(heartbeats, 1);
}

#[test]
fn partial_reliability_with_interleaving_needs_i_forward_tsn() {
    let config = AssocConfig {
        interleave: true,
        ..AssocConfig::default()
    };
    let agree = |extensions: &'static [u8]| {
        let offer = crate::association::Offer {
            forward: true,
            extensions,
            ..Default::default()
        };
        offer.agree(&config).forward
    };
    assert!(agree(&[kind::I_DATA, kind::I_FORWARD_TSN]) && agree(&[]));
    assert!(!agree(&[kind::I_DATA]));
}

#[test]
fn a_shutdown_behind_a_message_without_its_end_does_not_wait_for_ever() {
    for (stream, unordered, interleave) in [(0, true, false), (0, true, true), (1, false, false)] {
        let config = AssocConfig {
            interleave,
            nagle: false,
            ..AssocConfig::default()
        };
        let mut pair = Pair::connected(1, config);
        let id = pair.ids[0];
        let about = Outgoing::default();
        let other = Outgoing {
            stream,
            unordered,
            ..about
        };
        pair.ends[0]
            .send(pair.now, id, &about, b"begun", true)
            .expect("room");
        pair.run();
        pair.ends[0]
            .send(pair.now, id, &other, b"other", false)
            .expect("room");
        pair.ends[0].shutdown(pair.now, id);
        pair.wait(Duration::from_secs(10));
        assert_eq!(pair.association(0).state(), State::Closed);
    }
    // Alone it is only left as it is.
    let mut pair = Pair::connected(1, AssocConfig::default());
    let id = pair.ids[0];
    let about = Outgoing::default();
    pair.ends[0]
        .send(pair.now, id, &about, b"begun", true)
        .expect("room");
    pair.ends[0].shutdown(pair.now, id);
    pair.wait(Duration::from_secs(10));
    assert!(pair.events(0).contains(&Event::Down(Down::Shutdown)));
}

/// The peer still has bytes to come, and is not to take what follows for the same association.
#[test]
fn who_connects_again_waits_for_the_association_before() {
    let mut pair = Pair::connected(1, AssocConfig::default());
    let before = pair.ids;
    pair.send(0, b"the last words");
    pair.ends[0].shutdown(pair.now, before[0]);
    pair.ends[0].release(pair.now, before[0]);
    let again = pair.connect();
    let twice = Peer {
        addresses: &[addr(THERE[0])],
        port: 7,
        encap: None,
    };
    let config = AssocConfig::default();
    let refused = pair.ends[0].connect(pair.now, &twice, &config);
    assert_eq!(refused, Err(ConnectError::Connected));
    pair.send(0, b"the first");
    pair.run();
    assert_eq!(pair.association(0).state(), State::Established);
    let next = pair.ends[1].accept().expect("another one");
    assert_ne!(next, before[1]);
    let mut text = [0; 20];
    for (id, sent) in [(before[1], "the last words"), (next, "the first")] {
        let got = pair.ends[1].receive(pair.now, id, &mut text).expect("it");
        assert_eq!(&text[..got.len], sent.as_bytes());
    }
    assert_eq!(pair.ends[0].associations().count(), 1);
    assert!(again != before[0] && pair.ends[0].held.is_empty());
}

#[test]
fn who_waits_for_an_association_that_never_ends_gives_up() {
    let mut pair = Pair::connected(1, AssocConfig::default());
    let before = pair.ids[0];
    pair.passes = |_, _| false;
    pair.send(0, b"nobody hears it");
    pair.ends[0].shutdown(pair.now, before);
    pair.ends[0].release(pair.now, before);
    let again = pair.connect();
    pair.wait(Duration::from_secs(3600));
    let refused = false;
    let events = pair.events(0);
    assert_eq!(events, [Event::Down(Down::SetupFailed { refused })]);
    pair.ends[0].release(pair.now, again);
    assert_eq!(pair.ends[0].associations().count(), 0);
}
