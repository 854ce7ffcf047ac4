use core::net::IpAddr;

use proptest::prelude::*;

use super::*;
use crate::serial::{Mid, Ssn, Tsn};
use crate::wire::chunk::kind;
use crate::wire::tlv::Tlvs;

fn packet(fill: impl FnOnce(&mut PacketBuilder<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    let mut packet = PacketBuilder::begin(&mut out, 5000, 6000, 0x0102_0304, 65535);
    fill(&mut packet);
    packet.finish(None, true);
    out
}

/// A packet of these bytes behind a header.
fn packet_of(chunks: &[u8]) -> Vec<u8> {
    [&[0x13, 0x88, 0x17, 0x70, 1, 2, 3, 4, 0, 0, 0, 0], chunks].concat()
}

fn chunks(packet: &[u8]) -> Vec<Result<Chunk<'_>, Malformed>> {
    Packet::parse(packet).unwrap().chunks().collect()
}

fn only(packet: &[u8]) -> Chunk<'_> {
    let mut all = chunks(packet);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0).unwrap()
}

fn copy_params(all: Params<'_>, to: &mut ParamBuilder<'_>) {
    put_params(&all.map(Result::unwrap).collect::<Vec<_>>(), to);
}

fn put_params(all: &[Param<'_>], to: &mut ParamBuilder<'_>) {
    for one in all {
        to.put(one);
    }
}

fn copy_causes(all: Causes<'_>, to: &mut CauseBuilder<'_>) {
    put_causes(&all.map(Result::unwrap).collect::<Vec<_>>(), to);
}

fn put_causes(all: &[Cause<'_>], to: &mut CauseBuilder<'_>) {
    for one in all {
        to.put(one);
    }
}

/// Writes a chunk that was read.
fn put(packet: &mut PacketBuilder<'_>, chunk: &Chunk<'_>) {
    let head = |i: &Init<'_>| InitHead {
        tag: i.tag,
        window: i.window,
        outbound: i.outbound,
        inbound: i.inbound,
        tsn: i.tsn,
    };
    match chunk {
        Chunk::Data(data) => packet.data(&data.head, data.payload),
        Chunk::Init(init) => {
            packet.init(kind::INIT, &head(init), |to| copy_params(init.params, to))
        }
        Chunk::InitAck(init) => packet.init(kind::INIT_ACK, &head(init), |to| {
            copy_params(init.params, to)
        }),
        Chunk::Sack(sack) => {
            let (gaps, duplicates): (Vec<_>, Vec<_>) =
                (sack.gaps().collect(), sack.duplicates().collect());
            packet.sack(sack.cumulative, sack.window, &gaps, &duplicates);
        }
        Chunk::Heartbeat(info) => packet.heartbeat(kind::HEARTBEAT, info),
        Chunk::HeartbeatAck(info) => packet.heartbeat(kind::HEARTBEAT_ACK, info),
        Chunk::Abort {
            tcb_missing,
            causes: all,
        } => packet.abort(*tcb_missing, |to| copy_causes(*all, to)),
        Chunk::Error(all) => packet.error(|to| copy_causes(*all, to)),
        Chunk::Shutdown { cumulative } => packet.shutdown(*cumulative),
        Chunk::ShutdownAck => packet.shutdown_ack(),
        Chunk::ShutdownComplete { tcb_missing } => packet.shutdown_complete(*tcb_missing),
        Chunk::CookieEcho(cookie) => packet.cookie_echo(cookie),
        Chunk::CookieAck => packet.cookie_ack(),
        Chunk::Auth(_) => unreachable!("signed packets have their tests with the keys"),
        Chunk::Asconf {
            serial,
            params: all,
        } => packet.asconf(kind::ASCONF, *serial, |to| copy_params(*all, to)),
        Chunk::AsconfAck {
            serial,
            params: all,
        } => packet.asconf(kind::ASCONF_ACK, *serial, |to| copy_params(*all, to)),
        Chunk::ReConfig(all) => packet.re_config(|to| copy_params(*all, to)),
        Chunk::Forward(forward) => {
            let skipped: Vec<_> = forward.streams().collect();
            packet.forward(forward.cumulative, forward.interleaved, &skipped);
        }
        Chunk::Pad => packet.pad(4),
        Chunk::Unknown { whole, .. } => packet.raw(whole),
    }
}

/// One parameter of each kind, from random numbers.
fn every_param<'a>(
    n: [u32; 4],
    addresses: &[IpAddr; 2],
    bytes: &'a [u8],
    unknown: &'a [u8],
) -> Vec<Param<'a>> {
    let list = List::parse(&bytes[..bytes.len() & !1]).unwrap();
    let [a, b, c, d] = n;
    vec![
        addresses[0].into(),
        addresses[1].into(),
        Param::Cookie(bytes),
        Param::Unrecognized(bytes),
        Param::CookiePreservative(a),
        Param::SupportedAddressTypes(list),
        Param::EcnCapable,
        Param::ForwardTsnSupported,
        Param::SupportedExtensions(bytes),
        Param::Random(bytes),
        Param::ChunkList(bytes),
        Param::HmacAlgorithms(list),
        Param::Padding(bytes.len()),
        Param::AddIp {
            correlation: a,
            address: addresses[0],
        },
        Param::DeleteIp {
            correlation: b,
            address: addresses[1],
        },
        Param::SetPrimary {
            correlation: c,
            address: addresses[0],
        },
        Param::SuccessIndication { correlation: d },
        Param::ErrorCauseIndication {
            correlation: a,
            causes: Causes::new(bytes),
        },
        Param::AdaptationLayer(b),
        Param::ZeroChecksum(c),
        Param::Heartbeat(bytes),
        Param::OutgoingReset {
            request: a,
            response: b,
            last: Tsn(c),
            streams: list,
        },
        Param::IncomingReset {
            request: a,
            streams: list,
        },
        Param::TsnReset { request: d },
        Param::Response {
            request: a,
            result: b,
            next: None,
        },
        Param::Response {
            request: a,
            result: b,
            next: Some((Tsn(c), Tsn(d))),
        },
        Param::AddOutgoing {
            request: c,
            streams: d as u16,
        },
        Param::AddIncoming {
            request: d,
            streams: c as u16,
        },
        Param::HostName(b"h\0"),
        Param::Unknown {
            kind: 0x7fff,
            whole: unknown,
        },
    ]
}

