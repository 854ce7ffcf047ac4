//! Parameters of INIT, INIT ACK, HEARTBEAT, ASCONF, ASCONF ACK and RE-CONFIG, read and written.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::cause::Causes;
use super::tlv::{List, Malformed, Tlv, Tlvs, Writer};
use crate::serial::Tsn;

/// Parameter types.
pub mod kind {
    pub const HEARTBEAT: u16 = 1;
    pub const IPV4: u16 = 5;
    pub const IPV6: u16 = 6;
    pub const COOKIE: u16 = 7;
    pub const UNRECOGNIZED: u16 = 8;
    pub const COOKIE_PRESERVATIVE: u16 = 9;
    pub const HOST_NAME: u16 = 11;
    pub const ADDRESS_TYPES: u16 = 12;
    pub const OUTGOING_RESET: u16 = 13;
    pub const INCOMING_RESET: u16 = 14;
    pub const TSN_RESET: u16 = 15;
    pub const RESPONSE: u16 = 16;
    pub const ADD_OUTGOING: u16 = 17;
    pub const ADD_INCOMING: u16 = 18;
    pub const ECN: u16 = 0x8000;
    pub const ZERO_CHECKSUM: u16 = 0x8001;
    pub const RANDOM: u16 = 0x8002;
    pub const CHUNK_LIST: u16 = 0x8003;
    pub const HMAC_ALGORITHMS: u16 = 0x8004;
    pub const PADDING: u16 = 0x8005;
    pub const EXTENSIONS: u16 = 0x8008;
    pub const FORWARD_TSN: u16 = 0xc000;
    pub const ADD_IP: u16 = 0xc001;
    pub const DELETE_IP: u16 = 0xc002;
    pub const ERROR_CAUSE: u16 = 0xc003;
    pub const SET_PRIMARY: u16 = 0xc004;
    pub const SUCCESS: u16 = 0xc005;
    pub const ADAPTATION: u16 = 0xc006;
}

/// An unknown parameter of this type ends the handling of its chunk (upper bit clear).
#[inline]
pub const fn stop(kind: u16) -> bool {
    kind & 0x8000 == 0
}

