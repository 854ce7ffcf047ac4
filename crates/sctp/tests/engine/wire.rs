//! Packets from a hostile network: thousands of mutated and of arbitrary ones. Nothing panics, every slice that is handed out lies
//! in the packet, and every iterator ends.

use std::net::IpAddr;
use std::sync::LazyLock;

use headwater_sctp::serial::{Mid, Ssn, Tsn};
use headwater_sctp::wire::*;
use proptest::prelude::*;
use proptest::sample::Index;

static SAMPLES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(samples);

/// Packets that have every kind of chunk, parameter and cause between them.
fn samples() -> Vec<Vec<u8>> {
    let (v4, v6): (IpAddr, IpAddr) = ([192, 0, 2, 1].into(), [0x20; 16].into());
    let init = InitHead {
        tag: 0x1111_1111,
        window: 65536,
        outbound: 10,
        inbound: 20,
        tsn: Tsn(77),
    };
    let head = DataHead {
        tsn: Tsn(u32::MAX),
        stream: 3,
        ppid: 9,
        begin: true,
        ..DataHead::default()
    };
    let fills: [fn(&mut PacketBuilder<'_>, &Fixed); 6] = [
        |packet, with| {
            packet.sack(Tsn(4), 1 << 20, &[(2, 3), (5, 9)], &[Tsn(4), Tsn(5)]);
            packet.data(&with.head, b"first");
            packet.data(
                &DataHead {
                    interleaved: true,
                    mid: Mid(8),
                    ..with.head
                },
                b"second fragment",
            );
            packet.data(
                &DataHead {
                    interleaved: true,
                    begin: false,
                    end: true,
                    fsn: 1,
                    ..with.head
                },
                b"",
            );
        },
        |packet, with| {
            packet.init(kind::INIT, &with.init, |params| {
                put_all(
                    params,
                    &[
                        with.v4.into(),
                        with.v6.into(),
                        Param::CookiePreservative(3),
                        Param::ForwardTsnSupported,
                        Param::SupportedExtensions(&[0x40, 0x82, 0xc1]),
                        Param::ZeroChecksum(1),
                        Param::Random(&[1; 32]),
                        Param::ChunkList(&[0xc1, 0x80, 1]),
                        Param::AdaptationLayer(6),
                        Param::EcnCapable,
                        Param::Padding(7),
                        Param::SupportedAddressTypes(List::parse(&[0, 5, 0, 6]).expect("whole")),
                        Param::HmacAlgorithms(List::parse(&[0, 3, 0, 1]).expect("whole")),
                    ],
                );
            });
        },
        |packet, with| {
            packet.init(kind::INIT_ACK, &with.init, |params| {
                let unknown = Param::Unknown {
                    kind: 0xbfff,
                    whole: &[0xbf, 0xff, 0, 7, 1, 2, 3],
                };
                put_all(
                    params,
                    &[
                        Param::Cookie(&[0xc0; 101]),
                        Param::Unrecognized(&[0xc0, 0x7f, 0, 5, 1]),
                        unknown,
                    ],
                );
            });
        },
        |packet, _| {
            packet.cookie_echo(&[0xc0; 101]);
            packet.error(|causes| {
                causes
                    .put(&Cause::InvalidStream(3))
                    .put(&Cause::StaleCookie(1000))
                    .put(&Cause::UnrecognizedChunk(&[63, 0, 0, 4]));
                causes
                    .put(&Cause::UnsupportedHmac(2))
                    .put(&Cause::NoUserData(Tsn(1)));
            });
            packet.raw(&[9, 0, 0, 18, 0, 2, 0, 14, 0, 0, 0, 3, 0, 7, 0, 1, 0, 2]);
            packet.cookie_ack();
            packet.heartbeat(kind::HEARTBEAT, &[0x4e; 21]);
            packet.heartbeat(kind::HEARTBEAT_ACK, &[0x4e; 21]);
            packet.pad(33);
        },
        |packet, with| {
            packet.asconf(kind::ASCONF, 5, |params| {
                let changes = [
                    with.v6.into(),
                    Param::AddIp {
                        correlation: 1,
                        address: with.v4,
                    },
                    Param::DeleteIp {
                        correlation: 2,
                        address: with.v6,
                    },
                    Param::SetPrimary {
                        correlation: 3,
                        address: with.v4,
                    },
                ];
                put_all(params, &changes);
            });
            packet.asconf(kind::ASCONF_ACK, 5, |params| {
                let mut refused = Vec::new();
                CauseBuilder::new(&mut refused)
                    .put(&Cause::DeleteLastAddress(&[1, 2, 3]))
                    .put(&Cause::NoAuthorization(b"x"));
                let causes = Causes::new(&refused);
                let answers = [
                    Param::SuccessIndication { correlation: 1 },
                    Param::ErrorCauseIndication {
                        correlation: 2,
                        causes,
                    },
                ];
                put_all(params, &answers);
            });
            packet.auth(7, headwater_sctp::auth::Hmac::Sha1);
            packet.re_config(|params| {
                params
                    .outgoing_reset(1, 2, Tsn(3), &[1, 2, 3])
                    .incoming_reset(4, &[])
                    .put(&Param::TsnReset { request: 5 });
            });
            packet.re_config(|params| {
                params.put(&Param::Response {
                    request: 1,
                    result: 1,
                    next: Some((Tsn(1), Tsn(2))),
                });
                params
                    .put(&Param::AddOutgoing {
                        request: 3,
                        streams: 9,
                    })
                    .put(&Param::AddIncoming {
                        request: 4,
                        streams: 9,
                    });
            });
        },
        |packet, _| {
            let skipped = Skipped {
                stream: 4,
                unordered: true,
                ssn: Ssn(5),
                mid: Mid(6),
            };
            packet.forward(Tsn(9), false, &[skipped, skipped]);
            packet.forward(Tsn(9), true, &[skipped, skipped]);
            packet.shutdown(Tsn(3));
            packet.shutdown_ack();
            packet.shutdown_complete(true);
            packet.raw(&[0xfe, 1, 0, 5, 1]);
            packet.abort(true, |causes| {
                causes
                    .put(&Cause::UserAbort(b"good bye"))
                    .put(&Cause::OutOfResource);
            });
        },
    ];
    let with = Fixed { v4, v6, init, head };
    fills
        .iter()
        .map(|fill| written(|packet| fill(packet, &with)))
        .collect()
}

fn put_all(params: &mut ParamBuilder<'_>, all: &[Param<'_>]) {
    for one in all {
        params.put(one);
    }
}

