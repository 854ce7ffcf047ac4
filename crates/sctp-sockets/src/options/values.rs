//! What the options of a socket and of its associations are.

use core::net::IpAddr;
use core::ops::{Deref, DerefMut};
use core::time::Duration;
use std::collections::BTreeMap;

use headwater_sctp::{Allowed, AssocConfig, RtoLimits};
use headwater_sctp_stack::{Order, environment};

use crate::abi::*;
use crate::notice::Events;
use crate::{SendInfo, Style};

/// Headers of a packet with one DATA chunk.
pub const HEADERS: u32 = 12 + 16;
/// Headers below SCTP's, of IPv6 and UDP.
const BELOW: u32 = 40 + 8;
/// What IP can carry.
const MOST_MTU: u32 = 65_535;
/// What Linux tells of buffers that nobody has set (net.core.wmem_default, rmem_default).
const TOLD_BUFFER: u32 = 212_992;

/// What a socket keeps for associations to come, and each association for itself.
#[derive(Clone, Debug)]
pub struct Shared {
    /// What its body goes by; [`Shared::settle`] makes a part of it from `path` and others here.
    pub config: AssocConfig,
    pub cookie_life: Duration,
    /// The longest RTO of INIT, in milliseconds.
    pub init_timeout: u16,
    /// The peer's UDP port (RFC 6951); `None`: as the links are configured.
    pub encap: Option<u16>,
    /// How messages without control messages are sent.
    pub send: SendInfo,
    pub events: Events,
    /// Told with received messages.
    pub context: u32,
    /// The most user data of a chunk; 0: what fits a packet.
    pub maxseg: u32,
    pub sack_every: u32,
    pub path: PathValues,
    /// Which requests of RFC 6525 may be made: SCTP_ENABLE_RESET_STREAM_REQ and so on.
    pub stream_reset: u32,
    /// SCTP_PF_EXPOSE_*.
    pub exposure: u32,
    /// Keys that must not be made active.
    pub deactivated: Vec<u16>,
}

/// Of a path; what an association has is for paths that have none of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathValues {
    pub heartbeats: bool,
    /// Milliseconds.
    pub interval: u32,
    pub most_errors: u16,
    pub potentially_failed: u16,
    pub change_primary: u16,
    pub discovers_mtu: bool,
    /// Where the MTU is not to be discovered; 0: as it is.
    pub mtu: u32,
    pub delays_sack: bool,
    /// Milliseconds.
    pub sack_delay: u32,
    pub encap: u16,
    /// Milliseconds.
    pub probe_interval: u32,
    pub flow_label: Option<u32>,
    pub dscp: Option<u8>,
}

impl Default for PathValues {
    fn default() -> PathValues {
        PathValues {
            heartbeats: true,
            interval: 30_000,
            most_errors: 5,
            potentially_failed: 0,
            change_primary: u16::MAX,
            discovers_mtu: true,
            mtu: 0,
            delays_sack: true,
            sack_delay: 200,
            encap: 0,
            probe_interval: 0,
            flow_label: None,
            dscp: None,
        }
    }
}

impl PathValues {
    /// Of an SCTP packet: the program counts the headers of IP and UDP too.
    pub fn fixed_mtu(&self) -> Option<usize> {
        let fixed = !self.discovers_mtu && self.mtu > 0;
        fixed.then(|| (self.mtu.min(MOST_MTU) - BELOW) as usize)
    }
}

impl Default for Shared {
    fn default() -> Shared {
        let ms = Duration::from_millis;
        let config = AssocConfig {
            outbound: 10,
            inbound: u16::MAX,
            rto: RtoLimits {
                initial: ms(3000),
                min: ms(1000),
                max: ms(60_000),
            },
            ..AssocConfig::default()
        };
        let mut shared = Shared {
            config,
            cookie_life: Duration::from_secs(60),
            init_timeout: 60_000,
            encap: None,
            send: SendInfo::default(),
            events: Events::default(),
            context: 0,
            maxseg: 0,
            sack_every: 2,
            path: PathValues::default(),
            stream_reset: 0,
            exposure: 0,
            deactivated: Vec::new(),
        };
        shared.settle();
        shared
    }
}

impl Shared {
    /// Makes the configuration fit.
    pub fn settle(&mut self) {
        let (config, path) = (&mut self.config, &self.path);
        let ms = |n: u32| Duration::from_millis(n.into());
        config.heartbeats = path.heartbeats;
        config.heartbeat_interval = ms(path.interval);
        config.path_retransmissions = path.most_errors.into();
        config.potentially_failed = path.potentially_failed.into();
        config.probe_mtu = path.discovers_mtu;
        (config.sack_delay, config.sack_every) = if path.delays_sack {
            (ms(path.sack_delay), self.sack_every)
        } else {
            (Duration::ZERO, 1)
        };
        let usual = AssocConfig::default();
        config.most_mtu = path.fixed_mtu().unwrap_or(usual.most_mtu);
        config.mtu = path.fixed_mtu().unwrap_or(usual.mtu);
        config.most_fragment = self.maxseg as usize;
        config.init_timeout = Some(ms(self.init_timeout.into()));
        config.allowed = Allowed(self.stream_reset as u8);
        self.encap = (path.encap != 0).then_some(path.encap);
    }
}

