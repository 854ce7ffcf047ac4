//! TCP and UDP providers, with plain sockets as their peers.

#[path = "common/sockets.rs"]
mod sockets;
#[path = "common/waiting.rs"]
mod waiting;

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use headwater_endpoints::device::Device;
use headwater_endpoints::endpoint::{self, Endpoint};
use headwater_host::sys;
use headwater_providers::inet::tcp::Tcp;
use headwater_providers::inet::udp::Udp;
use headwater_providers::provider::{Arrived, Datagram, Event, Provider, Sending};
use headwater_sockets::conn::{self, Conn};
use headwater_sockets::segment::{Tx, View, WITHDRAWS};
use headwater_sockets::{life, switch};
use headwater_tpi::error::*;
use headwater_tpi::option::{
    INET_IP, INET_TCP, List, T_CURRENT, T_IP_TOS, T_NEGOTIATE, T_SUCCESS, T_TCP_NODELAY,
    XTI_GENERIC, XTI_RCVLOWAT, XTI_SNDLOWAT,
};
use sockets::{bytes, io};
use waiting::until;

fn loopback(port: u16) -> Vec<u8> {
    bytes(SocketAddr::from(([127, 0, 0, 1], port)))
}

fn port_of(address: &[u8]) -> u16 {
    u16::from_be_bytes([address[2], address[3]])
}

fn event(p: &mut dyn Provider, wanted: Event) {
    let mut last = None;
    until(&format!("{wanted:?}"), || {
        last = p.peek();
        assert!(
            last.is_none() || last == Some(wanted),
            "{last:?} instead of {wanted:?}"
        );
        last
    });
}

fn client(listener: &TcpListener) -> (Tcp, TcpStream) {
    let mut tcp = Tcp::open(false).unwrap();
    tcp.bind(None, 0).unwrap();
    tcp.connect(&bytes(listener.local_addr().unwrap()), &[], &[])
        .unwrap();
    event(&mut tcp, Event::Connect);
    assert!(matches!(tcp.take(), Some(Arrived::Confirmed { .. })));
    let (peer, _) = listener.accept().unwrap();
    peer.set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    (tcp, peer)
}

fn connected() -> (Tcp, TcpStream) {
    client(&TcpListener::bind("127.0.0.1:0").unwrap())
}

fn listener(qlen: u32) -> (Tcp, u16) {
    let mut tcp = Tcp::open(false).unwrap();
    let (address, granted) = tcp.bind(Some(&loopback(0)), qlen).unwrap();
    assert_eq!(granted, qlen);
    (tcp, port_of(&address))
}

fn request(tcp: &mut Tcp) -> i32 {
    event(tcp, Event::Listen);
    match tcp.take() {
        Some(Arrived::Request { seq, .. }) => seq,
        other => panic!("{other:?}"),
    }
}

fn receive(p: &mut dyn Provider, want: usize) -> Vec<u8> {
    let mut all = Vec::new();
    let mut room = vec![0; 65536];
    until("data", || {
        match p.receive(&io(&room)) {
            Ok(r) => all.extend_from_slice(&room[..r.len]),
            Err(r) => assert_eq!(r.tli, TNODATA),
        }
        let _ = &mut room;
        (all.len() >= want).then_some(())
    });
    all
}

const PLAIN: Sending = Sending {
    more: false,
    expedited: false,
    push: false,
};
const PUSH: Sending = Sending {
    push: true,
    ..PLAIN
};
const EXPEDITED: Sending = Sending {
    expedited: true,
    ..PLAIN
};

#[test]
fn the_kernel_gathers_large_sends_on_while_it_has_no_room() {
    let (mut tcp, mut peer) = connected();
    let gathers = |tcp: &Tcp| {
        sys::sockopt::<i32>(tcp.descriptor(), libc::IPPROTO_TCP, libc::TCP_NODELAY) == Ok(0)
    };
    let block = vec![5; 20_000];
    let mut room = vec![0; 1 << 20];
    // A pause of this thread's ends a run.
    until(
        "large sends that are gathered when the buffer is full",
        || {
            while tcp.send(&io(&block), Sending::default()) == Ok(block.len()) {}
            if gathers(&tcp) {
                return Some(());
            }
            let _ = peer.read(&mut room).unwrap();
            None
        },
    );
    tcp.flush();
    assert!(gathers(&tcp), "a wait for room has ended the run");
    let _ = peer.read(&mut room).unwrap();
    tcp.finish();
    assert!(!gathers(&tcp));
}

#[test]
fn a_client_talks_to_a_plain_server() {
    let (mut tcp, mut peer) = connected();
    assert_eq!(tcp.remote(), Some(bytes(peer.local_addr().unwrap())));
    assert_eq!(tcp.local(), Some(bytes(peer.peer_addr().unwrap())));
    for piece in [&b"one "[..], b"two ", b"three"] {
        assert_eq!(tcp.send(&io(piece), PLAIN), Ok(piece.len()));
    }
    tcp.flush();
    let mut got = [0; 13];
    peer.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"one two three");
    peer.write_all(b"answer").unwrap();
    assert_eq!(receive(&mut tcp, 6), b"answer");
}

