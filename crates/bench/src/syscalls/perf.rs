//! The tracepoint raw_syscalls:sys_enter as a counter that child processes inherit; see perf_event_open(2).

use std::cell::RefCell;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::sync::OnceLock;
use std::thread;

use crate::scratch::Scratch;

const PERF_TYPE_TRACEPOINT: u32 = 2;
const INHERIT: u64 = 1 << 1;
const PERF_FLAG_FD_CLOEXEC: u64 = 8;

/// The first 64 bytes of perf_event_attr, all that a counter needs.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint: u32,
    config1: u64,
}

/// An event for each thread that a watched program has at first; later threads and children inherit them. One event
/// that both ends inherit from us would do, but then Linux 6.18 often leaves one of them out.
pub struct Tracepoint {
    id: u64,
    events: RefCell<Vec<OwnedFd>>,
}

impl Tracepoint {
    pub fn open() -> io::Result<Tracepoint> {
        static ID: OnceLock<Option<u64>> = OnceLock::new();
        let id = ID.get_or_init(|| read_id().or_else(mount_and_read_id));
        let id = id.ok_or(io::ErrorKind::Unsupported)?;
        let this_thread = 0;
        event(id, this_thread)?;
        Ok(Tracepoint {
            id,
            events: RefCell::default(),
        })
    }

    /// Counts from now on in this process and in what it forks. What it did before is missed.
    pub fn watch(&self, pid: i32) {
        let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
            return;
        };
        let tids = tasks
            .flatten()
            .filter_map(|task| task.file_name().to_str()?.parse().ok());
        self.events
            .borrow_mut()
            .extend(tids.filter_map(|tid| event(self.id, tid).ok()));
    }

    pub fn read(&self) -> u64 {
        let read = |event: &OwnedFd| {
            let mut count = 0u64;
            // SAFETY: a counter reads as one 64-bit word.
            unsafe { libc::read(event.as_raw_fd(), (&raw mut count).cast(), size_of::<u64>()) };
            count
        };
        self.events.borrow().iter().map(read).sum()
    }
}

fn event(id: u64, tid: i32) -> io::Result<OwnedFd> {
    let attributes = Attributes {
        kind: PERF_TYPE_TRACEPOINT,
        size: size_of::<Attributes>() as u32,
        config: id,
        flags: INHERIT,
        ..Attributes::default()
    };
    let (any_cpu, no_group) = (-1, -1);
    // SAFETY: the attributes outlive the call and state their size.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &attributes,
            tid,
            any_cpu,
            no_group,
            PERF_FLAG_FD_CLOEXEC,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: perf_event_open has just given us this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

fn read_id() -> Option<u64> {
    ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"]
        .into_iter()
        .find_map(|root| id_below(Path::new(root)))
}

fn id_below(root: &Path) -> Option<u64> {
    let id = fs::read_to_string(root.join("events/raw_syscalls/sys_enter/id")).ok()?;
    id.trim().parse().ok()
}

/// Mounts tracefs where only a thread that ends at once can see it.
fn mount_and_read_id() -> Option<u64> {
    thread::spawn(|| {
        let folder = Scratch::new("headwater-trace-").ok()?;
        let target = std::ffi::CString::new(folder.path().to_str()?).ok()?;
        // SAFETY: every string ends in a zero byte and outlives its call; only this thread's namespace changes.
        let mounted = unsafe {
            libc::unshare(libc::CLONE_NEWNS) == 0
                && libc::mount(
                    c"none".as_ptr(),
                    c"/".as_ptr(),
                    std::ptr::null(),
                    libc::MS_REC | libc::MS_PRIVATE,
                    std::ptr::null(),
                ) == 0
                && libc::mount(
                    c"none".as_ptr(),
                    target.as_ptr(),
                    c"tracefs".as_ptr(),
                    0,
                    std::ptr::null(),
                ) == 0
        };
        let id = mounted.then(|| id_below(folder.path())).flatten();
        if mounted {
            // SAFETY: as above.
            unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) };
        }
        id
    })
    .join()
    .ok()?
}
