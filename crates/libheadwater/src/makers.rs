//! Calls that do nothing but make a descriptor: whatever its number was to us, it is not any more.

use headwater_host::next;
use libc::{c_char, c_int, c_uint, c_void, mode_t, pid_t, sigset_t};

use crate::fetched::fetched;
use crate::file::FilePtr;
use crate::files::fresh;
use crate::given::{Opaque, Place, Text};
use crate::made::{self, made};
use crate::{real, stdio};

macro_rules! makers {
    ($($name:ident($($argument:ident: $kind:ty),*);)*) => {
        $(
            /// # Safety
            #[doc = concat!("As ", stringify!($name), " of the C library asks of its caller.")]
            #[unsafe(no_mangle)]
            pub unsafe extern "C-unwind" fn $name($($argument: $kind),*) -> c_int {
                if is_missing(&made::nexts::$name) {
                    return -1;
                }
                // SAFETY: it is there, and the arguments are the program's.
                fresh(unsafe { made::$name($($argument),*) })
            }
        )*
    };
}

/// A C library that is older than the function: who looks for it by dlsym(3) finds ours.
fn is_missing(function: &next::Next) -> bool {
    let missing = function.address() == 0;
    if missing {
        next::set_errno(libc::ENOSYS);
    }
    missing
}

made! { makers }

#[unsafe(no_mangle)]
pub extern "C-unwind" fn pidfd_getfd(of: c_int, fd: c_int, flags: c_uint) -> c_int {
    if is_missing(&real::nexts::pidfd_getfd) {
        return -1;
    }
    // SAFETY: it is there, and takes numbers alone.
    fetched(fd, unsafe { real::pidfd_getfd(of, fd, flags) })
}

/// stdio's.
macro_rules! files {
    ($($name:ident($($argument:ident: $kind:ty),*);)*) => {$(
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $name($($argument: $kind),*) -> FilePtr<'static> {
            let file = real::$name($($argument),*);
            if let Some(fd) = file.number() {
                fresh(fd);
            }
            file
        }
    )*};
}

files! {
    fopen(path: Text, mode: Text);
    fopen64(path: Text, mode: Text);
    tmpfile();
    tmpfile64();
    setmntent(path: Text, mode: Text);
}

/// # Safety
/// As opendir(3) asks of its caller: `path` is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn opendir(path: *const c_char) -> *mut c_void {
    // SAFETY: the program's string; what is not null is a folder of the C library's.
    unsafe {
        let folder = real::opendir(path);
        if !folder.is_null() {
            fresh(real::dirfd(folder));
        }
        folder
    }
}

/// Both numbers that are there after success.
pub fn both(fds: Place<[c_int; 2]>, r: c_int) -> c_int {
    if r == 0
        && let Some(fds) = fds.get()
    {
        fds.iter().for_each(|&fd| _ = fresh(fd));
    }
    r
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn socketpair(
    domain: c_int,
    kind: c_int,
    protocol: c_int,
    mut fds: Place<[c_int; 2]>,
) -> c_int {
    let r = real::socketpair(domain, kind, protocol, fds.again());
    both(fds, r)
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn openpty(
    mut main: Place<c_int>,
    mut terminal: Place<c_int>,
    name: Opaque,
    settings: Opaque,
    size: Opaque,
) -> c_int {
    let r = real::openpty(main.again(), terminal.again(), name, settings, size);
    if r == 0 {
        let ends = [main.get(), terminal.get()];
        ends.into_iter().flatten().for_each(|fd| _ = fresh(*fd));
    }
    r
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn forkpty(
    mut main: Place<c_int>,
    name: Opaque,
    settings: Opaque,
    size: Opaque,
) -> pid_t {
    let r = real::forkpty(main.again(), name, settings, size);
    if r == 0 {
        standard();
    }
    if r > 0
        && let Some(main) = main.get()
    {
        fresh(*main);
    }
    r
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn login_tty(fd: c_int) -> c_int {
    let r = real::login_tty(fd);
    if r == 0 {
        standard();
    }
    r
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn daemon(same_folder: c_int, same_descriptors: c_int) -> c_int {
    let r = real::daemon(same_folder, same_descriptors);
    if r == 0 && same_descriptors == 0 {
        standard();
    }
    r
}

/// The C library has put something else in the standard numbers' place.
fn standard() {
    for fd in 0..=2 {
        fresh(fd);
        stdio::follow(fd);
    }
}
