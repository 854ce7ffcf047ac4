//! Writing packets.

use super::HEADER;
use super::cause::CauseBuilder;
use super::chunk::{BEGIN, DataHead, END, IMMEDIATE, REFLECTED, Skipped, UNORDERED, kind};
use super::param::{self, ParamBuilder};
use super::tlv::Writer;
use crate::Tsn;
use crate::auth::{Hmac, Key};
use crate::checksum::crc32c;

/// The fixed part of INIT and INIT ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InitHead {
    pub tag: u32,
    pub window: u32,
    pub outbound: u16,
    pub inbound: u16,
    pub tsn: Tsn,
}

/// Appends one packet to a Vec, which may hold earlier ones. Every chunk ends padded, so the packet's length is a multiple of four.
///
/// The caller looks at [`room`](Self::room) before it adds a chunk; the builder itself does not refuse.
pub struct PacketBuilder<'b> {
    out: &'b mut Vec<u8>,
    start: usize,
    limit: usize,
    /// Offset of the AUTH chunk in `out`, and its algorithm.
    auth: Option<(usize, Hmac)>,
}

impl<'b> PacketBuilder<'b> {
    /// `limit`: the most bytes of the packet, its header included.
    #[inline]
    pub fn begin(
        out: &'b mut Vec<u8>,
        source: u16,
        destination: u16,
        tag: u32,
        limit: usize,
    ) -> Self {
        let start = out.len();
        let mut header = [0; HEADER];
        header[0..2].copy_from_slice(&source.to_be_bytes());
        header[2..4].copy_from_slice(&destination.to_be_bytes());
        header[4..8].copy_from_slice(&tag.to_be_bytes());
        out.reserve(limit.clamp(HEADER, 2048));
        out.extend_from_slice(&header);
        PacketBuilder {
            out,
            start,
            limit,
            auth: None,
        }
    }

    /// Bytes of the packet so far.
    #[inline]
    pub fn len(&self) -> usize {
        self.out.len() - self.start
    }

