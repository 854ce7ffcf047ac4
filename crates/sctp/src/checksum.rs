//! CRC32c (RFC 9260 appendix A), which every packet carries in its header.

use crc_fast::{CrcAlgorithm, Digest};

/// The CRC32c of `bytes`. On the wire its bytes stand in little-endian order.
#[inline]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// The CRC32c of a packet with its checksum field taken as zero. Shorter than a header: that of the bytes.
pub fn crc32c_of_packet(packet: &[u8]) -> u32 {
    let Some((header, chunks)) = packet.split_first_chunk::<12>() else {
        return crc32c(packet);
    };
    let mut zeroed = *header;
    zeroed[8..].fill(0);
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    digest.update(&zeroed);
    digest.update(chunks);
    digest.finalize() as u32
}

#[cfg(test)]
mod tests;
