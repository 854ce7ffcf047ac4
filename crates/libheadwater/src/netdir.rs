//! `<netdir.h>`: names of hosts and services to addresses of a transport and back (netdir(3N)). inet and inet6 ask the C
//! library; a loop-back address is the service's name. What is handed out is malloc'ed, part by part; the symbols begin with
//! hw_, since libtirpc has functions of the C names.

mod memory;
mod options;

use core::cell::{Cell, RefCell};
use core::ffi::CStr;
use core::mem::zeroed;
use core::ptr::null_mut;
use std::ffi::CString;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

use headwater_host::next;
use headwater_xti::netaddr::{Address, Family};
use libc::{c_char, c_int};

use crate::given::{Given, Place, Text};
use crate::netbuf::{NetBuf, NoMemory};
use crate::netconfig::{Netconfig, complain};
use crate::real;
use memory::{
    AddrList, HostServ, HostServList, address_list, host_list, malloced_string, netbuf_of,
};

/// _nderror, which is what the functions return, too.
#[repr(i32)]
#[derive(Clone, Copy)]
enum Trouble {
    BadArg = -2,
    NoMem = -1,
    NoHost = 1,
    NoServ = 2,
    Access = 5,
    NoCtrl = 7,
    FailCtrl = 8,
    System = 9,
}

const HOST_SELF: &CStr = c"\\1";
const HOST_ANY: &CStr = c"\\2";
const HOST_BROADCAST: &CStr = c"\\3";

impl From<NoMemory> for Trouble {
    fn from(_: NoMemory) -> Trouble {
        Trouble::NoMem
    }
}

type Result<T> = core::result::Result<T, Trouble>;

thread_local! {
    static ERROR: Cell<c_int> = const { Cell::new(0) };
    /// What netdir_sperror returned last.
    static SAID: RefCell<CString> = RefCell::default();
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn hw_nderror() -> *mut c_int {
    ERROR.with(Cell::as_ptr)
}

/// 0, or the error, which is _nderror then.
fn status(r: Result<()>) -> c_int {
    let code = r.map_or_else(|e| e as c_int, |()| 0);
    ERROR.set(code);
    code
}

/// The pointer, or NULL and _nderror.
fn pointer<T>(r: Result<*mut T>) -> *mut T {
    r.unwrap_or_else(|e| {
        status(Err(e));
        null_mut()
    })
}

fn family<'a>(config: Given<'a, Netconfig>) -> Result<(Family, &'a Netconfig)> {
    let config = config.get().ok_or(Trouble::BadArg)?;
    let family = Family::named(config.family()).ok_or(Trouble::BadArg)?;
    Ok((family, config))
}

fn decoded(family: Family, netbuf: Option<&NetBuf>) -> Result<Address> {
    let netbuf = netbuf.filter(|n| n.has_buffer()).ok_or(Trouble::BadArg)?;
    let bytes = netbuf.bytes().map_err(|_| Trouble::BadArg)?;
    Address::decode(family, bytes).ok_or(Trouble::BadArg)
}

// --- names to addresses ---

/// Every address of a service on a host. ND_NOHOST, ND_NOSERV, ND_BADARG, ND_NOMEM.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn hw_netdir_getbyname(
    config: Given<Netconfig>,
    service: Given<HostServ>,
    list: Place<*mut AddrList>,
) -> c_int {
    status(getbyname(config, service).and_then(|addresses| {
        let list = list.get().ok_or(Trouble::BadArg)?;
        *list = address_list(&addresses)?;
        Ok(())
    }))
}

fn getbyname(config: Given<Netconfig>, service: Given<HostServ>) -> Result<Vec<Address>> {
    let (family, config) = family(config)?;
    let service = service.get().ok_or(Trouble::BadArg)?;
    let host = service.host.get().ok_or(Trouble::BadArg)?;
    let serv = service.serv.get().unwrap_or_default();
    if family == Family::Loopback {
        return Ok(vec![loopback_address(host, serv)?]);
    }
    let port = port_of(serv, config.is_udp())?;
    let hosts = hosts(family, host)?;
    let address = |ip| Address::Inet(SocketAddr::new(ip, port));
    Ok(hosts.into_iter().map(address).collect())
}

/// Loop-back transports end at this host.
fn loopback_address(host: &CStr, serv: &CStr) -> Result<Address> {
    let here = [HOST_SELF, HOST_ANY, c"localhost", c"127.0.0.1", c"::1"];
    if !here.contains(&host) && host != node_name().as_c_str() {
        return Err(Trouble::NoHost);
    }
    match serv.to_bytes() {
        b"" => Err(Trouble::NoServ),
        name => Ok(Address::Loopback(name.to_vec())),
    }
}

fn node_name() -> CString {
    // SAFETY: uname fills the struct with strings.
    unsafe {
        let mut names: libc::utsname = zeroed();
        libc::uname(&mut names);
        CStr::from_ptr(names.nodename.as_ptr()).into()
    }
}

fn hosts(family: Family, host: &CStr) -> Result<Vec<IpAddr>> {
    let v4 = family == Family::Inet;
    let one = |a: Ipv4Addr, b: Ipv6Addr| Ok(vec![if v4 { a.into() } else { b.into() }]);
    if host == HOST_SELF {
        return one(Ipv4Addr::LOCALHOST, Ipv6Addr::LOCALHOST);
    } else if host == HOST_ANY {
        return one(Ipv4Addr::UNSPECIFIED, Ipv6Addr::UNSPECIFIED);
    } else if host == HOST_BROADCAST {
        let all_nodes = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
        return one(Ipv4Addr::BROADCAST, all_nodes);
    }
    let host = host.to_str().map_err(|_| Trouble::NoHost)?;
    let found = (host, 0).to_socket_addrs().map_err(|_| Trouble::NoHost)?;
    let mut hosts = Vec::new();
    for ip in found.map(|a| a.ip()).filter(|ip| ip.is_ipv4() == v4) {
        if !hosts.contains(&ip) {
            hosts.push(ip);
        }
    }
    match hosts.is_empty() {
        true => Err(Trouble::NoHost),
        false => Ok(hosts),
    }
}

