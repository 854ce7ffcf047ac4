//! netdir_options: what only some transports can do, and addresses as a client sees them.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use headwater_tpi::error;
use headwater_tpi::option::{INET_IP, List, T_IP_BROADCAST, T_NEGOTIATE, T_YES};
use headwater_xti::netaddr::{Address, Family};
use headwater_xti::{calls, with};
use libc::{c_char, c_int};

use super::memory::malloced_string;
use super::{HOST_ANY, Result, Trouble, decoded, family, hosts, status, universal};
use crate::given::{Given, Place, Text};
use crate::netbuf::NetBuf;
use crate::netconfig::Netconfig;
use crate::xti;

/// struct nd_mergearg. Strings, or null.
#[repr(C)]
pub struct MergeArg {
    server: Text<'static>,
    client: Text<'static>,
    merged: *mut c_char,
}

const ND_SET_BROADCAST: c_int = 1;
const ND_SET_RESERVEDPORT: c_int = 2;
const ND_CHECK_RESERVEDPORT: c_int = 3;
const ND_MERGEADDR: c_int = 4;

/// Ports that only privileged programs bind, and those among them that are free for any of these.
const RESERVED: core::ops::Range<u16> = 1..1024;
const UNASSIGNED: core::ops::Range<u16> = 512..1024;

/// ND_BADARG, ND_NOCTRL (the transport has nothing like it), ND_FAILCTRL, ND_ACCESS, ND_NOMEM.
///
/// # Safety
/// As netdir_options(3) asks of its caller: `args` is what the option wants.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn hw_netdir_options(
    given: Given<Netconfig>,
    option: c_int,
    fd: c_int,
    args: *mut c_char,
) -> c_int {
    // SAFETY: by the option, which the program says.
    let netbuf = || unsafe { Place::<NetBuf>::new(args.cast()) };
    let set = |(family, config): (Family, &Netconfig)| match option {
        ND_MERGEADDR => {
            // SAFETY: of this option it is such a struct.
            merge(given, unsafe { Place::new(args.cast()) })
        }
        ND_SET_BROADCAST | ND_SET_RESERVEDPORT | ND_CHECK_RESERVEDPORT
            if family == Family::Loopback =>
        {
            Err(Trouble::NoCtrl)
        }
        ND_SET_BROADCAST if config.is_udp() => allow_broadcast(fd),
        ND_SET_RESERVEDPORT => bind_reserved(family, fd, netbuf()),
        ND_CHECK_RESERVEDPORT => match decoded(family, netbuf().get().as_deref())?.port() {
            Some(port) if RESERVED.contains(&port) => Ok(()),
            _ => Err(Trouble::FailCtrl),
        },
        _ => Err(Trouble::NoCtrl),
    };
    status(family(given).and_then(set))
}

fn allow_broadcast(fd: c_int) -> Result<()> {
    let mut option = List::new();
    option.push_number(INET_IP, T_IP_BROADCAST, 0, T_YES as i32);
    let done = xti::noted(with(fd, |p| calls::optmgmt(p, T_NEGOTIATE, option.bytes())));
    done.map(drop).map_err(|_| Trouble::FailCtrl)
}

/// Binds to the reserved port of the address, or without one to any that is free; the address then has it.
fn bind_reserved(family: Family, fd: c_int, netbuf: Place<NetBuf>) -> Result<()> {
    let given = !netbuf.is_null();
    let netbuf = netbuf.get();
    let (mut address, ports) = match decoded(family, netbuf.as_deref()) {
        Ok(address) => match address.port() {
            Some(port) if RESERVED.contains(&port) => (address, port..port + 1),
            _ => (address, UNASSIGNED),
        },
        Err(_) if !given => (any_of(family)?, UNASSIGNED),
        Err(e) => return Err(e),
    };
    for port in ports.rev() {
        address.set_port(port);
        let bytes = address.encode();
        match xti::noted(with(fd, |p| calls::bind(p, Some(&bytes), 0))) {
            Ok(_) => {
                if let Some(netbuf) = netbuf {
                    netbuf.overwrite(&bytes);
                }
                return Ok(());
            }
            Err(e) if e.tli == error::TADDRBUSY => {}
            Err(e) if e.tli == error::TACCES => return Err(Trouble::Access),
            Err(_) => return Err(Trouble::FailCtrl),
        }
    }
    Err(Trouble::FailCtrl)
}

fn any_of(family: Family) -> Result<Address> {
    let ip = hosts(family, HOST_ANY)?[0];
    Ok(Address::Inet(SocketAddr::new(ip, 0)))
}

/// A server bound to any host is, for this client, at the address that this host reaches the client from.
fn merge(config: Given<Netconfig>, arg: Place<MergeArg>) -> Result<()> {
    let arg = arg.get().ok_or(Trouble::BadArg)?;
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
