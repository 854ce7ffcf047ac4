//! Packets as bytes: the common header, chunks, parameters and error causes (RFC 9260 section 3 and its extensions).
//!
//! ```text
//!   Packet ──chunks()──▶ Chunk ──params, causes──▶ Param, Cause        reading: views into the packet, nothing is copied
//!             tlv::Tlvs ── the one place where a length is believed, under every arrow
//!   PacketBuilder ──▶ ParamBuilder, CauseBuilder                       writing: appends one packet to a Vec
//!             tlv::Writer ── the one place where a length is written
//! ```
//! Nothing here has an opinion on what a packet means: tags, states and answers belong to the association.

pub mod build;
pub mod cause;
pub mod chunk;
mod items;
pub mod param;
pub mod tlv;

pub use build::{InitHead, PacketBuilder};
pub use cause::{Cause, CauseBuilder, CauseOwned, Causes};
pub use chunk::kind;
pub use chunk::{Auth, Chunk, Chunks, Data, DataHead, Forward, Init, InitFault, Sack, Skipped};
pub use param::{Param, ParamBuilder, Params};
pub use param::{report as must_report, stop as must_stop};
pub use tlv::{List, Malformed};

use crate::checksum::crc32c_of_packet;

/// Bytes of the common header.
pub const HEADER: usize = 12;

/// The common header (RFC 9260 section 3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    pub source: u16,
    pub destination: u16,
    pub tag: u32,
    /// The field's bytes as a big-endian number; CRC32c itself stands there in little-endian order.
    pub checksum: u32,
}

/// One packet, its header read and its chunks not yet.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    pub header: Header,
    bytes: &'a [u8],
}

/// What the checksum field of a packet says about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checksum {
    Right,
    /// The field is zero, and zero is not this packet's CRC32c: for a receiver that announced RFC 9653 only.
    Zero,
    Wrong,
}

impl<'a> Packet<'a> {
    /// A packet of at least its header, whose ports are not zero. Chunks are not looked at.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Packet<'a>, Malformed> {
        let Some((h, _)) = bytes.split_first_chunk::<HEADER>() else {
            return Err(Malformed::Truncated);
        };
        let header = Header {
            source: u16::from_be_bytes([h[0], h[1]]),
            destination: u16::from_be_bytes([h[2], h[3]]),
            tag: u32::from_be_bytes([h[4], h[5], h[6], h[7]]),
            checksum: u32::from_be_bytes([h[8], h[9], h[10], h[11]]),
        };
        if header.source == 0 || header.destination == 0 {
            return Err(Malformed::Value("port 0"));
        }
        Ok(Packet { header, bytes })
    }

    /// The whole packet, as it came.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Compares the checksum field with the CRC32c of the packet.
    #[inline]
    pub fn checksum(&self) -> Checksum {
        if crc32c_of_packet(self.bytes).swap_bytes() == self.header.checksum {
            Checksum::Right
        } else if self.header.checksum == 0 {
            Checksum::Zero
        } else {
            Checksum::Wrong
        }
    }

    /// One chunk and no more: INIT, INIT ACK and SHUTDOWN COMPLETE are bundled with nothing (RFC 9260 6.10).
    pub fn has_one_chunk(&self) -> bool {
        let mut chunks = self.chunks();
        matches!(chunks.next(), Some(Ok(_))) && chunks.next().is_none()
    }

    /// The chunks in order. An error is the last item: what follows a malformed chunk cannot be trusted.
    #[inline]
    pub fn chunks(&self) -> Chunks<'a> {
        Chunks::new(self.bytes)
    }
}

#[cfg(test)]
mod tests;