/// Of a socket, which begins with [`Options::new`]; by default all of it is off.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub shared: Shared,
    pub v6only: bool,
    pub recv_rcvinfo: bool,
    pub recv_nxtinfo: bool,
    /// Messages come with a struct sctp_sndrcvinfo.
    pub data_io: bool,
    /// SCTP_FRAGMENT_INTERLEAVE, 0 to 2.
    pub interleave: u8,
    /// SCTP_PARTIAL_DELIVERY_POINT, as it was set.
    pub delivery_point: u32,
    /// HW_SCTP_BYTE_STREAM: the bounds of messages don't matter.
    pub byte_stream: bool,
    pub disable_fragments: bool,
    /// Seconds; `None`: off.
    pub linger: Option<u32>,
    /// Some(0): don't wait.
    pub receive_timeout: Option<Duration>,
    pub send_timeout: Option<Duration>,
    /// As SO_SNDBUF and SO_RCVBUF tell them.
    pub sndbuf: u32,
    pub rcvbuf: u32,
    pub reuse_port: bool,
    pub v4mapped: bool,
    pub auto_asconf: bool,
    pub hmacs: Vec<u16>,
    /// What is to be done to an association once it is there.
    pub kept: Vec<Order>,
    /// Options of other levels, as they were set.
    pub told: BTreeMap<(i32, i32), i32>,
}

impl Options {
    pub fn new(style: Style) -> Options {
        let mut options = Options {
            byte_stream: style == Style::One && environment::byte_streams(),
            sndbuf: TOLD_BUFFER,
            rcvbuf: TOLD_BUFFER,
            v4mapped: true,
            hmacs: vec![
                SCTP_AUTH_HMAC_ID_SHA1 as u16,
                SCTP_AUTH_HMAC_ID_SHA256 as u16,
            ],
            ..Options::default()
        };
        (options.config.joins, options.config.partial_delivery_point) = options.delivery();
        options
    }

    /// Whether messages that are sent are joined, and how much of one that is received is delivered before its end.
    pub fn delivery(&self) -> (bool, usize) {
        let point = match self.delivery_point {
            _ if self.byte_stream => 1,
            0 => AssocConfig::default().partial_delivery_point,
            bytes => bytes as usize,
        };
        (self.byte_stream, point)
    }

    /// SCTP_INITMSG: 0 leaves a value as it is.
    pub fn apply_init(&mut self, init: &sctp_initmsg) {
        let or = |n: u16, now: u16| if n == 0 { now } else { n };
        let config = &mut self.shared.config;
        config.outbound = or(init.sinit_num_ostreams, config.outbound);
        config.inbound = or(init.sinit_max_instreams, config.inbound);
        if init.sinit_max_attempts > 0 {
            config.init_retransmissions = init.sinit_max_attempts.into();
        }
        self.shared.init_timeout = or(init.sinit_max_init_timeo, self.shared.init_timeout);
        self.shared.settle();
    }
}

/// Of an association.
#[derive(Clone, Debug)]
pub struct AssocOptions {
    pub shared: Shared,
    /// Addresses of the peer with values of their own.
    pub paths: BTreeMap<IpAddr, PathValues>,
    /// Values of streams, as their scheduler has them.
    pub stream_values: BTreeMap<u16, u16>,
}

impl AssocOptions {
    /// Of an association that begins.
    pub fn of(options: &Options) -> AssocOptions {
        let values = options.kept.iter().filter_map(|order| match order {
            Order::StreamValue { stream, value } => Some((*stream, *value)),
            _ => None,
        });
        AssocOptions {
            shared: options.shared.clone(),
            paths: BTreeMap::new(),
            stream_values: values.collect(),
        }
    }

    /// Of the path to this address.
    pub fn path_to(&self, host: IpAddr) -> &PathValues {
        self.paths.get(&host).unwrap_or(&self.shared.path)
    }
}

macro_rules! with_what_is_shared {
    ($($options:ident)*) => {$(
        impl Deref for $options {
            type Target = Shared;

            fn deref(&self) -> &Shared {
                &self.shared
            }
        }

        impl DerefMut for $options {
            fn deref_mut(&mut self) -> &mut Shared {
                &mut self.shared
            }
        }
    )*};
}

with_what_is_shared! { Options AssocOptions }
