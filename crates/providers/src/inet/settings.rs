//! The options of sockets, by setsockopt(2).

use headwater_host::sys;
use headwater_sockets::reset;
use headwater_tpi::option::*;

use crate::options::{Known, Remembered, Settings, Value};

/// T_LINGER without a time of its own: seconds.
const LINGER: i64 = 10;
/// T_TCP_KEEPALIVE counts minutes.
const MINUTE: i64 = 60;

/// The options of a socket as t_optmgmt sees them.
pub struct Options<'a> {
    fd: i32,
    v6: bool,
    chosen: &'a mut Chosen,
}

/// What the user of an endpoint has set.
#[derive(Default)]
pub struct Chosen {
    /// What Linux has no option for, and what is ours: T_TCP_NODELAY.
    remembered: Remembered,
    /// Set on the socket, in this order.
    on_socket: Remembered,
}

impl Chosen {
    /// As t_optmgmt sees them, of the socket that the endpoint has.
    pub fn on(&mut self, fd: i32, v6: bool) -> Options<'_> {
        Options {
            fd,
            v6,
            chosen: self,
        }
    }

    /// The number that was set of an option that is ours; 0: none was.
    pub fn number(&self, level: u32, name: u32) -> u32 {
        self.remembered.number(level, name)
    }

    /// The number that was asked for of the kernel; 0: none was.
    pub fn asked(&self, level: u32, name: u32) -> u32 {
        self.on_socket.number(level, name)
    }

    /// The endpoint has got a fresh socket.
    pub fn renew(&self, fd: i32, v6: bool) {
        for (option, value) in self.on_socket.all() {
            let _ = set(fd, v6, option, value);
        }
    }
}

/// An option of the kernel that is one int.
fn plain(option: &Known, v6: bool) -> Option<(i32, i32)> {
    Some(match (option.level, option.name) {
        (XTI_GENERIC, XTI_SNDBUF) => (libc::SOL_SOCKET, libc::SO_SNDBUF),
        (XTI_GENERIC, XTI_RCVBUF) => (libc::SOL_SOCKET, libc::SO_RCVBUF),
        (XTI_GENERIC, XTI_RCVLOWAT) => (libc::SOL_SOCKET, libc::SO_RCVLOWAT),
        (INET_TCP, T_TCP_MAXSEG) => (libc::IPPROTO_TCP, libc::TCP_MAXSEG),
        (INET_UDP, T_UDP_CHECKSUM) => (libc::SOL_SOCKET, libc::SO_NO_CHECK),
        (INET_IP, T_IP_TOS) if v6 => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
        (INET_IP, T_IP_TOS) => (libc::IPPROTO_IP, libc::IP_TOS),
        (INET_IP, T_IP_TTL) if v6 => (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS),
        (INET_IP, T_IP_TTL) => (libc::IPPROTO_IP, libc::IP_TTL),
        (INET_IP, T_IP_REUSEADDR) => (libc::SOL_SOCKET, libc::SO_REUSEADDR),
        (INET_IP, T_IP_DONTROUTE) => (libc::SOL_SOCKET, libc::SO_DONTROUTE),
        (INET_IP, T_IP_BROADCAST) => (libc::SOL_SOCKET, libc::SO_BROADCAST),
        _ => return None,
    })
}

/// The kernel counts its own overhead in: twice what was asked for.
fn is_doubled(name: i32) -> bool {
    name == libc::SO_SNDBUF || name == libc::SO_RCVBUF
}

/// As T_CURRENT tells it.
pub fn receive_buffer(fd: i32) -> u32 {
    let doubled = sys::sockopt::<i32>(fd, libc::SOL_SOCKET, libc::SO_RCVBUF).unwrap_or(0);
    doubled.max(0) as u32 / 2
}