#[test]
fn only_what_follows_close_behind_is_held() {
    let (mut tcp, mut peer) = connected();
    let mut got = [0; 1];
    // Alone: at once.
    tcp.send(&io(b"1"), PLAIN).unwrap();
    peer.read_exact(&mut got).unwrap();
    // Behind another: held until somebody flushes.
    std::thread::sleep(Duration::from_millis(1));
    tcp.send(&io(b"2"), PLAIN).unwrap();
    tcp.send(&io(b"3"), PLAIN).unwrap();
    peer.read_exact(&mut got).unwrap();
    peer.set_nonblocking(true).unwrap();
    if let Err(e) = peer.read_exact(&mut got) {
        assert_eq!(e.kind(), ErrorKind::WouldBlock);
        tcp.flush();
        until("held byte", || peer.read_exact(&mut got).ok());
    }
    assert_eq!(&got, b"3");
    // Pushed: at once, behind what was held.
    for (piece, how) in [(b"4", PLAIN), (b"5", PLAIN), (b"6", PUSH)] {
        tcp.send(&io(piece), how).unwrap();
    }
    let mut three = [0; 3];
    peer.set_nonblocking(false).unwrap();
    peer.read_exact(&mut three).unwrap();
    assert_eq!(&three, b"456");
}

#[test]
fn nothing_is_held_with_nodelay() {
    let (mut tcp, mut peer) = connected();
    let mut list = List::new();
    list.push_number(INET_TCP, T_TCP_NODELAY, 0, 1);
    assert_eq!(
        tcp.negotiate(T_NEGOTIATE as u32, list.bytes()).unwrap().0,
        T_SUCCESS as u32
    );
    for _ in 0..100 {
        tcp.send(&io(b"x"), PLAIN).unwrap();
        let mut got = [0; 1];
        peer.read_exact(&mut got).unwrap();
    }
}

#[test]
fn every_byte_arrives_once_and_in_order_whatever_the_sizes() {
    let (mut tcp, mut peer) = connected();
    let reader = std::thread::spawn(move || {
        let mut all = Vec::new();
        peer.read_to_end(&mut all).unwrap();
        all
    });
    let mut sent = Vec::new();
    let mut seed = 1u32;
    for _ in 0..20_000 {
        seed = seed.wrapping_mul(1664525).wrapping_add(1013904223);
        let len = match seed >> 24 & 15 {
            0 => 20_000,
            1 => 9000,
            n => n as usize * 7 + 1,
        };
        let data: Vec<u8> = (0..len).map(|i| (i as u32 ^ seed) as u8).collect();
        let mut done = 0;
        while done < len {
            match tcp.send(&io(&data[done..]), PLAIN) {
                Ok(n) => done += n,
                Err(r) => {
                    assert_eq!(r.tli, TFLOW);
                    std::thread::yield_now();
                }
            }
        }
        sent.extend_from_slice(&data);
    }
    tcp.release().unwrap();
    until("release", || {
        tcp.flush();
        reader.is_finished().then_some(())
    });
    assert!(reader.join().unwrap() == sent);
}

#[test]
fn a_full_kernel_is_flow_control_and_held_data_survives_a_close() {
    let (mut tcp, mut peer) = connected();
    let mut sent = 0usize;
    let block = [7; 1000];
    loop {
        match tcp.send(&io(&block), PLAIN) {
            Ok(n) => sent += n,
            Err(r) => {
                assert_eq!(r.tli, TFLOW);
                break;
            }
        }
    }
    let reader = std::thread::spawn(move || {
        let mut all = Vec::new();
        peer.read_to_end(&mut all).unwrap();
        all.len()
    });
    tcp.close();
    drop(tcp);
    assert_eq!(reader.join().unwrap(), sent);
}