fn every_cause<'a>(n: u32, bytes: &'a [u8]) -> Vec<Cause<'a>> {
    vec![
        Cause::InvalidStream(n as u16),
        Cause::MissingParams(List::parse(&bytes[..bytes.len() & !1]).unwrap()),
        Cause::StaleCookie(n),
        Cause::OutOfResource,
        Cause::UnresolvableAddress(bytes),
        Cause::UnrecognizedChunk(bytes),
        Cause::InvalidMandatory,
        Cause::UnrecognizedParams(bytes),
        Cause::NoUserData(Tsn(n)),
        Cause::CookieWhileShutdown,
        Cause::RestartNewAddresses(bytes),
        Cause::UserAbort(bytes),
        Cause::ProtocolViolation(bytes),
        Cause::DeleteLastAddress(bytes),
        Cause::ResourceShortage(bytes),
        Cause::DeleteSourceAddress(bytes),
        Cause::IllegalAsconfAck,
        Cause::NoAuthorization(bytes),
        Cause::UnsupportedHmac(n as u16),
        Cause::Unknown {
            code: 0x4000 | n as u16,
            value: bytes,
        },
    ]
}

fn unknown_param(value: &[u8]) -> Vec<u8> {
    [&[0x7f, 0xff, 0, 4 + value.len() as u8], value].concat()
}

fn some_bytes() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..60)
}

