//! Each test in a network namespace of its own, as root of it: the test program runs itself again for that one test, by
//! unshare(1), and where it is not root, in a user namespace too. Where that is not permitted either, the test is not run.

use std::process::Command;

use headwater_testkit::network::bring_up_loopback;

const INSIDE: &str = "HEADWATER_TEST_INSIDE";

/// Runs `work` there. `name` is the test's.
pub fn inside(name: &str, work: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        bring_up_loopback();
        return work();
    }
    if !headwater_testkit::are_there(&["namespaces"], name) {
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

/// From now on the calling thread has no privilege.
pub fn drop_privileges() {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    // _LINUX_CAPABILITY_VERSION_3: two words each of effective, permitted, inheritable.
    let header = Header {
        version: 0x2008_0522,
        pid: 0,
    };
    let none = [0u32; 6];
    // SAFETY: as capset(2) wants them.
    let done = unsafe { libc::syscall(libc::SYS_capset, &header, none.as_ptr()) };
    assert_eq!(done, 0);
}

/// Which groups may have ping sockets here.
pub fn set_ping_groups(range: &str) {
    std::fs::write("/proc/sys/net/ipv4/ping_group_range", range).expect("root of this network");
}
