//! Datagrams of UDP, in batches and alone.

use std::net::UdpSocket;
use std::time::Duration;

use headwater_providers::inet::tcp::Tcp;
use headwater_providers::inet::udp::Udp;
use headwater_providers::provider::{Arrived, Event, Provider};
use headwater_tpi::error::*;

use crate::sockets::{bytes, datagram, io, port_of};
use crate::waiting::until;
use crate::{event, loopback};

pub fn udp() -> (Udp, Vec<u8>) {
    let mut udp = Udp::open(false).unwrap();
    let (address, _) = udp.bind(Some(&loopback(0)), 0).unwrap();
    (udp, address)
}

pub fn take(udp: &mut Udp, room: &mut [u8]) -> Option<(usize, Vec<u8>, bool)> {
    let mut from = [0; 28];
    let data = io(room);
    let mut d = datagram(&mut from, &data);
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
