//! The C library's streams over descriptors that we look after: it would read, write and close them by ways of its own.

use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::ptr::null_mut;
use std::alloc::{alloc, alloc_zeroed};

use headwater_host::sync::{AtomicBool, AtomicI32, AtomicPtr, Ordering};
use headwater_host::table::{self, Kind};
use headwater_host::{next, process, sys};
use headwater_sockets::life;
use libc::{c_char, c_int, c_void, size_t, ssize_t};

use crate::descriptor::{File as _, of_kind};
use crate::file::{File, NO_READS, NO_WRITES, USER_BUF};
use crate::{calls, files, start, wide};

/// cookie_io_functions_t of `<stdio.h>`.
#[repr(C)]
struct Functions {
    read: unsafe extern "C-unwind" fn(*mut c_void, *mut c_char, size_t) -> ssize_t,
    write: unsafe extern "C-unwind" fn(*mut c_void, *const c_char, size_t) -> ssize_t,
    seek: unsafe extern "C-unwind" fn(*mut c_void, *mut i64, c_int) -> c_int,
    close: unsafe extern "C-unwind" fn(*mut c_void) -> c_int,
}

unsafe extern "C-unwind" {
    fn fopencookie(cookie: *mut c_void, mode: *const c_char, functions: Functions) -> *mut c_void;
}

/// What stands behind a FILE of ours. It is never freed: the next FILE takes it over.
pub struct Served {
    next: *const Served,
    taken: AtomicBool,
    /// Null: none that the program knows.
    file: AtomicPtr<c_void>,
    /// Negative: the FILE is another's by now.
    fd: AtomicI32,
    /// The C library has read or written for the program.
    pub used: AtomicBool,
    /// The FILE's lock protects it.
    pub wide: UnsafeCell<wide::State>,
}

static ALL: AtomicPtr<Served> = AtomicPtr::new(null_mut());

impl Served {
    fn take(fd: c_int) -> Option<&'static Served> {
        let free = all().find(|s| !s.taken.swap(true, Ordering::AcqRel));
        let served = match free {
            Some(free) => free,
            None => Served::add()?,
        };
        served.fd.store(fd, Ordering::Relaxed);
        // SAFETY: taken here, and not a FILE's yet.
        unsafe { served.renew() };
        Some(served)
    }

    fn add() -> Option<&'static Served> {
        // SAFETY: as much memory as it needs; until it is in the list it is nobody else's, and from then on it stays.
        unsafe {
            let at = alloc(Layout::new::<Served>()).cast::<Served>();
            if at.is_null() {
                return None;
            }
            at.write(Served {
                next: null_mut(),
                taken: AtomicBool::new(true),
                file: AtomicPtr::new(null_mut()),
                fd: AtomicI32::new(-1),
                used: AtomicBool::new(false),
                wide: UnsafeCell::new(wide::State::NEW),
            });
            let mut first = ALL.load(Ordering::Acquire);
            loop {
                (*at).next = first;
                match ALL.compare_exchange(first, at, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => return Some(&*at),
                    Err(other) => first = other,
                }
            }
        }
    }

    fn cookie(&'static self) -> *mut c_void {
        core::ptr::from_ref(self).cast_mut().cast()
    }

    /// As read(2).
    ///
    /// # Safety
    /// As read(2) asks of its caller: `buf` has room for `n` bytes.
    pub unsafe fn read(&self, buf: *mut c_char, n: size_t) -> ssize_t {
        self.used.store(true, Ordering::Relaxed);
        // SAFETY: room for `n` bytes, by the caller's word.
        unsafe { calls::read(self.fd.load(Ordering::Relaxed), buf.cast(), n) }
    }

    /// The FILE is not ours any more. What the C library still calls for it does nothing.
    pub fn retire(&self) {
        self.file.store(null_mut(), Ordering::Release);
        self.fd.store(-1, Ordering::Relaxed);
    }

    /// As at the first.
    ///
    /// # Safety
    /// No other thread uses the FILE.
    pub unsafe fn renew(&self) {
        self.used.store(false, Ordering::Relaxed);
        // SAFETY: nobody else has the FILE, by the caller's word.
        unsafe { *self.wide.get() = wide::State::NEW };
    }

    /// Another FILE may have it.
    pub fn leave(&self) {
        self.retire();
        self.taken.store(false, Ordering::Release);
    }
}

fn all() -> impl Iterator<Item = &'static Served> {
    let mut at = ALL.load(Ordering::Acquire).cast_const();
    core::iter::from_fn(move || {
        // SAFETY: null or one that was added, and stays.
        let served = unsafe { at.as_ref() }?;
        at = served.next;
        Some(served)
    })
}

