mod cost;

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;

use super::*;
use crate::wire::{Chunk, Packet, Skipped};

const NOW: Time = Time(0);
const FIRST: Tsn = Tsn(u32::MAX - 2);

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
    Data {
        tsn: FIRST.plus(nth),
        stream,
        ssn: Ssn(ssn),
        mid: Mid(0),
        fsn: 0,
        ppid: 7,
        begin: parts.contains('B'),
        end: parts.contains('E'),
        unordered: parts.contains('U'),
        immediate: false,
        interleaved: false,
        payload,
    }
}

fn idata<'a>(
    nth: u32,
    stream: u16,
    mid: u32,
    fsn: u32,
    parts: &str,
    payload: &'a [u8],
) -> Data<'a> {
    Data {
        mid: Mid(mid),
        fsn,
        interleaved: true,
        ..data(nth, stream, 0, parts, payload)
    }
}

fn take(receiver: &mut Receiver, chunk: &Data) -> Placed {
    let placed = receiver.on_data(NOW, chunk).expect("a right chunk");
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
    matches!(receiver.on_data(NOW, chunk), Err(DataError::Violation(_)))
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
fn messages_are_delivered_in_the_order_of_their_stream() {
    let mut receiver = receiver(false);
    take(&mut receiver, &data(0, 1, 0, "BE", b"a"));
    take(&mut receiver, &data(2, 1, 2, "BE", b"c"));
    take(&mut receiver, &data(3, 2, 0, "BE", b"other stream"));
    take(&mut receiver, &data(4, 1, 9, "BEU", b"unordered"));
    assert_eq!(texts(&mut receiver), ["a", "other stream", "unordered"]);
    take(&mut receiver, &data(1, 1, 1, "BE", b"b"));
    assert_eq!(texts(&mut receiver), ["b", "c"]);
    assert_eq!(receiver.cumulative(), Tsn(1), "over the wrap");
}

#[test]
fn fragments_come_together_in_any_order_of_arrival() {
    let parts = [
        data(0, 0, 0, "B", b"ab"),
        data(1, 0, 0, "", b"cd"),
        data(2, 0, 0, "E", b"ef"),
    ];
    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        let mut receiver = receiver(false);
        for at in order {
            assert!(!receiver.readable());
            take(&mut receiver, &parts[at]);
        }
        assert_eq!(texts(&mut receiver), ["abcdef"]);
        assert_eq!(receiver.window(), 1 << 16);
    }
}

#[test]
fn a_small_buffer_gets_a_message_in_pieces_and_never_two_at_once() {
    let mut receiver = receiver(false);
    take(&mut receiver, &data(0, 0, 0, "BE", b"abc"));
    take(&mut receiver, &data(1, 0, 1, "BE", b"de"));
    let mut two = [0; 2];
    let first = receiver.read(&mut two).expect("a part");
    assert_eq!((first.len, first.end, &two), (2, false, b"ab"));
    assert_eq!(
        receiver.peek().map(|rest| (rest.len, rest.end)),
        Some((1, true))
    );
    assert_eq!(
        receiver.read(&mut two).map(|rest| (rest.len, rest.end)),
        Some((1, true))
    );
    assert_eq!(
        receiver
            .read(&mut two)
            .map(|rest| (rest.len, rest.end, rest.ssn)),
        Some((2, true, Ssn(1)))
    );
    assert!(!receiver.readable());
}

#[test]
fn idata_messages_of_streams_interleave_and_report_their_mid() {
    let mut receiver = receiver(true);
    take(&mut receiver, &idata(0, 0, 0, 0, "B", b"a"));
    take(&mut receiver, &idata(1, 1, 0, 0, "B", b"x"));
    take(&mut receiver, &idata(3, 1, 0, 2, "E", b"z"));
    take(&mut receiver, &idata(2, 0, 0, 1, "E", b"b"));
    take(&mut receiver, &idata(4, 1, 0, 1, "", b"y"));
    take(&mut receiver, &idata(5, 1, 0, 0, "BEU", b"own numbers"));
    let got = all(&mut receiver);
    let texts: Vec<&[u8]> = got.iter().map(|(_, text)| text.as_slice()).collect();
    assert_eq!(texts, [b"ab".as_slice(), b"xyz", b"own numbers"]);
    assert!(
        got.iter()
            .all(|(received, _)| received.ppid == 7 && received.mid == Mid(0))
    );
}

