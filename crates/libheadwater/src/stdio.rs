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
use crate::file::{FilePtr, Held, NO_READS, NO_WRITES, USER_BUF};
use crate::given::Text;
use crate::real::seldom::{self, Progress};
use crate::{calls, files, refuse, sockets, start};

/// cookie_io_functions_t of `<stdio.h>`.
#[repr(C)]
struct Functions {
    read: unsafe extern "C-unwind" fn(Cookie, *mut c_char, size_t) -> ssize_t,
    write: unsafe extern "C-unwind" fn(Cookie, *const c_char, size_t) -> ssize_t,
    seek: extern "C-unwind" fn(Cookie, &mut i64, c_int) -> c_int,
    close: extern "C-unwind" fn(Cookie) -> c_int,
}

#[expect(improper_ctypes, reason = "the C library hands it back as it is")]
unsafe extern "C-unwind" {
    safe fn fopencookie(cookie: Cookie, mode: Text, functions: Functions) -> FilePtr<'static>;
}

/// What wide characters of a FILE of ours need.
pub struct WideState {
    /// As fwide(3) says it.
    pub orientation: c_int,
    pub input: Progress,
    pub output: Progress,
}

impl WideState {
    pub const NEW: WideState = WideState {
        orientation: 0,
        input: [0; 2],
        output: [0; 2],
    };
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
    wide: UnsafeCell<WideState>,
}

static ALL: AtomicPtr<Served> = AtomicPtr::new(null_mut());

impl Served {
    fn take(fd: c_int) -> Option<&'static Served> {
        let free = all().find(|s| !s.taken.swap(true, Ordering::AcqRel));
        let served = free.or_else(Served::add)?;
        served.fd.store(fd, Ordering::Relaxed);
        // SAFETY: taken here, and not a FILE's yet.
        unsafe { served.renew(&mut Held::new(FilePtr::NULL)) };
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
                wide: UnsafeCell::new(WideState::NEW),
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
    /// `file` is its FILE, if it has one by now.
    pub unsafe fn renew(&self, file: &mut Held) {
        self.used.store(false, Ordering::Relaxed);
        // SAFETY: of its FILE, by the caller's word.
        unsafe { *self.wide(file) = WideState::NEW };
    }

