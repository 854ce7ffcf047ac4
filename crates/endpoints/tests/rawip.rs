//! /dev/rawip and the raw sockets below it, in network namespaces of their own.

#[path = "rawip/link.rs"]
mod link;
#[path = "rawip/network.rs"]
mod network;
#[path = "common/sockets.rs"]
mod sockets;
#[path = "common/waiting.rs"]
mod waiting;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use headwater_endpoints::device::Device;
use headwater_ipnet::checksum::Sum;
use headwater_ipnet::{Inbox, Packet, Program, RawSocket, errors, icmp};
use headwater_providers::provider::{Arrived, Event, Provider};
use headwater_providers::rawip::Rawip;
use headwater_tpi::error::*;
use headwater_tpi::option::{INET_IP, List, T_CURRENT, T_IP_TOS, T_IP_TTL, T_NEGOTIATE, T_SUCCESS};
use network::{drop_privileges, inside, set_ping_groups};
use sockets::{bytes, datagram, io};
use waiting::until;

/// For experiments (RFC 3692).
const TRIAL: u16 = 253;
const ICMP: u16 = 1;
const ICMPV6: u16 = 58;

/// struct sockaddr_in or sockaddr_in6.
fn address(host: &str, protocol: u16) -> Vec<u8> {
    bytes(SocketAddr::new(host.parse().unwrap(), protocol))
}

fn bound(host: &str, protocol: u16) -> Rawip {
    let mut end = Rawip::open(host.contains(':')).unwrap();
    let (got, _) = end.bind(Some(&address(host, protocol)), 0).unwrap();
    assert_eq!(got, address(host, protocol));
    end
}

fn send(end: &mut Rawip, to: Vec<u8>, data: &[u8]) {
    assert_eq!(end.send_to(&to, &[], &io(data)), Ok(()));
}

/// The next datagram: its sender, and its data.
fn receive(end: &mut Rawip) -> (Vec<u8>, Vec<u8>) {
    let mut from = [0; 28];
    let data = vec![0; 70_000];
    let (addr_len, data_len) = until("datagram", || {
        let parts = io(&data);
        let mut into = datagram(&mut from, &parts);
        match end.receive_from(&mut into) {
            Ok(()) => {
                assert!(!into.more);
                Some((into.addr_len, into.data_len))
            }
            Err(r) => {
                assert_eq!(r.tli, TNODATA);
                None
            }
        }
    });
    (from[..addr_len].to_vec(), data[..data_len].to_vec())
}

/// An echo request.
fn echo(v6: bool, id: u16, text: &[u8]) -> Vec<u8> {
    let kind = if v6 { icmp::ECHO_V6 } else { icmp::ECHO };
    let mut message = vec![kind, 0, 0, 0];
    message.extend(id.to_be_bytes());
    message.extend(1u16.to_be_bytes());
    message.extend(text);
    let sum = Sum::default().with(&message).finish();
    message[2..4].copy_from_slice(&sum);
    message
}

/// The first message that is an echo reply.
fn reply(end: &mut Rawip, v6: bool) -> Vec<u8> {
    let (kind, header) = if v6 {
        (icmp::ECHO_REPLY_V6, 0)
    } else {
        (icmp::ECHO_REPLY, 20)
    };
    loop {
        let (_, data) = receive(end);
        if data[header] == kind {
            return data;
        }
    }
}

fn no_event(end: &mut Rawip) {
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(end.peek(), None);
}

#[test]
fn the_port_of_an_address_is_the_protocol() {
    inside("the_port_of_an_address_is_the_protocol", || {
        let (mut a, mut b) = (bound("127.0.0.1", TRIAL), bound("127.0.0.2", TRIAL));
        send(&mut a, address("127.0.0.2", TRIAL), b"hello");
        let (from, data) = receive(&mut b);
        assert_eq!(from, address("127.0.0.1", TRIAL));
        assert_eq!(
            (data[0], data[9], &data[20..]),
            (0x45, TRIAL as u8, &b"hello"[..])
        );
        // The answer goes where it came from; 0 is the own protocol.
        send(&mut b, from, b"answer");
        send(&mut b, address("127.0.0.1", 0), b"");
        assert_eq!(&receive(&mut a).1[20..], b"answer");
        assert_eq!(receive(&mut a).1.len(), 20);
        for wrong in [
            address("127.0.0.2", ICMP),
            address("::1", TRIAL),
            vec![1, 2],
        ] {
            let refused = a.send_to(&wrong, &[], &io(b"x"));
            assert_eq!(refused.unwrap_err().tli, TBADADDR);
        }
    });
}

