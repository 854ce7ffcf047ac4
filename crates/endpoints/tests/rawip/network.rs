//! What the tests of raw sockets do to their network.

pub use headwater_testkit::network::inside;

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
