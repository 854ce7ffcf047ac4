//! Modules and devices by name: the tables that System V calls fmodsw and cdevsw. What comes built in is registered at
//! start, a program's own at any time, and others are loaded by their names. Nothing is ever taken out, so that looking
//! takes no lock: open(2) and stat(2) of any name look, wherever they are called.

use core::ffi::c_int;
use core::ptr::{self, null_mut};

use headwater_host::guarded::{Entered, Guarded};
use headwater_host::hook::Hook;
use headwater_host::sync::{AtomicPtr, Ordering};

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
    /// Registered before it.
    before: Option<&'static Entry>,
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

/// Entries of a kind, the newest first. An entry is whole before it is seen, and stays.
struct Names {
    newest: AtomicPtr<Entry>,
}

impl Names {
    const fn new() -> Names {
        Names {
            newest: AtomicPtr::new(null_mut()),
        }
    }

    fn newest(&self) -> Option<&'static Entry> {
        // SAFETY: null, or an entry that was leaked.
        unsafe { self.newest.load(Ordering::Acquire).as_ref() }
    }

    fn each(&self) -> impl Iterator<Item = &'static Entry> {
        core::iter::successors(self.newest(), |e| e.before)
    }

    fn in_order(&self) -> Vec<&'static Entry> {
        let mut all: Vec<_> = self.each().collect();
        all.reverse();
        all
    }

    fn find(&self, name: &[u8]) -> Option<&'static Entry> {
        self.each().find(|e| e.name.as_bytes() == name)
    }

    /// Major numbers follow one another from the `first` on; 0: they have none. EEXIST.
    fn add(
        &self,
        name: &str,
        first: u32,
        tab: &'static streamtab,
        perimeter: Option<&'static Perimeter>,
    ) -> Result<&'static Entry, Errno> {
        let _registering = REGISTERING.enter();
        if self.find(name.as_bytes()).is_some() {
            return Err(libc::EEXIST);
        }
        let before = self.newest();
        let major = match (first, before) {
            (0, _) | (_, None) => first,
            (_, Some(before)) => before.major + 1,
        };
        let entry: &'static Entry = Box::leak(Box::new(Entry {
            name: name.to_owned(),
            major,
            tab,
            perimeter,
            before,
        }));
        self.newest
            .store(ptr::from_ref(entry).cast_mut(), Ordering::Release);
        Ok(entry)
    }
}

static MODULES: Names = Names::new();
static DEVICES: Names = Names::new();
/// Held by who registers.
static REGISTERING: Guarded<()> = Guarded::new(());

pub(super) type Table = Entered<'static, ()>;

pub(super) fn hold() -> Table {
    REGISTERING.enter()
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
    MODULES.add(name, 0, tab, None).map(drop)
}

pub fn register_device_tab(
    name: &str,
    tab: &'static streamtab,
    flow: Flow,
) -> Result<&'static Entry, Errno> {
    // One for all of them: they may be linked above each other.
    static SHARED: std::sync::OnceLock<&'static Perimeter> = std::sync::OnceLock::new();
    let perimeter = (flow == Flow::Shared).then(|| *SHARED.get_or_init(Perimeter::fresh));
    DEVICES.add(name, FIRST_MAJOR, tab, perimeter)
}

/// What is looked for by a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Module,
    Driver,
}

/// Where modules and drivers come from that nobody has registered: finds one by its name, if there is one.
pub static LOADER: Hook<fn(&str, Kind) -> Option<&'static streamtab>> = Hook::new();

/// The variable whose folders a loader looks into.
pub const FOLDERS: &str = "HEADWATER_MODULES";

/// The folders that its value names.
pub fn folders(value: &str) -> impl Iterator<Item = &str> {
    value.split(':').filter(|folder| !folder.is_empty())
}

/// The module of this name, loaded now if need be. Not in a signal handler, and outside of perimeters.
pub fn module(name: &[u8]) -> Option<&'static Entry> {
    find_module(name).or_else(|| {
        let (name, tab) = load(name, Kind::Module).filter(|(name, _)| name.len() <= FMNAMESZ)?;
        // Another thread may have been quicker.
        let _ = register_module_tab(name, tab);
        find_module(name)
    })
}

/// The device of this name, in the same way. All streams of a driver that is loaded share a perimeter, so that it may put to each
/// other's queues.
pub fn device(name: &[u8]) -> Option<&'static Entry> {
    find_device(name).or_else(|| {
        let (name, tab) = load(name, Kind::Driver)?;
        let _ = register_device_tab(name, tab, Flow::Shared);
        find_device(name)
    })
}

fn load(name: &[u8], kind: Kind) -> Option<(&str, &'static streamtab)> {
    let load = LOADER.get()?;
    let name = core::str::from_utf8(name).ok()?;
    Some((name, load(name, kind)?))
}

pub fn find_module(name: impl AsRef<[u8]>) -> Option<&'static Entry> {
    MODULES.find(name.as_ref())
}

pub fn find_device(name: impl AsRef<[u8]>) -> Option<&'static Entry> {
    DEVICES.find(name.as_ref())
}

/// The device with this major number.
pub fn device_by_major(major: u32) -> Option<&'static Entry> {
    DEVICES.each().find(|e| e.major == major)
}

/// All modules, in the order of registration.
pub fn modules() -> Vec<&'static Entry> {
    MODULES.in_order()
}

/// All devices, in the order of registration.
pub fn devices() -> Vec<&'static Entry> {
    DEVICES.in_order()
}
