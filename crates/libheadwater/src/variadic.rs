//! The C names of variadic.c's functions: a shared object made by rustc exports only Rust's symbols, so each name is a jump.

use core::ffi::{c_char, c_int, c_void};

use crate::given::Text;

unsafe extern "C" {
    fn hw_pointers(to: *mut *mut c_void, n: usize, args: *mut c_void);
    fn hw_on_cmn_err(f: extern "C" fn(c_int, Text));
    fn hw_on_strlog(f: extern "C" fn(i16, i16, c_char, u16, Text) -> c_int);
    fn hw_is_single_threaded() -> c_int;
}

#[cfg(target_arch = "x86_64")]
macro_rules! jump {
    ($to:path) => {
        core::arch::naked_asm!("jmp {}", sym $to)
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! jump {
    ($to:path) => {
        core::arch::naked_asm!("b {}", sym $to)
    };
}

/// Functions that are jumps to others.
macro_rules! jumps {
    ($($name:ident = $to:path),* $(,)?) => {$(
        /// # Safety
        #[doc = concat!("As `", stringify!($to), "` asks of its caller, with its arguments.")]
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            $crate::variadic::jump!($to)
        }
    )*};
}
pub(crate) use {jump, jumps};

/// The same, where those are variadic.c's.
macro_rules! jumps_to_c {
    ($($name:ident = $to:ident,)*) => {
        unsafe extern "C" {
            $(fn $to();)*
        }
        jumps! { $($name = $to,)* }
    };
}

jumps_to_c! {
    dprintf = hw_dprintf,
    __dprintf_chk = hw_dprintf_chk,
    execl = hw_execl,
    execlp = hw_execlp,
    execle = hw_execle,
    strlog = hw_strlog,
    hw_ddi_cmn_err = hw_cmn_err,
    fwprintf = hw_fwprintf,
    __fwprintf_chk = hw_fwprintf_chk,
    wprintf = hw_wprintf,
    __wprintf_chk = hw_wprintf_chk,
    fwscanf = hw_fwscanf,
    wscanf = hw_wscanf,
    __isoc99_fwscanf = hw_isoc99_fwscanf,
    __isoc99_wscanf = hw_isoc99_wscanf,
    __isoc23_fwscanf = hw_isoc23_fwscanf,
    __isoc23_wscanf = hw_isoc23_wscanf,
}

/// Has the process one thread only? False where the C library does not tell.
pub fn is_single_threaded() -> bool {
    // SAFETY: looks at a variable of the C library's.
    unsafe { hw_is_single_threaded() != 0 }
}

/// The arguments of a va_list, all of them pointers.
///
/// # Safety
/// `args` is a va_list of so many pointers.
pub unsafe fn pointers(to: &mut [*mut c_void], args: *mut c_void) {
    // SAFETY: a va_list of so many pointers, by the caller's word.
    unsafe {
        hw_pointers(to.as_mut_ptr(), to.len(), args);
    }
}

/// Has variadic.c give what cmn_err(9F) says to `tell`.
pub fn on_cmn_err(tell: extern "C" fn(c_int, Text)) {
    // SAFETY: sets a pointer, before a module is loaded.
    unsafe { hw_on_cmn_err(tell) };
}

/// Has variadic.c give what strlog(9F) says to `log`.
pub fn on_strlog(log: extern "C" fn(i16, i16, c_char, u16, Text) -> c_int) {
    // SAFETY: sets a pointer, before the program runs.
    unsafe { hw_on_strlog(log) };
}
