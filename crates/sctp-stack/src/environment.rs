//! What the environment says about links: HEADWATER_SCTP_UDP_PORT, HEADWATER_SCTP_MTU, HEADWATER_SCTP_LINK (see [`choice`](super::choice));
//! and about sockets: HEADWATER_SCTP_BYTE_STREAM.

use std::sync::OnceLock;

use headwater_host::log::Level;
use headwater_host::log::said;

use super::choice::{self, UDP_PORT};
use super::link::Link;
use super::link::raw::{Raw, Unusable};

/// Our UDP port, and that of peers for whom no other is said: HEADWATER_SCTP_UDP_PORT.
pub fn udp_port() -> u16 {
    static PORT: OnceLock<u16> = OnceLock::new();
    *PORT.get_or_init(|| said("HEADWATER_SCTP_UDP_PORT", parse_port, UDP_PORT))
}

/// A value of HEADWATER_SCTP_UDP_PORT, or what is wanted.
pub fn parse_port(text: &str) -> Result<u16, String> {
    let port = text.parse().ok().filter(|&port| port != 0);
    port.ok_or_else(|| "want a port".to_string())
}

/// The largest packet, SCTP header included, that any association may send: HEADWATER_SCTP_MTU.
pub fn largest_packet() -> usize {
    static LARGEST: OnceLock<usize> = OnceLock::new();
    *LARGEST.get_or_init(|| said("HEADWATER_SCTP_MTU", parse_packet, usize::MAX))
}

/// A value of HEADWATER_SCTP_MTU, or what is wanted.
pub fn parse_packet(text: &str) -> Result<usize, String> {
    let bytes = text.parse().ok().filter(|&bytes| bytes >= LEAST_PACKET);
    bytes.ok_or_else(|| format!("want a number of bytes, at least {LEAST_PACKET}"))
}

/// Do one-to-one sockets begin as byte streams? HEADWATER_SCTP_BYTE_STREAM.
pub fn byte_streams() -> bool {
    static STREAMS: OnceLock<bool> = OnceLock::new();
    *STREAMS.get_or_init(|| said("HEADWATER_SCTP_BYTE_STREAM", parse_switch, false))
}

/// A value of HEADWATER_SCTP_BYTE_STREAM, or what is wanted.
pub fn parse_switch(text: &str) -> Result<bool, String> {
    match text {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err("want 0 or 1".to_string()),
    }
}

/// What any path carries: 576 bytes of IPv4, with UDP.
const LEAST_PACKET: usize = 548;

/// The raw link, where some destination may want it and it is possible.
pub fn raw_link() -> Option<Box<dyn Link>> {
    let wants = |link| matches!(link, choice::Link::Auto | choice::Link::Raw);
    if !choice::rules().any(wants) {
        return None;
    }
    match Raw::open() {
        Ok(raw) => Some(Box::new(raw)),
        Err(why) => {
            why.explain(match why {
                // It was asked for by name.
                _ if choice::rules().any(|link| link == choice::Link::Raw) => Level::Warn,
                Unusable::Kernel => Level::Info,
                _ => Level::Debug,
            });
            None
        }
    }
}
