//! Programs of the classic Berkeley packet filter, for raw sockets (SO_ATTACH_FILTER, socket(7)): the kernel drops what is not
//! ours before it is queued. A raw socket of IPv4 shows the program the packet from the IP header on, one of IPv6 from the
//! transport header on.

use libc::sock_filter;

/// Accept: all of the packet.
const ALL: u32 = u32::MAX;
/// The kernel takes 4096 instructions (BPF_MAXINSNS); one that finds a port among many needs two for each.
const MOST: usize = 4000;

// Instruction codes: class, size, mode or operation, source.
const LOAD_HALF: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_IND) as u16;
const LOAD_BYTE: u16 = (libc::BPF_LD | libc::BPF_B | libc::BPF_IND) as u16;
/// X = 4 * (byte & 15): the length of an IPv4 header.
const HEADER_LENGTH: u16 = (libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH) as u16;
const SET_X: u16 = (libc::BPF_LDX | libc::BPF_IMM) as u16;
const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// A program being put together. Fields are counted from the transport header on, whatever the version of IP.
#[derive(Clone, Debug)]
pub struct Program(Vec<sock_filter>);

impl Program {
    /// Begins with X at the transport header.
    pub fn new(v6: bool) -> Program {
        let begin = if v6 {
            op(SET_X, 0)
        } else {
            op(HEADER_LENGTH, 0)
        };
        Program(vec![begin])
    }

    /// Nothing gets through.
    pub fn nothing() -> Program {
        Program(vec![op(RETURN, 0)])
    }

    /// Everything does.
    pub fn everything() -> Program {
        Program(vec![op(RETURN, ALL)])
    }

    /// Packets to one of these ports, for every transport that begins with source and destination port.
    /// With more ports than a program can hold, everything gets through: the receiver looks at the port anyway.
    pub fn to_ports(v6: bool, ports: &[u16]) -> Program {
        if ports.is_empty() {
            return Program::nothing();
        }
        let program = Program::new(v6).load_half(2).accept_any(ports).drop_rest();
        if program.fits() {
            program
        } else {
            Program::everything()
        }
    }

    /// ICMP messages of one of these types that carry this identifier.
    pub fn icmp(v6: bool, kinds: &[u8], id: u16) -> Program {
        let kinds: Vec<u16> = kinds.iter().map(|&k| k.into()).collect();
        Program::new(v6)
            .load_half(4)
            .require(id)
            .load_byte(0)
            .accept_any(&kinds)
            .drop_rest()
    }

    pub fn load_half(mut self, at: u32) -> Program {
        self.0.push(op(LOAD_HALF, at));
        self
    }

    pub fn load_byte(mut self, at: u32) -> Program {
        self.0.push(op(LOAD_BYTE, at));
        self
    }

    /// Keeps only these bits of what was loaded.
    pub fn mask(mut self, bits: u16) -> Program {
        self.0.push(op(AND, bits.into()));
        self
    }

    /// Drops the packet if this was loaded.
    pub fn refuse(mut self, value: u16) -> Program {
        self.0.push(jump(EQUAL, value.into(), 0, 1));
        self.0.push(op(RETURN, 0));
        self
    }

    /// Drops the packet unless this was loaded.
    pub fn require(mut self, value: u16) -> Program {
        self.0.push(jump(EQUAL, value.into(), 1, 0));
        self.0.push(op(RETURN, 0));
        self
    }

    /// Takes the packet if one of these was loaded.
    pub fn accept_any(mut self, values: &[u16]) -> Program {
        for &value in values {
            self.0.push(jump(EQUAL, value.into(), 0, 1));
            self.0.push(op(RETURN, ALL));
        }
        self
    }

    pub fn accept_rest(mut self) -> Program {
        self.0.push(op(RETURN, ALL));
        self
    }

    pub fn drop_rest(mut self) -> Program {
        self.0.push(op(RETURN, 0));
        self
    }

    /// Can the kernel take it?
    pub fn fits(&self) -> bool {
        self.0.len() <= MOST
    }

    pub fn instructions(&self) -> &[sock_filter] {
        &self.0
    }
}

fn op(code: u16, k: u32) -> sock_filter {
    jump(code, k, 0, 0)
}

fn jump(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does the program take this packet? As the kernel would run it; a load beyond the packet drops it.
    fn takes(program: &Program, packet: &[u8]) -> bool {
        let (mut a, mut x, mut pc) = (0u32, 0u32, 0usize);
        loop {
            let i = program.0[pc];
            let at = x.wrapping_add(i.k) as usize;
            pc += 1;
            match i.code {
                LOAD_HALF => match packet.get(at..at + 2) {
                    Some(b) => a = u16::from_be_bytes([b[0], b[1]]).into(),
                    None => return false,
                },
                LOAD_BYTE => match packet.get(at) {
                    Some(&b) => a = b.into(),
                    None => return false,
                },
                HEADER_LENGTH => x = 4 * u32::from(packet[i.k as usize] & 15),
                SET_X => x = i.k,
                AND => a &= i.k,
                EQUAL => pc += usize::from(if a == i.k { i.jt } else { i.jf }),
                RETURN => return i.k != 0,
                code => panic!("{code:#x}"),
            }
        }
    }

    fn v4(options: usize, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; 20 + options];
        packet[0] = 0x40 | (packet.len() / 4) as u8;
        packet.extend(payload);
        packet
    }

    #[test]
    fn only_packets_to_its_ports_pass() {
        let to = |port: u16| [&[0x30, 0x39][..], &port.to_be_bytes(), &[0; 8]].concat();
        for ports in [&[9899u16][..], &[7, 9899, 65535], &[]] {
            let (four, six) = (
                Program::to_ports(false, ports),
                Program::to_ports(true, ports),
            );
            for port in [7, 9899, 9898, 0x3039, 65535] {
                let wanted = ports.contains(&port);
                assert_eq!(takes(&four, &v4(0, &to(port))), wanted);
                assert_eq!(takes(&four, &v4(24, &to(port))), wanted, "with options");
                assert_eq!(takes(&six, &to(port)), wanted);
            }
            assert!(!takes(&six, &[0, 1]), "cut off");
        }
    }

    #[test]
    fn an_echo_reply_is_known_by_its_identifier() {
        let filter = Program::icmp(false, &[0, 3], 0x4711);
        assert!(takes(&filter, &v4(0, &[0, 0, 1, 2, 0x47, 0x11, 0, 1])));
        assert!(!takes(&filter, &v4(0, &[8, 0, 1, 2, 0x47, 0x11, 0, 1])));
        assert!(!takes(&filter, &v4(0, &[0, 0, 1, 2, 0x47, 0x12, 0, 1])));
    }

    #[test]
    fn too_many_ports_for_a_program_let_all_through() {
        let ports: Vec<u16> = (0..3000).collect();
        assert_eq!(Program::to_ports(false, &ports).instructions().len(), 1);
    }
}
