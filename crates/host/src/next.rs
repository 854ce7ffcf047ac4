//! The C library's own functions behind the names we interpose, for calls that are passed through or that must stay
//! cancellation points.

use core::ffi::CStr;

use crate::sync::{AtomicUsize, Ordering};

/// One function, looked up at first use.
pub struct Next {
    name: &'static CStr,
    at: AtomicUsize,
}

impl Next {
    pub const fn new(name: &'static CStr) -> Next {
        Next {
            name,
            at: AtomicUsize::new(0),
        }
    }

    /// Its address; aborts nothing when the C library lacks it: 0.
    #[inline(always)]
    pub fn address(&self) -> usize {
        let at = self.at.load(Ordering::Relaxed);
        if at != 0 { at } else { self.resolve() }
    }

    #[cold]
    #[unsafe(link_section = ".text.life")]
    fn resolve(&self) -> usize {
        // SAFETY: a C string; RTLD_NEXT finds the definition after this object.
        let at = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) } as usize;
        self.at.store(at, Ordering::Relaxed);
        at
    }
}

/// Declares `fn name(args) -> ret` as the next definition of that C function, and `nexts::name`. Behind `safe:` are those that whoever
/// lists them says to be safe for any values that their arguments' types have, as of a `safe fn` of an `unsafe extern`, and that every
/// C library has.
#[macro_export]
macro_rules! next_fns {
    ($($(#[$m:meta])* fn $name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)?;)*
        $(safe: $(fn $safe:ident($($safe_arg:ident: $safe_ty:ty),*) $(-> $safe_ret:ty)?;)*)?
    ) => {
        $(
            $(#[$m])*
            ///
            /// # Safety
            /// As the manual says of the C library's function.
            #[inline(always)]
            pub unsafe fn $name($($arg: $ty),*) $(-> $ret)? {
                let at = nexts::$name.address();
                // SAFETY: the C library has a function of that name and type, and the caller says that it may be called so.
                unsafe {
                    let f: unsafe extern "C-unwind" fn($($ty),*) $(-> $ret)? = core::mem::transmute(at);
                    f($($arg),*)
                }
            }
        )*
        $($(
            #[inline(always)]
            pub fn $safe($($safe_arg: $safe_ty),*) $(-> $safe_ret)? {
                let at = nexts::$safe.address();
                // SAFETY: the C library has a function of that name and type, which is safe for all that its arguments can be.
                unsafe {
                    let f: unsafe extern "C-unwind" fn($($safe_ty),*) $(-> $safe_ret)? = core::mem::transmute(at);
                    f($($safe_arg),*)
                }
            }
        )*)?
        #[allow(non_upper_case_globals)]
        pub mod nexts {
            use $crate::next::Next;

            /// Looks all of them up, before a signal handler may want one: the loader has a lock.
            #[allow(dead_code, reason = "where no handler calls them")]
            #[cold]
            #[inline(never)]
            pub fn resolve() {
                $($name.address();)*
                $($($safe.address();)*)?
            }

            $($crate::next_static! { $name })*
            $($($crate::next_static! { $safe })*)?
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! next_static {
    ($name:ident) => {
        pub static $name: Next = Next::new(
            match core::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes())
            {
                Ok(name) => name,
                Err(_) => panic!("name"),
            },
        );
    };
}

next_fns! {
    fn ppoll(fds: *mut libc::pollfd, n: libc::nfds_t, timeout: *const libc::timespec, mask: *const libc::sigset_t) -> i32;
    fn epoll_pwait(ep: i32, events: *mut libc::epoll_event, max: i32, timeout: i32, mask: *const libc::sigset_t) -> i32;
    fn pthread_testcancel();
    fn sigaction(n: i32, new: *const libc::sigaction, old: *mut libc::sigaction) -> i32;
    fn recv(fd: i32, buf: *mut libc::c_void, len: usize, flags: i32) -> isize;
    fn send(fd: i32, buf: *const libc::c_void, len: usize, flags: i32) -> isize;
    fn recvmsg(fd: i32, msg: *mut libc::msghdr, flags: i32) -> isize;
    fn sendmsg(fd: i32, msg: *const libc::msghdr, flags: i32) -> isize;
}

/// ppoll(2), a cancellation point, that leaves errno alone: a call that goes on behind a handler, and ends well, leaves the program's as it
/// was. Errors: as ppoll(2) says.
///
/// # Safety
/// `timeout` is null or valid.
pub unsafe fn ppoll_aside(
    fds: &mut [libc::pollfd],
    timeout: *const libc::timespec,
) -> Result<i32, i32> {
    let before = errno();
    // SAFETY: the list is writable for its length, the time null or valid as the caller says; no mask.
    let n = unsafe {
        ppoll(
            fds.as_mut_ptr(),
            fds.len() as libc::nfds_t,
            timeout,
            core::ptr::null(),
        )
    };
    let failed = errno();
    set_errno(before);
    if n < 0 { Err(failed) } else { Ok(n) }
}

/// Not interposed, but few processes call them: a name that is linked costs each process a search when it starts.
pub mod seldom {
    use core::ffi::{c_char, c_int, c_void};

    next_fns! {
        fn open(path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int;
        fn getifaddrs(all: *mut *mut libc::ifaddrs) -> c_int;
        fn freeifaddrs(all: *mut libc::ifaddrs);
        fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
        fn pthread_attr_init(attributes: *mut libc::pthread_attr_t) -> c_int;
        fn pthread_attr_setdetachstate(attributes: *mut libc::pthread_attr_t, state: c_int) -> c_int;
        fn pthread_attr_setstacksize(attributes: *mut libc::pthread_attr_t, size: usize) -> c_int;
        fn pthread_attr_destroy(attributes: *mut libc::pthread_attr_t) -> c_int;
        fn pthread_create(thread: *mut libc::pthread_t, attributes: *const libc::pthread_attr_t, run: extern "C" fn(*mut c_void) -> *mut c_void, with: *mut c_void) -> c_int;
    }
}

/// The calling thread's errno.
#[inline]
pub fn errno() -> i32 {
    // SAFETY: always a valid pointer.
    unsafe { *libc::__errno_location() }
}

#[inline]
pub fn set_errno(e: i32) {
    // SAFETY: always a valid pointer.
    unsafe { *libc::__errno_location() = e }
}

/// What `does` gives, with errno as it was before.
#[inline]
pub fn keep_errno<T>(does: impl FnOnce() -> T) -> T {
    let before = errno();
    let given = does();
    set_errno(before);
    given
}
