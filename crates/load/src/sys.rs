//! The few system calls that the standard library does not offer.

use std::io;
use std::mem;
use std::os::fd::RawFd;
use std::ptr;

use rustix::process::{
    Resource, Rlimit, Signal, getrlimit, set_parent_process_death_signal, setrlimit,
};
use rustix::thread::{CpuSet, sched_setaffinity};
use serde::{Deserialize, Serialize};

/// What getrusage(2) says of a process, in nanoseconds and counts.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub struct Usage {
    pub user_ns: u64,
    pub system_ns: u64,
    pub voluntary: u64,
    pub involuntary: u64,
}

/// Of this process.
pub fn usage() -> Usage {
    usage_of(libc::RUSAGE_SELF)
}

/// Of this process and all its children that it has waited for.
pub fn usage_of_all() -> Usage {
    usage().plus(usage_of(libc::RUSAGE_CHILDREN))
}

/// Of RUSAGE_SELF, or of RUSAGE_CHILDREN: those that have been waited for.
pub fn usage_of(who: i32) -> Usage {
    // SAFETY: rusage is plain integers, and getrusage fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = mem::zeroed();
        libc::getrusage(who, &mut usage);
        usage
    };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
    Usage {
        user_ns: ns(usage.ru_utime),
        system_ns: ns(usage.ru_stime),
        voluntary: usage.ru_nvcsw as u64,
        involuntary: usage.ru_nivcsw as u64,
    }
}

impl Usage {
    /// Nothing of what is less by now, as where another process has gone.
    pub fn since(self, earlier: Usage) -> Usage {
        self.with(earlier, u64::saturating_sub)
    }

    pub fn plus(self, other: Usage) -> Usage {
        self.with(other, |one, other| one + other)
    }

    /// The part of it that falls on `some` of `all`.
    pub fn scaled(self, some: u64, all: u64) -> Usage {
        self.with(self, |value, _| {
            (value as f64 * some as f64 / all.max(1) as f64) as u64
        })
    }

    fn with(self, other: Usage, of: impl Fn(u64, u64) -> u64) -> Usage {
        Usage {
            user_ns: of(self.user_ns, other.user_ns),
            system_ns: of(self.system_ns, other.system_ns),
            voluntary: of(self.voluntary, other.voluntary),
            involuntary: of(self.involuntary, other.involuntary),
        }
    }

    pub fn cpu_ns(self) -> u64 {
        self.user_ns + self.system_ns
    }

    pub fn switches(self) -> u64 {
        self.voluntary + self.involuntary
    }
}

/// What a clock says, in nanoseconds; 0 where there is none of the kind.
pub fn clock_ns(clock: libc::clockid_t) -> u64 {
    // SAFETY: all zeroes is a time, and the pointer outlives the call.
    let time = unsafe {
        let mut time: libc::timespec = mem::zeroed();
        libc::clock_gettime(clock, &mut time);
        time
    };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Makes a child that ends at once, and waits for its end.
pub fn fork_and_wait() -> io::Result<()> {
    // SAFETY: the child does nothing but end.
    let child = unsafe {
        match libc::fork() {
            0 => libc::_exit(0),
            child => child,
        }
    };
    check(child)?;
    match wait(child)? {
        true => Ok(()),
        false => Err(io::Error::other(
            "a child ended otherwise than it was told to",
        )),
    }
}

/// Runs `work` in a child, which ends well if that returns true, and with this process. To be called before there are threads.
pub fn fork(program: &str, work: impl FnOnce() -> io::Result<bool>) -> io::Result<i32> {
    // SAFETY: this process has no other thread; the child only uses what it inherits and ends with _exit.
    let child = unsafe { libc::fork() };
    check(child)?;
    if child > 0 {
        return Ok(child);
    }
    end_with_parent();
    let well = work().unwrap_or_else(|error| {
        eprintln!("headwater-load {program}: {error}");
        false
    });
    // SAFETY: ends the child without running the parent's destructors.
    unsafe { libc::_exit(i32::from(!well)) }
}

/// Waits for the end of a child; did it end well?
pub fn wait(child: i32) -> io::Result<bool> {
    let mut status = 0;
    // SAFETY: the pointer outlives the call.
    check(unsafe { libc::waitpid(child, &mut status, 0) })?;
    Ok(status == 0)
}

/// Ends this process when the one that made it does: an end whose peer died must not wait on.
pub fn end_with_parent() {
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
}

/// Keeps this process on these CPUs; anywhere where there are none.
pub fn pin(cpus: &[usize]) -> io::Result<()> {
    if cpus.is_empty() {
        return Ok(());
    }
    if cpus.iter().any(|&cpu| cpu >= CpuSet::MAX_CPU) {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let mut set = CpuSet::new();
    cpus.iter().for_each(|&cpu| set.set(cpu));
    Ok(sched_setaffinity(None, &set)?)
}

/// Sets an option of a socket to a plain value, as a number or bytes are.
pub fn set_option<T: Copy>(fd: RawFd, level: i32, name: i32, value: &[T]) -> io::Result<()> {
    let len = mem::size_of_val(value) as libc::socklen_t;
    // SAFETY: pointer and length describe the value.
    check(unsafe { libc::setsockopt(fd, level, name, value.as_ptr().cast(), len) })
}

/// Zeroes that this process shares with its children, or what all share that map the same file. They are never given back.
pub fn map_shared(len: usize, file: Option<RawFd>) -> io::Result<*mut u8> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let (kind, fd) = file.map_or((libc::MAP_ANONYMOUS, -1), |fd| (0, fd));
    // SAFETY: a fresh mapping, at an address that the kernel chooses.
    let memory =
        unsafe { libc::mmap(ptr::null_mut(), len, access, libc::MAP_SHARED | kind, fd, 0) };
    match memory {
        libc::MAP_FAILED => Err(io::Error::last_os_error()),
        _ => Ok(memory.cast()),
    }
}

/// Pages of this process's address space, and those that are resident (proc(5), statm).
pub fn pages() -> io::Result<[usize; 2]> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    let mut numbers = statm.split_whitespace().map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(all)), Some(Ok(resident))) => Ok([all, resident]),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Raises the soft limit of descriptors just far enough for so many connections.
pub fn allow_connections(count: usize) -> io::Result<()> {
    let wanted = count as u64 + 64;
    let [soft, hard] = descriptors();
    match soft >= wanted {
        true => Ok(()),
        false => allow_descriptors([wanted.min(hard), hard]),
    }
}

/// The soft and the hard limit of descriptors.
pub fn descriptors() -> [u64; 2] {
    let limit = getrlimit(Resource::Nofile);
    [limit.current, limit.maximum].map(|limit| limit.unwrap_or(u64::MAX))
}

/// Sets both.
pub fn allow_descriptors(limits: [u64; 2]) -> io::Result<()> {
    let [current, maximum] = limits.map(Some);
    Ok(setrlimit(Resource::Nofile, Rlimit { current, maximum })?)
}

pub fn check(rc: i32) -> io::Result<()> {
    if rc < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
