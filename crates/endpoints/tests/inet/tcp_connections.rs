//! Connections of TCP: how they are made, refused, accepted and ended, and how an endpoint comes to the next image.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;

use headwater_providers::inet::tcp::Tcp;
use headwater_providers::provider::{Arrived, Event, Provider};
use headwater_tpi::error::*;

use crate::sockets::{bytes, io, port_of};
use crate::waiting::until;
use crate::{PLAIN, PUSH, client, connected, event, listener, loopback, receive, request};

#[test]
fn a_peer_that_shuts_is_a_release_after_its_data() {
    let (mut tcp, mut peer) = connected();
    peer.write_all(b"last").unwrap();
    peer.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(receive(&mut tcp, 4), b"last");
    event(&mut tcp, Event::OrdRel);
    assert_eq!(tcp.receive(&io(&[0; 4])).unwrap_err().tli, TLOOK);
    assert!(matches!(tcp.take(), Some(Arrived::Released { .. })));
    assert_eq!(tcp.peek(), None);
    tcp.send(&io(b"still"), PUSH).unwrap();
    tcp.release().unwrap();
    tcp.connection_over();
    let mut all = Vec::new();
    peer.read_to_end(&mut all).unwrap();
    assert_eq!(all, b"still");
    assert_eq!(tcp.peek(), None);
}

#[test]
fn a_peer_that_resets_is_a_disconnect_after_its_data() {
    let (mut tcp, mut peer) = connected();
    peer.write_all(b"last").unwrap();
    until("data", || (tcp.peek() == Some(Event::Data)).then_some(()));
    reset(peer);
    // The failure of a send tells of it too, and takes no data away.
    until("TLOOK", || {
        tcp.send(&io(b"x"), PUSH)
            .is_err_and(|r| r.tli == TLOOK)
            .then_some(())
    });
    assert_eq!(receive(&mut tcp, 4), b"last");
    event(&mut tcp, Event::Disconnect);
    match tcp.take() {
        Some(Arrived::Disconnected {
            reason, seq: -1, ..
        }) => assert_eq!(reason, libc::ECONNRESET),
        other => panic!("{other:?}"),
    }
    assert_eq!(tcp.peek(), None);
    tcp.connection_over();
    assert_eq!(tcp.peek(), None);
}

/// Closes it by a reset.
fn reset(peer: TcpStream) {
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    // SAFETY: a struct linger.
    unsafe {
        libc::setsockopt(
            peer.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            &raw const linger as *const _,
            8,
        )
    };
    drop(peer);
}

#[test]
fn nobody_at_the_address_is_a_disconnect_with_a_reason_and_the_endpoint_stays_bound() {
    let mut tcp = Tcp::open(false).unwrap();
    let (address, _) = tcp.bind(None, 0).unwrap();
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    tcp.connect(&bytes(free), &[], &[]).unwrap();
    event(&mut tcp, Event::Disconnect);
    match tcp.take() {
        Some(Arrived::Disconnected { reason, .. }) => assert_eq!(reason, libc::ECONNREFUSED),
        other => panic!("{other:?}"),
    }
    tcp.connection_over();
    assert_eq!(port_of(&tcp.local().unwrap()), port_of(&address));
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    tcp.connect(&bytes(server.local_addr().unwrap()), &[], &[])
        .unwrap();
    event(&mut tcp, Event::Connect);
    let (peer, from) = server.accept().unwrap();
    assert_eq!(from.port(), port_of(&address));
    drop(peer);
}

#[test]
fn disconnect_resets_the_peer_and_keeps_the_address() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let (mut tcp, mut peer) = client(&server);
    let before = port_of(&tcp.local().unwrap());
    tcp.disconnect(&[]).unwrap();
    assert_eq!(
        peer.read(&mut [0; 1]).unwrap_err().kind(),
        ErrorKind::ConnectionReset
    );
    assert_eq!(tcp.peek(), None);
    assert_eq!(port_of(&tcp.local().unwrap()), before);
    tcp.connect(&bytes(server.local_addr().unwrap()), &[], &[])
        .unwrap();
    event(&mut tcp, Event::Connect);
}

#[test]
fn a_listener_accepts_on_another_endpoint_rejects_and_keeps_the_order() {
    let (mut tcp, port) = listener(3);
    let mut peers: Vec<TcpStream> = (0..3)
        .map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap())
        .collect();
    let requests: Vec<i32> = (0..3).map(|_| request(&mut tcp)).collect();
    assert_eq!(tcp.peek(), None);
    // A fourth is not told of before there is room for it.
    let fourth = TcpStream::connect(("127.0.0.1", port)).unwrap();
    assert_eq!(tcp.peek(), None);
    assert!(tcp.take_request(4711).is_err_and(|r| r.tli == TBADSEQ));
    for (seq, peer) in requests.iter().zip(&mut peers).take(2) {
        let mut accepted = Tcp::open(false).unwrap();
        let pending = tcp.take_request(*seq).unwrap();
        accepted.adopt(pending, &[], &[]).map_err(|e| e.0).unwrap();
        accepted.send(&io(b"hello"), PUSH).unwrap();
        let mut got = [0; 5];
        peer.read_exact(&mut got).unwrap();
        peer.write_all(b"you").unwrap();
        assert_eq!(receive(&mut accepted, 3), b"you");
    }
    tcp.reject(requests[2], &[]).unwrap();
    assert!(
        peers[2]
            .read(&mut [0; 1])
            .is_err_and(|e| e.kind() == ErrorKind::ConnectionReset)
    );
    request(&mut tcp);
    drop(fourth);
}

