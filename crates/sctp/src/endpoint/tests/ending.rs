//! How an association ends: aborts and shutdowns, lost, forged or in each other's way.

use super::*;

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
        assert_eq!(state(end), State::ShutdownAckSent, "in round {round}");
        end.unreachable(at, there, Unreachable::Port, &said);
    }
    assert!(pair.events(0).contains(&Event::Down(Down::Shutdown)));
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
