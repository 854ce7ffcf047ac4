//! Options of other levels: SOL_SOCKET, IPPROTO_IP, IPPROTO_IPV6.

use core::time::Duration;

use headwater_host::sys;
use libc::{IPPROTO_IP, SOL_SOCKET};

use super::*;
use crate::Style;

/// The least and the most that SO_SNDBUF and SO_RCVBUF tell.
const LEAST_SNDBUF: u32 = 4608;
const LEAST_RCVBUF: u32 = 2304;
const MOST_BUFFER: u32 = 64 << 20;
/// What a buffer holds at least, whatever is told: less would only be slower.
const LEAST_WITHIN: usize = 1 << 20;
/// Timeouts of 64 bits, where time_t has less.
const SO_RCVTIMEO_NEW: i32 = 66;
const SO_SNDTIMEO_NEW: i32 = 67;

/// Options whose numbers are kept and told, with what they are at first.
macro_rules! numbers {
    ($($table:ident: $($name:ident $first:literal),*;)*) => {
        $(const $table: &[(i32, i32)] = &[$((libc::$name, $first)),*];)*
    };
}

numbers! {
    SOCKET:
        SO_DEBUG 0, SO_REUSEADDR 0, SO_REUSEPORT 0, SO_DONTROUTE 0, SO_BROADCAST 0, SO_KEEPALIVE 0,
        SO_OOBINLINE 0, SO_NO_CHECK 0, SO_PRIORITY 0, SO_BSDCOMPAT 0, SO_RCVLOWAT 1, SO_TIMESTAMP 0,
        SO_TIMESTAMPNS 0, SO_MARK 0, SO_RXQ_OVFL 0, SO_LOCK_FILTER 0, SO_SELECT_ERR_QUEUE 0,
        SO_BUSY_POLL 0, SO_MAX_PACING_RATE -1, SO_INCOMING_CPU -1, SO_PREFER_BUSY_POLL 0,
        SO_BUSY_POLL_BUDGET 8;
    IP:
        IP_TOS 0, IP_TTL 64, IP_HDRINCL 0, IP_RECVOPTS 0, IP_RETOPTS 0, IP_PKTINFO 0,
        IP_MTU_DISCOVER 1, IP_RECVERR 0, IP_RECVTTL 0, IP_RECVTOS 0, IP_FREEBIND 0,
        IP_TRANSPARENT 0, IP_MINTTL 0, IP_BIND_ADDRESS_NO_PORT 0;
    IP6:
        IPV6_UNICAST_HOPS 64, IPV6_MULTICAST_HOPS 1, IPV6_MTU_DISCOVER 1, IPV6_RECVERR 0,
        IPV6_RECVPKTINFO 0, IPV6_RECVHOPLIMIT 0, IPV6_RECVTCLASS 0, IPV6_TCLASS 0, IPV6_DONTFRAG 0,
        IPV6_FREEBIND 0, IPV6_TRANSPARENT 0, IPV6_AUTOFLOWLABEL 1;
}

impl Core {
    /// EINVAL: too short; EDOM: no time; ENOPROTOOPT: it can't be set, or is unknown.
    pub(super) fn set_socket(&mut self, name: i32, value: &[u8]) -> sys::Result<()> {
        let number = || read::<i32>(value);
        match name {
            libc::SO_LINGER => {
                let (on, seconds) = (number()?, read::<u32>(value.get(4..).unwrap_or_default())?);
                self.options.linger = (on != 0).then_some(seconds);
            }
            libc::SO_RCVTIMEO | SO_RCVTIMEO_NEW => self.options.receive_timeout = time(value)?,
            libc::SO_SNDTIMEO | SO_SNDTIMEO_NEW => self.options.send_timeout = time(value)?,
            libc::SO_SNDBUF | libc::SO_SNDBUFFORCE => {
                let told = doubled(number()?, LEAST_SNDBUF);
                self.options.sndbuf = told;
                self.tune(&self.everybody(), |s| s.config.send_buffer = within(told));
            }
            libc::SO_RCVBUF | libc::SO_RCVBUFFORCE => {
                let told = doubled(number()?, LEAST_RCVBUF);
                self.options.rcvbuf = told;
                self.tune(&self.everybody(), |s| {
                    s.config.receive_window = within(told)
                });
            }
            // Interfaces are the links' business.
            libc::SO_BINDTODEVICE => {}
            _ => return self.keep(SOL_SOCKET, name, number, SOCKET),
        }
        Ok(())
    }

