//! Options of SCTP sockets, as RFC 6458 section 8 and Linux's sctp(7) have them: setsockopt, getsockopt.
//!
//! Carried: it does what it says. Told: it is kept and given back, and changes nothing here. By memory there are neither packets
//! nor paths, so what is about these is told only; a socket that asks for authentication or autoclose calls by packets.
//! docs/sctp-sockets.md has the table of all options, in which what is told only is called ignored.

mod generic;
mod keys;
mod messages;
mod parameters;
mod paths;
mod status;
mod streams;
#[cfg(test)]
mod tests;
mod values;
mod whom;

use headwater_host::sys;

use super::abi::*;
use super::{Core, Style};
pub(crate) use parameters::EXPOSE_ON;
pub use values::{AssocOptions, Options, PathValues, Shared};

/// Of getsockopt: what the program passed, then the answer; and its room.
struct Answer<'a> {
    value: &'a mut Vec<u8>,
    room: usize,
}

impl Answer<'_> {
    /// The struct that was passed. EINVAL: it is shorter.
    fn asked<T: Layout>(&self) -> sys::Result<T> {
        read(self.value)
    }

    /// EINVAL: there is no room for it.
    fn tell<T: Layout>(&mut self, answer: &T) -> sys::Result<()> {
        self.tell_bytes(answer.bytes())
    }

    fn tell_bytes(&mut self, answer: &[u8]) -> sys::Result<()> {
        if self.room < answer.len() {
            return Err(libc::EINVAL);
        }
        self.value.clear();
        self.value.extend_from_slice(answer);
        Ok(())
    }

    /// As [`value_or_int`] was asked.
    fn tell_value(&mut self, asked: sctp_assoc_value, is_int: bool, value: u32) -> sys::Result<()> {
        if is_int {
            return self.tell(&value);
        }
        self.tell(&sctp_assoc_value {
            assoc_value: value,
            ..asked
        })
    }

    fn flag(&mut self, on: bool) -> sys::Result<()> {
        self.tell(&i32::from(on))
    }

    /// How many there are, and then all of them.
    fn tell_list<T: Layout>(&mut self, all: &[T]) -> sys::Result<()> {
        let count = all.len() as u32;
        let mut told = count.bytes().to_vec();
        all.iter()
            .for_each(|one| told.extend_from_slice(one.bytes()));
        self.tell_bytes(&told)
    }
}

/// The list of so many numbers behind a struct of the type `T`. EINVAL: it is shorter.
fn list_behind<T>(value: &[u8], count: usize) -> sys::Result<Vec<u16>> {
    let list = value.get(size_of::<T>()..).unwrap_or_default();
    let (list, _) = list.get(..2 * count).ok_or(libc::EINVAL)?.as_chunks();
    Ok(list.iter().map(|n| u16::from_ne_bytes(*n)).collect())
}

fn flag(value: &[u8]) -> sys::Result<bool> {
    Ok(read::<i32>(value)? != 0)
}

/// A sctp_assoc_value, or an int in its place: for the associations to come.
fn value_or_int(value: &[u8]) -> sys::Result<(sctp_assoc_value, bool)> {
    if value.len() == size_of::<i32>() {
        let number = read::<u32>(value)?;
        let of_future = sctp_assoc_value {
            assoc_id: SCTP_FUTURE_ASSOC,
            assoc_value: number,
        };
        return Ok((of_future, true));
    }
    Ok((exactly(value)?, false))
}

/// No such option, or none that can be got, or set.
const NONE: sys::Result<()> = Err(libc::ENOPROTOOPT);

/// Of each option how it is got, and how it is set.
macro_rules! options {
    ($core:ident, $name:ident, $to:ident, $value:ident; $($option:pat => $get:expr, $set:expr;)*) => {
        impl Core {
            fn get_sctp(&mut $core, $name: i32, $to: &mut Answer<'_>) -> sys::Result<()> {
                match $name {
                    $($option => $get,)*
                    _ => NONE,
                }
            }

            fn set_sctp(&mut $core, $name: i32, $value: &[u8]) -> sys::Result<()> {
                match $name {
                    $($option => $set,)*
                    _ => NONE,
                }
            }
        }
    };
}