    /// No chunk is in it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == HEADER
    }

    /// It has an AUTH chunk.
    #[inline]
    pub fn is_signed(&self) -> bool {
        self.auth.is_some()
    }

    /// Bytes that one more chunk may have, its own header included; a multiple of four.
    #[inline]
    pub fn room(&self) -> usize {
        self.limit.saturating_sub(self.len()) & !3
    }

    #[inline]
    pub fn data(&mut self, head: &DataHead, payload: &[u8]) {
        let size = DataHead::len(head.interleaved);
        debug_assert!(
            size + payload.len() <= usize::from(u16::MAX),
            "a fragment too long for one chunk"
        );
        let flags = if head.end { END } else { 0 }
            | if head.begin { BEGIN } else { 0 }
            | if head.unordered { UNORDERED } else { 0 }
            | if head.immediate { IMMEDIATE } else { 0 };
        let mut bytes = [0; 20];
        bytes[0] = if head.interleaved {
            kind::I_DATA
        } else {
            kind::DATA
        };
        bytes[1] = flags;
        bytes[2..4].copy_from_slice(&((size + payload.len()) as u16).to_be_bytes());
        bytes[4..8].copy_from_slice(&head.tsn.0.to_be_bytes());
        bytes[8..10].copy_from_slice(&head.stream.to_be_bytes());
        if head.interleaved {
            bytes[12..16].copy_from_slice(&head.mid.0.to_be_bytes());
            bytes[16..20]
                .copy_from_slice(&if head.begin { head.ppid } else { head.fsn }.to_be_bytes());
        } else {
            bytes[10..12].copy_from_slice(&head.ssn.0.to_be_bytes());
            bytes[12..16].copy_from_slice(&head.ppid.to_be_bytes());
        }
        self.out.reserve(size + payload.len() + 3);
        self.out.extend_from_slice(&bytes[..size]);
        self.out.extend_from_slice(payload);
        self.pad_end();
    }

    /// The gaps are first and last TSN of each block, as distances from `cumulative`.
    #[inline]
    pub fn sack(&mut self, cumulative: Tsn, window: u32, gaps: &[(u16, u16)], duplicates: &[Tsn]) {
        self.chunk(kind::SACK, 0, |out| {
            let mut fixed = [0; 12];
            fixed[0..4].copy_from_slice(&cumulative.0.to_be_bytes());
            fixed[4..8].copy_from_slice(&window.to_be_bytes());
            fixed[8..10].copy_from_slice(&(gaps.len() as u16).to_be_bytes());
            fixed[10..12].copy_from_slice(&(duplicates.len() as u16).to_be_bytes());
            out.extend_from_slice(&fixed);
            for (first, last) in gaps {
                out.extend_from_slice(&(u32::from(*first) << 16 | u32::from(*last)).to_be_bytes());
            }
            for tsn in duplicates {
                out.extend_from_slice(&tsn.0.to_be_bytes());
            }
        });
    }

    /// INIT or INIT ACK.
    pub fn init(&mut self, kind: u8, head: &InitHead, params: impl FnOnce(&mut ParamBuilder<'_>)) {
        self.chunk(kind, 0, |out| {
            out.extend_from_slice(&head.tag.to_be_bytes());
            out.extend_from_slice(&head.window.to_be_bytes());
            out.extend_from_slice(&head.outbound.to_be_bytes());
            out.extend_from_slice(&head.inbound.to_be_bytes());
            out.extend_from_slice(&head.tsn.0.to_be_bytes());
            params(&mut ParamBuilder::new(out));
        });
    }

    /// HEARTBEAT or HEARTBEAT ACK.
    pub fn heartbeat(&mut self, kind: u8, info: &[u8]) {
        self.chunk(kind, 0, |out| {
            Writer::new(out).bytes(param::kind::HEARTBEAT, info)
        });
    }

    pub fn abort(&mut self, tcb_missing: bool, causes: impl FnOnce(&mut CauseBuilder<'_>)) {
        self.chunk(kind::ABORT, reflected(tcb_missing), |out| {
            causes(&mut CauseBuilder::new(out))
        });
    }

    pub fn error(&mut self, causes: impl FnOnce(&mut CauseBuilder<'_>)) {
        self.chunk(kind::ERROR, 0, |out| causes(&mut CauseBuilder::new(out)));
    }

    pub fn shutdown(&mut self, cumulative: Tsn) {
        self.bytes(kind::SHUTDOWN, 0, &cumulative.0.to_be_bytes());
    }

    pub fn shutdown_ack(&mut self) {
        self.bytes(kind::SHUTDOWN_ACK, 0, &[]);
    }

    pub fn shutdown_complete(&mut self, tcb_missing: bool) {
        self.bytes(kind::SHUTDOWN_COMPLETE, reflected(tcb_missing), &[]);
    }

    pub fn cookie_echo(&mut self, cookie: &[u8]) {
        self.bytes(kind::COOKIE_ECHO, 0, cookie);
    }

    pub fn cookie_ack(&mut self) {
        self.bytes(kind::COOKIE_ACK, 0, &[]);
    }

    /// ASCONF or ASCONF ACK. The `params` of the first begin with the address that the peer finds the association by.
    pub fn asconf(&mut self, kind: u8, serial: u32, params: impl FnOnce(&mut ParamBuilder<'_>)) {
        self.chunk(kind, 0, |out| {
            out.extend_from_slice(&serial.to_be_bytes());
            params(&mut ParamBuilder::new(out));
        });
    }

    pub fn re_config(&mut self, params: impl FnOnce(&mut ParamBuilder<'_>)) {
        self.chunk(kind::RE_CONFIG, 0, |out| {
            params(&mut ParamBuilder::new(out))
        });
    }

    /// FORWARD-TSN or, when `interleaved`, I-FORWARD-TSN.
    pub fn forward(&mut self, cumulative: Tsn, interleaved: bool, skipped: &[Skipped]) {
        let kind = if interleaved {
            kind::I_FORWARD_TSN
        } else {
            kind::FORWARD_TSN
        };
        self.chunk(kind, 0, |out| {
            out.extend_from_slice(&cumulative.0.to_be_bytes());
            for one in skipped {
                out.extend_from_slice(&one.stream.to_be_bytes());
                if interleaved {
                    out.extend_from_slice(&u16::from(one.unordered).to_be_bytes());
                    out.extend_from_slice(&one.mid.0.to_be_bytes());
                } else {
                    out.extend_from_slice(&one.ssn.0.to_be_bytes());
                }
            }
        });
    }

    /// A PAD chunk of `length` bytes, at least 4, its header included.
    pub fn pad(&mut self, length: usize) {
        self.chunk(kind::PAD, 0, |out| {
            out.resize(out.len() + length.saturating_sub(4), 0)
        });
    }

    /// A chunk that is encoded already, without its padding.
    pub fn raw(&mut self, chunk: &[u8]) {
        self.out.extend_from_slice(chunk);
        self.pad_end();
    }

    /// An AUTH chunk whose digest [`finish`](Self::finish) fills in. It covers itself and every chunk added after it.
    pub fn auth(&mut self, key: u16, hmac: Hmac) {
        debug_assert!(
            self.auth.is_none(),
            "one AUTH chunk covers all that follows"
        );
        self.auth = Some((self.out.len(), hmac));
        self.chunk(kind::AUTH, 0, |out| {
            out.extend_from_slice(&key.to_be_bytes());
            out.extend_from_slice(&hmac.id().to_be_bytes());
            out.resize(out.len() + hmac.len(), 0);
        });
    }

    /// Fills in the digest of an AUTH chunk, by `sign`, and the CRC32c; without `checksum` the field stays zero (RFC 9653). The packet's length.
    #[inline]
    pub fn finish(self, sign: Option<&Key>, checksum: bool) -> usize {
        if let Some((at, hmac)) = self.auth {
            debug_assert!(sign.is_some(), "an AUTH chunk needs a key");
            if let Some(key) = sign {
                let digest = key.digest(hmac, &[&self.out[at..]]);
                self.out[at + 8..at + 8 + hmac.len()].copy_from_slice(&digest[..hmac.len()]);
            }
        }
        if checksum {
            let crc = crc32c(&self.out[self.start..]);
            self.out[self.start + 8..self.start + HEADER].copy_from_slice(&crc.to_le_bytes());
        }
        self.len()
    }

    /// Takes the packet back.
    pub fn cancel(self) {
        self.out.truncate(self.start);
    }

    /// A chunk with these bytes as its value.
    pub(crate) fn bytes(&mut self, kind: u8, flags: u8, value: &[u8]) {
        self.chunk(kind, flags, |out| out.extend_from_slice(value));
    }

    #[inline]
    fn chunk(&mut self, kind: u8, flags: u8, body: impl FnOnce(&mut Vec<u8>)) {
        let mut writer = Writer::from(self.out, self.start);
        writer.item(u16::from_be_bytes([kind, flags]), body);
        writer.pad();
    }

    #[inline]
    fn pad_end(&mut self) {
        Writer::from(self.out, self.start).pad();
    }
}

const fn reflected(tcb_missing: bool) -> u8 {
    if tcb_missing { REFLECTED } else { 0 }
}
