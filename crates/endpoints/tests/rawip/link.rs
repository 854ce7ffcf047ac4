//! The raw link of SCTP: whose packets come where.

use std::net::IpAddr;

use headwater_sctp_stack::link::raw::{Raw, Unusable, is_usable};
use headwater_sctp_stack::link::{Link, Run, Transmit, Unreachable};

use crate::network::{drop_privileges, inside};
use crate::until;

/// An SCTP packet with one chunk of this type: common header, chunk header.
fn packet(source: u16, destination: u16, chunk: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(source.to_be_bytes());
    bytes.extend(destination.to_be_bytes());
    bytes.extend([0; 8]);
    bytes.extend([chunk, 0, 0, 4]);
    bytes
}

/// Packets of this size.
fn packets(segment: usize, to: IpAddr) -> Transmit {
    Transmit {
        from: None,
        to,
        encap: None,
        segment,
        len: segment,
        fragment: false,
    }
}

/// The destination ports of the next packets.
fn ports(link: &Raw, count: usize) -> Vec<u16> {
    let mut ports = Vec::new();
    until("packets", || {
        let _ = link.receive(&mut |p| ports.push(u16::from_be_bytes([p.packet[2], p.packet[3]])));
        (ports.len() >= count).then_some(())
    });
    ports
}

fn is_quiet(link: &Raw) -> bool {
    link.receive(&mut |_| {}) == Err(libc::EAGAIN)
}

#[test]
fn a_process_sees_packets_for_its_own_ports_and_one_sees_strangers() {
    inside(
        "link::a_process_sees_packets_for_its_own_ports_and_one_sees_strangers",
        || {
            for home in ["127.0.0.1", "::1"] {
                let home: IpAddr = home.parse().unwrap();
                let (first, second) = (Raw::open().unwrap(), Raw::open().unwrap());
                first.open_port(5000).unwrap();
                second.open_port(6000).unwrap();
                second.open_port(49_200).unwrap();
                assert!(first.answers_strangers() && !second.answers_strangers());
                let (to_second, stranger, sack) =
                    (packet(1, 6000, 1), packet(1, 7000, 1), packet(1, 7001, 3));
                let both = [packet(1, 5000, 1), packet(1, 49_200, 0)].concat();
                let how = &packets(16, home);
                let runs = [&to_second, &stranger, &sack].map(|bytes| Run { bytes, how });
                assert_eq!(first.send(&runs), 3);
                assert_eq!(first.send(&[Run { bytes: &both, how }]), 1);
                assert_eq!(ports(&second, 2), [6000, 49_200]);
                // The holder sees all of them but the lone acknowledgement.
                assert_eq!(ports(&first, 4), [6000, 7000, 5000, 49_200]);
                assert!(is_quiet(&first) && is_quiet(&second));
                second.close_port(6000);
                first.send(&runs[..1]);
                assert_eq!(ports(&first, 1), [6000]);
                assert!(is_quiet(&second));
                drop(first);
                second.on_deadline(0);
                assert!(second.answers_strangers(), "it takes over");
            }
        },
    );
}

#[test]
fn too_long_packets_are_reported_with_the_limit() {
    inside("link::too_long_packets_are_reported_with_the_limit", || {
        let link = Raw::open().unwrap();
        link.open_port(5000).unwrap();
        let home: IpAddr = "127.0.0.1".parse().unwrap();
        assert_eq!(link.largest(home), 65_512);
        let mut long = packet(5000, 1, 0);
        long.resize(65_520, 0);
        let (bytes, how) = (&long, &packets(long.len(), home));
        let sent = link.send(&[Run { bytes, how }]);
        assert_eq!(sent, 1, "it will never be taken");
        let mut said = Vec::new();
        let told = until("trouble", || {
            link.troubles(&mut |r| said.push((r.to, r.what)));
            said.pop()
        });
        assert_eq!(
            told,
            (home, Unreachable::TooBig(65_536 - 20)),
            "IP's header is not SCTP's"
        );
    });
}

#[test]
fn without_privilege_there_is_none() {
    inside("link::without_privilege_there_is_none", || {
        assert!(is_usable());
        drop_privileges();
        assert!(!is_usable());
        assert_eq!(Raw::open().err(), Some(Unusable::Privilege));
    });
}