#[test]
fn message_numbers_wrap() {
    for wide in [false, true] {
        let last = if wide { u32::MAX } else { 0xffff };
        let mut receiver = receiver(wide);
        forward(&mut receiver, 0, &[skipped(0, 10, false)]);
        for (nth, number) in [
            (0, 0x4000_5000),
            (1, 0x7fff_a000),
            (2, 0xbfff_f000),
            (3, last - 1),
        ]
        .into_iter()
        {
            forward(&mut receiver, nth + 1, &[skipped(0, number & last, false)]);
        }
        let chunk = |nth, number: u32, text| {
            if wide {
                idata(nth, 0, number, 0, "BE", text)
            } else {
                data(nth, 0, number as u16, "BE", text)
            }
        };
        take(&mut receiver, &chunk(6, 0, b"after"));
        take(&mut receiver, &chunk(5, last, b"before"));
        assert_eq!(texts(&mut receiver), ["before", "after"]);
    }
}

#[test]
fn a_sack_is_owed_for_every_second_packet_and_once_for_a_batch() {
    let mut receiver = receiver(false);
    assert_eq!(receiver.sack_wanted(), SackWanted::No);
    take(&mut receiver, &data(0, 0, 0, "BE", b"a"));
    take(&mut receiver, &data(1, 0, 1, "BE", b"b"));
    receiver.end_of_packet(NOW);
    assert_eq!(receiver.sack_wanted(), SackWanted::Delayed);
    take(&mut receiver, &data(2, 0, 2, "BE", b"c"));
    receiver.end_of_packet(NOW);
    receiver.end_of_packet(NOW);
    assert_eq!(receiver.sack_wanted(), SackWanted::Now);
    assert_eq!(sack(&mut receiver).0, FIRST.plus(2));
    assert_eq!(receiver.sack_wanted(), SackWanted::No);
    receiver.end_of_packet(NOW);
    assert_eq!(
        receiver.sack_wanted(),
        SackWanted::No,
        "no data in that packet"
    );
}

#[test]
fn gaps_duplicates_and_the_i_bit_are_answered_at_once() {
    let mut receiver = receiver(false);
    let immediate = Data {
        immediate: true,
        ..data(0, 0, 0, "BE", b"a")
    };
    take(&mut receiver, &immediate);
    receiver.end_of_packet(NOW);
    assert_eq!(receiver.sack_wanted(), SackWanted::Now);
    sack(&mut receiver);

    for (nth, ssn) in [(2, 2), (3, 3), (6, 6), (4, 4)] {
        take(&mut receiver, &data(nth, 0, ssn, "BE", b"x"));
    }
    receiver.end_of_packet(NOW);
    assert_eq!(receiver.sack_wanted(), SackWanted::Now);
    assert_eq!(
        take(&mut receiver, &data(3, 0, 3, "BE", b"x")),
        Placed::Duplicate
    );
    assert_eq!(
        take(&mut receiver, &data(0, 0, 0, "BE", b"x")),
        Placed::Duplicate
    );
    let (cumulative, window, gaps, duplicates) = sack(&mut receiver);
    assert_eq!(
        (cumulative, gaps, duplicates),
        (FIRST, vec![(2, 4), (6, 6)], 2)
    );
    assert_eq!(window, (1 << 16) - 5 * (1 + OVERHEAD as u32));
    assert_eq!(sack(&mut receiver).3, 0, "duplicates are reported once");
}

