//! What comes with a message in its control data (RFC 6458 section 5.3, with Linux's numbers): SCTP_SNDRCV, SNDINFO, PRINFO, AUTHINFO,
//! INIT and DSTADDR from the sender, SNDRCV, RCVINFO and NXTINFO to the receiver.
//!
//! The payload protocol identifier is the program's own, in the byte order that it likes, which by custom is the network's. The engine
//! has it as the number that this stands for.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::time::Duration;

use headwater_host::sys;
use headwater_sctp::{Outgoing, Received, Reliability};

use super::AssocT;
use super::abi::*;

/// Flags that may come with a message, beside its policy of reliability.
const SENDING: u16 =
    SCTP_UNORDERED | SCTP_ADDR_OVER | SCTP_ABORT | SCTP_SACK_IMMEDIATELY | SCTP_SENDALL | SCTP_EOF;

/// How a message is to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SendInfo {
    /// The flags: SCTP_UNORDERED, ADDR_OVER, ABORT, EOF, SENDALL, SACK_IMMEDIATELY. The payload protocol as the program gave it.
    pub raw: sctp_sndinfo,
    pub reliability: Reliability,
    /// Of the key that authenticates it.
    pub key: Option<u16>,
}

impl SendInfo {
    /// EINVAL: unknown flags.
    pub fn of_sndrcv(raw: &sctp_sndrcvinfo) -> sys::Result<SendInfo> {
        let policy = raw.sinfo_flags & SCTP_PR_SCTP_MASK;
        Ok(SendInfo {
            raw: sctp_sndinfo {
                snd_sid: raw.sinfo_stream,
                snd_flags: known(raw.sinfo_flags & !SCTP_PR_SCTP_MASK)?,
                snd_ppid: raw.sinfo_ppid,
                snd_context: raw.sinfo_context,
                snd_assoc_id: raw.sinfo_assoc_id,
            },
            reliability: match policy {
                // Without a policy a time to live is one all the same: so it was before there were policies.
                SCTP_PR_SCTP_NONE => ttl(raw.sinfo_timetolive),
                policy => reliability(policy, raw.sinfo_timetolive)?,
            },
            key: None,
        })
    }

    pub fn sndrcv(&self) -> sctp_sndrcvinfo {
        let (policy, value) = policy(self.reliability);
        sctp_sndrcvinfo {
            sinfo_stream: self.raw.snd_sid,
            sinfo_flags: self.raw.snd_flags | policy,
            sinfo_ppid: self.raw.snd_ppid,
            sinfo_context: self.raw.snd_context,
            sinfo_timetolive: value,
            sinfo_assoc_id: self.raw.snd_assoc_id,
            ..Default::default()
        }
    }

    /// The message as the engine wants it.
    #[inline]
    pub fn outgoing(&self) -> Outgoing {
        Outgoing {
            stream: self.raw.snd_sid,
            ppid: u32::from_be(self.raw.snd_ppid),
            unordered: self.has(SCTP_UNORDERED),
            sack_now: self.has(SCTP_SACK_IMMEDIATELY),
            reliability: self.reliability,
            context: self.raw.snd_context,
            to: None,
            key: self.key,
        }
    }

    /// An ordered message that is sent until it arrives, unsigned.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.raw.snd_flags == 0 && self.key.is_none() && self.reliability == Reliability::Full
    }

    #[inline]
    pub fn has(&self, flag: u16) -> bool {
        self.raw.snd_flags & flag != 0
    }
}

/// SCTP_PR_SCTP_* with its value. EINVAL: no such policy.
pub fn reliability(policy: u16, value: u32) -> sys::Result<Reliability> {
    match policy {
        SCTP_PR_SCTP_NONE => Ok(Reliability::Full),
        SCTP_PR_SCTP_TTL => Ok(ttl(value)),
        SCTP_PR_SCTP_RTX => Ok(Reliability::Rtx(value)),
        SCTP_PR_SCTP_PRIO => Ok(Reliability::Prio(value)),
        _ => Err(libc::EINVAL),
    }
}

