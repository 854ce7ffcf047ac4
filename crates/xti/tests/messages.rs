//! The calls of XTI on streams: devices opened by open(2), and endpoints of t_open that became streams.

#[path = "common/fd.rs"]
mod fd;

use std::time::{Duration, Instant};

use fd::{DIRECT, Fd, MIXTURES, connected, part, start};
use headwater_endpoints::stream;
use headwater_host::{reclaim, table};
use headwater_providers::provider::{Datagram, Event};
use headwater_streams::head::{control, get};
use headwater_streams::open;
use headwater_tpi::error::*;
use headwater_tpi::state::{Call, T_DATAXFER, T_IDLE, T_INCON, T_INREL, T_OUTREL, T_UNBND};
use headwater_xti::calls;
use headwater_xti::messages::Messages;
use headwater_xti::syncing;

#[test]
fn a_connection_from_its_beginning_to_its_release() {
    for mixture in MIXTURES {
        let (client, server) = connected("ticotsord", mixture);
        assert_eq!(client.send(b"to the server", 0), Ok(13));
        assert_eq!(server.receive(6), Ok((b"to the".to_vec(), calls::T_MORE)));
        assert_eq!(server.receive(100), Ok((b" server".to_vec(), 0)));
        assert_eq!(server.send(b"part ", calls::T_MORE), Ok(5));
        assert_eq!(
            client.receive(100).unwrap(),
            (b"part ".to_vec(), calls::T_MORE)
        );
        assert_eq!(server.send(b"!", calls::T_EXPEDITED), Ok(1));
        assert_eq!(client.receive(100), Ok((b"!".to_vec(), calls::T_EXPEDITED)));
        client
            .call(|port| calls::sndrel(port, Call::SndRel, &[]))
            .unwrap();
        assert_eq!(client.state(), T_OUTREL);
        assert_eq!(server.look(), Event::OrdRel);
        assert_eq!(server.receive(1).unwrap_err().tli, TLOOK);
        server
            .call(|port| calls::rcvrel(port, Call::RcvRel))
            .unwrap();
        assert_eq!(server.state(), T_INREL);
        server
            .call(|port| calls::sndrel(port, Call::SndRel, &[]))
            .unwrap();
        assert_eq!(client.look(), Event::OrdRel);
        client
            .call(|port| calls::rcvrel(port, Call::RcvRel))
            .unwrap();
        assert_eq!(client.state(), T_IDLE);
    }
}

#[test]
fn much_data_goes_through() {
    for mixture in MIXTURES {
        let (client, server) = connected("ticots", mixture);
        let sent: Vec<u8> = (0..600_000u32).map(|i| (i / 5) as u8).collect();
        let copy = sent.clone();
        let writer = std::thread::spawn(move || {
            assert_eq!(client.send(&copy, 0), Ok(copy.len()));
            client
        });
        let mut got = Vec::new();
        while got.len() < sent.len() {
            got.extend(server.receive(50_000).unwrap().0);
        }
        assert!(got == sent);
        drop(writer.join().unwrap());
    }
}

