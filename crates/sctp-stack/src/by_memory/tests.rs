//! Two ends in one process, and in two.

use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use headwater_providers::loopback::link::outbox;
use headwater_providers::loopback::listening::Listening;
use headwater_providers::loopback::{Owned, Space};
use headwater_providers::provider::Arrived;
use headwater_sctp::event::Outcome;
use headwater_streams::head::arming::Want;
use headwater_testkit::processes::{self, Child};

use super::*;

/// One test at a time, with the streams and these sockets ready, and the streams' handlers around fork.
fn alone() -> MutexGuard<'static, ()> {
    processes::alone(|| {
        headwater_host::process::identify();
        headwater_streams::start();
    })
}

const BUFFER: usize = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(20);

/// A child that delivers what it has sent.
fn child(work: impl FnOnce()) -> Child {
    Child::run(|| {
        work();
        outbox::exiting();
    })
}

struct Listener {
    at: Addresses,
    names: Vec<Owned>,
    listening: Listening,
}

fn offering(outbound: u16) -> AssocConfig {
    AssocConfig {
        outbound,
        inbound: 10,
        send_buffer: BUFFER,
        ..Default::default()
    }
}

impl Listener {
    fn new() -> Listener {
        let wanted = Addresses {
            hosts: vec!["127.0.0.1".parse().unwrap()],
            ..Addresses::any(false, 0)
        };
        let (port, names) = names::claim(&wanted, true).unwrap();
        let mut listening = Listening::new(Space::Sctp, 5, &names).unwrap();
        listening.keeps_departed = true;
        Listener {
            at: Addresses { port, ..wanted },
            names,
            listening,
        }
    }

    fn call(&self) -> ByMemory {
        let by_memory = ByMemory::call(
            &self.at,
            &Addresses::any(false, 7),
            &offering(10),
            Some(&[]),
        );
        let mut by_memory = by_memory.unwrap().expect("nobody has the port");
        by_memory.tune(&AssocConfig::default());
        by_memory
    }

    fn accept(&mut self) -> ByMemory {
        self.accept_as(&AssocConfig::default())
    }