/// A service's port: its number, or its name in services(5); none is 0.
fn port_of(serv: &CStr, udp: bool) -> Result<u16> {
    let bytes = serv.to_bytes();
    if bytes.is_empty() {
        return Ok(0);
    }
    if bytes.iter().all(u8::is_ascii_digit) {
        let number = serv.to_str().ok().and_then(|s| s.parse().ok());
        return number.ok_or(Trouble::NoServ);
    }
    // SAFETY: getaddrinfo reads what it is given, and its list is freed once.
    unsafe {
        let mut hints: libc::addrinfo = zeroed();
        hints.ai_family = libc::AF_INET;
        hints.ai_flags = libc::AI_PASSIVE;
        hints.ai_socktype = if udp {
            libc::SOCK_DGRAM
        } else {
            libc::SOCK_STREAM
        };
        let mut found = null_mut();
        if libc::getaddrinfo(core::ptr::null(), serv.as_ptr(), &hints, &mut found) != 0 {
            return Err(Trouble::NoServ);
        }
        let port = (*(*found).ai_addr.cast::<libc::sockaddr_in>()).sin_port;
        libc::freeaddrinfo(found);
        Ok(u16::from_be(port))
    }
}

// --- addresses to names ---

/// The host and service that have an address; numbers where there is no name. ND_BADARG, ND_NOMEM.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn hw_netdir_getbyaddr(
    config: Given<Netconfig>,
    list: Place<*mut HostServList>,
    address: Given<NetBuf>,
) -> c_int {
    status(getbyaddr(config, address).and_then(|(host, serv)| {
        let list = list.get().ok_or(Trouble::BadArg)?;
        *list = host_list(&host, &serv)?;
        Ok(())
    }))
}

fn getbyaddr(config: Given<Netconfig>, netbuf: Given<NetBuf>) -> Result<(CString, CString)> {
    let (family, config) = family(config)?;
    match decoded(family, netbuf.get())? {
        Address::Loopback(name) => {
            let name = CString::new(name).map_err(|_| Trouble::NoServ)?;
            Ok((node_name(), name))
        }
        inet => names_of(&inet.encode(), config.is_udp()),
    }
}

fn names_of(sockaddr: &[u8], udp: bool) -> Result<(CString, CString)> {
    let (mut host, mut serv) = ([0 as c_char; 1025], [0 as c_char; 64]);
    let flags = if udp { libc::NI_DGRAM } else { 0 };
    // SAFETY: lengths are those of the buffers; getnameinfo copies the address before it looks at it as a struct, and
    // ends its strings.
    unsafe {
        let mut storage: libc::sockaddr_storage = zeroed();
        (&raw mut storage)
            .cast::<u8>()
            .copy_from_nonoverlapping(sockaddr.as_ptr(), sockaddr.len());
        let said = real::seldom::getnameinfo(
            (&raw const storage).cast(),
            sockaddr.len() as _,
            host.as_mut_ptr(),
            host.len() as _,
            serv.as_mut_ptr(),
            serv.len() as _,
            flags,
        );
        if said != 0 {
            return Err(Trouble::NoHost);
        }
        let owned = |s: &[c_char]| CStr::from_ptr(s.as_ptr()).into();
        Ok((owned(&host), owned(&serv)))
    }
}

// --- universal addresses ---

#[unsafe(no_mangle)]
pub extern "C-unwind" fn hw_taddr2uaddr(
    config: Given<Netconfig>,
    address: Given<NetBuf>,
) -> *mut c_char {
    pointer(family(config).and_then(|(family, _)| {
        let universal = decoded(family, address.get())?.to_universal();
        malloced_string(universal.as_bytes())
    }))
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn hw_uaddr2taddr(config: Given<Netconfig>, uaddr: Text) -> *mut NetBuf {
    pointer(universal(config, uaddr).and_then(|address| netbuf_of(&address)))
}

fn universal(config: Given<Netconfig>, uaddr: Text) -> Result<Address> {
    let (family, _) = family(config)?;
    let text = uaddr.get().ok_or(Trouble::BadArg)?.to_bytes();
    Address::from_universal(family, text).ok_or(Trouble::BadArg)
}

// --- errors ---

#[unsafe(no_mangle)]
pub extern "C-unwind" fn hw_netdir_sperror() -> *const c_char {
    SAID.with_borrow_mut(|last| {
        *last = what();
        last.as_ptr()
    })
}

fn what() -> CString {
    let text: &CStr = match ERROR.get() {
        -2 => c"bad argument",
        -1 => c"out of memory",
        0 => c"no error",
        1 => c"host not found",
        2 => c"service not found",
        5 => c"permission denied",
        7 => c"option not supported by the transport",
        8 => c"option refused by the transport",
        9 => {
            let why = io::Error::from_raw_os_error(next::errno());
            return CString::new(format!("system error: {why}")).unwrap_or_default();
        }
        _ => c"unknown error",
    };
    text.into()
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn hw_netdir_perror(before: Text) {
    complain(before, &what());
}