    pub(super) fn get_socket(&mut self, name: i32, to: &mut Answer<'_>) -> sys::Result<()> {
        let options = &self.options;
        let number = match name {
            libc::SO_ERROR => core::mem::take(&mut self.error),
            libc::SO_TYPE => match self.style {
                Style::One => libc::SOCK_STREAM,
                Style::Many => libc::SOCK_SEQPACKET,
            },
            libc::SO_PROTOCOL => IPPROTO_SCTP,
            libc::SO_DOMAIN if self.v6 => libc::AF_INET6,
            libc::SO_DOMAIN => libc::AF_INET,
            libc::SO_ACCEPTCONN => self.listening.into(),
            libc::SO_SNDBUF => options.sndbuf as i32,
            libc::SO_RCVBUF => options.rcvbuf as i32,
            libc::SO_SNDLOWAT => 1,
            libc::SO_LINGER => {
                let on = options.linger.is_some();
                let seconds = options.linger.unwrap_or(0);
                return to.cut(&[u32::from(on).bytes(), seconds.bytes()].concat());
            }
            libc::SO_RCVTIMEO | SO_RCVTIMEO_NEW => {
                return to.cut(&timeval(options.receive_timeout));
            }
            libc::SO_SNDTIMEO | SO_SNDTIMEO_NEW => return to.cut(&timeval(options.send_timeout)),
            libc::SO_BINDTODEVICE => return to.cut(&[]),
            _ => self.kept(SOL_SOCKET, name, SOCKET)?,
        };
        to.cut(number.bytes())
    }

    /// An int, or a byte in its place. EINVAL: V6ONLY behind bind(2).
    pub(super) fn set_ip(&mut self, level: i32, name: i32, value: &[u8]) -> sys::Result<()> {
        let number = || match value {
            [byte] | [byte, _] | [byte, _, _] => Ok(i32::from(*byte)),
            value => read::<i32>(value),
        };
        match level {
            IPPROTO_IP => self.keep(level, name, number, IP),
            _ if !self.v6 => Err(libc::ENOPROTOOPT),
            _ if name == libc::IPV6_V6ONLY => {
                if self.local.is_some() {
                    return Err(libc::EINVAL);
                }
                self.options.v6only = read::<i32>(value)? != 0;
                Ok(())
            }
            _ => self.keep(level, name, number, IP6),
        }
    }

    pub(super) fn get_ip(&mut self, level: i32, name: i32, to: &mut Answer<'_>) -> sys::Result<()> {
        let number = match level {
            IPPROTO_IP => self.kept(level, name, IP)?,
            _ if !self.v6 => return Err(libc::ENOPROTOOPT),
            _ if name == libc::IPV6_V6ONLY => self.options.v6only.into(),
            _ => self.kept(level, name, IP6)?,
        };
        to.cut(number.bytes())
    }

    fn keep(
        &mut self,
        level: i32,
        name: i32,
        number: impl FnOnce() -> sys::Result<i32>,
        known: &[(i32, i32)],
    ) -> sys::Result<()> {
        if known.iter().all(|(known, _)| *known != name) {
            return Err(libc::ENOPROTOOPT);
        }
        self.options.told.insert((level, name), number()?);
        Ok(())
    }

    fn kept(&self, level: i32, name: i32, known: &[(i32, i32)]) -> sys::Result<i32> {
        let known = known.iter().find(|(known, _)| *known == name);
        let &(_, first) = known.ok_or(libc::ENOPROTOOPT)?;
        let told = self.options.told.get(&(level, name));
        Ok(told.copied().unwrap_or(first))
    }
}

impl Answer<'_> {
    /// As much of it as there is room for.
    fn cut(&mut self, answer: &[u8]) -> sys::Result<()> {
        let len = self.room.min(answer.len());
        self.tell_bytes(&answer[..len])
    }
}

/// Linux tells twice of what it was given, for its own costs.
fn doubled(bytes: i32, least: u32) -> u32 {
    let bytes = u32::try_from(bytes).unwrap_or(0).min(MOST_BUFFER / 2);
    (2 * bytes).max(least)
}

fn within(told: u32) -> usize {
    (told as usize).max(LEAST_WITHIN)
}

/// struct timeval; zero is without end, less than zero no time at all.
fn time(value: &[u8]) -> sys::Result<Option<Duration>> {
    let [seconds, micros]: [i64; 2] = read(value)?;
    if !(0..1_000_000).contains(&micros) {
        return Err(libc::EDOM);
    }
    Ok(match (seconds, micros) {
        (0, 0) => None,
        (..0, _) => Some(Duration::ZERO),
        _ => Some(Duration::new(seconds as u64, micros as u32 * 1000)),
    })
}

fn timeval(timeout: Option<Duration>) -> Vec<u8> {
    let timeout = timeout.unwrap_or_default();
    let (seconds, micros) = (timeout.as_secs() as i64, i64::from(timeout.subsec_micros()));
    [seconds.to_ne_bytes(), micros.to_ne_bytes()].concat()
}