#[test]
fn the_window_counts_what_is_not_whole_and_opens_again_only_by_much() {
    let mut receiver = with(|config| config.partial_delivery_point = usize::MAX);
    let kilobyte = [0; 1024];
    for nth in 0..50 {
        take(&mut receiver, &data(nth, 0, nth as u16, "BE", &kilobyte));
    }
    let (_, window, ..) = sack(&mut receiver);
    assert_eq!(window as usize, (1 << 16) - 50 * (1024 + OVERHEAD));
    let mut buffer = [0; 2048];
    let mut updates = 0;
    while receiver.read(&mut buffer).is_some() {
        if receiver.window_update_due() {
            updates += 1;
            sack(&mut receiver);
        }
    }
    assert!((1..=4).contains(&updates), "{updates}");
    take(&mut receiver, &data(60, 0, 60, "B", &kilobyte));
    assert_eq!(receiver.window() as usize, (1 << 16) - 1024 - OVERHEAD);
}

#[test]
fn a_window_is_none_rather_than_silly() {
    let mut receiver = receiver(false);
    let kilobyte = [0; 1024];
    let mut nth = 0;
    while receiver.window() > 0 {
        take(&mut receiver, &data(nth, 0, nth as u16, "BE", &kilobyte));
        nth += 1;
        assert!(receiver.window() == 0 || receiver.window() as usize >= SILLY);
    }
    sack(&mut receiver);
    let mut buffer = [0; 1024];
    receiver.read(&mut buffer[..8]);
    assert!(!receiver.window_update_due());
    receiver.read(&mut buffer);
    assert!(receiver.window_update_due(), "two packets' worth");
}

#[test]
fn a_full_window_takes_what_fills_a_gap_and_drops_the_highest() {
    let mut receiver = receiver(false);
    let kilobyte = [0; 1024];
    let mut nth = 1;
    while take(&mut receiver, &data(nth, 0, nth as u16, "BE", &kilobyte)) == Placed::New {
        nth += 1;
    }
    assert_eq!(receiver.window(), 0);
    assert_eq!(receiver.sack_wanted(), SackWanted::Now);
    let highest = sack(&mut receiver).2[0].1;
    assert_eq!(
        take(&mut receiver, &data(0, 0, 0, "BE", &kilobyte)),
        Placed::New
    );
    assert_eq!(
        receiver.cumulative(),
        FIRST.plus(u32::from(highest) - 2),
        "the highest was dropped"
    );
    assert_eq!(all(&mut receiver).len(), usize::from(highest) - 1);
    assert_eq!(receiver.window(), 1 << 16);
}

#[test]
fn a_full_window_still_takes_the_chunk_that_completes_the_only_message() {
    for interleave in [false, true] {
        let mut receiver = with(|config| {
            config.interleave = interleave;
            config.window = 4096;
        });
        let half = [0; 2048];
        // Not the turn of this message's stream, so that it can't be delivered in parts.
        let chunk = |nth: u32, parts| {
            if interleave {
                idata(nth, 0, 1, nth, parts, &half)
            } else {
                data(nth, 0, 1, parts, &half)
            }
        };
        take(&mut receiver, &chunk(0, "B"));
        take(&mut receiver, &chunk(1, ""));
        assert!(!receiver.readable());
        assert_eq!(receiver.window(), 0);
        assert_eq!(take(&mut receiver, &chunk(3, "E")), Placed::NoRoom);
        assert_eq!(take(&mut receiver, &chunk(2, "E")), Placed::New);
    }
}

#[test]
fn a_message_larger_than_the_window_is_delivered_in_parts() {
    let mut receiver = with(|config| config.window = 8192);
    let kilobyte = [1; 1024];
    let mut buffer = [0; 100_000];
    let (mut sum, mut parts) = (0, 0);
    for nth in 0..50u32 {
        let place = match nth {
            0 => "B",
            49 => "E",
            _ => "",
        };
        assert_eq!(
            take(&mut receiver, &data(nth, 0, 0, place, &kilobyte)),
            Placed::New
        );
        if receiver.window() == 0 || nth == 49 {
            assert!(receiver.readable(), "a full window and nothing to read");
            let received = receiver.read(&mut buffer).expect("it is readable");
            assert_eq!((received.end, received.tsn), (nth == 49, FIRST));
            sum += received.len;
            parts += 1;
        }
    }
    assert_eq!(sum, 50 * 1024);
    assert!(parts > 5);
}

