//! TPI by hand: putmsg and getmsg on the devices, and the modules timod and tirdwr.

#[path = "tpi/stream.rs"]
mod stream;

#[path = "tpi/fuzz.rs"]
mod fuzz;

use std::time::{Duration, Instant};

use headwater_endpoints::stream::{TI_BIND, TI_GETADDRS, TI_GETINFO, TI_SYNC, TI_UNBIND};
use headwater_streams::head::message::Priority;
use headwater_tpi::error::*;
use headwater_tpi::prim::*;
use headwater_tpi::state::State;
use headwater_tpi::{Indication, Request};
use stream::{Tpi, connected, indication};

const CONNECTIONS: [&str; 3] = ["ticots", "ticotsord", "tcp"];

#[test]
fn info_and_capability_tell_what_the_device_is() {
    for (device, serv) in [
        ("ticlts", T_CLTS),
        ("ticots", T_COTS),
        ("ticotsord", T_COTS_ORD),
        ("tcp", T_COTS_ORD),
        ("udp", T_CLTS),
        ("udp2", T_CLTS),
    ] {
        let s = Tpi::open(device);
        let (ack, _) = s.ask(&Request::Info);
        match indication(&ack) {
            Indication::InfoAck { info } => assert_eq!(
                (info.serv, info.state),
                (serv, State::Unbnd.number()),
                "{device}"
            ),
            other => panic!("{other:?}"),
        }
        let (ack, _) = s.ask(&Request::Capability {
            bits: TC1_INFO | TC1_ACCEPTOR_ID | 0x40,
        });
        match indication(&ack) {
            Indication::CapabilityAck {
                bits,
                info,
                acceptor,
            } => {
                assert_eq!((bits, info.serv), (TC1_INFO | TC1_ACCEPTOR_ID, serv));
                assert_ne!(acceptor, 0);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_connection_goes_through_all_its_states() {
    for device in CONNECTIONS {
        let (client, server) = connected(device);
        client.put(&Request::Data { more: false }, Some(b"hello"));
        assert_eq!(server.data(5), b"hello");
        server.put(&Request::Data { more: false }, Some(b"you too"));
        assert_eq!(client.data(7), b"you too");
        if device == "ticots" {
            client.put(&Request::Discon { seq: NO_SEQUENCE }, None);
            client.expect_ok(T_DISCON_REQ);
            let (ind, _) = server.get();
            assert!(
                matches!(indication(&ind), Indication::DisconInd { seq: -1, .. }),
                "{device}"
            );
            assert_eq!((client.state(), server.state()), (State::Idle, State::Idle));
            continue;
        }
        client.put(&Request::Ordrel, None);
        assert!(matches!(indication(&server.get().0), Indication::OrdrelInd));
        assert_eq!(
            (client.state(), server.state()),
            (State::WindOrdrel, State::WreqOrdrel)
        );
        server.put(&Request::Data { more: false }, Some(b"last"));
        server.put(&Request::Ordrel, None);
        assert_eq!(client.data(4), b"last");
        assert!(matches!(indication(&client.get().0), Indication::OrdrelInd));
        assert_eq!((client.state(), server.state()), (State::Idle, State::Idle));
    }
}

#[test]
fn a_stream_of_many_messages_arrives_whole_in_spite_of_flow_control() {
    for device in CONNECTIONS {
        let (client, server) = connected(device);
        let sent: Vec<u8> = (0..1_000_000u32).map(|i| (i / 7) as u8).collect();
        let copy = sent.clone();
        let writer = std::thread::spawn(move || {
            for piece in copy.chunks(5000) {
                client.put(&Request::Data { more: false }, Some(piece));
            }
            client
        });
        assert!(server.data(sent.len()) == sent, "{device}");
        drop(writer.join().unwrap());
    }
}

#[test]
fn a_request_can_be_refused() {
    for device in CONNECTIONS {
        let server = Tpi::open(device);
        let address = server.bind(2);
        let client = Tpi::open(device);
        client.bind(0);
        client.put(
            &Request::Conn {
                dest: &address,
                opts: &[],
            },
            None,
        );
        client.expect_ok(T_CONN_REQ);
        let (ind, _) = server.get();
        let Indication::ConnInd { seq, .. } = indication(&ind) else {
            panic!("{device}")
        };
        assert_eq!(server.state(), State::WresCind);
        server.put(&Request::Discon { seq: seq + 1000 }, None);
        server.expect_error(T_DISCON_REQ, TBADSEQ);
        server.put(
            &Request::ConnRes {
                acceptor: 12345,
                opts: &[],
                seq,
            },
            None,
        );
        server.expect_error(T_CONN_RES, TBADF);
        server.put(&Request::Discon { seq }, None);
        server.expect_ok(T_DISCON_REQ);
        let mut next = client.get();
        if matches!(indication(&next.0), Indication::ConnCon { .. }) {
            next = client.get();
        }
        assert!(
            matches!(indication(&next.0), Indication::DisconInd { .. }),
            "{device}"
        );
    }
}

#[test]
fn expedited_data_is_marked() {
    for device in ["ticots", "ticotsord"] {
        let (client, server) = connected(device);
        client.put(&Request::Exdata { more: false }, Some(b"!"));
        let (ind, data) = server.get();
        assert_eq!(
            (indication(&ind), data),
            (Indication::ExdataInd { more: false }, b"!".to_vec())
        );
    }
}

#[test]
fn datagrams_have_the_senders_address() {
    for device in ["ticlts", "udp", "udp2"] {
        let (a, b) = (Tpi::open(device), Tpi::open(device));
        let (from, to) = (a.bind_local(device), b.bind_local(device));
        for text in [&b"one"[..], b"two", b""] {
            a.put(
                &Request::Unitdata {
                    dest: &to,
                    opts: &[],
                },
                Some(text),
            );
            let (ind, data) = b.get();
            let Indication::UnitdataInd { src, .. } = indication(&ind) else {
                panic!("{device}")
            };
            assert_eq!((src, &data[..]), (&from[..], text), "{device}");
        }
    }
}

#[test]
fn requests_out_of_state_are_refused_and_change_nothing() {
    let s = Tpi::open("ticots");
    for (request, prim) in [
        (Request::Unbind, T_UNBIND_REQ),
        (Request::Discon { seq: -1 }, T_DISCON_REQ),
        (
            Request::Conn {
                dest: b"x",
                opts: &[],
            },
            T_CONN_REQ,
        ),
        (
            Request::ConnRes {
                acceptor: 0,
                opts: &[],
                seq: 1,
            },
            T_CONN_RES,
        ),
    ] {
        s.put(&request, None);
        let (ack, _) = s.get_high();
        assert!(
            matches!(indication(&ack), Indication::ErrorAck { prim: p, tli: TOUTSTATE | TBADF, .. } if p == prim),
            "{:?}",
            indication(&ack)
        );
        assert_eq!(s.state(), State::Unbnd);
    }
    s.bind(0);
    s.put(&Request::Bind { addr: &[], qlen: 0 }, None);
    s.expect_error(T_BIND_REQ, TOUTSTATE);
    s.put(&Request::Unbind, None);
    s.expect_ok(T_UNBIND_REQ);
    assert_eq!(s.state(), State::Unbnd);
}

#[test]
fn malformed_primitives_are_answered() {
    let s = Tpi::open("ticotsord");
    s.raw(&T_BIND_REQ.to_ne_bytes(), None, false);
    s.expect_error(T_BIND_REQ, TPROTO);
    let beyond = [T_BIND_REQ, 100, 16, 0].map(i32::to_ne_bytes).concat();
    s.raw(&beyond, None, false);
    s.expect_error(T_BIND_REQ, TPROTO);
    s.raw(&4711i32.to_ne_bytes(), None, false);
    s.expect_error(4711, TNOTSUPPORT);
    s.raw(b"x", None, false);
    assert_eq!(s.put_error(&Request::Info), libc::EPROTO);
}

#[test]
fn timod_answers_ioctls() {
    let s = Tpi::open("ticotsord");
    assert_eq!(s.ioctl(TI_GETINFO, &[]), Err(libc::EINVAL));
    s.push("timod").unwrap();
    assert_eq!(s.ioctl(TI_GETINFO, &[]), Err(libc::EINVAL));
    let ack = s.ioctl(TI_GETINFO, &Request::Info.encode()).unwrap().1;
    assert!(matches!(indication(&ack), Indication::InfoAck { info } if info.serv == T_COTS_ORD));
    let (result, ack) = s
        .ioctl(TI_BIND, &Request::Bind { addr: &[], qlen: 3 }.encode())
        .unwrap();
    let Indication::BindAck { addr, qlen: 3 } = indication(&ack) else {
        panic!("{:?}", indication(&ack))
    };
    assert_eq!(result, 0);
    let names = s.ioctl(TI_GETADDRS, &Request::Addr.encode()).unwrap().1;
    assert!(
        matches!(indication(&names), Indication::AddrAck { local, remote: &[] } if local == addr)
    );
    let sync = s.ioctl(TI_SYNC, &7u32.to_ne_bytes()).unwrap().1;
    assert_eq!((sync.len(), &sync[44..48]), (52, &3u32.to_ne_bytes()[..]));
    let again = s.ioctl(TI_BIND, &Request::Bind { addr: &[], qlen: 0 }.encode());
    assert_eq!(again.unwrap().0 & 0xff, TOUTSTATE);
    assert_eq!(s.ioctl(TI_BIND, b"abc"), Err(libc::EINVAL));
    assert_eq!(s.ioctl(TI_UNBIND, &Request::Unbind.encode()).unwrap().0, 0);
    // Nothing of all that is seen.
    assert_eq!(s.try_get(), None);
}

#[test]
fn with_tirdwr_a_connection_is_read_and_written() {
    for device in ["ticotsord", "tcp"] {
        let (client, server) = connected(device);
        server.put(&Request::Data { more: false }, Some(b"early"));
        client.wait();
        client.push("tirdwr").unwrap();
        let mut buf = [0; 100];
        assert_eq!(client.head.read(&mut buf), Ok(5));
        client.head.write(b"written").unwrap();
        assert_eq!(server.data(7), b"written");
        server.put(&Request::Data { more: false }, Some(b"answer"));
        assert_eq!(client.head.read(&mut buf), Ok(6));
        assert_eq!(&buf[..6], b"answer");
        server.put(&Request::Ordrel, None);
        assert_eq!(client.head.read(&mut buf), Ok(0), "{device}");
        client.head.write(b"still").unwrap();
        assert_eq!(server.data(5), b"still");
        // On close the release is answered.
        drop(client);
        assert!(
            matches!(indication(&server.get().0), Indication::OrdrelInd),
            "{device}"
        );
    }
}

#[test]
fn tirdwr_wants_a_connection_and_nothing_but_data() {
    let s = Tpi::open("ticotsord");
    assert_eq!(s.push("tirdwr"), Err(libc::EPROTO));
    let (client, server) = connected("ticotsord");
    client.push("tirdwr").unwrap();
    server.put(&Request::Exdata { more: false }, Some(b"!"));
    let mut buf = [0; 10];
    assert_eq!(client.head.read(&mut buf), Err(libc::EPROTO));
}

#[test]
fn a_peer_that_closes_is_told_after_its_data() {
    for device in CONNECTIONS {
        let (client, server) = connected(device);
        client.put(&Request::Data { more: false }, Some(b"bye"));
        drop(client);
        assert_eq!(server.data(3), b"bye");
        let (ind, _) = server.get();
        let end = indication(&ind);
        assert!(
            matches!(end, Indication::DisconInd { .. } | Indication::OrdrelInd),
            "{device}: {end:?}"
        );
    }
}

#[test]
fn nothing_waits_for_a_peer_that_has_gone() {
    for device in CONNECTIONS {
        let (client, server) = connected(device);
        let data = Request::Data { more: false }.encode();
        let full = |s: &Tpi| {
            s.head
                .put_message(Some(&data), Some(&[1; 8000]), Priority::Band(0), Some(1))
                .is_err()
        };
        client.put(&Request::Data { more: false }, Some(b"unread"));
        server.wait();
        assert!((0..10_000).any(|_| full(&client)));
        drop(server);
        let begun = Instant::now();
        drop(client);
        assert!(begun.elapsed() < Duration::from_secs(10), "{device}");
    }
}

#[test]
fn an_endpoint_of_t_open_becomes_a_stream() {
    use headwater_endpoints::device::Device;
    stream::start();
    let fd = headwater_endpoints::endpoint::open(Device::Ticots, libc::O_RDWR).unwrap();
    let e = headwater_endpoints::endpoint::at(fd).unwrap();
    let (address, _) = e.bind(Some(b"converted"), 1).unwrap();
    // SAFETY: a descriptor of ours; without the library dup(2) is the kernel's.
    let copy = unsafe { libc::dup(fd) };
    e.duplicated(copy);
    headwater_endpoints::stream::convert(fd).unwrap();
    let (one, two) = (Tpi::at(fd), Tpi::at(copy));
    assert_eq!(one.head.handle(), two.head.handle());
    assert_eq!(one.state(), State::Idle);
    let client = Tpi::open("ticots");
    client.bind(0);
    client.put(
        &Request::Conn {
            dest: &address,
            opts: &[],
        },
        None,
    );
    client.expect_ok(T_CONN_REQ);
    assert!(matches!(
        indication(&two.get().0),
        Indication::ConnInd { .. }
    ));
}
