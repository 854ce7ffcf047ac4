//! A network namespace of one's own to measure in, and what its loop-back device and its ports tell.

use std::fs::{self, File};
use std::io::{self, Read};
use std::mem;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use headwater_load::network::choose_cubic;
pub use headwater_load::network::loopback_bytes;

/// Moves this thread, and what it starts, into a network namespace with nothing but a loop-back device, where allowed (root), and
/// makes cubic its congestion control where that is there.
pub fn own_network() -> io::Result<()> {
    // Opened here, where it is still the machine's own.
    let allowed = File::options()
        .read(true)
        .write(true)
        .open("/proc/sys/net/ipv4/tcp_allowed_congestion_control");
    // SAFETY: unshare takes no pointers; sockets opened earlier keep their namespace, and there are none.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    // SAFETY: ifreq is plain data; the name is shorter than its field and the rest stays zero.
    let rc = unsafe {
        let mut request: libc::ifreq = mem::zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &request)
    };
    if rc != 0 {
        return Err(io::Error::last_os_error());
    }
    // Where cubic is missing the machine's own choice stays, and the header names it.
    let _ = prefer_cubic(allowed?);
    Ok(())
}

/// May programs choose cubic?
pub fn has_cubic() -> bool {
    TcpListener::bind("127.0.0.1:0").is_ok_and(|socket| choose_cubic(socket.as_raw_fd()).is_ok())
}

/// A port nobody uses now.
pub fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Makes cubic this namespace's default. A namespace may only choose from the machine's list, so where cubic is not in it,
/// it is for a moment.
fn prefer_cubic(mut allowed: File) -> io::Result<()> {
    let choose = || fs::write("/proc/sys/net/ipv4/tcp_congestion_control", "cubic");
    if choose().is_ok() {
        return Ok(());
    }
    let mut before = String::new();
    allowed.read_to_string(&mut before)?;
    allowed.write_at(format!("{} cubic", before.trim()).as_bytes(), 0)?;
    let chosen = choose();
    allowed.write_at(before.trim().as_bytes(), 0)?;
    chosen
}
