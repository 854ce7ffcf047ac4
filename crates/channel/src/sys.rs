//! Raw system calls. The preloaded library must not reach the kernel through libc's `read` and friends, which it
//! interposes itself, so everything here goes by the number. Errors are negative errno values turned into `Err(errno)`.

pub use crate::zeroed::{Zeroed, zeroed};

use core::time::Duration;

use syscalls::{Sysno, syscall};

#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::sync::AtomicIsize;
use crate::sync::{AtomicU32, Ordering};

/// An errno value, as in errno(3).
pub type Errno = i32;
pub type Result<T> = core::result::Result<T, Errno>;

macro_rules! call {
    ($nr:ident $(, $a:expr)*) => {
        // SAFETY: the wrapper's own contract covers the pointers it is given.
        unsafe { syscall!(Sysno::$nr $(, $a)*) }.map_err(|e| e.into_raw())
    };
}

pub fn open(path: &core::ffi::CStr, flags: i32, mode: u32) -> Result<i32> {
    call!(openat, libc::AT_FDCWD, path.as_ptr(), flags, mode).map(|n| n as i32)
}

pub fn shutdown(fd: i32, how: i32) -> Result<()> {
    call!(shutdown, fd, how).map(drop)
}

/// A pair of connected UNIX sockets of this kind, which may come with flags.
pub fn socket_pair_of(kind: i32) -> Result<[i32; 2]> {
    let mut pair = [-1i32; 2];
    call!(socketpair, libc::AF_UNIX, kind, 0, pair.as_mut_ptr()).map(|_| pair)
}

/// A pair of connected UNIX stream sockets, close-on-exec.
pub fn socket_pair() -> Result<[i32; 2]> {
    socket_pair_of(libc::SOCK_STREAM | libc::SOCK_CLOEXEC)
}

pub fn memfd_create(name: &core::ffi::CStr, flags: u32) -> Result<i32> {
    call!(memfd_create, name.as_ptr(), flags).map(|n| n as i32)
}

/// ftruncate(2), except that a file larger than the process may make is EFBIG alone: the kernel would kill it.
pub fn ftruncate(fd: i32, len: u64) -> Result<()> {
    if len > largest_file() {
        return Err(libc::EFBIG);
    }
    call!(ftruncate, fd, len).map(drop)
}

/// RLIMIT_FSIZE in bytes. Beyond it the kernel raises SIGXFSZ.
pub fn largest_file() -> u64 {
    let mut limit = [u64::MAX; 2];
    let none = core::ptr::null::<u64>();
    let _ = call!(prlimit64, 0, libc::RLIMIT_FSIZE, none, limit.as_mut_ptr());
    limit[0]
}

/// Makes sure that bytes of a memfd have memory behind them. Where the kernel hands out no more than it has
/// (vm.overcommit_memory=2) a page that is touched first may find none left, which is SIGBUS: there they are allocated now.
/// Elsewhere memory that runs out is the affair of the kernel's OOM killer, as with any other. Errors: ENOMEM, ENOSPC.
pub fn reserve(fd: i32, at: usize, len: usize) -> Result<()> {
    // Asking takes longer than a few pages do.
    const SMALL: usize = 16 << 10;
    const FEW: u32 = 4;
    static ALLOCATED: AtomicU32 = AtomicU32::new(0);
    let few = len <= SMALL && ALLOCATED.load(Ordering::Relaxed) < FEW;
    if few {
        ALLOCATED.fetch_add(1, Ordering::Relaxed);
    }
    if few || is_overcommit_strict() {
        allocate(fd, at, len)?;
    }
    Ok(())
}

pub(crate) fn allocate(fd: i32, at: usize, len: usize) -> Result<()> {
    call!(fallocate, fd, 0, at, len).map(drop)
}

/// vm.overcommit_memory, asked once.
fn is_overcommit_strict() -> bool {
    static KNOWN: AtomicU32 = AtomicU32::new(0);
    const STRICT: u32 = 2;
    let known = KNOWN.load(Ordering::Relaxed);
    if known != 0 {
        return known == STRICT;
    }
    let path = c"/proc/sys/vm/overcommit_memory";
    let mut digit = [0u8];
    if let Ok(fd) = open(path, libc::O_RDONLY | libc::O_CLOEXEC, 0) {
        let _ = read_bytes(fd, &mut digit);
        let _ = close(fd);
    }
    let now = if digit == *b"2" { STRICT } else { 1 };
    KNOWN.store(now, Ordering::Relaxed);
    now == STRICT
}

pub fn fcntl(fd: i32, cmd: i32, arg: usize) -> Result<i32> {
    call!(fcntl, fd, cmd, arg).map(|n| n as i32)
}

pub fn close(fd: i32) -> Result<()> {
    call!(close, fd).map(drop)
}

