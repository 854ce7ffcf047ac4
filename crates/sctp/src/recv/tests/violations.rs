//! Chunks that no sane peer sends.

use super::*;

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
    assert_eq!(receiver.on_data(&empty), Err(DataError::NoUserData(FIRST)));
    let stray = data(0, 4, 0, "BE", b"x");
    assert_eq!(receiver.on_data(&stray), Err(DataError::BadStream(4)));
    assert_eq!(receiver.cumulative(), FIRST, "it counts as come");
    assert_eq!(receiver.on_data(&stray), Ok(Placed::Duplicate));
    assert!(receiver.add_streams(1) && !receiver.add_streams(u16::MAX));
    take(&mut receiver, &data(1, 4, 0, "BE", b"now it is known"));
}