proptest! {
    #[test]
    fn every_parameter_is_read_as_it_was_written(
        n: [u32; 4], v4: [u8; 4], v6: [u8; 16], bytes in some_bytes(), order in any::<prop::sample::Index>(),
    ) {
        let unknown = unknown_param(&bytes);
        let mut params = every_param(n, &[v4.into(), v6.into()], &bytes, &unknown);
        let at = order.index(params.len());
        params.rotate_left(at);
        let head = InitHead { tag: n[0], window: n[1], outbound: n[2] as u16, inbound: n[3] as u16, tsn: Tsn(n[2]) };
        let packet = packet(|packet| packet.init(kind::INIT_ACK, &head, |to| put_params(&params, to)));
        let Chunk::InitAck(init) = only(&packet) else { panic!() };
        prop_assert_eq!((init.tag, init.window, init.outbound, init.inbound, init.tsn),
            (head.tag, head.window, head.outbound, head.inbound, head.tsn));
        let read: Vec<Param<'_>> = init.params.map(Result::unwrap).collect();
        prop_assert_eq!(read, params);
    }

    #[test]
    fn every_cause_is_read_as_it_was_written(n: u32, bytes in some_bytes(), order in any::<prop::sample::Index>()) {
        let mut causes = every_cause(n, &bytes);
        let at = order.index(causes.len());
        causes.rotate_left(at);
        let packet = packet(|packet| packet.abort(true, |to| put_causes(&causes, to)));
        let Chunk::Abort { tcb_missing: true, causes: read } = only(&packet) else { panic!() };
        let owned = read.to_owned();
        prop_assert_eq!(owned.iter().map(CauseOwned::get).collect::<Vec<_>>(), causes.clone());
        prop_assert_eq!(read.map(Result::unwrap).collect::<Vec<_>>(), causes);
    }

    #[test]
    fn data_is_read_as_it_was_written(
        n: [u32; 4], stream: u16, ssn: u16, flags: [bool; 5], payload in proptest::collection::vec(any::<u8>(), 0..2000),
    ) {
        let [begin, end, unordered, immediate, interleaved] = flags;
        let head = DataHead {
            tsn: Tsn(n[0]),
            stream,
            ssn: Ssn(if interleaved { 0 } else { ssn }),
            mid: Mid(if interleaved { n[1] } else { 0 }),
            fsn: if interleaved && !begin { n[2] } else { 0 },
            ppid: if interleaved && !begin { 0 } else { n[3] },
            begin, end, unordered, immediate, interleaved,
        };
        let written = Data { head, payload: &payload };
        let packet = packet(|packet| {
            packet.data(&head, &payload);
            packet.data(&head, &[]);
        });
        let without = Data { payload: &[], ..written };
        prop_assert_eq!(chunks(&packet), [Ok(Chunk::Data(written)), Ok(Chunk::Data(without))]);
    }

    #[test]
    fn sacks_and_forwards_are_read_as_they_were_written(
        n: [u32; 2],
        gaps in proptest::collection::vec(any::<(u16, u16)>(), 0..40),
        duplicates in proptest::collection::vec(any::<u32>(), 0..40),
        skipped in proptest::collection::vec(any::<(u16, bool, u16, u32)>(), 0..40),
    ) {
        let duplicates: Vec<Tsn> = duplicates.into_iter().map(Tsn).collect();
        let plain: Vec<Skipped> = skipped.iter()
            .map(|(stream, _, ssn, _)| Skipped { stream: *stream, ssn: Ssn(*ssn), ..Skipped::default() }).collect();
        let interleaved: Vec<Skipped> = skipped.iter()
            .map(|(stream, unordered, _, mid)| Skipped { stream: *stream, unordered: *unordered, ssn: Ssn(0), mid: Mid(*mid) })
            .collect();
        let packet = packet(|packet| {
            packet.sack(Tsn(n[0]), n[1], &gaps, &duplicates);
            packet.forward(Tsn(n[0]), false, &plain);
            packet.forward(Tsn(n[0]), true, &interleaved);
        });
        let all = chunks(&packet);
        let [Ok(Chunk::Sack(sack)), Ok(Chunk::Forward(first)), Ok(Chunk::Forward(second))] = all[..] else { panic!("{all:?}") };
        prop_assert_eq!((sack.cumulative, sack.window, sack.gaps().len()), (Tsn(n[0]), n[1], gaps.len()));
        prop_assert_eq!(sack.gaps().collect::<Vec<_>>(), gaps);
        prop_assert_eq!(sack.duplicates().collect::<Vec<_>>(), duplicates);
        prop_assert_eq!(first.streams().collect::<Vec<_>>(), plain);
        prop_assert_eq!(second.streams().collect::<Vec<_>>(), interleaved);
        prop_assert!(!first.interleaved && second.interleaved);
    }

    #[test]
    fn the_other_chunks_are_read_as_they_were_written(number: u32, flag: bool, bytes in some_bytes()) {
        let params = packet(|packet| packet.re_config(|to| put_params(&[Param::TsnReset { request: number }], to)));
        let Chunk::ReConfig(params) = only(&params) else { panic!() };
        let unknown = [&[0x3f, 5, 0, 4 + bytes.len() as u8], &bytes[..]].concat();
        let written = [
            Chunk::Heartbeat(&bytes),
            Chunk::HeartbeatAck(&bytes),
            Chunk::Abort { tcb_missing: flag, causes: Causes::default() },
            Chunk::Error(Causes::default()),
            Chunk::Shutdown { cumulative: Tsn(number) },
            Chunk::ShutdownAck,
            Chunk::ShutdownComplete { tcb_missing: flag },
            Chunk::CookieEcho(&bytes),
            Chunk::CookieAck,
            Chunk::Asconf { serial: number, params },
            Chunk::AsconfAck { serial: number, params },
            Chunk::ReConfig(params),
            Chunk::Pad,
            Chunk::Unknown { kind: 0x3f, flags: 5, whole: &unknown },
        ];
        let packet = packet(|packet| written.iter().for_each(|chunk| put(packet, chunk)));
        prop_assert_eq!(packet.len() % 4, 0);
        prop_assert_eq!(Packet::parse(&packet).unwrap().checksum(), Checksum::Right);
        let read: Vec<Chunk<'_>> = chunks(&packet).into_iter().map(Result::unwrap).collect();
        prop_assert_eq!(&read[..], &written[..]);
    }
}

