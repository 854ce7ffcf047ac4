//! Linux's SCTP sockets as binaries carry them: the constants and structs of <linux/sctp.h>, and how they lie in bytes.

#![allow(unsafe_code)]

mod structs;

use core::mem::MaybeUninit;
use core::net::IpAddr;

use headwater_host::sys;
use headwater_ipnet::Address;

use super::AssocT;
pub use structs::*;

/// struct sockaddr_storage.
pub type Storage = [u8; 128];

/// A C structure, which can be read from any bytes and written as bytes.
///
/// # Safety
/// Any bytes are a valid value, and there is no padding.
pub unsafe trait Layout: Copy {
    fn zero() -> Self {
        // SAFETY: any bytes are a valid value.
        unsafe { MaybeUninit::zeroed().assume_init() }
    }

    /// From the front of `bytes`; `None`: they are too few.
    fn read(bytes: &[u8]) -> Option<Self> {
        let front = bytes.get(..size_of::<Self>())?;
        // SAFETY: so many bytes are there, any are a valid value, and they need no alignment.
        Some(unsafe { front.as_ptr().cast::<Self>().read_unaligned() })
    }

    /// From as many bytes as there are; the others are 0.
    fn read_short(bytes: &[u8]) -> Self {
        let mut value = Self::zero();
        let len = bytes.len().min(size_of::<Self>());
        // SAFETY: at most the value's own bytes, of which any are valid.
        unsafe {
            let to = (&raw mut value).cast::<u8>();
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), to, len);
        }
        value
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the value's own bytes, none of which is padding.
        unsafe { core::slice::from_raw_parts((&raw const *self).cast::<u8>(), size_of::<Self>()) }
    }
}

/// The struct in front. EINVAL: there is less.
pub fn read<T: Layout>(value: &[u8]) -> sys::Result<T> {
    T::read(value).ok_or(libc::EINVAL)
}

/// The struct, and nothing else. EINVAL.
pub fn exactly<T: Layout>(value: &[u8]) -> sys::Result<T> {
    if value.len() != size_of::<T>() {
        return Err(libc::EINVAL);
    }
    read(value)
}

// SAFETY: an integer.
unsafe impl Layout for u16 {}
// SAFETY: an integer.
unsafe impl Layout for u32 {}
// SAFETY: an integer.
unsafe impl Layout for i32 {}
// SAFETY: an integer.
unsafe impl Layout for i64 {}
// SAFETY: nothing is between values in a row.
unsafe impl<T: Layout, const N: usize> Layout for [T; N] {}

/// Constants, each with its value.
macro_rules! constants {
    ($kind:ty; $($name:ident = $value:expr,)*) => {
        $(pub const $name: $kind = $value;)*
    };
}

pub const IPPROTO_SCTP: i32 = 132;
pub const SOL_SCTP: i32 = IPPROTO_SCTP;

