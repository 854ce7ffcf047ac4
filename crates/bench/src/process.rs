//! Starting programs on a CPU, watching what they cost, and making sure that none is left over.

mod accounts;
pub mod bounds;
mod waiting;

use std::env;
use std::fs;
use std::io;
use std::mem;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use accounts::{cpu_ns, family, resident};
use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::failure::{Failure, Result, tells_wrong_bytes};
use crate::interrupt;

pub use waiting::{end_all, wait_any, wait_for};
use waiting::{hold, send, wait_only};

/// How long a program may take to end when it is asked to.
const ENDING: Duration = Duration::from_secs(5);

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
        set_parent_process_death_signal(Some(Signal::TERM))?;
        if let Some(cpu) = cpu {
            let mut set = CpuSet::new();
            set.set(cpu);
            sched_setaffinity(None, &set)?;
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
        if interrupt::asked() {
            return Err(Failure::Interrupted);
        }
        let unnamed = tempfile::tempfile();
        let output = unnamed.map_err(|error| Failure::File(env::temp_dir(), error))?;
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
        let (start, limit) = (Instant::now(), bounds::ready(limit));
        while !ready(self) {
            if wait_only(self, Duration::from_millis(1))? {
                let (_, status) = self.reap();
                return Err(self.ended_badly(status));
            }
            if interrupt::asked() {
                return Err(Failure::Interrupted);
            }
            if start.elapsed() > limit {
                return Err(self.late());
            }
        }
        Ok(())
    }

    /// Waits for its end by itself. A bad end is a failure.
    pub fn finish(mut self, limit: Duration) -> Result<(Usage, String)> {
        if wait_any([&self], limit)? == [false] {
            return Err(match interrupt::asked() {
                true => Failure::Interrupted,
                false => self.late(),
            });
        }
        let (usage, status) = self.reap();
        match status {
            0 => Ok((usage, self.said())),
            _ => Err(self.ended_badly(status)),
        }
    }

    /// Asks it to end, by closing its standard input and with a signal where one is given; kills it when it does not. It is
    /// a failure to have ended badly before.
    pub fn stop(mut self, signal: Option<i32>) -> Result<(Usage, String)> {
        let before = self.has_ended()?;
        self.end_input();
        if let Some(signal) = signal {
            self.signal(signal);
        }
        if !wait_only(&self, bounds::left(ENDING).max(Duration::from_secs(1)))? {
            return Err(self.late());
        }
        let (usage, status) = self.reap();
        match status != 0 && (before || tells_wrong_bytes(&self.said())) {
            true => Err(self.ended_badly(status)),
            false => Ok((usage, self.said())),
        }
    }

    fn ended_badly(&self, status: i32) -> Failure {
        let said = self.said();
        Failure::ended(&self.name, last_words(status, &said), &said)
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: the child has not been reaped, so the pid is its own.
        unsafe { libc::kill(self.pid, signal) };
    }

    pub fn has_ended(&self) -> io::Result<bool> {
        wait_only(self, Duration::ZERO)
    }

    /// The same, where others may have noticed already what the kernel has not finished.
    pub fn has_ended_soon(&self) -> io::Result<bool> {
        wait_only(self, Duration::from_millis(200))
    }

    /// It and its living descendants.
    pub fn family(&self) -> Vec<i32> {
        family(self.pid)
    }

    /// CPU time so far of its family, in nanoseconds; of those that have ended, in steps of the kernel's clock tick.
    pub fn cpu_ns(&self) -> u64 {
        self.family().into_iter().map(cpu_ns).sum()
    }

    /// Resident bytes of its family. Pages that processes share count once among those that share them.
    pub fn memory(&self) -> u64 {
        self.family().into_iter().map(resident).sum()
    }

    /// Ends its standard input, which it may be waiting for.
    pub fn end_input(&mut self) {
        drop(self.input.take());
    }

    fn late(&self) -> Failure {
        let said = self.said();
        match tells_wrong_bytes(&said) {
            true => Failure::Contents(self.name.clone()),
            false => Failure::Late(self.name.clone(), line_of(&said)),
        }
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
        let mut all = hold(&self.family());
        // What is asked to end can tidy up, such as memory of servers that outlives them. Whose parent has ended is no longer
        // found, but was.
        if interrupt::asked() {
            send(&all, Signal::TERM);
            let _ = wait_only(self, Duration::from_millis(500));
            all.extend(hold(&self.family()));
        }
        send(&all, Signal::KILL);
        let _ = wait_only(self, ENDING);
        self.reap();
    }
}

/// How a program ended badly: the signal that killed it, and what it said last.
fn last_words(status: i32, said: &str) -> String {
    let line = match line_of(said) {
        line if line.is_empty() => "nothing said".to_string(),
        line => line,
    };
    if !libc::WIFSIGNALED(status) {
        return line;
    }
    // "signal: 9 (SIGKILL)"
    let signal = ExitStatus::from_raw(status).to_string();
    let killed = match signal.split(['(', ')']).nth(1) {
        Some(name) => format!("killed by {name}"),
        None => format!("killed by {}", signal.replace(':', "")),
    };
    match said.trim().is_empty() {
        true => killed,
        false => format!("{killed}, having said: {line}"),
    }
}

/// The line that tells most of what a program said.
fn line_of(said: &str) -> String {
    // What is written through a buffer may come after the error that ended it.
    let is_error = |line: &&str| line.to_lowercase().contains("error");
    let lines = || said.trim().lines().rev();
    let line = lines().find(is_error).or(lines().next());
    line.unwrap_or_default().chars().take(200).collect()
}

#[cfg(test)]
mod tests;
