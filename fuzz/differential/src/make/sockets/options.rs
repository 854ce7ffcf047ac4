//! Socket options: those whose value is the same each time.

use libc::{IPPROTO_IP, IPPROTO_IPV6, IPPROTO_TCP, SOL_SOCKET};

use super::{Kind, Maker};
use crate::make::Makes;

/// Level, option, and what may be set. What rows of docs/deviations.md are about is not set: time stamps, SO_PEEK_OFF, TCP_ULP and
/// their like; nor what gathers, which is a matter of time.
const TABLE: &[(i32, i32, &[i64])] = &[
    (SOL_SOCKET, libc::SO_DEBUG, &[0]),
    (SOL_SOCKET, libc::SO_REUSEADDR, &[0, 1]),
    (SOL_SOCKET, libc::SO_REUSEPORT, &[0, 1]),
    (SOL_SOCKET, libc::SO_TYPE, &[1]),
    (SOL_SOCKET, libc::SO_ERROR, &[1]),
    (SOL_SOCKET, libc::SO_DONTROUTE, &[0, 1]),
    (SOL_SOCKET, libc::SO_BROADCAST, &[0, 1]),
    (SOL_SOCKET, libc::SO_KEEPALIVE, &[0, 1, -1]),
    (SOL_SOCKET, libc::SO_OOBINLINE, &[0, 1]),
    (SOL_SOCKET, libc::SO_NO_CHECK, &[0, 1]),
    (SOL_SOCKET, libc::SO_PRIORITY, &[0, 6]),
    (SOL_SOCKET, libc::SO_PASSCRED, &[0, 1]),
    (SOL_SOCKET, libc::SO_ACCEPTCONN, &[1]),
    (SOL_SOCKET, libc::SO_PROTOCOL, &[6]),
    (SOL_SOCKET, libc::SO_DOMAIN, &[2]),
    (SOL_SOCKET, libc::SO_RCVLOWAT, &[0, 1, 5, -1]),
    (SOL_SOCKET, libc::SO_SNDLOWAT, &[1]),
    (SOL_SOCKET, libc::SO_RCVTIMEO, &[0]),
    (SOL_SOCKET, libc::SO_SNDTIMEO, &[0]),
    (SOL_SOCKET, libc::SO_LINGER, &[0, 1]),
    (SOL_SOCKET, libc::SO_TIMESTAMP, &[0]),
    (SOL_SOCKET, libc::SO_TIMESTAMPNS, &[0]),
    (SOL_SOCKET, libc::SO_TIMESTAMPING, &[0]),
    (SOL_SOCKET, libc::SO_PEEK_OFF, &[-1]),
    (SOL_SOCKET, libc::SO_RXQ_OVFL, &[0, 1]),
    (SOL_SOCKET, libc::SO_WIFI_STATUS, &[0]),
    (SOL_SOCKET, libc::SO_LOCK_FILTER, &[0]),
    (SOL_SOCKET, libc::SO_BINDTODEVICE, &[0]),
    (SOL_SOCKET, libc::SO_DETACH_FILTER, &[0]),
    (SOL_SOCKET, libc::SO_ZEROCOPY, &[0, 1, 2]),
    (SOL_SOCKET, 9999, &[1]),
    (IPPROTO_TCP, libc::TCP_NODELAY, &[1, -1]),
    (IPPROTO_TCP, libc::TCP_CORK, &[0]),
    (IPPROTO_TCP, libc::TCP_KEEPIDLE, &[100, 0, 40_000]),
    (IPPROTO_TCP, libc::TCP_KEEPINTVL, &[100, 0]),
    (IPPROTO_TCP, libc::TCP_KEEPCNT, &[3, 0, 200]),
    (IPPROTO_TCP, libc::TCP_SYNCNT, &[3, 0]),
    (IPPROTO_TCP, libc::TCP_LINGER2, &[3, -1]),
    (IPPROTO_TCP, libc::TCP_DEFER_ACCEPT, &[0, 1]),
    (IPPROTO_TCP, libc::TCP_USER_TIMEOUT, &[1000, -1, 0]),
    (IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, &[4096, -1]),
    (IPPROTO_TCP, libc::TCP_FASTOPEN, &[1]),
    (IPPROTO_TCP, libc::TCP_CONGESTION, &[0, 0x6f6e_6572]),
    (IPPROTO_TCP, libc::TCP_THIN_LINEAR_TIMEOUTS, &[0, 1, 2]),
    (IPPROTO_TCP, libc::TCP_SAVE_SYN, &[0, 1, 5]),
    (IPPROTO_TCP, libc::TCP_SAVED_SYN, &[0]),
    (IPPROTO_TCP, libc::TCP_REPAIR_QUEUE, &[1]),
    (IPPROTO_TCP, libc::TCP_QUEUE_SEQ, &[1]),
    (IPPROTO_TCP, libc::TCP_INQ, &[0, 2]),
    (IPPROTO_TCP, 9999, &[1]),
    (IPPROTO_IP, libc::IP_TOS, &[0, 16]),
    (IPPROTO_IP, libc::IP_TTL, &[64, 0, 300]),
    (IPPROTO_IP, libc::IP_MTU_DISCOVER, &[1, 9]),
    (IPPROTO_IP, libc::IP_RECVERR, &[0, 1]),
    (IPPROTO_IP, libc::IP_RECVTOS, &[0]),
    (IPPROTO_IP, libc::IP_FREEBIND, &[0, 1]),
    (IPPROTO_IP, libc::IP_OPTIONS, &[0]),
    (IPPROTO_IP, libc::IP_PKTINFO, &[0]),
    (IPPROTO_IPV6, libc::IPV6_V6ONLY, &[0, 1]),
    (libc::SOL_UDP, 1, &[1]),
    // SCTP's.
    (132, 3, &[1]),
    (4711, 1, &[1]),
    (-1, -1, &[1]),
];

impl Maker {
    pub(super) fn options(&mut self, p: usize, t: usize) {
        let kind = self.of(&[
            Kind::Connection,
            Kind::Connection,
            Kind::Connection,
            Kind::Listener,
            Kind::Set,
        ]);
        let slot = self.slot(p, kind);
        let (level, option, values) = self.of(TABLE);
        let (level, option) = (i64::from(level), i64::from(option));
        if self.one_in(2) {
            let value = self.of(values);
            let len = self.of(&[4, 4, 4, 4, 8, 1, 0, 2, 3, -1]);
            self.say(p, t, "setopt", &[slot, level, option, value, len]);
        } else {
            let room = self.of(&[4, 4, 4, 4, 8, 1, 0, 2, 3, 16, 60, -1]);
            self.say(p, t, "getopt", &[slot, level, option, room]);
        }
    }
}
