//! What the calls say to people: t_strerror, t_error, t_errlist, and t_sysconf.

use core::cell::RefCell;
use core::ffi::CStr;

use headwater_endpoints::device;
use headwater_host::log::{self, Level};
use headwater_host::next;
use headwater_tpi::{Refusal, error};
use headwater_xti::calls;
use libc::{c_char, c_int};

use super::{T_ERRNO, status};
use crate::given::Text;
use crate::real::seldom;

const SC_T_IOV_MAX: c_int = 66;

thread_local! {
    static UNKNOWN: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Valid until the thread's next call.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn t_strerror(code: c_int) -> *const c_char {
    if let Some(text) = error::text(code) {
        return text.as_ptr();
    }
    UNKNOWN.with_borrow_mut(|unknown| {
        *unknown = error::strerror(code).into_owned().into_bytes();
        unknown.push(0);
        unknown.as_ptr().cast()
    })
}

/// Writes "message: text" to the standard error; with TSYSERR, errno's text too.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn t_error(message: Text) -> c_int {
    let errno = next::errno();
    let code = T_ERRNO.get();
    let mut line = Vec::new();
    if !message.bytes().is_empty() {
        line.extend_from_slice(message.bytes());
        line.extend_from_slice(b": ");
    }
    line.extend_from_slice(error::strerror(code).as_bytes());
    if code == error::TSYSERR {
        line.extend_from_slice(b": ");
        // SAFETY: what strerror(3) gives stays until this thread asks again.
        let said = unsafe { CStr::from_ptr(seldom::strerror(errno)) };
        line.extend_from_slice(said.to_bytes());
    }
    line.push(b'\n');
    headwater_host::sys::write_all(libc::STDERR_FILENO, &line);
    next::set_errno(errno);
    0
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn t_sysconf(name: c_int) -> c_int {
    match name {
        SC_T_IOV_MAX => calls::T_IOV_MAX as c_int,
        _ => status(Err(Refusal::new(error::TBADFLAG))),
    }
}

/// In the log: which devices there are.
#[cold]
pub fn name_devices(path: &CStr) {
    let names: Vec<String> = device::ALL
        .iter()
        .map(|(n, _)| format!("/dev/{n}"))
        .collect();
    log::write(
        Level::Warn,
        format_args!(
            "t_open: no transport device {}; there are {}",
            path.to_string_lossy(),
            names.join(", ")
        ),
    );
}
