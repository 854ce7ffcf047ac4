//! Programs built with AddressSanitizer or one of its relatives: left to the kernel.

use core::ffi::c_char;

use headwater_host::image::SANITIZERS;

/// AddressSanitizer asks for its program's own defaults by this name when it begins, before any constructor. It would end a program
/// in which another library was loaded before its own, as a preloaded one is; nothing is between it and what it looks after, for
/// each of our functions passes on to its.
#[unsafe(no_mangle)]
pub extern "C" fn __asan_default_options() -> *const c_char {
    c"verify_asan_link_order=0".as_ptr()
}

/// Is there one in this process? They check by their own versions of the C library's functions what a program reads and writes
/// there, and know nothing of what comes by a ring.
pub fn is_here() -> bool {
    // SAFETY: C strings.
    SANITIZERS
        .iter()
        .any(|(name, _)| !unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }.is_null())
}
