//! Structures of the kernel's and the C library's that begin as zeroes.

/// # Safety
/// All zeroes are a valid value.
pub unsafe trait Zeroed: Sized {}

/// One that is all zeroes.
#[inline(always)]
pub fn zeroed<T: Zeroed>() -> T {
    // SAFETY: they are a valid value, as the type says.
    unsafe { core::mem::zeroed() }
}

macro_rules! zeroes {
    ($($name:ident),*) => {$(
        // SAFETY: numbers, and pointers and handlers that may be null.
        unsafe impl Zeroed for libc::$name {}
    )*};
}

zeroes! {
    addrinfo, Dl_info, fd_set, flock, ifreq, iovec, mmsghdr, msghdr, pthread_attr_t, sigaction, siginfo_t, sigset_t, sockaddr, sockaddr_in,
    sockaddr_in6, sockaddr_storage, sockaddr_un, stat, statfs, statx, timespec, timeval, tm, utsname
}

// SAFETY: each of them may be zeroes.
unsafe impl<T: Zeroed, const N: usize> Zeroed for [T; N] {}
