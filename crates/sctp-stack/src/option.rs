//! Options of the level T_INET_SCTP, as <sys/xti_sctp.h> names and numbers them.
//!
//! ```text
//!   message   what goes with single messages        chosen   what an association is to be made with
//!   status    what is told of one                   orders   what is done to one: addresses, streams, keys
//! ```

pub mod chosen;
pub mod message;
pub mod orders;
pub mod status;

use headwater_providers::options::{Kind, Known};
use headwater_tpi::option::{T_NO, T_YES};

use Kind::{Bytes, Flag, Number, Word};

pub const INET_SCTP: u32 = 132;

pub const T_SCTP_NODELAY: u32 = 1;
pub const T_SCTP_MAXSEG: u32 = 2;
pub const T_SCTP_SID: u32 = 3;
pub const T_SCTP_PPI: u32 = 4;
pub const T_SCTP_SSN: u32 = 5;
pub const T_SCTP_TSN: u32 = 6;
pub const T_SCTP_RECVOPT: u32 = 7;
pub const T_SCTP_COOKIE_LIFE: u32 = 8;
pub const T_SCTP_SACK_DELAY: u32 = 9;
pub const T_SCTP_SACK_FREQ: u32 = 10;
pub const T_SCTP_RTO_INITIAL: u32 = 11;
pub const T_SCTP_RTO_MIN: u32 = 12;
pub const T_SCTP_RTO_MAX: u32 = 13;
pub const T_SCTP_ISTREAMS: u32 = 14;
pub const T_SCTP_OSTREAMS: u32 = 15;
pub const T_SCTP_HB: u32 = 16;
pub const T_SCTP_HB_ITVL: u32 = 17;
pub const T_SCTP_PATH_MAX_RETRANS: u32 = 18;
pub const T_SCTP_ASSOC_MAX_RETRANS: u32 = 19;
pub const T_SCTP_MAX_INIT_RETRIES: u32 = 20;
pub const T_SCTP_PF_RETRANS: u32 = 21;
pub const T_SCTP_MAX_BURST: u32 = 22;
pub const T_SCTP_LIFETIME: u32 = 23;
pub const T_SCTP_PR: u32 = 24;
pub const T_SCTP_PR_VALUE: u32 = 25;
pub const T_SCTP_DISPOSITION: u32 = 26;
pub const T_SCTP_CKSUM_TYPE: u32 = 27;
pub const T_SCTP_STATUS: u32 = 28;
pub const T_SCTP_ADD_IP: u32 = 29;
pub const T_SCTP_DEL_IP: u32 = 30;
pub const T_SCTP_SET_IP: u32 = 31;
pub const T_SCTP_PRIMARY: u32 = 32;
pub const T_SCTP_INTERLEAVE: u32 = 33;
pub const T_SCTP_SCHED: u32 = 34;
pub const T_SCTP_SCHED_VALUE: u32 = 35;
pub const T_SCTP_RESET_OUT: u32 = 36;
pub const T_SCTP_RESET_IN: u32 = 37;
pub const T_SCTP_RESET_ASSOC: u32 = 38;
pub const T_SCTP_ADD_STREAMS: u32 = 39;
pub const T_SCTP_RECONFIG: u32 = 40;
pub const T_SCTP_ASCONF: u32 = 41;
pub const T_SCTP_AUTH: u32 = 42;
pub const T_SCTP_AUTH_CHUNKS: u32 = 43;
pub const T_SCTP_AUTH_KEY: u32 = 44;
pub const T_SCTP_AUTH_ACTIVE: u32 = 45;
pub const T_SCTP_AUTH_DELETE: u32 = 46;
pub const T_SCTP_ALI: u32 = 47;
pub const T_SCTP_ECN: u32 = 48;
pub const T_SCTP_ENCAP_PORT: u32 = 49;
pub const T_SCTP_AUTOCLOSE: u32 = 50;
pub const T_SCTP_PARTIAL: u32 = 51;
pub const T_SCTP_PD_POINT: u32 = 52;
pub const T_SCTP_RCVINFO: u32 = 53;

/// Values of T_SCTP_CKSUM_TYPE.
pub const CRC32C: i64 = 1;
pub const ZERO: i64 = 2;
/// In place of a list of streams.
pub const ALL_STREAMS: u32 = !0;

/// An hour, and a day, in milliseconds.
const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;
const YES: i64 = T_YES as i64;
const NO: i64 = T_NO as i64;
/// A sockaddr_storage.
const ADDRESS: Kind = Bytes(128);