/// The figures of RFC 9260 section 3.3.1 and RFC 8260 section 2.1, filled in by hand.
#[test]
fn data_and_i_data_stand_as_in_the_rfc() {
    let data = packet_of(&[
        0, 0x0b, 0, 19, 0, 0, 0, 1, 0, 2, 0, 3, 0, 0, 0, 4, b'a', b'b', b'c', 0,
    ]);
    let head = DataHead {
        tsn: Tsn(1),
        stream: 2,
        ssn: Ssn(3),
        ppid: 4,
        begin: true,
        end: true,
        immediate: true,
        ..DataHead::default()
    };
    let expected = Data {
        head,
        payload: b"abc",
    };
    assert_eq!(only(&data), Chunk::Data(expected));
    let later = [
        0x40, 5, 0, 21, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 3, 0, 0, 0, 4, b'a', 0, 0, 0,
    ];
    let head = DataHead {
        tsn: Tsn(1),
        stream: 2,
        mid: Mid(3),
        fsn: 4,
        end: true,
        unordered: true,
        interleaved: true,
        ..DataHead::default()
    };
    let expected = Data {
        head,
        payload: b"a",
    };
    assert_eq!(only(&packet_of(&later)), Chunk::Data(expected));
    assert_eq!(packet(|packet| packet.data(&head, b"a"))[HEADER..], later);
}

/// The SACK of RFC 9260 section 3.3.4: TSNs 10 to 12, 14, 15 and 17 have come.
#[test]
fn the_sack_of_the_rfc_is_read_and_written() {
    let bytes = [
        3, 0, 0, 24, 0, 0, 0, 12, 0, 0, 0x12, 0x34, 0, 2, 0, 0, 0, 2, 0, 3, 0, 5, 0, 5,
    ];
    let packet = packet(|packet| packet.sack(Tsn(12), 0x1234, &[(2, 3), (5, 5)], &[]));
    assert_eq!(packet[HEADER..], bytes);
    let Chunk::Sack(sack) = only(&packet) else {
        panic!()
    };
    assert_eq!(sack.gaps().collect::<Vec<_>>(), [(2, 3), (5, 5)]);
}