/// The kernel's int for our number, or back: SO_NO_CHECK is the opposite of T_UDP_CHECKSUM.
fn turned(option: &Known, n: i64) -> i64 {
    if (option.level, option.name) == (INET_UDP, T_UDP_CHECKSUM) {
        (n == 0) as i64
    } else {
        n
    }
}

impl Options<'_> {
    fn int(&self, level: i32, name: i32) -> Option<i64> {
        sys::sockopt::<i32>(self.fd, level, name)
            .ok()
            .map(i64::from)
    }
}

impl Settings for Options<'_> {
    fn value(&self, option: &Known) -> Value {
        let fallback = || self.chosen.remembered.value(option);
        if let Some((level, name)) = plain(option, self.v6) {
            let n = self
                .int(level, name)
                .map(|n| if is_doubled(name) { n / 2 } else { n });
            return n.map_or_else(fallback, |n| Value::Number(turned(option, n)));
        }
        match (option.level, option.name) {
            (XTI_GENERIC, XTI_LINGER) => match reset::linger(self.fd) {
                Some([on, seconds]) if on != 0 => Value::Pair(1, seconds.into()),
                _ => fallback(),
            },
            (INET_TCP, T_TCP_KEEPALIVE) => {
                let on = self.int(libc::SOL_SOCKET, libc::SO_KEEPALIVE).unwrap_or(0);
                let seconds = self
                    .int(libc::IPPROTO_TCP, libc::TCP_KEEPIDLE)
                    .unwrap_or(7200);
                Value::Pair(on, (seconds + MINUTE - 1) / MINUTE)
            }
            (INET_IP, T_IP_OPTIONS) => {
                let mut bytes = [0; 40];
                let n = sys::sockopt_bytes(self.fd, libc::IPPROTO_IP, libc::IP_OPTIONS, &mut bytes);
                Value::Bytes(bytes[..n.unwrap_or(0).min(40)].to_vec())
            }
            _ => fallback(),
        }
    }

    fn set(&mut self, option: &Known, value: Value) -> Result<Value, i32> {
        let Some(exactly) = set(self.fd, self.v6, option, &value)? else {
            return self.chosen.remembered.set(option, value);
        };
        let value = self.chosen.on_socket.set(option, value)?;
        Ok(if exactly { value } else { self.value(option) })
    }
}

/// Sets an option of the kernel's; `None`: it has none such. False: the kernel may have taken another value.
fn set(fd: i32, v6: bool, option: &Known, value: &Value) -> Result<Option<bool>, i32> {
    let set_int = |level, name, n: i64| sys::set_sockopt(fd, level, name, &(n as i32));
    if let (Some((level, name)), Value::Number(n)) = (plain(option, v6), value) {
        set_int(level, name, turned(option, *n))?;
        return Ok(Some(false));
    }
    match (option.level, option.name, value) {
        (XTI_GENERIC, XTI_LINGER, Value::Pair(on, seconds)) => {
            let seconds = if *seconds as u32 == T_UNSPEC {
                LINGER
            } else {
                *seconds
            };
            let linger = [*on as i32, seconds as i32];
            sys::set_sockopt(fd, libc::SOL_SOCKET, libc::SO_LINGER, &linger)?;
        }
        (INET_TCP, T_TCP_KEEPALIVE, Value::Pair(on, minutes)) => {
            set_int(libc::SOL_SOCKET, libc::SO_KEEPALIVE, *on)?;
            if *minutes as u32 != T_UNSPEC && *minutes > 0 {
                // The kernel takes at most 32767 seconds.
                let seconds = (*minutes).saturating_mul(MINUTE).min(32767);
                set_int(libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, seconds)?;
                return Ok(Some(seconds == *minutes * MINUTE));
            }
        }
        (INET_IP, T_IP_OPTIONS, Value::Bytes(bytes)) => {
            sys::set_sockopt(fd, libc::IPPROTO_IP, libc::IP_OPTIONS, &**bytes)?;
        }
        _ => return Ok(None),
    }
    Ok(Some(true))
}