/// The other way round.
pub fn policy(reliability: Reliability) -> (u16, u32) {
    match reliability {
        Reliability::Full => (SCTP_PR_SCTP_NONE, 0),
        Reliability::Ttl(life) => {
            let life = u32::try_from(life.as_millis()).unwrap_or(u32::MAX);
            (SCTP_PR_SCTP_TTL, life)
        }
        Reliability::Rtx(most) => (SCTP_PR_SCTP_RTX, most),
        Reliability::Prio(priority) => (SCTP_PR_SCTP_PRIO, priority),
    }
}

fn ttl(milliseconds: u32) -> Reliability {
    match milliseconds {
        0 => Reliability::Full,
        life => Reliability::Ttl(Duration::from_millis(life.into())),
    }
}

fn known(flags: u16) -> sys::Result<u16> {
    match flags & !SENDING {
        0 => Ok(flags),
        _ => Err(libc::EINVAL),
    }
}

/// What a message's control data ask for.
#[derive(Clone, Debug)]
pub struct Asked {
    pub info: SendInfo,
    pub init: Option<sctp_initmsg>,
    /// SCTP_DSTADDRV4 and V6, in their order.
    pub to: Vec<IpAddr>,
    said: Said,
}

/// What of a [`SendInfo`] the program said.
#[derive(Clone, Copy, Default, Debug)]
struct Said {
    sndrcv: Option<SendInfo>,
    sndinfo: Option<sctp_sndinfo>,
    policy: Option<Reliability>,
    key: Option<u16>,
}

impl Asked {
    /// What was asked for, over other defaults than [`read`] had: those of the association.
    pub fn over(&self, defaults: &SendInfo) -> SendInfo {
        self.said.over(defaults)
    }
}

impl Said {
    fn over(&self, defaults: &SendInfo) -> SendInfo {
        let mut info = self.sndrcv.unwrap_or(*defaults);
        if let Some(raw) = self.sndinfo {
            info.raw = raw;
        }
        info.reliability = self.policy.unwrap_or(info.reliability);
        info.key = self.key.or(defaults.key);
        info
    }
}

/// Reads control data; what is not of our level is passed over. EINVAL: lengths that can't be, unknown types and flags.
pub fn read(control: &[u8], defaults: &SendInfo) -> sys::Result<Asked> {
    let mut asked = Asked {
        info: *defaults,
        init: None,
        to: Vec::new(),
        said: Said::default(),
    };
    let said = &mut asked.said;
    for message in (Messages { rest: control }) {
        let (level, kind, data) = message?;
        if level != IPPROTO_SCTP {
            continue;
        }
        match kind {
            SCTP_INIT => asked.init = Some(exactly(data)?),
            SCTP_SNDRCV => said.sndrcv = Some(SendInfo::of_sndrcv(&exactly(data)?)?),
            SCTP_SNDINFO => {
                let raw: sctp_sndinfo = exactly(data)?;
                known(raw.snd_flags)?;
                said.sndinfo = Some(raw);
            }
            SCTP_PRINFO => {
                let raw: sctp_prinfo = exactly(data)?;
                said.policy = Some(reliability(raw.pr_policy, raw.pr_value)?);
            }
            SCTP_AUTHINFO => said.key = Some(exactly::<sctp_authinfo>(data)?.auth_keynumber),
            SCTP_DSTADDRV4 => {
                let octets: [u8; 4] = data.try_into().map_err(|_| libc::EINVAL)?;
                asked.to.push(Ipv4Addr::from(octets).into());
            }
            SCTP_DSTADDRV6 => {
                let octets: [u8; 16] = data.try_into().map_err(|_| libc::EINVAL)?;
                asked.to.push(Ipv6Addr::from(octets).to_canonical());
            }
            _ => return Err(libc::EINVAL),
        }
    }
    asked.info = said.over(defaults);
    Ok(asked)
}

/// A message that was received, as its control data describe it.
pub struct Came<'a> {
    pub received: &'a Received,
    pub assoc: AssocT,
    pub context: u32,
    pub cumtsn: u32,
}

/// Appends what the program wants, SNDRCV and RCVINFO, and what would be received next. See [`fit`] for a program's room.
pub fn write(
    into: &mut Vec<u8>,
    (sndrcv, rcvinfo): (bool, bool),
    came: &Came<'_>,
    next: Option<&sctp_nxtinfo>,
) {
    if let Some(next) = next {
        put(into, SCTP_NXTINFO, next.bytes());
    }
    if rcvinfo {
        put(into, SCTP_RCVINFO, came.rcvinfo().bytes());
    }
    if sndrcv {
        put(into, SCTP_SNDRCV, came.sndrcv().bytes());
    }
}

