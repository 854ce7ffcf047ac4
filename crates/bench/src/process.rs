//! Starting programs on a CPU, watching what they cost, and making sure that none is left over.

use std::fs;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use crate::failure::{Failure, Result};

/// What a program used over its life, with the children it waited for.
#[derive(Clone, Copy, Default, Debug)]
pub struct Usage {
    pub cpu_ns: u64,
    pub switches: u64,
}

/// What a preloaded program is given.
pub struct Preload<'a> {
    pub library: &'a Path,
    /// Whether it takes connections over.
    pub sockets: bool,
    /// Where the library leaves its counters, at the price of a write at the program's end.
    pub stats_file: Option<&'a Path>,
}

/// Sets a command up for a sample: its CPU, its environment, and its death with ours (by SIGTERM, which servers pass on to
/// their workers).
pub fn prepare(command: &mut Command, cpu: Option<usize>, preload: Option<Preload<'_>>) {
    // Whatever we ourselves run under must not reach the native arm.
    command
        .env_remove("LD_PRELOAD")
        .env_remove("HEADWATER_SOCKETS");
    command.env_remove("HEADWATER_STATS_FILE");
    if let Some(preload) = preload {
        command.env("LD_PRELOAD", preload.library);
        if preload.sockets {
            command.env("HEADWATER_SOCKETS", "1");
        }
        if let Some(stats_file) = preload.stats_file {
            command.env("HEADWATER_STATS_FILE", stats_file);
        }
    }
    let before_exec = move || {
        // SAFETY: both calls are plain system calls, and the set outlives its use.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
            if let Some(cpu) = cpu {
                let mut set: libc::cpu_set_t = mem::zeroed();
                libc::CPU_SET(cpu, &mut set);
                if libc::sched_setaffinity(0, mem::size_of_val(&set), &set) != 0 {
                    return Err(io::Error::last_os_error());
                }
            }
        }
        Ok(())
    };
    // SAFETY: the closure makes two async-signal-safe calls and allocates nothing.
    unsafe { command.pre_exec(before_exec) };
}

/// A program that runs; killed with its children where it is dropped before its end.
pub struct Running {
    pub name: String,
    pub pid: i32,
    input: Option<ChildStdin>,
    output: fs::File,
    ended: bool,
}

impl Running {
    /// Starts a prepared command, its output kept in an unnamed file.
    pub fn start(name: &str, mut command: Command) -> Result<Running> {
        let output = tempfile::tempfile()?;
        command
            .stdin(Stdio::piped())
            .stdout(output.try_clone()?)
            .stderr(output.try_clone()?);
        let child: Child = command
            .spawn()
            .map_err(|error| Failure::Start(name.to_string(), error))?;
        Ok(Running {
            name: name.to_string(),
            pid: child.id() as i32,
            input: child.stdin,
            output,
            ended: false,
        })
    }