#[test]
fn a_chunks_length_leaves_out_its_own_padding_and_counts_that_of_its_parameters() {
    let head = InitHead {
        tag: 1,
        window: 2,
        outbound: 3,
        inbound: 4,
        tsn: Tsn(5),
    };
    let packet = packet(|packet| {
        packet.init(kind::INIT, &head, |to| {
            put_params(&[Param::Cookie(&[9]), Param::Cookie(&[8])], to)
        });
        packet.cookie_ack();
    });
    let expected = [
        1, 0, 0, 33, 0, 0, 0, 1, 0, 0, 0, 2, 0, 3, 0, 4, 0, 0, 0, 5, 0, 7, 0, 5, 9, 0, 0, 0, 0, 7,
        0, 5, 8, 0, 0, 0, 11, 0, 0, 4,
    ];
    assert_eq!(packet[HEADER..], expected);
}

#[test]
fn padding_may_be_missing_at_the_very_end_only() {
    let whole = packet(|packet| packet.cookie_echo(b"x"));
    for missing in 0..=3 {
        assert_eq!(
            only(&whole[..whole.len() - missing]),
            Chunk::CookieEcho(b"x")
        );
    }
    let glued = packet_of(&[10, 0, 0, 5, b'x', 11, 0, 0, 4]);
    assert_eq!(
        chunks(&glued),
        [Ok(Chunk::CookieEcho(b"x")), Err(Malformed::Truncated)]
    );
}

#[test]
fn lengths_that_lie_are_malformed_and_end_the_packet() {
    for length in [0u8, 1, 2, 3, 9] {
        let lying = packet_of(&[11, 0, 0, 4, 11, 0, 0, length, 0, 0, 0, 0]);
        assert_eq!(
            chunks(&lying),
            [Ok(Chunk::CookieAck), Err(Malformed::Length)],
            "{length}"
        );
    }
    for stray in 1..=3 {
        let bytes = packet_of(&[&[11, 0, 0, 4][..], &[0; 3][..stray]].concat());
        assert_eq!(
            chunks(&bytes),
            [Ok(Chunk::CookieAck), Err(Malformed::Truncated)]
        );
    }
}

/// CVE-2019-20503: one parser of an address list trusted another's bounds. Here a parameter that reaches over its chunk's end is
/// malformed, though the packet goes on.
#[test]
fn a_parameter_lies_in_its_own_chunk() {
    let asconf = [
        0xc1, 0, 0, 16, 0, 0, 0, 7, 0, 5, 0, 20, 127, 0, 0,
        1, // the address parameter claims 20 bytes, the chunk has 8 left
        6, 0, 0, 12, 1, 1, 1, 1, 1, 1, 1, 1,
    ];
    let bytes = packet_of(&asconf);
    let Some(Ok(Chunk::Asconf { params, .. })) = Packet::parse(&bytes).unwrap().chunks().next()
    else {
        panic!()
    };
    assert_eq!(params.collect::<Vec<_>>(), [Err(Malformed::Length)]);
    let heartbeat = packet_of(&[4, 0, 0, 8, 0, 1, 0, 12, 11, 0, 0, 4, 11, 0, 0, 4]);
    assert_eq!(chunks(&heartbeat), [Err(Malformed::Length)]);
    let nested = packet_of(&[
        0xc1, 0, 0, 24, 0, 0, 0, 7, 0xc0, 1, 0, 15, 0, 0, 0, 1, 0, 5, 0, 8, 1, 2, 3, 4,
    ]);
    let Chunk::Asconf { params, .. } = only(&nested) else {
        panic!()
    };
    assert!(params.collect::<Vec<_>>()[0].is_err());
}

