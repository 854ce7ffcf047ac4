//! clone: in System V the device whose minor numbers are the major numbers of other drivers, each of whose opens makes a
//! stream of its own. Here every open by a plain name does that, so this one only has a name.

use core::ffi::c_int;

use crate::exec::{Info, Module, OpenFlag, Queue};
use crate::modules::id;

pub struct Clone;

impl Module for Clone {
    const INFO: Info = Info::new(id::CLONE, c"clone");

    /// ENXIO: nobody to clone.
    fn open(_: Queue, _: &mut libc::dev_t, _: c_int, _: OpenFlag) -> Result<Self, c_int> {
        Err(libc::ENXIO)
    }
}