    /// Everything it has said so far, on both streams.
    pub fn said(&self) -> String {
        let mut bytes = Vec::new();
        // The file's position is shared with the program, so read without moving it.
        let len = self.output.metadata().map_or(0, |meta| meta.len());
        bytes.resize(len as usize, 0);
        let read = std::os::unix::fs::FileExt::read_at(&self.output, &mut bytes, 0).unwrap_or(0);
        bytes.truncate(read);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits until `ready` is true of it.
    pub fn wait_until(
        &mut self,
        limit: Duration,
        mut ready: impl FnMut(&Running) -> bool,
    ) -> Result<()> {
        let start = Instant::now();
        while !ready(self) {
            if self.wait_exit(Duration::from_millis(1))? {
                let said = self.said();
                self.reap();
                return Err(Failure::Ended(self.name.clone(), last_line(&said)));
            }
            if start.elapsed() > limit {
                return Err(Failure::Late(self.name.clone()));
            }
        }
        Ok(())
    }

    /// Waits for its end by itself. A bad end is a failure.
    pub fn finish(mut self, limit: Duration) -> Result<(Usage, String)> {
        if !self.wait_exit(limit)? {
            return Err(Failure::Late(self.name.clone()));
        }
        let (usage, status) = self.reap();
        let said = self.said();
        if status != 0 {
            return Err(Failure::Ended(self.name.clone(), last_line(&said)));
        }
        Ok((usage, said))
    }

    /// Asks it to end, by closing its standard input and with a signal where one is given; kills it when it does not.
    pub fn stop(mut self, signal: Option<i32>) -> Result<(Usage, String)> {
        self.end_input();
        if let Some(signal) = signal {
            // SAFETY: the child has not been reaped, so the pid is its own.
            unsafe { libc::kill(self.pid, signal) };
        }
        if !self.wait_exit(Duration::from_secs(5))? {
            return Err(Failure::Late(self.name.clone()));
        }
        let (usage, _) = self.reap();
        Ok((usage, self.said()))
    }

    /// It and its living descendants.
    pub fn family(&self) -> Vec<i32> {
        family(self.pid)
    }

    /// CPU time so far of its family, in nanoseconds.
    pub fn cpu_ns(&self) -> u64 {
        self.family().into_iter().map(cpu_clock).sum()
    }

    /// Resident bytes of its family. Pages that processes share count once among those that share them.
    pub fn memory(&self) -> u64 {
        self.family().into_iter().map(resident).sum()
    }

    /// Ends its standard input, which it may be waiting for.
    pub fn end_input(&mut self) {
        drop(self.input.take());
    }

    fn wait_exit(&self, limit: Duration) -> io::Result<bool> {
        // SAFETY: pidfd_open takes no pointers.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, self.pid, 0) } as i32;
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: pidfd_open has just given us this descriptor.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let mut entry = libc::pollfd {
            fd: fd.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one entry, which outlives the call.
        let ready = unsafe { libc::poll(&mut entry, 1, limit.as_millis() as i32) };
        Ok(ready > 0)
    }

    /// Takes the ended program's usage and status.
    fn reap(&mut self) -> (Usage, i32) {
        let mut status = 0;
        // SAFETY: rusage is plain integers; both pointers outlive the call. The child is ours and not yet reaped.
        let usage = unsafe {
            let mut usage: libc::rusage = mem::zeroed();
            libc::wait4(self.pid, &mut status, libc::WNOHANG, &mut usage);
            usage
        };
        self.ended = true;
        let ns =
            |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
        let usage = Usage {
            cpu_ns: ns(usage.ru_utime) + ns(usage.ru_stime),
            switches: (usage.ru_nvcsw + usage.ru_nivcsw) as u64,
        };
        (usage, status)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        for pid in family(self.pid) {
            // SAFETY: the leader has not been reaped, and its children were just listed.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        let _ = self.wait_exit(Duration::from_secs(5));
        self.reap();
    }
}

/// A process and its descendants.
fn family(pid: i32) -> Vec<i32> {
    let mut family = vec![pid];
    let mut next = 0;
    while let Some(&pid) = family.get(next) {
        next += 1;
        let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
            continue;
        };
        for task in tasks.flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            family.extend(
                children
                    .split_whitespace()
                    .filter_map(|pid| pid.parse::<i32>().ok()),
            );
        }
    }
    family
}

fn cpu_clock(pid: i32) -> u64 {
    let mut clock = 0;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: both pointers outlive the calls.
    let rc = unsafe {
        match libc::clock_getcpuclockid(pid, &mut clock) {
            0 => libc::clock_gettime(clock, &mut time),
            error => error,
        }
    };
    match rc {
        0 => time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64,
        _ => 0,
    }
}

fn resident(pid: i32) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    proportional(&rollup)
}

/// The proportional set size in a rollup of /proc/PID/smaps, in bytes: each page divided by how often it is mapped.
fn proportional(rollup: &str) -> u64 {
    let kib = rollup.lines().find_map(|line| {
        let size = line.strip_prefix("Pss:")?.split_whitespace().next()?;
        size.parse::<u64>().ok()
    });
    kib.unwrap_or(0) * 1024
}

fn last_line(said: &str) -> String {
    let line = said.trim().lines().next_back().unwrap_or("nothing said");
    line.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(20);

    fn shell(script: &str) -> Running {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        prepare(&mut command, None, None);
        Running::start("sh", command).unwrap()
    }

    #[test]
    fn a_program_that_ends_tells_its_output_and_its_cost() {
        let (usage, said) = shell("echo one; echo two >&2").finish(SOON).unwrap();
        assert_eq!(said, "one\ntwo\n");
        assert!(usage.cpu_ns > 0);
    }

    #[test]
    fn a_bad_end_is_a_failure_with_the_last_words() {
        let failure = shell("echo oh; exit 3").finish(SOON).unwrap_err();
        assert_eq!(failure.to_string(), "sh failed: oh");
    }

    #[test]
    fn a_late_program_is_killed_with_its_children() {
        let mut running = shell("sleep 1000 & echo $!; wait");
        running
            .wait_until(SOON, |r| r.said().ends_with('\n'))
            .unwrap();
        let child: i32 = running.said().trim().parse().unwrap();
        assert!(family(running.pid).contains(&child));
        assert!(matches!(
            running.finish(Duration::ZERO),
            Err(Failure::Late(_))
        ));
        // Its new parent may take a moment to reap it, but a zombie has no memory map.
        let start = Instant::now();
        while fs::read_to_string(format!("/proc/{child}/statm")).is_ok_and(|m| !m.starts_with("0 "))
        {
            assert!(start.elapsed() < SOON, "the grandchild lives on");
            std::thread::yield_now();
        }
    }

    #[test]
    fn resident_memory_is_the_proportional_set_size() {
        let rollup = "0000-ffff ---p 00000000 00:00 0   [rollup]\nRss:    1536 kB\nPss:     900 kB\nPss_Dirty: 96 kB\n";
        assert_eq!(proportional(rollup), 900 * 1024);
        assert_eq!(proportional(""), 0);
        assert!(resident(std::process::id() as i32) > 0);
    }

    #[test]
    fn closing_its_input_stops_a_program_that_reads_it() {
        let (_, said) = shell("cat; echo done").stop(None).unwrap();
        assert_eq!(said, "done\n");
    }
}
