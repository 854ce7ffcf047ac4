//! Modules and devices by name: the tables that System V calls fmodsw and cdevsw. What comes built in is registered at
//! start, a program's own at any time; nothing is ever taken out.

use core::ffi::c_int;

use super::guarded::{Entered, Guarded};
use super::module::{Flow, Module, Mux, mux_streamtab_of, streamtab_of};
use super::perimeter::Perimeter;
use crate::ddi::queue::streamtab;

type Errno = c_int;

/// Longest name of a module (FMNAMESZ).
pub const FMNAMESZ: usize = 8;

/// A module that can be pushed, or a driver that can be opened.
pub struct Entry {
    name: String,
    major: u32,
    tab: &'static streamtab,
    perimeter: Option<&'static Perimeter>,
}

impl Entry {
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn table(&self) -> &'static streamtab {
        self.tab
    }

    /// A driver's major number; 0 for a module.
    pub fn major(&self) -> u32 {
        self.major
    }

    /// A driver's device number.
    pub fn number(&self, minor: u32) -> libc::dev_t {
        libc::makedev(self.major, minor)
    }

    /// The perimeter that all the driver's streams share, if they do.
    pub fn shared_perimeter(&self) -> Option<&'static Perimeter> {
        self.perimeter
    }
}

/// Major numbers begin here, out of the way of the kernel's.
pub const FIRST_MAJOR: u32 = 0x100;

/// All that is registered.
pub struct Names {
    modules: Vec<&'static Entry>,
    devices: Vec<&'static Entry>,
}

static NAMES: Guarded<Names> = Guarded::new(Names {
    modules: Vec::new(),
    devices: Vec::new(),
});

pub(super) type Table = Entered<'static, Names>;

pub(super) fn hold() -> Table {
    NAMES.enter()
}

/// Registers `M` as a module, by the name in its [`Info`](super::Info). EEXIST, EINVAL for a name that is too long.
pub fn register_module<M: Module>() -> Result<(), Errno> {
    let name = M::INFO.name.to_str().map_err(|_| libc::EINVAL)?;
    register_module_tab(name, streamtab_of::<M>())
}

/// Registers a driver as a device. EEXIST.
pub fn register_device<M: Module>(name: &str) -> Result<&'static Entry, Errno> {
    register_device_tab(name, streamtab_of::<M>(), M::FLOW)
}

/// Registers a multiplexer as a device; its streams share a perimeter. EEXIST.
pub fn register_mux<M: Mux>(name: &str) -> Result<&'static Entry, Errno> {
    register_device_tab(name, mux_streamtab_of::<M>(), Flow::Shared)
}

pub fn register_module_tab(name: &str, tab: &'static streamtab) -> Result<(), Errno> {
    if name.is_empty() || name.len() > FMNAMESZ {
        return Err(libc::EINVAL);
    }
    let mut names = NAMES.enter();
    if names.modules.iter().any(|m| m.name == name) {
        return Err(libc::EEXIST);
    }
    names.modules.push(Box::leak(Box::new(Entry {
        name: name.to_owned(),
        major: 0,
        tab,
        perimeter: None,
    })));
    Ok(())
}

pub fn register_device_tab(
    name: &str,
    tab: &'static streamtab,
    flow: Flow,
) -> Result<&'static Entry, Errno> {
    // One for all of them: they may be linked above each other.
    static SHARED: std::sync::OnceLock<&'static Perimeter> = std::sync::OnceLock::new();
    let perimeter = (flow == Flow::Shared).then(|| *SHARED.get_or_init(Perimeter::fresh));
    let mut names = NAMES.enter();
    if names.devices.iter().any(|d| d.name == name) {
        return Err(libc::EEXIST);
    }
    let device: &'static Entry = Box::leak(Box::new(Entry {
        name: name.to_owned(),
        major: FIRST_MAJOR + names.devices.len() as u32,
        tab,
        perimeter,
    }));
    names.devices.push(device);
    Ok(device)
}

pub fn find_module(name: impl AsRef<[u8]>) -> Option<&'static Entry> {
    find(&NAMES.enter().modules, name.as_ref())
}

pub fn find_device(name: impl AsRef<[u8]>) -> Option<&'static Entry> {
    find(&NAMES.enter().devices, name.as_ref())
}

fn find(entries: &[&'static Entry], name: &[u8]) -> Option<&'static Entry> {
    entries.iter().find(|e| e.name.as_bytes() == name).copied()
}

/// The device with this major number.
pub fn device_by_major(major: u32) -> Option<&'static Entry> {
    let index = major.checked_sub(FIRST_MAJOR)? as usize;
    NAMES.enter().devices.get(index).copied()
}

/// All modules, in the order of registration.
pub fn modules() -> Vec<&'static Entry> {
    NAMES.enter().modules.clone()
}

/// All devices, in the order of registration.
pub fn devices() -> Vec<&'static Entry> {
    NAMES.enter().devices.clone()
}
