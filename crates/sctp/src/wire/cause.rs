//! Error causes of ABORT, ERROR and the ASCONF error indication (RFC 9260 section 3.3.10, RFC 4895, RFC 5061), read and written.

use super::tlv::{List, Malformed, Tlv, Tlvs, Writer};
use crate::serial::Tsn;

/// Cause codes.
pub mod code {
    pub const INVALID_STREAM: u16 = 1;
    pub const MISSING_PARAMS: u16 = 2;
    pub const STALE_COOKIE: u16 = 3;
    pub const OUT_OF_RESOURCE: u16 = 4;
    pub const UNRESOLVABLE_ADDRESS: u16 = 5;
    pub const UNRECOGNIZED_CHUNK: u16 = 6;
    pub const INVALID_MANDATORY: u16 = 7;
    pub const UNRECOGNIZED_PARAMS: u16 = 8;
    pub const NO_USER_DATA: u16 = 9;
    pub const COOKIE_WHILE_SHUTDOWN: u16 = 10;
    pub const RESTART_NEW_ADDRESSES: u16 = 11;
    pub const USER_ABORT: u16 = 12;
    pub const PROTOCOL_VIOLATION: u16 = 13;
    pub const DELETE_LAST_ADDRESS: u16 = 0xa0;
    pub const RESOURCE_SHORTAGE: u16 = 0xa1;
    pub const DELETE_SOURCE_ADDRESS: u16 = 0xa2;
    pub const ILLEGAL_ASCONF_ACK: u16 = 0xa3;
    pub const NO_AUTHORIZATION: u16 = 0xa4;
    pub const UNSUPPORTED_HMAC: u16 = 0x105;
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause<'a> {
    InvalidStream(u16),
    /// Types of the parameters that were missed.
    MissingParams(List<'a>),
    /// Microseconds beyond the cookie's life.
    StaleCookie(u32),
    OutOfResource,
    /// The address parameter.
    UnresolvableAddress(&'a [u8]),
    /// The chunk.
    UnrecognizedChunk(&'a [u8]),
    InvalidMandatory,
    /// The parameters.
    UnrecognizedParams(&'a [u8]),
    NoUserData(Tsn),
    CookieWhileShutdown,
    /// The address parameters that the association did not have before.
    RestartNewAddresses(&'a [u8]),
    /// The reason that the peer's user gave.
    UserAbort(&'a [u8]),
    ProtocolViolation(&'a [u8]),
    /// RFC 5061: each with the ASCONF parameter that failed.
    DeleteLastAddress(&'a [u8]),
    ResourceShortage(&'a [u8]),
    DeleteSourceAddress(&'a [u8]),
    IllegalAsconfAck,
    NoAuthorization(&'a [u8]),
    /// RFC 4895.
    UnsupportedHmac(u16),
    Unknown {
        code: u16,
        value: &'a [u8],
    },
}

/// Causes in exactly the bytes of their chunk or parameter. An error is the last item.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Causes<'a>(Tlvs<'a>);

impl<'a> Causes<'a> {
    pub const fn new(bytes: &'a [u8]) -> Self {
        Causes(Tlvs::new(bytes))
    }

    /// The bytes not yet read.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.0.rest()
    }

    /// The well-formed causes, to be kept.
    pub fn to_owned(&self) -> Vec<CauseOwned> {
        self.map_while(Result::ok).map(CauseOwned::from).collect()
    }
}

impl<'a> Iterator for Causes<'a> {
    type Item = Result<Cause<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let cause = self.0.next()?.and_then(|item| Cause::parse(&item));
        if cause.is_err() {
            self.0 = Tlvs::default();
        }
        Some(cause)
    }
}

impl<'a> Cause<'a> {
    fn parse(item: &Tlv<'a>) -> Result<Cause<'a>, Malformed> {
        let value = item.value;
        Ok(match item.kind {
            code::INVALID_STREAM => {
                let [high, low, _, _] = exactly::<4>(value)?;
                Cause::InvalidStream(u16::from_be_bytes([high, low]))
            }
            code::MISSING_PARAMS => Cause::MissingParams(missing(value)?),
            code::STALE_COOKIE => Cause::StaleCookie(u32::from_be_bytes(exactly(value)?)),
            code::OUT_OF_RESOURCE => exactly::<0>(value).map(|_| Cause::OutOfResource)?,
            code::UNRESOLVABLE_ADDRESS => Cause::UnresolvableAddress(value),
            code::UNRECOGNIZED_CHUNK => Cause::UnrecognizedChunk(value),
            code::INVALID_MANDATORY => exactly::<0>(value).map(|_| Cause::InvalidMandatory)?,
            code::UNRECOGNIZED_PARAMS => Cause::UnrecognizedParams(value),
            code::NO_USER_DATA => Cause::NoUserData(Tsn(u32::from_be_bytes(exactly(value)?))),
            code::COOKIE_WHILE_SHUTDOWN => {
                exactly::<0>(value).map(|_| Cause::CookieWhileShutdown)?
            }
            code::RESTART_NEW_ADDRESSES => Cause::RestartNewAddresses(value),
            code::USER_ABORT => Cause::UserAbort(value),
            code::PROTOCOL_VIOLATION => Cause::ProtocolViolation(value),
            code::DELETE_LAST_ADDRESS => Cause::DeleteLastAddress(value),
            code::RESOURCE_SHORTAGE => Cause::ResourceShortage(value),
            code::DELETE_SOURCE_ADDRESS => Cause::DeleteSourceAddress(value),
            code::ILLEGAL_ASCONF_ACK => exactly::<0>(value).map(|_| Cause::IllegalAsconfAck)?,
            code::NO_AUTHORIZATION => Cause::NoAuthorization(value),
            code::UNSUPPORTED_HMAC => Cause::UnsupportedHmac(u16::from_be_bytes(exactly(value)?)),
            code => Cause::Unknown { code, value },
        })
    }

    pub fn code(&self) -> u16 {
        match self {
            Cause::InvalidStream(_) => code::INVALID_STREAM,
            Cause::MissingParams(_) => code::MISSING_PARAMS,
            Cause::StaleCookie(_) => code::STALE_COOKIE,
            Cause::OutOfResource => code::OUT_OF_RESOURCE,
            Cause::UnresolvableAddress(_) => code::UNRESOLVABLE_ADDRESS,
            Cause::UnrecognizedChunk(_) => code::UNRECOGNIZED_CHUNK,
            Cause::InvalidMandatory => code::INVALID_MANDATORY,
            Cause::UnrecognizedParams(_) => code::UNRECOGNIZED_PARAMS,
            Cause::NoUserData(_) => code::NO_USER_DATA,
            Cause::CookieWhileShutdown => code::COOKIE_WHILE_SHUTDOWN,
            Cause::RestartNewAddresses(_) => code::RESTART_NEW_ADDRESSES,
            Cause::UserAbort(_) => code::USER_ABORT,
            Cause::ProtocolViolation(_) => code::PROTOCOL_VIOLATION,
            Cause::DeleteLastAddress(_) => code::DELETE_LAST_ADDRESS,
            Cause::ResourceShortage(_) => code::RESOURCE_SHORTAGE,
            Cause::DeleteSourceAddress(_) => code::DELETE_SOURCE_ADDRESS,
            Cause::IllegalAsconfAck => code::ILLEGAL_ASCONF_ACK,
            Cause::NoAuthorization(_) => code::NO_AUTHORIZATION,
            Cause::UnsupportedHmac(_) => code::UNSUPPORTED_HMAC,
            Cause::Unknown { code, .. } => *code,
        }
    }
}

/// A cause that outlives its packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CauseOwned {
    pub code: u16,
    value: Vec<u8>,
}

impl CauseOwned {
    pub fn get(&self) -> Cause<'_> {
        let item = Tlv {
            kind: self.code,
            value: &self.value,
            whole: &[],
        };
        Cause::parse(&item).unwrap_or(Cause::Unknown {
            code: self.code,
            value: &self.value,
        })
    }

    /// The cause's bytes behind its header.
    pub fn value(&self) -> &[u8] {
        &self.value
    }
}

impl From<Cause<'_>> for CauseOwned {
    fn from(cause: Cause<'_>) -> Self {
        let mut value = Vec::new();
        CauseBuilder::new(&mut value).put(&cause);
        value.drain(..4);
        CauseOwned {
            code: cause.code(),
            value,
        }
    }
}

/// Appends causes to a chunk or parameter.
pub struct CauseBuilder<'o>(Writer<'o>);

impl<'o> CauseBuilder<'o> {
    /// Causes from the end of `out` on, which are counted from there.
    pub fn new(out: &'o mut Vec<u8>) -> Self {
        CauseBuilder(Writer::new(out))
    }

    pub fn put(&mut self, cause: &Cause<'_>) -> &mut Self {
        let code = cause.code();
        match *cause {
            Cause::InvalidStream(stream) => {
                self.0.bytes(code, &(u32::from(stream) << 16).to_be_bytes())
            }
            Cause::MissingParams(kinds) => self.0.item(code, |out| {
                out.extend_from_slice(&(kinds.len() as u32).to_be_bytes());
                out.extend_from_slice(kinds.as_bytes());
            }),
            Cause::StaleCookie(number) | Cause::NoUserData(Tsn(number)) => {
                self.0.bytes(code, &number.to_be_bytes())
            }
            Cause::UnsupportedHmac(id) => self.0.bytes(code, &id.to_be_bytes()),
            Cause::OutOfResource
            | Cause::InvalidMandatory
            | Cause::CookieWhileShutdown
            | Cause::IllegalAsconfAck => {
                self.0.bytes(code, &[]);
            }
            Cause::UnresolvableAddress(value)
            | Cause::UnrecognizedChunk(value)
            | Cause::UnrecognizedParams(value)
            | Cause::RestartNewAddresses(value)
            | Cause::UserAbort(value)
            | Cause::ProtocolViolation(value)
            | Cause::DeleteLastAddress(value)
            | Cause::ResourceShortage(value)
            | Cause::DeleteSourceAddress(value)
            | Cause::NoAuthorization(value)
            | Cause::Unknown { value, .. } => self.0.bytes(code, value),
        }
        self
    }
}

fn exactly<const N: usize>(value: &[u8]) -> Result<[u8; N], Malformed> {
    value.try_into().map_err(|_| Malformed::Length)
}

/// The count says how many types follow; a list of an odd count may end in padding that the length counts.
fn missing(value: &[u8]) -> Result<List<'_>, Malformed> {
    let (count, kinds) = value.split_first_chunk().ok_or(Malformed::Truncated)?;
    let bytes = (u32::from_be_bytes(*count) as usize)
        .checked_mul(2)
        .ok_or(Malformed::Length)?;
    List::parse(kinds.get(..bytes).ok_or(Malformed::Length)?)
}