options! { self, name, to, value;
    SCTP_RTOINFO => self.get_rto(to), self.set_rto(&exactly(value)?);
    SCTP_ASSOCINFO => self.get_association(to), self.set_association(&exactly(value)?);
    SCTP_INITMSG => self.get_init(to), self.set_init(&exactly(value)?);
    SCTP_NODELAY => to.flag(!self.options.config.nagle), self.set_nodelay(flag(value)?);
    SCTP_AUTOCLOSE => self.get_autoclose(to), self.set_autoclose(value);
    SCTP_ADAPTATION_LAYER =>
        to.tell(&self.options.config.adaptation.unwrap_or(0)), self.set_adaptation(exactly(value)?);
    SCTP_MAXSEG => self.get_maxseg(to), self.set_maxseg(value);
    SCTP_DELAYED_SACK => self.get_delayed_sack(to), self.set_delayed_sack(value);
    SCTP_MAX_BURST => self.get_max_burst(to),
        self.set_value(&value_or_int(value)?.0, u32::MAX, |s, n| s.config.max_burst = n);
    SCTP_FRAGMENT_INTERLEAVE => to.tell(&u32::from(self.options.interleave)), self.set_interleave(exactly(value)?);
    SCTP_PARTIAL_DELIVERY_POINT => to.tell(&self.options.delivery_point), self.set_delivery_point(exactly(value)?);
    SCTP_PR_SUPPORTED | SCTP_RECONFIG_SUPPORTED | SCTP_ASCONF_SUPPORTED | SCTP_AUTH_SUPPORTED | SCTP_ECN_SUPPORTED
    | SCTP_INTERLEAVING_SUPPORTED =>
        self.get_supported(name, to), self.set_supported(name, &exactly(value)?);
    SCTP_DISABLE_FRAGMENTS =>
        to.flag(self.options.disable_fragments), self.set_flag(value, |o| &mut o.disable_fragments);
    SCTP_I_WANT_MAPPED_V4_ADDR => to.flag(self.options.v4mapped), self.set_flag(value, |o| &mut o.v4mapped);
    SCTP_RECVRCVINFO => to.flag(self.options.recv_rcvinfo), self.set_flag(value, |o| &mut o.recv_rcvinfo);
    SCTP_RECVNXTINFO => to.flag(self.options.recv_nxtinfo), self.set_flag(value, |o| &mut o.recv_nxtinfo);
    SCTP_AUTO_ASCONF => to.flag(self.options.auto_asconf), self.set_auto_asconf(flag(value)?);
    SCTP_REUSE_PORT => to.flag(self.options.reuse_port), self.set_reuse_port(value);
    SCTP_EXPOSE_POTENTIALLY_FAILED_STATE => self.get_value(to, |s| s.exposure), self.set_exposure(&exactly(value)?);
    SCTP_DEFAULT_SEND_PARAM => self.get_default_param(to), self.set_default_param(&exactly(value)?);
    SCTP_DEFAULT_SNDINFO => self.get_default_info(to), self.set_default_info(&exactly(value)?);
    SCTP_DEFAULT_PRINFO => self.get_default_reliability(to), self.set_default_reliability(&exactly(value)?);
    SCTP_CONTEXT => self.get_value(to, |s| s.context), self.set_context(&exactly(value)?);
    SCTP_EVENTS => self.get_events(to), self.set_events(value);
    SCTP_EVENT => self.get_event(to), self.set_event(&read(value)?);
    SCTP_PRIMARY_ADDR => self.get_primary(to), self.set_primary(&exactly(value)?);
    SCTP_SET_PEER_PRIMARY_ADDR => NONE, self.set_peer_primary(&exactly(value)?);
    SCTP_PEER_ADDR_PARAMS => self.get_path_parameters(to), self.set_path_parameters(value);
    SCTP_PEER_ADDR_THLDS => self.get_thresholds(to, false), self.set_thresholds(value, false);
    SCTP_PEER_ADDR_THLDS_V2 => self.get_thresholds(to, true), self.set_thresholds(value, true);
    SCTP_REMOTE_UDP_ENCAPS_PORT => self.get_encapsulation(to), self.set_encapsulation(&exactly(value)?);
    SCTP_PLPMTUD_PROBE_INTERVAL => self.get_probe_interval(to), self.set_probe_interval(&exactly(value)?);
    SCTP_AUTH_CHUNK => NONE, self.set_auth_chunk(&exactly(value)?);
    SCTP_HMAC_IDENT => to.tell_list(&self.options.hmacs), self.set_hmacs(value);
    SCTP_AUTH_KEY => NONE, self.set_key(value);
    SCTP_AUTH_ACTIVE_KEY => self.get_active_key(to), self.change_key(name, &exactly(value)?);
    SCTP_AUTH_DELETE_KEY | SCTP_AUTH_DEACTIVATE_KEY => NONE, self.change_key(name, &exactly(value)?);
    SCTP_ENABLE_STREAM_RESET => self.get_value(to, |s| s.stream_reset),
        self.set_value(&exactly(value)?, SCTP_ENABLE_STRRESET_MASK, |s, n| s.stream_reset = n);
    SCTP_RESET_STREAMS => NONE, self.reset_streams(value);
    SCTP_RESET_ASSOC => NONE, self.reset_association(exactly(value)?);
    SCTP_ADD_STREAMS => NONE, self.add_streams(&exactly(value)?);
    SCTP_STREAM_SCHEDULER => self.get_scheduler(to),
        self.set_value(&read(value)?, streams::LAST_SCHEDULER, streams::set_scheduler);
    SCTP_STREAM_SCHEDULER_VALUE => self.get_stream_value(to), self.set_stream_value(&read(value)?);
    HW_SCTP_BYTE_STREAM => self.be_of(Style::One).and_then(|()| to.flag(self.options.byte_stream)), self.set_byte_stream(flag(value)?);
    SCTP_PEER_AUTH_CHUNKS => self.get_auth_chunks(to, true), NONE;
    SCTP_LOCAL_AUTH_CHUNKS => self.get_auth_chunks(to, false), NONE;
    SCTP_STATUS => self.get_status(to), NONE;
    SCTP_GET_PEER_ADDR_INFO => self.get_path_info(to), NONE;
    SCTP_GET_ASSOC_NUMBER => self.be_of(Style::Many).and_then(|()| to.tell(&(self.live().len() as u32))), NONE;
    SCTP_GET_ASSOC_ID_LIST => self.be_of(Style::Many).and_then(|()| to.tell_list(&self.live())), NONE;
    SCTP_GET_ASSOC_STATS => self.get_stats(to), NONE;
    SCTP_PR_ASSOC_STATUS => self.get_abandoned(to, false), NONE;
    SCTP_PR_STREAM_STATUS => self.get_abandoned(to, true), NONE;
}