#[test]
fn protocols_that_do_not_exist_are_bad_addresses() {
    inside("protocols_that_do_not_exist_are_bad_addresses", || {
        let mut end = Rawip::open(false).unwrap();
        assert_eq!(
            end.bind(Some(&address("0.0.0.0", 256)), 0).unwrap_err().tli,
            TBADADDR
        );
        assert_eq!(
            end.bind(Some(&address("192.0.2.1", TRIAL)), 0)
                .unwrap_err()
                .tli,
            TNOADDR
        );
        assert_eq!(end.local(), None);
        let (got, _) = end.bind(None, 0).unwrap();
        assert_eq!(got, address("0.0.0.0", ICMP), "without an address: ICMP");
        end.unbind().unwrap();
        assert_eq!((end.local(), end.peek()), (None, None));
        let (got, _) = end.bind(Some(&address("::", 0)), 0).unwrap();
        assert_eq!(got, address("::", ICMPV6), "the address says which IP");
    });
}

#[test]
fn datagrams_of_ipv6_come_without_headers_and_in_parts() {
    inside(
        "datagrams_of_ipv6_come_without_headers_and_in_parts",
        || {
            let mut end = bound("::1", TRIAL);
            send(&mut end, address("::1", TRIAL), b"in two parts");
            until("data", || end.peek());
            let mut from = [0; 28];
            let room = [0; 7];
            let parts = io(&room);
            let mut into = datagram(&mut from, &parts);
            end.receive_from(&mut into).unwrap();
            assert!(into.more && &room == b"in two ");
            assert_eq!(from, address("::1", TRIAL)[..]);
            let (nobody, rest) = receive(&mut end);
            assert_eq!((&nobody[..], &rest[..]), (&[][..], &b"parts"[..]));
        },
    );
}

#[test]
fn what_is_not_delivered_is_reported_to_its_sender() {
    inside("what_is_not_delivered_is_reported_to_its_sender", || {
        for (from, other, nowhere) in [
            ("127.0.0.2", "127.0.0.3", "127.0.0.4"),
            ("::1", "::1", "::2"),
        ] {
            let v6 = from.contains(':');
            let mut sender = bound(from, TRIAL);
            let mut bystander = bound(other, TRIAL);
            if v6 {
                // Nobody is there.
                let _ = sender.send_to(&address(nowhere, TRIAL), &[], &io(b"lost data"));
            } else {
                // Nobody has the protocol at this address. (The kernel reports nothing of less than eight bytes.)
                send(&mut sender, address(nowhere, TRIAL), b"lost data");
            }

            let event = until("report", || sender.peek());
            assert_eq!(event, Event::UdErr);
            let mut into = datagram(&mut [], &[]);
            assert_eq!(sender.receive_from(&mut into).unwrap_err().tli, TLOOK);
            let Some(Arrived::Undelivered { to, error, .. }) = sender.take() else {
                panic!("no report");
            };
            assert_eq!(to, address(nowhere, TRIAL));
            assert_eq!(
                error,
                if v6 {
                    libc::ENETUNREACH
                } else {
                    libc::ENOPROTOOPT
                }
            );
            no_event(&mut bystander);
            no_event(&mut sender);
        }
    });
}

#[test]
fn an_echo_request_is_answered() {
    inside("an_echo_request_is_answered", || {
        for (host, protocol) in [("127.0.0.1", ICMP), ("::1", ICMPV6)] {
            let v6 = protocol == ICMPV6;
            let mut end = bound(host, protocol);
            send(
                &mut end,
                address(host, protocol),
                &echo(v6, 0x4711, b"are you there?"),
            );
            let data = reply(&mut end, v6);
            assert!(data.ends_with(b"are you there?"));
        }
    });
}