#[test]
fn a_request_whose_peer_resets_is_a_disconnect_with_its_number() {
    let (mut tcp, port) = listener(1);
    let peer = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let seq = request(&mut tcp);
    reset(peer);
    event(&mut tcp, Event::Disconnect);
    assert!(matches!(tcp.take(), Some(Arrived::Disconnected { seq: s, .. }) if s == seq));
    assert!(tcp.take_request(seq).is_err());
}

#[test]
fn a_listener_that_accepts_on_itself_listens_again() {
    let (mut tcp, port) = listener(1);
    for turn in 0..3 {
        let mut peer = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let seq = request(&mut tcp);
        let pending = tcp.take_request(seq).unwrap();
        tcp.adopt(pending, &[], &[]).map_err(|e| e.0).unwrap();
        tcp.send(&io(b"hello"), PUSH).unwrap();
        let mut got = [0; 5];
        peer.read_exact(&mut got).unwrap();
        if turn == 1 {
            tcp.disconnect(&[]).unwrap();
            assert!(peer.read(&mut got).is_err());
        } else {
            drop(peer);
            event(&mut tcp, Event::OrdRel);
            tcp.take();
            tcp.release().unwrap();
            tcp.connection_over();
        }
        assert_eq!(port_of(&tcp.local().unwrap()), port);
    }
}

#[test]
fn addresses_are_refused_by_their_codes() {
    let mut tcp = Tcp::open(false).unwrap();
    assert_eq!(tcp.bind(Some(&[1, 2, 3]), 0).unwrap_err().tli, TBADADDR);
    assert_eq!(
        tcp.bind(Some(&loopback(0)[..15]), 0).unwrap_err().tli,
        TBADADDR
    );
    let abroad = bytes("192.0.2.1:0".parse().unwrap());
    assert_eq!(tcp.bind(Some(&abroad), 0).unwrap_err().tli, TNOADDR);
    let (_server, port) = listener(1);
    assert_eq!(
        tcp.bind(Some(&loopback(port)), 0).unwrap_err().tli,
        TADDRBUSY
    );
    assert_eq!(
        Tcp::open(false)
            .unwrap()
            .bind(Some(&loopback(port)), 1)
            .unwrap_err()
            .tli,
        TADDRBUSY
    );
    let mut idle = Tcp::open(false).unwrap();
    let (own, _) = idle.bind(Some(&loopback(0)), 0).unwrap();
    assert_eq!(tcp.bind(Some(&own), 1).unwrap_err().tli, TADDRBUSY);
    assert_eq!(tcp.bind(None, 0).unwrap().0.len(), 16);
    assert_eq!(tcp.connect(&[9; 28], &[], &[]).unwrap_err().tli, TBADADDR);
}

#[test]
fn an_unbound_endpoint_takes_addresses_of_both_families() {
    let Ok(server) = TcpListener::bind("[::1]:0") else {
        return;
    };
    let mut tcp = Tcp::open(false).unwrap();
    tcp.bind(Some(&bytes("[::1]:0".parse().unwrap())), 0)
        .unwrap();
    tcp.connect(&bytes(server.local_addr().unwrap()), &[], &[])
        .unwrap();
    event(&mut tcp, Event::Connect);
    assert_eq!(tcp.remote(), Some(bytes(server.local_addr().unwrap())));
}

#[test]
fn an_endpoint_is_restored_from_its_descriptor() {
    let (mut tcp, mut peer) = connected();
    tcp.send(&io(b"a"), PLAIN).unwrap();
    tcp.send(&io(b"b"), PLAIN).unwrap();
    let saved = tcp.save().unwrap();
    // SAFETY: plain numbers.
    let visible = unsafe { libc::dup(tcp.descriptor()) };
    drop(tcp);
    let mut tcp = Tcp::restore(visible, &saved).unwrap();
    // SAFETY: ours.
    unsafe { libc::close(visible) };
    tcp.send(&io(b"c"), PUSH).unwrap();
    let mut got = [0; 3];
    peer.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"abc");
}

#[test]
fn requests_not_yet_told_of_are_there_in_the_next_image() {
    let (mut tcp, port) = listener(3);
    let peers: Vec<TcpStream> = (0..2)
        .map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap())
        .collect();
    event(&mut tcp, Event::Listen);
    let saved = tcp.save().unwrap();
    // SAFETY: plain numbers. The next image has the number as a descriptor of its own.
    let fd = unsafe { libc::dup(tcp.descriptor()) };
    let mut words: Vec<String> = saved.split(' ').map(str::to_string).collect();
    let passed = words.last_mut().unwrap();
    let (number, is) = passed.split_once('.').unwrap();
    // SAFETY: plain numbers.
    let copied = unsafe { libc::dup(number.parse().unwrap()) };
    *passed = format!("{copied}.{is}");
    let mut copy = Tcp::restore(fd, &words.join(" ")).unwrap();
    let froms: Vec<Vec<u8>> = (0..2)
        .map(|_| {
            event(&mut copy, Event::Listen);
            match copy.take() {
                Some(Arrived::Request { from, .. }) => from,
                other => panic!("{other:?}"),
            }
        })
        .collect();
    let addresses: Vec<Vec<u8>> = peers
        .iter()
        .map(|peer| bytes(peer.local_addr().unwrap()))
        .collect();
    assert_eq!(froms, addresses);
}
