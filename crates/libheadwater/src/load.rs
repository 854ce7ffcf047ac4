//! Loading.
//!
//! Most programs that the library is loaded into never have a socket or stream of ours, and are to pay nothing for it: loading makes no
//! system call and allocates nothing.

use std::ptr::null_mut;

use headwater_host::lifecycle::{self, Part};
use headwater_host::{counters, env, log};
use libc::{c_int, c_void};

use crate::variadic::on_strlog;
use crate::{start, stdio, streams};

unsafe extern "C" {
    // What atexit(3) calls (Linux Standard Base, baselib). That is linked into each library, and comes to this by a procedure linkage table,
    // which every process would touch. Of no library, since this one is never unloaded.
    fn __cxa_atexit(call: extern "C" fn(*mut c_void), with: *mut c_void, of: *mut c_void) -> c_int;
}

#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = loaded;

#[unsafe(link_section = ".text.life")]
extern "C" fn loaded() {
    env::remember();
    log::loaded();
    counters::loaded();
    on_strlog(streams::log);
    // SAFETY: a plain function, registered before any of the program's.
    unsafe { __cxa_atexit(start::at_exit, null_mut(), null_mut()) };
    // Now, so that the handlers of forks are before any of the program's, too; and so that no fork can have passed the lock before somebody
    // takes it.
    lifecycle::add(Part::Beginning, start::before_fork, start::after_fork);
    if env::was_handed_over() {
        start::streams();
        start::sockets();
        if headwater_sockets::inherit::begin() {
            headwater_sockets::fork::look_after_forks();
        }
        (0..=2).for_each(stdio::follow);
    }
}
