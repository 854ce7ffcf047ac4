//! SCTP packets in a live association: the right ports, tag and checksum, and any chunks.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use headwater_sctp::Time;
use headwater_sctp::checksum::crc32c_of_packet;
use headwater_sctp::config::{AssocConfig, Config};
use headwater_sctp::cookie::RotatingKeys;
use headwater_sctp::endpoint::{Arrived, AssocId, Endpoint, Peer};
use headwater_sctp::send::Outgoing;

const ADDRESSES: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)),
];
/// More transmissions than any call can cause.
const CIRCLE: usize = 5000;

/// The first byte chooses options and where TSNs begin; then come packets, each behind its length.
pub fn association(bytes: &[u8]) {
    let Some((first, mut rest)) = bytes.split_first() else {
        return;
    };
    let config = AssocConfig {
        interleave: first & 1 != 0,
        initial_tsn: Some(u32::MAX - u32::from(first >> 3)),
        receive_window: if first & 2 != 0 { 4000 } else { 1 << 20 },
        ..AssocConfig::default()
    };
    let mut ends = [0, 1].map(|side| endpoint(side, &config));
    let mut now = Time(1_000_000_000);
    ends[1].listen(1);
    let peer = Peer {
        addresses: &ADDRESSES[1..],
        port: 5001,
        encap: None,
    };
    ends[0].connect(now, &peer, &config).expect("a peer");
    let mut header = Vec::new();
    for _ in 0..4 {
        for side in [0, 1] {
            for packet in packets(&mut ends[side], now) {
                if side == 0 {
                    header = packet[..12].to_vec();
                }
                arrive(&mut ends[1 - side], 1 - side, now, &packet);
            }
        }
    }
    let accepted = ends[1].accept().expect("an association");
    while let Some((len, after)) = rest.split_first() {
        let (chunks, left) = after.split_at(usize::from(*len).min(after.len()));
        rest = left;
        let mut packet = header.clone();
        packet.extend_from_slice(chunks);
        packet.resize(packet.len().next_multiple_of(4), 0);
        packet[8..12].fill(0);
        let sum = crc32c_of_packet(&packet);
        packet[8..12].copy_from_slice(&sum.to_le_bytes());
        arrive(&mut ends[1], 1, now, &packet);
        step(&mut ends[1], accepted, now, len % 2 == 0);
        now = now + Duration::from_millis(50);
        if ends[1].timeout().is_some_and(|at| at <= now) {
            ends[1].on_timeout(now);
        }
    }
    for _ in 0..200 {
        let Some(at) = ends[1].timeout() else { return };
        now = at.max(now);
        ends[1].on_timeout(now);
        step(&mut ends[1], accepted, now, false);
    }
}

fn endpoint(side: usize, config: &AssocConfig) -> Endpoint {
    let config = Config {
        association: config.clone(),
        ..Config::new(Box::new(RotatingKeys::new([7; 32])))
    };
    let addresses = vec![ADDRESSES[side]];
    Endpoint::new(config, 5000 + side as u16, addresses, [side as u8; 32])
}

fn arrive(end: &mut Endpoint, side: usize, now: Time, packet: &[u8]) {
    let arrived = Arrived {
        from: ADDRESSES[1 - side],
        to: ADDRESSES[side],
        encap: None,
        packet,
    };
    end.handle(now, &arrived);
}

/// What a user does meanwhile.
fn step(end: &mut Endpoint, id: AssocId, now: Time, sends: bool) {
    if sends {
        let _ = end.send(now, id, &Outgoing::default(), &[5; 700], false);
    } else {
        while end.receive(id, &mut [0; 500]).is_some() {}
    }
    packets(end, now);
    while end.event().is_some() {}
}

fn packets(end: &mut Endpoint, now: Time) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut out = Vec::new();
    while let Some(transmit) = end.transmit(now, &mut out, 16) {
        all.extend(out.chunks(transmit.segment).map(<[u8]>::to_vec));
        assert!(all.len() < CIRCLE, "an endpoint never stops sending");
        out.clear();
    }
    all
}