    fn accept_as(&mut self, config: &AssocConfig) -> ByMemory {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(Arrived::Request { seq, .. }) = self.listening.take(&self.names) {
                let own = AssocConfig {
                    adaptation: Some(9),
                    ..offering(4)
                };
                let request = self.listening.take_out(seq, &self.names).unwrap();
                let mut by_memory = ByMemory::accept(request, &own, Some(&self.at.hosts)).unwrap();
                by_memory.tune(config);
                return by_memory;
            }
            assert!(Instant::now() < until, "nobody came");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn pair() -> (ByMemory, ByMemory) {
    let mut listener = Listener::new();
    let mut caller = listener.call();
    let mut answerer = listener.accept();
    assert_eq!(up(&mut caller), Event::Up { by_peer: false });
    assert_eq!(caller.event(), Some(Event::Adaptation(9)));
    assert_eq!(up(&mut answerer), Event::Up { by_peer: true });
    assert_eq!((caller.event(), answerer.event()), (None, None));
    (caller, answerer)
}

fn up(by_memory: &mut ByMemory) -> Event {
    let event = by_memory.event().expect("it is not up");
    assert_eq!(by_memory.event(), Some(Event::NoAuthentication));
    event
}

fn iov(bytes: &[u8]) -> [iovec; 1] {
    [iovec {
        iov_base: bytes.as_ptr() as *mut _,
        iov_len: bytes.len(),
    }]
}

fn try_send(by_memory: &mut ByMemory, stream: u16, bytes: &[u8]) -> sys::Result<()> {
    let message = Outgoing {
        stream,
        ppid: 5,
        ..Default::default()
    };
    by_memory.send(&message, &iov(bytes), false, false)
}

fn wait(by_memory: &ByMemory, want: Want) {
    let (head, deadline) = (by_memory.head(), sys::now() + 50_000_000);
    let _ = head.wait(want, Some(deadline), &mut [], || match want {
        Want::ROOM => !head.outgoing().is_full_hint(LIMIT, LOW),
        _ => !head.incoming().is_empty(),
    });
}

fn send(by_memory: &mut ByMemory, stream: u16, bytes: &[u8]) {
    while let Err(e) = try_send(by_memory, stream, bytes) {
        assert_eq!(e, libc::EAGAIN);
        wait(by_memory, Want::ROOM);
    }
}

/// A part of a message; `None`: the end.
fn receive(by_memory: &mut ByMemory, bytes: &mut [u8]) -> Option<Received> {
    let until = Instant::now() + PATIENCE;
    loop {
        match by_memory.receive(&iov(bytes)) {
            Ok(received) => return received,
            Err(libc::EAGAIN) => wait(by_memory, Want::DATA),
            Err(e) => panic!("errno {e}"),
        }
        assert!(Instant::now() < until, "nothing came");
    }
}

fn whole(by_memory: &mut ByMemory) -> (Received, Vec<u8>) {
    let mut all = Vec::new();
    let mut bytes = vec![0; 100_000];
    loop {
        let received = receive(by_memory, &mut bytes).expect("the end");
        all.extend_from_slice(&bytes[..received.len]);
        if received.end {
            return (received, all);
        }
    }
}

fn event(by_memory: &mut ByMemory) -> Event {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(event) = by_memory.event() {
            return event;
        }
        assert!(Instant::now() < until, "no event");
        wait(by_memory, Want::DATA);
    }
}

fn pattern(n: usize, seed: usize) -> Vec<u8> {
    (0..n).map(|i| (i * 7 + i / 251 + seed) as u8).collect()
}

#[test]
fn what_is_sent_before_the_request_is_accepted_is_received() {
    let _turn = alone();
    let mut listener = Listener::new();
    let mut caller = listener.call();
    assert_eq!(up(&mut caller), Event::Up { by_peer: false });
    send(&mut caller, 3, b"early");
    assert_eq!(caller.streams(), (10, 10));
    let mut answerer = listener.accept();
    let (received, bytes) = whole(&mut answerer);
    assert_eq!(
        (received.stream, received.ppid, &bytes[..]),
        (3, 5, &b"early"[..])
    );
    assert_eq!(answerer.peer(), (vec!["127.0.0.1".parse().unwrap()], 7));
    assert_eq!(
        answerer.local(),
        (listener.at.hosts.clone(), listener.at.port)
    );
    send(&mut answerer, 0, b"late");
    assert_eq!(whole(&mut caller).1, b"late");
    assert_eq!((caller.streams(), answerer.streams()), ((10, 4), (4, 10)));
    assert_eq!(try_send(&mut answerer, 4, b"x"), Err(libc::EINVAL));
}

#[test]
fn who_calls_sends_and_goes_before_it_is_accepted_is_heard() {
    let _turn = alone();
    let mut listener = Listener::new();
    let mut caller = listener.call();
    send(&mut caller, 0, b"all there is");
    drop(caller);
    let peer = child(|| {
        let mut caller = listener.call();
        send(&mut caller, 0, b"from a child");
    });
    assert!(peer.succeeded());
    for expected in [&b"all there is"[..], b"from a child"] {
        let mut answerer = listener.accept();
        assert_eq!(whole(&mut answerer).1, expected);
        assert_eq!(up(&mut answerer), Event::Up { by_peer: true });
        assert_eq!(event(&mut answerer), Event::PeerShutdown);
        assert_eq!(event(&mut answerer), Event::Down(Down::Shutdown));
        assert_eq!(answerer.receive(&iov(&[0; 4])), Ok(None));
    }
}

#[test]
fn messages_of_all_sizes_stay_whole_and_in_order() {
    let _turn = alone();
    let (mut a, mut b) = pair();
    let sizes = [1, 100, 32_768, 32_769, 65_536, 99_999, 200_000, 3, 131_072];
    let mut sent = 0;
    for round in 0..20 {
        for (i, &size) in sizes.iter().enumerate() {
            let bytes = pattern(size, i + round);
            if let Err(e) = try_send(&mut a, (i % 3) as u16, &bytes) {
                assert_eq!(e, libc::EAGAIN);
                break;
            }
            sent = i + 1;
        }
        for (i, &size) in sizes[..sent].iter().enumerate() {
            let (received, bytes) = whole(&mut b);
            assert_eq!(usize::from(received.stream), i % 3);
            assert_eq!(received.tsn.0 as usize, round * sizes.len() + i);
            assert!(bytes == pattern(size, i + round), "{round} {i}");
        }
    }
}

#[test]
fn a_long_message_leaves_although_its_sender_does_nothing_more() {
    let _turn = alone();
    let (mut a, mut b) = pair();
    let bytes = pattern(900_000, 1);
    send(&mut a, 0, &bytes);
    assert!(a.unsent() > 700_000);
    assert!(whole(&mut b).1 == bytes);
    // The last frame may be received before it is taken off.
    let until = Instant::now() + PATIENCE;
    while !a.outbox.is_empty() {
        assert!(Instant::now() < until, "something is left");
        std::thread::yield_now();
    }
}

#[test]
fn no_more_is_taken_than_the_send_buffer_holds() {
    let _turn = alone();
    let (mut a, mut b) = pair();
    let bytes = pattern(BUFFER + 1, 1);
    assert_eq!(try_send(&mut a, 0, &bytes), Err(libc::EMSGSIZE));
    let half = &bytes[..BUFFER / 2];
    assert_eq!(try_send(&mut a, 0, half), Ok(()));
    assert_eq!(try_send(&mut a, 0, half), Ok(()));
    assert!(a.has_room());
    assert_eq!(try_send(&mut a, 0, half), Err(libc::EAGAIN));
    assert!(!a.has_room());
    assert!(whole(&mut b).1 == half);
    assert!(a.has_room());
    assert_eq!(try_send(&mut a, 0, half), Ok(()));
    a.want_dry(true);
    assert_eq!(a.event(), None);
    for _ in 0..2 {
        assert!(whole(&mut b).1 == half);
    }
    assert_eq!(event(&mut a), Event::Dry);
    assert_eq!(a.event(), None);
}

#[test]
fn a_short_buffer_gets_a_part() {
    let _turn = alone();
    let (mut a, mut b) = pair();
    send(&mut a, 1, b"0123456789");
    send(&mut a, 1, b"next");
    let mut bytes = [0; 4];
    for (part, end) in [(&b"0123"[..], false), (b"4567", false), (b"89", true)] {
        assert!(b.readable());
        assert_eq!(b.peek().unwrap().stream, 1);
        let received = receive(&mut b, &mut bytes).unwrap();
        assert_eq!((&bytes[..received.len], received.end), (part, end));
        assert_eq!((received.ssn.0, received.tsn.0), (0, 0));
    }
    let seen = b.peek().unwrap();
    assert_eq!(
        (seen.len, seen.end, seen.ssn.0, seen.tsn.0),
        (4, true, 1, 1)
    );
    assert_eq!(whole(&mut b).1, b"next");
    assert!(!b.readable());
}

#[test]
fn a_message_is_told_of_when_it_is_whole_or_long() {
    let _turn = alone();
    let (mut a, mut b) = pair();
    let message = Outgoing::default();
    a.send(&message, &iov(b"be"), true, false).unwrap();
    assert!(!b.readable());
    assert_eq!(b.receive(&iov(&[0; 9])), Err(libc::EAGAIN));
    let unordered = Outgoing {
        unordered: true,
        stream: 2,
        ..message
    };
    a.send(&unordered, &iov(b"between"), false, false).unwrap();
    let (received, bytes) = whole(&mut b);
    assert_eq!((received.unordered, &bytes[..]), (true, &b"between"[..]));
    a.send(&message, &iov(b"gun"), false, false).unwrap();
    assert_eq!(whole(&mut b).1, b"begun");

    b.inbox.partial_point = 5000;
    let long = pattern(6000, 0);
    a.send(&message, &iov(&long), true, false).unwrap();
    assert!(b.readable());
    let mut bytes = vec![0; 10_000];
    let received = receive(&mut b, &mut bytes).unwrap();
    assert_eq!((received.len, received.end), (6000, false));
    a.send(&unordered, &iov(b"later"), false, false).unwrap();
    assert!(!b.readable());
    a.send(&message, &iov(b"end"), false, false).unwrap();
    assert_eq!(whole(&mut b).1, b"end");
    assert_eq!(whole(&mut b).1, b"later");
}

#[test]
fn a_shutdown_is_answered_when_everything_is_sent() {
    let _turn = alone();
    let (mut a, mut b) = pair();
    let long = pattern(400_000, 3);
    send(&mut b, 0, &long);
    send(&mut a, 0, b"last");
    a.shutdown();
    assert_eq!(try_send(&mut a, 0, b"no"), Err(libc::EPIPE));
    assert_eq!(b.event(), None);
    assert_eq!(whole(&mut b).1, b"last");
    assert_eq!(b.event(), Some(Event::PeerShutdown));
    assert_eq!(b.event(), None);
    assert_eq!(try_send(&mut b, 0, b"no"), Err(libc::EPIPE));
    assert!(whole(&mut a).1 == long);
    assert_eq!(event(&mut a), Event::Down(Down::Shutdown));
    assert_eq!(event(&mut b), Event::Down(Down::Shutdown));
    assert_eq!((a.event(), b.event()), (None, None));
    assert_eq!(a.receive(&iov(&[0; 4])), Ok(None));
}

#[test]
fn a_shutdown_needs_no_call_of_the_peer() {
    let _turn = alone();
    let (mut a, mut b) = pair();
    let long = pattern(400_000, 3);
    send(&mut b, 0, &long);
    a.shutdown();
    assert_eq!(a.event(), None);
    assert_eq!(try_send(&mut b, 0, b"no"), Err(libc::EPIPE));
    assert!(whole(&mut a).1 == long);
    assert_eq!(event(&mut a), Event::Down(Down::Shutdown));
    assert_eq!(try_send(&mut b, 0, &long), Err(libc::EPIPE));
    drop(a);
    assert_eq!(event(&mut b), Event::PeerShutdown);
    assert_eq!(event(&mut b), Event::Down(Down::Shutdown));

    let mut listener = Listener::new();
    let mut caller = listener.call();
    send(&mut caller, 0, b"early");
    caller.shutdown();
    assert_eq!(up(&mut caller), Event::Up { by_peer: false });
    assert_eq!(caller.event(), Some(Event::Down(Down::Shutdown)));
    let mut answerer = listener.accept();
    assert_eq!(try_send(&mut answerer, 0, b"no"), Err(libc::EPIPE));
    assert_eq!(whole(&mut answerer).1, b"early");
    assert_eq!(up(&mut answerer), Event::Up { by_peer: true });
    assert_eq!(event(&mut answerer), Event::PeerShutdown);
    assert_eq!(event(&mut answerer), Event::Down(Down::Shutdown));
}

#[test]
fn what_a_peer_does_not_allow_is_denied() {
    let _turn = alone();
    let mut listener = Listener::new();
    let mut caller = listener.call();
    // Nothing is known of the peer yet.
    caller.obey(&Order::ResetOutgoing(vec![1])).unwrap();
    assert_eq!(up(&mut caller), Event::Up { by_peer: false });
    let some = AssocConfig {
        allowed: Allowed::ASSOCIATION,
        ..Default::default()
    };
    let mut answerer = listener.accept_as(&some);
    assert_eq!(up(&mut answerer), Event::Up { by_peer: true });
    let outcome = Outcome::Denied;
    let streams = vec![1];
    let incoming = false;
    assert_eq!(caller.event(), Some(Event::Adaptation(9)));
    let reset = Event::StreamsReset {
        incoming,
        streams,
        outcome,
    };
    assert_eq!(event(&mut caller), reset);
    caller.obey(&Order::ResetAssociation).unwrap();
    let outcome = Outcome::Done;
    assert_eq!(caller.event(), Some(Event::Reset { outcome }));
    assert_eq!(event(&mut answerer), Event::Reset { outcome });
}

#[test]
fn a_reason_goes_with_an_abort() {
    let _turn = alone();
    let (mut a, mut b) = pair();
    send(&mut a, 0, b"before");
    a.abort(b"why");
    let causes = vec![Cause::UserAbort(b"why").into()];
    let down = |by_peer| {
        let causes = causes.clone();
        Event::Down(Down::Aborted { by_peer, causes })
    };
    assert_eq!(a.event(), Some(down(false)));
    assert_eq!(whole(&mut b).1, b"before");
    assert_eq!(event(&mut b), down(true));
    assert_eq!(b.receive(&iov(&[0; 4])), Err(libc::ECONNRESET));
    assert_eq!(try_send(&mut b, 0, b"x"), Err(libc::ECONNRESET));
    assert_eq!((a.event(), b.event()), (None, None));
}

#[test]
fn what_was_sent_is_delivered_after_the_sender_has_let_go() {
    let _turn = alone();
    let (mut a, mut b) = pair();
    let long = pattern(800_000, 3);
    send(&mut a, 0, &long);
    drop(a);
    assert!(whole(&mut b).1 == long);
    assert_eq!(event(&mut b), Event::PeerShutdown);
    assert_eq!(event(&mut b), Event::Down(Down::Shutdown));
}

#[test]
fn a_process_delivers_what_it_sent_before_it_ends() {
    let _turn = alone();
    let mut listener = Listener::new();
    let peer = child(|| {
        let mut caller = listener.call();
        for i in 0..5 {
            send(&mut caller, 0, &pattern(300_000, i));
        }
    });
    let mut answerer = listener.accept();
    for i in 0..5 {
        assert!(whole(&mut answerer).1 == pattern(300_000, i));
    }
    assert!(peer.succeeded());
}

#[test]
fn a_killed_peer_is_a_lost_association() {
    let _turn = alone();
    let mut listener = Listener::new();
    let peer = child(|| {
        let mut caller = listener.call();
        send(&mut caller, 0, b"alive");
        loop {
            std::thread::sleep(PATIENCE);
        }
    });
    let mut answerer = listener.accept();
    assert_eq!(whole(&mut answerer).1, b"alive");
    drop(peer);
    assert_eq!(up(&mut answerer), Event::Up { by_peer: true });
    let lost = Down::Aborted {
        by_peer: true,
        causes: Vec::new(),
    };
    assert_eq!(event(&mut answerer), Event::Down(lost));
    assert_eq!(answerer.receive(&iov(&[0; 4])), Err(libc::ECONNRESET));
}

#[test]
fn parent_and_child_send_by_the_same_end() {
    let _turn = alone();
    let (mut a, mut b) = pair();
    send(&mut a, 0, &pattern(110_000, 0));
    let peer = child(|| {
        a.forked(true);
        for _ in 0..20 {
            send(&mut a, 0, &pattern(150_000, 1));
        }
    });
    // No more than the send buffer holds: nobody else receives.
    for _ in 0..6 {
        send(&mut a, 0, &pattern(150_000, 0));
    }
    let mut seen = [0; 2];
    for _ in 0..27 {
        let bytes = whole(&mut b).1;
        let of_child = usize::from(bytes[0]);
        assert!(bytes == pattern(bytes.len(), of_child), "{}", bytes.len());
        seen[of_child] += 1;
    }
    assert!(peer.succeeded());
    assert!(!b.readable());
    // The association goes on.
    send(&mut a, 0, b"more");
    assert_eq!(whole(&mut b).1, b"more");
    assert_eq!(seen, [7, 20]);
}

#[test]
fn streams_begin_anew_and_are_added() {
    let _turn = alone();
    let (mut a, mut b) = pair();
    for ssn in 0..3 {
        send(&mut a, 1, b"x");
        assert_eq!(whole(&mut b).0.ssn.0, ssn);
    }
    assert_eq!(a.obey(&Order::ResetOutgoing(vec![12])), Err(libc::EINVAL));
    a.obey(&Order::ResetOutgoing(vec![1])).unwrap();
    b.obey(&Order::ResetIncoming(vec![2])).unwrap();
    send(&mut a, 1, b"x");
    let reset = |incoming, stream| Event::StreamsReset {
        incoming,
        streams: vec![stream],
        outcome: Outcome::Done,
    };
    assert_eq!(event(&mut a), reset(false, 1));
    assert_eq!(event(&mut a), reset(false, 2));
    assert_eq!(event(&mut b), reset(true, 1));
    assert_eq!(whole(&mut b).0.ssn.0, 0);
    assert_eq!(event(&mut b), reset(true, 2));
    let (out, inbound) = (2, 1);
    a.obey(&Order::AddStreams { out, inbound }).unwrap();
    let added = |incoming, outgoing| Event::StreamsAdded {
        incoming,
        outgoing,
        outcome: Outcome::Done,
    };
    assert_eq!((event(&mut a), event(&mut b)), (added(1, 2), added(2, 1)));
    assert_eq!((a.streams(), b.streams()), ((12, 5), (5, 12)));
    a.obey(&Order::ResetAssociation).unwrap();
    let outcome = Outcome::Done;
    assert_eq!(event(&mut b), Event::Reset { outcome });
    assert_eq!(event(&mut a), Event::Reset { outcome });
}

#[test]
fn a_listener_that_goes_loses_those_who_wait() {
    let _turn = alone();
    let listener = Listener::new();
    let mut caller = listener.call();
    assert_eq!(up(&mut caller), Event::Up { by_peer: false });
    let at = listener.at.clone();
    drop(listener);
    assert!(matches!(
        event(&mut caller),
        Event::Down(Down::Aborted { by_peer: true, .. })
    ));
    let again = ByMemory::call(&at, &Addresses::any(false, 7), &offering(10), Some(&[]));
    assert!(again.unwrap().is_none());
}