#[test]
fn others_wait_while_a_message_is_delivered_in_parts() {
    for together in [false, true] {
        let mut receiver = with(|config| {
            config.interleave = true;
            config.partial_delivery_point = 3;
            config.interleaved_delivery = together;
        });
        take(&mut receiver, &idata(0, 0, 0, 0, "B", b"ab"));
        assert!(!receiver.readable());
        take(&mut receiver, &idata(1, 0, 0, 1, "", b"cd"));
        take(&mut receiver, &idata(2, 1, 0, 0, "BE", b"other"));
        take(&mut receiver, &idata(3, 2, 0, 0, "B", b"large"));
        take(&mut receiver, &idata(4, 0, 1, 0, "BE", b"next"));
        let mut now = texts(&mut receiver);
        now.sort();
        if together {
            assert_eq!(now, ["abcd", "large", "other"]);
            take(&mut receiver, &idata(5, 0, 0, 2, "E", b"ef"));
            assert_eq!(texts(&mut receiver), ["ef", "next"]);
        } else {
            assert_eq!(now, ["abcd"]);
            take(&mut receiver, &idata(5, 0, 0, 2, "E", b"ef"));
            assert_eq!(texts(&mut receiver), ["ef", "other", "next", "large"]);
        }
        take(&mut receiver, &idata(6, 2, 0, 1, "E", b"!"));
        let rest = all(&mut receiver);
        assert!(rest.len() == 1 && rest[0].0.end && rest[0].1 == b"!");
    }
}

#[test]
fn what_the_peer_gives_up_is_skipped_and_the_rest_delivered() {
    for interleave in [false, true] {
        let mut receiver = receiver(interleave);
        let chunk = |nth, number: u32, fsn, parts, text| {
            if interleave {
                idata(nth, 0, number, fsn, parts, text)
            } else {
                data(nth, 0, number as u16, parts, text)
            }
        };
        take(&mut receiver, &chunk(0, 0, 0, "B", b"begun"));
        take(&mut receiver, &chunk(3, 2, 0, "BE", b"two"));
        take(&mut receiver, &chunk(5, 4, 0, "BE", b"four"));
        forward(&mut receiver, 4, &[skipped(0, 3, false)]);
        assert_eq!(receiver.cumulative(), FIRST.plus(5));
        assert_eq!(receiver.sack_wanted(), SackWanted::Now);
        assert_eq!(texts(&mut receiver), ["two", "four"]);
        assert_eq!(receiver.window(), 1 << 16);
        assert_eq!(
            receiver.on_data(NOW, &chunk(1, 0, 1, "E", b"late")),
            Ok(Placed::Duplicate)
        );
        forward(&mut receiver, 3, &[skipped(0, 9, false)]);
        take(&mut receiver, &chunk(6, 5, 0, "BE", b"five"));
        assert_eq!(
            texts(&mut receiver),
            ["five"],
            "an old FORWARD-TSN changes nothing"
        );
    }
}

#[test]
fn a_reader_learns_that_the_rest_of_a_message_was_given_up() {
    let mut receiver = with(|config| config.partial_delivery_point = 1);
    take(&mut receiver, &data(0, 0, 0, "B", b"begun"));
    take(&mut receiver, &data(2, 0, 0, "", b"lost"));
    take(&mut receiver, &data(4, 0, 1, "BE", b"next"));
    assert_eq!(texts(&mut receiver), ["begun"]);
    forward(&mut receiver, 3, &[skipped(0, 0, false)]);
    let got = all(&mut receiver);
    assert_eq!(
        (got[0].0.aborted, got[0].0.end, got[0].0.len),
        (true, true, 0)
    );
    assert_eq!(got[1].1, b"next");
}

#[test]
fn the_tail_of_a_message_given_up_is_dropped() {
    let mut receiver = receiver(false);
    take(&mut receiver, &data(2, 0, 0, "", b"x"));
    forward(&mut receiver, 1, &[skipped(0, 0, false)]);
    take(&mut receiver, &data(3, 0, 0, "E", b"x"));
    take(&mut receiver, &data(4, 0, 1, "BE", b"next"));
    assert_eq!(texts(&mut receiver), ["next"]);
    assert_eq!(receiver.buffered(), 0);
}

