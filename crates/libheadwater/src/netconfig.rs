//! `<netconfig.h>`: the transports there are, and the user's order of preference (netconfig(4), getnetconfig(3N),
//! getnetpath(3N)). The table is built in; the symbols begin with hw_, since libtirpc has functions of the C names.

use core::cell::Cell;
use core::ffi::CStr;
use core::ptr::{null, null_mut};

use headwater_host::next;
use libc::{c_char, c_int, c_ulong, c_void};

/// struct netconfig.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Netconfig {
    netid: *const c_char,
    semantics: c_ulong,
    flag: c_ulong,
    family: *const c_char,
    protocol: *const c_char,
    device: *const c_char,
    lookup_count: c_ulong,
    lookups: *const *const c_char,
    unused: [c_ulong; 9],
}

// SAFETY: entries of the table point to literals.
unsafe impl Sync for Netconfig {}

/// nc_semantics
const NC_TPI_CLTS: c_ulong = 1;
const NC_TPI_COTS: c_ulong = 2;
const NC_TPI_COTS_ORD: c_ulong = 3;
/// nc_flag
const NC_VISIBLE: c_ulong = 1;
const NC_BROADCAST: c_ulong = 2;

static TABLE: [Netconfig; 7] = [
    loopback(c"ticotsord", NC_TPI_COTS_ORD, c"/dev/ticotsord"),
    loopback(c"ticots", NC_TPI_COTS, c"/dev/ticots"),
    loopback(c"ticlts", NC_TPI_CLTS, c"/dev/ticlts"),
    tcp(c"tcp", c"inet", c"/dev/tcp"),
    udp(c"udp", c"inet", c"/dev/udp"),
    tcp(c"tcp6", c"inet6", c"/dev/tcp6"),
    udp(c"udp6", c"inet6", c"/dev/udp6"),
];

const fn loopback(netid: &'static CStr, semantics: c_ulong, device: &'static CStr) -> Netconfig {
    entry(netid, semantics, NC_VISIBLE, c"loopback", c"-", device)
}

const fn tcp(netid: &'static CStr, family: &'static CStr, device: &'static CStr) -> Netconfig {
    entry(netid, NC_TPI_COTS_ORD, NC_VISIBLE, family, c"tcp", device)
}

const fn udp(netid: &'static CStr, family: &'static CStr, device: &'static CStr) -> Netconfig {
    let flag = NC_VISIBLE | NC_BROADCAST;
    entry(netid, NC_TPI_CLTS, flag, family, c"udp", device)
}

const fn entry(
    netid: &'static CStr,
    semantics: c_ulong,
    flag: c_ulong,
    family: &'static CStr,
    protocol: &'static CStr,
    device: &'static CStr,
) -> Netconfig {
    Netconfig {
        netid: netid.as_ptr(),
        semantics,
        flag,
        family: family.as_ptr(),
        protocol: protocol.as_ptr(),
        device: device.as_ptr(),
        lookup_count: 0,
        lookups: null(),
        unused: [0; 9],
    }
}

impl Netconfig {
    /// nc_protofmly; empty if the program's own entry has none.
    pub unsafe fn family(&self) -> &[u8] {
        text(self.family)
    }

    /// nc_proto is "udp".
    pub unsafe fn is_udp(&self) -> bool {
        text(self.protocol) == b"udp"
    }
}

unsafe fn text<'a>(s: *const c_char) -> &'a [u8] {
    match s.is_null() {
        true => b"",
        false => CStr::from_ptr(s).to_bytes(),
    }
}

fn named(netid: &[u8]) -> Option<&'static Netconfig> {
    // SAFETY: names in the table are literals.
    TABLE.iter().find(|e| unsafe { text(e.netid) } == netid)
}

/// What nc_sperror says.
#[derive(Clone, Copy)]
enum Trouble {
    None,
    NotSet,
    Unknown,
    Memory,
}

thread_local! {
    static TROUBLE: Cell<Trouble> = const { Cell::new(Trouble::None) };
}

fn note(trouble: Trouble) {
    TROUBLE.set(trouble);
}