impl Core {
    /// setsockopt(2), but for SCTP_SOCKOPT_*. EINVAL: too short, no such association, out of its range; ENOPROTOOPT: no such
    /// option; EOPNOTSUPP: not for this style; and what each option's own rules say.
    pub fn set_option(&mut self, level: i32, name: i32, value: &[u8]) -> sys::Result<()> {
        match level {
            SOL_SCTP => self.set_sctp(name, value),
            libc::SOL_SOCKET => self.set_socket(name, value),
            libc::IPPROTO_IP | libc::IPPROTO_IPV6 => self.set_ip(level, name, value),
            _ => Err(libc::ENOPROTOOPT),
        }
    }

    /// getsockopt(2): `value` holds what the program passed, and then the answer, of `room` bytes at most.
    pub fn get_option(
        &mut self,
        level: i32,
        name: i32,
        value: &mut Vec<u8>,
        room: usize,
    ) -> sys::Result<()> {
        let to = &mut Answer { value, room };
        match level {
            SOL_SCTP => self.get_sctp(name, to),
            libc::SOL_SOCKET => self.get_socket(name, to),
            libc::IPPROTO_IP | libc::IPPROTO_IPV6 => self.get_ip(level, name, to),
            _ => Err(libc::ENOPROTOOPT),
        }
    }

    /// Sets an option that is the socket's alone.
    fn set_flag(
        &mut self,
        value: &[u8],
        which: impl FnOnce(&mut Options) -> &mut bool,
    ) -> sys::Result<()> {
        *which(&mut self.options) = flag(value)?;
        Ok(())
    }
}
