//! The receiver by itself: chunks go in, messages come out.

mod cost;
mod delivery;
mod random;
mod violations;
mod window;

use super::*;
use crate::wire::{Chunk, DataHead, Packet, Skipped};

const FIRST: Tsn = Tsn(u32::MAX - 2);

impl Default for ReceiveConfig {
    fn default() -> ReceiveConfig {
        ReceiveConfig {
            window: 1 << 20,
            partial_delivery_point: 1 << 17,
            interleave: false,
            sack_every: 2,
            interleaved_delivery: false,
        }
    }
}

fn receiver(interleave: bool) -> Receiver {
    with(|config| config.interleave = interleave)
}

fn with(change: impl FnOnce(&mut ReceiveConfig)) -> Receiver {
    let mut config = ReceiveConfig {
        window: 1 << 16,
        ..ReceiveConfig::default()
    };
    change(&mut config);
    Receiver::new(config, FIRST, 4)
}

/// A chunk of DATA: `nth` counts TSNs; `parts` is "B", "E", "BE" or "".
fn data<'a>(nth: u32, stream: u16, ssn: u16, parts: &str, payload: &'a [u8]) -> Data<'a> {
    let head = DataHead {
        tsn: FIRST.plus(nth),
        stream,
        ssn: Ssn(ssn),
        ppid: 7,
        begin: parts.contains('B'),
        end: parts.contains('E'),
        unordered: parts.contains('U'),
        ..DataHead::default()
    };
    Data { head, payload }
}

fn idata<'a>(
    nth: u32,
    stream: u16,
    mid: u32,
    fsn: u32,
    parts: &str,
    payload: &'a [u8],
) -> Data<'a> {
    let mut data = data(nth, stream, 0, parts, payload);
    data.head.mid = Mid(mid);
    data.head.fsn = fsn;
    data.head.interleaved = true;
    data
}

fn take(receiver: &mut Receiver, chunk: &Data) -> Placed {
    let placed = receiver.on_data(chunk).expect("a right chunk");
    receiver.check();
    placed
}

fn all(receiver: &mut Receiver) -> Vec<(Received, Vec<u8>)> {
    let mut buffer = vec![0; 1 << 17];
    let mut list = Vec::new();
    while let Some(received) = receiver.read(&mut buffer) {
        receiver.check();
        list.push((received, buffer[..received.len].to_vec()));
    }
    list
}

fn texts(receiver: &mut Receiver) -> Vec<String> {
    all(receiver)
        .into_iter()
        .map(|(_, data)| String::from_utf8(data).expect("text"))
        .collect()
}

fn sack(receiver: &mut Receiver) -> (Tsn, u32, Vec<(u16, u16)>, usize) {
    let mut out = Vec::new();
    let mut packet = PacketBuilder::begin(&mut out, 1, 2, 3, 1452);
    assert!(receiver.write_sack(&mut packet));
    packet.finish(None, true);
    let packet = Packet::parse(&out).expect("a packet");
    match packet.chunks().next() {
        Some(Ok(Chunk::Sack(sack))) => (
            sack.cumulative,
            sack.window,
            sack.gaps().collect(),
            sack.duplicates().count(),
        ),
        other => panic!("{other:?}"),
    }
}

fn violation(receiver: &mut Receiver, chunk: &Data) -> bool {
    matches!(receiver.on_data(chunk), Err(DataError::Violation(_)))
}

fn forward(receiver: &mut Receiver, to: u32, skipped: &[Skipped]) {
    receiver.skip(FIRST.plus(to), skipped.iter().copied());
    receiver.check();
}

fn skipped(stream: u16, number: u32, unordered: bool) -> Skipped {
    Skipped {
        stream,
        unordered,
        ssn: Ssn(number as u16),
        mid: Mid(number),
    }
}

#[test]
fn an_idle_receiver_is_small() {
    assert!(size_of::<Receiver>() < 560, "{}", size_of::<Receiver>());
    let mut receiver = receiver(false);
    for nth in 0..1000 {
        take(
            &mut receiver,
            &data(2 * nth + 1, 0, nth as u16, "BEU", b"x"),
        );
        take(&mut receiver, &data(2 * nth, 0, nth as u16, "BE", b"x"));
    }
    all(&mut receiver);
    assert_eq!(receiver.ready.capacity(), 0);
}