#[test]
fn urgent_bytes_overtake_and_are_told_apart() {
    let (mut tcp, mut peer) = connected();
    tcp.send(&io(b"!"), EXPEDITED).unwrap();
    let mut byte = [0u8];
    until("urgent byte", || {
        // SAFETY: one writable byte.
        let n = unsafe {
            libc::recv(
                std::os::fd::AsRawFd::as_raw_fd(&peer),
                byte.as_mut_ptr() as *mut _,
                1,
                libc::MSG_OOB,
            )
        };
        (n == 1).then_some(())
    });
    assert_eq!(&byte, b"!");
    peer.write_all(b"normal").unwrap();
    // SAFETY: one readable byte.
    unsafe {
        libc::send(
            std::os::fd::AsRawFd::as_raw_fd(&peer),
            b"u".as_ptr() as *const _,
            1,
            libc::MSG_OOB,
        )
    };
    until("ExData", || {
        (tcp.peek() == Some(Event::ExData)).then_some(())
    });
    let mut room = [0; 16];
    let mut got = Vec::new();
    let mut urgent = Vec::new();
    until("both", || {
        if let Ok(r) = tcp.receive(&io(&room)) {
            (if r.expedited { &mut urgent } else { &mut got }).extend_from_slice(&room[..r.len]);
        }
        let _ = &mut room;
        (got.len() == 6 && urgent.len() == 1).then_some(())
    });
    assert_eq!((&got[..], &urgent[..]), (&b"normal"[..], &b"u"[..]));
    assert_eq!(tcp.peek(), None);
}

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
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    // SAFETY: a struct linger.
    unsafe {
        libc::setsockopt(
            std::os::fd::AsRawFd::as_raw_fd(&peer),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            &raw const linger as *const _,
            8,
        )
    };
    drop(peer);
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
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    // SAFETY: a struct linger.
    unsafe {
        libc::setsockopt(
            std::os::fd::AsRawFd::as_raw_fd(&peer),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            &raw const linger as *const _,
            8,
        )
    };
    drop(peer);
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

// ---- UDP ----

fn udp() -> (Udp, Vec<u8>) {
    let mut udp = Udp::open(false).unwrap();
    let (address, _) = udp.bind(Some(&loopback(0)), 0).unwrap();
    (udp, address)
}

fn take(udp: &mut Udp, room: &mut [u8]) -> Option<(usize, Vec<u8>, bool)> {
    let mut from = [0; 28];
    let data = io(room);
    let mut d = Datagram {
        addr: &mut from,
        opts: &mut [],
        data: &data,
        addr_len: 0,
        opts_len: 0,
        data_len: 0,
        more: false,
    };
    match udp.receive_from(&mut d) {
        Ok(()) => {
            let (len, from_len, more) = (d.data_len, d.addr_len, d.more);
            Some((len, from[..from_len].to_vec(), more))
        }
        Err(r) => {
            assert_eq!(r.tli, TNODATA);
            None
        }
    }
}

#[test]
fn datagrams_of_all_sizes_reach_a_plain_socket_one_by_one() {
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    peer.set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    let to = bytes(peer.local_addr().unwrap());
    let (mut udp, own) = udp();
    let sizes = [
        10, 10, 10, 4, 10, 0, 10, 10, 2000, 2000, 40_000, 65_507, 1, 1, 1,
    ];
    let mut room = [0; 65_536];
    for round in 0..50u8 {
        for len in sizes {
            udp.send_to(&to, &[], &io(&vec![round; len])).unwrap();
        }
        udp.flush();
        for len in sizes {
            let (n, from) = peer.recv_from(&mut room).unwrap();
            assert_eq!((n, bytes(from)), (len, own.clone()));
            assert!(room[..n].iter().all(|&b| b == round));
        }
    }
}

#[test]
fn datagrams_to_different_places_are_not_mixed() {
    let peers: Vec<UdpSocket> = (0..3)
        .map(|_| UdpSocket::bind("127.0.0.1:0").unwrap())
        .collect();
    let (mut udp, _) = udp();
    for i in 0..30u8 {
        let to = bytes(peers[i as usize % 3].local_addr().unwrap());
        udp.send_to(&to, &[], &io(&[i; 9])).unwrap();
    }
    udp.flush();
    for i in 0..30u8 {
        let mut room = [0; 100];
        assert_eq!(peers[i as usize % 3].recv(&mut room).unwrap(), 9);
        assert_eq!(room[0], i);
    }
}

#[test]
fn batches_between_two_of_ours_keep_their_boundaries() {
    let ((mut a, from), (mut b, to)) = (udp(), udp());
    let mut room = [0; 2000];
    for len in [1, 64, 1024, 1400] {
        for i in 0..100u8 {
            a.send_to(&to, &[], &io(&vec![i; len])).unwrap();
        }
        a.flush();
        for i in 0..100u8 {
            let (n, sender, more) = until("datagram", || take(&mut b, &mut room));
            assert_eq!((n, &sender, more, room[0]), (len, &from, false, i));
        }
    }
}

#[test]
fn a_datagram_too_large_for_the_buffer_comes_in_pieces() {
    let ((mut a, _), (mut b, to)) = (udp(), udp());
    a.send_to(&to, &[], &io(b"abcdefgh")).unwrap();
    a.send_to(&to, &[], &io(b"ijklmnop")).unwrap();
    a.flush();
    let mut room = [0; 5];
    let (n, from, more) = until("datagram", || take(&mut b, &mut room));
    assert_eq!(
        (n, from.len(), more, &room[..n]),
        (5, 16, true, &b"abcde"[..])
    );
    let (n, from, more) = take(&mut b, &mut room).unwrap();
    assert_eq!(
        (n, from.len(), more, &room[..n]),
        (3, 0, false, &b"fgh"[..])
    );
    let (n, from, _) = until("datagram", || take(&mut b, &mut room));
    assert_eq!((from.len(), &room[..n]), (16, &b"ijklm"[..]));
}

