//! Modules that hand everything on.

use core::ffi::c_int;

use super::id;
use crate::exec::{Info, Module, OpenFlag, Queue};

macro_rules! passing {
    ($($(#[$about:meta])* $module:ident: $id:expr, $name:literal;)*) => {$(
        $(#[$about])*
        pub struct $module;

        impl Module for $module {
            const INFO: Info = Info::new($id, $name);

            fn open(_: Queue, _: &mut libc::dev_t, _: c_int, _: OpenFlag) -> Result<Self, c_int> {
                Ok($module)
            }
        }
    )*};
}

passing! {
    /// nullmod: what a module costs, and a place holder.
    Nullmod: id::NULLMOD, c"nullmod";
    /// pipemod: on System V's pipes it exchanges FLUSHR and FLUSHW where an M_FLUSH crosses from one end to the other. The bottom of
    /// our pipes does that, always, so this is there for programs that push it.
    Pipemod: id::PIPEMOD, c"pipemod";
}
