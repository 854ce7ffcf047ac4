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

use core::time::Duration;

use headwater_providers::options::{Kind, Known};
use headwater_sctp::AssocConfig;
use headwater_tpi::option::{T_NO, T_YES};

use Kind::{Bytes, Flag, Number, Word};

pub const INET_SCTP: u32 = 132;

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

macro_rules! value_of {
    (ms $field:expr) => {
        $field.as_millis() as i64
    };
    ($other:ident $field:expr) => {
        $field as i64
    };
}

macro_rules! set_to {
    (ms $field:expr, $n:expr) => {
        $field = Duration::from_millis($n.max(0) as u64)
    };
    (flag $field:expr, $n:expr) => {
        $field = $n == YES
    };
    (number $field:expr, $n:expr) => {
        $field = $n as _
    };
}

/// Of each option its name and number, what it may be, what it is at first, and which parameter of an association it is.
macro_rules! options {
    ($($name:ident = $number:literal, $kind:expr, $default:expr $(, $only:ident)? $(=> $form:ident $field:ident)?;)*) => {
        $(pub const $name: u32 = $number;)*

        pub const TABLE: [Known; [$($number),*].len()] =
            [$(Known::new(INET_SCTP, $name, $kind, ($default, 0))$(.$only())?),*];

        /// The value of a number or flag that is a parameter as it is.
        fn parameter(config: &AssocConfig, name: u32) -> Option<i64> {
            match name {
                $($($name => Some(value_of!($form config.$field)),)?)*
                _ => None,
            }
        }

        /// Sets it; false: it is none of these.
        fn set_parameter(config: &mut AssocConfig, name: u32, n: i64) -> bool {
            match name {
                $($($name => set_to!($form config.$field, n),)?)*
                _ => return false,
            }
            true
        }
    };
}

options! {
    T_SCTP_NODELAY = 1, Flag, NO;
    T_SCTP_MAXSEG = 2, Number(512, 65535), 1452;
    T_SCTP_SID = 3, Number(0, 65535), 0;
    T_SCTP_PPI = 4, Word, 0;
    T_SCTP_SSN = 5, Number(0, 65535), 0, read_only;
    T_SCTP_TSN = 6, Word, 0, read_only;
    T_SCTP_RECVOPT = 7, Flag, NO;
    T_SCTP_COOKIE_LIFE = 8, Number(1, DAY), 60_000;
    T_SCTP_SACK_DELAY = 9, Number(0, 500), 200 => ms sack_delay;
    T_SCTP_SACK_FREQ = 10, Number(1, 100), 2 => number sack_every;
    T_SCTP_RTO_INITIAL = 11, Number(1, HOUR), 1000;
    T_SCTP_RTO_MIN = 12, Number(1, HOUR), 1000;
    T_SCTP_RTO_MAX = 13, Number(1, HOUR), 60_000;
    T_SCTP_ISTREAMS = 14, Number(1, 65535), 2048 => number inbound;
    T_SCTP_OSTREAMS = 15, Number(1, 65535), 10 => number outbound;
    T_SCTP_HB = 16, Flag, YES => flag heartbeats;
    T_SCTP_HB_ITVL = 17, Number(10, DAY), 30_000 => ms heartbeat_interval;
    T_SCTP_PATH_MAX_RETRANS = 18, Number(0, 1000), 5 => number path_retransmissions;
    T_SCTP_ASSOC_MAX_RETRANS = 19, Number(0, 1000), 10 => number association_retransmissions;
    T_SCTP_MAX_INIT_RETRIES = 20, Number(0, 1000), 8 => number init_retransmissions;
    T_SCTP_PF_RETRANS = 21, Number(0, 1000), 0 => number potentially_failed;
    T_SCTP_MAX_BURST = 22, Number(1, 1000), 4 => number max_burst;
    T_SCTP_LIFETIME = 23, Number(0, DAY), 0;
    T_SCTP_PR = 24, Number(0, 3), 0;
    T_SCTP_PR_VALUE = 25, Word, 0;
    T_SCTP_DISPOSITION = 26, Bytes(12), 0, read_only;
    T_SCTP_CKSUM_TYPE = 27, Number(CRC32C, ZERO), CRC32C;
    T_SCTP_STATUS = 28, Bytes(1024), 0, read_only;
    T_SCTP_ADD_IP = 29, ADDRESS, 0;
    T_SCTP_DEL_IP = 30, ADDRESS, 0;
    T_SCTP_SET_IP = 31, ADDRESS, 0;
    T_SCTP_PRIMARY = 32, ADDRESS, 0;
    T_SCTP_INTERLEAVE = 33, Flag, NO => flag interleave;
    T_SCTP_SCHED = 34, Number(0, 5), 0;
    T_SCTP_SCHED_VALUE = 35, Bytes(8), 0;
    T_SCTP_RESET_OUT = 36, Bytes(512), 0;
    T_SCTP_RESET_IN = 37, Bytes(512), 0;
    T_SCTP_RESET_ASSOC = 38, Flag, NO;
    T_SCTP_ADD_STREAMS = 39, Bytes(8), 0;
    T_SCTP_RECONFIG = 40, Flag, YES => flag reconfiguration;
    T_SCTP_ASCONF = 41, Flag, NO => flag address_reconfiguration;
    T_SCTP_AUTH = 42, Flag, NO => flag authentication;
    T_SCTP_AUTH_CHUNKS = 43, Bytes(256), 0;
    T_SCTP_AUTH_KEY = 44, Bytes(512), 0;
    T_SCTP_AUTH_ACTIVE = 45, Number(0, 65535), 0;
    T_SCTP_AUTH_DELETE = 46, Bytes(4), 0;
    T_SCTP_ALI = 47, Word, 0;
    T_SCTP_ECN = 48, Flag, NO, read_only;
    T_SCTP_ENCAP_PORT = 49, Number(0, 65535), 0;
    T_SCTP_AUTOCLOSE = 50, Number(0, 1_000_000), 0;
    T_SCTP_PARTIAL = 51, Flag, YES => flag partial_reliability;
    T_SCTP_PD_POINT = 52, Number(1, 64 << 20), 1 << 17 => number partial_delivery_point;
    T_SCTP_RCVINFO = 53, Bytes(20), 0, read_only;
}

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
