//! Error causes of ABORT, ERROR and the ASCONF error indication (RFC 9260 section 3.3.10, RFC 4895, RFC 5061), read and written.

use super::items::{Counted, Field, Reserved, items};
use super::tlv::{List, Malformed, Tlv, Tlvs, Writer};
use crate::Tsn;

items! {
    /// Cause codes.
    numbers code;
    enum Cause<'a>, Unknown { code, value };
    /// Causes in exactly the bytes of their chunk or parameter. An error is the last item.
    struct Causes;

    INVALID_STREAM = 1 => InvalidStream(stream: u16 as Reserved);
    /// Types of the parameters that were missed.
    MISSING_PARAMS = 2 => MissingParams(kinds: List<'a> as Counted);
    /// Microseconds beyond the cookie's life.
    STALE_COOKIE = 3 => StaleCookie(microseconds: u32);
    OUT_OF_RESOURCE = 4 => OutOfResource;
    /// The address parameter.
    UNRESOLVABLE_ADDRESS = 5 => UnresolvableAddress(param: &'a [u8]);
    /// The chunk.
    UNRECOGNIZED_CHUNK = 6 => UnrecognizedChunk(chunk: &'a [u8]);
    INVALID_MANDATORY = 7 => InvalidMandatory;
    /// The parameters.
    UNRECOGNIZED_PARAMS = 8 => UnrecognizedParams(params: &'a [u8]);
    NO_USER_DATA = 9 => NoUserData(tsn: Tsn);
    COOKIE_WHILE_SHUTDOWN = 10 => CookieWhileShutdown;
    /// The address parameters that the association did not have before.
    RESTART_NEW_ADDRESSES = 11 => RestartNewAddresses(params: &'a [u8]);
    /// The reason that the peer's user gave.
    USER_ABORT = 12 => UserAbort(reason: &'a [u8]);
    PROTOCOL_VIOLATION = 13 => ProtocolViolation(text: &'a [u8]);
    /// RFC 5061: each with the ASCONF parameter that failed.
    DELETE_LAST_ADDRESS = 0xa0 => DeleteLastAddress(param: &'a [u8]);
    RESOURCE_SHORTAGE = 0xa1 => ResourceShortage(param: &'a [u8]);
    DELETE_SOURCE_ADDRESS = 0xa2 => DeleteSourceAddress(param: &'a [u8]);
    ILLEGAL_ASCONF_ACK = 0xa3 => IllegalAsconfAck;
    NO_AUTHORIZATION = 0xa4 => NoAuthorization(param: &'a [u8]);
    /// RFC 4895.
    UNSUPPORTED_HMAC = 0x105 => UnsupportedHmac(id: u16);
}

impl<'a> Field<'a> for Causes<'a> {
    fn read(rest: &mut &'a [u8]) -> Result<Self, Malformed> {
        Ok(Causes::new(core::mem::take(rest)))
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }
}

impl Causes<'_> {
    /// The well-formed causes, to be kept.
    pub fn to_owned(&self) -> Vec<CauseOwned> {
        self.map_while(Result::ok).map(CauseOwned::from).collect()
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
        cause.write(&mut value);
        // What no length field can tell is cut, as on the wire.
        value.truncate(usize::from(u16::MAX) - 4);
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
        self.0.item(cause.code(), |out| cause.write(out));
        self
    }
}
