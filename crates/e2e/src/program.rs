//! Programs of a test: started in a process group of their own, waited for with a bound, killed when dropped.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::PATIENCE;

/// A program that runs. Dropping it kills its process group.
pub struct Running {
    child: Child,
    name: String,
    out: PathBuf,
    err: PathBuf,
    ended: Option<ExitStatus>,
    reaped: bool,
}

/// What a program left.
#[derive(Debug)]
pub struct Output {
    pub status: ExitStatus,
    pub out: Vec<u8>,
    pub err: String,
}

impl Running {
    /// Starts `command` with output kept in `folder` under `label`.
    pub fn start(mut command: Command, folder: &Path, label: usize) -> Running {
        let name = Path::new(command.get_program())
            .file_name()
            .map_or(String::new(), |n| n.to_string_lossy().into_owned());
        let file = |kind: &str| folder.join(format!("{label}-{name}.{kind}"));
        let (out, err) = (file("out"), file("err"));
        command
            .process_group(0)
            .stdout(File::create(&out).expect("the lab's folder is writable"))
            .stderr(File::create(&err).expect("the lab's folder is writable"));
        // SAFETY: prctl is async-signal-safe.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            });
        }
        let child = command
            .spawn()
            .unwrap_or_else(|e| panic!("{name} is needed for this test and does not start: {e}"));
        Running {
            child,
            name,
            out,
            err,
            ended: None,
            reaped: false,
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn alive(&self) -> bool {
        self.ended.is_none() && !self.await_end(Duration::ZERO)
    }

    /// What it has written so far, on both streams.
    pub fn said(&self) -> String {
        let read = |file| std::fs::read(file).unwrap_or_default();
        let said = [read(&self.out), read(&self.err)].concat();
        String::from_utf8_lossy(&said).into_owned()
    }

    /// Sends a signal to the program (not to its group).
    pub fn signal(&self, signal: i32) {
        // SAFETY: our own child, not reaped yet.
        unsafe { libc::kill(self.child.id() as i32, signal) };
    }

    /// Waits for the end; a program that takes longer than the bound fails the test.
    pub fn finish(mut self) -> Output {
        self.wait_within(PATIENCE)
    }

    /// As [`finish`](Running::finish), after a signal.
    pub fn stop(mut self, signal: i32) -> Output {
        self.signal(signal);
        self.wait_within(PATIENCE)
    }

    pub fn wait_within(&mut self, bound: Duration) -> Output {
        if self.ended.is_none() {
            if !self.await_end(bound) {
                let stuck = self.describe();
                self.kill();
                panic!("{} did not end within {bound:?}\n{stuck}", self.name);
            }
            self.ended = Some(self.status());
        }
        Output {
            status: self.ended.expect("just waited for"),
            out: std::fs::read(&self.out).unwrap_or_default(),
            err: String::from_utf8_lossy(&std::fs::read(&self.err).unwrap_or_default())
                .into_owned(),
        }
    }

    /// Has the child (a zombie counts) ended, or does it within `bound`?
    fn await_end(&self, bound: Duration) -> bool {
        // SAFETY: pidfd_open on our own child.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, self.child.id(), 0) };
        assert!(fd >= 0, "pidfd_open");
        // SAFETY: the call just made it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd as i32) };
        let end = Instant::now() + bound;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let mut p = libc::pollfd {
                fd: fd.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            };
            // SAFETY: one valid entry.
            let n = unsafe { libc::poll(&mut p, 1, left.as_millis() as i32 + 1) };
            if n > 0 || Instant::now() >= end {
                return n > 0;
            }
        }
    }

    /// The status of the child, which has ended. It is reaped when dropped, so that its group's number stays taken.
    fn status(&self) -> ExitStatus {
        // SAFETY: all zeroes is a valid siginfo, and the kernel fills it.
        let (code, status) = unsafe {
            let mut info: libc::siginfo_t = core::mem::zeroed();
            let how = libc::WEXITED | libc::WNOWAIT;
            let r = libc::waitid(libc::P_PID, self.child.id(), &mut info, how);
            assert_eq!(r, 0, "our own child");
            (info.si_code, info.si_status())
        };
        ExitStatus::from_raw(match code {
            libc::CLD_EXITED => status << 8,
            _ => status,
        })
    }

    /// Where the processes of the group are stuck, and what the program said.
    fn describe(&self) -> String {
        let mut text = String::new();
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let path = entry.path();
            let stat = std::fs::read_to_string(path.join("stat")).unwrap_or_default();
            let after_name = stat.rsplit(')').next().unwrap_or_default();
            let group = after_name.split_whitespace().nth(2);
            if group != Some(&self.child.id().to_string()) {
                continue;
            }
            for task in std::fs::read_dir(path.join("task"))
                .into_iter()
                .flatten()
                .flatten()
            {
                let read = |f| std::fs::read_to_string(task.path().join(f)).unwrap_or_default();
                text += &format!(
                    "{} {} wchan {} syscall {}",
                    task.path().display(),
                    read("comm").trim(),
                    read("wchan"),
                    read("syscall")
                );
            }
        }
        for file in [&self.out, &self.err] {
            let said = std::fs::read(file).unwrap_or_default();
            text += &format!("{}: {}\n", file.display(), tail(&said));
        }
        text
    }

    fn kill(&mut self) {
        if self.reaped {
            return;
        }
        self.reaped = true;
        // SAFETY: the group is the child's own; the child is not reaped before this.
        unsafe { libc::kill(-(self.child.id() as i32), libc::SIGKILL) };
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Output {
    /// The output of a program that ended well; anything else fails the test.
    pub fn ok(self) -> Vec<u8> {
        assert!(
            self.status.success(),
            "{:?} (signal {:?})\n{}\n{}",
            self.status,
            self.status.signal(),
            tail(&self.out),
            tail(self.err.as_bytes())
        );
        self.out
    }

    pub fn text(self) -> String {
        String::from_utf8(self.ok()).expect("text")
    }
}

/// The end of what a program said.
fn tail(said: &[u8]) -> String {
    String::from_utf8_lossy(&said[said.len().saturating_sub(1000)..]).into_owned()
}

/// Input for a program from a file.
pub fn input(file: &Path) -> Stdio {
    File::open(file).expect("an input file").into()
}