    /// What wide characters need.
    ///
    /// # Safety
    /// `file` is its FILE.
    pub unsafe fn wide<'a>(&'a self, _file: &'a mut Held) -> &'a mut WideState {
        // SAFETY: it is only reached with its FILE, by the caller's word, which is nobody else's meanwhile.
        unsafe { &mut *self.wide.get() }
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
pub fn served(file: FilePtr) -> Option<&'static Served> {
    if file.is_null() {
        return None;
    }
    all().find(|s| s.file.load(Ordering::Acquire) == file.as_ptr())
}

/// What `make` gives the C library, which hands it back.
#[repr(transparent)]
#[derive(Clone, Copy)]
struct Cookie(&'static Served);

impl Cookie {
    fn fd(self) -> c_int {
        self.0.fd.load(Ordering::Relaxed)
    }
}

unsafe extern "C-unwind" fn read(cookie: Cookie, buf: *mut c_char, n: size_t) -> ssize_t {
    // SAFETY: the C library has room for `n` bytes.
    unsafe { cookie.0.read(buf, n) }
}

/// Goes on until all is written or a write fails, as the C library's own does: what is less than `n` is a failure (fopencookie(3)).
unsafe extern "C-unwind" fn write(cookie: Cookie, buf: *const c_char, n: size_t) -> ssize_t {
    cookie.0.used.store(true, Ordering::Relaxed);
    let mut done = 0;
    while done < n {
        // SAFETY: the C library has `n` bytes.
        match unsafe { calls::write(cookie.fd(), buf.add(done).cast(), n - done) } {
            ..=0 => break,
            written => done += written as size_t,
        }
    }
    done as ssize_t
}

/// What the number stands for by now says where it is: a connection nowhere, but it may be another descriptor's. Under a stream, an
/// endpoint or an SCTP socket lies one of the kernel's that might go somewhere.
extern "C-unwind" fn seek(cookie: Cookie, at: &mut i64, whence: c_int) -> c_int {
    let fd = cookie.fd();
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
        Err(errno) => refuse(errno),
    }
}

extern "C-unwind" fn close(cookie: Cookie) -> c_int {
    let fd = cookie.fd();
    // By reopen::reopen, which leaves it.
    if fd < 0 {
        return 0;
    }
    cookie.0.leave();
    files::close(fd)
}

/// What the C library gives a stream that it knows nothing of.
const BUFSIZ: i64 = 8192;

/// A FILE of fopencookie(3) is given a buffer of BUFSIZ, whatever it stands for. How much goes out at once, and is taken in at
/// once, is to be as with the C library's own FILE, whose buffer is a block of the descriptor's.
fn give_buffer(file: &mut Held, fd: c_int) {
    let block = match process::is_confined() {
        // A socket's.
        true => 4096,
        false => sys::fstat(fd).map_or(0, |st| st.st_blksize),
    };
    if !(1..BUFSIZ).contains(&block) {
        return;
    }
    // SAFETY: a FILE; the buffer is as large as it says, and the C library's to free.
    unsafe {
        let buffer = libc::malloc(block as size_t);
        if buffer.is_null() {
            return;
        }
        let at = file.file().as_ptr();
        seldom::setvbuf(at, buffer.cast(), FULLY_BUFFERED, block as size_t);
    }
    // It is freed with the FILE.
    file.fields().flags &= !USER_BUF;
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
fn give_nothing(file: &mut Held) {
    let file = file.fields();
    if matches!(file.wide as usize, 0 | usize::MAX) {
        file.wide = NOTHING.0.get().cast();
    }
}

/// Room for the wide characters of a FILE that becomes the C library's own. It stays when the FILE is closed.
pub fn give_room(file: &mut Held) {
    let file = file.fields();
    if file.wide == NOTHING.0.get().cast() {
        // SAFETY: it is not empty.
        let room = unsafe { alloc_zeroed(Layout::new::<Nothing>()) };
        if !room.is_null() {
            file.wide = room.cast();
        }
    }
}

/// Holds the FILE's lock meanwhile, and lets go of it in a thread that is cancelled, too: by the C library's list, for nothing here
/// is dropped then.
pub fn locked<R>(file: FilePtr, does: impl FnOnce(Held) -> R) -> R {
    // SAFETY: a FILE; the entry stays in place until it is popped, which a thread that is cancelled does, too.
    unsafe {
        // struct _pthread_cleanup_buffer of `<pthread.h>`.
        let mut entry = [0usize; 4];
        let entry = entry.as_mut_ptr().cast();
        // A C library from before 2.34 has it with its threads.
        let may_be_cancelled = seldom::nexts::_pthread_cleanup_push.address() != 0;
        let unlock = seldom::nexts::funlockfile.address();
        seldom::flockfile(file.as_ptr());
        if may_be_cancelled {
            seldom::_pthread_cleanup_push(entry, unlock, file.as_ptr());
        }
        let result = does(Held::new(file));
        if may_be_cancelled {
            seldom::_pthread_cleanup_pop(entry, 0);
        }
        seldom::funlockfile(file.as_ptr());
        result
    }
}

/// What the FILE may do, as `mode` says.
pub fn set_mode(file: &mut Held, mode: Text) {
    let (reads, writes) = directions(mode);
    let flags = &mut file.fields().flags;
    *flags &= !(NO_READS | NO_WRITES);
    *flags |= if reads { 0 } else { NO_READS } | if writes { 0 } else { NO_WRITES };
}

/// A FILE of ours, which is closed so.
fn make(
    fd: c_int,
    mode: Text,
    close: extern "C-unwind" fn(Cookie) -> c_int,
) -> Option<Held<'static>> {
    let functions = Functions {
        read,
        write,
        seek,
        close,
    };
    let Some(served) = Served::take(fd) else {
        next::set_errno(libc::ENOMEM);
        return None;
    };
    let file = fopencookie(Cookie(served), mode, functions);
    if file.is_null() {
        served.leave();
        return None;
    }
    // SAFETY: just made, and nobody else has it.
    let mut made = unsafe { Held::new(file) };
    made.fields().number = fd;
    give_nothing(&mut made);
    served.file.store(file.as_ptr(), Ordering::Release);
    Some(made)
}

/// A stream, an SCTP socket, or one of which something is left that the kernel does not have?
pub fn is_ours(fd: c_int) -> bool {
    table::lookup(fd).is_some_and(|h| of_kind!(h, is_beyond_libc()))
}

/// The same, or a connection that is looked after?
fn is_known(fd: c_int) -> bool {
    is_ours(fd) || table::socket(fd).is_some_and(|h| !life::is_ours(h))
}

/// Is it a TCP socket that is nothing to us yet, and may become a connection?
fn is_to_come(fd: c_int) -> bool {
    sockets::may_connect()
        && start::wants_sockets()
        && table::lookup(fd).is_none()
        && life::is_tcp(fd)
}

/// fdopen(3) on one of them; `None`: it is none.
pub fn fdopen(fd: c_int, mode: Text) -> Option<FilePtr<'static>> {
    (is_known(fd) || is_to_come(fd)).then_some(())?;
    if !obey(fd, mode) {
        return Some(FilePtr::NULL);
    }
    let Some(mut file) = make(fd, mode, close) else {
        return Some(FilePtr::NULL);
    };
    give_buffer(&mut file, fd);
    Some(file.file())
}

