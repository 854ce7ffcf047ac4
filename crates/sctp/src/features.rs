//! What an association can do, as both sides know it: agreed on in the handshake, and kept in the cookie until there is one.

/// The extensions that both sides have.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Features {
    /// FORWARD TSN, RFC 3758.
    pub forward: bool,
    /// I-DATA, RFC 8260.
    pub interleave: bool,
    /// RE-CONFIG, RFC 6525.
    pub reconfiguration: bool,
    /// ASCONF, RFC 5061.
    pub addresses: bool,
    /// AUTH, RFC 4895.
    pub auth: bool,
    /// Padding chunks, by which larger packets can be probed.
    pub pad: bool,
    /// Packets without a checksum may be sent, and are taken (RFC 9653).
    pub zero_checksum_out: bool,
    pub zero_checksum_in: bool,
}