#[test]
fn what_could_not_be_delivered_is_told_with_its_address() {
    let (mut udp, _) = udp();
    let nobody = bytes(
        UdpSocket::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap(),
    );
    udp.send_to(&nobody, &[], &io(b"lost")).unwrap();
    udp.flush();
    event(&mut udp, Event::UdErr);
    match udp.take() {
        Some(Arrived::Undelivered { to, error, .. }) => {
            assert_eq!((to, error), (nobody, libc::ECONNREFUSED))
        }
        other => panic!("{other:?}"),
    }
    // It does not disturb what goes elsewhere.
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.send_to(&bytes(peer.local_addr().unwrap()), &[], &io(b"fine"))
        .unwrap();
    udp.flush();
    assert_eq!(peer.recv(&mut [0; 10]).unwrap(), 4);
}

#[test]
fn oversized_and_misaddressed_datagrams_are_refused() {
    let (mut udp, own) = udp();
    assert_eq!(
        udp.send_to(&own, &[], &io(&vec![0; 65_508]))
            .unwrap_err()
            .tli,
        TBADDATA
    );
    assert_eq!(
        udp.send_to(&own[..8], &[], &io(b"x")).unwrap_err().tli,
        TBADADDR
    );
    assert_eq!(
        udp.send_to(&loopback(0), &[], &io(b"x")).unwrap_err().tli,
        TBADADDR
    );
    assert_eq!(
        udp.send_to(&own, &[1, 2, 3], &io(b"x")).unwrap_err().tli,
        TBADOPT
    );
    assert_eq!(udp.bind(Some(&own), 0).unwrap_err().tli, TBADADDR);
}

// ---- the flushing thread ----

#[test]
fn an_unbound_endpoint_has_no_address() {
    let mut udp = Udp::open(false).unwrap();
    assert_eq!(udp.local(), None);
    udp.bind(Some(&loopback(0)), 0).unwrap();
    assert!(udp.local().is_some());
    udp.unbind().unwrap();
    assert_eq!(udp.local(), None);
    assert_eq!(Tcp::open(false).unwrap().local(), None);
}

#[test]
fn a_piece_without_bytes_is_a_piece() {
    let (mut udp, to) = udp();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    sender
        .send_to(b"data", ("127.0.0.1", port_of(&to)))
        .unwrap();
    let (_, from, more) = until("a datagram", || take(&mut udp, &mut []));
    assert!(from.len() == 16 && more);
    let mut room = [0; 8];
    assert_eq!(take(&mut udp, &mut room), Some((4, Vec::new(), false)));
}

fn negotiate(tcp: &mut Tcp, name: u32, value: i32) {
    let mut list = List::new();
    list.push_number(XTI_GENERIC, name, 0, value);
    let set = tcp.negotiate(T_NEGOTIATE as u32, list.bytes()).unwrap();
    assert_eq!(set.0 as i32, T_SUCCESS);
}

fn polled(tcp: &Tcp, events: i16) -> bool {
    let mut set = [libc::pollfd {
        fd: tcp.descriptor(),
        events,
        revents: 0,
    }];
    sys::ppoll(&mut set, Some(0)).unwrap() > 0
}

/// What of it the kernel has not sent.
fn unsent(tcp: &Tcp) -> i32 {
    const SIOCOUTQNSD: u64 = 0x894b;
    sys::ioctl_int(tcp.descriptor(), SIOCOUTQNSD).unwrap()
}

#[test]
fn there_is_no_room_before_there_is_as_much_as_the_user_wants() {
    let (mut tcp, mut peer) = connected();
    negotiate(&mut tcp, XTI_SNDLOWAT, 64 << 20);
    let block = vec![5; 20_000];
    let mut sent = 0;
    let refusal = loop {
        match tcp.send(&io(&block), Sending::default()) {
            Ok(n) => sent += n,
            Err(refusal) => break refusal.tli,
        }
    };
    assert_eq!(refusal, TFLOW);
    assert!(unsent(&tcp) > 0);
    // More than there ever is: everything has to leave.
    let mut room = vec![0; 1 << 16];
    let mut read = 0;
    until("room", || {
        let ready = polled(&tcp, libc::POLLOUT);
        if ready {
            assert_eq!(unsent(&tcp), 0);
            return Some(());
        }
        assert_eq!(
            tcp.send(&io(b"x"), Sending::default()).unwrap_err().tli,
            TFLOW
        );
        assert_eq!(tcp.ready(libc::POLLOUT as u32), 0);
        read += peer.read(&mut room).unwrap();
        None
    });
    let more = tcp.send(
        &io(b"x"),
        Sending {
            push: true,
            ..PLAIN
        },
    );
    assert_eq!(more, Ok(1));
    let rest = sent + 1 - read;
    peer.read_exact(&mut vec![0; rest]).unwrap();
}

