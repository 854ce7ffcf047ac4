//! What an endpoint and its associations are told; the defaults are those that RFC 9260 section 16 recommends.

use core::time::Duration;

use crate::congestion::Rfc9260;
use crate::cookie::CookieKeys;
use crate::wire::chunk::LEAST_WINDOW;
use crate::{CongestionControl, SchedulerKind};

/// Makes the congestion control of a path, for packets of this size.
pub type MakeWindow = fn(mtu: usize) -> Box<dyn CongestionControl>;

/// Of an endpoint.
#[derive(Debug)]
pub struct Config {
    /// For associations that peers begin.
    pub association: AssocConfig,
    pub keys: Box<dyn CookieKeys>,
    pub cookie_lifetime: Duration,
    /// More than that are refused.
    pub most_associations: usize,
    /// Peers may begin associations at IPv4 addresses of ours, and at IPv6 ones.
    pub ipv4: bool,
    pub ipv6: bool,
}

impl Config {
    pub fn new(keys: Box<dyn CookieKeys>) -> Config {
        Config {
            association: AssocConfig::default(),
            keys,
            cookie_lifetime: Duration::from_secs(60),
            most_associations: 1 << 20,
            ipv4: true,
            ipv6: true,
        }
    }
}

/// A struct with public fields, each with its default.
macro_rules! settings {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* pub $field:ident: $type:ty = $default:expr,)* }) => {
        $(#[$about])*
        pub struct $name {
            $($(#[$doc])* pub $field: $type,)*
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $($field: $default),* }
            }
        }
    };
}

settings! {
    /// Of the retransmission timeouts of paths.
    #[derive(Clone, Copy, Debug)]
    RtoLimits {
        pub initial: Duration = Duration::from_secs(1),
        pub min: Duration = Duration::from_secs(1),
        pub max: Duration = Duration::from_secs(60),
    }
}

settings! {
    /// Of an association. Sizes are bytes.
    #[derive(Clone, Debug)]
    AssocConfig {
        /// Streams asked for, and the most that the peer may have.
        pub outbound: u16 = 10,
        pub inbound: u16 = 2048,
        pub rto: RtoLimits = RtoLimits::default(),
        /// Max.Init.Retransmits, Association.Max.Retrans, Path.Max.Retrans.
        pub init_retransmissions: u32 = 8,
        /// The longest wait for an answer to INIT or COOKIE ECHO; `None`: as long as the RTO's limits let it be.
        pub init_timeout: Option<Duration> = None,
        pub association_retransmissions: u32 = 10,
        pub path_retransmissions: u32 = 5,
        /// Errors after which a path is potentially failed (RFC 7829); as many as make it inactive: never.
        pub potentially_failed: u32 = 0,
        pub heartbeats: bool = true,
        pub heartbeat_interval: Duration = Duration::from_secs(30),
        pub sack_delay: Duration = Duration::from_millis(200),
        /// A SACK for this many packets with data.
        pub sack_every: u32 = 2,
        /// Small messages wait for what is on its way, to share packets.
        pub nagle: bool = true,
        /// Messages have no bounds that matter: those that wait together are joined, up to as much as a packet's chunk takes.
        pub joins: bool = false,
        pub max_burst: u32 = 4,
        /// What the peer may send unread, and what we may queue.
        pub receive_window: usize = 1 << 20,
        pub send_buffer: usize = 1 << 20,
        /// Messages are cut into chunks of no more than so many bytes; 0: as long as packets take.
        pub most_fragment: usize = 0,
        pub partial_delivery_point: usize = 1 << 17,
        /// Parts of several messages may be delivered in turn.
        pub interleaved_delivery: bool = false,
        /// The largest packet, SCTP header included, before and after the path was probed for longer ones (RFC 8899).
        pub mtu: usize = 1452,
        pub most_mtu: usize = 1452,
        pub probe_mtu: bool = true,
        pub scheduler: SchedulerKind = SchedulerKind::default(),
        /// User message interleaving, RFC 8260.
        pub interleave: bool = false,
        /// RFC 3758, RFC 6525, RFC 5061.
        pub partial_reliability: bool = true,
        pub reconfiguration: bool = true,
        /// What peers may ask of us by RFC 6525.
        pub allowed: Allowed = Allowed::ALL,
        pub address_reconfiguration: bool = false,
        /// RFC 4895: chunk types that the peer must authenticate; AUTH is offered where this or address reconfiguration asks for it.
        pub authentication: bool = false,
        pub authenticated_chunks: Vec<u8> = Vec::new(),
        /// Shared keys by number, and the one to sign with; number 0 is there by itself, and empty.
        pub shared_keys: Vec<(u16, Vec<u8>)> = Vec::new(),
        pub active_key: u16 = 0,
        /// The error detection method below us that makes a checksum needless (RFC 9653).
        pub zero_checksum: Option<u32> = None,
        pub autoclose: Option<Duration> = None,
        pub adaptation: Option<u32> = None,
        /// T5-shutdown-guard; `None`: five times RTO.Max (RFC 9260 9.2).
        pub guard: Option<Duration> = None,
        pub window: MakeWindow = window_of_rfc_9260,
        /// The first TSN; `None`: one that can't be guessed. For tests.
        pub initial_tsn: Option<u32> = None,
    }
}

/// Not a closure: each crate that makes a configuration would have its own.
#[inline(never)]
fn window_of_rfc_9260(mtu: usize) -> Box<dyn CongestionControl> {
    Box::new(Rfc9260::new(mtu))
}

impl AssocConfig {
    /// [`most_fragment`](Self::most_fragment), where packets take as much.
    pub(crate) fn longest_fragment(&self) -> usize {
        match self.most_fragment {
            0 => usize::MAX,
            most => most,
        }
    }

    /// Keeps a shared key, in place of another of its number.
    pub fn keep_key(&mut self, number: u16, secret: &[u8]) {
        self.shared_keys.retain(|(known, _)| *known != number);
        self.shared_keys.push((number, secret.to_vec()));
    }

    /// What INIT and INIT ACK say of [`receive_window`](Self::receive_window): less than this no endpoint may offer (RFC 9260 6).
    pub fn window_to_offer(&self) -> usize {
        self.receive_window.max(LEAST_WINDOW as usize)
    }
}

/// What peers may do, as bits: those that SCTP_ENABLE_STREAM_RESET has for ourselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Allowed(pub u8);

impl Allowed {
    pub const STREAMS: Allowed = Allowed(1);
    pub const ASSOCIATION: Allowed = Allowed(2);
    pub const MORE_STREAMS: Allowed = Allowed(4);
    pub const ALL: Allowed = Allowed(7);

    pub fn has(self, what: Allowed) -> bool {
        self.0 & what.0 != 0
    }
}