/// What setnetconfig and setnetpath return: entries still to be handed out. The mark tells handles from other pointers.
struct Walk {
    mark: Mark,
    entries: Vec<&'static Netconfig>,
    next: usize,
}

type Mark = u64;
const TABLE_WALK: Mark = 0x6e63_7461_626c_6500;
const PATH_WALK: Mark = 0x6e63_7061_7468_0000;

unsafe fn begin(mark: Mark, entries: Vec<&'static Netconfig>) -> *mut c_void {
    let walk = Walk {
        mark,
        entries,
        next: 0,
    };
    Box::into_raw(Box::new(walk)).cast()
}

unsafe fn is_handle(handle: *mut c_void, mark: Mark) -> bool {
    let is = !handle.is_null()
        && handle.cast::<Walk>().is_aligned()
        && (&raw const (*handle.cast::<Walk>()).mark).read() == mark;
    if !is {
        note(Trouble::NotSet);
        next::set_errno(libc::EINVAL);
    }
    is
}

unsafe fn advance(handle: *mut c_void, mark: Mark) -> *const Netconfig {
    if !is_handle(handle, mark) {
        return null();
    }
    let walk = &mut *handle.cast::<Walk>();
    let Some(entry) = walk.entries.get(walk.next) else {
        return null();
    };
    walk.next += 1;
    *entry
}

unsafe fn end(handle: *mut c_void, mark: Mark) -> c_int {
    if !is_handle(handle, mark) {
        return -1;
    }
    drop(Box::from_raw(handle.cast::<Walk>()));
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn hw_setnetconfig() -> *mut c_void {
    begin(TABLE_WALK, TABLE.iter().collect())
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn hw_getnetconfig(handle: *mut c_void) -> *const Netconfig {
    advance(handle, TABLE_WALK)
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn hw_endnetconfig(handle: *mut c_void) -> c_int {
    end(handle, TABLE_WALK)
}

/// A copy of an entry; NULL if there is none of the name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn hw_getnetconfigent(netid: *const c_char) -> *mut Netconfig {
    let Some(entry) = named(text(netid)) else {
        note(Trouble::Unknown);
        return null_mut();
    };
    let copy = libc::malloc(size_of::<Netconfig>()).cast::<Netconfig>();
    match copy.is_null() {
        true => note(Trouble::Memory),
        false => copy.write(*entry),
    }
    copy
}

/// Entries of getnetconfig are not to be freed; some programs do it.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn hw_freenetconfigent(entry: *mut Netconfig) {
    if !TABLE.as_ptr_range().contains(&entry.cast_const()) {
        libc::free(entry.cast());
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn hw_setnetpath() -> *mut c_void {
    let netpath = libc::getenv(c"NETPATH".as_ptr());
    let entries = match text(netpath) {
        b"" => TABLE.iter().filter(|e| e.flag & NC_VISIBLE != 0).collect(),
        names => names.split(|&c| c == b':').filter_map(named).collect(),
    };
    begin(PATH_WALK, entries)
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn hw_getnetpath(handle: *mut c_void) -> *const Netconfig {
    advance(handle, PATH_WALK)
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn hw_endnetpath(handle: *mut c_void) -> c_int {
    end(handle, PATH_WALK)
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn hw_nc_sperror() -> *const c_char {
    let text = match TROUBLE.get() {
        Trouble::None => c"no error",
        Trouble::NotSet => c"not a handle of setnetconfig or setnetpath",
        Trouble::Unknown => c"no such transport",
        Trouble::Memory => c"out of memory",
    };
    text.as_ptr()
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn hw_nc_perror(before: *const c_char) {
    complain(before, CStr::from_ptr(hw_nc_sperror()));
}

/// "before: what" on standard error, as perror(3).
pub unsafe fn complain(before: *const c_char, what: &CStr) {
    let before = String::from_utf8_lossy(text(before));
    let separator = if before.is_empty() { "" } else { ": " };
    eprintln!("{before}{separator}{}", what.to_string_lossy());
}