#[test]
fn data_below_the_mark_is_not_there_yet() {
    let (mut tcp, mut peer) = connected();
    negotiate(&mut tcp, XTI_RCVLOWAT, 1000);
    let mut room = [0; 2000];
    peer.write_all(&[1; 600]).unwrap();
    until("600 bytes", || {
        let there = sys::ioctl_int(tcp.descriptor(), libc::FIONREAD).unwrap();
        (there == 600).then_some(())
    });
    for _ in 0..2 {
        assert_eq!(tcp.peek(), None);
        assert_eq!(tcp.receive(&io(&room)).unwrap_err().tli, TNODATA);
        assert!(!polled(&tcp, libc::POLLIN));
    }
    peer.write_all(&[2; 400]).unwrap();
    event(&mut tcp, Event::Data);
    assert_eq!(tcp.receive(&io(&room)).unwrap().len, 1000);
    // The end does not wait.
    peer.write_all(&[3; 10]).unwrap();
    drop(peer);
    event(&mut tcp, Event::Data);
    assert_eq!(tcp.receive(&io(&room)).unwrap().len, 10);
    event(&mut tcp, Event::OrdRel);
    let _ = &mut room;
}

#[test]
fn options_of_an_endpoint_are_those_of_the_connection_that_it_accepts() {
    let (mut tcp, port) = listener(1);
    let _peer = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let seq = request(&mut tcp);
    let mut on = Tcp::open(false).unwrap();
    negotiate(&mut on, XTI_RCVLOWAT, 1000);
    let request = tcp.take_request(seq).unwrap();
    assert!(on.adopt(request, &[], &[]).is_ok());
    let low = sys::sockopt::<i32>(on.descriptor(), libc::SOL_SOCKET, libc::SO_RCVLOWAT);
    assert_eq!(low, Ok(1000));
}

