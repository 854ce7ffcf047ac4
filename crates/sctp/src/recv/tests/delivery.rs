//! What a reader gets: messages whole or in parts, in the order of their stream, but for what the peer gave up.

use super::*;

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
            receiver.on_data(&chunk(1, 0, 1, "E", b"late")),
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
    let mut first = data(0, 2, 0, "BE", b"x");
    first.head.tsn = next;
    assert_eq!(take(&mut receiver, &first), Placed::New);
    assert_eq!(receiver.cumulative(), next);
}
