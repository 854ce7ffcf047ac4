//! Processes. A test runs *workers*: this program again, each with an environment, and so a configuration, of its own. A
//! worker forks the two ends of each case and gives them a deadline.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use headwater_host::lifecycle::{self, Moment};
use headwater_host::process;

use super::calls::errno;

/// Set in workers: which share of the cases is theirs, as "index/count".
const SHARE: &str = "HEADWATER_TEST_SHARE";

/// In a worker: its index and the number of workers.
pub fn share() -> Option<(u64, u64)> {
    let text = std::env::var(SHARE).ok()?;
    let (index, count) = text.split_once('/')?;
    Some((index.parse().ok()?, count.parse().ok()?))
}

/// Runs the ignored test `name` of this program in `count` processes at once; true if all succeed.
pub fn run_workers(name: &str, count: u64, env: &[(&str, &str)]) -> bool {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let children: Vec<_> = (0..count)
        .map(|i| {
            let program = std::env::current_exe().expect("this program");
            Command::new(program)
                .args(["--exact", name, "--ignored", "--nocapture"])
                .env("HEADWATER_DIR", folder.path().join("run"))
                .env("HEADWATER_RING", "64K")
                .env("HEADWATER_LOG", "error")
                .env(SHARE, format!("{i}/{count}"))
                .envs(env.iter().copied())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .spawn()
                .expect("a worker")
        })
        .collect();
    let done: Vec<bool> = children
        .into_iter()
        .map(|mut c| c.wait().is_ok_and(|s| s.success()))
        .collect();
    done.into_iter().all(|ok| ok)
}

/// Does in this worker what the preloaded library does when it is loaded.
pub fn load() {
    headwater_host::log::start();
    process::identify();
    // SAFETY: no handler.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    headwater_sockets::start();
    process::enable(true);
}

/// Ends a forked process as the library's _exit does.
pub fn leave(status: i32) -> ! {
    lifecycle::tell(Moment::Counting);
    lifecycle::tell(Moment::Leaving);
    // SAFETY: ends the process.
    unsafe { libc::_exit(status) }
}

/// A forked process; killed when dropped before its end.
pub struct Child {
    pub pid: i32,
    /// Readable at its end (pidfd_open(2)).
    pub fd: i32,
    ended: bool,
}

/// A child whose parent has failed would go on for ever. Those that fork wait for their children.
fn end_with(parent: i32) {
    // SAFETY: integers only.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != parent {
            libc::_exit(1);
        }
    }
}

/// How a process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    Exit(i32),
    Signal(i32),
}

impl Child {
    /// Forks; the child runs `work`, which ends it.
    pub fn run(work: impl FnOnce()) -> Child {
        // SAFETY: integers only.
        let parent = unsafe { libc::getpid() };
        // SAFETY: the child runs `work` in a copy of this thread alone.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            end_with(parent);
            // A panic that left the only thread would end the process as if all were well.
            let done = catch_unwind(AssertUnwindSafe(work));
            leave(done.is_err() as i32);
        }
        assert!(pid > 0, "fork: {}", errno());
        // SAFETY: integers only.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) } as i32;
        Child {
            pid,
            fd,
            ended: false,
        }
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: our child, not reaped yet.
        unsafe { libc::kill(self.pid, signal) };
    }

    /// Waits for the end, `None` when that does not come in time.
    pub fn wait(&mut self, deadline: Instant) -> Option<End> {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut p = libc::pollfd {
            fd: self.fd,
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one entry.
        if unsafe { libc::poll(&mut p, 1, left.as_millis() as i32) } <= 0 {
            return None;
        }
        Some(self.reap())
    }

    fn reap(&mut self) -> End {
        self.ended = true;
        let mut status = 0;
        // SAFETY: our child.
        unsafe {
            libc::waitpid(self.pid, &mut status, 0);
            libc::close(self.fd);
        }
        if libc::WIFSIGNALED(status) {
            End::Signal(libc::WTERMSIG(status))
        } else {
            End::Exit(libc::WEXITSTATUS(status))
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.ended {
            self.signal(libc::SIGKILL);
            self.reap();
        }
    }
}

/// Far enough that only a lost wake-up reaches it.
pub fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

/// How far processes that share it have come.
pub struct Stage(AtomicU32);

impl Stage {
    pub fn reached(&self, stage: u32) {
        self.0.store(stage, Ordering::Release);
    }

    pub fn wait(&self, stage: u32) {
        let waiting = soon();
        while self.0.load(Ordering::Acquire) < stage {
            assert!(Instant::now() < waiting, "stage {stage}");
            std::thread::yield_now();
        }
    }
}

/// Memory that forks share, all zeroes.
pub fn shared<T>() -> &'static T {
    let rw = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    // SAFETY: a fresh mapping of that size, never unmapped; used with types of atomics only.
    unsafe {
        let at = libc::mmap(core::ptr::null_mut(), size_of::<T>(), rw, flags, -1, 0);
        assert!(at != libc::MAP_FAILED);
        &*(at as *const T)
    }
}
