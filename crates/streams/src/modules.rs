//! The modules that come built in.
//!
//! ```text
//!   passing   nullmod, pipemod: hand everything on          sc       the same, and counts
//!   bufmod    queues both ways                              connld   the mark of unique connections
//! ```

mod bufmod;
mod connld;
mod passing;
mod sc;

pub use bufmod::{BUFMOD_SETMARKS, Bufmod, Marks};
pub use connld::Connld;
pub use passing::{Nullmod, Pipemod};
pub use sc::{Count, Counts, SC_GETSTATS, Sc, Stats};

use crate::exec::registry::register_module;

/// Numbers of the built-in modules and drivers (mi_idnum).
pub(crate) mod id {
    pub const NULLMOD: u16 = 0x4801;
    pub const BUFMOD: u16 = 0x4802;
    pub const SC: u16 = 0x4803;
    pub const PIPEMOD: u16 = 0x4804;
    pub const CONNLD: u16 = 0x4805;
    pub const ECHO: u16 = 0x4811;
    pub const NULS: u16 = 0x4812;
    pub const LOOP: u16 = 0x4813;
    pub const MUX: u16 = 0x4814;
    pub const LOG: u16 = 0x4815;
    pub const SAD: u16 = 0x4816;
    pub const CLONE: u16 = 0x4817;
}

/// Puts them into the registry; what has a name already stays.
pub fn register() {
    let registered = [
        register_module::<Nullmod>(),
        register_module::<Bufmod>(),
        register_module::<Sc>(),
        register_module::<Pipemod>(),
        register_module::<Connld>(),
    ];
    let is_there = |r: &Result<(), i32>| matches!(r, Ok(()) | Err(libc::EEXIST));
    debug_assert!(registered.iter().all(is_there));
}