/// The mode has to go with how the descriptor was opened, which becomes one that appends if the mode says so. False, with errno: it
/// does not.
pub fn obey(fd: c_int, mode: Text) -> bool {
    let flags = files::flags(fd);
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
    let appends = mode.bytes().starts_with(b"a") && flags & libc::O_APPEND == 0;
    !appends || files::set_flags(fd, flags | libc::O_APPEND) >= 0
}

/// Does the mode say that it is read, and that it is written?
fn directions(mode: Text) -> (bool, bool) {
    let both = mode.bytes().contains(&b'+');
    let reads = mode.bytes().starts_with(b"r");
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
        let n = seldom::vasprintf(&mut text, format, args);
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
pub fn standard_file<'a>(fd: c_int) -> FilePtr<'a> {
    // SAFETY: a variable of the C library's, and the FILE that the program has there.
    unsafe { FilePtr::new(standard(fd).read()) }
}

/// The C library's own, where `file` stands in its place; else `file`.
pub fn behind(fd: c_int, file: FilePtr) -> FilePtr {
    if !(0..=2).contains(&fd) || standard_file(fd) != file {
        return file;
    }
    let original = ORIGINAL[fd as usize].load(Ordering::Acquire);
    // SAFETY: what the program had there, which it has not closed.
    let original = unsafe { FilePtr::new(original) };
    if original.is_null() { file } else { original }
}

extern "C-unwind" fn stay_open(cookie: Cookie) -> c_int {
    cookie.0.leave();
    0
}

/// A number from 0 to 2 is now a stream, or no longer: `stdin`, `stdout` or `stderr` follow it. They are variables that a
/// program may set (the C library's manual, Standard Streams).
pub fn follow(fd: c_int) {
    if !(0..=2).contains(&fd) {
        return;
    }
    let (at, original) = (standard(fd), &ORIGINAL[fd as usize]);
    let stand_in = |file: *mut c_void| {
        // SAFETY: a variable of the C library's, which the program's own call changes.
        unsafe { at.replace(file) }
    };
    if !is_ours(fd) {
        let before = original.swap(null_mut(), Ordering::AcqRel);
        if !before.is_null() {
            stand_in(before);
        }
        return;
    }
    if !original.load(Ordering::Acquire).is_null() {
        return;
    }
    let mode = if fd == 0 { c"r" } else { c"w" };
    let Some(file) = make(fd, Text::of(mode), stay_open) else {
        return;
    };
    let file = file.file().as_ptr();
    if fd == 2 {
        // SAFETY: a FILE, which is to have no buffer.
        unsafe { seldom::setvbuf(file, null_mut(), UNBUFFERED, 0) };
    }
    original.store(standard_file(fd).as_ptr(), Ordering::Release);
    stand_in(file);
}