pub fn eventfd(initial: u32, flags: i32) -> Result<i32> {
    call!(eventfd2, initial, flags).map(|n| n as i32)
}

/// A timerfd, close-on-exec.
pub fn timerfd() -> Result<i32> {
    call!(
        timerfd_create,
        libc::CLOCK_MONOTONIC,
        libc::TFD_NONBLOCK | libc::TFD_CLOEXEC
    )
    .map(|n| n as i32)
}

/// Lets a timerfd expire now, or takes that back. Never waits. EINVAL: it is none.
pub fn timerfd_set(fd: i32, expire: bool) -> Result<()> {
    let time = [0i64, 0, 0, expire as i64];
    let none = core::ptr::null::<i64>();
    call!(
        timerfd_settime,
        fd,
        libc::TFD_TIMER_ABSTIME,
        time.as_ptr(),
        none
    )
    .map(drop)
}

pub fn timerfd_is(fd: i32) -> bool {
    let mut time = [0i64; 4];
    call!(timerfd_gettime, fd, time.as_mut_ptr()).is_ok()
}

pub fn read_bytes(fd: i32, to: &mut [u8]) -> Result<usize> {
    call!(read, fd, to.as_mut_ptr(), to.len())
}

pub fn write_bytes(fd: i32, bytes: &[u8]) -> Result<usize> {
    call!(write, fd, bytes.as_ptr(), bytes.len())
}

/// # Safety
/// `buf` is valid for `len` bytes.
pub unsafe fn read(fd: i32, buf: *mut u8, len: usize) -> Result<usize> {
    call!(read, fd, buf, len)
}

/// # Safety
/// `buf` is valid for `len` bytes.
pub unsafe fn write(fd: i32, buf: *const u8, len: usize) -> Result<usize> {
    call!(write, fd, buf, len)
}

pub fn fstat(fd: i32) -> Result<libc::stat> {
    let mut st: libc::stat = zeroed();
    call!(fstat, fd, &mut st as *mut libc::stat).map(|_| st)
}

/// fstatat(2): of a path below the folder `dir`.
pub fn stat_as(dir: i32, path: &core::ffi::CStr, flags: i32) -> Result<libc::stat> {
    let mut st: libc::stat = zeroed();
    call!(
        newfstatat,
        dir,
        path.as_ptr(),
        &mut st as *mut libc::stat,
        flags
    )
    .map(|_| st)
}

pub fn stat(path: &core::ffi::CStr) -> Result<libc::stat> {
    stat_as(libc::AT_FDCWD, path, 0)
}

/// A short text as a C string, such as a path in /proc, made without allocating. `None`: there is not enough room for it.
pub fn c_text<'a>(
    room: &'a mut [u8],
    text: core::fmt::Arguments<'_>,
) -> Option<&'a core::ffi::CStr> {
    use std::io::Write;
    write!(&mut *room, "{text}\0").ok()?;
    core::ffi::CStr::from_bytes_until_nul(room).ok()
}

/// A mapping where nothing was before.
pub fn map(len: usize, prot: i32, flags: i32, fd: i32) -> Result<*mut u8> {
    // SAFETY: the kernel finds room for it that nobody has.
    unsafe { mmap(0, len, prot, flags & !libc::MAP_FIXED, fd, 0) }
}

/// EAGAIN, of too much locked memory, is ENOMEM here: to callers it would say that there is nothing yet.
///
/// # Safety
/// As mmap(2): with MAP_FIXED the caller owns the range.
pub unsafe fn mmap(
    addr: usize,
    len: usize,
    prot: i32,
    flags: i32,
    fd: i32,
    off: usize,
) -> Result<*mut u8> {
    match call!(mmap, addr, len, prot, flags, fd, off) {
        Err(libc::EAGAIN) => Err(libc::ENOMEM),
        done => done.map(|p| p as *mut u8),
    }
}

/// # Safety
/// Nothing uses the range any more.
pub unsafe fn munmap(addr: *mut u8, len: usize) -> Result<()> {
    call!(munmap, addr, len).map(drop)
}

/// An entry of poll(2).
#[inline]
pub const fn entry(fd: i32, events: i16) -> libc::pollfd {
    libc::pollfd {
        fd,
        events,
        revents: 0,
    }
}

/// A buffer of readv(2), writev(2) and their kin.
#[inline]
pub const fn buffer<T>(at: *const T, len: usize) -> libc::iovec {
    libc::iovec {
        iov_base: at.cast_mut().cast(),
        iov_len: len,
    }
}

/// poll(2) with a timeout in nanoseconds (`None`: for ever). Returns the number of ready descriptors.
pub fn ppoll(fds: &mut [libc::pollfd], timeout_ns: Option<u64>) -> Result<usize> {
    let ts = timeout_ns.map(timespec);
    let tsp = ts.as_ref().map_or(core::ptr::null(), |t| t as *const _);
    call!(ppoll, fds.as_mut_ptr(), fds.len(), tsp, 0, 8)
}

