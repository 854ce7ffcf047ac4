//! The few system calls that the standard library does not offer.

use std::io;
use std::mem;
use std::os::fd::RawFd;

/// What getrusage(2) says of this process, in nanoseconds and counts.
#[derive(Clone, Copy, Default)]
pub struct Usage {
    pub user_ns: u64,
    pub system_ns: u64,
    pub voluntary: u64,
    pub involuntary: u64,
}

pub fn usage() -> Usage {
    usage_of(libc::RUSAGE_SELF)
}

/// The same of RUSAGE_CHILDREN, those that have been waited for.
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
    pub fn since(self, earlier: Usage) -> Usage {
        Usage {
            user_ns: self.user_ns - earlier.user_ns,
            system_ns: self.system_ns - earlier.system_ns,
            voluntary: self.voluntary - earlier.voluntary,
            involuntary: self.involuntary - earlier.involuntary,
        }
    }
}

/// Makes a child that ends at once, and waits for its end.
pub fn fork_and_wait() -> io::Result<()> {
    // SAFETY: the child does nothing but end, and the status is writable.
    let (child, status) = unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::_exit(0);
        }
        let mut status = 0;
        (libc::waitpid(child, &mut status, 0), status)
    };
    match (child, status) {
        (1.., 0) => Ok(()),
        (..=0, _) => Err(io::Error::last_os_error()),
        _ => Err(io::Error::other(
            "a child ended otherwise than it was told to",
        )),
    }
}

/// Keeps this process on one CPU.
pub fn pin(cpu: usize) -> io::Result<()> {
    if cpu >= libc::CPU_SETSIZE as usize {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: the set is plain bits, and the bound was checked above.
    check(unsafe {
        let mut set: libc::cpu_set_t = mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, mem::size_of_val(&set), &set)
    })
}

pub fn congestion(fd: RawFd) -> String {
    let mut name = [0u8; 16];
    let mut len = name.len() as libc::socklen_t;
    // SAFETY: pointer and length describe the buffer.
    let rc = unsafe {
        libc::getsockopt(
            fd,
            libc::IPPROTO_TCP,
            libc::TCP_CONGESTION,
            name.as_mut_ptr().cast(),
            &mut len,
        )
    };
    if rc != 0 {
        return "unknown".to_string();
    }
    let end = name.iter().position(|&b| b == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..end]).into_owned()
}

/// Raises the soft limit of descriptors just far enough for so many connections.
pub fn allow_connections(count: usize) -> io::Result<()> {
    let wanted = count as libc::rlim_t + 64;
    // SAFETY: rlimit is two integers, filled by the first call and only read by the second.
    check(unsafe {
        let mut limit: libc::rlimit = mem::zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        if limit.rlim_cur >= wanted {
            return Ok(());
        }
        limit.rlim_cur = wanted.min(limit.rlim_max);
        libc::setrlimit(libc::RLIMIT_NOFILE, &limit)
    })
}

pub fn check(rc: i32) -> io::Result<()> {
    if rc < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