#[test]
fn unordered_messages_are_given_up_by_their_own_number() {
    let mut receiver = receiver(true);
    take(&mut receiver, &idata(0, 0, 0, 0, "BU", b"unordered"));
    take(&mut receiver, &idata(1, 0, 0, 0, "B", b"or"));
    forward(&mut receiver, 2, &[skipped(0, 0, true)]);
    take(&mut receiver, &idata(3, 0, 0, 1, "E", b"dered"));
    assert_eq!(texts(&mut receiver), ["ordered"]);
}

#[test]
fn broken_messages_are_violations() {
    let second = |first: Data, second: Data| {
        let mut receiver = receiver(first.interleaved);
        take(&mut receiver, &first);
        violation(&mut receiver, &second)
    };
    assert!(
        second(data(0, 0, 0, "B", b"x"), data(1, 0, 1, "B", b"x")),
        "a second beginning"
    );
    assert!(
        second(data(0, 0, 0, "B", b"x"), data(1, 0, 1, "BE", b"x")),
        "a second beginning, whole"
    );
    assert!(
        second(data(1, 0, 0, "", b"x"), data(0, 0, 1, "BE", b"x")),
        "nothing before a middle"
    );
    assert!(
        second(data(0, 0, 0, "BE", b"x"), data(1, 0, 1, "E", b"x")),
        "no beginning"
    );
    assert!(
        second(data(1, 0, 0, "E", b"x"), data(2, 0, 0, "E", b"x")),
        "two ends"
    );
    assert!(
        second(data(2, 0, 0, "E", b"x"), data(1, 0, 0, "E", b"x")),
        "two ends, the other way round"
    );
    assert!(
        second(data(0, 0, 0, "B", b"x"), data(1, 1, 0, "E", b"x")),
        "another stream"
    );
    assert!(
        second(data(0, 0, 0, "B", b"x"), data(1, 0, 1, "E", b"x")),
        "another SSN"
    );
    assert!(
        second(data(0, 0, 0, "B", b"x"), data(1, 0, 0, "EU", b"x")),
        "unordered all of a sudden"
    );
    assert!(
        second(data(0, 0, 0, "BE", b"x"), data(1, 0, 0, "BE", b"x")),
        "an SSN that has been"
    );
    assert!(
        second(data(1, 0, 3, "BE", b"x"), data(2, 0, 3, "BE", b"x")),
        "an SSN that waits"
    );
    assert!(
        second(data(0, 0, 0, "BE", b"x"), idata(1, 0, 1, 0, "BE", b"x")),
        "I-DATA uninvited"
    );
    assert!(
        second(idata(0, 0, 0, 0, "BE", b"x"), data(1, 0, 1, "BE", b"x")),
        "DATA uninvited"
    );
    assert!(
        second(idata(0, 0, 0, 0, "B", b"x"), idata(1, 0, 0, 0, "B", b"x")),
        "two beginnings"
    );
    assert!(
        second(idata(0, 0, 0, 0, "B", b"x"), idata(1, 0, 0, 0, "", b"x")),
        "FSN 0 twice"
    );
    assert!(
        second(idata(0, 0, 0, 2, "", b"x"), idata(1, 0, 0, 2, "", b"x")),
        "an FSN twice"
    );
    assert!(
        second(idata(0, 0, 0, 2, "E", b"x"), idata(1, 0, 0, 4, "", b"x")),
        "beyond the end"
    );
    assert!(
        second(idata(0, 0, 0, 4, "", b"x"), idata(1, 0, 0, 2, "E", b"x")),
        "an end before others"
    );
    assert!(
        second(idata(0, 0, 0, 4, "", b"x"), idata(1, 0, 0, 0, "BE", b"x")),
        "whole, with others"
    );
    assert!(
        second(idata(0, 0, 0, 0, "BE", b"x"), idata(1, 0, 0, 0, "BE", b"x")),
        "a MID that has been"
    );
    let mut receiver = receiver(true);
    let mut out = Vec::new();
    let mut packet = PacketBuilder::begin(&mut out, 1, 2, 3, 1452);
    packet.forward(FIRST, false, &[]);
    packet.finish(None, true);
    let Some(Ok(Chunk::Forward(chunk))) = Packet::parse(&out).expect("a packet").chunks().next()
    else {
        panic!("a FORWARD-TSN");
    };
    assert!(receiver.on_forward(&chunk).is_err());
}

