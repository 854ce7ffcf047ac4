//! Chunks, read (RFC 9260 section 3.3; RFC 3758, 4820, 4895, 5061, 6525, 8260).

use core::ops::Deref;

use super::HEADER;
use super::cause::Causes;
use super::param::{Param, Params};
use super::tlv::{Malformed, Tlv, Tlvs};
use crate::{Mid, Ssn, Tsn};

/// Chunk types.
pub mod kind {
    pub const DATA: u8 = 0;
    pub const INIT: u8 = 1;
    pub const INIT_ACK: u8 = 2;
    pub const SACK: u8 = 3;
    pub const HEARTBEAT: u8 = 4;
    pub const HEARTBEAT_ACK: u8 = 5;
    pub const ABORT: u8 = 6;
    pub const SHUTDOWN: u8 = 7;
    pub const SHUTDOWN_ACK: u8 = 8;
    pub const ERROR: u8 = 9;
    pub const COOKIE_ECHO: u8 = 10;
    pub const COOKIE_ACK: u8 = 11;
    pub const SHUTDOWN_COMPLETE: u8 = 14;
    pub const AUTH: u8 = 15;
    pub const I_DATA: u8 = 0x40;
    pub const ASCONF_ACK: u8 = 0x80;
    pub const RE_CONFIG: u8 = 0x82;
    pub const PAD: u8 = 0x84;
    pub const FORWARD_TSN: u8 = 0xc0;
    pub const ASCONF: u8 = 0xc1;
    pub const I_FORWARD_TSN: u8 = 0xc2;
}

pub(super) const END: u8 = 1;
pub(super) const BEGIN: u8 = 2;
pub(super) const UNORDERED: u8 = 4;
pub(super) const IMMEDIATE: u8 = 8;
/// The T bit of ABORT and SHUTDOWN COMPLETE.
pub(super) const REFLECTED: u8 = 1;

/// An unknown chunk of this type ends the handling of its packet (upper bit clear).
#[inline]
pub const fn stop(kind: u8) -> bool {
    kind & 0x80 == 0
}