#[test]
fn echo_needs_no_privilege_where_the_group_may_ping() {
    inside("echo_needs_no_privilege_where_the_group_may_ping", || {
        set_ping_groups("0 0");
        drop_privileges();
        for (host, protocol) in [("127.0.0.1", ICMP), ("::1", ICMPV6)] {
            let v6 = protocol == ICMPV6;
            let mut end = bound(host, protocol);
            send(
                &mut end,
                address(host, protocol),
                &echo(v6, 0x4711, b"odd text!"),
            );
            let data = reply(&mut end, v6);
            let message = if v6 { &data[..] } else { &data[20..] };
            assert_eq!(
                message[4..],
                echo(v6, 0x4711, b"odd text!")[4..],
                "the user's identifier"
            );
            if !v6 {
                assert_eq!(
                    (data[0], data[9], &data[12..20]),
                    (0x45, 1, &[127, 0, 0, 1, 127, 0, 0, 1][..])
                );
                assert_eq!(usize::from(data[2]) << 8 | usize::from(data[3]), data.len());
                assert!(Sum::default().with(&data[..20]).is_right(), "of the header");
                assert!(Sum::default().with(message).is_right(), "of the message");
            } else {
                let home: IpAddr = host.parse().unwrap();
                assert!(
                    Sum::pseudo(home, home, 58, message.len())
                        .with(message)
                        .is_right()
                );
            }
            // A reply of its own making, and less than a message.
            let mut forged = echo(v6, 1, b"");
            forged[0] = if v6 {
                icmp::ECHO_REPLY_V6
            } else {
                icmp::ECHO_REPLY
            };
            let mut send = |data: &[u8]| {
                end.send_to(&address(host, 0), &[], &io(data))
                    .unwrap_err()
                    .tli
            };
            assert_eq!((send(&forged), send(&[8, 0, 0])), (TACCES, TBADDATA));
        }
        let mut end = Rawip::open(false).unwrap();
        let refused = end.bind(Some(&address("127.0.0.1", TRIAL)), 0);
        assert_eq!(refused.unwrap_err().tli, TACCES);
    });
}

/// A fresh network lets no group ping.
#[test]
fn without_privilege_or_group_nothing_can_be_bound() {
    inside("without_privilege_or_group_nothing_can_be_bound", || {
        drop_privileges();
        for (v6, protocol) in [(false, ICMP), (true, ICMPV6), (false, TRIAL)] {
            let mut end = Rawip::open(v6).unwrap();
            let any = address(if v6 { "::" } else { "0.0.0.0" }, protocol);
            assert_eq!(end.bind(Some(&any), 0).unwrap_err().tli, TACCES);
            assert_eq!(end.local(), None);
        }
        assert!(!RawSocket::is_permitted());
    });
}

#[test]
fn options_hold_for_a_datagram_or_for_all() {
    inside("options_hold_for_a_datagram_or_for_all", || {
        let mut end = Rawip::open(false).unwrap();
        let mut tos = List::new();
        tos.push(INET_IP, T_IP_TOS, 0, &[0x10]);
        // Before it is bound, too.
        assert_eq!(
            end.negotiate(T_NEGOTIATE as u32, tos.bytes()).unwrap().0,
            T_SUCCESS as u32
        );
        end.bind(Some(&address("127.0.0.1", TRIAL)), 0).unwrap();
        let mut ttl = List::new();
        ttl.push_number(INET_IP, T_IP_TTL, 0, 7);
        end.send_to(&address("127.0.0.1", TRIAL), ttl.bytes(), &io(b"x"))
            .unwrap();
        send(&mut end, address("127.0.0.1", TRIAL), b"y");
        let (first, second) = (receive(&mut end).1, receive(&mut end).1);
        assert_eq!((first[1], first[8]), (0x10, 7));
        assert_eq!((second[1], second[8]), (0x10, 64));
        let (_, current) = end.negotiate(T_CURRENT as u32, tos.bytes()).unwrap();
        assert!(current.contains(&0x10));
    });
}

#[test]
fn an_endpoint_goes_on_after_exec() {
    inside("an_endpoint_goes_on_after_exec", || {
        let mut end = bound("127.0.0.1", TRIAL);
        let saved = end.save().unwrap();
        let mut again = Rawip::restore(end.descriptor(), &saved).unwrap();
        drop(end);
        assert_eq!(again.local(), Some(address("127.0.0.1", TRIAL)));
        send(&mut again, address("127.0.0.1", TRIAL), b"still here");
        assert_eq!(&receive(&mut again).1[20..], b"still here");
        set_ping_groups("0 0");
        drop_privileges();
        let mut end = bound("127.0.0.1", ICMP);
        send(
            &mut end,
            address("127.0.0.1", ICMP),
            &echo(false, 0x0815, b""),
        );
        let mut again = Rawip::restore(end.descriptor(), &end.save().unwrap()).unwrap();
        drop(end);
        assert_eq!(reply(&mut again, false)[24..26], [0x08, 0x15]);
    });
}

