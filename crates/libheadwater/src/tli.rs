//! What `<tiuser.h>` has besides the calls: the texts of t_errno, as a table.
#![allow(non_upper_case_globals)] // the C names

use core::ffi::{CStr, c_char, c_int};

/// char * of `t_errlist`.
#[repr(transparent)]
pub struct Text(*const c_char);

// SAFETY: a literal.
unsafe impl Sync for Text {}

/// Those of tpi::error, which t_strerror(3) gives, with NULs.
pub const TEXTS: [&CStr; 30] = [
    c"no error",
    c"incorrect addr format",
    c"incorrect option format",
    c"incorrect permissions",
    c"illegal transport fd",
    c"couldn't allocate addr",
    c"out of state",
    c"bad call sequence number",
    c"system error",
    c"event requires attention",
    c"illegal amount of data",
    c"buffer not large enough",
    c"flow control",
    c"no data",
    c"discon_ind not found on queue",
    c"unitdata error not found",
    c"bad flags",
    c"no ord rel found on queue",
    c"primitive/action not supported",
    c"state is in process of changing",
    c"unsupported struct-type requested",
    c"invalid transport provider name",
    c"qlen is zero",
    c"address in use",
    c"outstanding connection indications",
    c"transport provider mismatch",
    c"resfd specified to accept w/qlen >0",
    c"resfd not bound to same addr as fd",
    c"incoming connection queue full",
    c"XTI protocol error",
];

#[unsafe(no_mangle)]
pub static t_errlist: [Text; TEXTS.len()] = {
    let mut list = [const { Text(c"".as_ptr()) }; TEXTS.len()];
    let mut i = 0;
    while i < TEXTS.len() {
        list[i] = Text(TEXTS[i].as_ptr());
        i += 1;
    }
    list
};

#[unsafe(no_mangle)]
pub static t_nerr: c_int = TEXTS.len() as c_int;
