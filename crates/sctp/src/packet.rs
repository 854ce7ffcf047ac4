//! Packets at the engine's border: as they come, and as they leave.

use core::net::IpAddr;

/// A packet that has come.
#[derive(Clone, Copy, Debug)]
pub struct Arrived<'a> {
    pub from: IpAddr,
    pub to: IpAddr,
    /// The UDP port that it came from, if it was encapsulated.
    pub encap: Option<u16>,
    pub packet: &'a [u8],
}

/// Packets to be sent, just appended to a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// `None`: whichever address leads there.
    pub from: Option<IpAddr>,
    pub to: IpAddr,
    pub encap: Option<u16>,
    /// Bytes of each packet but the last, which may be shorter.
    pub segment: usize,
    /// Bytes of all of them.
    pub len: usize,
    /// It is too long for the path, which was wider when its data was cut: IP has to fragment it, whatever it does with others.
    pub fragment: bool,
}

impl Transmit {
    /// A single packet.
    pub(crate) fn one(
        from: Option<IpAddr>,
        to: IpAddr,
        encap: Option<u16>,
        len: usize,
    ) -> Transmit {
        Transmit {
            from,
            to,
            encap,
            segment: len,
            len,
            fragment: false,
        }
    }
}