#[test]
fn empty_chunks_and_unknown_streams_are_reported() {
    let mut receiver = receiver(false);
    let empty = data(0, 0, 0, "BE", b"");
    assert_eq!(
        receiver.on_data(NOW, &empty),
        Err(DataError::NoUserData(FIRST))
    );
    let stray = data(0, 4, 0, "BE", b"x");
    assert_eq!(
        receiver.on_data(NOW, &stray),
        Err(DataError::BadStream {
            stream: 4,
            tsn: FIRST
        })
    );
    assert_eq!(receiver.cumulative(), FIRST, "it counts as come");
    assert_eq!(receiver.on_data(NOW, &stray), Ok(Placed::Duplicate));
    assert!(receiver.add_streams(1) && !receiver.add_streams(u16::MAX));
    take(&mut receiver, &data(1, 4, 0, "BE", b"now it is known"));
}

#[test]
fn chunks_far_ahead_are_not_taken() {
    let mut receiver = receiver(false);
    assert_eq!(
        take(&mut receiver, &data(REACH_PLUS, 0, 0, "BEU", b"x")),
        Placed::NoRoom
    );
    assert_eq!(
        take(&mut receiver, &data(REACH_PLUS - 1, 0, 0, "BEU", b"x")),
        Placed::New
    );
    for nth in 1..10_000 {
        receiver
            .on_data(NOW, &data(2 * nth, 0, 0, "BEU", b"x"))
            .expect("right chunks");
        all(&mut receiver);
    }
    assert!(sack(&mut receiver).2.len() <= 1452 / 4);
    receiver.check();
}
const REACH_PLUS: u32 = map::REACH as u32;