/// An unknown parameter of this type is reported to the peer (second bit set).
#[inline]
pub const fn report(kind: u16) -> bool {
    kind & 0x4000 != 0
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Param<'a> {
    Ipv4(Ipv4Addr),
    Ipv6(Ipv6Addr),
    Cookie(&'a [u8]),
    /// A parameter of our INIT that the peer does not know, as we sent it.
    Unrecognized(&'a [u8]),
    /// Milliseconds wished on top of the cookie's life.
    CookiePreservative(u32),
    SupportedAddressTypes(List<'a>),
    /// The whole parameter: names are not resolved, and it goes back in the cause "unresolvable address".
    HostName(&'a [u8]),
    EcnCapable,
    ForwardTsnSupported,
    /// Chunk types (RFC 5061 section 4.2.7).
    SupportedExtensions(&'a [u8]),
    Random(&'a [u8]),
    ChunkList(&'a [u8]),
    HmacAlgorithms(List<'a>),
    /// So many bytes that mean nothing.
    Padding(usize),
    AddIp {
        correlation: u32,
        address: IpAddr,
    },
    DeleteIp {
        correlation: u32,
        address: IpAddr,
    },
    SetPrimary {
        correlation: u32,
        address: IpAddr,
    },
    SuccessIndication {
        correlation: u32,
    },
    ErrorCauseIndication {
        correlation: u32,
        causes: Causes<'a>,
    },
    AdaptationLayer(u32),
    /// The error detection method that stands in for the checksum (RFC 9653).
    ZeroChecksum(u32),
    Heartbeat(&'a [u8]),
    /// RFC 6525; an empty list means all streams.
    OutgoingReset {
        request: u32,
        response: u32,
        last: Tsn,
        streams: List<'a>,
    },
    IncomingReset {
        request: u32,
        streams: List<'a>,
    },
    TsnReset {
        request: u32,
    },
    /// `next`: the sender's and the receiver's next TSN, in the answer to a TSN reset.
    Response {
        request: u32,
        result: u32,
        next: Option<(Tsn, Tsn)>,
    },
    AddOutgoing {
        request: u32,
        streams: u16,
    },
    AddIncoming {
        request: u32,
        streams: u16,
    },
    Unknown {
        kind: u16,
        whole: &'a [u8],
    },
}

impl From<IpAddr> for Param<'_> {
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Param::Ipv4(address),
            IpAddr::V6(address) => Param::Ipv6(address),
        }
    }
}

/// Parameters in exactly the bytes of their chunk. An error is the last item.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Params<'a>(Tlvs<'a>);

impl<'a> Params<'a> {
    pub const fn new(bytes: &'a [u8]) -> Self {
        Params(Tlvs::new(bytes))
    }

    /// The bytes not yet read.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.0.rest()
    }
}

impl<'a> Iterator for Params<'a> {
    type Item = Result<Param<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let param = self.0.next()?.and_then(|item| Param::parse(&item));
        if param.is_err() {
            self.0 = Tlvs::default();
        }
        Some(param)
    }
}

impl<'a> Param<'a> {
    pub(crate) fn parse(item: &Tlv<'a>) -> Result<Param<'a>, Malformed> {
        let value = item.value;
        Ok(match item.kind {
            kind::HEARTBEAT => Param::Heartbeat(value),
            kind::IPV4 => Param::Ipv4(Ipv4Addr::from(exactly::<4>(value)?)),
            kind::IPV6 => Param::Ipv6(Ipv6Addr::from(exactly::<16>(value)?)),
            kind::COOKIE => Param::Cookie(value),
            kind::UNRECOGNIZED => Param::Unrecognized(value),
            kind::COOKIE_PRESERVATIVE => Param::CookiePreservative(number(value)?),
            kind::HOST_NAME => Param::HostName(item.whole),
            kind::ADDRESS_TYPES => Param::SupportedAddressTypes(List::parse(value)?),
            kind::ECN => exactly::<0>(value).map(|_| Param::EcnCapable)?,
            kind::FORWARD_TSN => exactly::<0>(value).map(|_| Param::ForwardTsnSupported)?,
            kind::EXTENSIONS => Param::SupportedExtensions(value),
            kind::RANDOM => Param::Random(value),
            kind::CHUNK_LIST => Param::ChunkList(value),
            kind::HMAC_ALGORITHMS => Param::HmacAlgorithms(List::parse(value)?),
            kind::PADDING => Param::Padding(value.len()),
            kind::ADAPTATION => Param::AdaptationLayer(number(value)?),
            kind::ZERO_CHECKSUM => Param::ZeroChecksum(number(value)?),
            kind::ADD_IP
            | kind::DELETE_IP
            | kind::SET_PRIMARY
            | kind::SUCCESS
            | kind::ERROR_CAUSE => Param::parse_asconf(item.kind, value)?,
            kind::OUTGOING_RESET..=kind::ADD_INCOMING => Param::parse_reset(item.kind, value)?,
            kind => Param::Unknown {
                kind,
                whole: item.whole,
            },
        })
    }

    /// RFC 5061 section 4.2.
    fn parse_asconf(kind: u16, value: &'a [u8]) -> Result<Param<'a>, Malformed> {
        let (correlation, rest) = split_number(value)?;
        Ok(match kind {
            kind::ADD_IP => Param::AddIp {
                correlation,
                address: address(rest)?,
            },
            kind::DELETE_IP => Param::DeleteIp {
                correlation,
                address: address(rest)?,
            },
            kind::SET_PRIMARY => Param::SetPrimary {
                correlation,
                address: address(rest)?,
            },
            kind::SUCCESS => {
                exactly::<0>(rest).map(|_| Param::SuccessIndication { correlation })?
            }
            _ => Param::ErrorCauseIndication {
                correlation,
                causes: Causes::new(rest),
            },
        })
    }

    /// RFC 6525 section 4.
    fn parse_reset(kind: u16, value: &'a [u8]) -> Result<Param<'a>, Malformed> {
        let (request, rest) = split_number(value)?;
        Ok(match kind {
            kind::OUTGOING_RESET => {
                let (response, rest) = split_number(rest)?;
                let (last, rest) = split_number(rest)?;
                Param::OutgoingReset {
                    request,
                    response,
                    last: Tsn(last),
                    streams: List::parse(rest)?,
                }
            }
            kind::INCOMING_RESET => Param::IncomingReset {
                request,
                streams: List::parse(rest)?,
            },
            kind::TSN_RESET => exactly::<0>(rest).map(|_| Param::TsnReset { request })?,
            kind::RESPONSE => {
                let (result, rest) = split_number(rest)?;
                Param::Response {
                    request,
                    result,
                    next: next_tsns(rest)?,
                }
            }
            _ => {
                let [high, low, _, _] = exactly::<4>(rest)?;
                let streams = u16::from_be_bytes([high, low]);
                match kind {
                    kind::ADD_OUTGOING => Param::AddOutgoing { request, streams },
                    _ => Param::AddIncoming { request, streams },
                }
            }
        })
    }

    /// The address that this parameter is.
    pub fn as_address(&self) -> Option<IpAddr> {
        match *self {
            Param::Ipv4(address) => Some(address.into()),
            Param::Ipv6(address) => Some(address.into()),
            _ => None,
        }
    }
}

/// Appends parameters to a chunk.
pub struct ParamBuilder<'o>(Writer<'o>);

impl<'o> ParamBuilder<'o> {
    /// Parameters from the end of `out` on, which are counted from there.
    pub fn new(out: &'o mut Vec<u8>) -> Self {
        ParamBuilder(Writer::new(out))
    }

    pub fn put(&mut self, param: &Param<'_>) -> &mut Self {
        use Param::*;
        match *param {
            Ipv4(address) => self.0.bytes(kind::IPV4, &address.octets()),
            Ipv6(address) => self.0.bytes(kind::IPV6, &address.octets()),
            Cookie(bytes) => self.0.bytes(kind::COOKIE, bytes),
            Unrecognized(whole) => self.0.bytes(kind::UNRECOGNIZED, whole),
            CookiePreservative(milliseconds) => {
                self.number(kind::COOKIE_PRESERVATIVE, milliseconds)
            }
            SupportedAddressTypes(types) => self.0.bytes(kind::ADDRESS_TYPES, types.as_bytes()),
            HostName(whole) => self.0.raw(whole),
            EcnCapable => self.0.bytes(kind::ECN, &[]),
            ForwardTsnSupported => self.0.bytes(kind::FORWARD_TSN, &[]),
            SupportedExtensions(kinds) => self.0.bytes(kind::EXTENSIONS, kinds),
            Random(bytes) => self.0.bytes(kind::RANDOM, bytes),
            ChunkList(kinds) => self.0.bytes(kind::CHUNK_LIST, kinds),
            HmacAlgorithms(ids) => self.0.bytes(kind::HMAC_ALGORITHMS, ids.as_bytes()),
            Padding(length) => self
                .0
                .item(kind::PADDING, |out| out.resize(out.len() + length, 0)),
            AddIp {
                correlation,
                address,
            } => self.addressed(kind::ADD_IP, correlation, address),
            DeleteIp {
                correlation,
                address,
            } => self.addressed(kind::DELETE_IP, correlation, address),
            SetPrimary {
                correlation,
                address,
            } => self.addressed(kind::SET_PRIMARY, correlation, address),
            SuccessIndication { correlation } => self.number(kind::SUCCESS, correlation),
            ErrorCauseIndication {
                correlation,
                causes,
            } => self.0.item(kind::ERROR_CAUSE, |out| {
                put_numbers(out, &[correlation]);
                out.extend_from_slice(causes.as_bytes());
            }),
            AdaptationLayer(indication) => self.number(kind::ADAPTATION, indication),
            ZeroChecksum(method) => self.number(kind::ZERO_CHECKSUM, method),
            Heartbeat(info) => self.0.bytes(kind::HEARTBEAT, info),
            OutgoingReset {
                request,
                response,
                last,
                streams,
            } => self.0.item(kind::OUTGOING_RESET, |out| {
                put_numbers(out, &[request, response, last.0]);
                out.extend_from_slice(streams.as_bytes());
            }),
            IncomingReset { request, streams } => self.0.item(kind::INCOMING_RESET, |out| {
                put_numbers(out, &[request]);
                out.extend_from_slice(streams.as_bytes());
            }),
            TsnReset { request } => self.number(kind::TSN_RESET, request),
            Response {
                request,
                result,
                next,
            } => self.0.item(kind::RESPONSE, |out| {
                put_numbers(out, &[request, result]);
                if let Some((ours, theirs)) = next {
                    put_numbers(out, &[ours.0, theirs.0]);
                }
            }),
            AddOutgoing { request, streams } => {
                self.numbers(kind::ADD_OUTGOING, &[request, u32::from(streams) << 16])
            }
            AddIncoming { request, streams } => {
                self.numbers(kind::ADD_INCOMING, &[request, u32::from(streams) << 16])
            }
            Unknown { whole, .. } => self.0.raw(whole),
        }
        self
    }

    pub fn supported_address_types(&mut self, kinds: &[u16]) -> &mut Self {
        self.listed(kind::ADDRESS_TYPES, &[], kinds)
    }

    pub fn hmac_algorithms(&mut self, ids: &[u16]) -> &mut Self {
        self.listed(kind::HMAC_ALGORITHMS, &[], ids)
    }

    /// RFC 6525 section 4.1; no streams means all.
    pub fn outgoing_reset(
        &mut self,
        request: u32,
        response: u32,
        last: Tsn,
        streams: &[u16],
    ) -> &mut Self {
        self.listed(kind::OUTGOING_RESET, &[request, response, last.0], streams)
    }

    /// RFC 6525 section 4.2; no streams means all.
    pub fn incoming_reset(&mut self, request: u32, streams: &[u16]) -> &mut Self {
        self.listed(kind::INCOMING_RESET, &[request], streams)
    }

    fn listed(&mut self, kind: u16, numbers: &[u32], list: &[u16]) -> &mut Self {
        self.0.item(kind, |out| {
            put_numbers(out, numbers);
            list.iter()
                .for_each(|n| out.extend_from_slice(&n.to_be_bytes()));
        });
        self
    }

    fn number(&mut self, kind: u16, number: u32) {
        self.numbers(kind, &[number]);
    }

    fn numbers(&mut self, kind: u16, numbers: &[u32]) {
        self.0.item(kind, |out| put_numbers(out, numbers));
    }

    fn addressed(&mut self, kind: u16, correlation: u32, address: IpAddr) {
        self.0.item(kind, |out| {
            put_numbers(out, &[correlation]);
            ParamBuilder::new(out).put(&address.into());
        });
    }
}

fn put_numbers(out: &mut Vec<u8>, numbers: &[u32]) {
    numbers
        .iter()
        .for_each(|n| out.extend_from_slice(&n.to_be_bytes()));
}

fn exactly<const N: usize>(value: &[u8]) -> Result<[u8; N], Malformed> {
    value.try_into().map_err(|_| Malformed::Length)
}

fn number(value: &[u8]) -> Result<u32, Malformed> {
    exactly(value).map(u32::from_be_bytes)
}

fn split_number(value: &[u8]) -> Result<(u32, &[u8]), Malformed> {
    let (number, rest) = value.split_first_chunk().ok_or(Malformed::Truncated)?;
    Ok((u32::from_be_bytes(*number), rest))
}

/// The one address parameter that these bytes are.
fn address(value: &[u8]) -> Result<IpAddr, Malformed> {
    let mut params = Params::new(value);
    let address = params.next().ok_or(Malformed::Truncated)??.as_address();
    match (address, params.next()) {
        (Some(address), None) => Ok(address),
        _ => Err(Malformed::Value("not one address")),
    }
}

fn next_tsns(rest: &[u8]) -> Result<Option<(Tsn, Tsn)>, Malformed> {
    if rest.is_empty() {
        return Ok(None);
    }
    let (sender, rest) = split_number(rest)?;
    Ok(Some((Tsn(sender), Tsn(number(rest)?))))
}
