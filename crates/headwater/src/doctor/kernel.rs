//! What the kernel offers: each thing is tried, not looked up by version.

use std::ffi::CStr;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;

use headwater_host::sys;
use rustix::event::EventfdFlags;
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::system::uname;

use super::Check;

/// Offsets in struct tcp_info, see linux/tcp.h.
const BYTES_ACKED: usize = 120;
const BYTES_RECEIVED: usize = 128;

pub fn checks() -> Vec<Check> {
    vec![
        release(),
        tcp_info(),
        memfd(),
        eventfd(),
        rseq(),
        seccomp(),
        yama(),
    ]
}

fn release() -> Check {
    let name = uname();
    let [release, machine] = [name.release(), name.machine()].map(CStr::to_string_lossy);
    Check::ok("kernel", format!("Linux {release}, {machine}"))
}

/// Headwater compares its own counts with the kernel's, at takeover and after a crash.
fn tcp_info() -> Check {
    const NAME: &str = "tcp-info";
    match counted() {
        Ok((5, 5)) => Check::ok(NAME, "counts bytes exactly"),
        Ok((sent, received)) => Check::fail(
            NAME,
            format!("says {sent} bytes sent and {received} received after 5 of each"),
            "connections stay on kernel TCP here: use a Linux kernel whose TCP_INFO counts, 4.6 or later",
        ),
        Err(e) => Check::fail(
            NAME,
            format!("a loop-back connection can't be examined: {e}"),
            "bring the loop-back interface up (ip link set lo up); use Linux 4.6 or later",
        ),
    }
}

/// Bytes that TCP_INFO says were sent and received, after 5 went over a connection.
fn counted() -> io::Result<(u64, u64)> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let mut client = TcpStream::connect(listener.local_addr()?)?;
    let (mut server, _) = listener.accept()?;
    client.write_all(b"hello")?;
    server.read_exact(&mut [0; 5])?;
    let unsent = sys::ioctl_int(client.as_raw_fd(), libc::TIOCOUTQ).map_err(failed)?;
    // The SYN of the end that connected is counted as a byte.
    let sent = word(&client, BYTES_ACKED)? + unsent as u64 - 1;
    Ok((sent, word(&server, BYTES_RECEIVED)?))
}

fn word(stream: &TcpStream, at: usize) -> io::Result<u64> {
    let mut info = [0u8; 256];
    let (fd, level, name) = (stream.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO);
    let len = sys::sockopt_bytes(fd, level, name, &mut info).map_err(failed)?;
    if len < at + 8 {
        return Err(io::Error::other("TCP_INFO is too short"));
    }
    let bytes = info[at..at + 8].try_into().expect("eight bytes");
    Ok(u64::from_ne_bytes(bytes))
}

fn memfd() -> Check {
    let remedy = "connections stay on kernel TCP: allow memfd_create and fcntl(F_ADD_SEALS) in the seccomp profile";
    made("memfd", "be made and sealed", sealed_memfd(), remedy)
}

fn made<T>(name: &'static str, what: &str, made: io::Result<T>, remedy: &str) -> Check {
    match made {
        Ok(_) => Check::ok(name, format!("can {what}")),
        Err(e) => Check::fail(name, format!("can't {what}: {e}"), remedy),
    }
}

fn sealed_memfd() -> io::Result<()> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let memfd = rustix::fs::memfd_create("headwater-doctor", flags)?;
    rustix::fs::ftruncate(&memfd, 4096)?;
    let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    Ok(rustix::fs::fcntl_add_seals(&memfd, seals)?)
}

fn eventfd() -> Check {
    let eventfd = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
    let remedy = "connections stay on kernel TCP: allow eventfd2 in the seccomp profile";
    made(
        "eventfd",
        "be made",
        eventfd.map_err(io::Error::from),
        remedy,
    )
}

/// The C library registers rseq; with it a thread knows its CPU at the price of a load.
fn rseq() -> Check {
    // SAFETY: returns a static string.
    let version = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
    let version = version.to_string_lossy();
    // SAFETY: the symbol, where it exists, is an unsigned int that never changes.
    let registered = unsafe {
        let size = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr());
        !size.is_null() && *size.cast::<libc::c_uint>() > 0
    };
    if registered {
        return Check::ok("rseq", format!("registered by glibc {version}"));
    }
    Check::warn(
        "rseq",
        format!("not registered by glibc {version}: every wait asks the kernel for the CPU"),
        "use glibc 2.35 or later, without glibc.pthread.rseq=0 in GLIBC_TUNABLES",
    )
}

fn seccomp() -> Check {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mode = status
        .lines()
        .find_map(|line| line.strip_prefix("Seccomp:"));
    let detail = match mode.map(str::trim) {
        Some("0") => "no filter",
        Some("2") => "a filter is installed; what Headwater needs was tried above",
        Some(other) => &format!("mode {other}"),
        None => "mode not shown by /proc/self/status",
    };
    Check::ok("seccomp", detail)
}

fn yama() -> Check {
    const NAME: &str = "ptrace";
    match fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope") {
        Ok(scope) if scope.trim() == "3" => Check::warn(
            NAME,
            "forbidden by yama (scope 3); acceleration does not need it",
            "only `headwater bench` wants it, where perf events are forbidden too, to count system calls",
        ),
        Ok(scope) => Check::ok(
            NAME,
            format!("yama scope {}; acceleration does not need it", scope.trim()),
        ),
        Err(_) => Check::ok(NAME, "no yama; acceleration does not need it"),
    }
}

fn failed(errno: sys::Errno) -> io::Error {
    io::Error::from_raw_os_error(errno)
}
