//! T_SCTP_STATUS, T_SCTP_DISPOSITION: struct t_sctp_status with one struct t_sctp_path for each address of the peer, and
//! struct t_sctp_disposition. Changes here are changes of <sys/xti_sctp.h>.

use core::net::IpAddr;

use headwater_ipnet::Address;
use headwater_sctp::PathState;
use headwater_sctp::association::State;

/// By what its packets go, numbered as T_SCTP_LINK_NONE and so on are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum By {
    #[default]
    None,
    Shm,
    Udp,
    Raw,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Status {
    /// In the order of T_SCTP_CLOSED and so on, which is Linux's too.
    pub state: State,
    pub by: By,
    pub ostreams: u32,
    pub istreams: u32,
    pub peer_window: u32,
    /// Bytes not sent yet, sent and not acknowledged, come and not received.
    pub unsent: u32,
    pub unacked: u32,
    pub unread: u32,
    pub retransmissions: u32,
    pub abandoned: u32,
    pub adaptation: u32,
    pub paths: Vec<Path>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Path {
    pub host: IpAddr,
    pub port: u16,
    pub state: PathState,
    pub primary: bool,
    /// Milliseconds.
    pub rto: u32,
    /// Microseconds.
    pub srtt: u32,
    pub cwnd: u32,
    pub flight: u32,
    pub mtu: u32,
    pub errors: u32,
    /// The UDP port of RFC 6951; 0: none.
    pub encap: u32,
}

/// struct t_sctp_path's address.
const ADDRESS: usize = size_of::<libc::sockaddr_in6>();
pub const PATH: usize = ADDRESS + 9 * 4;
pub const HEAD: usize = 12 * 4;

impl Status {
    pub fn to_bytes(&self) -> Vec<u8> {
        let head = [
            self.state as u32,
            self.by as u32,
            self.ostreams,
            self.istreams,
            self.peer_window,
            self.unsent,
            self.unacked,
            self.unread,
            self.retransmissions,
            self.abandoned,
            self.adaptation,
            self.paths.len() as u32,
        ];
        let mut bytes = words(&head);
        for path in &self.paths {
            path.write(&mut bytes);
        }
        bytes
    }

    /// struct t_sctp_disposition.
    pub fn disposition(&self) -> Vec<u8> {
        words(&[self.unsent, self.unacked, self.abandoned])
    }
}

impl Path {
    fn write(&self, bytes: &mut Vec<u8>) {
        let begin = bytes.len();
        bytes.extend_from_slice(Address::of_ip(self.host, self.port).bytes());
        bytes.resize(begin + ADDRESS, 0);
        bytes.extend(words(&[
            self.state as u32,
            self.primary as u32,
            self.rto,
            self.srtt,
            self.cwnd,
            self.flight,
            self.mtu,
            self.errors,
            self.encap,
        ]));
    }
}

pub fn words(all: &[u32]) -> Vec<u8> {
    all.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_is_that_of_the_structures() {
        let path = Path {
            host: "10.0.0.1".parse().unwrap(),
            port: 7,
            state: PathState::Active,
            primary: true,
            rto: 1,
            srtt: 2,
            cwnd: 3,
            flight: 4,
            mtu: 5,
            errors: 6,
            encap: 7,
        };
        let status = Status {
            paths: vec![path, path],
            ..Default::default()
        };
        let bytes = status.to_bytes();
        assert_eq!(bytes.len(), HEAD + 2 * PATH);
        assert_eq!(bytes[HEAD - 4..][..4], 2u32.to_ne_bytes());
        assert_eq!(bytes.len() % 4, 0);
    }
}
