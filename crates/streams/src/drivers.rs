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

macro_rules! drivers {
    ($($name:literal: $register:ident::<$driver:ty>;)*) => {
        /// Their names below /dev.
        pub const NAMES: &[&str] = &[$($name),*];

        /// Puts them into the registry; what has a name already stays. Major numbers follow this order.
        pub fn register() {
            let registered = [$($register::<$driver>($name)),*];
            debug_assert!(registered.iter().all(|r| matches!(r, Ok(_) | Err(libc::EEXIST))));
        }
    };
}

drivers! {
    "echo": register_device::<echo::Echo>;
    "nuls": register_device::<nuls::Nuls>;
    "loop": register_device::<loopback::Loop>;
    "mux": register_mux::<mux::Mux>;
    "log": register_device::<log::Log>;
    "sad": register_device::<sad::Sad>;
    "sad/admin": register_device::<sad::Sad>;
    "sad/user": register_device::<sad::Sad>;
    "clone": register_device::<clone::Clone>;
}