/// Is it one of ours?
pub fn served(file: *mut c_void) -> Option<&'static Served> {
    if file.is_null() {
        return None;
    }
    all().find(|s| s.file.load(Ordering::Acquire) == file)
}

unsafe fn of(cookie: *mut c_void) -> &'static Served {
    // SAFETY: the cookie that `make` has given the C library, which stays.
    unsafe { &*cookie.cast::<Served>() }
}

unsafe extern "C-unwind" fn read(cookie: *mut c_void, buf: *mut c_char, n: size_t) -> ssize_t {
    // SAFETY: the C library hands back the cookie, and has room for `n` bytes.
    unsafe { of(cookie).read(buf, n) }
}

/// Goes on until all is written or a write fails, as the C library's own does: what is less than `n` is a failure (fopencookie(3)).
unsafe extern "C-unwind" fn write(cookie: *mut c_void, buf: *const c_char, n: size_t) -> ssize_t {
    // SAFETY: the C library hands back the cookie, and has `n` bytes.
    unsafe {
        of(cookie).used.store(true, Ordering::Relaxed);
        let fd = of(cookie).fd.load(Ordering::Relaxed);
        let mut done = 0;
        while done < n {
            match calls::write(fd, buf.add(done).cast(), n - done) {
                ..=0 => break,
                written => done += written as size_t,
            }
        }
        done as ssize_t
    }
}

/// What the number stands for by now says where it is: a connection nowhere, but it may be another descriptor's. Under a stream, an
/// endpoint or an SCTP socket lies one of the kernel's that might go somewhere.
unsafe extern "C-unwind" fn seek(cookie: *mut c_void, at: *mut i64, whence: c_int) -> c_int {
    // SAFETY: the C library hands back the cookie, and a place for the position.
    unsafe {
        let fd = of(cookie).fd.load(Ordering::Relaxed);
        let is_kernels = |h: table::Handle| matches!(h.kind(), Kind::Socket | Kind::Epoll);
        let sought = match table::lookup(fd).is_none_or(is_kernels) {
            true => sys::lseek(fd, *at, whence),
            false => sys::fcntl(fd, libc::F_GETFD, 0).and(Err(libc::ESPIPE)),
        };
        match sought {
            Ok(now) => {
                *at = now;
                0
            }
            Err(errno) => {
                next::set_errno(errno);
                -1
            }
        }
    }
}

unsafe extern "C-unwind" fn close(cookie: *mut c_void) -> c_int {
    // SAFETY: the C library hands back the cookie, for the last time.
    unsafe {
        let fd = of(cookie).fd.load(Ordering::Relaxed);
        // By reopen::reopen, which leaves it.
        if fd < 0 {
            return 0;
        }
        of(cookie).leave();
        files::close(fd)
    }
}

/// What the C library gives a stream that it knows nothing of.
const BUFSIZ: i64 = 8192;

/// A FILE of fopencookie(3) is given a buffer of BUFSIZ, whatever it stands for. How much goes out at once, and is taken in at
/// once, is to be as with the C library's own FILE, whose buffer is a block of the descriptor's.
unsafe fn give_buffer(file: *mut c_void, fd: c_int) {
    // SAFETY: null or a FILE that was made just now; the buffer is as large as it says, and the C library's to free.
    unsafe {
        let block = match process::is_confined() {
            // A socket's.
            true => 4096,
            false => sys::fstat(fd).map_or(0, |st| st.st_blksize),
        };
        if file.is_null() || !(1..BUFSIZ).contains(&block) {
            return;
        }
        let buffer = libc::malloc(block as size_t);
        if buffer.is_null() {
            return;
        }
        next::seldom::setvbuf(file, buffer.cast(), FULLY_BUFFERED, block as size_t);
        // It is freed with the FILE.
        File::of(file).flags &= !USER_BUF;
    }
}

/// More than glibc has for the wide characters of a FILE. One of fopencookie(3) has nothing there, for which freopen(3) and each wide call look
/// all the same.
const WIDE_SIZE: usize = 1024;

#[repr(C, align(16))]
struct Nothing(UnsafeCell<[u8; WIDE_SIZE]>);

// SAFETY: the C library only looks at it: the FILEs that have it are for bytes (`_mode` is -1).
unsafe impl Sync for Nothing {}

static NOTHING: Nothing = Nothing(UnsafeCell::new([0; WIDE_SIZE]));

/// Nothing to be read or written, where the C library would look for it.
unsafe fn give_nothing(file: *mut c_void) {
    // SAFETY: a FILE that was made just now.
    unsafe {
        let file = File::of(file);
        if matches!(file.wide as usize, 0 | usize::MAX) {
            file.wide = NOTHING.0.get().cast();
        }
    }
}

