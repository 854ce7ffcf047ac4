//! Packets out of the blue: those that belong to no association (RFC 9260 8.4).

use super::{Arrived, Endpoint, MOST_LOOSE, Transmit};
use crate::wire::{Cause, Checksum, Chunk, Packet, PacketBuilder};

/// Longest packet of an answer: the chunks are short.
const LIMIT: usize = 512;

/// The answer of a host where nobody has the port, appended to `out`; `None` where the RFC wants silence.
pub fn out_of_the_blue(arrived: &Arrived<'_>, out: &mut Vec<u8>) -> Option<Transmit> {
    let packet = Packet::parse(arrived.packet).ok()?;
    if packet.checksum() != Checksum::Right || !super::is_host(arrived.from) {
        return None;
    }
    let len = answer(&packet, out)?;
    Some(back(arrived, len))
}

fn back(arrived: &Arrived<'_>, len: usize) -> Transmit {
    Transmit::one(Some(arrived.to), arrived.from, arrived.encap, len)
}

/// Appends the answer to `out`, and gives its length.
pub(super) fn answer(packet: &Packet<'_>, out: &mut Vec<u8>) -> Option<usize> {
    let header = packet.header;
    let mut first = true;
    let mut shutdown_ack = false;
    for chunk in packet.chunks() {
        match chunk {
            // 8.4, 1) to 4): these are never answered.
            Err(_)
            | Ok(Chunk::Abort { .. } | Chunk::ShutdownComplete { .. } | Chunk::CookieAck) => {
                return None;
            }
            Ok(Chunk::Init(init)) if first => {
                if header.tag != 0 || init.tag == 0 {
                    return None;
                }
                let mut packet =
                    PacketBuilder::begin(out, header.destination, header.source, init.tag, LIMIT);
                packet.abort(false, |_| {});
                return Some(packet.finish(None, true));
            }
            Ok(Chunk::Error(causes)) => {
                if causes
                    .flatten()
                    .any(|cause| matches!(cause, Cause::StaleCookie(_)))
                {
                    return None;
                }
            }
            Ok(Chunk::ShutdownAck) if first => shutdown_ack = true,
            Ok(_) => {}
        }
        first = false;
    }
    if first {
        return None;
    }
    let mut packet =
        PacketBuilder::begin(out, header.destination, header.source, header.tag, LIMIT);
    match shutdown_ack {
        true => packet.shutdown_complete(true),
        false => packet.abort(true, |_| {}),
    }
    Some(packet.finish(None, true))
}

impl Endpoint {
    /// Answers a packet that belongs to no association.
    pub(super) fn answer(&mut self, packet: &Packet<'_>, arrived: &Arrived<'_>) {
        let mut bytes = Vec::new();
        if answer(packet, &mut bytes).is_some() {
            self.send_loose(arrived, bytes);
        }
    }

    /// Sends a packet back to where another came from.
    pub(super) fn send_loose(&mut self, arrived: &Arrived<'_>, packet: Vec<u8>) {
        if self.loose.len() < MOST_LOOSE {
            self.loose.push_back((back(arrived, packet.len()), packet));
        }
    }
}