impl Came<'_> {
    fn sndrcv(&self) -> sctp_sndrcvinfo {
        sctp_sndrcvinfo {
            sinfo_stream: self.received.stream,
            sinfo_ssn: self.number(),
            sinfo_flags: unordered(self.received.unordered),
            sinfo_ppid: self.received.ppid.to_be(),
            sinfo_context: self.context,
            sinfo_tsn: self.received.tsn.0,
            sinfo_cumtsn: self.cumtsn,
            sinfo_assoc_id: self.assoc,
            ..Default::default()
        }
    }

    fn rcvinfo(&self) -> sctp_rcvinfo {
        sctp_rcvinfo {
            rcv_sid: self.received.stream,
            rcv_ssn: self.number(),
            rcv_flags: unordered(self.received.unordered),
            rcv_ppid: self.received.ppid.to_be(),
            rcv_tsn: self.received.tsn.0,
            rcv_cumtsn: self.cumtsn,
            rcv_context: self.context,
            rcv_assoc_id: self.assoc,
            ..Default::default()
        }
    }

    /// A message's number in its stream; of a message identifier (RFC 8260) what fits. One of the two is always 0.
    fn number(&self) -> u16 {
        self.received.ssn.0 | self.received.mid.0 as u16
    }
}

/// A message's flag.
pub fn unordered(yes: bool) -> u16 {
    if yes { SCTP_UNORDERED } else { 0 }
}

// ---- cmsg(3)

/// struct cmsghdr: length with header, level, type.
const HEAD: usize = size_of::<libc::cmsghdr>();
const LEN: usize = size_of::<usize>();

/// CMSG_ALIGN.
const fn align(len: usize) -> usize {
    len.next_multiple_of(LEN)
}

fn put(into: &mut Vec<u8>, kind: i32, data: &[u8]) {
    let start = into.len();
    into.extend_from_slice(&(HEAD + data.len()).to_ne_bytes());
    into.extend_from_slice(&IPPROTO_SCTP.to_ne_bytes());
    into.extend_from_slice(&kind.to_ne_bytes());
    into.extend_from_slice(data);
    into.resize(start + align(HEAD + data.len()), 0);
}

/// Cuts control data down to a program's room, as the kernel does: a control message may be cut, and says so by its length, but its
/// header never is. `true`: something was lost, MSG_CTRUNC.
pub fn fit(control: &mut Vec<u8>, room: usize) -> bool {
    let mut at = 0;
    while let Some(len) = usize_at(control, at) {
        let left = room.saturating_sub(at);
        if left < len {
            let keep = if left < HEAD { 0 } else { left };
            if keep > 0 {
                control[at..at + LEN].copy_from_slice(&keep.to_ne_bytes());
            }
            // The padding before it may have no room either.
            control.truncate(room.min(at + keep));
            return true;
        }
        // No control message: there is none after it either.
        if len < HEAD || len > control.len() - at {
            break;
        }
        at += align(len);
    }
    let cut = control.len() > room && at < room;
    control.truncate(room);
    cut
}

fn usize_at(bytes: &[u8], at: usize) -> Option<usize> {
    let field = bytes.get(at..)?.first_chunk::<LEN>()?;
    Some(usize::from_ne_bytes(*field))
}

fn i32_at(bytes: &[u8], at: usize) -> Option<i32> {
    let field = bytes.get(at..)?.first_chunk::<4>()?;
    Some(i32::from_ne_bytes(*field))
}

/// Control messages: level, type, data. An error is the last item.
struct Messages<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Messages<'a> {
    type Item = sys::Result<(i32, i32, &'a [u8])>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = core::mem::take(&mut self.rest);
        let (level, kind) = (i32_at(rest, LEN)?, i32_at(rest, LEN + 4)?);
        let len = usize_at(rest, 0)?;
        if len < HEAD || len > rest.len() {
            return Some(Err(libc::EINVAL));
        }
        self.rest = rest.get(align(len)..).unwrap_or_default();
        Some(Ok((level, kind, &rest[HEAD..len])))
    }
}

#[cfg(test)]
mod tests;