#[test]
fn a_blocked_sender_learns_that_the_peer_has_gone() {
    for mixture in MIXTURES.into_iter().chain([DIRECT]) {
        let (client, server) = connected("ticots", mixture);
        let writer = std::thread::spawn(move || {
            let sent = client.send(&[1; 2_000_000], 0);
            assert!(
                sent.is_err_and(|e| e.tli == TLOOK) || sent.is_ok_and(|n| n < 2_000_000),
                "{sent:?}"
            );
            client
        });
        server.receive(1000).unwrap();
        let begun = Instant::now();
        drop(server);
        drop(writer.join().unwrap());
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
}

#[test]
fn a_disconnection_is_told() {
    for mixture in MIXTURES {
        let (client, server) = connected("ticots", mixture);
        client.call(|port| calls::snddis(port, None, &[])).unwrap();
        assert_eq!(client.state(), T_IDLE);
        assert_eq!(server.look(), Event::Disconnect);
        assert_eq!(server.receive(1).unwrap_err().tli, TLOOK);
        assert_eq!(server.send(b"x", 0).unwrap_err().tli, TLOOK);
        server.call(calls::rcvdis).unwrap();
        assert!(matches!(server.state(), T_IDLE | T_UNBND));
        assert_eq!(server.call(calls::rcvdis).unwrap_err().tli, TOUTSTATE);
    }
}

#[test]
fn a_listener_accepts_on_itself_and_refuses() {
    let (listener, client) = (Fd::stream("ticots"), Fd::stream("ticots"));
    let address = listener.bind(1);
    client.bind(0);
    client
        .call(|port| port.connect(&address, &[], &[]))
        .unwrap();
    let heard = listener.call(calls::listen).unwrap();
    assert_eq!(
        listener
            .call(|p| calls::snddis(p, Some(heard.seq + 1), &[]))
            .unwrap_err()
            .tli,
        TBADSEQ
    );
    listener
        .call(|port| calls::snddis(port, Some(heard.seq), &[]))
        .unwrap();
    assert_eq!(
        (listener.state(), client.look()),
        (T_IDLE, Event::Disconnect)
    );
    client.call(calls::rcvdis).unwrap();
    client
        .call(|port| port.connect(&address, &[], &[]))
        .unwrap();
    let heard = listener.call(calls::listen).unwrap();
    listener.accept(&listener, heard.seq).unwrap();
    assert_eq!(listener.state(), T_DATAXFER);
}

#[test]
fn datagrams_come_in_pieces() {
    for device in ["ticlts", "udp", "udp2"] {
        let (a, b) = (Fd::stream(device), Fd::stream(device));
        let mut to = b.bind(0);
        let from = a.bind(0);
        if device != "ticlts" {
            to[4..8].copy_from_slice(&[127, 0, 0, 1]);
        }
        a.call(|port| calls::sndudata(port, &to, &[], &[part(b"a datagram")]))
            .unwrap();
        let (mut addr, mut opts, buf) = ([0; 100], [0; 100], [0u8; 4]);
        let mut text = Vec::new();
        for (more, len) in [(true, from.len()), (true, 0), (false, 0)] {
            let data = [part(&buf)];
            let mut into = Datagram {
                addr: &mut addr,
                opts: &mut opts,
                data: &data,
                addr_len: 9,
                opts_len: 9,
                data_len: 0,
                more: false,
            };
            b.call(|port| calls::rcvudata(port, &mut into)).unwrap();
            assert_eq!((into.more, into.addr_len), (more, len), "{device}");
            text.extend_from_slice(&buf[..into.data_len]);
        }
        assert_eq!(text, b"a datagram");
    }
}

#[test]
fn names_and_options_come_by_ioctl() {
    let s = Fd::stream("ticotsord");
    assert_eq!(s.state(), T_UNBND);
    let address = s.bind(2);
    assert_eq!(s.call(|port| port.local()).unwrap(), Some(address));
    assert_eq!(s.call(|port| port.remote()).unwrap(), None);
    assert_eq!(
        s.call(|port| calls::bind(port, None, 0)).unwrap_err().tli,
        TOUTSTATE
    );
    let current = headwater_tpi::option::T_CURRENT;
    assert_eq!(
        s.call(|port| calls::optmgmt(port, current, &[1, 2, 3]))
            .unwrap_err()
            .tli,
        TBADOPT
    );
    s.call(calls::unbind).unwrap();
    assert_eq!(s.state(), T_UNBND);
}

#[test]
fn a_connection_becomes_a_stream_in_the_middle() {
    let (client, server) = connected("ticotsord", DIRECT);
    server.send(b"before", 0).unwrap();
    stream::convert(client.0).unwrap();
    assert_eq!(client.state(), T_DATAXFER);
    server.send(b"after", 0).unwrap();
    assert_eq!(client.receive(100), Ok((b"before".to_vec(), 0)));
    assert_eq!(client.receive(100), Ok((b"after".to_vec(), 0)));
    client.send(b"answer", 0).unwrap();
    assert_eq!(server.receive(100), Ok((b"answer".to_vec(), 0)));
}

#[test]
fn a_listener_becomes_a_stream_with_a_request_heard() {
    let (listener, client, server) = (
        Fd::direct("ticots"),
        Fd::direct("ticots"),
        Fd::direct("ticots"),
    );
    let address = listener.bind(3);
    client.bind(0);
    client
        .call(|port| port.connect(&address, &[], &[]))
        .unwrap();
    let heard = listener.call(calls::listen).unwrap();
    stream::convert(listener.0).unwrap();
    assert_eq!(listener.state(), T_INCON);
    listener.accept(&server, heard.seq).unwrap();
    assert_eq!(listener.state(), T_IDLE);
    client.call(calls::rcvconnect).unwrap();
}

#[test]
fn what_is_no_transport_is_no_endpoint() {
    start();
    let fd = open::open(c"/dev/echo", libc::O_RDWR).unwrap().unwrap();
    let echo = Fd(fd);
    assert_eq!(echo.call(|port| port.state()).unwrap_err().tli, TBADF);
    assert_eq!(
        syncing(fd, |port| calls::sync(port)).unwrap_err().tli,
        TBADF
    );
    // A device without timod is one after t_sync only.
    let plain = open::open(c"/dev/ticots", libc::O_RDWR).unwrap().unwrap();
    let plain = Fd(plain);
    assert_eq!(plain.call(|port| port.state()).unwrap_err().tli, TBADF);
    assert!(Messages::begin(plain.0).is_ok());
    assert_eq!(plain.state(), T_UNBND);
    // I_POP takes it off again.
    let head = get(table::stream(plain.0).unwrap(), &reclaim::enter()).unwrap();
    // SAFETY: no argument.
    unsafe { control::ioctl(head, (b'S' as u32) << 8 | 3, 0) }.unwrap();
    assert_eq!(plain.call(|port| port.state()).unwrap_err().tli, TBADF);
}