// In the place of an association's number; options; types of control messages; in msg_flags of a notification.
pub use libc::{
    MSG_NOTIFICATION, SCTP_ADAPTATION_LAYER, SCTP_ALL_ASSOC, SCTP_ASSOCINFO, SCTP_AUTH_ACTIVE_KEY,
    SCTP_AUTH_CHUNK, SCTP_AUTH_DEACTIVATE_KEY, SCTP_AUTH_DELETE_KEY, SCTP_AUTH_KEY, SCTP_AUTHINFO,
    SCTP_AUTO_ASCONF, SCTP_AUTOCLOSE, SCTP_CONTEXT, SCTP_CURRENT_ASSOC, SCTP_DEFAULT_SEND_PARAM,
    SCTP_DEFAULT_SNDINFO, SCTP_DELAYED_SACK, SCTP_DISABLE_FRAGMENTS, SCTP_DSTADDRV4,
    SCTP_DSTADDRV6, SCTP_EVENTS, SCTP_FRAGMENT_INTERLEAVE, SCTP_FUTURE_ASSOC,
    SCTP_GET_ASSOC_ID_LIST, SCTP_GET_ASSOC_NUMBER, SCTP_GET_PEER_ADDR_INFO, SCTP_HMAC_IDENT,
    SCTP_I_WANT_MAPPED_V4_ADDR, SCTP_INIT, SCTP_INITMSG, SCTP_LOCAL_AUTH_CHUNKS, SCTP_MAX_BURST,
    SCTP_MAXSEG, SCTP_NODELAY, SCTP_NXTINFO, SCTP_PARTIAL_DELIVERY_POINT, SCTP_PEER_ADDR_PARAMS,
    SCTP_PEER_ADDR_THLDS, SCTP_PEER_ADDR_THLDS_V2, SCTP_PEER_AUTH_CHUNKS, SCTP_PRIMARY_ADDR,
    SCTP_PRINFO, SCTP_RCVINFO, SCTP_RECVNXTINFO, SCTP_RECVRCVINFO, SCTP_REUSE_PORT, SCTP_RTOINFO,
    SCTP_SET_PEER_PRIMARY_ADDR, SCTP_SNDINFO, SCTP_SNDRCV, SCTP_STATUS,
};

// Options that libc has no names for.
constants! { i32;
    SCTP_SOCKOPT_BINDX_ADD = 100,
    SCTP_SOCKOPT_BINDX_REM = 101,
    SCTP_SOCKOPT_PEELOFF = 102,
    SCTP_SOCKOPT_CONNECTX_OLD = 107,
    SCTP_GET_PEER_ADDRS = 108,
    SCTP_GET_LOCAL_ADDRS = 109,
    SCTP_SOCKOPT_CONNECTX = 110,
    SCTP_SOCKOPT_CONNECTX3 = 111,
    SCTP_GET_ASSOC_STATS = 112,
    SCTP_PR_SUPPORTED = 113,
    SCTP_DEFAULT_PRINFO = 114,
    SCTP_PR_ASSOC_STATUS = 115,
    SCTP_PR_STREAM_STATUS = 116,
    SCTP_RECONFIG_SUPPORTED = 117,
    SCTP_ENABLE_STREAM_RESET = 118,
    SCTP_RESET_STREAMS = 119,
    SCTP_RESET_ASSOC = 120,
    SCTP_ADD_STREAMS = 121,
    SCTP_SOCKOPT_PEELOFF_FLAGS = 122,
    SCTP_STREAM_SCHEDULER = 123,
    SCTP_STREAM_SCHEDULER_VALUE = 124,
    SCTP_INTERLEAVING_SUPPORTED = 125,
    SCTP_EVENT = 127,
    SCTP_ASCONF_SUPPORTED = 128,
    SCTP_AUTH_SUPPORTED = 129,
    SCTP_ECN_SUPPORTED = 130,
    SCTP_EXPOSE_POTENTIALLY_FAILED_STATE = 131,
    SCTP_REMOTE_UDP_ENCAPS_PORT = 132,
    SCTP_PLPMTUD_PROBE_INTERVAL = 133,
    // Ours, in <headwater.h>.
    HW_SCTP_BYTE_STREAM = 0x4857,
}

// sinfo_flags, snd_flags, rcv_flags, nxt_flags; and policies of partial reliability.
constants! { u16;
    SCTP_UNORDERED = 0x0001,
    SCTP_ADDR_OVER = 0x0002,
    SCTP_ABORT = 0x0004,
    SCTP_SACK_IMMEDIATELY = 0x0008,
    SCTP_SENDALL = 0x0040,
    SCTP_PR_SCTP_ALL = 0x0080,
    SCTP_NOTIFICATION = 0x8000,
    SCTP_EOF = 0x0200,
    SCTP_PR_SCTP_NONE = 0x0000,
    SCTP_PR_SCTP_TTL = 0x0010,
    SCTP_PR_SCTP_RTX = 0x0020,
    SCTP_PR_SCTP_PRIO = 0x0030,
    SCTP_PR_SCTP_MASK = 0x0030,
}

