//! What `<tiuser.h>` has besides the calls: the texts of t_errno, as a table.
#![allow(non_upper_case_globals)] // the C names

use core::ffi::{c_char, c_int};

use headwater_tpi::error::ERRORS;

/// char * of `t_errlist`.
#[repr(transparent)]
pub struct Text(*const c_char);

// SAFETY: a literal.
unsafe impl Sync for Text {}

#[unsafe(no_mangle)]
pub static t_errlist: [Text; ERRORS.len()] = {
    let mut list = [const { Text(c"".as_ptr()) }; ERRORS.len()];
    let mut i = 0;
    while i < ERRORS.len() {
        list[i] = Text(ERRORS[i].as_ptr());
        i += 1;
    }
    list
};

#[unsafe(no_mangle)]
pub static t_nerr: c_int = ERRORS.len() as c_int;
