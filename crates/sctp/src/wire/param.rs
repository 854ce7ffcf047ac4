//! Parameters of INIT, INIT ACK, HEARTBEAT, ASCONF, ASCONF ACK and RE-CONFIG, read and written.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::cause::Causes;
use super::items::{Field, Reserved, items};
use super::tlv::{List, Malformed, Tlv, Tlvs, Writer};
use crate::Tsn;

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

items! {
    /// Parameter types.
    numbers kind;
    enum Param<'a>, Unknown { kind, whole };
    /// Parameters in exactly the bytes of their chunk. An error is the last item.
    struct Params;

    HEARTBEAT = 1 => Heartbeat(info: &'a [u8]);
    IPV4 = 5 => Ipv4(address: Ipv4Addr);
    IPV6 = 6 => Ipv6(address: Ipv6Addr);
    COOKIE = 7 => Cookie(bytes: &'a [u8]);
    /// A parameter of our INIT that the peer does not know, as we sent it.
    UNRECOGNIZED = 8 => Unrecognized(whole: &'a [u8]);
    /// Milliseconds wished on top of the cookie's life.
    COOKIE_PRESERVATIVE = 9 => CookiePreservative(milliseconds: u32);
    /// Names are not resolved: the parameter goes back in the cause "unresolvable address".
    HOST_NAME = 11 => HostName(name: &'a [u8]);
    ADDRESS_TYPES = 12 => SupportedAddressTypes(types: List<'a>);
    /// RFC 6525 section 4; an empty list means all streams.
    OUTGOING_RESET = 13 => OutgoingReset { request: u32, response: u32, last: Tsn, streams: List<'a> };
    INCOMING_RESET = 14 => IncomingReset { request: u32, streams: List<'a> };
    TSN_RESET = 15 => TsnReset { request: u32 };
    /// `next`: the sender's and the receiver's next TSN, in the answer to a TSN reset.
    RESPONSE = 16 => Response { request: u32, result: u32, next: Option<(Tsn, Tsn)> };
    ADD_OUTGOING = 17 => AddOutgoing { request: u32, streams: u16 as Reserved };
    ADD_INCOMING = 18 => AddIncoming { request: u32, streams: u16 as Reserved };
    ECN = 0x8000 => EcnCapable;
    /// The error detection method that stands in for the checksum (RFC 9653).
    ZERO_CHECKSUM = 0x8001 => ZeroChecksum(method: u32);
    RANDOM = 0x8002 => Random(bytes: &'a [u8]);
    CHUNK_LIST = 0x8003 => ChunkList(kinds: &'a [u8]);
    HMAC_ALGORITHMS = 0x8004 => HmacAlgorithms(ids: List<'a>);
    /// So many bytes that mean nothing.
    PADDING = 0x8005 => Padding(length: usize);
    /// Chunk types (RFC 5061 section 4.2.7).
    EXTENSIONS = 0x8008 => SupportedExtensions(kinds: &'a [u8]);
    FORWARD_TSN = 0xc000 => ForwardTsnSupported;
    /// RFC 5061 section 4.2.
    ADD_IP = 0xc001 => AddIp { correlation: u32, address: IpAddr };
    DELETE_IP = 0xc002 => DeleteIp { correlation: u32, address: IpAddr };
    ERROR_CAUSE = 0xc003 => ErrorCauseIndication { correlation: u32, causes: Causes<'a> };
    SET_PRIMARY = 0xc004 => SetPrimary { correlation: u32, address: IpAddr };
    SUCCESS = 0xc005 => SuccessIndication { correlation: u32 };
    ADAPTATION = 0xc006 => AdaptationLayer(indication: u32);
}

/// The one address parameter that the rest is.
impl Field<'_> for IpAddr {
    fn read(rest: &mut &[u8]) -> Result<Self, Malformed> {
        let mut params = Params::new(core::mem::take(rest));
        let address = params.next().ok_or(Malformed::Truncated)??.as_address();
        match (address, params.next()) {
            (Some(address), None) => Ok(address),
            _ => Err(Malformed::Value("not one address")),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        ParamBuilder::new(out).put(&(*self).into());
    }
}

impl From<IpAddr> for Param<'_> {
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Param::Ipv4(address),
            IpAddr::V6(address) => Param::Ipv6(address),
        }
    }
}

impl Param<'_> {
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
        match *param {
            Param::Unknown { whole, .. } => self.0.raw(whole),
            _ => self.0.item(param.kind(), |out| param.write(out)),
        }
        self
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
            numbers.iter().for_each(|number| number.write(out));
            list.iter()
                .for_each(|number| Field::<()>::write(number, out));
        });
        self
    }
}