struct Fixed {
    v4: IpAddr,
    v6: IpAddr,
    init: InitHead,
    head: DataHead,
}

fn written(fill: impl FnOnce(&mut PacketBuilder<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    let mut packet = PacketBuilder::begin(&mut out, 1, 2, 3, 65535);
    fill(&mut packet);
    packet.finish(Some(&any_key()), true);
    out
}

fn any_key() -> headwater_sctp::auth::Key {
    use headwater_sctp::auth::{Auth, Vectors};
    let vectors = Vectors::ours([1; 32], &[], &[]);
    Auth::agree(&vectors, &vectors)
        .and_then(|auth| auth.signing_key().cloned())
        .expect("two good sides")
}

/// Walks over all that a packet has. Gives the number of well-formed chunks.
fn walk(bytes: &[u8]) -> usize {
    let Ok(packet) = Packet::parse(bytes) else {
        return 0;
    };
    let _ = packet.checksum();
    let inside = Inside(bytes);
    let (mut good, mut bad) = (0, 0);
    for chunk in packet.chunks() {
        match chunk {
            Ok(chunk) => {
                good += 1;
                inside.chunk(&chunk);
            }
            Err(_) => bad += 1,
        }
    }
    assert!(
        bad <= 1 && good <= bytes.len() / 4,
        "{good} chunks and {bad} errors in {} bytes",
        bytes.len()
    );
    good
}

struct Inside<'a>(&'a [u8]);

