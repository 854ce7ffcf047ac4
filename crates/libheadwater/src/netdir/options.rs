//! netdir_options: what only some transports can do, and addresses as a client sees them.

use core::mem::zeroed;
use core::ptr::null_mut;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use headwater_xti::netaddr::{Address, Family};
use libc::{c_char, c_int, c_uint};

use super::memory::{Netbuf, malloced_string};
use super::{HOST_ANY, Result, Trouble, decoded, family, hosts, status, universal};
use crate::netconfig::Netconfig;

/// struct nd_mergearg.
#[repr(C)]
pub struct MergeArg {
    server: *const c_char,
    client: *const c_char,
    merged: *mut c_char,
}

const ND_SET_BROADCAST: c_int = 1;
const ND_SET_RESERVEDPORT: c_int = 2;
const ND_CHECK_RESERVEDPORT: c_int = 3;
const ND_MERGEADDR: c_int = 4;

/// struct t_bind and struct t_optmgmt of `<xti.h>`.
#[repr(C)]
struct Bind {
    addr: Netbuf,
    qlen: c_uint,
}
#[repr(C)]
struct Optmgmt {
    opt: Netbuf,
    flags: c_int,
}

unsafe extern "C-unwind" {
    fn t_bind(fd: c_int, wanted: *const Bind, got: *mut Bind) -> c_int;
    fn t_optmgmt(fd: c_int, wanted: *const Optmgmt, got: *mut Optmgmt) -> c_int;
    fn _t_errno() -> *mut c_int;
}

/// t_errno
const TACCES: c_int = 3;
const TADDRBUSY: c_int = 23;

/// Ports that only privileged programs bind, and those among them that are free for any of these.
const RESERVED: core::ops::Range<u16> = 1..1024;
const UNASSIGNED: core::ops::Range<u16> = 512..1024;

/// ND_BADARG, ND_NOCTRL (the transport has nothing like it), ND_FAILCTRL, ND_ACCESS, ND_NOMEM.
///
/// # Safety
/// As netdir_options(3) asks of its caller: `args` is what the option wants.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn hw_netdir_options(
    config: *const Netconfig,
    option: c_int,
    fd: c_int,
    args: *mut c_char,
) -> c_int {
    // SAFETY: the program's arguments, null or what the option wants.
    unsafe {
        let set = |(family, config): (Family, &Netconfig)| match option {
            ND_MERGEADDR => merge(config, args.cast()),
            ND_SET_BROADCAST | ND_SET_RESERVEDPORT | ND_CHECK_RESERVEDPORT
                if family == Family::Loopback =>
            {
                Err(Trouble::NoCtrl)
            }
            ND_SET_BROADCAST if config.is_udp() => allow_broadcast(fd),
            ND_SET_RESERVEDPORT => bind_reserved(family, fd, args.cast()),
            ND_CHECK_RESERVEDPORT => match decoded(family, args.cast())?.port() {
                Some(port) if RESERVED.contains(&port) => Ok(()),
                _ => Err(Trouble::FailCtrl),
            },
            _ => Err(Trouble::NoCtrl),
        };
        status(family(config).and_then(set))
    }
}

fn allow_broadcast(fd: c_int) -> Result<()> {
    // SAFETY: all zeroes is a valid answer, and the buffers outlive the call.
    unsafe {
        const T_NEGOTIATE: c_int = 4;
        const INET_IP: u32 = 0;
        const T_IP_BROADCAST: u32 = 0x20;
        const T_YES: u32 = 1;
        let mut option = [20, INET_IP, T_IP_BROADCAST, 0, T_YES];
        let opt = Netbuf {
            maxlen: size_of_val(&option) as c_uint,
            len: size_of_val(&option) as c_uint,
            buf: option.as_mut_ptr().cast(),
        };
        let mut answer: Optmgmt = zeroed();
        let mut room = [0u32; 16];
        answer.opt.maxlen = size_of_val(&room) as c_uint;
        answer.opt.buf = room.as_mut_ptr().cast();
        let wanted = Optmgmt {
            opt,
            flags: T_NEGOTIATE,
        };
        match t_optmgmt(fd, &wanted, &mut answer) {
            0 => Ok(()),
            _ => Err(Trouble::FailCtrl),
        }
    }
}

/// Binds to the reserved port of the address, or without one to any that is free; the address then has it.
unsafe fn bind_reserved(family: Family, fd: c_int, netbuf: *mut Netbuf) -> Result<()> {
    // SAFETY: null or the program's struct netbuf, whose buffer has an address, and so room for another of its kind; the rest is here.
    unsafe {
        let (mut address, ports) = match decoded(family, netbuf) {
            Ok(address) => match address.port() {
                Some(port) if RESERVED.contains(&port) => (address, port..port + 1),
                _ => (address, UNASSIGNED),
            },
            Err(_) if netbuf.is_null() => (any_of(family)?, UNASSIGNED),
            Err(e) => return Err(e),
        };
        for port in ports.rev() {
            address.set_port(port);
            let mut bytes = address.encode();
            let wanted = Bind {
                addr: Netbuf {
                    maxlen: bytes.len() as c_uint,
                    len: bytes.len() as c_uint,
                    buf: bytes.as_mut_ptr(),
                },
                qlen: 0,
            };
            if t_bind(fd, &wanted, null_mut()) == 0 {
                if let Some(netbuf) = netbuf.as_ref() {
                    netbuf.buf.copy_from(bytes.as_ptr(), bytes.len());
                }
                return Ok(());
            }
            match *_t_errno() {
                TADDRBUSY => {}
                TACCES => return Err(Trouble::Access),
                _ => return Err(Trouble::FailCtrl),
            }
        }
        Err(Trouble::FailCtrl)
    }
}

fn any_of(family: Family) -> Result<Address> {
    let ip = hosts(family, HOST_ANY)?[0];
    Ok(Address::Inet(SocketAddr::new(ip, 0)))
}

/// A server bound to any host is, for this client, at the address that this host reaches the client from.
unsafe fn merge(config: *const Netconfig, arg: *mut MergeArg) -> Result<()> {
    // SAFETY: null or the program's struct, of null or strings.
    unsafe {
        let arg = arg.as_mut().ok_or(Trouble::BadArg)?;
        let mut server = universal(config, arg.server)?;
        if server.is_any_host() {
            let client = universal(config, arg.client)?;
            let Address::Inet(client) = client else {
                return Err(Trouble::BadArg);
            };
            server.set_host(address_towards(client).map_err(|_| Trouble::System)?);
        }
        arg.merged = malloced_string(server.to_universal().as_bytes())?;
        Ok(())
    }
}

/// Connecting a datagram socket asks for a route and sends nothing.
fn address_towards(client: SocketAddr) -> io::Result<IpAddr> {
    let any: IpAddr = match client {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let probe = UdpSocket::bind((any, 0))?;
    probe.connect((client.ip(), client.port().max(1)))?;
    Ok(probe.local_addr()?.ip())
}
