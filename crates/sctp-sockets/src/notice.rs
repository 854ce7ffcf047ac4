//! Notifications (RFC 6458 section 6), laid out as Linux does it, and who wants which.
//!
//! Where the two differ, Linux counts: sac_info has the causes of the peer's ABORT without the chunk's header, sre_data has a cause's value
//! without its header, error codes are in the network's byte order, and a stream change tells how many streams were added.

use core::net::IpAddr;

use headwater_host::sys;
use headwater_sctp::send::Failed;
use headwater_sctp::wire::CauseOwned;
use headwater_sctp::{Down, Event, Outcome, Outgoing, PathChange, PathState};

use super::abi::{self, *};
use super::{AssocT, control};

/// Kinds of notifications: the values of sn_type, and SCTP_DATA_IO_EVENT, which asks for SCTP_SNDRCV.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Events(u32);

/// Bytes of struct sctp_event_subscribe, which has a byte per kind, in the order of their numbers.
pub const SUBSCRIBE: usize = (SCTP_SN_TYPE_MAX - SCTP_SN_TYPE_BASE) as usize + 1;

impl Events {
    #[inline]
    pub fn has(self, kind: u16) -> bool {
        bit(kind).is_some_and(|bit| self.0 & bit != 0)
    }

    /// SCTP_EVENT. EINVAL: no such kind.
    pub fn set(&mut self, kind: u16, on: bool) -> sys::Result<()> {
        let bit = bit(kind).ok_or(libc::EINVAL)?;
        self.0 = if on { self.0 | bit } else { self.0 & !bit };
        Ok(())
    }

    /// SCTP_EVENTS, of which a program may know only the beginning; the other kinds stay as they are. EINVAL: longer than it is.
    pub fn subscribe(&mut self, wanted: &[u8]) -> sys::Result<()> {
        if wanted.len() > SUBSCRIBE {
            return Err(libc::EINVAL);
        }
        for (kind, &wanted) in (SCTP_SN_TYPE_BASE..).zip(wanted) {
            self.set(kind, wanted != 0)?;
        }
        Ok(())
    }

    pub fn as_subscribe(self) -> [u8; SUBSCRIBE] {
        core::array::from_fn(|i| (self.0 >> i & 1) as u8)
    }
}

fn bit(kind: u16) -> Option<u32> {
    (SCTP_SN_TYPE_BASE..=SCTP_SN_TYPE_MAX)
        .contains(&kind)
        .then(|| 1 << (kind - SCTP_SN_TYPE_BASE))
}

/// What a notification tells beside its event.
#[derive(Clone, Copy, Default, Debug)]
pub struct About {
    /// Streams.
    pub out: u16,
    pub inbound: u16,
    pub peer: Option<(IpAddr, u16)>,
    /// The socket is one of AF_INET6, and its user takes addresses of IPv4 mapped.
    pub v6: bool,
    pub v4mapped: bool,
    /// The association was there before the event.
    pub up: bool,
    /// SCTP_EXPOSE_POTENTIALLY_FAILED_STATE.
    pub potentially_failed: bool,
}

/// A notification: its type, what its struct tells, where all else is 0, and what follows that.
macro_rules! notice {
    ($kind:ident => $fixed:ident { $($field:ident: $value:expr),* $(,)? } $(, $more:expr)?) => {{
        let fixed = $fixed { $($field: $value,)* ..Default::default() };
        whole($kind, [fixed.bytes() $(, &$more)?].concat())
    }};
}

/// All notifications begin with their type, flags, and the length of all of it.
fn whole(kind: u16, mut bytes: Vec<u8>) -> Vec<u8> {
    let len = bytes.len() as u32;
    bytes[..2].copy_from_slice(&kind.to_ne_bytes());
    bytes[4..8].copy_from_slice(&len.to_ne_bytes());
    bytes
}

