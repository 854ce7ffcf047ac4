//! A network of its own for each test, free ports, and what the kernel counted on the loopback device.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::time::Instant;

use crate::PATIENCE;

pub use headwater_testkit::network::isolate;

/// Moves the calling thread, and the programs that it starts from then on, away from the machine's System V memory. False where
/// that is not permitted.
pub fn isolate_memory() -> bool {
    // SAFETY: affects this thread alone.
    unsafe { libc::unshare(libc::CLONE_NEWIPC) == 0 }
}

/// How many System V segments there are where this thread is.
pub fn memory_segments() -> usize {
    let text = std::fs::read_to_string("/proc/sysvipc/shm").expect("procfs");
    text.lines().count() - 1
}

/// The processes in this thread's network, but for its own.
pub fn processes() -> Vec<u32> {
    let network = |path: &Path| std::fs::read_link(path.join("ns/net")).ok();
    let here = network(Path::new("/proc/thread-self"));
    let entries = std::fs::read_dir("/proc").expect("procfs").flatten();
    let numbered = entries.filter_map(|e| Some((e.path(), e.file_name().to_str()?.parse().ok()?)));
    numbered
        .filter(|(path, pid)| *pid != std::process::id() && network(path) == here)
        .map(|(_, pid)| pid)
        .collect()
}

/// A port that nobody listens on.
pub fn free_port() -> u16 {
    let [port] = free_ports();
    port
}

/// Several, no two of them the same.
pub fn free_ports<const N: usize>() -> [u16; N] {
    let listen = |()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let listeners = [(); N].map(listen);
    listeners
        .each_ref()
        .map(|l| l.local_addr().expect("bound").port())
}

/// Bytes that this thread's loopback device has sent.
pub fn loopback_bytes() -> u64 {
    counted("lo", 8)
}

/// Packets that have come in by a device of this thread's network.
pub fn packets_received(device: &str) -> u64 {
    counted(device, 1)
}

fn counted(device: &str, column: usize) -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/net/dev").expect("procfs");
    let line = text
        .lines()
        .find_map(|l| l.trim().strip_prefix(device)?.strip_prefix(':'))
        .unwrap_or_else(|| panic!("a device {device}"));
    let number = line.split_whitespace().nth(column).expect("its columns");
    number.parse().expect("a number")
}

/// Waits until somebody listens on `port`, without connecting: some servers serve but once.
pub fn await_listener(port: u16, alive: impl Fn() -> bool) {
    let begun = Instant::now();
    while !listens(port) {
        assert!(alive(), "the server ended before it listened on {port}");
        assert!(begun.elapsed() < PATIENCE, "nobody listens on {port}");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

fn listens(port: u16) -> bool {
    let suffix = format!(":{port:04X}");
    ["tcp", "tcp6"].iter().any(|table| {
        let text = std::fs::read_to_string(format!("/proc/thread-self/net/{table}"));
        text.unwrap_or_default().lines().any(|line| {
            let mut columns = line.split_whitespace().skip(1);
            let local = columns.next().unwrap_or_default();
            local.ends_with(&suffix) && columns.nth(1) == Some("0A")
        })
    })
}
