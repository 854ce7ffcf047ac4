use core::time::Duration;

use headwater_sctp::send::Reliability;
use headwater_sctp::wire::Cause;

use super::*;

const ASSOC: AssocT = 7;

fn about() -> About {
    About {
        out: 10,
        inbound: 0x0102,
        peer: Some(("10.0.0.1".parse().unwrap(), 0x1f90)),
        up: true,
        ..About::default()
    }
}

fn only(event: &Event, about: &About) -> (u16, Vec<u8>) {
    let mut all = encode(event, ASSOC, about);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

fn expect(event: Event, kind: u16, bytes: &[u8]) {
    let (got, encoded) = only(&event, &about());
    assert_eq!((got, &encoded[..]), (kind, bytes));
    assert_eq!(encoded[..2], kind.to_ne_bytes());
}

#[rustfmt::skip]
#[test]
fn the_beginning_of_an_association() {
    expect(Event::Up { by_peer: false }, SCTP_ASSOC_CHANGE,
        &[1, 0x80, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0, 10, 0, 2, 1, 7, 0, 0, 0]);
    expect(Event::Restarted, SCTP_ASSOC_CHANGE,
        &[1, 0x80, 0, 0, 20, 0, 0, 0, 2, 0, 0, 0, 10, 0, 2, 1, 7, 0, 0, 0]);
}

#[rustfmt::skip]
#[test]
fn the_ends_of_an_association() {
    expect(Event::Down(Down::Shutdown), SCTP_ASSOC_CHANGE,
        &[1, 0x80, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0]);
    expect(Event::Down(Down::Unreachable), SCTP_ASSOC_CHANGE,
        &[1, 0x80, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0]);
    expect(Event::Down(Down::SetupFailed { refused: true }), SCTP_ASSOC_CHANGE,
        &[1, 0x80, 0, 0, 20, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0]);
    let causes = vec![CauseOwned::from(Cause::UserAbort(b"enough"))];
    expect(Event::Down(Down::Aborted { by_peer: true, causes: causes.clone() }), SCTP_ASSOC_CHANGE,
        &[1, 0x80, 0, 0, 32, 0, 0, 0, 1, 0, 0, 12, 0, 0, 0, 0, 7, 0, 0, 0,
          0, 12, 0, 10, b'e', b'n', b'o', b'u', b'g', b'h', 0, 0]);
    expect(Event::Down(Down::Aborted { by_peer: false, causes }), SCTP_ASSOC_CHANGE,
        &[1, 0x80, 0, 0, 20, 0, 0, 0, 1, 0, 0, 12, 0, 0, 0, 0, 7, 0, 0, 0]);
}

#[test]
fn an_association_that_never_was_can_not_be_lost() {
    let refused = Event::Down(Down::Aborted {
        by_peer: true,
        causes: vec![CauseOwned::from(Cause::OutOfResource)],
    });
    let about = About {
        up: false,
        ..about()
    };
    let (_, bytes) = only(&refused, &about);
    assert_eq!(bytes.len(), 20);
    assert_eq!(bytes[8..12], [4, 0, 0, 4]);
}

#[rustfmt::skip]
#[test]
fn what_has_no_more_to_tell_than_itself() {
    expect(Event::PeerShutdown, SCTP_SHUTDOWN_EVENT, &[5, 0x80, 0, 0, 12, 0, 0, 0, 7, 0, 0, 0]);
    expect(Event::Dry, SCTP_SENDER_DRY_EVENT, &[9, 0x80, 0, 0, 12, 0, 0, 0, 7, 0, 0, 0]);
    expect(Event::Adaptation(0x0102_0304), SCTP_ADAPTATION_INDICATION,
        &[7, 0x80, 0, 0, 16, 0, 0, 0, 4, 3, 2, 1, 7, 0, 0, 0]);
    expect(Event::NewKey(3), SCTP_AUTHENTICATION_EVENT,
        &[8, 0x80, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0]);
    expect(Event::KeyFree(3), SCTP_AUTHENTICATION_EVENT,
        &[8, 0x80, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0]);
    expect(Event::NoAuthentication, SCTP_AUTHENTICATION_EVENT,
        &[8, 0x80, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 7, 0, 0, 0]);
    assert_eq!(partial_delivery_aborted(ASSOC, 5, 6),
        [6, 0x80, 0, 0, 24, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0]);
    for event in [Event::Readable, Event::Writable] {
        assert!(encode(&event, ASSOC, &about()).is_empty());
    }
}

#[rustfmt::skip]
#[test]
fn streams_and_associations_that_begin_anew() {
    let streams = vec![1, 0x0203];
    expect(Event::StreamsReset { incoming: true, streams, outcome: Outcome::Done }, SCTP_STREAM_RESET_EVENT,
        &[10, 0x80, 1, 0, 16, 0, 0, 0, 7, 0, 0, 0, 1, 0, 3, 2]);
    expect(Event::StreamsReset { incoming: false, streams: vec![], outcome: Outcome::Denied }, SCTP_STREAM_RESET_EVENT,
        &[10, 0x80, 6, 0, 12, 0, 0, 0, 7, 0, 0, 0]);
    expect(Event::Reset { outcome: Outcome::Failed }, SCTP_ASSOC_RESET_EVENT,
        &[11, 0x80, 8, 0, 20, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    expect(Event::StreamsAdded { incoming: 0, outgoing: 4, outcome: Outcome::Done }, SCTP_STREAM_CHANGE_EVENT,
        &[12, 0x80, 0, 0, 16, 0, 0, 0, 7, 0, 0, 0, 0, 0, 4, 0]);
}

#[rustfmt::skip]
#[test]
fn each_remote_error_is_told_by_itself() {
    let causes = vec![
        CauseOwned::from(Cause::InvalidStream(9)),
        CauseOwned::from(Cause::Unknown { code: 0x0102, value: &[1] }),
    ];
    let told = encode(&Event::RemoteError(causes), ASSOC, &about());
    assert_eq!(told, [
        (SCTP_REMOTE_ERROR, vec![4, 0x80, 0, 0, 20, 0, 0, 0, 0, 1, 0, 0, 7, 0, 0, 0, 0, 9, 0, 0]),
        (SCTP_REMOTE_ERROR, vec![4, 0x80, 0, 0, 20, 0, 0, 0, 1, 2, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0]),
    ]);
}

#[rustfmt::skip]
#[test]
fn a_message_that_failed_comes_back_in_both_kinds() {
    let message = Outgoing {
        stream: 2,
        ppid: 0x0102_0304,
        unordered: true,
        reliability: Reliability::Ttl(Duration::from_millis(5)),
        context: 6,
        ..Outgoing::default()
    };
    let failed = Failed { message, data: b"abc".to_vec(), sent: true };
    let told = encode(&Event::SendFailed(failed), ASSOC, &about());
    assert_eq!(told, [
        (SCTP_SEND_FAILED, vec![
            3, 0x80, 1, 0, 51, 0, 0, 0, 0, 0, 0, 0,
            2, 0, 0, 0, 0x11, 0, 0, 0, 1, 2, 3, 4, 6, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0,
            7, 0, 0, 0, b'a', b'b', b'c']),
        (SCTP_SEND_FAILED_EVENT, vec![
            13, 0x80, 1, 0, 35, 0, 0, 0, 0, 0, 0, 0,
            2, 0, 1, 0, 1, 2, 3, 4, 6, 0, 0, 0, 7, 0, 0, 0,
            7, 0, 0, 0, b'a', b'b', b'c']),
    ]);
}

fn path_event(change: PathChange) -> Event {
    let addr = "10.0.0.2".parse().unwrap();
    Event::Path { addr, change }
}

#[test]
fn an_address_of_the_peer_changes() {
    let (kind, bytes) = only(&path_event(PathChange::Confirmed), &about());
    assert_eq!((kind, bytes.len()), (SCTP_PEER_ADDR_CHANGE, 148));
    assert_eq!(bytes[..8], [2, 0x80, 0, 0, 148, 0, 0, 0]);
    assert_eq!(bytes[8..16], [2, 0, 0x1f, 0x90, 10, 0, 0, 2]);
    assert!(bytes[16..136].iter().all(|&byte| byte == 0));
    assert_eq!(bytes[136..], [5, 0, 0, 0, 2, 0, 0, 0, 7, 0, 0, 0]);

    let states = [
        (PathChange::State(PathState::Active), 0),
        (PathChange::State(PathState::Inactive), 1),
        (PathChange::Removed, 2),
        (PathChange::Added, 3),
        (PathChange::MadePrimary, 4),
    ];
    for (change, state) in states {
        assert_eq!(only(&path_event(change), &about()).1[136], state);
    }
}

#[test]
fn a_socket_of_ipv6_sees_mapped_addresses() {
    let about = About {
        v6: true,
        v4mapped: true,
        ..about()
    };
    let (_, bytes) = only(&path_event(PathChange::Added), &about);
    let expected = [
        10, 0, 0x1f, 0x90, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2,
    ];
    assert_eq!(bytes[8..32], expected);
}

#[test]
fn potential_failure_is_told_to_those_who_asked() {
    let event = path_event(PathChange::State(PathState::PotentiallyFailed));
    assert!(encode(&event, ASSOC, &about()).is_empty());
    let about = About {
        potentially_failed: true,
        ..about()
    };
    assert_eq!(only(&event, &about).1[136], 6);
}

#[test]
fn a_subscription_has_a_byte_per_kind_and_may_be_short() {
    let mut events = Events::default();
    events.subscribe(&[1, 1, 0, 1]).unwrap();
    assert!(events.has(SCTP_DATA_IO_EVENT) && events.has(SCTP_ASSOC_CHANGE));
    assert!(events.has(SCTP_SEND_FAILED) && !events.has(SCTP_PEER_ADDR_CHANGE));
    events.set(SCTP_SEND_FAILED_EVENT, true).unwrap();
    events.subscribe(&[0, 1]).unwrap();
    let expected = [0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    assert_eq!(events.as_subscribe(), expected);
    events.set(SCTP_ASSOC_CHANGE, false).unwrap();
    assert!(!events.has(SCTP_ASSOC_CHANGE));
}

#[test]
fn unknown_kinds_are_refused() {
    let mut events = Events::default();
    for kind in [0, 1, 0x7fff, 0x800e, 0xffff] {
        assert_eq!(events.set(kind, true), Err(libc::EINVAL));
        assert!(!events.has(kind));
    }
    assert_eq!(events.subscribe(&[0; 15]), Err(libc::EINVAL));
}