const fn option(name: u32, kind: Kind, default: i64) -> Known {
    Known::new(INET_SCTP, name, kind, (default, 0))
}

pub const TABLE: [Known; 53] = [
    option(T_SCTP_NODELAY, Flag, NO),
    option(T_SCTP_MAXSEG, Number(512, 65535), 1452),
    option(T_SCTP_SID, Number(0, 65535), 0),
    option(T_SCTP_PPI, Word, 0),
    option(T_SCTP_SSN, Number(0, 65535), 0).read_only(),
    option(T_SCTP_TSN, Word, 0).read_only(),
    option(T_SCTP_RECVOPT, Flag, NO),
    option(T_SCTP_COOKIE_LIFE, Number(1, DAY), 60_000),
    option(T_SCTP_SACK_DELAY, Number(0, 500), 200),
    option(T_SCTP_SACK_FREQ, Number(1, 100), 2),
    option(T_SCTP_RTO_INITIAL, Number(1, HOUR), 1000),
    option(T_SCTP_RTO_MIN, Number(1, HOUR), 1000),
    option(T_SCTP_RTO_MAX, Number(1, HOUR), 60_000),
    option(T_SCTP_ISTREAMS, Number(1, 65535), 2048),
    option(T_SCTP_OSTREAMS, Number(1, 65535), 10),
    option(T_SCTP_HB, Flag, YES),
    option(T_SCTP_HB_ITVL, Number(10, DAY), 30_000),
    option(T_SCTP_PATH_MAX_RETRANS, Number(0, 1000), 5),
    option(T_SCTP_ASSOC_MAX_RETRANS, Number(0, 1000), 10),
    option(T_SCTP_MAX_INIT_RETRIES, Number(0, 1000), 8),
    option(T_SCTP_PF_RETRANS, Number(0, 1000), 0),
    option(T_SCTP_MAX_BURST, Number(1, 1000), 4),
    option(T_SCTP_LIFETIME, Number(0, DAY), 0),
    option(T_SCTP_PR, Number(0, 3), 0),
    option(T_SCTP_PR_VALUE, Word, 0),
    option(T_SCTP_DISPOSITION, Bytes(12), 0).read_only(),
    option(T_SCTP_CKSUM_TYPE, Number(CRC32C, ZERO), CRC32C),
    option(T_SCTP_STATUS, Bytes(1024), 0).read_only(),
    option(T_SCTP_ADD_IP, ADDRESS, 0),
    option(T_SCTP_DEL_IP, ADDRESS, 0),
    option(T_SCTP_SET_IP, ADDRESS, 0),
    option(T_SCTP_PRIMARY, ADDRESS, 0),
    option(T_SCTP_INTERLEAVE, Flag, NO),
    option(T_SCTP_SCHED, Number(0, 5), 0),
    option(T_SCTP_SCHED_VALUE, Bytes(8), 0),
    option(T_SCTP_RESET_OUT, Bytes(512), 0),
    option(T_SCTP_RESET_IN, Bytes(512), 0),
    option(T_SCTP_RESET_ASSOC, Flag, NO),
    option(T_SCTP_ADD_STREAMS, Bytes(8), 0),
    option(T_SCTP_RECONFIG, Flag, YES),
    option(T_SCTP_ASCONF, Flag, NO),
    option(T_SCTP_AUTH, Flag, NO),
    option(T_SCTP_AUTH_CHUNKS, Bytes(256), 0),
    option(T_SCTP_AUTH_KEY, Bytes(512), 0),
    option(T_SCTP_AUTH_ACTIVE, Number(0, 65535), 0),
    option(T_SCTP_AUTH_DELETE, Bytes(4), 0),
    option(T_SCTP_ALI, Word, 0),
    option(T_SCTP_ECN, Flag, NO).read_only(),
    option(T_SCTP_ENCAP_PORT, Number(0, 65535), 0),
    option(T_SCTP_AUTOCLOSE, Number(0, 1_000_000), 0),
    option(T_SCTP_PARTIAL, Flag, YES),
    option(T_SCTP_PD_POINT, Number(1, 64 << 20), 1 << 17),
    option(T_SCTP_RCVINFO, Bytes(20), 0).read_only(),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_there_once() {
        let mut names: Vec<u32> = TABLE.iter().map(|o| o.name).collect();
        names.sort_unstable();
        assert!(names.iter().copied().eq(1..=TABLE.len() as u32));
    }
}