#[test]
fn streams_begin_anew_after_a_reset() {
    let mut receiver = receiver(false);
    for stream in [1, 2] {
        take(
            &mut receiver,
            &data(u32::from(stream) - 1, stream, 0, "BE", b"x"),
        );
    }
    receiver.reset_streams(&[1]);
    take(&mut receiver, &data(2, 1, 0, "BE", b"anew"));
    take(&mut receiver, &data(3, 2, 1, "BE", b"goes on"));
    take(&mut receiver, &data(5, 2, 3, "BE", b"lost"));
    assert_eq!(all(&mut receiver).len(), 4);
    let next = receiver.next_tsn_for_reset();
    assert_eq!(next, FIRST.plus(4).plus(1 << 31));
    receiver.restart(next);
    receiver.check();
    assert_eq!(receiver.buffered(), 0);
    assert_eq!(
        take(
            &mut receiver,
            &Data {
                tsn: next,
                ..data(0, 2, 0, "BE", b"x")
            }
        ),
        Placed::New
    );
    assert_eq!(receiver.cumulative(), next);
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

/// Messages as a peer would send them, cut and numbered; and what must come out.
#[derive(Clone, Debug)]
struct Sent {
    stream: u16,
    unordered: bool,
    number: u32,
    body: Vec<u8>,
    sizes: Vec<usize>,
}

fn messages() -> impl Strategy<Value = Vec<Sent>> {
    let one = (
        0u16..4,
        any::<bool>(),
        prop::collection::vec(1usize..40, 1..6),
    );
    prop::collection::vec(one, 1..40).prop_map(|list| {
        let mut numbers: BTreeMap<(u16, bool), u32> = BTreeMap::new();
        let with_number = list
            .into_iter()
            .enumerate()
            .map(|(at, (stream, unordered, sizes))| {
                let number = numbers.entry((stream, unordered)).or_default();
                *number += 1;
                let body = (0..sizes.iter().sum())
                    .map(|byte| (byte * 7 + at * 13) as u8)
                    .collect();
                Sent {
                    stream,
                    unordered,
                    number: *number - 1,
                    body,
                    sizes,
                }
            });
        with_number.collect()
    })
}

/// The fragments of the messages with their TSNs; I-DATA takes turns among messages of different streams.
fn chunks(sent: &[Sent], interleave: bool) -> Vec<Data<'_>> {
    let mut queue: VecDeque<(usize, usize, usize)> = (0..sent.len()).map(|at| (at, 0, 0)).collect();
    let mut list = Vec::new();
    let mut open: Vec<(u16, bool, usize)> = Vec::new();
    while let Some((at, from, part)) = queue.pop_front() {
        let Sent {
            stream,
            unordered,
            number,
            body,
            sizes,
        } = &sent[at];
        let busy = open
            .iter()
            .any(|one| (one.0, one.1) == (*stream, *unordered) && one.2 != at);
        if busy {
            queue.push_back((at, from, part));
            continue;
        }
        let (begin, end) = (part == 0, part + 1 == sizes.len());
        let nth = list.len() as u32;
        list.push(Data {
            begin,
            end,
            unordered: *unordered,
            ssn: Ssn(if interleave { 0 } else { *number as u16 }),
            mid: Mid(if interleave { *number } else { 0 }),
            fsn: if interleave { part as u32 } else { 0 },
            interleaved: interleave,
            ..data(nth, *stream, 0, "", &body[from..from + sizes[part]])
        });
        open.retain(|one| one.2 != at);
        if end {
            continue;
        }
        open.push((*stream, *unordered, at));
        let rest = (at, from + sizes[part], part + 1);
        if interleave {
            queue.push_back(rest)
        } else {
            queue.push_front(rest)
        }
    }
    list
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn everything_comes_out_once_in_order_whatever_the_arrival(
        sent in messages(),
        interleave: bool,
        together: bool,
        small_window: bool,
        point in 1usize..200,
        picks in prop::collection::vec((any::<u16>(), 0u8..8), 1..400),
    ) {
        let mut receiver = with(|config| {
            config.interleave = interleave;
            config.interleaved_delivery = together;
            config.partial_delivery_point = point;
            config.window = if small_window { 1000 } else { 1 << 16 };
        });
        let chunks = chunks(&sent, interleave);
        let last = FIRST.plus(chunks.len() as u32 - 1);
        let mut picks = picks.iter().cycle();
        let mut got: Vec<(Received, Vec<u8>)> = Vec::new();
        let mut buffer = [0; 64];
        let mut steps = 0;
        while receiver.cumulative() != last || receiver.readable() {
            let (pick, read) = picks.next().expect("a cycle");
            // The peer sends what was not acknowledged: something near its front, at times the front itself.
            let base = receiver.cumulative().next().since(FIRST) as usize;
            let near = if steps % 5 == 0 { base } else { base + usize::from(*pick) % 60 };
            if let Some(chunk) = chunks.get(near) {
                receiver.on_data(NOW, chunk).expect("right chunks");
                receiver.check();
            }
            let into = 1 + usize::from(*pick) % buffer.len();
            for _ in 0..read + u8::from(steps % 7 == 0) {
                let Some(received) = receiver.read(&mut buffer[..into]) else { break };
                receiver.check();
                let more = got.iter_mut().find(|one| one.0.tsn == received.tsn && !one.0.end);
                match more {
                    Some(one) => {
                        one.1.extend_from_slice(&buffer[..received.len]);
                        one.0.end = received.end;
                    }
                    None => got.push((received, buffer[..received.len].to_vec())),
                }
            }
            steps += 1;
            prop_assert!(steps < 100_000, "no progress");
        }
        prop_assert_eq!(got.len(), sent.len());
        prop_assert!(got.iter().all(|one| one.0.end && !one.0.aborted));
        for stream in 0..4 {
            let of = |unordered| {
                let sent = sent.iter().filter(move |one| one.stream == stream && one.unordered == unordered);
                let got = got.iter().filter(move |one| one.0.stream == stream && one.0.unordered == unordered);
                let sent: Vec<&Vec<u8>> = sent.map(|one| &one.body).collect();
                let got: Vec<&Vec<u8>> = got.map(|one| &one.1).collect();
                (sent, got)
            };
            let (expected, arrived) = of(false);
            prop_assert_eq!(expected, arrived);
            let (mut expected, mut arrived) = of(true);
            expected.sort();
            arrived.sort();
            prop_assert_eq!(expected, arrived);
        }
        prop_assert_eq!(receiver.used(), 0);
    }

    #[test]
    fn nothing_a_peer_sends_breaks_an_invariant(
        interleave: bool,
        steps in prop::collection::vec((0u32..40, 0u16..5, 0u32..6, 0u32..5, 0u8..8, 1usize..600, 0u8..10), 1..300),
    ) {
        let mut receiver = with(|config| {
            config.interleave = interleave;
            config.window = 4000;
            config.partial_delivery_point = 700;
        });
        let bytes = [0; 600];
        let mut buffer = [0; 500];
        for (nth, stream, number, fsn, bits, len, what) in steps {
            match what {
                0 => forward(&mut receiver, nth, &[skipped(stream, number, bits & 4 != 0)]),
                1 => while receiver.read(&mut buffer).is_some() {},
                2 if bits == 0 => receiver.reset_streams(&[stream]),
                _ => {
                    let parts = ["", "B", "E", "BE", "U", "BU", "EU", "BEU"][usize::from(bits)];
                    let chunk = if interleave {
                        idata(nth, stream, number, fsn, parts, &bytes[..len])
                    } else {
                        data(nth, stream, number as u16, parts, &bytes[..len])
                    };
                    if let Err(DataError::Violation(_)) = receiver.on_data(NOW, &chunk) {
                        break;
                    }
                }
            }
            receiver.check();
            prop_assert!(receiver.used() <= 4 * 4000 + 1000);
        }
    }

    #[test]
    fn the_map_is_a_set_of_tsns(start: u32, picks in prop::collection::vec((0u32..60, any::<bool>()), 1..200)) {
        let mut map = TsnMap::new(Tsn(start));
        let mut come = std::collections::BTreeSet::new();
        let base = map.cumulative() + 1;
        for (pick, back) in picks {
            let tsn = map.unwrap(Tsn(start).plus(pick));
            prop_assert_eq!(tsn, base + u64::from(pick));
            prop_assert_eq!(map.contains(tsn), tsn <= map.cumulative() || come.contains(&tsn));
            if !map.contains(tsn) {
                map.insert(tsn);
                come.insert(tsn);
            } else if back && tsn > map.cumulative() {
                map.take_back(tsn, tsn);
                come.remove(&tsn);
            }
            map.check();
        }
    }
}