/// An unknown chunk of this type is reported in an ERROR chunk (second bit set).
#[inline]
pub const fn report(kind: u8) -> bool {
    kind & 0x40 != 0
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Chunk<'a> {
    /// DATA and I-DATA.
    Data(Data<'a>),
    Init(Init<'a>),
    InitAck(Init<'a>),
    Sack(Sack<'a>),
    /// The value of the heartbeat information, to be sent back as it is.
    Heartbeat(&'a [u8]),
    HeartbeatAck(&'a [u8]),
    /// `tcb_missing` is the T bit: the verification tag is the receiver's of the packet that this answers.
    Abort {
        tcb_missing: bool,
        causes: Causes<'a>,
    },
    Error(Causes<'a>),
    Shutdown {
        cumulative: Tsn,
    },
    ShutdownAck,
    ShutdownComplete {
        tcb_missing: bool,
    },
    CookieEcho(&'a [u8]),
    CookieAck,
    Auth(Auth<'a>),
    Asconf {
        serial: u32,
        params: Params<'a>,
    },
    AsconfAck {
        serial: u32,
        params: Params<'a>,
    },
    ReConfig(Params<'a>),
    /// FORWARD-TSN and I-FORWARD-TSN.
    Forward(Forward<'a>),
    Pad,
    Unknown {
        kind: u8,
        flags: u8,
        whole: &'a [u8],
    },
}

/// DATA or I-DATA. Its head's fields are its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Data<'a> {
    pub head: DataHead,
    /// May be empty: the receiver answers with the cause "no user data".
    pub payload: &'a [u8],
}

impl Deref for Data<'_> {
    type Target = DataHead;

    #[inline]
    fn deref(&self) -> &DataHead {
        &self.head
    }
}

/// DATA or, when `interleaved`, I-DATA, without its payload. What the format does not carry is 0: `mid` and `fsn` of DATA; `ssn` of
/// I-DATA, its `ppid` where `begin` is not set and its `fsn` where it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DataHead {
    pub tsn: Tsn,
    pub stream: u16,
    pub ssn: Ssn,
    pub mid: Mid,
    pub fsn: u32,
    pub ppid: u32,
    pub begin: bool,
    pub end: bool,
    pub unordered: bool,
    /// The sender wants a SACK at once (RFC 7053).
    pub immediate: bool,
    pub interleaved: bool,
}

impl DataHead {
    /// Bytes of the chunk in front of its payload.
    #[inline]
    pub const fn len(interleaved: bool) -> usize {
        if interleaved { 20 } else { 16 }
    }

    /// The flags, and what both formats begin with.
    #[inline]
    fn common(flags: u8, [a, b, c, d, high, low]: [u8; 6]) -> DataHead {
        DataHead {
            tsn: Tsn(u32::from_be_bytes([a, b, c, d])),
            stream: u16::from_be_bytes([high, low]),
            begin: flags & BEGIN != 0,
            end: flags & END != 0,
            unordered: flags & UNORDERED != 0,
            immediate: flags & IMMEDIATE != 0,
            ..DataHead::default()
        }
    }
}

/// INIT or INIT ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Init<'a> {
    pub tag: u32,
    pub window: u32,
    pub outbound: u16,
    pub inbound: u16,
    pub tsn: Tsn,
    pub params: Params<'a>,
}

/// Bytes that INIT and INIT ACK must offer at least (RFC 9260 sections 3.3.2 and 3.3.3, erratum 7148).
pub const LEAST_WINDOW: u32 = 1500;

/// Why an INIT or INIT ACK cannot begin an association (RFC 9260 sections 3.3.2 and 3.3.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InitFault {
    /// Dropped without an answer: there is no tag to answer with.
    Tag,
    /// Answered with an ABORT.
    Streams,
    /// Below [`LEAST_WINDOW`]; answered with an ABORT.
    Window,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sack<'a> {
    pub cumulative: Tsn,
    pub window: u32,
    gaps: &'a [[u8; 4]],
    duplicates: &'a [[u8; 4]],
}

/// Which HMAC covers everything from the offset `at` of the packet on, with the digest as zeros.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Auth<'a> {
    pub key: u16,
    pub hmac: u16,
    pub digest: &'a [u8],
    /// Where the AUTH chunk begins in the packet.
    pub at: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Forward<'a> {
    pub cumulative: Tsn,
    /// An I-FORWARD-TSN.
    pub interleaved: bool,
    list: &'a [u8],
}

/// The last message of a stream that will not come. FORWARD-TSN carries `ssn` (of ordered messages only), I-FORWARD-TSN `mid`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Skipped {
    pub stream: u16,
    pub unordered: bool,
    pub ssn: Ssn,
    pub mid: Mid,
}

/// The chunks of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Chunks<'a> {
    items: Tlvs<'a>,
    packet: usize,
}

impl<'a> Chunks<'a> {
    #[inline]
    pub(super) fn new(packet: &'a [u8]) -> Self {
        Chunks {
            items: Tlvs::new(packet.get(HEADER..).unwrap_or_default()),
            packet: packet.len(),
        }
    }

    /// The type of the chunk that is read next, as lists of chunks to be authenticated name it.
    #[inline]
    pub fn kind(&self) -> Option<u8> {
        self.items.rest().first().copied()
    }
}

impl<'a> Iterator for Chunks<'a> {
    type Item = Result<Chunk<'a>, Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let at = self.packet - self.items.rest().len();
        let chunk = self.items.next()?.and_then(|item| Chunk::parse(&item, at));
        if chunk.is_err() {
            self.items = Tlvs::default();
        }
        Some(chunk)
    }
}

impl<'a> Chunk<'a> {
    #[inline]
    fn parse(item: &Tlv<'a>, at: usize) -> Result<Chunk<'a>, Malformed> {
        let (kind, flags) = ((item.kind >> 8) as u8, item.kind as u8);
        match kind {
            kind::DATA => Data::parse(flags, item.value).map(Chunk::Data),
            kind::SACK => Sack::parse(item.value).map(Chunk::Sack),
            kind::I_DATA => Data::parse_interleaved(flags, item.value).map(Chunk::Data),
            _ => Chunk::parse_rare(kind, flags, item, at),
        }
    }

    fn parse_rare(kind: u8, flags: u8, item: &Tlv<'a>, at: usize) -> Result<Chunk<'a>, Malformed> {
        let value = item.value;
        let tcb_missing = flags & REFLECTED != 0;
        Ok(match kind {
            kind::INIT => Chunk::Init(Init::parse(value)?),
            kind::INIT_ACK => Chunk::InitAck(Init::parse(value)?),
            kind::HEARTBEAT => Chunk::Heartbeat(heartbeat_info(value)?),
            kind::HEARTBEAT_ACK => Chunk::HeartbeatAck(heartbeat_info(value)?),
            kind::ABORT => Chunk::Abort {
                tcb_missing,
                causes: Causes::new(value),
            },
            kind::ERROR => Chunk::Error(Causes::new(value)),
            kind::SHUTDOWN => Chunk::Shutdown {
                cumulative: Tsn(only_u32(value)?),
            },
            kind::SHUTDOWN_ACK => nothing(value, Chunk::ShutdownAck)?,
            kind::SHUTDOWN_COMPLETE => nothing(value, Chunk::ShutdownComplete { tcb_missing })?,
            kind::COOKIE_ECHO => Chunk::CookieEcho(value),
            kind::COOKIE_ACK => nothing(value, Chunk::CookieAck)?,
            kind::AUTH => Chunk::Auth(Auth::parse(value, at)?),
            kind::ASCONF | kind::ASCONF_ACK => {
                let (serial, params) = value.split_first_chunk().ok_or(Malformed::Truncated)?;
                let (serial, params) = (u32::from_be_bytes(*serial), Params::new(params));
                if kind == kind::ASCONF {
                    Chunk::Asconf { serial, params }
                } else {
                    Chunk::AsconfAck { serial, params }
                }
            }
            kind::RE_CONFIG => Chunk::ReConfig(Params::new(value)),
            kind::PAD => Chunk::Pad,
            kind::FORWARD_TSN => Chunk::Forward(Forward::parse(value, false)?),
            kind::I_FORWARD_TSN => Chunk::Forward(Forward::parse(value, true)?),
            _ => Chunk::Unknown {
                kind,
                flags,
                whole: item.whole,
            },
        })
    }
}

impl<'a> Data<'a> {
    #[inline]
    fn parse(flags: u8, value: &'a [u8]) -> Result<Self, Malformed> {
        let Some((h, payload)) = value.split_first_chunk::<12>() else {
            return Err(Malformed::Truncated);
        };
        let head = DataHead {
            ssn: Ssn(u16::from_be_bytes([h[6], h[7]])),
            ppid: u32::from_be_bytes([h[8], h[9], h[10], h[11]]),
            ..DataHead::common(flags, [h[0], h[1], h[2], h[3], h[4], h[5]])
        };
        Ok(Data { head, payload })
    }

    #[inline]
    fn parse_interleaved(flags: u8, value: &'a [u8]) -> Result<Self, Malformed> {
        let Some((h, payload)) = value.split_first_chunk::<16>() else {
            return Err(Malformed::Truncated);
        };
        let common = DataHead::common(flags, [h[0], h[1], h[2], h[3], h[4], h[5]]);
        let shared = u32::from_be_bytes([h[12], h[13], h[14], h[15]]);
        let head = DataHead {
            mid: Mid(u32::from_be_bytes([h[8], h[9], h[10], h[11]])),
            fsn: if common.begin { 0 } else { shared },
            ppid: if common.begin { shared } else { 0 },
            interleaved: true,
            ..common
        };
        Ok(Data { head, payload })
    }
}

impl<'a> Init<'a> {
    fn parse(value: &'a [u8]) -> Result<Self, Malformed> {
        let (h, params) = value
            .split_first_chunk::<16>()
            .ok_or(Malformed::Truncated)?;
        Ok(Init {
            tag: u32::from_be_bytes([h[0], h[1], h[2], h[3]]),
            window: u32::from_be_bytes([h[4], h[5], h[6], h[7]]),
            outbound: u16::from_be_bytes([h[8], h[9]]),
            inbound: u16::from_be_bytes([h[10], h[11]]),
            tsn: Tsn(u32::from_be_bytes([h[12], h[13], h[14], h[15]])),
            params: Params::new(params),
        })
    }

    /// What the fixed part must fulfil before any state is made from it. Parameters are not looked at.
    pub fn fault(&self) -> Option<InitFault> {
        if self.tag == 0 {
            Some(InitFault::Tag)
        } else if self.outbound == 0 || self.inbound == 0 {
            Some(InitFault::Streams)
        } else if self.window < LEAST_WINDOW {
            Some(InitFault::Window)
        } else {
            None
        }
    }
}

impl<'a> Sack<'a> {
    #[inline]
    fn parse(value: &'a [u8]) -> Result<Self, Malformed> {
        let Some((h, lists)) = value.split_first_chunk::<12>() else {
            return Err(Malformed::Truncated);
        };
        let gaps = usize::from(u16::from_be_bytes([h[8], h[9]]));
        let duplicates = usize::from(u16::from_be_bytes([h[10], h[11]]));
        let (lists, []) = lists.as_chunks::<4>() else {
            return Err(Malformed::Length);
        };
        if lists.len() != gaps + duplicates {
            return Err(Malformed::Length);
        }
        let (gaps, duplicates) = lists.split_at(gaps);
        Ok(Sack {
            cumulative: Tsn(u32::from_be_bytes([h[0], h[1], h[2], h[3]])),
            window: u32::from_be_bytes([h[4], h[5], h[6], h[7]]),
            gaps,
            duplicates,
        })
    }

    /// First and last TSN of each block, as distances from `cumulative`; as sent, so in any order and perhaps senseless.
    #[inline]
    pub fn gaps(
        &self,
    ) -> impl DoubleEndedIterator<Item = (u16, u16)> + ExactSizeIterator + Clone + 'a {
        self.gaps.iter().map(|g| {
            (
                u16::from_be_bytes([g[0], g[1]]),
                u16::from_be_bytes([g[2], g[3]]),
            )
        })
    }

    /// TSNs that came again since the last SACK.
    #[inline]
    pub fn duplicates(&self) -> impl ExactSizeIterator<Item = Tsn> + Clone + 'a {
        self.duplicates.iter().map(|d| Tsn(u32::from_be_bytes(*d)))
    }
}

impl<'a> Auth<'a> {
    fn parse(value: &'a [u8], at: usize) -> Result<Self, Malformed> {
        let (h, digest) = value.split_first_chunk::<4>().ok_or(Malformed::Truncated)?;
        Ok(Auth {
            key: u16::from_be_bytes([h[0], h[1]]),
            hmac: u16::from_be_bytes([h[2], h[3]]),
            digest,
            at,
        })
    }
}

impl<'a> Forward<'a> {
    fn parse(value: &'a [u8], interleaved: bool) -> Result<Self, Malformed> {
        let (cumulative, list) = value.split_first_chunk().ok_or(Malformed::Truncated)?;
        if list.len() % if interleaved { 8 } else { 4 } != 0 {
            return Err(Malformed::Length);
        }
        Ok(Forward {
            cumulative: Tsn(u32::from_be_bytes(*cumulative)),
            interleaved,
            list,
        })
    }

    pub fn streams(&self) -> impl Iterator<Item = Skipped> + Clone + 'a {
        let (plain, interleaved): (&[u8], &[u8]) = if self.interleaved {
            (&[], self.list)
        } else {
            (self.list, &[])
        };
        let plain = plain.as_chunks::<4>().0.iter().map(|s| Skipped {
            stream: u16::from_be_bytes([s[0], s[1]]),
            ssn: Ssn(u16::from_be_bytes([s[2], s[3]])),
            ..Skipped::default()
        });
        let interleaved = interleaved.as_chunks::<8>().0.iter().map(|s| Skipped {
            stream: u16::from_be_bytes([s[0], s[1]]),
            unordered: s[3] & 1 != 0,
            ssn: Ssn(0),
            mid: Mid(u32::from_be_bytes([s[4], s[5], s[6], s[7]])),
        });
        plain.chain(interleaved)
    }
}

fn heartbeat_info(value: &[u8]) -> Result<&[u8], Malformed> {
    match Params::new(value).next() {
        Some(Ok(Param::Heartbeat(info))) => Ok(info),
        Some(Err(why)) => Err(why),
        _ => Err(Malformed::Value("a heartbeat without its information")),
    }
}

fn only_u32(value: &[u8]) -> Result<u32, Malformed> {
    <[u8; 4]>::try_from(value)
        .map(u32::from_be_bytes)
        .map_err(|_| Malformed::Length)
}

fn nothing<'a>(value: &[u8], chunk: Chunk<'a>) -> Result<Chunk<'a>, Malformed> {
    value.is_empty().then_some(chunk).ok_or(Malformed::Length)
}