// For SCTP_ENABLE_STREAM_RESET, SCTP_RESET_STREAMS and SCTP_HMAC_IDENT.
constants! { u32;
    SCTP_ENABLE_RESET_STREAM_REQ = 1,
    SCTP_ENABLE_RESET_ASSOC_REQ = 2,
    SCTP_ENABLE_CHANGE_ASSOC_REQ = 4,
    SCTP_ENABLE_STRRESET_MASK = 7,
    SCTP_STREAM_RESET_INCOMING = 1,
    SCTP_STREAM_RESET_OUTGOING = 2,
    SCTP_AUTH_HMAC_ID_SHA1 = 1,
    SCTP_AUTH_HMAC_ID_SHA256 = 3,
}

// spp_flags.
constants! { u32;
    SPP_HB_ENABLE = 1,
    SPP_HB_DISABLE = 1 << 1,
    SPP_HB = SPP_HB_ENABLE | SPP_HB_DISABLE,
    SPP_HB_DEMAND = 1 << 2,
    SPP_PMTUD_ENABLE = 1 << 3,
    SPP_PMTUD_DISABLE = 1 << 4,
    SPP_PMTUD = SPP_PMTUD_ENABLE | SPP_PMTUD_DISABLE,
    SPP_SACKDELAY_ENABLE = 1 << 5,
    SPP_SACKDELAY_DISABLE = 1 << 6,
    SPP_SACKDELAY = SPP_SACKDELAY_ENABLE | SPP_SACKDELAY_DISABLE,
    SPP_HB_TIME_IS_ZERO = 1 << 7,
    SPP_IPV6_FLOWLABEL = 1 << 8,
    SPP_DSCP = 1 << 9,
}

// spinfo_state, and the sstat_state from which the others are counted.
constants! { i32;
    SCTP_INACTIVE = 0,
    SCTP_PF = 1,
    SCTP_ACTIVE = 2,
    SCTP_UNCONFIRMED = 3,
    SCTP_CLOSED = 1,
}

// sn_type.
constants! { u16;
    SCTP_SN_TYPE_BASE = 0x8000,
    SCTP_DATA_IO_EVENT = SCTP_SN_TYPE_BASE,
    SCTP_ASSOC_CHANGE = 0x8001,
    SCTP_PEER_ADDR_CHANGE = 0x8002,
    SCTP_SEND_FAILED = 0x8003,
    SCTP_REMOTE_ERROR = 0x8004,
    SCTP_SHUTDOWN_EVENT = 0x8005,
    SCTP_PARTIAL_DELIVERY_EVENT = 0x8006,
    SCTP_ADAPTATION_INDICATION = 0x8007,
    SCTP_AUTHENTICATION_EVENT = 0x8008,
    SCTP_SENDER_DRY_EVENT = 0x8009,
    SCTP_STREAM_RESET_EVENT = 0x800a,
    SCTP_ASSOC_RESET_EVENT = 0x800b,
    SCTP_STREAM_CHANGE_EVENT = 0x800c,
    SCTP_SEND_FAILED_EVENT = 0x800d,
    SCTP_SN_TYPE_MAX = SCTP_SEND_FAILED_EVENT,
}

// sac_state; flags of notifications.
constants! { u16;
    SCTP_COMM_UP = 0,
    SCTP_COMM_LOST = 1,
    SCTP_RESTART = 2,
    SCTP_SHUTDOWN_COMP = 3,
    SCTP_CANT_STR_ASSOC = 4,
    SCTP_STREAM_RESET_INCOMING_SSN = 1,
    SCTP_STREAM_RESET_OUTGOING_SSN = 2,
    SCTP_STREAM_RESET_DENIED = 4,
    SCTP_STREAM_RESET_FAILED = 8,
}

