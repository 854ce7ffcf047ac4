//! Raw system calls beyond those of the channel crate. By number, never through libc, whose names we interpose.
//! Errors are errno values; each call's manual page has the same name.

pub use headwater_channel::sys::*;

use core::ffi::CStr;
use core::mem::MaybeUninit;

use syscalls::{Sysno, syscall};

macro_rules! call {
    ($nr:ident $(, $a:expr)*) => {
        syscall!(Sysno::$nr $(, $a)*).map_err(|e| e.into_raw())
    };
}

/// System calls that take numbers, and strings: the kernel checks what they are for.
macro_rules! of_numbers_and_strings {
    ($($(#[$doc:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)? = $number:ident($($value:expr),*);)*) => {$(
        $(#[$doc])*
        $vis fn $name($($arg: $ty),*) -> Result<of_numbers_and_strings!(@or_unit $($ret)?)> {
            // SAFETY: nothing of this process's memory but strings, which are there until it returns.
            let told = unsafe { call!($number $(, $value)*) };
            told.map(|_n| of_numbers_and_strings!(@as _n $($ret)?))
        }
    )*};
    (@or_unit) => { () };
    (@or_unit $ret:ty) => { $ret };
    (@as $n:ident) => { () };
    (@as $n:ident $ret:ty) => { $n as $ret };
}

of_numbers_and_strings! {
    pub fn dup3(fd: i32, to: i32, flags: i32) -> i32 = dup3(fd, to, flags);
    pub fn socket(domain: i32, kind: i32, protocol: i32) -> i32 = socket(domain, kind, protocol);
    pub fn listen(fd: i32, backlog: i32) = listen(fd, backlog);
    /// A new epoll(7) set, close-on-exec.
    pub fn epoll_create() -> i32 = epoll_create1(libc::EPOLL_CLOEXEC);
    /// accept4(2), without the address.
    pub fn accept(fd: i32, flags: i32) -> i32 = accept4(fd, 0, 0, flags);
    fn order_of_files(own: i32, a: i32, b: i32) -> usize = kcmp(own, own, KCMP_FILE, a, b);
    /// tgkill(2). Signal 0 only asks whether there is such a thread.
    pub fn signal_to(process: i32, thread: i32, signal: i32) = tgkill(process, thread, signal);
    /// Signal 0 only asks whether there is such a process, and whether it may be sent one.
    pub fn kill(process: i32, signal: i32) = kill(process, signal);
    pub fn close_range(first: u32, last: u32) = close_range(first, last, 0);
    pub fn epoll_remove(ep: i32, fd: i32) = epoll_ctl(ep, libc::EPOLL_CTL_DEL, fd, 0);
    pub(crate) fn membarrier(command: i32) = membarrier(command, 0, 0);
    pub fn lseek(fd: i32, offset: i64, whence: i32) -> i64 = lseek(fd, offset, whence);
    /// openat(2) below the folder `dir`, to read, close-on-exec.
    pub fn open_at(dir: i32, path: &CStr, flags: i32) -> i32
        = openat(dir, path.as_ptr(), flags | libc::O_RDONLY | libc::O_CLOEXEC, 0);
    /// access(2), by the real user.
    pub fn access(path: &CStr, mode: i32) = faccessat(libc::AT_FDCWD, path.as_ptr(), mode);
    fn attribute_length(fd: i32, name: &CStr) -> usize = fgetxattr(fd, name.as_ptr(), 0, 0);
    /// faccessat2(2), by the effective user. ENOSYS before Linux 5.8.
    pub fn effective_access(path: &CStr, mode: i32) = faccessat2(libc::AT_FDCWD, path.as_ptr(), mode, libc::AT_EACCESS);
    /// A FIFO at this path.
    pub fn make_fifo(path: &CStr, mode: u32) = mknodat(libc::AT_FDCWD, path.as_ptr(), libc::S_IFIFO | mode, 0);
    pub fn rename(old: &CStr, new: &CStr) = renameat2(libc::AT_FDCWD, old.as_ptr(), libc::AT_FDCWD, new.as_ptr(), 0);
    pub fn unlink(path: &CStr) = unlinkat(libc::AT_FDCWD, path.as_ptr(), 0);
    pub fn mkdir(path: &CStr, mode: u32) = mkdirat(libc::AT_FDCWD, path.as_ptr(), mode);
    /// link(2): another name of a file.
    pub fn link(old: &CStr, new: &CStr) = linkat(libc::AT_FDCWD, old.as_ptr(), libc::AT_FDCWD, new.as_ptr(), 0);
    pub fn fchmod(fd: i32, mode: u32) = fchmod(fd, mode);
    pub fn flock(fd: i32, operation: i32) = flock(fd, operation);
    /// splice(2) without offsets.
    pub fn splice(from: i32, to: i32, n: usize, flags: u32) -> usize = splice(from, 0, to, 0, n, flags);
    /// Marks a segment for removal, once nobody has it attached.
    pub fn shm_remove(id: i32) = shmctl(id, libc::IPC_RMID, 0);
    pub(crate) fn shm_get(key: i32, size: usize, flags: i32) -> i32 = shmget(key, size, flags);
    /// shmat(2), readable and writable, where nothing else is.
    pub fn shmat(id: i32) -> *mut u8 = shmat(id, 0, 0);
    fn end_of_all(status: i32) = exit_group(status);
}

const KCMP_FILE: usize = 0;

/// Questions that the kernel answers, unless the process may not ask.
macro_rules! answered {
    ($($vis:vis fn $name:ident() -> $ret:ty = $number:ident or $else:expr;)*) => {$(
        $vis fn $name() -> $ret {
            // SAFETY: no arguments.
            unsafe { call!($number) }.map_or($else, |told| told as $ret)
        }
    )*};
}

answered! {
    fn user() -> u32 = getuid or u32::MAX;
    pub fn getuid() -> u32 = geteuid or u32::MAX;
    fn group() -> u32 = getgid or u32::MAX;
    pub fn getgid() -> u32 = getegid or u32::MAX;
    pub fn gettid() -> i32 = gettid or 0;
    pub fn getppid() -> i32 = getppid or 0;
}

/// # Safety
/// As recvmsg(2).
pub unsafe fn recvmsg(fd: i32, msg: *mut libc::msghdr, flags: i32) -> Result<usize> {
    call!(recvmsg, fd, msg, flags)
}

/// # Safety
/// As sendmsg(2).
pub unsafe fn sendmsg(fd: i32, msg: *const libc::msghdr, flags: i32) -> Result<usize> {
    call!(sendmsg, fd, msg, flags)
}

/// # Safety
/// As recvmmsg(2).
pub unsafe fn recvmmsg(fd: i32, messages: &mut [libc::mmsghdr], flags: i32) -> Result<usize> {
    call!(
        recvmmsg,
        fd,
        messages.as_mut_ptr(),
        messages.len(),
        flags,
        0
    )
}

/// # Safety
/// As sendmmsg(2).
pub unsafe fn sendmmsg(fd: i32, messages: &mut [libc::mmsghdr], flags: i32) -> Result<usize> {
    call!(sendmmsg, fd, messages.as_mut_ptr(), messages.len(), flags)
}

/// # Safety
/// The data is readable.
#[inline]
pub unsafe fn sendto(
    fd: i32,
    data: &libc::iovec,
    flags: i32,
    to: &impl SocketAddress,
) -> Result<usize> {
    let (address, len) = to.address();
    call!(sendto, fd, data.iov_base, data.iov_len, flags, address, len)
}

/// # Safety
/// As io_submit(2).
pub unsafe fn io_submit(context: *mut libc::c_void, n: i64, list: *const *const u8) -> Result<i32> {
    call!(io_submit, context, n, list).map(|n| n as i32)
}

/// System calls on one buffer.
macro_rules! of_bytes {
    ($($(#[$doc:meta])* fn $name:ident(fd, $bytes:ident: $ty:ty $(, $arg:ident: $arg_ty:ty)*) = $number:ident.$at:ident(..$($value:expr),*);)*) => {$(
        $(#[$doc])*
        #[inline]
        pub fn $name(fd: i32, $bytes: $ty $(, $arg: $arg_ty)*) -> Result<usize> {
            // SAFETY: a slice as long as it says.
            unsafe { call!($number, fd, $bytes.$at(), $bytes.len() $(, $value)*) }
        }
    )*};
}

of_bytes! {
    /// recv(2).
    fn recv_bytes(fd, to: &mut [u8], flags: i32) = recvfrom.as_mut_ptr(..flags, 0, 0);
    /// send(2).
    fn send_bytes(fd, bytes: &[u8], flags: i32) = sendto.as_ptr(..flags, 0, 0);
    /// pread(2).
    fn read_at(fd, to: &mut [u8], at: i64) = pread64.as_mut_ptr(..at);
    /// pread(2), where what is not filled stays as it is.
    fn read_at_into(fd, to: &mut [MaybeUninit<u8>], at: i64) = pread64.as_mut_ptr(..at);
    /// pwrite(2).
    fn write_at(fd, bytes: &[u8], at: i64) = pwrite64.as_ptr(..at);
}

/// # Safety
/// `buf` is valid for `len` bytes.
pub unsafe fn recv(fd: i32, buf: *mut u8, len: usize, flags: i32) -> Result<usize> {
    call!(recvfrom, fd, buf, len, flags, 0, 0)
}

/// # Safety
/// `buf` is valid for `len` bytes.
pub unsafe fn send(fd: i32, buf: *const u8, len: usize, flags: i32) -> Result<usize> {
    call!(sendto, fd, buf, len, flags, 0, 0)
}

/// # Safety
/// `event` is null or valid.
pub unsafe fn epoll_ctl(ep: i32, op: i32, fd: i32, event: *mut libc::epoll_event) -> Result<()> {
    call!(epoll_ctl, ep, op, fd, event).map(drop)
}

/// epoll_ctl(2), adding or changing.
pub fn epoll_set(ep: i32, op: i32, fd: i32, mut event: libc::epoll_event) -> Result<()> {
    // SAFETY: event is valid.
    unsafe { epoll_ctl(ep, op, fd, &mut event) }
}

/// An event of epoll_ctl(2) and epoll_wait(2).
#[inline]
pub const fn event(events: u32, data: u64) -> libc::epoll_event {
    libc::epoll_event { events, u64: data }
}

/// Looks without waiting.
pub fn epoll_poll(ep: i32, events: &mut [libc::epoll_event]) -> Result<usize> {
    // SAFETY: the slice is writable.
    unsafe { call!(epoll_pwait, ep, events.as_mut_ptr(), events.len(), 0, 0, 8) }
}

/// Makes `to` another number for what `fd` stands for; whether it survives an exec stays as it is.
pub fn dup_over(fd: i32, to: i32) -> Result<i32> {
    let flags = fcntl(to, libc::F_GETFD, 0).unwrap_or(0);
    let kind = match flags & libc::FD_CLOEXEC {
        0 => 0,
        _ => libc::O_CLOEXEC,
    };
    dup3(fd, to, kind)
}

pub fn dup_above(fd: i32, min: i32) -> Result<i32> {
    fcntl(fd, libc::F_DUPFD_CLOEXEC, min as usize)
}

/// The address of a socket.
///
/// # Safety
/// What `address` gives is readable for as many bytes as it says, as long as this is.
pub unsafe trait SocketAddress {
    fn address(&self) -> (*const libc::sockaddr, u32);
}

// SAFETY: no more than it has.
unsafe impl SocketAddress for (libc::sockaddr_un, u32) {
    fn address(&self) -> (*const libc::sockaddr, u32) {
        let len = self.1.min(size_of::<libc::sockaddr_un>() as u32);
        ((&raw const self.0).cast(), len)
    }
}

/// The abstract address (unix(7)) with this name, of 107 bytes at most.
pub fn abstract_name(name: &[u8]) -> (libc::sockaddr_un, u32) {
    let mut address: libc::sockaddr_un = zeroed();
    address.sun_family = libc::AF_UNIX as u16;
    for (to, from) in address.sun_path[1..].iter_mut().zip(name) {
        *to = *from as libc::c_char;
    }
    (address, (2 + 1 + name.len()) as u32)
}

/// The same with a text as its name.
pub fn abstract_text(name: core::fmt::Arguments<'_>) -> (libc::sockaddr_un, u32) {
    let mut room = [0; 107];
    let mut text = Cursor::new(&mut room);
    let _ = core::fmt::write(&mut text, name);
    let len = text.len;
    abstract_name(&room[..len])
}

// SAFETY: all of it.
unsafe impl SocketAddress for libc::sockaddr {
    fn address(&self) -> (*const libc::sockaddr, u32) {
        (self, size_of::<libc::sockaddr>() as u32)
    }
}

pub fn bind(fd: i32, to: &impl SocketAddress) -> Result<()> {
    let (at, len) = to.address();
    // SAFETY: an address with its length.
    unsafe { call!(bind, fd, at, len) }.map(drop)
}

pub fn connect(fd: i32, to: &impl SocketAddress) -> Result<()> {
    let (at, len) = to.address();
    // SAFETY: it is as long as it says.
    unsafe { call!(connect, fd, at, len) }.map(drop)
}

/// A socket option as a plain value.
pub fn sockopt<T: Copy + Default>(fd: i32, level: i32, name: i32) -> Result<T> {
    let mut value = T::default();
    // SAFETY: value is writable for its size.
    unsafe { sockopt_into(fd, level, name, (&raw mut value).cast(), size_of::<T>()) }?;
    Ok(value)
}

/// As getsockopt(2) into bytes; returns how many the kernel filled.
pub fn sockopt_bytes(fd: i32, level: i32, name: i32, buf: &mut [u8]) -> Result<usize> {
    // SAFETY: buf is writable for as many bytes.
    unsafe { sockopt_into(fd, level, name, buf.as_mut_ptr(), buf.len()) }
}

/// # Safety
/// `to` is writable for `room` bytes.
unsafe fn sockopt_into(fd: i32, level: i32, name: i32, to: *mut u8, room: usize) -> Result<usize> {
    let mut len = room as u32;
    // SAFETY: `to` is, as the caller says, and so is the length.
    unsafe { call!(getsockopt, fd, level, name, to, &raw mut len) }?;
    Ok(len as usize)
}

pub fn set_sockopt<T: ?Sized>(fd: i32, level: i32, name: i32, value: &T) -> Result<()> {
    let at = (&raw const *value).cast::<u8>();
    // SAFETY: value is readable for its size.
    unsafe { call!(setsockopt, fd, level, name, at, size_of_val(value)) }.map(drop)
}

pub fn ioctl_int(fd: i32, request: u64) -> Result<i32> {
    let mut value = 0i32;
    // SAFETY: the requests used here write one int.
    unsafe { call!(ioctl, fd, request, &mut value as *mut i32) }?;
    Ok(value)
}

/// The request that asks whether a socket [is at its mark](is_at_mark).
pub const SIOCATMARK: u64 = 0x8905;

/// Is the place of an urgent byte the next one that the kernel has? See sockatmark(3).
pub fn is_at_mark(fd: i32) -> bool {
    ioctl_int(fd, SIOCATMARK).is_ok_and(|there| there != 0)
}

/// An address of a socket, local (`peer == false`) or remote.
pub fn sock_name(fd: i32, peer: bool) -> Result<libc::sockaddr_storage> {
    let mut addr: libc::sockaddr_storage = zeroed();
    let mut len = size_of::<libc::sockaddr_storage>() as u32;
    let number = match peer {
        true => Sysno::getpeername,
        false => Sysno::getsockname,
    };
    // SAFETY: addr and len are writable, len is the size of addr.
    let named = unsafe { syscall!(number, fd, &raw mut addr, &raw mut len) };
    named.map(|_| addr).map_err(|e| e.into_raw())
}

/// Real and effective user and group.
pub fn users_and_groups() -> [u32; 4] {
    [user(), getuid(), group(), getgid()]
}

/// Are the effective, the real and the saved user the same?
pub fn has_one_user() -> bool {
    let mut ids = [0u32; 3];
    let [real, effective, saved] = ids.each_mut().map(|id| &raw mut *id);
    // SAFETY: three writable words.
    let told = unsafe { call!(getresuid, real, effective, saved) };
    told.is_ok() && ids[0] == ids[1] && ids[1] == ids[2]
}

/// A number that nobody can guess.
pub fn random() -> Result<u64> {
    random_bytes().map(u64::from_ne_bytes)
}

/// As many bytes, up to 256, of which nobody can guess any.
pub fn random_bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0u8; N];
    // SAFETY: so many writable bytes.
    match unsafe { call!(getrandom, bytes.as_mut_ptr(), N, 0) } {
        Ok(n) if n < N => Err(libc::EIO),
        done => done.map(|_| bytes),
    }
}

/// Do two numbers of this process stand for one open file? (kcmp(2)) EPERM, ENOSYS.
pub fn is_same_file(a: i32, b: i32) -> Result<bool> {
    order_of_files(getpid(), a, b).map(|order| order == 0)
}

/// Ends the process, all of its threads, without a word to anybody in it.
pub fn exit_group(status: i32) -> ! {
    loop {
        let _ = end_of_all(status);
    }
}

/// Waits for the end of a child, of which wait4(2) says this; `options` are of that.
pub fn await_child(child: i32, options: i32) -> Result<i32> {
    let mut status = 0i32;
    loop {
        // SAFETY: status is writable, and what the child has used is not asked for.
        match unsafe { call!(wait4, child, &mut status as *mut i32, options, 0) } {
            Err(libc::EINTR) => {}
            waited => return waited.map(|_| status),
        }
    }
}

/// Changes which signals the calling thread has blocked, as rt_sigprocmask(2); those of before.
pub fn mask_signals(how: i32, signals: u64) -> u64 {
    let mut before = 0u64;
    let (at, old) = (&raw const signals, &raw mut before);
    // SAFETY: sets of the kernel's size, to be read and to be written.
    let _ = unsafe { call!(rt_sigprocmask, how, at, old, size_of::<u64>()) };
    before
}

/// A signal to the calling thread.
pub fn raise(signal: i32) {
    let _ = signal_to(getpid(), gettid(), signal);
}

/// A set of signals as the kernel and the C library have it: from the lowest bit on.
pub fn signals(of: &libc::sigset_t) -> u64 {
    // SAFETY: it is larger.
    unsafe { (&raw const *of).cast::<u64>().read() }
}

pub fn signal_set(signals: u64) -> libc::sigset_t {
    let mut set: libc::sigset_t = zeroed();
    // SAFETY: words, of which the first is written.
    unsafe { (&raw mut set).cast::<u64>().write(signals) };
    set
}

pub const fn signal_bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// The soft limit of a resource, as getrlimit(2).
pub fn limit(resource: u32, unknown: u64) -> u64 {
    let mut limit = [unknown; 2];
    // SAFETY: the new limit is null, the old one writable.
    let _ = unsafe { call!(prlimit64, 0, resource, 0, limit.as_mut_ptr()) };
    limit[0]
}

/// The calling thread's name, with zeroes behind it.
pub fn thread_name(name: &mut [u8; 16]) {
    // SAFETY: PR_GET_NAME fills at most 16 bytes.
    let _ = unsafe { call!(prctl, libc::PR_GET_NAME, name.as_mut_ptr()) };
}

/// Opens or makes a file whose end is written to. A FIFO that nobody reads is ENXIO, and a pipe that is full takes nothing: who
/// writes there may be about to end, and waits for nobody.
pub fn open_to_append(path: &CStr, mode: u32) -> Result<i32> {
    const NO_WAIT: i32 = libc::O_NONBLOCK | libc::O_NOCTTY;
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND | libc::O_CLOEXEC;
    open(path, flags | NO_WAIT, mode)
}

/// Has the file this extended attribute?
pub fn has_attribute(fd: i32, name: &CStr) -> bool {
    attribute_length(fd, name).is_ok_and(|n| n > 0)
}

/// Where a symbolic link leads, and the length of that, or as much as there is room for.
pub fn read_link(path: &CStr, to: &mut [u8]) -> Result<usize> {
    let (at, room) = (to.as_mut_ptr(), to.len());
    // SAFETY: path is a C string, and `to` is writable for its length.
    unsafe { call!(readlinkat, libc::AT_FDCWD, path.as_ptr(), at, room) }
}

/// What an entry of a folder is, behind its links.
pub fn stat_at(dir: i32, path: &CStr) -> Result<libc::stat> {
    stat_as(dir, path, 0)
}

/// Calls `each` with the names of a folder that are numbers, until it says false. Allocates nothing.
pub fn each_number(dir: i32, mut each: impl FnMut(i32) -> bool) -> Result<()> {
    /// Where a name stands in struct linux_dirent64, and before it the length of the entry.
    const LENGTH: usize = 16;
    const NAME: usize = 19;
    let mut buf = [0u64; 64];
    lseek(dir, 0, libc::SEEK_SET)?;
    loop {
        // SAFETY: buf is writable for its length.
        let n = unsafe { call!(getdents64, dir, buf.as_mut_ptr(), size_of_val(&buf)) }?;
        if n == 0 {
            return Ok(());
        }
        // SAFETY: plain integers, and the kernel filled so many bytes.
        let mut left = unsafe {
            core::slice::from_raw_parts(buf.as_ptr().cast::<u8>(), n.min(size_of_val(&buf)))
        };
        while left.len() > NAME {
            let length = u16::from_ne_bytes([left[LENGTH], left[LENGTH + 1]]) as usize;
            let entry = &left[..length.clamp(NAME, left.len())];
            let name = entry[NAME..].split(|&b| b == 0).next().unwrap_or_default();
            let number = core::str::from_utf8(name).ok().and_then(|s| s.parse().ok());
            if number.is_some_and(|number| !each(number)) {
                return Ok(());
            }
            left = &left[entry.len()..];
        }
    }
}

/// What the calling thread has had of the processor, in nanoseconds.
pub fn thread_time() -> u64 {
    let ts = clock_time(libc::CLOCK_THREAD_CPUTIME_ID);
    ts.tv_sec as u64 * 1_000_000_000 + ts.tv_nsec as u64
}

/// The time since the machine started, in the ticks in which /proc says when processes did.
pub fn boot_ticks() -> u64 {
    let ts = clock_time(libc::CLOCK_BOOTTIME);
    // USER_HZ, which never changes.
    ts.tv_sec as u64 * 100 + ts.tv_nsec as u64 / 10_000_000
}

/// Inode of a path (following links), for namespace identities.
pub fn inode(path: &CStr) -> u64 {
    stat(path).map_or(0, |st| st.st_ino)
}

/// Does the number stand for anything?
pub fn is_open(fd: i32) -> bool {
    fcntl(fd, libc::F_GETFD, 0).is_ok()
}

/// Has a program that this one executes the number too?
pub fn survives_exec(fd: i32) -> bool {
    fcntl(fd, libc::F_GETFD, 0).is_ok_and(|flags| flags & libc::FD_CLOEXEC == 0)
}

/// fcntl(2) with F_SETLK or F_GETLK, for one byte of a file. Returns the lock as the kernel left it.
pub fn lock_byte(fd: i32, cmd: i32, kind: i32, at: u64) -> Result<libc::flock> {
    let mut lock: libc::flock = zeroed();
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = at as libc::off_t;
    lock.l_len = 1;
    // SAFETY: lock is readable and writable.
    unsafe { call!(fcntl, fd, cmd, &mut lock as *mut libc::flock) }.map(|_| lock)
}

/// shmget(2) of a private segment.
pub fn shmget(size: usize, mode: u32) -> Result<i32> {
    shmget_new(libc::IPC_PRIVATE, size, mode)
}

/// shmget(2) of a segment that nobody has made by this key.
pub fn shmget_new(key: i32, size: usize, mode: u32) -> Result<i32> {
    shm_get(key, size, libc::IPC_CREAT | libc::IPC_EXCL | mode as i32)
}

/// # Safety
/// `at` is from [`shmat`], and nothing uses the memory any more.
pub unsafe fn shmdt(at: *mut u8) {
    let _ = call!(shmdt, at);
}

pub fn shm_stat(id: i32) -> Result<libc::shmid_ds> {
    let mut st = MaybeUninit::<libc::shmid_ds>::uninit();
    // SAFETY: st is writable, and filled on success.
    unsafe { call!(shmctl, id, libc::IPC_STAT, st.as_mut_ptr()).map(|_| st.assume_init()) }
}

/// Gives a segment to another group.
pub fn shm_set_group(id: i32, gid: u32) -> Result<()> {
    let mut st = shm_stat(id)?;
    st.shm_perm.gid = gid;
    // SAFETY: st is readable.
    unsafe { call!(shmctl, id, libc::IPC_SET, &st as *const libc::shmid_ds) }.map(drop)
}

/// What tells an open file from another that has its number: a hash of device and inode; 0 if it is closed.
pub fn identity(fd: i32) -> u64 {
    let hash = |st: libc::stat| {
        (st.st_dev.rotate_left(32) ^ st.st_rdev.rotate_left(48) ^ st.st_ino) | 1 << 63
    };
    fstat(fd).map_or(0, hash)
}

/// The calling thread's number as the C library knows it: not a system call. Right in the child of fork(3) too, but not in one
/// of vfork(2) or of clone(2) by number, where it is the parent's.
pub fn thread_id() -> Option<i32> {
    let mut clock = 0;
    // SAFETY: clock is writable.
    let failed = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &mut clock) };
    // The kernel's clock of a thread: its number inverted, above three bits of kind (CLOCK_THREAD_CPUTIME_ID by number).
    (failed == 0 && clock < 0).then_some(!(clock >> 3))
}