#[test]
fn options_outlive_a_connection_and_a_binding() {
    let (mut tcp, peer) = connected();
    let mut list = List::new();
    list.push_number(INET_IP, T_IP_TOS, 0, 0x10);
    let set = tcp.negotiate(T_NEGOTIATE as u32, list.bytes()).unwrap();
    assert_eq!(set.0 as i32, T_SUCCESS);
    let mut ask = List::new();
    ask.push(INET_IP, T_IP_TOS, 0, &[]);
    let tos = |tcp: &mut Tcp| tcp.negotiate(T_CURRENT as u32, ask.bytes()).unwrap().1;
    let before = tos(&mut tcp);
    drop(peer);
    event(&mut tcp, Event::OrdRel);
    tcp.take();
    tcp.release().unwrap();
    tcp.connection_over();
    assert_eq!(tos(&mut tcp), before);
    tcp.unbind().unwrap();
    assert_eq!(tos(&mut tcp), before);
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
    // SAFETY: as above.
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

#[test]
fn the_end_of_a_run_of_large_sends_goes_out_without_another_call() {
    let (endpoint, mut peer) = endpoint_to_plain();
    let block = vec![7; 20_000];
    for _ in 0..10 {
        assert_eq!(endpoint.send(&io(&block), PLAIN), Ok(block.len()));
    }
    let mut all = vec![0; 10 * block.len()];
    peer.read_exact(&mut all).unwrap();
    assert!(all.iter().all(|&b| b == 7));
    endpoint.let_go();
}

#[test]
fn a_small_message_behind_a_run_of_large_ones_keeps_its_place() {
    let (mut tcp, mut peer) = connected();
    let block = vec![1; 16 << 10];
    for _ in 0..5 {
        assert_eq!(tcp.send(&io(&block), PLAIN), Ok(block.len()));
    }
    assert_eq!(tcp.send(&io(b"end"), PLAIN), Ok(3));
    tcp.flush();
    let mut all = vec![0; 5 * block.len() + 3];
    peer.read_exact(&mut all).unwrap();
    assert_eq!(&all[all.len() - 3..], b"end");
}

/// A connected endpoint, as programs have them.
fn endpoint_to_plain() -> (&'static Endpoint, TcpStream) {
    headwater_host::process::identify();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let e = endpoint::detached(Device::Tcp).unwrap();
    e.bind(None, 0).unwrap();
    e.connect(&bytes(listener.local_addr().unwrap()), &[], &[])
        .unwrap();
    until("Connect", || e.peek());
    assert!(matches!(e.take(), Some(Arrived::Confirmed { .. })));
    (e, listener.accept().unwrap().0)
}

#[test]
fn held_data_goes_out_without_another_call() {
    let (e, mut peer) = endpoint_to_plain();
    peer.set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    for round in 0..200u8 {
        for _ in 0..round % 7 + 1 {
            e.send(&io(&[round]), PLAIN).unwrap();
        }
        for _ in 0..round % 7 + 1 {
            let mut got = [0];
            peer.read_exact(&mut got).unwrap();
            assert_eq!(got[0], round);
        }
    }
}

// ---- both ends ours, in two processes ----

fn start_fast_sockets() {
    headwater_host::process::identify();
    headwater_sockets::start();
    headwater_host::process::enable(true);
}

fn is_carried(tcp: &Tcp) -> bool {
    tcp.inner()
        .is_some_and(headwater_sockets::options::is_carried)
}

const ROUNDS: usize = 2000;

fn helper(name: &str, folder: &std::path::Path, port: &str) -> std::process::Child {
    std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", name, "--nocapture"])
        .env("HEADWATER_DIR", folder.join("run"))
        .env("XTI_TEST_PORT", port)
        .spawn()
        .unwrap()
}

/// The two ends of a test, which learns the port by a file.
fn both(server: &str, client: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("port");
    let mut server = helper(server, folder.path(), file.to_str().unwrap());
    let port = until("port", || {
        std::fs::read_to_string(&file)
            .ok()
            .filter(|t| t.ends_with('\n'))
    });
    let mut client = helper(client, folder.path(), port.trim());
    assert!(client.wait().unwrap().success());
    assert!(server.wait().unwrap().success());
}

/// Tells the port by `file`, and accepts.
fn serve(file: String) -> Tcp {
    start_fast_sockets();
    let (mut listener, port) = listener(1);
    std::fs::write(file, format!("{port}\n")).unwrap();
    let seq = request(&mut listener);
    let pending = listener.take_request(seq).unwrap();
    let mut tcp = Tcp::open(false).unwrap();
    tcp.adopt(pending, &[], &[]).map_err(|e| e.0).unwrap();
    tcp
}

fn call(port: String) -> Tcp {
    start_fast_sockets();
    let mut tcp = Tcp::open(false).unwrap();
    tcp.bind(None, 0).unwrap();
    tcp.connect(&loopback(port.parse().unwrap()), &[], &[])
        .unwrap();
    event(&mut tcp, Event::Connect);
    tcp.take();
    tcp
}

#[test]
fn a_connection_between_two_of_ours_is_taken_over_by_shared_memory() {
    both("carried_server", "carried_client");
}

#[test]
#[ignore = "run by another test"]
fn carried_server() {
    let Ok(file) = std::env::var("XTI_TEST_PORT") else {
        return;
    };
    let mut tcp = serve(file);
    for _ in 0..ROUNDS {
        let got = receive(&mut tcp, 1);
        tcp.send(&io(&got), PUSH).unwrap();
    }
    assert!(is_carried(&tcp));
    let sent = hear("full");
    // More than half of the ring: then a sender goes on that wants no more room.
    let first = receive(&mut tcp, 150_000).len();
    tcp.send(&io(b"x"), PUSH).unwrap();
    hear("go on");
    let total = first + receive_all(&mut tcp);
    assert_eq!(total, sent + 1 + 64 * ROUNDS);
    tcp.take();
    tcp.send(&io(b"bye"), PLAIN).unwrap();
    tcp.release().unwrap();
    tcp.connection_over();
    tcp.close();
}

/// A number that the client tells the server past the connection, by a file.
fn word(name: &str) -> std::path::PathBuf {
    std::path::Path::new(&std::env::var("HEADWATER_DIR").unwrap()).with_file_name(name)
}

fn say(name: &str, number: usize) {
    std::fs::write(word(name), format!("{number}\n")).unwrap();
}

fn hear(name: &str) -> usize {
    until(name, || {
        let said = std::fs::read_to_string(word(name)).ok()?;
        said.strip_suffix('\n')?.parse().ok()
    })
}

fn receive_all(tcp: &mut Tcp) -> usize {
    let room = vec![0; 65536];
    let mut total = 0;
    until("end", || match tcp.receive(&io(&room)) {
        Ok(r) => {
            total += r.len;
            None
        }
        Err(r) => (r.tli == TLOOK).then_some(()),
    });
    assert_eq!(tcp.peek(), Some(Event::OrdRel));
    total
}

#[test]
#[ignore = "run by another test"]
fn carried_client() {
    let Ok(port) = std::env::var("XTI_TEST_PORT") else {
        return;
    };
    let mut tcp = call(port);
    let begun = Instant::now();
    for i in 0..ROUNDS {
        tcp.send(&io(&[i as u8]), PUSH).unwrap();
        assert_eq!(receive(&mut tcp, 1), [i as u8]);
    }
    println!(
        "{} ns for one exchange",
        begun.elapsed().as_nanos() / ROUNDS as u128
    );
    assert!(is_carried(&tcp));
    negotiate(&mut tcp, XTI_SNDLOWAT, 64 << 20);
    let block = vec![7; 20_000];
    let mut sent = 0;
    while let Ok(n) = tcp.send(&io(&block), PLAIN) {
        sent += n;
    }
    say("full", sent);
    assert_eq!(receive(&mut tcp, 1), b"x");
    for _ in 0..3 {
        assert_eq!(tcp.send(&io(&block), PLAIN).unwrap_err().tli, TFLOW);
        assert!(carried(&tcp).1.out_ring().unread() > 0);
    }
    say("go on", 0);
    until("room", || tcp.send(&io(b"x"), PUSH).ok());
    negotiate(&mut tcp, XTI_SNDLOWAT, 1);
    for _ in 0..ROUNDS {
        until("room", || tcp.send(&io(&[7; 64]), PLAIN).ok());
    }
    tcp.release().unwrap();
    assert_eq!(receive(&mut tcp, 3), b"bye");
    event(&mut tcp, Event::OrdRel);
    tcp.take();
    tcp.connection_over();
    assert!(!is_carried(&tcp));
    tcp.close();
}

#[test]
fn a_release_comes_behind_what_the_peer_wants_by_the_kernel() {
    both("releasing_server", "late_client");
}

/// More than the kernel takes, and less than a ring does.
const MUCH: usize = 200_000;

fn carried(tcp: &Tcp) -> (&'static Conn, View<'static>) {
    let c = conn::get(tcp.inner().unwrap()).unwrap();
    (c, c.view().unwrap())
}

#[test]
#[ignore = "run by another test"]
fn releasing_server() {
    let Ok(file) = std::env::var("XTI_TEST_PORT") else {
        return;
    };
    let mut tcp = serve(file);
    for _ in 0..10 {
        let got = receive(&mut tcp, 1);
        tcp.send(&io(&got), PUSH).unwrap();
    }
    // All answers have been read.
    receive(&mut tcp, 1);
    let (c, v) = carried(&tcp);
    let _ = headwater_host::sys::set_sockopt(c.fd(), libc::SOL_SOCKET, libc::SO_SNDBUF, &4096);
    let by_ring = || Tx(v.out().send.tx.load(Ordering::Acquire)).by_ring();
    until("the ring", || {
        (by_ring() || switch::try_switch(&v)).then_some(())
    });
    let mut left = MUCH;
    until("room", || {
        left -= tcp.send(&io(&vec![7; left]), PUSH).unwrap_or(0);
        (left == 0).then_some(())
    });
    until("the peer's wish", || {
        switch::must_withdraw(&v).then_some(())
    });
    tcp.release().unwrap();
    event(&mut tcp, Event::OrdRel);
    tcp.take();
    tcp.connection_over();
    tcp.close();
}

#[test]
#[ignore = "run by another test"]
fn late_client() {
    let Ok(port) = std::env::var("XTI_TEST_PORT") else {
        return;
    };
    let mut tcp = call(port);
    for i in 0..10 {
        tcp.send(&io(&[i]), PUSH).unwrap();
        assert_eq!(receive(&mut tcp, 1), [i]);
    }
    tcp.send(&io(b"."), PUSH).unwrap();
    let (c, v) = carried(&tcp);
    until("all of it", || (v.in_ring().unread() == MUCH).then_some(()));
    life::passing_on(c.fd());
    let begun = || Tx(v.inn().send.tx.load(Ordering::Acquire)).has(WITHDRAWS);
    until("the release", || begun().then_some(()));
    assert_eq!(receive_all(&mut tcp), MUCH);
    tcp.take();
    tcp.release().unwrap();
    tcp.connection_over();
    tcp.close();
}

// ---- speed, by hand ----

/// cargo test --release --test inet -- --ignored --nocapture
#[test]
#[ignore = "a measurement"]
fn nanoseconds_per_send() {
    for size in [1, 16, 64, 256, 1024, 8192, 16384] {
        let data = vec![1; size];
        let count = (400_000_000 / size.max(64)).min(4_000_000);
        let (e, peer) = endpoint_to_plain();
        let reader = drain(peer);
        let begun = Instant::now();
        for _ in 0..count {
            while e.send(&io(&data), PLAIN).is_err() {
                std::thread::yield_now();
            }
        }
        e.flush();
        let ours = begun.elapsed();
        e.release().unwrap();
        reader.join().unwrap();
        let plain = |nodelay, count: usize| {
            let server = TcpListener::bind("127.0.0.1:0").unwrap();
            let mut out = TcpStream::connect(server.local_addr().unwrap()).unwrap();
            out.set_nodelay(nodelay).unwrap();
            let reader = drain(server.accept().unwrap().0);
            let begun = Instant::now();
            for _ in 0..count {
                out.write_all(&data).unwrap();
            }
            let each = begun.elapsed().as_nanos() as f64 / count as f64;
            drop(out);
            reader.join().unwrap();
            each
        };
        let ours = ours.as_nanos() as f64 / count as f64;
        let (nagle, nodelay) = (plain(false, count / 4), plain(true, count / 16));
        println!(
            "{size:6} bytes: {ours:7.1} ns, plain send {nagle:7.1}, with NODELAY {nodelay:7.1}"
        );
    }
}

fn drain(mut peer: TcpStream) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let mut room = vec![0; 131_071];
        while peer.read(&mut room).unwrap() > 0 {}
    })
}

