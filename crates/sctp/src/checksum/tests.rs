use super::*;

/// RFC 3720 appendix B.4.
#[test]
fn published_examples_come_out() {
    let up: Vec<u8> = (0..32).collect();
    let down: Vec<u8> = (0..32).rev().collect();
    let read_command = [
        0x01, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x14, 0, 0, 0, 0, 0, 0x04, 0, 0, 0,
        0, 0x14, 0, 0, 0, 0x18, 0x28, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0, 0, 0, 0, 0,
    ];
    let cases: [(&[u8], [u8; 4]); 6] = [
        (&[0; 32], [0xaa, 0x36, 0x91, 0x8a]),
        (&[0xff; 32], [0x43, 0xab, 0xa8, 0x62]),
        (&up, [0x4e, 0x79, 0xdd, 0x46]),
        (&down, [0x5c, 0xdb, 0x3f, 0x11]),
        (&read_command, [0x56, 0x3a, 0x96, 0xd9]),
        (b"123456789", 0xe306_9283u32.to_le_bytes()),
    ];
    for (bytes, expected) in cases {
        assert_eq!(crc32c(bytes).to_le_bytes(), expected);
    }
}

#[test]
fn the_checksum_field_does_not_count() {
    for length in (12..1500).step_by(4) {
        let mut packet: Vec<u8> = (0..length).map(|at| (at * 31 + length) as u8).collect();
        let whole = crc32c_of_packet(&packet);
        packet[8..12].fill(0);
        assert_eq!(crc32c(&packet), whole, "{length} bytes");
    }
}
