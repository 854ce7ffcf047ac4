//! What netdir(3N) hands out: malloc'ed part by part, and freed by its kind.

use core::ffi::CStr;

use libc::{c_char, c_int, c_uint, c_void};

use super::{Result, Trouble};
use crate::given::Text;
use crate::netbuf::NetBuf;
use headwater_xti::netaddr::Address;

/// struct nd_hostserv. Strings, or null.
#[repr(C)]
pub struct HostServ {
    pub host: Text<'static>,
    pub serv: Text<'static>,
}

/// struct nd_hostservlist.
#[repr(C)]
pub struct HostServList {
    count: c_int,
    entries: *mut HostServ,
}

/// struct nd_addrlist.
#[repr(C)]
pub struct AddrList {
    count: c_int,
    addresses: *mut NetBuf,
}

const ND_HOSTSERV: c_int = 0;
const ND_HOSTSERVLIST: c_int = 1;
const ND_ADDR: c_int = 2;
const ND_ADDRLIST: c_int = 3;

/// Frees what these functions gave, by its kind; an unknown kind is left alone.
///
/// # Safety
/// As netdir_free(3) asks of its caller: these functions gave `what`, of that kind, and it is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn hw_netdir_free(what: *mut c_void, kind: c_int) {
    // SAFETY: these functions made it part by part, and the program is done with it.
    unsafe {
        if what.is_null() {
            return;
        }
        match kind {
            ND_HOSTSERV => free_names(what.cast(), 1),
            ND_ADDR => free_netbufs(what.cast(), 1),
            ND_HOSTSERVLIST => {
                let list = &*what.cast::<HostServList>();
                free_names(list.entries, list.count);
                libc::free(what);
            }
            ND_ADDRLIST => {
                let list = &*what.cast::<AddrList>();
                free_netbufs(list.addresses, list.count);
                libc::free(what);
            }
            _ => {}
        }
    }
}

unsafe fn free_names(names: *mut HostServ, count: c_int) {
    // SAFETY: `count` of them, each with its own memory, and none is used any more.
    unsafe {
        for i in 0..count as usize {
            libc::free((*names.add(i)).host.as_ptr().cast_mut().cast());
            libc::free((*names.add(i)).serv.as_ptr().cast_mut().cast());
        }
        libc::free(names.cast());
    }
}

unsafe fn free_netbufs(netbufs: *mut NetBuf, count: c_int) {
    // SAFETY: `count` of them, each with its own memory, and none is used any more.
    unsafe {
        for i in 0..count as usize {
            (*netbufs.add(i)).release();
        }
        libc::free(netbufs.cast());
    }
}

pub fn address_list(addresses: &[Address]) -> Result<*mut AddrList> {
    // SAFETY: made here, zeroed, with room for all; it counts those that are filled.
    unsafe {
        let list = malloced::<AddrList>(1)?;
        let free = move |_: &Trouble| hw_netdir_free(list.cast(), ND_ADDRLIST);
        (*list).addresses = malloced::<NetBuf>(addresses.len()).inspect_err(free)?;
        for address in addresses {
            let next = (*list).addresses.add((*list).count as usize);
            fill(&mut *next, address).inspect_err(free)?;
            (*list).count += 1;
        }
        Ok(list)
    }
}

pub fn host_list(host: &CStr, serv: &CStr) -> Result<*mut HostServList> {
    // SAFETY: made here, zeroed, with room for one.
    unsafe {
        let list = malloced::<HostServList>(1)?;
        let free = move |_: &Trouble| hw_netdir_free(list.cast(), ND_HOSTSERVLIST);
        (*list).entries = malloced::<HostServ>(1).inspect_err(free)?;
        (*list).count = 1;
        let text = |from: &CStr| -> Result<Text<'static>> {
            Ok(Text::new(
                malloced_string(from.to_bytes()).inspect_err(free)?,
            ))
        };
        (*(*list).entries).host = text(host)?;
        (*(*list).entries).serv = text(serv)?;
        Ok(list)
    }
}

pub fn netbuf_of(address: &Address) -> Result<*mut NetBuf> {
    let netbuf = malloced::<NetBuf>(1)?;
    // SAFETY: made here, zeroed, and nobody else has it.
    unsafe { fill(&mut *netbuf, address).inspect_err(|_| libc::free(netbuf.cast()))? };
    Ok(netbuf)
}

fn fill(netbuf: &mut NetBuf, address: &Address) -> Result<()> {
    let bytes = address.encode();
    netbuf.allocate(bytes.len() as c_uint)?;
    netbuf.fill(&bytes);
    Ok(())
}

/// A copy, and a NUL behind it.
pub fn malloced_string(bytes: &[u8]) -> Result<*mut c_char> {
    let copy = malloced::<u8>(bytes.len() + 1)?;
    // SAFETY: room for these and one more.
    unsafe { copy.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    Ok(copy.cast())
}

/// Zeroed.
fn malloced<T>(count: usize) -> Result<*mut T> {
    // SAFETY: calloc(3) takes any numbers.
    let memory = unsafe { libc::calloc(count, size_of::<T>()) };
    match memory.is_null() {
        true => Err(Trouble::NoMem),
        false => Ok(memory.cast()),
    }
}