impl Inside<'_> {
    fn slice(&self, part: &[u8]) {
        let (whole, part) = (self.0.as_ptr_range(), part.as_ptr_range());
        assert!(
            part.is_empty() || (whole.start <= part.start && part.end <= whole.end),
            "a slice out of the packet"
        );
    }

    fn chunk(&self, chunk: &Chunk<'_>) {
        match chunk {
            Chunk::Data(data) => self.slice(data.payload),
            Chunk::Init(init) | Chunk::InitAck(init) => self.params(init.params),
            Chunk::Sack(sack) => {
                assert_eq!(sack.gaps().count(), sack.gaps().len());
                assert!(4 * (sack.gaps().len() + sack.duplicates().len()) <= self.0.len());
            }
            Chunk::Heartbeat(bytes) | Chunk::HeartbeatAck(bytes) | Chunk::CookieEcho(bytes) => {
                self.slice(bytes)
            }
            Chunk::Abort { causes, .. } | Chunk::Error(causes) => self.causes(*causes),
            Chunk::Auth(auth) => {
                self.slice(auth.digest);
                assert_eq!(self.0[auth.at], kind::AUTH);
            }
            Chunk::Asconf { params, .. }
            | Chunk::AsconfAck { params, .. }
            | Chunk::ReConfig(params) => self.params(*params),
            Chunk::Forward(forward) => assert!(4 * forward.streams().count() <= self.0.len()),
            Chunk::Unknown { whole, .. } => {
                self.slice(whole);
                assert!(whole.len() >= 4);
            }
            _ => {}
        }
    }

    fn params(&self, params: Params<'_>) {
        self.slice(params.as_bytes());
        for param in params.take_while(Result::is_ok).flatten() {
            match param {
                Param::Cookie(bytes)
                | Param::Unrecognized(bytes)
                | Param::SupportedExtensions(bytes)
                | Param::Random(bytes)
                | Param::ChunkList(bytes)
                | Param::HostName(bytes)
                | Param::Heartbeat(bytes)
                | Param::Unknown { whole: bytes, .. } => self.slice(bytes),
                Param::SupportedAddressTypes(list)
                | Param::HmacAlgorithms(list)
                | Param::OutgoingReset { streams: list, .. }
                | Param::IncomingReset { streams: list, .. } => self.slice(list.as_bytes()),
                Param::ErrorCauseIndication { causes, .. } => self.causes(causes),
                Param::Padding(length) => assert!(length <= self.0.len()),
                _ => {}
            }
        }
    }

    fn causes(&self, causes: Causes<'_>) {
        self.slice(causes.as_bytes());
        assert!(causes.to_owned().len() <= self.0.len() / 4);
        for cause in causes.take_while(Result::is_ok).flatten() {
            match cause {
                Cause::UnresolvableAddress(bytes)
                | Cause::UnrecognizedChunk(bytes)
                | Cause::UnrecognizedParams(bytes)
                | Cause::RestartNewAddresses(bytes)
                | Cause::UserAbort(bytes)
                | Cause::ProtocolViolation(bytes)
                | Cause::Unknown { value: bytes, .. } => self.slice(bytes),
                Cause::MissingParams(list) => self.slice(list.as_bytes()),
                _ => {}
            }
            assert_eq!(CauseOwned::from(cause).get(), cause);
        }
    }
}

/// One thing that happens to a packet on its way.
#[derive(Clone, Debug)]
enum Harm {
    Flip(Index, u8),
    Put(Index, u8),
    /// A length field, or what might be one, gets a value near an edge.
    Length(Index, u16),
    Cut(Index),
    Insert(Index, Vec<u8>),
    Remove(Index, usize),
    /// The bytes from the index on come once more.
    Repeat(Index),
}

