//! The Internet checksum (RFC 1071), with the pseudo headers of IPv4 and IPv6 (RFC 768, RFC 8200 8.1) and the update of one
//! that is already there (RFC 1624).

use std::net::IpAddr;

/// A sum on its way. Parts are added in order; only the last may have an odd length.
#[derive(Clone, Copy, Default, Debug)]
pub struct Sum(u64);

impl Sum {
    /// Of what IP tells the transport: addresses, protocol, length of header and data. Addresses of different versions make
    /// no sum that anybody would accept.
    pub fn pseudo(from: IpAddr, to: IpAddr, protocol: u8, len: usize) -> Sum {
        let addresses = match (from, to) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                Sum::default().with(&from.octets()).with(&to.octets())
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                Sum::default().with(&from.octets()).with(&to.octets())
            }
            _ => Sum::default(),
        };
        // As bytes in network order would be summed.
        let tail = (protocol as u64).to_be() >> 48;
        let len = len as u32;
        addresses.with(&len.to_be_bytes()).plus(tail)
    }

    fn plus(self, n: u64) -> Sum {
        let (sum, carry) = self.0.overflowing_add(n);
        Sum(sum + carry as u64)
    }

    /// Eight bytes at a time: in one's complement the order of additions does not matter, nor does the width (RFC 1071 2).
    pub fn with(mut self, bytes: &[u8]) -> Sum {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self = self.plus(u64::from_ne_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.plus(u64::from_ne_bytes(last))
    }

    /// The sum folded to 16 bits, in memory order.
    fn folded(self) -> u16 {
        let mut sum = (self.0 >> 32) + (self.0 & 0xffff_ffff);
        while sum >> 16 != 0 {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        sum as u16
    }

    /// What goes into the checksum field, as it lies in memory.
    pub fn finish(self) -> [u8; 2] {
        (!self.folded()).to_ne_bytes()
    }

    /// Was the checksum among what was added, and right?
    pub fn is_right(self) -> bool {
        self.folded() == 0xffff
    }
}

/// A field changes from `old` to `new`: the checksum that holds then.
pub fn updated(checksum: [u8; 2], old: [u8; 2], new: [u8; 2]) -> [u8; 2] {
    let word = |bytes| u64::from(u16::from_ne_bytes(bytes));
    // HC' = ~(~HC + ~m + m')
    Sum((!word(checksum) & 0xffff) + (!word(old) & 0xffff) + word(new)).finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Sum::default().with(&bytes).finish(), [0x22, 0x0d]);
    }

    /// As the RFCs write it: word by word.
    fn slowly(bytes: &[u8]) -> [u8; 2] {
        let mut sum = 0u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
        }
        while sum >> 16 != 0 {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        (!(sum as u16)).to_be_bytes()
    }

    #[test]
    fn any_length_and_split_give_the_same() {
        let bytes: Vec<u8> = (0..200u32).map(|i| (i * 73 + 11) as u8 | 0x80).collect();
        for len in 0..bytes.len() {
            let whole = Sum::default().with(&bytes[..len]).finish();
            assert_eq!(whole, slowly(&bytes[..len]), "{len} bytes");
            let (a, b) = bytes[..len].split_at(len / 4 * 2);
            assert_eq!(Sum::default().with(a).with(b).finish(), whole);
        }
    }

    #[test]
    fn pseudo_headers_count() {
        let (from, to): (IpAddr, IpAddr) = (
            "192.0.2.1".parse().unwrap(),
            "198.51.100.7".parse().unwrap(),
        );
        let mut bytes = vec![192, 0, 2, 1, 198, 51, 100, 7, 0, 17, 0, 11];
        bytes.extend(b"hello world");
        assert_eq!(
            Sum::pseudo(from, to, 17, 11).with(b"hello world").finish(),
            slowly(&bytes)
        );
        let (from, to): (IpAddr, IpAddr) = (
            "2001:db8::1".parse().unwrap(),
            "2001:db8::2".parse().unwrap(),
        );
        let mut bytes = Vec::new();
        for ip in [from, to] {
            let IpAddr::V6(ip) = ip else { unreachable!() };
            bytes.extend(ip.octets());
        }
        bytes.extend([0, 0, 0, 5, 0, 0, 0, 58]);
        bytes.extend(b"data!");
        assert_eq!(
            Sum::pseudo(from, to, 58, 5).with(b"data!").finish(),
            slowly(&bytes)
        );
    }

    #[test]
    fn an_update_is_as_good_as_summing_again() {
        let mut packet = vec![8, 0, 0, 0, 0x12, 0x34, 0, 1, 9, 9];
        let sum = Sum::default().with(&packet).finish();
        packet[2..4].copy_from_slice(&sum);
        for id in [0x0000u16, 0x1234, 0xffff, 0xedcb] {
            let mut other = packet.clone();
            let new = updated([other[2], other[3]], [0x12, 0x34], id.to_be_bytes());
            other[4..6].copy_from_slice(&id.to_be_bytes());
            other[2..4].copy_from_slice(&new);
            assert!(Sum::default().with(&other).is_right(), "{id:x}");
        }
    }
}
