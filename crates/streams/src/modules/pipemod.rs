//! pipemod: on System V's pipes it exchanges FLUSHR and FLUSHW where an M_FLUSH crosses from one end to the other. The
//! bottom of our pipes does that, always, so this hands everything on and is there for programs that push it.

use core::ffi::c_int;

use super::id;
use crate::exec::{Info, Module, OpenFlag, Queue};

pub struct Pipemod;

impl Module for Pipemod {
    const INFO: Info = Info::new(id::PIPEMOD, c"pipemod");

    fn open(_: Queue, _: &mut libc::dev_t, _: c_int, _: OpenFlag) -> Result<Self, c_int> {
        Ok(Pipemod)
    }
}
