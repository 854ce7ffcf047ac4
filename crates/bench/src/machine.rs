//! What the figures were measured on, and a network namespace of one's own to measure in.

use std::env;
use std::fs::{self, File};
use std::io::{self, Read};
use std::mem;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use serde::Serialize;

#[derive(Clone, Serialize)]
pub struct Machine {
    pub cpu: String,
    pub kernel: String,
    /// The CPUs this process may use; placements take the first two.
    pub cpus: Vec<usize>,
    pub congestion: String,
    /// The namespace holds nothing else, so its loop-back counters are ours alone.
    pub own_network: bool,
    pub load: f64,
    pub version: &'static str,
}

impl Machine {
    /// Where allowed (root), moves this thread and the programs it starts into a network namespace of their own, with cubic
    /// as its congestion control; HEADWATER_BENCH_NETNS=0 prevents it. Then looks round.
    pub fn enter() -> Machine {
        let own_network =
            env::var("HEADWATER_BENCH_NETNS").as_deref() != Ok("0") && own_network().is_ok();
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let cpu = read("/proc/cpuinfo")
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
            .map_or("unknown CPU".to_string(), |(_, name)| {
                name.trim().to_string()
            });
        Machine {
            cpu,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_string(),
            cpus: allowed_cpus(),
            congestion: read("/proc/sys/net/ipv4/tcp_congestion_control")
                .trim()
                .to_string(),
            own_network,
            load: read("/proc/loadavg")
                .split(' ')
                .next()
                .and_then(|load| load.parse().ok())
                .unwrap_or(0.0),
            version: env!("CARGO_PKG_VERSION"),
        }
    }

    /// One line for the head of a table.
    pub fn describe(&self) -> String {
        format!(
            "{} vCPUs ({}), Linux {}, TCP congestion control {}, {}, load {:.2}, headwater {}",
            self.cpus.len(),
            self.cpu,
            self.kernel,
            self.congestion,
            if self.own_network {
                "own network namespace"
            } else {
                "shared network namespace"
            },
            self.load,
            self.version,
        )
    }
}

/// Bytes that this thread's loop-back device has sent. /sys would show the namespace in which it was mounted.
pub fn loopback_bytes() -> u64 {
    let table = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    table
        .lines()
        .find_map(|line| line.trim().strip_prefix("lo:"))
        .and_then(|counters| counters.split_whitespace().nth(8)?.parse().ok())
        .unwrap_or(0)
}

/// Whether somebody listens on a TCP port of 127.0.0.1, without a connection that would show in their counters.
pub fn is_listening(port: u16) -> bool {
    let table = fs::read_to_string("/proc/thread-self/net/tcp").unwrap_or_default();
    let (any, local) = (
        format!("00000000:{port:04X}"),
        format!("0100007F:{port:04X}"),
    );
    table.lines().any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let address = fields.next().unwrap_or_default();
        (address == any || address == local) && fields.nth(1) == Some("0A")
    })
}

/// A port nobody uses now.
pub fn free_port() -> io::Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?
        .local_addr()?
        .port())
}

fn own_network() -> io::Result<()> {
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

fn allowed_cpus() -> Vec<usize> {
    // SAFETY: the set is plain bits, filled by the call; CPU_ISSET stays below CPU_SETSIZE.
    unsafe {
        let mut set: libc::cpu_set_t = mem::zeroed();
        if libc::sched_getaffinity(0, mem::size_of_val(&set), &mut set) != 0 {
            return vec![0];
        }
        (0..libc::CPU_SETSIZE as usize)
            .filter(|&cpu| libc::CPU_ISSET(cpu, &set))
            .collect()
    }
}