#[test]
fn what_a_message_that_is_being_delivered_waits_for_is_taken_however_much_is_held_back() {
    let mut receiver = with(|config| {
        config.interleave = true;
        config.window = 4000;
        config.partial_delivery_point = 1;
    });
    let mut buffer = [0; 1000];
    take(&mut receiver, &idata(0, 0, 0, 0, "B", b"begun"));
    let begun = receiver.read(&mut buffer).expect("a part");
    assert!(!begun.end && !receiver.readable());
    let mut nth = 1;
    while receiver.on_data(NOW, &idata(nth, 1, nth - 1, 0, "BE", &[1; 500])) == Ok(Placed::New) {
        assert!(!receiver.readable() && nth < 100);
        nth += 1;
    }
    // Another message's end is not, nor another message.
    let refused = [
        idata(nth + 1, 2, 0, 1, "E", b"end"),
        idata(nth + 1, 0, 1, 0, "BE", b"whole"),
    ];
    for chunk in refused {
        assert_eq!(receiver.on_data(NOW, &chunk), Ok(Placed::NoRoom));
    }
    take(&mut receiver, &idata(nth + 1, 0, 0, 1, "E", b"end"));
    let mut read = 0;
    while let Some(part) = receiver.read(&mut buffer) {
        assert!(part.end);
        read += 1;
    }
    assert_eq!(read, nth);
    take(&mut receiver, &idata(nth, 1, nth - 1, 0, "BE", &[1; 500]));
    receiver.check();
}
