//! The drivers that come built in. Opened as /dev/NAME, each open gets a minor device of its own.
//!
//! ```text
//!   echo   sends back what is written       log     what strlog(9F) is given
//!   nuls   swallows it                      sad     which modules are pushed by themselves
//!   loop   joins two streams                clone   minor devices by the driver's choice
//!   mux    fans out to the streams below
//!
//!   reply      answers to ioctls, flushing          minors     which minor devices are in use
//!   pushlist   the table behind sad
//! ```

pub mod clone;
pub mod echo;
pub mod log;
pub mod loopback;
pub(crate) mod minors;
pub mod mux;
pub mod nuls;
pub mod pushlist;
pub mod reply;
pub mod sad;
#[cfg(test)]
pub(crate) mod testing;

use crate::exec::registry::{register_device, register_mux};

/// Their names below /dev.
pub const NAMES: [&str; 9] = [
    "echo",
    "nuls",
    "loop",
    "mux",
    "log",
    "sad",
    "sad/admin",
    "sad/user",
    "clone",
];

/// Puts them into the registry; what has a name already stays. Major numbers follow this order.
pub fn register() {
    let registered = [
        register_device::<echo::Echo>(NAMES[0]),
        register_device::<nuls::Nuls>(NAMES[1]),
        register_device::<loopback::Loop>(NAMES[2]),
        register_mux::<mux::Mux>(NAMES[3]),
        register_device::<log::Log>(NAMES[4]),
        register_device::<sad::Sad>(NAMES[5]),
        register_device::<sad::Sad>(NAMES[6]),
        register_device::<sad::Sad>(NAMES[7]),
        register_device::<clone::Clone>(NAMES[8]),
    ];
    debug_assert!(
        registered
            .iter()
            .all(|r| matches!(r, Ok(_) | Err(libc::EEXIST)))
    );
}

/// The modules to be pushed when this device is opened, in order.
pub fn autopush(device: &str, minor: u32) -> Vec<String> {
    pushlist::modules_for(device, minor)
}
