//! The sender by itself, and against a tiny receiver over a network that loses.

mod acks;
mod cost;
mod packing;
mod partial;
mod paths;
mod random;
mod rates;
mod world;

use core::time::Duration;

use super::*;
use crate::recv::{Placed, ReceiveConfig, Receiver};
use crate::timer::Timer;
use world::{A, B, Desk, MTU, World, config, ms, on_stream};

const WIDE: u32 = 1 << 20;

fn sizes(chunks: &[world::Seen]) -> Vec<usize> {
    chunks.iter().map(|seen| seen.payload.len()).collect()
}

fn tsns(chunks: &[world::Seen]) -> Vec<u32> {
    chunks.iter().map(|seen| seen.head.tsn.0).collect()
}

#[test]
fn refuses_what_it_can_not_take() {
    let mut settings = config();
    settings.buffer = 1000;
    let mut desk = Desk::new(settings, 1);
    let mut send = |stream, len| {
        desk.sender
            .enqueue(Time(0), &on_stream(stream), &vec![0; len], false)
    };
    assert_eq!(send(8, 10), Err(SendError::BadStream));
    assert_eq!(send(0, 0), Err(SendError::TooBig));
    assert_eq!(send(0, 1001), Err(SendError::TooBig));
    assert_eq!(send(7, 999), Ok(()));
    assert_eq!(send(7, 2), Err(SendError::NoRoom));
    desk.sender.close();
    assert_eq!(
        desk.sender.enqueue(Time(0), &on_stream(0), &[1], false),
        Err(SendError::Closed)
    );
}

#[test]
fn a_stream_is_held_reset_and_goes_on_with_zero() {
    let mut desk = Desk::new(config(), 1);
    desk.send(1, 100);
    desk.send(1, 100);
    desk.sender.hold_streams(&[1]);
    desk.send(1, 100);
    desk.send(2, 100);
    assert_eq!(
        desk.flush().concat().len(),
        3,
        "what came before it was held, and other streams"
    );
    assert!(!desk.sender.stream_is_idle(1));
    desk.sack(3, WIDE, &[]).unwrap();
    assert!(desk.sender.stream_is_idle(1) && !desk.sender.is_idle());
    desk.sender.reset_streams(&[1]);
    let heads: Vec<_> = desk
        .flush()
        .concat()
        .iter()
        .map(|s| (s.head.stream, s.head.ssn.0))
        .collect();
    assert_eq!(heads, [(1, 0)]);
    assert_eq!(
        desk.sender.enqueue(desk.now, &on_stream(8), &[1], false),
        Err(SendError::BadStream)
    );
    desk.sender.add_streams(1);
    desk.send(8, 10);
    assert_eq!(desk.sender.streams(), 9);
    desk.flush();
    desk.sack(5, WIDE, &[]).unwrap();
    desk.sender.reset_tsn(Tsn(77));
    desk.send(0, 10);
    assert_eq!(tsns(&desk.packet()), [77]);
}

#[test]
fn everything_fails_when_the_association_is_over() {
    let mut desk = Desk::new(config(), 1);
    let message = Outgoing {
        context: 5,
        ..on_stream(0)
    };
    desk.sender
        .enqueue(desk.now, &message, &[1; 10], false)
        .unwrap();
    desk.flush();
    desk.sender
        .enqueue(desk.now, &message, &[2; 3000], false)
        .unwrap();
    desk.send(3, 4);
    desk.sender.fail_all();
    let mut failed: Vec<_> = core::iter::from_fn(|| desk.sender.failed()).collect();
    failed.sort_by_key(|f| f.data.len());
    let failed: Vec<_> = failed
        .iter()
        .map(|f| (f.data.len(), f.sent, f.message.context))
        .collect();
    assert_eq!(failed, [(4, false, 0), (10, true, 5), (3000, false, 5)]);
    assert!(desk.sender.is_idle());
    assert_eq!(desk.sender.buffered(), 0);
}

#[test]
fn messages_for_streams_that_the_peer_does_not_have_fail() {
    let mut desk = Desk::new(config(), 1);
    desk.send(1, 10);
    desk.send(5, 10);
    desk.sender.open(1000, 3, true, false);
    assert_eq!(desk.sender.failed().unwrap().message.stream, 5);
    assert!(
        desk.flush()
            .concat()
            .iter()
            .all(|s| s.head.interleaved && s.head.stream == 1)
    );
    assert_eq!(desk.sender.streams(), 3);
}