/// Room for the wide characters of a FILE that becomes the C library's own. It stays when the FILE is closed.
///
/// # Safety
/// `file` is a FILE that no other thread uses.
pub unsafe fn give_room(file: *mut c_void) {
    // SAFETY: a FILE that no other thread uses, by the caller's word.
    unsafe {
        let file = File::of(file);
        if file.wide == NOTHING.0.get().cast() {
            let room = alloc_zeroed(Layout::new::<Nothing>());
            if !room.is_null() {
                file.wide = room.cast();
            }
        }
    }
}

/// Holds the FILE's lock meanwhile, and lets go of it in a thread that is cancelled, too: by the C library's list, for nothing here
/// is dropped then.
///
/// # Safety
/// `file` is a FILE.
pub unsafe fn locked<R>(file: *mut c_void, does: impl FnOnce() -> R) -> R {
    // SAFETY: a FILE, by the caller's word; the entry stays in place until it is popped, which a thread that is cancelled does, too.
    unsafe {
        // struct _pthread_cleanup_buffer of `<pthread.h>`.
        let mut entry = [0usize; 4];
        let entry = entry.as_mut_ptr().cast();
        // A C library from before 2.34 has it with its threads.
        let may_be_cancelled = next::seldom::nexts::_pthread_cleanup_push.address() != 0;
        let unlock = next::seldom::nexts::funlockfile.address();
        next::seldom::flockfile(file);
        if may_be_cancelled {
            next::seldom::_pthread_cleanup_push(entry, unlock, file);
        }
        let result = does();
        if may_be_cancelled {
            next::seldom::_pthread_cleanup_pop(entry, 0);
        }
        next::seldom::funlockfile(file);
        result
    }
}

/// What the FILE may do, as `mode` says.
///
/// # Safety
/// `file` is a FILE that no other thread uses, and `mode` a string.
pub unsafe fn set_mode(file: *mut c_void, mode: *const c_char) {
    // SAFETY: a FILE and a string, by the caller's word.
    unsafe {
        let (reads, writes) = directions(mode);
        let flags = &mut File::of(file).flags;
        *flags &= !(NO_READS | NO_WRITES);
        *flags |= if reads { 0 } else { NO_READS } | if writes { 0 } else { NO_WRITES };
    }
}

/// A FILE of ours by these functions.
unsafe fn make(fd: c_int, mode: *const c_char, functions: Functions) -> *mut c_void {
    // SAFETY: a string, by the caller's word; the cookie stays, and the FILE is nobody else's yet.
    unsafe {
        let Some(served) = Served::take(fd) else {
            next::set_errno(libc::ENOMEM);
            return null_mut();
        };
        let file = fopencookie(served.cookie(), mode, functions);
        if file.is_null() {
            served.leave();
            return file;
        }
        File::of(file).number = fd;
        give_nothing(file);
        served.file.store(file, Ordering::Release);
        file
    }
}

/// A FILE's number, if it has one.
///
/// # Safety
/// `file` is null or a FILE.
pub unsafe fn number(file: *mut c_void) -> Option<c_int> {
    // SAFETY: a FILE, by the caller's word.
    (!file.is_null()).then(|| unsafe { (*file.cast::<File>()).number })
}

/// A stream, an SCTP socket, or one of which something is left that the kernel does not have?
pub fn is_ours(fd: c_int) -> bool {
    table::lookup(fd).is_some_and(|h| of_kind!(h, is_beyond_libc()))
}

/// The same, or a connection that is looked after?
fn is_known(fd: c_int) -> bool {
    is_ours(fd) || table::socket(fd).is_some_and(|h| !life::is_ours(h))
}

/// The program has made a socket that it may connect after it has made a FILE of it.
static MAY_CONNECT: AtomicBool = AtomicBool::new(false);

pub fn may_connect() {
    if !MAY_CONNECT.load(Ordering::Relaxed) {
        MAY_CONNECT.store(true, Ordering::Relaxed);
    }
}

/// Is it a TCP socket that is nothing to us yet, and may become a connection?
fn is_to_come(fd: c_int) -> bool {
    MAY_CONNECT.load(Ordering::Relaxed)
        && start::wants_sockets()
        && table::lookup(fd).is_none()
        && life::is_tcp(fd)
}

/// fdopen(3) on one of them; `None`: it is none.
///
/// # Safety
/// As fdopen(3) asks of its caller: `mode` is a string.
pub unsafe fn fdopen(fd: c_int, mode: *const c_char) -> Option<*mut c_void> {
    // SAFETY: the program's string; the FILE is made here.
    unsafe {
        (is_known(fd) || is_to_come(fd)).then_some(())?;
        if !obey(fd, mode) {
            return Some(null_mut());
        }
        let functions = Functions {
            read,
            write,
            seek,
            close,
        };
        let file = make(fd, mode, functions);
        give_buffer(file, fd);
        Some(file)
    }
}