#[test]
fn values_of_a_wrong_size_are_malformed() {
    let cases: [&[u8]; 13] = [
        &[0, 3, 0, 15, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0],
        &[
            0x40, 3, 0, 19, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ],
        &[1, 0, 0, 8, 0, 0, 0, 1],
        &[3, 0, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0],
        &[3, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1],
        &[3, 0, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff],
        &[4, 0, 0, 4],
        &[7, 0, 0, 4],
        &[8, 0, 0, 8, 0, 0, 0, 0],
        &[15, 0, 0, 6, 0, 0, 0, 0],
        &[0xc0, 0, 0, 10, 0, 0, 0, 1, 0, 1, 0, 0],
        &[0xc2, 0, 0, 12, 0, 0, 0, 1, 0, 1, 0, 0],
        &[0xc1, 0, 0, 6, 0, 0, 0, 0],
    ];
    for bytes in cases {
        let bytes = packet_of(bytes);
        let all = chunks(&bytes);
        assert!(matches!(all[..], [Err(_)]), "{all:?}");
    }
}

#[test]
fn a_packet_cut_anywhere_gives_the_chunks_before_the_cut_and_at_most_one_error() {
    let n = [1, 2, 3, 4];
    let unknown = unknown_param(b"abc");
    let params = every_param(
        n,
        &[[1, 2, 3, 4].into(), [7; 16].into()],
        b"abcde",
        &unknown,
    );
    let head = InitHead {
        tag: 1,
        window: 2,
        outbound: 3,
        inbound: 4,
        tsn: Tsn(5),
    };
    let whole = packet(|packet| {
        packet.data(&DataHead::default(), b"hello");
        packet.init(kind::INIT, &head, |to| put_params(&params, to));
        packet.sack(Tsn(1), 2, &[(2, 3)], &[Tsn(4)]);
        packet.error(|to| put_causes(&every_cause(5, b"xyz"), to));
        packet.forward(Tsn(1), true, &[Skipped::default()]);
    });
    let all = chunks(&whole);
    for length in HEADER..whole.len() {
        let cut = chunks(&whole[..length]);
        let read: Vec<_> = cut.iter().filter(|chunk| chunk.is_ok()).collect();
        assert!(read.iter().zip(&all).all(|(a, b)| *a == b));
        assert!(cut.len() - read.len() <= 1);
    }
    for length in 0..HEADER {
        assert_eq!(
            Packet::parse(&whole[..length]).err(),
            Some(Malformed::Truncated)
        );
    }
}

#[test]
fn the_upper_bits_of_unknown_types_say_what_to_do() {
    let all = |kind: u8| (chunk::stop(kind), chunk::report(kind));
    assert_eq!(
        [0x3f, 0x7f, 0xbf, 0xff].map(all),
        [(true, false), (true, true), (false, false), (false, true)]
    );
    let all = |kind: u16| (param::stop(kind), param::report(kind));
    assert_eq!(
        [0x3fff, 0x7fff, 0xbfff, 0xffff].map(all),
        [(true, false), (true, true), (false, false), (false, true)]
    );
    let bytes = packet_of(&[0xfe, 3, 0, 5, 1, 0, 0, 0, 11, 0, 0, 4]);
    let unknown = Chunk::Unknown {
        kind: 0xfe,
        flags: 3,
        whole: &[0xfe, 3, 0, 5, 1],
    };
    assert_eq!(chunks(&bytes), [Ok(unknown), Ok(Chunk::CookieAck)]);
    let packet = Packet::parse(&bytes).unwrap();
    assert_eq!(packet.chunks().kind(), Some(0xfe));
}

#[test]
fn the_fixed_part_of_an_init_is_judged() {
    let head = InitHead {
        tag: 1,
        window: 1500,
        outbound: 1,
        inbound: 1,
        tsn: Tsn(0),
    };
    let fault = |head| {
        let packet = packet(|packet| packet.init(kind::INIT, &head, |_| ()));
        let Chunk::Init(init) = only(&packet) else {
            panic!()
        };
        init.fault()
    };
    assert_eq!(fault(head), None);
    assert_eq!(
        fault(InitHead {
            tag: 0,
            outbound: 0,
            ..head
        }),
        Some(InitFault::Tag)
    );
    assert_eq!(
        fault(InitHead {
            outbound: 0,
            ..head
        }),
        Some(InitFault::Streams)
    );
    assert_eq!(
        fault(InitHead { inbound: 0, ..head }),
        Some(InitFault::Streams)
    );
    assert_eq!(
        fault(InitHead {
            window: 1499,
            ..head
        }),
        Some(InitFault::Window)
    );
}