/// poll(2) of one descriptor, for so many nanoseconds at most: what holds of it.
pub fn poll_for(fd: i32, events: i16, ns: u64) -> i16 {
    let mut fds = [entry(fd, events)];
    let _ = ppoll(&mut fds, Some(ns));
    fds[0].revents
}

/// Repeats a call that a signal interrupted before it did anything.
pub fn again<T>(mut call: impl FnMut() -> Result<T>) -> Result<T> {
    loop {
        match call() {
            Err(libc::EINTR) => {}
            result => return result,
        }
    }
}

pub fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as _,
    }
}

pub fn sched_yield() {
    let _ = call!(sched_yield);
}

/// The turns of a wait for another thread that is about to be ready: yields at first, then naps. One of lower priority on the
/// same CPU would not be let on by yields, and one that was stopped is not to cost a CPU.
#[derive(Default)]
pub struct Turns(u32);

impl Turns {
    const YIELDS: u32 = 50;
    /// Nanoseconds: short beside what such a wait has lasted already, long beside what is waited for.
    const NAP: u64 = Duration::from_micros(50).as_nanos() as u64;
    const LONGEST: u64 = Duration::from_millis(1).as_nanos() as u64;

    pub fn while_it_holds(holds: impl Fn() -> bool) {
        let mut turns = Turns::default();
        while holds() {
            turns.give_way();
        }
    }

    /// Lets others on.
    pub fn give_way(&mut self) {
        self.0 = self.0.saturating_add(1);
        match u64::from(self.0.saturating_sub(Turns::YIELDS)) {
            0 => sched_yield(),
            late => {
                let ns = (late * Turns::NAP / 8).clamp(Turns::NAP, Turns::LONGEST);
                let ts = timespec(ns);
                let _ = call!(nanosleep, &ts as *const libc::timespec, 0);
            }
        }
    }
}

pub fn getpid() -> i32 {
    call!(getpid).map_or(0, |n| n as i32)
}

/// Does a process of this id exist (in this pid namespace)? EPERM means that it does.
pub fn process_exists(pid: i32) -> bool {
    !matches!(call!(kill, pid, 0), Err(libc::ESRCH))
}

/// CLOCK_MONOTONIC in nanoseconds; a vDSO call, not a system call.
#[inline]
pub fn now() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// The same to a few milliseconds, as of the kernel's last tick: for what is due some time, at a fraction of the cost.
#[inline]
pub fn now_roughly() -> u64 {
    clock(libc::CLOCK_MONOTONIC_COARSE)
}

#[inline]
fn clock(which: libc::clockid_t) -> u64 {
    let ts = clock_time(which);
    ts.tv_sec as u64 * 1_000_000_000 + ts.tv_nsec as u64
}

/// clock_gettime(2); 0 of a clock that there is not.
#[inline]
pub fn clock_time(which: libc::clockid_t) -> libc::timespec {
    let mut ts = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: ts is valid for writes.
    unsafe { libc::clock_gettime(which, &mut ts) };
    ts
}

/// The CPU this thread runs on, from its rseq area where the C library registered one; not a system call.
#[inline]
pub fn cpu() -> u32 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let mut offset = RSEQ.load(Ordering::Relaxed);
        if offset == 0 {
            offset = find_rseq();
        }
        if offset != NO_RSEQ {
            let cpu: i32;
            // SAFETY: the thread's struct rseq lies at that distance from its thread pointer (rseq(2), glibc's manual);
            // its second word is cpu_id.
            unsafe {
                core::arch::asm!("mov {0:e}, fs:[{1} + 4]", out(reg) cpu, in(reg) offset,
                    options(nostack, readonly, preserves_flags))
            };
            if cpu >= 0 {
                return cpu as u32;
            }
        }
    }
    // SAFETY: no arguments.
    unsafe { libc::sched_getcpu() as u32 }
}

/// Distance of struct rseq from the thread pointer; 0: not looked up yet.
#[cfg(all(target_arch = "x86_64", not(miri)))]
static RSEQ: AtomicIsize = AtomicIsize::new(0);
#[cfg(all(target_arch = "x86_64", not(miri)))]
const NO_RSEQ: isize = isize::MIN;

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[cold]
fn find_rseq() -> isize {
    let find = |name: &core::ffi::CStr| {
        // SAFETY: a C string.
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
    };
    let (offset, size) = (find(c"__rseq_offset"), find(c"__rseq_size"));
    // SAFETY: glibc (2.35 and later) defines them as ptrdiff_t and unsigned int; size 0 says that nothing is registered.
    let found = unsafe {
        if offset.is_null() || size.is_null() || *(size as *const u32) == 0 {
            NO_RSEQ
        } else {
            *(offset as *const isize)
        }
    };
    RSEQ.store(found, Ordering::Relaxed);
    found
}