#[test]
#[ignore = "a measurement"]
fn nanoseconds_per_datagram() {
    for size in [1, 64, 256, 1024, 4096, 16384] {
        let ((mut a, _), (mut b, to)) = (udp(), udp());
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let stopped = stop.clone();
        let receiver = std::thread::spawn(move || {
            let mut room = vec![0; 65_536];
            let mut got = 0u64;
            while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
                got += take(&mut b, &mut room).is_some() as u64;
            }
            got
        });
        let data = vec![1; size];
        let (begun, mut sent) = (Instant::now(), 0u64);
        while begun.elapsed() < Duration::from_millis(500) {
            for _ in 0..64 {
                sent += a.send_to(&to, &[], &io(&data)).is_ok() as u64;
            }
        }
        a.flush();
        let took = begun.elapsed().as_secs_f64();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let got = receiver.join().unwrap();
        let (to_plain, from_ours) = datagrams_to_plain(&data);
        let (plain_sent, plain_got) = plain_datagrams(&data);
        let line = |what: &str, sent: f64, got: f64| {
            println!(
                "{size:6} bytes, {what}: sent {sent:6.0} k/s, delivered {got:6.0} k/s ({:4.1}% lost)",
                100.0 - got / sent * 100.0
            );
        };
        line(
            "ours to ours  ",
            sent as f64 / took / 1e3,
            got as f64 / took / 1e3,
        );
        line("ours to plain ", to_plain, from_ours);
        line("plain to plain", plain_sent, plain_got);
    }
}