#[test]
fn the_device_has_its_names() {
    for name in [
        "/dev/rawip",
        "/dev/raw",
        "/dev/inet/rawip",
        "/dev/streams/raw",
    ] {
        assert_eq!(Device::find(name.as_bytes()), Some(Device::Rawip));
    }
    assert_eq!(Device::find(b"/dev/rawip6"), Some(Device::Rawip6));
    assert_eq!(Device::Rawip.name(), "rawip");
}

// ---- what is below ----

/// A packet that begins with ports, as those of UDP and SCTP do.
fn to_port(port: u16, n: u8) -> Vec<u8> {
    let mut packet = vec![0x12, 0x34];
    packet.extend(port.to_be_bytes());
    packet.extend([n; 20]);
    packet
}

fn take_all(socket: &RawSocket, inbox: &mut Inbox, count: usize) -> Vec<(IpAddr, IpAddr, Vec<u8>)> {
    let mut all = Vec::new();
    until("packets", || {
        match inbox.fill(socket.fd()) {
            Ok(_) => inbox.drain(|a| all.push((a.from.ip(), a.to, a.payload().to_vec()))),
            Err(errno) => assert_eq!(errno, libc::EAGAIN),
        }
        (all.len() >= count).then_some(())
    });
    all
}

#[test]
fn many_packets_leave_and_arrive_in_few_calls_past_the_filter() {
    inside(
        "many_packets_leave_and_arrive_in_few_calls_past_the_filter",
        || {
            for (from, to) in [("127.0.0.5", "127.0.0.1"), ("::1", "::1")] {
                let (from, to): (IpAddr, IpAddr) = (from.parse().unwrap(), to.parse().unwrap());
                let sender = RawSocket::open(to.is_ipv6(), 253).unwrap();
                sender.attach(&Program::nothing()).unwrap();
                let receiver = RawSocket::open(to.is_ipv6(), 253).unwrap();
                receiver
                    .attach(&Program::to_ports(to.is_ipv6(), &[7, 5000]))
                    .unwrap();
                let data: Vec<Vec<u8>> = (0..100)
                    .map(|i| to_port(if i % 2 == 0 { 5000 } else { 5001 }, i))
                    .collect();
                let packets: Vec<Packet> = data
                    .iter()
                    .map(|data| Packet {
                        from: Some(from),
                        to,
                        data,
                    })
                    .collect();
                assert_eq!(sender.send(&packets), Ok(100));
                let mut inbox = Inbox::new(to.is_ipv6(), 32);
                let got = take_all(&receiver, &mut inbox, 50);
                let wanted: Vec<_> = data
                    .iter()
                    .step_by(2)
                    .map(|data| (from, to, data.clone()))
                    .collect();
                assert_eq!(got, wanted);
                assert_eq!(inbox.fill(receiver.fd()), Err(libc::EAGAIN));
                assert_eq!(inbox.fill(sender.fd()), Err(libc::EAGAIN));
            }
        },
    );
}

#[test]
fn the_error_queue_quotes_the_packet() {
    inside("the_error_queue_quotes_the_packet", || {
        let socket = RawSocket::open(false, 253).unwrap();
        socket.bind("127.0.0.2".parse().unwrap()).unwrap();
        let data = to_port(5000, 9);
        let to: IpAddr = "127.0.0.1".parse().unwrap();
        socket
            .send(&[Packet {
                from: None,
                to,
                data: &data,
            }])
            .unwrap();
        let mut quote = [0; 64];
        let failure = until("report", || errors::next(socket.fd(), &mut quote));
        assert_eq!((failure.to.ip(), failure.errno), (to, libc::ENOPROTOOPT));
        assert_eq!(failure.trouble, Some(icmp::Trouble::Protocol));
        assert_eq!(&quote[..failure.quoted], &data[..]);
        // Never fragmented, so what is longer than loop-back's 65536 can't leave, and the limit is told.
        socket.never_fragment();
        let long = vec![0; 65_530];
        let sent = until("error", || {
            socket
                .send(&[Packet {
                    from: None,
                    to,
                    data: &long,
                }])
                .err()
        });
        assert_eq!(sent, libc::EMSGSIZE);
    });
}