/// The notifications of an event, each with its sn_type: several remote errors give several, and a message that failed one of the
/// old kind and one of the new.
pub fn encode(event: &Event, assoc: AssocT, about: &About) -> Vec<(u16, Vec<u8>)> {
    let told = match event {
        Event::Up { .. } => vec![there(SCTP_COMM_UP, assoc, about)],
        Event::Restarted => vec![there(SCTP_RESTART, assoc, about)],
        Event::Down(why) => vec![down(why, assoc, about.up)],
        Event::PeerShutdown => vec![shutdown(assoc)],
        Event::Dry => vec![sender_dry(assoc)],
        Event::SendFailed(failed) => send_failed(failed, assoc),
        Event::Path { addr, change } => path(*addr, *change, assoc, about).into_iter().collect(),
        Event::RemoteError(causes) => {
            let each = causes.iter().map(|cause| remote_error(cause, assoc));
            each.collect()
        }
        Event::StreamsReset {
            incoming,
            streams,
            outcome,
        } => vec![streams_reset(*incoming, streams, *outcome, assoc)],
        Event::StreamsAdded {
            incoming,
            outgoing,
            outcome,
        } => vec![
            notice!(SCTP_STREAM_CHANGE_EVENT => sctp_stream_change_event {
                strchange_flags: flags(*outcome),
                strchange_assoc_id: assoc,
                strchange_instrms: *incoming,
                strchange_outstrms: *outgoing,
            }),
        ],
        // The TSNs with which it goes on are not told: both are 0.
        Event::Reset { outcome } => {
            vec![notice!(SCTP_ASSOC_RESET_EVENT => sctp_assoc_reset_event {
                assocreset_flags: flags(*outcome),
                assocreset_assoc_id: assoc,
            })]
        }
        Event::Adaptation(indication) => vec![
            notice!(SCTP_ADAPTATION_INDICATION => sctp_adaptation_event {
                sai_adaptation_ind: *indication,
                sai_assoc_id: assoc,
            }),
        ],
        Event::NoAuthentication => vec![authentication(SCTP_AUTH_NO_AUTH, 0, assoc)],
        Event::NewKey(key) => vec![authentication(SCTP_AUTH_NEW_KEY, *key, assoc)],
        Event::KeyFree(key) => vec![authentication(SCTP_AUTH_FREE_KEY, *key, assoc)],
        Event::Readable | Event::Writable | Event::AddressDone { .. } => Vec::new(),
    };
    let typed = |bytes: Vec<u8>| (u16::from_ne_bytes([bytes[0], bytes[1]]), bytes);
    told.into_iter().map(typed).collect()
}

/// The rest of a message whose beginning was received does not come.
pub fn partial_delivery_aborted(assoc: AssocT, stream: u16, number: u16) -> Vec<u8> {
    notice!(SCTP_PARTIAL_DELIVERY_EVENT => sctp_pdapi_event {
        pdapi_indication: SCTP_PARTIAL_DELIVERY_ABORTED,
        pdapi_assoc_id: assoc,
        pdapi_stream: stream.into(),
        pdapi_seq: number.into(),
    })
}

fn shutdown(assoc: AssocT) -> Vec<u8> {
    notice!(SCTP_SHUTDOWN_EVENT => sctp_shutdown_event { sse_assoc_id: assoc })
}

pub fn sender_dry(assoc: AssocT) -> Vec<u8> {
    notice!(SCTP_SENDER_DRY_EVENT => sctp_sender_dry_event { sender_dry_assoc_id: assoc })
}

/// SCTP_AUTH_NEW_KEY, FREE_KEY, NO_AUTH.
pub fn authentication(indication: u32, key: u16, assoc: AssocT) -> Vec<u8> {
    notice!(SCTP_AUTHENTICATION_EVENT => sctp_authkey_event {
        auth_keynumber: key,
        auth_indication: indication,
        auth_assoc_id: assoc,
    })
}

fn there(state: u16, assoc: AssocT, about: &About) -> Vec<u8> {
    notice!(SCTP_ASSOC_CHANGE => sctp_assoc_change {
        sac_state: state,
        sac_outbound_streams: about.out,
        sac_inbound_streams: about.inbound,
        sac_assoc_id: assoc,
    })
}

fn down(why: &Down, assoc: AssocT, up: bool) -> Vec<u8> {
    let (mut error, mut info) = (0, Vec::new());
    if let Down::Aborted { by_peer, causes } = why {
        error = causes.first().map_or(0, |cause| cause.code.to_be());
        if *by_peer && up {
            causes.iter().for_each(|cause| put_cause(&mut info, cause));
        }
    }
    let state = match why {
        Down::Shutdown => SCTP_SHUTDOWN_COMP,
        Down::SetupFailed { .. } => SCTP_CANT_STR_ASSOC,
        Down::Aborted { .. } | Down::Unreachable if up => SCTP_COMM_LOST,
        Down::Aborted { .. } | Down::Unreachable => SCTP_CANT_STR_ASSOC,
    };
    notice!(SCTP_ASSOC_CHANGE => sctp_assoc_change {
        sac_state: state,
        sac_error: error,
        sac_assoc_id: assoc,
    }, info)
}

