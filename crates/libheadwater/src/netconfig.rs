//! `<netconfig.h>`: the transports there are, and the user's order of preference (netconfig(4), getnetconfig(3N),
//! getnetpath(3N)). The table is built in; the symbols begin with hw_, since libtirpc has functions of the C names.

use core::cell::Cell;
use core::ffi::CStr;
use core::ptr::{null, null_mut};

use headwater_host::{env, next};
use libc::{c_char, c_int, c_ulong, c_void};

use crate::given::Text;

/// struct netconfig. What it points to is null or a string.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Netconfig {
    netid: Text<'static>,
    semantics: c_ulong,
    flag: c_ulong,
    family: Text<'static>,
    protocol: Text<'static>,
    device: Text<'static>,
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
        netid: Text::of(netid),
        semantics,
        flag,
        family: Text::of(family),
        protocol: Text::of(protocol),
        device: Text::of(device),
        lookup_count: 0,
        lookups: null(),
        unused: [0; 9],
    }
}

impl Netconfig {
    /// nc_protofmly; empty if the program's own entry has none.
    pub fn family(&self) -> &[u8] {
        self.family.bytes()
    }

    /// nc_proto is "udp".
    pub fn is_udp(&self) -> bool {
        self.protocol.bytes() == b"udp"
    }
}

fn named(netid: &[u8]) -> Option<&'static Netconfig> {
    TABLE.iter().find(|e| e.netid.bytes() == netid)
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

fn begin(mark: Mark, entries: Vec<&'static Netconfig>) -> *mut c_void {
    let walk = Walk {
        mark,
        entries,
        next: 0,
    };
    Box::into_raw(Box::new(walk)).cast()
}

/// What `begin` has given the program, or null.
#[repr(transparent)]
pub struct Handle(*mut Walk);

impl Handle {
    /// What it stands for, if that has the mark; EINVAL.
    fn walk(&mut self, mark: Mark) -> Option<&mut Walk> {
        // SAFETY: the program's own memory, as far as a mark, if it is no handle: any bits are one. The mark tells that `begin` has made it,
        // and the program uses it in one thread at a time.
        let walk = unsafe {
            let is = !self.0.is_null()
                && self.0.is_aligned()
                && (&raw const (*self.0).mark).read() == mark;
            is.then(|| &mut *self.0)
        };
        if walk.is_none() {
            note(Trouble::NotSet);
            next::set_errno(libc::EINVAL);
        }
        walk
    }

    fn advance(mut self, mark: Mark) -> *const Netconfig {
        let Some(walk) = self.walk(mark) else {
            return null();
        };
        let Some(entry) = walk.entries.get(walk.next) else {
            return null();
        };
        walk.next += 1;
        *entry
    }

    fn end(mut self, mark: Mark) -> c_int {
        let Some(walk) = self.walk(mark) else {
            return -1;
        };
        // SAFETY: `begin` has made it as a box, and the program is done with it.
        drop(unsafe { Box::from_raw(walk) });
        0
    }
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn hw_setnetconfig() -> *mut c_void {
    begin(TABLE_WALK, TABLE.iter().collect())
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn hw_getnetconfig(handle: Handle) -> *const Netconfig {
    handle.advance(TABLE_WALK)
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn hw_endnetconfig(handle: Handle) -> c_int {
    handle.end(TABLE_WALK)
}

/// A copy of an entry; NULL if there is none of the name.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn hw_getnetconfigent(netid: Text) -> *mut Netconfig {
    let Some(entry) = named(netid.bytes()) else {
        note(Trouble::Unknown);
        return null_mut();
    };
    // SAFETY: what malloc gives has room for an entry.
    unsafe {
        let copy = libc::malloc(size_of::<Netconfig>()).cast::<Netconfig>();
        match copy.is_null() {
            true => note(Trouble::Memory),
            false => copy.write(*entry),
        }
        copy
    }
}

/// Entries of getnetconfig are not to be freed; some programs do it.
///
/// # Safety
/// As freenetconfigent(3) asks of its caller: `entry` is one of getnetconfigent(3), and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn hw_freenetconfigent(entry: *mut Netconfig) {
    if !TABLE.as_ptr_range().contains(&entry.cast_const()) {
        // SAFETY: a copy of hw_getnetconfigent's, which the program gives back.
        unsafe { libc::free(entry.cast()) };
    }
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn hw_setnetpath() -> *mut c_void {
    // SAFETY: null or a string, which stays as long as nobody changes the environment.
    let netpath = unsafe { Text::new(env::of_program(c"NETPATH")) }.bytes();
    let entries = match netpath {
        b"" => TABLE.iter().filter(|e| e.flag & NC_VISIBLE != 0).collect(),
        names => names.split(|&c| c == b':').filter_map(named).collect(),
    };
    begin(PATH_WALK, entries)
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn hw_getnetpath(handle: Handle) -> *const Netconfig {
    handle.advance(PATH_WALK)
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn hw_endnetpath(handle: Handle) -> c_int {
    handle.end(PATH_WALK)
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn hw_nc_sperror() -> *const c_char {
    trouble().as_ptr()
}

fn trouble() -> &'static CStr {
    match TROUBLE.get() {
        Trouble::None => c"no error",
        Trouble::NotSet => c"not a handle of setnetconfig or setnetpath",
        Trouble::Unknown => c"no such transport",
        Trouble::Memory => c"out of memory",
    }
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn hw_nc_perror(before: Text) {
    complain(before, trouble());
}

/// "before: what" on standard error, as perror(3).
pub fn complain(before: Text, what: &CStr) {
    let before = String::from_utf8_lossy(before.bytes());
    let separator = if before.is_empty() { "" } else { ": " };
    eprintln!("{before}{separator}{}", what.to_string_lossy());
}