/// Has this process one thread only? False where the C library does not tell.
pub fn is_single_threaded() -> bool {
    static NEXT: crate::next::Next = crate::next::Next::new(c"__libc_single_threaded");
    let at = NEXT.address() as *const u8;
    // SAFETY: glibc (2.32 and later) defines it as a char.
    !at.is_null() && unsafe { at.read_volatile() } != 0
}

/// Formats into a fixed buffer without allocating; what does not fit is cut.
pub struct Cursor<'a> {
    pub buf: &'a mut [u8],
    pub len: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(buf: &'a mut [u8]) -> Cursor<'a> {
        Cursor { buf, len: 0 }
    }

    /// Adds all of `bytes`; false, with nothing added, if they do not fit.
    pub fn push(&mut self, bytes: &[u8]) -> bool {
        let Some(room) = self.buf[self.len..].get_mut(..bytes.len()) else {
            return false;
        };
        room.copy_from_slice(bytes);
        self.len += bytes.len();
        true
    }
}

impl core::fmt::Write for Cursor<'_> {
    fn write_str(&mut self, s: &str) -> core::fmt::Result {
        let n = s.len().min(self.buf.len() - self.len);
        self.buf[self.len..self.len + n].copy_from_slice(&s.as_bytes()[..n]);
        self.len += n;
        if n == s.len() {
            Ok(())
        } else {
            Err(core::fmt::Error)
        }
    }
}

