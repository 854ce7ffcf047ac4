//! A network of a test's own.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Moves the calling thread, and the programs that it starts from then on, into a fresh network namespace with a loopback
/// device. False where that is not permitted: then tests share the machine's.
pub fn isolate() -> bool {
    // SAFETY: affects this thread alone.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return false;
    }
    bring_up_loopback();
    true
}

/// For the loopback device of a fresh namespace, in which the calling thread is.
pub fn bring_up_loopback() {
    // SAFETY: an ifreq of zeroes with a name is valid; the descriptor is ours.
    unsafe {
        let fd = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        assert!(fd >= 0, "a socket in the new namespace");
        let fd = OwnedFd::from_raw_fd(fd);
        let mut request: libc::ifreq = core::mem::zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as i16;
        let up = libc::ioctl(fd.as_raw_fd(), libc::SIOCSIFFLAGS, &request);
        assert_eq!(up, 0, "the loopback device comes up");
    }
}