fn harm() -> impl Strategy<Value = Harm> {
    let edge = prop_oneof![0u16..24, 0xfff0u16..=0xffff, any::<u16>()];
    prop_oneof![
        (any::<Index>(), 0u8..8).prop_map(|(at, bit)| Harm::Flip(at, bit)),
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Harm::Put(at, byte)),
        (any::<Index>(), edge).prop_map(|(at, length)| Harm::Length(at, length)),
        any::<Index>().prop_map(Harm::Cut),
        (any::<Index>(), proptest::collection::vec(any::<u8>(), 1..9))
            .prop_map(|(at, bytes)| Harm::Insert(at, bytes)),
        (any::<Index>(), 1usize..9).prop_map(|(at, count)| Harm::Remove(at, count)),
        any::<Index>().prop_map(Harm::Repeat),
    ]
}

fn apply(bytes: &mut Vec<u8>, harm: &Harm) {
    if bytes.is_empty() {
        return;
    }
    match harm {
        Harm::Flip(at, bit) => *at.get_mut(bytes) ^= 1 << bit,
        Harm::Put(at, byte) => *at.get_mut(bytes) = *byte,
        Harm::Length(at, length) => {
            let at = at.index(bytes.len()) & !3;
            if let Some(field) = bytes.get_mut(at + 2..at + 4) {
                field.copy_from_slice(&length.to_be_bytes());
            }
        }
        Harm::Cut(at) => bytes.truncate(at.index(bytes.len())),
        Harm::Insert(at, more) => {
            let at = at.index(bytes.len());
            bytes.splice(at..at, more.iter().copied());
        }
        Harm::Remove(at, count) => {
            let at = at.index(bytes.len());
            bytes.drain(at..(at + count).min(bytes.len()));
        }
        Harm::Repeat(at) => bytes.extend_from_within(at.index(bytes.len())..),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8_000))]

    #[test]
    fn mutated_packets_stay_within_their_bounds(
        which in any::<Index>(), harms in proptest::collection::vec(harm(), 1..6),
    ) {
        let mut bytes = which.get(&SAMPLES).clone();
        harms.iter().for_each(|harm| apply(&mut bytes, harm));
        walk(&bytes);
    }

    #[test]
    fn arbitrary_bytes_stay_within_their_bounds(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        walk(&bytes);
    }

    /// Small numbers make lengths and types that mean something more often.
    #[test]
    fn arbitrary_small_bytes_stay_within_their_bounds(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        const COMMON: [u8; 12] = [0, 0, 0, 1, 4, 5, 8, 0x40, 0x80, 0x82, 0xc0, 0xc1];
        let small = bytes.iter().map(|byte| if byte % 2 == 0 { byte / 10 } else { COMMON[usize::from(byte / 22)] });
        walk(&[1; 12].into_iter().chain(small).collect::<Vec<u8>>());
    }
}

#[test]
fn the_samples_themselves_are_well_formed() {
    let counts: Vec<usize> = samples().iter().map(|bytes| walk(bytes)).collect();
    assert_eq!(counts, [4, 1, 1, 7, 5, 7]);
    for bytes in samples() {
        let packet = Packet::parse(&bytes).unwrap();
        assert_eq!(packet.checksum(), Checksum::Right);
        assert!(packet.chunks().all(|chunk| chunk.is_ok()));
    }
}

#[test]
fn every_sample_cut_at_every_length_and_with_every_byte_changed_stays_within_its_bounds() {
    for bytes in samples() {
        for length in 0..=bytes.len() {
            walk(&bytes[..length]);
        }
        for at in 0..bytes.len() {
            for value in [0, 1, 3, 4, 5, 0x7f, 0x80, 0xc0, 0xff] {
                let mut changed = bytes.clone();
                changed[at] = value;
                walk(&changed);
            }
        }
    }
}