fn counting(b: UdpSocket) -> std::thread::JoinHandle<u64> {
    b.set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    std::thread::spawn(move || {
        let mut room = vec![0; 65_536];
        let mut got = 0u64;
        while b.recv_from(&mut room).is_ok() {
            got += 1;
        }
        got
    })
}

fn datagrams_to_plain(data: &[u8]) -> (f64, f64) {
    let b = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (mut a, to) = (udp().0, bytes(b.local_addr().unwrap()));
    let receiver = counting(b);
    let (begun, mut sent) = (Instant::now(), 0u64);
    while begun.elapsed() < Duration::from_millis(500) {
        for _ in 0..64 {
            sent += a.send_to(&to, &[], &io(data)).is_ok() as u64;
        }
    }
    a.flush();
    let took = begun.elapsed().as_secs_f64() * 1e3;
    (sent as f64 / took, receiver.join().unwrap() as f64 / took)
}

fn plain_datagrams(data: &[u8]) -> (f64, f64) {
    let (a, b) = (
        UdpSocket::bind("127.0.0.1:0").unwrap(),
        UdpSocket::bind("127.0.0.1:0").unwrap(),
    );
    let to = b.local_addr().unwrap();
    let receiver = counting(b);
    let (begun, mut sent) = (Instant::now(), 0u64);
    while begun.elapsed() < Duration::from_millis(500) {
        for _ in 0..16 {
            sent += a.send_to(data, to).is_ok() as u64;
        }
    }
    let took = begun.elapsed().as_secs_f64() * 1e3;
    (sent as f64 / took, receiver.join().unwrap() as f64 / took)
}

/// How long the last message of a burst is held, the machine being idle otherwise.
#[test]
#[ignore = "a measurement"]
fn microseconds_held() {
    for burst in [1, 2, 5, 20] {
        let (e, mut peer) = endpoint_to_plain();
        let (sent, sent_at) = std::sync::mpsc::channel::<Instant>();
        let reader = std::thread::spawn(move || {
            let (mut room, mut got, mut held) = ([0; 64], 0, Vec::new());
            while got < 1000 * burst {
                got += peer.read(&mut room).unwrap();
                let now = Instant::now();
                while held.len() < got / burst {
                    held.push(
                        now.saturating_duration_since(sent_at.recv().unwrap())
                            .as_micros(),
                    );
                }
            }
            held.sort_unstable();
            held
        });
        for _ in 0..1000 {
            for _ in 0..burst {
                e.send(&io(b"x"), PLAIN).unwrap();
            }
            sent.send(Instant::now()).unwrap();
            std::thread::sleep(Duration::from_micros(1500));
        }
        let held = reader.join().unwrap();
        println!(
            "bursts of {burst} bytes: median {} us, p99 {} us",
            held[500], held[990]
        );
    }
}
