//! Which paths are those of streams, as far as that is known without a system call, and who opens them. Every open(2) of every
//! program comes by here.

use core::ffi::CStr;

use headwater_endpoints::device;
use headwater_host::sync::{AtomicU32, Ordering};
use headwater_host::{env, process, sys};
use headwater_streams::exec::registry;
use headwater_streams::{attach, drivers};
use libc::c_int;

use crate::{modules, start};

/// open(2) by those whose name it may be, one after the other; `None`: the kernel's to open.
#[inline]
pub fn open(path: &CStr, flags: c_int) -> Option<sys::Result<c_int>> {
    // In a confined process the call is the kernel's.
    if !process::present() {
        return None;
    }
    stream(path, flags)
}

/// A device of ours, or a file that a stream is attached to.
#[inline]
fn stream(path: &CStr, flags: c_int) -> Option<sys::Result<c_int>> {
    if start::has_streams() || begins(path, flags) {
        return headwater_streams::open::open(path, flags);
    }
    None
}

/// May open(2) of this path make a stream? Gets ready for it, then.
#[cold]
fn begins(path: &CStr, flags: c_int) -> bool {
    let bytes = path.to_bytes();
    let stream = match bytes.strip_prefix(b"/dev/") {
        Some(name) if !name.starts_with(b"shm/") => is_device(name),
        _ => {
            let kernels = bytes.starts_with(b"/proc/") || bytes.starts_with(b"/sys/");
            !kernels && sees_attached() && attach::is_attached(path, flags)
        }
    };
    stream && start::streams()
}

/// What stat(2) says of a name below /dev that no file has.
pub struct Name {
    /// S_IFCHR or S_IFIFO.
    pub kind: libc::mode_t,
    /// The device number that SAD_SAP, too, takes.
    pub number: libc::dev_t,
    pub inode: u64,
}

/// Would open(2) of this path make a stream, whether there has been one yet or not? Gets nothing ready. Of the drivers only those
/// below /dev/streams are found before the program has streams: a preloaded program takes /dev/log for the socket of syslog.
///
/// Whatever is asked for and missing comes by here, also in a signal handler, after vfork and under seccomp: a name that is not ours
/// takes no lock and no system call.
pub fn find(path: &CStr) -> Option<Name> {
    let name = path.to_bytes().strip_prefix(b"/dev/")?;
    let below = name.strip_prefix(b"streams/");
    let name = below.unwrap_or(name);
    let is_fifo = name == b"fifo" || name.starts_with(b"fifo.") && name != b"fifo.";
    let number = match is_fifo {
        true => 0,
        false => number(name, below.is_some())?,
    };
    if !start::may_have_streams() {
        return None;
    }
    let hash = |h: u64, b: &u8| (h ^ *b as u64).wrapping_mul(0x100_0000_01b3);
    Some(Name {
        kind: if is_fifo {
            libc::S_IFIFO
        } else {
            libc::S_IFCHR
        },
        number,
        inode: name.iter().fold(0xcbf2_9ce4_8422_2325, hash),
    })
}

/// The number of a device that can be opened, as it has one, or will have when all are registered in their order. `below`: it is
/// looked for below /dev/streams.
fn number(name: &[u8], below: bool) -> Option<libc::dev_t> {
    if name == b"clone" {
        return None;
    }
    let loaded = || {
        // It gets its own when it is loaded.
        let number = libc::makedev(registry::FIRST_MAJOR - 1, 0);
        modules::is_there(name).then_some(number)
    };
    if start::has_streams() {
        let device = registry::find_device(name).map(|device| device.number(0));
        return device.or_else(loaded);
    }
    let is = |n: &str, name: &[u8]| n.as_bytes() == name;
    let driver = drivers::NAMES.iter().position(|n| below && is(n, name));
    let order = driver.or_else(|| {
        let inet = name.strip_prefix(b"inet/");
        let at = device::ALL
            .iter()
            .position(|(n, _)| is(n, inet.unwrap_or(name)))?;
        Some(drivers::NAMES.len() + 2 * at + inet.is_some() as usize)
    });
    match order {
        Some(order) => Some(libc::makedev(registry::FIRST_MAJOR + order as u32, 0)),
        None => loaded(),
    }
}

/// A name of ours below /dev?
fn is_device(name: &[u8]) -> bool {
    if name == b"fifo" || name.starts_with(b"fifo.") || name.starts_with(b"streams/") {
        return true;
    }
    let transport = name.strip_prefix(b"inet/").unwrap_or(name);
    drivers::NAMES.iter().any(|n| n.as_bytes() == name)
        || device::ALL.iter().any(|(n, _)| n.as_bytes() == transport)
        || modules::is_there(name)
}

const UNKNOWN: u32 = 0;
const NO: u32 = 1;
const YES: u32 = 2;

/// Does this process look for names that other processes have attached to files? To ask for them takes system calls, which a
/// program that was preloaded for its sockets' sake is spared: it is to be linked with the library, or HEADWATER_NAMES=1.
fn sees_attached() -> bool {
    static SEES: AtomicU32 = AtomicU32::new(UNKNOWN);
    match SEES.load(Ordering::Relaxed) {
        UNKNOWN => {
            let sees = env::is_set("HEADWATER_NAMES", &["0"]) || is_needed();
            SEES.store(if sees { YES } else { NO }, Ordering::Relaxed);
            sees
        }
        known => known == YES,
    }
}

/// The names by which programs are linked with the library, up to their versions.
const OURS: [&[u8]; 3] = [b"libheadwater.so", b"libstreams.so", b"libxti.so"];

/// Is the library needed by the program, or by another library of it, rather than preloaded?
fn is_needed() -> bool {
    // SAFETY: calls the function below for each object while the loader keeps them in place.
    unsafe { libc::dl_iterate_phdr(Some(needs_us), core::ptr::null_mut()) != 0 }
}

unsafe extern "C" fn needs_us(
    object: *mut libc::dl_phdr_info,
    _: usize,
    _: *mut libc::c_void,
) -> c_int {
    // SAFETY: dl_iterate_phdr shows an object that is loaded: its headers, the entries up to the last, and strings are in place.
    unsafe {
        let object = &*object;
        let headers = core::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum as usize);
        let Some(dynamic) = headers.iter().find(|h| h.p_type == libc::PT_DYNAMIC) else {
            return 0;
        };
        const NULL: u64 = 0;
        const NEEDED: u64 = 1;
        const STRTAB: u64 = 5;
        let entries = || {
            let at = (object.dlpi_addr + dynamic.p_vaddr) as *const [u64; 2];
            (0..).map(move |i| *at.add(i)).take_while(|e| e[0] != NULL)
        };
        let Some([_, strings]) = entries().find(|e| e[0] == STRTAB) else {
            return 0;
        };
        // The loader has made it an address, except where the object is read-only (the vDSO).
        let strings = match strings < object.dlpi_addr {
            true => strings + object.dlpi_addr,
            false => strings,
        };
        let names_us = |e: [u64; 2]| {
            let needed = CStr::from_ptr((strings + e[1]) as *const libc::c_char).to_bytes();
            let file = needed.rsplit(|&c| c == b'/').next().unwrap_or(needed);
            OURS.iter().any(|ours| file.starts_with(ours))
        };
        entries().filter(|e| e[0] == NEEDED).any(names_us) as c_int
    }
}