/// As it was on the wire.
fn put_cause(into: &mut Vec<u8>, cause: &CauseOwned) {
    let len = 4 + cause.value().len();
    into.extend_from_slice(&cause.code.to_be_bytes());
    into.extend_from_slice(&(len as u16).to_be_bytes());
    into.extend_from_slice(cause.value());
    into.resize(into.len().next_multiple_of(4), 0);
}

fn path(addr: IpAddr, change: PathChange, assoc: AssocT, about: &About) -> Option<Vec<u8>> {
    let (state, error) = match change {
        PathChange::State(PathState::Unconfirmed) => return None,
        PathChange::State(PathState::PotentiallyFailed) if !about.potentially_failed => {
            return None;
        }
        PathChange::State(PathState::PotentiallyFailed) => {
            (SCTP_ADDR_POTENTIALLY_FAILED, SCTP_FAILED_THRESHOLD)
        }
        PathChange::State(PathState::Active) => (SCTP_ADDR_AVAILABLE, SCTP_HEARTBEAT_SUCCESS),
        PathChange::State(PathState::Inactive) => (SCTP_ADDR_UNREACHABLE, SCTP_FAILED_THRESHOLD),
        PathChange::Confirmed => (SCTP_ADDR_CONFIRMED, SCTP_HEARTBEAT_SUCCESS),
        PathChange::Added => (SCTP_ADDR_ADDED, 0),
        PathChange::Removed => (SCTP_ADDR_REMOVED, 0),
        PathChange::MadePrimary => (SCTP_ADDR_MADE_PRIM, 0),
    };
    let port = about.peer.map_or(0, |(_, port)| port);
    let addr = abi::seen(addr, about.v6, about.v4mapped);
    Some(notice!(SCTP_PEER_ADDR_CHANGE => sctp_paddr_change {
        spc_aaddr: abi::storage(addr, port),
        spc_state: state,
        spc_error: error,
        spc_assoc_id: assoc,
    }))
}

fn remote_error(cause: &CauseOwned, assoc: AssocT) -> Vec<u8> {
    let mut value = cause.value().to_vec();
    value.resize(value.len().next_multiple_of(4), 0);
    notice!(SCTP_REMOTE_ERROR => sctp_remote_error {
        sre_error: cause.code.to_be(),
        sre_assoc_id: assoc,
    }, value)
}

/// In the old form, and in the new one.
fn send_failed(failed: &Failed, assoc: AssocT) -> Vec<Vec<u8>> {
    let (flags, info) = (failed.sent.into(), info(&failed.message, assoc));
    let old = notice!(SCTP_SEND_FAILED => sctp_send_failed {
        ssf_flags: flags,
        ssf_info: info.sndrcv(),
        ssf_assoc_id: assoc,
    }, failed.data);
    let new = notice!(SCTP_SEND_FAILED_EVENT => sctp_send_failed_event {
        ssf_flags: flags,
        ssfe_info: info.raw,
        ssf_assoc_id: assoc,
    }, failed.data);
    vec![old, new]
}

/// What the message was sent with.
fn info(message: &Outgoing, assoc: AssocT) -> control::SendInfo {
    let flag = |is: bool, flag: u16| if is { flag } else { 0 };
    control::SendInfo {
        raw: sctp_sndinfo {
            snd_sid: message.stream,
            snd_flags: flag(message.unordered, SCTP_UNORDERED)
                | flag(message.sack_now, SCTP_SACK_IMMEDIATELY),
            snd_ppid: message.ppid.to_be(),
            snd_context: message.context,
            snd_assoc_id: assoc,
        },
        reliability: message.reliability,
        key: message.key,
    }
}

fn streams_reset(incoming: bool, streams: &[u16], outcome: Outcome, assoc: AssocT) -> Vec<u8> {
    let direction = if incoming {
        SCTP_STREAM_RESET_INCOMING_SSN
    } else {
        SCTP_STREAM_RESET_OUTGOING_SSN
    };
    let list: Vec<u8> = streams.iter().flat_map(|id| id.to_ne_bytes()).collect();
    notice!(SCTP_STREAM_RESET_EVENT => sctp_stream_reset_event {
        strreset_flags: direction | flags(outcome),
        strreset_assoc_id: assoc,
    }, list)
}

/// SCTP_STREAM_RESET_DENIED and FAILED, which ASSOC_RESET and STREAM_CHANGE share.
fn flags(outcome: Outcome) -> u16 {
    match outcome {
        Outcome::Done => 0,
        Outcome::Denied => SCTP_STREAM_RESET_DENIED,
        Outcome::Failed => SCTP_STREAM_RESET_FAILED,
    }
}

#[cfg(test)]
mod tests;