/// Hands on the lines of a file, each without its end and cut where there is no more room for it, until `each` has what it wants.
/// Allocates nothing, and needs little stack.
pub fn each_line<const ROOM: usize>(file: i32, mut each: impl FnMut(&str) -> bool) {
    let (mut buf, mut line, mut len) = ([0u8; 512], [0u8; ROOM], 0);
    loop {
        let n = match read_bytes(file, &mut buf) {
            Ok(n @ 1..) => n,
            Err(libc::EINTR) => continue,
            _ => return,
        };
        for &byte in &buf[..n] {
            if byte == b'\n' {
                let text = line[..core::mem::take(&mut len)].utf8_chunks().next();
                if each(text.map_or("", |text| text.valid())) {
                    return;
                }
            } else if len < ROOM {
                line[len] = byte;
                len += 1;
            }
        }
    }
}

/// Writes all of `bytes`, ignoring errors: for logs and statistics, which must never disturb the program.
pub fn write_all(fd: i32, mut bytes: &[u8]) {
    let limit = largest_file();
    let too_large = |st: libc::stat| {
        st.st_mode & libc::S_IFMT == libc::S_IFREG && st.st_size as u64 + bytes.len() as u64 > limit
    };
    if limit != u64::MAX && fstat(fd).is_ok_and(too_large) {
        return;
    }
    while !bytes.is_empty() {
        match write_bytes(fd, bytes) {
            Ok(n) if n > 0 => bytes = &bytes[n..],
            Err(libc::EINTR) => {}
            _ => return,
        }
    }
}

/// pipe2(2).
pub fn pipe(flags: i32) -> Result<[i32; 2]> {
    let mut fds = [-1i32; 2];
    // SAFETY: two numbers of room.
    unsafe { call!(pipe2, fds.as_mut_ptr(), flags) }?;
    Ok(fds)
}

/// Does a send or receive that fails so only have to be made again later? ENOBUFS and ENOMEM are the kernel's lack of memory, not
/// the connection's end; a flight of descriptors that is too long (ETOOMANYREFS) lands.
pub fn passes(error: i32) -> bool {
    use libc::{EAGAIN, EINTR, ENOBUFS, ENOMEM, ETOOMANYREFS};
    matches!(error, EAGAIN | EINTR | ENOBUFS | ENOMEM | ETOOMANYREFS)
}
