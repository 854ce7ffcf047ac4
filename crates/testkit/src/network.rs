//! A network of a test's own.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;

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

const INSIDE: &str = "HEADWATER_TEST_INSIDE";

/// Runs `work` in a network namespace of its own, as root of it, and ends the calling test, whose `name` this is: the test program
/// runs itself again for that one test, by unshare(1), and where it is not root, in a user namespace too. Where that is not
/// permitted either, the test is not run.
///
/// # Panics
/// If the test fails there.
pub fn inside(name: &str, work: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        bring_up_loopback();
        return work();
    }
    if !crate::are_there(&["namespaces"], name) {
        return;
    }
    // SAFETY: no arguments.
    let root = unsafe { libc::geteuid() } == 0;
    let how: &[&str] = if root {
        &["--net"]
    } else {
        &["--net", "--map-root-user"]
    };
    let program = std::env::current_exe().expect("procfs");
    let ran = Command::new("unshare")
        .args(how)
        .arg(program)
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(INSIDE, "1")
        .output()
        .expect("unshare, of util-linux");
    let said = [ran.stdout, ran.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
}