// spc_state and spc_error.
constants! { i32;
    SCTP_ADDR_AVAILABLE = 0,
    SCTP_ADDR_UNREACHABLE = 1,
    SCTP_ADDR_REMOVED = 2,
    SCTP_ADDR_ADDED = 3,
    SCTP_ADDR_MADE_PRIM = 4,
    SCTP_ADDR_CONFIRMED = 5,
    SCTP_ADDR_POTENTIALLY_FAILED = 6,
    SCTP_FAILED_THRESHOLD = 0,
    SCTP_HEARTBEAT_SUCCESS = 2,
}

// pdapi_indication and auth_indication.
constants! { u32;
    SCTP_PARTIAL_DELIVERY_ABORTED = 0,
    SCTP_AUTH_NEW_KEY = 0,
    SCTP_AUTH_FREE_KEY = 1,
    SCTP_AUTH_NO_AUTH = 2,
}

/// The address of a user's struct, with its port; AF_UNSPEC, or another family than IP's: `None`.
pub fn of_storage(storage: &[u8]) -> Option<(IpAddr, u16)> {
    let at = Address::read(storage).ok()?;
    Some((at.ip().to_canonical(), at.port()))
}

/// As a socket's user sees an address: one of IPv4 is mapped for a socket of IPv6, unless it asked for plain ones.
pub fn seen(ip: IpAddr, v6: bool, mapped: bool) -> IpAddr {
    match ip {
        IpAddr::V4(ip) if v6 && mapped => IpAddr::V6(ip.to_ipv6_mapped()),
        ip => ip,
    }
}

/// A struct sockaddr_storage with an address.
pub fn storage(ip: IpAddr, port: u16) -> Storage {
    let mut storage = [0; 128];
    let address = Address::of_ip(ip, port);
    storage[..address.bytes().len()].copy_from_slice(address.bytes());
    storage
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_struct_is_read_from_unaligned_bytes_and_written_back() {
        let bytes: Vec<u8> = (0..40).collect();
        let info = sctp_sndrcvinfo::read(&bytes[1..]).unwrap();
        assert_eq!(info.sinfo_stream, u16::from_ne_bytes([1, 2]));
        assert_eq!(info.sinfo_assoc_id, i32::from_ne_bytes([29, 30, 31, 32]));
        assert_eq!(info.bytes(), &bytes[1..33]);
        assert_eq!(sctp_sndrcvinfo::read(&bytes[..31]), None);
    }

    #[test]
    fn a_short_struct_is_filled_with_zeros() {
        let value = sctp_assoc_value::read_short(&7i32.to_ne_bytes());
        assert_eq!((value.assoc_id, value.assoc_value), (7, 0));
    }

    #[test]
    fn addresses_lie_in_their_structs_as_in_c() {
        let v4 = storage("10.1.2.3".parse().unwrap(), 0x1234);
        assert_eq!(v4[..9], [2, 0, 0x12, 0x34, 10, 1, 2, 3, 0]);
        assert_eq!(of_storage(&v4), Some(("10.1.2.3".parse().unwrap(), 0x1234)));
        let v6 = storage("fd00::1".parse().unwrap(), 80);
        assert_eq!(of_storage(&v6), Some(("fd00::1".parse().unwrap(), 80)));
        assert_eq!(v6[28..], [0; 100]);
        assert_eq!(of_storage(&v6[..20]), None);
        assert_eq!(of_storage(&[0; 128]), None);
    }

    #[test]
    fn a_mapped_address_is_the_same_as_a_plain_one() {
        let plain: IpAddr = "10.1.2.3".parse().unwrap();
        let mapped = seen(plain, true, true);
        assert_eq!(mapped.to_string(), "::ffff:10.1.2.3");
        assert_eq!(of_storage(&storage(mapped, 5)), Some((plain, 5)));
        assert_eq!(seen(plain, true, false), plain);
        assert_eq!(seen(plain, false, true), plain);
    }
}
