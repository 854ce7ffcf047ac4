//! nullmod: hands everything on. What a module costs, and a place holder.

use core::ffi::c_int;

use super::id;
use crate::exec::{Info, Module, OpenFlag, Queue};

pub struct Nullmod;

impl Module for Nullmod {
    const INFO: Info = Info::new(id::NULLMOD, c"nullmod");

    fn open(_: Queue, _: &mut libc::dev_t, _: c_int, _: OpenFlag) -> Result<Self, c_int> {
        Ok(Nullmod)
    }
}