/// The mode has to go with how the descriptor was opened, which becomes one that appends if the mode says so. False, with errno: it
/// does not.
///
/// # Safety
/// `mode` is a string.
pub unsafe fn obey(fd: c_int, mode: *const c_char) -> bool {
    // SAFETY: a string, by the caller's word; these commands take numbers.
    unsafe {
        let flags = files::fcntl(fd, libc::F_GETFL, 0);
        if flags < 0 {
            return false;
        }
        let (reads, writes) = directions(mode);
        let lacks = match flags & libc::O_ACCMODE {
            libc::O_RDONLY => writes,
            libc::O_WRONLY => reads,
            _ => false,
        };
        if lacks {
            next::set_errno(libc::EINVAL);
            return false;
        }
        let appends = mode.read() as u8 == b'a' && flags & libc::O_APPEND == 0;
        !appends || files::fcntl(fd, libc::F_SETFL, (flags | libc::O_APPEND) as usize) >= 0
    }
}

/// Does the mode say that it is read, and that it is written?
unsafe fn directions(mode: *const c_char) -> (bool, bool) {
    // SAFETY: a string, by the caller's word.
    let mode = unsafe { core::ffi::CStr::from_ptr(mode) }.to_bytes();
    let both = mode.contains(&b'+');
    let reads = mode.first() == Some(&b'r');
    (both || reads, both || !reads)
}

/// vdprintf(3) on one of them: one write.
///
/// # Safety
/// As vdprintf(3) asks of its caller: the format goes with the arguments.
pub unsafe fn vdprintf(fd: c_int, format: *const c_char, args: *mut c_void) -> Option<c_int> {
    // SAFETY: the program's format and arguments; the text has `n` bytes, and is freed once.
    unsafe {
        is_known(fd).then_some(())?;
        let mut text = null_mut();
        let n = next::seldom::vasprintf(&mut text, format, args);
        if n < 0 {
            return Some(n);
        }
        let written = calls::write(fd, text.cast(), n as size_t);
        libc::free(text.cast());
        Some(written as c_int)
    }
}

unsafe extern "C" {
    static mut stdin: *mut c_void;
    static mut stdout: *mut c_void;
    static mut stderr: *mut c_void;
}

/// The C library's own, while a stream's stands in its place.
static ORIGINAL: [AtomicPtr<c_void>; 3] = [const { AtomicPtr::new(null_mut()) }; 3];
const FULLY_BUFFERED: c_int = 0;
const UNBUFFERED: c_int = 2;

fn standard(fd: c_int) -> *mut *mut c_void {
    match fd {
        0 => &raw mut stdin,
        1 => &raw mut stdout,
        _ => &raw mut stderr,
    }
}

/// The FILE that the program has as its standard input or output.
pub fn standard_file(fd: c_int) -> *mut c_void {
    // SAFETY: a variable of the C library's.
    unsafe { standard(fd).read() }
}

/// The C library's own, where `file` stands in its place; else `file`.
pub fn behind(fd: c_int, file: *mut c_void) -> *mut c_void {
    if !(0..=2).contains(&fd) || standard_file(fd) != file {
        return file;
    }
    let original = ORIGINAL[fd as usize].load(Ordering::Acquire);
    if original.is_null() { file } else { original }
}

unsafe extern "C-unwind" fn stay_open(cookie: *mut c_void) -> c_int {
    // SAFETY: the C library hands back the cookie, for the last time.
    unsafe {
        of(cookie).leave();
        0
    }
}

/// A number from 0 to 2 is now a stream, or no longer: `stdin`, `stdout` or `stderr` follow it. They are variables that a
/// program may set (the C library's manual, Standard Streams).
pub fn follow(fd: c_int) {
    // SAFETY: variables of the C library's, which the program's own call changes; the FILE is made here.
    unsafe {
        if !(0..=2).contains(&fd) {
            return;
        }
        let (at, original) = (standard(fd), &ORIGINAL[fd as usize]);
        if !is_ours(fd) {
            let before = original.swap(null_mut(), Ordering::AcqRel);
            if !before.is_null() {
                *at = before;
            }
            return;
        }
        if !original.load(Ordering::Acquire).is_null() {
            return;
        }
        let functions = Functions {
            read,
            write,
            seek,
            close: stay_open,
        };
        let mode = if fd == 0 { c"r" } else { c"w" };
        let file = make(fd, mode.as_ptr(), functions);
        if file.is_null() {
            return;
        }
        if fd == 2 {
            next::seldom::setvbuf(file, null_mut(), UNBUFFERED, 0);
        }
        original.store(*at, Ordering::Release);
        *at = file;
    }
}
