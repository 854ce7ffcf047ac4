//! Where programs run: runtime folder, limits, CPUs, namespaces, configuration.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use headwater_host::board::{self, Board, OpenError};
use headwater_host::sys;
use rustix::fs::{Access, StatFs, access, statfs};
use rustix::process::{Resource, getrlimit};
use rustix::thread::sched_getaffinity;

use super::Check;
use crate::variables;

/// Below this many free bytes the small files there may not fit.
const LITTLE_SPACE: u64 = 64 << 10;

pub fn checks() -> Vec<Check> {
    vec![
        folder(),
        descriptors(),
        cpus(),
        congestion(),
        network(),
        memory(),
        processes(),
        configuration(),
    ]
}

fn folder() -> Check {
    const NAME: &str = "runtime-folder";
    let path = PathBuf::from(board::folder());
    let shown = path.display();
    let Ok(meta) = fs::symlink_metadata(&path) else {
        return not_there(NAME, &path);
    };
    if !meta.is_dir() {
        return Check::fail(
            NAME,
            format!("{shown} is not a folder"),
            "remove it, or name another one in HEADWATER_DIR",
        );
    }
    let detail = format!(
        "{shown}, mode {:04o}, owner uid {}",
        meta.mode() & 0o7777,
        meta.uid()
    );
    // The library's own judgement, so that there is only one.
    match Board::open(&board::folder(), false) {
        Ok(_) | Err(OpenError::Failed(_, libc::ENOENT)) => on_filesystem(NAME, &path, detail),
        Err(OpenError::Unsafe(what)) => Check::fail(
            NAME,
            format!("{detail}: the {what} is another user's, or lets others in"),
            format!("chmod 0700 {shown} if it is yours, else name another folder in HEADWATER_DIR"),
        ),
        Err(OpenError::Failed(what, errno)) => Check::fail(
            NAME,
            format!("{detail}: {what}: {}", io::Error::from_raw_os_error(errno)),
            "make it accessible, or name another folder in HEADWATER_DIR",
        ),
    }
}

/// The first program that starts makes the folder, if it may.
fn not_there(name: &'static str, path: &Path) -> Check {
    let parent = path.parent().unwrap_or(Path::new("/"));
    if access(parent, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        return Check::fail(
            name,
            format!("{} can't be made in {}", path.display(), parent.display()),
            "name a folder that can be made in HEADWATER_DIR; in a container, mount a tmpfs on /dev/shm",
        );
    }
    let detail = format!("{}, made when first needed", path.display());
    on_filesystem(name, parent, detail)
}

fn on_filesystem(name: &'static str, path: &Path, detail: String) -> Check {
    let on_tmpfs = |fs: &StatFs| fs.f_type == libc::TMPFS_MAGIC;
    let Some(fs) = statfs(path).ok().filter(on_tmpfs) else {
        return Check::warn(
            name,
            format!("{detail}; not on a tmpfs"),
            "a folder in memory is faster: leave HEADWATER_DIR unset, or name one on a tmpfs",
        );
    };
    let free = fs.f_bavail.saturating_mul(fs.f_bsize as u64);
    if free < LITTLE_SPACE {
        return Check::warn(
            name,
            format!("{detail}; {} KiB free", free >> 10),
            "connections stay on kernel TCP where it is full: make room, or enlarge it (--shm-size of a container)",
        );
    }
    Check::ok(name, detail)
}

fn descriptors() -> Check {
    let limit = getrlimit(Resource::Nofile);
    // None: as many as there may be.
    let [soft, hard] = [limit.current, limit.maximum].map(|limit| limit.unwrap_or(u64::MAX));
    let detail = format!("limit {soft} (hard {hard})");
    if soft < 1024 {
        return Check::warn(
            "descriptors",
            format!("{detail}: few connections can be accelerated"),
            "the library's own descriptors come out of the same limit: ulimit -n 4096, or LimitNOFILE= in a unit",
        );
    }
    Check::ok("descriptors", detail)
}

fn cpus() -> Check {
    let usable = sched_getaffinity(None).map_or(0, |set| set.count());
    // SAFETY: no pointers.
    let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    if usable > 1 {
        return Check::ok("cpus", format!("{usable} of {online} usable"));
    }
    Check::warn(
        "cpus",
        "1 usable: both ends of a connection take turns on it",
        "the largest gains need two; see taskset(1), or the container's CPU set",
    )
}

fn congestion() -> Check {
    let name = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control");
    let detail = match name.as_deref().map(str::trim) {
        Ok("bbr") => {
            "bbr: it paces kernel TCP on the loop-back too, so compare bulk figures with cubic"
        }
        Ok(name) => name,
        Err(_) => "not shown here",
    };
    Check::ok("congestion-control", detail)
}

fn network() -> Check {
    let shown = namespace("net");
    if lo_is_up() {
        let detail = format!("{shown}: both programs must be in the same one");
        return Check::ok("network-namespace", detail);
    }
    let detail = format!("{shown} has no loop-back interface that is up");
    Check::fail("network-namespace", detail, "ip link set lo up")
}

fn lo_is_up() -> bool {
    let socket = std::net::UdpSocket::bind(("127.0.0.1", 0));
    socket.is_ok_and(|socket| socket.connect(("127.0.0.1", 9)).is_ok())
}

fn memory() -> Check {
    let shown = namespace("ipc");
    match sys::shmget(1, 0o600).and_then(sys::shm_remove) {
        Ok(()) => Check::ok(
            "ipc-namespace",
            format!("{shown}: both programs must be in the same one"),
        ),
        Err(errno) => Check::fail(
            "ipc-namespace",
            format!("{shown}: {}", io::Error::from_raw_os_error(errno)),
            "connections stay on kernel TCP: allow shmget, shmat and shmctl in the seccomp profile, or raise kernel.shmmni",
        ),
    }
}

fn processes() -> Check {
    Check::ok(
        "pid-namespace",
        format!(
            "{}: between different ones connections are accelerated, but a process killed in the middle of a call may leave its siblings waiting",
            namespace("pid")
        ),
    )
}

fn namespace(kind: &str) -> String {
    let link = fs::read_link(format!("/proc/self/ns/{kind}"));
    link.map_or_else(
        |_| format!("{kind}:[unknown]"),
        |link| link.display().to_string(),
    )
}

fn configuration() -> Check {
    let mut complaints = variables::wrong(|name| std::env::var(name).ok());
    complaints.extend(variables::unknown());
    if complaints.is_empty() {
        return Check::ok("configuration", "the HEADWATER_* variables are understood");
    }
    Check::warn(
        "configuration",
        complaints.join("; "),
        "correct or unset them; headwater(7) lists the values",
    )
}