#[test]
fn the_checksum_is_right_zero_or_wrong() {
    let mut bytes = packet(|packet| packet.cookie_ack());
    let checksum = |bytes: &[u8]| Packet::parse(bytes).unwrap().checksum();
    assert_eq!(checksum(&bytes), Checksum::Right);
    for bit in 32..bytes.len() * 8 {
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(checksum(&bytes), Checksum::Wrong, "bit {bit}");
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    bytes[8..12].fill(0);
    assert_eq!(checksum(&bytes), Checksum::Zero);
    let mut out = Vec::new();
    let mut without = PacketBuilder::begin(&mut out, 5000, 6000, 0x0102_0304, 100);
    without.cookie_ack();
    without.finish(None, false);
    assert_eq!(out, bytes);
}

#[test]
fn packets_from_or_to_port_0_are_malformed() {
    assert!(Packet::parse(&[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
    assert!(Packet::parse(&[0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
    assert!(Packet::parse(&[0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]).is_ok());
}

#[test]
fn a_builder_counts_room_and_takes_its_packet_back() {
    let mut out = vec![7; 3];
    let mut packet = PacketBuilder::begin(&mut out, 1, 2, 3, 102);
    assert!(packet.is_empty());
    assert_eq!((packet.len(), packet.room()), (12, 88));
    packet.data(&DataHead::default(), b"a");
    assert_eq!((packet.len(), packet.room()), (32, 68));
    packet.cancel();
    assert_eq!(out, [7; 3]);
    let mut packet = PacketBuilder::begin(&mut out, 1, 2, 3, 102);
    packet.pad(90);
    assert_eq!(packet.room(), 0);
    assert_eq!(packet.finish(None, true), 104);
    assert_eq!(only(&out[3..]), Chunk::Pad);
}

#[test]
fn an_item_too_long_for_its_length_field_is_cut_not_forged() {
    let mut out = Vec::new();
    CauseBuilder::new(&mut out)
        .put(&Cause::UserAbort(&[1; 70_000]))
        .put(&Cause::OutOfResource);
    let read: Vec<_> = Causes::new(&out).map(Result::unwrap).collect();
    assert_eq!(read, [Cause::UserAbort(&[1; 65_531]), Cause::OutOfResource]);
}

#[test]
fn a_value_that_a_known_cause_does_not_allow_is_kept_as_unknown_or_refused() {
    let bad = [0, 4, 0, 8, 1, 2, 3, 4];
    assert_eq!(
        Causes::new(&bad).collect::<Vec<_>>(),
        [Err(Malformed::Length)]
    );
    let missing = [0, 2, 0, 12, 0, 0, 0, 1, 0, 7, 0, 0];
    let read: Vec<_> = Causes::new(&missing).map(Result::unwrap).collect();
    assert_eq!(read, [Cause::MissingParams(List::parse(&[0, 7]).unwrap())]);
    let lying = [0, 2, 0, 10, 0xff, 0xff, 0xff, 0xff, 0, 7];
    assert_eq!(
        Causes::new(&lying).collect::<Vec<_>>(),
        [Err(Malformed::Length)]
    );
}

#[test]
fn the_auth_chunk_says_where_it_begins() {
    let bytes = packet_of(&[11, 0, 0, 4, 15, 0, 0, 10, 0, 2, 0, 1, 8, 9]);
    let expected = Auth {
        key: 2,
        hmac: 1,
        digest: &[8, 9],
        at: 16,
    };
    assert_eq!(chunks(&bytes)[1], Ok(Chunk::Auth(expected)));
    assert_eq!(bytes[expected.at], kind::AUTH);
}

#[test]
fn an_iterator_ends_with_its_error() {
    let mut items = Tlvs::new(&[0, 1, 0, 2, 0, 0, 0, 4]);
    assert_eq!(items.next(), Some(Err(Malformed::Length)));
    assert_eq!(items.next(), None);
}
