//! Modules and drivers in C: NAME.so in a folder of HEADWATER_MODULES, with System V's names for what it holds: `NAMEinfo`, a
//! struct streamtab, and `NAMEdevflag`.
//!
//! One is loaded when its name is first pushed or opened, and stays. A program with more rights than its caller's has no such
//! variable (`host::env`), and so loads nothing.

use std::ffi::{CStr, CString};

use headwater_host::log::{self, Level};
use headwater_host::{env, sys};
use headwater_streams::ddi::streamtab;
use headwater_streams::exec::registry::{self, Kind};
use libc::{c_int, c_void};

use crate::ddi;
use crate::variadic::on_cmn_err;

/// An old-style open procedure, which returns a minor number.
const D_OLD: c_int = 1;

/// When the streams begin.
pub fn begin() {
    if env::var(registry::FOLDERS).is_some() {
        on_cmn_err(ddi::tell);
        registry::LOADER.set(load);
    }
}

/// Is there a driver's file for this name? Where there are no folders of them, it takes no system call.
pub fn is_there(name: &[u8]) -> bool {
    core::str::from_utf8(name).is_ok_and(|name| find(name, Kind::Driver).is_some())
}

/// What the system has in /dev stays the system's: no driver of that name is found.
fn find(name: &str, kind: Kind) -> Option<CString> {
    let is_identifier = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(is_identifier) {
        return None;
    }
    let value = env::var(registry::FOLDERS)?;
    let folders = registry::folders(&value);
    let mut paths = folders.filter_map(|folder| CString::new(format!("{folder}/{name}.so")).ok());
    let path = paths.find(|path| sys::access(path, libc::F_OK).is_ok())?;
    let device = CString::new(format!("/dev/{name}")).ok()?;
    let is_free = kind == Kind::Module || sys::access(&device, libc::F_OK).is_err();
    is_free.then_some(path)
}

/// See [`registry::LOADER`].
fn load(name: &str, kind: Kind) -> Option<&'static streamtab> {
    let path = find(name, kind)?;
    let loaded = load_from(&path, name);
    let explain = |why: &String| {
        let path = path.to_string_lossy();
        log::write(Level::Warn, format_args!("{path}: {why}"));
    };
    loaded.inspect_err(explain).ok()
}

fn load_from(path: &CStr, name: &str) -> Result<&'static streamtab, String> {
    // SAFETY: a path that ends in a zero. What runs when it is loaded is the user's own.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        return Err(why_not());
    }
    let found = look_into(library, name);
    if found.is_err() {
        // SAFETY: of dlopen(3), and nothing of it is used.
        unsafe { libc::dlclose(library) };
    }
    found
}

fn look_into(library: *mut c_void, name: &str) -> Result<&'static streamtab, String> {
    let symbol = |end: &str| {
        let symbol = CString::new(format!("{name}{end}")).map_err(|e| e.to_string())?;
        // SAFETY: of dlopen(3), and a name that ends in a zero.
        let at = unsafe { libc::dlsym(library, symbol.as_ptr()) };
        match at.is_null() {
            true => Err(format!("has no {name}{end}; see docs/modules.md")),
            false => Ok(at),
        }
    };
    let flag = symbol("devflag")?.cast::<c_int>();
    // SAFETY: by its name it is an int.
    if unsafe { flag.read() } & D_OLD != 0 {
        return Err(format!(
            "{name}devflag has D_OLD, and its open procedure is none of ours"
        ));
    }
    let info = symbol("info")?.cast::<[*const c_void; 2]>();
    // SAFETY: by its name it is a struct streamtab, whose first two words are pointers.
    if unsafe { info.read() }.contains(&core::ptr::null()) {
        return Err(format!(
            "{name}info lacks the table of a side (st_rdinit, st_wrinit)"
        ));
    }
    // SAFETY: the same, which stays, since what was loaded does; and the tables that it leads to.
    unsafe { info.cast::<streamtab>().as_ref() }.ok_or_else(|| "has moved".to_string())
}

fn why_not() -> String {
    // SAFETY: null, or a string that lasts until the next call of this thread.
    let text = unsafe { libc::dlerror() };
    match text.is_null() {
        true => "can't be loaded".to_string(),
        // SAFETY: as above.
        false => unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned(),
    }
}
