//! dlsym(3): who looks for a function in the C library itself, by a handle of it (`CDLL("libc.so.6")` of Python's ctypes), finds
//! ours, as who calls it by its name does.
//!
//! RTLD_NEXT and RTLD_DEFAULT are served by the C library's own dlsym, which must see who has called: jumped to, it does.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::null_mut;

use headwater_host::sync::{AtomicUsize, Ordering};

use crate::real;

type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

// Programs in Rust and C++ come here as they start, where each page more costs microseconds.

/// The C library's; 0: not looked for yet.
#[unsafe(link_section = ".data")]
static REAL: AtomicUsize = AtomicUsize::new(0);

/// dlsym(3).
///
/// # Safety
/// As dlsym(3) asks of its caller: a handle of dlopen(3), and a string.
#[unsafe(naked)]
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.life")]
pub unsafe extern "C" fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    core::arch::naked_asm!(
        "endbr64",
        // RTLD_DEFAULT is 0, RTLD_NEXT -1.
        "lea rax, [rdi + 1]",
        "cmp rax, 2",
        "jae {of_handle}",
        "mov rax, [rip + {real}]",
        "test rax, rax",
        "jz 2f",
        "jmp rax",
        "2:",
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {find}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        of_handle = sym of_handle,
        real = sym REAL,
        find = sym find,
    )
}

#[unsafe(link_section = ".text.life")]
extern "C" fn find() -> usize {
    const VERSIONS: [&CStr; 2] = [c"GLIBC_2.34", c"GLIBC_2.2.5"];
    let of_version = |version: &CStr| {
        // SAFETY: C strings; it is the definition after ours.
        unsafe { libc::dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), version.as_ptr()) as usize }
    };
    let found = VERSIONS.iter().map(|v| of_version(v)).find(|&at| at != 0);
    let at = found.unwrap_or(nothing as *const () as usize);
    REAL.store(at, Ordering::Relaxed);
    at
}

/// Where there is none.
extern "C" fn nothing(_: *mut c_void, _: *const c_char) -> *mut c_void {
    null_mut()
}

unsafe extern "C" fn of_handle(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    // SAFETY: the C library's dlsym, or `nothing`, with the program's arguments, or this library's handle and that name.
    unsafe {
        let at = match REAL.load(Ordering::Relaxed) {
            0 => find(),
            at => at,
        };
        let real: Dlsym = core::mem::transmute(at);
        let found = real(handle, name);
        // Looking for what the C library defines makes no error, which dlerror(3) would tell.
        if found.is_null() || !is_of_c(found as usize) {
            return found;
        }
        let library = handle_of_ours();
        if library.is_null() {
            return found;
        }
        // Where this library has none, the same one, of the C library that it needs.
        let ours = real(library, name);
        // Another library's that stands between may mean just this one by the handle, as what ours goes on to.
        let is_next = || real(libc::RTLD_NEXT, name) == found;
        if ours != found && is_next() {
            ours
        } else {
            found
        }
    }
}

/// This library as dlopen(3) has it; null where the loader does not tell.
fn handle_of_ours() -> *mut c_void {
    static HANDLE: AtomicUsize = AtomicUsize::new(0);
    let known = HANDLE.load(Ordering::Relaxed);
    if known != 0 {
        return known as *mut c_void;
    }
    // SAFETY: all zeroes is a valid one, and what it names stays.
    let handle = unsafe {
        let mut of: libc::Dl_info = core::mem::zeroed();
        match libc::dladdr(find as *const c_void, &mut of) {
            0 => null_mut(),
            _ => libc::dlopen(of.dli_fname, libc::RTLD_LAZY | libc::RTLD_NOLOAD),
        }
    };
    HANDLE.store(handle as usize, Ordering::Relaxed);
    handle
}

/// Is there something of the C library's?
fn is_of_c(at: usize) -> bool {
    static FIRST: AtomicUsize = AtomicUsize::new(0);
    static END: AtomicUsize = AtomicUsize::new(0);
    if END.load(Ordering::Acquire) == 0 {
        let mut found = (real::nexts::dirfd.address(), 0, 0);
        // SAFETY: `covers` knows what it is given.
        unsafe { libc::dl_iterate_phdr(Some(covers), &raw mut found as *mut c_void) };
        FIRST.store(found.1, Ordering::Relaxed);
        END.store(found.2, Ordering::Release);
    }
    (FIRST.load(Ordering::Relaxed)..END.load(Ordering::Relaxed)).contains(&at)
}

/// Ends at the library that has the address, the first of the three, with its bounds in the others.
unsafe extern "C" fn covers(
    library: *mut libc::dl_phdr_info,
    _: usize,
    found: *mut c_void,
) -> c_int {
    // SAFETY: dl_iterate_phdr shows a library that is loaded, and hands on what `is_of_c` gave it.
    unsafe {
        let (library, found) = (&*library, &mut *(found as *mut (usize, usize, usize)));
        let headers = core::slice::from_raw_parts(library.dlpi_phdr, library.dlpi_phnum as usize);
        let loaded = headers.iter().filter(|h| h.p_type == libc::PT_LOAD);
        let bounds = loaded.map(|h| {
            let first = library.dlpi_addr as usize + h.p_vaddr as usize;
            (first, first + h.p_memsz as usize)
        });
        let all = bounds.reduce(|(first, end), next| (first.min(next.0), end.max(next.1)));
        let around = all.filter(|(first, end)| (*first..*end).contains(&found.0));
        if let Some((first, end)) = around {
            (found.1, found.2) = (first, end);
        }
        around.is_some() as c_int
    }
}
