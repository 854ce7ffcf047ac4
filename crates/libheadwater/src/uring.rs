//! io_uring. What is submitted by syscall(2) is read first: a change of an epoll set is made as if epoll_ctl(2) had been
//! called, a close as if close(2) had been, and a socket that is named goes to TCP. Where requests can't be seen (liburing's functions,
//! which make system calls of their own, and rings that the kernel polls) all sockets of the process go to the kernel, and stay there.

use core::ffi::{CStr, c_int, c_long, c_uint, c_void};

use headwater_host::counters::Reason;
use headwater_host::sync::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use headwater_host::table::Kind;
use headwater_host::{config, counters, epoll, handed, next, process, sys, table};
use headwater_sockets::life;

use crate::{files, refuse};

const SETUP_SQPOLL: u32 = 1 << 1;
const SETUP_SQE128: u32 = 1 << 10;
const SETUP_NO_MMAP: u32 = 1 << 14;
const SETUP_REGISTERED_FD_ONLY: u32 = 1 << 15;
const SETUP_NO_SQARRAY: u32 = 1 << 16;
/// What came later (6.18's last is CQE_MIXED) may lay requests out in another way.
const SETUP_KNOWN: u32 = (1 << 19) - 1;
const ENTER_REGISTERED_RING: u32 = 1 << 4;
const REGISTER_BUFFERS: c_long = 0;
const UNREGISTER_BUFFERS: c_long = 1;
const REGISTER_EVENTFD: c_long = 4;
const UNREGISTER_EVENTFD: c_long = 5;
const REGISTER_PROBE: c_long = 8;
const REQUEST_FIXED_FILE: u8 = 1 << 0;
const REQUEST_LINK: u8 = 1 << 2;
const REQUEST_HARDLINK: u8 = 1 << 3;
const OP_NOP: u8 = 0;
const OP_POLL_ADD: u8 = 6;
const OP_SENDMSG: u8 = 9;
const OP_ACCEPT: u8 = 13;
const OP_OPENAT: u8 = 18;
const OP_CLOSE: u8 = 19;
const OP_OPENAT2: u8 = 28;
const OP_EPOLL_CTL: u8 = 29;
const OP_SPLICE: u8 = 30;
const OP_TEE: u8 = 33;
const OP_SOCKET: u8 = 45;
const OP_EPOLL_WAIT: u8 = 59;
const SQES: u64 = 0x1000_0000;

/// The beginning of struct io_uring_params, as far as it says where the submissions are.
#[repr(C)]
pub struct Params {
    sq_entries: u32,
    cq_entries: u32,
    flags: u32,
    others: [u32; 7],
    head: u32,
    tail: u32,
    ring_mask: u32,
    ring_entries: u32,
    sq_flags: u32,
    dropped: u32,
    array: u32,
}

/// The beginning of struct io_uring_sqe.
#[repr(C)]
struct Request {
    opcode: u8,
    flags: u8,
    ioprio: u16,
    fd: i32,
    off: u64,
    addr: u64,
    len: u32,
    op_flags: u32,
    user_data: u64,
    buf_index: u16,
    personality: u16,
    splice_fd_in: i32,
}

/// A ring that was made by syscall(2).
struct Ring {
    /// One more than its number; 0: free.
    fd_and_one: AtomicI32,
    /// What tells it from others that have had its number.
    identity: AtomicU64,
    flags: AtomicU32,
    entries: AtomicU32,
    offsets: [AtomicU32; 4],
    /// Where the program has mapped it, once known: the ring, and the requests.
    at: [AtomicUsize; 2],
}

/// Somebody fills it.
const BUSY: i32 = -1;

/// A program has one for each of its threads or loops. Without a lock, since a signal handler may submit, and a child of fork goes on.
static RINGS: [Ring; 256] = [const {
    Ring {
        fd_and_one: AtomicI32::new(0),
        identity: AtomicU64::new(0),
        flags: AtomicU32::new(0),
        entries: AtomicU32::new(0),
        offsets: [const { AtomicU32::new(0) }; 4],
        at: [const { AtomicUsize::new(0) }; 2],
    }
}; 256];

/// All sockets go to the kernel, and stay there.
fn unseen() {
    if process::enabled() {
        counters::note(Reason::Uring);
    }
    process::never_enable();
    for (fd, _) in table::entries() {
        life::to_kernel(fd, Reason::Uring);
    }
}

/// HEADWATER_URING=refuse.
fn is_refused() -> bool {
    process::present() && config::get().uring_refused
}

/// Before io_uring_setup(2); its result if it is not to be made.
pub fn setting_up() -> Option<c_long> {
    is_refused().then(|| refuse(libc::ENOSYS))
}

/// After it. One that the kernel has refused changes nothing.
pub fn set_up(fd: c_long, params: *const Params) {
    let (Ok(fd @ 0..), false, false) = (
        c_int::try_from(fd),
        params.is_null(),
        process::is_confined(),
    ) else {
        return;
    };
    // SAFETY: the kernel has filled it.
    let p = unsafe { &*params };
    let hidden = SETUP_SQPOLL | SETUP_NO_MMAP | SETUP_REGISTERED_FD_ONLY;
    next::keep_errno(|| {
        // Its number may be an index, not a descriptor.
        if p.flags & SETUP_REGISTERED_FD_ONLY == 0 {
            files::fresh(fd);
        }
        if p.flags & (hidden | !SETUP_KNOWN) != 0 {
            unseen();
        } else {
            note(fd, p);
        }
    });
}

fn note(fd: c_int, p: &Params) {
    // What had the number before is closed.
    let before = RINGS.iter().find(|r| r.fd() == fd);
    let gone =
        |r: &&Ring| r.fd() >= 0 && handed::identity(r.fd()) != r.identity.load(Ordering::Relaxed);
    let free = || {
        RINGS
            .iter()
            .find(|r| r.fd_and_one.load(Ordering::Relaxed) == 0)
    };
    // Without one, what is submitted is not seen.
    let Some(ring) = before.or_else(free).or_else(|| RINGS.iter().find(gone)) else {
        return;
    };
    let was = ring.fd_and_one.load(Ordering::Relaxed);
    let taken = ring
        .fd_and_one
        .compare_exchange(was, BUSY, Ordering::Acquire, Ordering::Relaxed);
    if was == BUSY || taken.is_err() {
        return;
    }
    ring.identity.store(handed::identity(fd), Ordering::Relaxed);
    ring.flags.store(p.flags, Ordering::Relaxed);
    ring.entries.store(p.sq_entries, Ordering::Relaxed);
    for (to, from) in ring
        .offsets
        .iter()
        .zip([p.head, p.tail, p.ring_mask, p.array])
    {
        to.store(from, Ordering::Relaxed);
    }
    ring.at.iter().for_each(|at| at.store(0, Ordering::Relaxed));
    ring.fd_and_one.store(fd + 1, Ordering::Release);
}

/// Before io_uring_register(2): it may name any descriptors.
pub fn registering(operation: c_long) {
    let harmless = [
        REGISTER_BUFFERS,
        UNREGISTER_BUFFERS,
        REGISTER_EVENTFD,
        UNREGISTER_EVENTFD,
        REGISTER_PROBE,
    ];
    if !harmless.contains(&operation) && !process::is_confined() {
        unseen();
    }
}

/// Before io_uring_enter(2): what is submitted.
pub fn entering(fd: c_int, count: c_uint, flags: c_uint) {
    if count == 0 || !table::any_tracked() || process::is_confined() {
        return;
    }
    next::keep_errno(|| {
        let ring = RINGS.iter().find(|r| r.fd() == fd);
        match ring.filter(|r| flags & ENTER_REGISTERED_RING == 0 && r.is_found(fd)) {
            // SAFETY: mapped, and the program submits what is in it.
            Some(ring) => unsafe { ring.look(count) },
            None => unseen(),
        }
    });
}

impl Ring {
    /// Negative: none.
    fn fd(&self) -> c_int {
        match self.fd_and_one.load(Ordering::Acquire) {
            BUSY => -1,
            fd => fd - 1,
        }
    }

    fn request_size(&self) -> usize {
        match self.flags.load(Ordering::Relaxed) & SETUP_SQE128 {
            0 => 64,
            _ => 128,
        }
    }

    /// Bytes of the ring and of the requests that are looked at.
    fn sizes(&self) -> [usize; 2] {
        let entries = self.entries.load(Ordering::Relaxed) as usize;
        let [head, tail, mask, array] = self
            .offsets
            .each_ref()
            .map(|o| o.load(Ordering::Relaxed) as usize);
        let words = head.max(tail).max(mask) + 4;
        let ring = match self.flags.load(Ordering::Relaxed) & SETUP_NO_SQARRAY {
            0 => words.max(array + entries * 4),
            _ => words,
        };
        [ring, entries * self.request_size()]
    }

    /// Is it known where the program has mapped it? Each ring has an inode of its own (since Linux 5.12), which its mappings show.
    fn is_found(&self, fd: c_int) -> bool {
        if self.at.iter().all(|at| at.load(Ordering::Relaxed) != 0) {
            return true;
        }
        let inode = handed::identity(fd);
        let others = RINGS.iter().filter(|r| r.fd() >= 0 && r.fd() != fd);
        if others.clone().any(|r| handed::identity(r.fd()) == inode) {
            return false;
        }
        let sizes = self.sizes();
        each_mapping(|m| {
            let which = usize::from(m.offset == SQES);
            let fits = m.inode == inode && (which == 1 || m.offset == 0);
            if fits && m.len >= sizes[which] {
                self.at[which].store(m.start, Ordering::Relaxed);
            }
        });
        self.at.iter().all(|at| at.load(Ordering::Relaxed) != 0)
    }

    unsafe fn look(&self, count: c_uint) {
        // SAFETY: the ring's parts are where its offsets say, in what the program has mapped; what is submitted stays until it is.
        unsafe {
            let [base, requests] = self
                .at
                .each_ref()
                .map(|at| core::ptr::with_exposed_provenance_mut::<u8>(at.load(Ordering::Relaxed)));
            let [head, tail, _, array] = self
                .offsets
                .each_ref()
                .map(|o| base.add(o.load(Ordering::Relaxed) as usize).cast::<u32>());
            let (head, tail) = (head.read_volatile(), tail.read_volatile());
            let entries = self.entries.load(Ordering::Relaxed);
            let in_order = self.flags.load(Ordering::Relaxed) & SETUP_NO_SQARRAY != 0;
            let mut linked = false;
            for n in 0..count.min(tail.wrapping_sub(head)).min(entries) {
                // A power of two.
                let slot = head.wrapping_add(n) & (entries - 1);
                let i = if in_order {
                    slot
                } else {
                    array.add(slot as usize).read_volatile()
                };
                // The kernel drops what names no request.
                if i < entries {
                    let request = &mut *requests
                        .add(i as usize * self.request_size())
                        .cast::<Request>();
                    let links = request.flags & (REQUEST_LINK | REQUEST_HARDLINK) != 0;
                    serve(request, linked || links);
                    linked = links;
                }
            }
        }
    }
}

struct Mapping {
    start: usize,
    len: usize,
    offset: u64,
    inode: u64,
}

/// What /proc says of the process's mappings of rings, with little stack: a handler may be the first to submit.
fn each_mapping(mut each: impl FnMut(Mapping)) {
    let Ok(file) = sys::open(c"/proc/self/maps", libc::O_RDONLY | libc::O_CLOEXEC, 0) else {
        return;
    };
    // Longer lines name other files.
    sys::each_line::<160>(file, |line| {
        mapping(line).into_iter().for_each(&mut each);
        false
    });
    let _ = sys::close(file);
}

/// `START-END PERMISSIONS OFFSET DEVICE INODE anon_inode:[io_uring]`
fn mapping(line: &str) -> Option<Mapping> {
    let mut words = line
        .strip_suffix("anon_inode:[io_uring]")?
        .split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let hex = |word| usize::from_str_radix(word, 16).ok();
    let (start, end) = (hex(start)?, hex(end)?);
    Some(Mapping {
        start,
        len: end.checked_sub(start)?,
        offset: hex(words.nth(1)?)? as u64,
        inode: words.nth(1)?.parse().ok()?,
    })
}

/// One request, before the kernel has it. `linked`: what it does comes after another's end, or another comes after its own.
unsafe fn serve(r: &mut Request, linked: bool) {
    // SAFETY: a request as the program submits it: to send a message it points to a header; none is longer than it is.
    unsafe {
        match r.opcode {
            OP_NOP => {}
            OP_EPOLL_CTL => change_set(r),
            // A number of the ring's own files, of which there are none while requests are seen.
            _ if r.flags & REQUEST_FIXED_FILE != 0 => {}
            OP_CLOSE => close(r, linked),
            OP_EPOLL_WAIT | OP_POLL_ADD if is_set(r.fd) => {
                epoll::leave(r.fd, |fd| life::to_kernel(fd, Reason::Uring));
            }
            _ => {
                life::to_kernel(r.fd, Reason::Uring);
                if matches!(r.opcode, OP_SPLICE | OP_TEE) {
                    life::to_kernel(r.splice_fd_in, Reason::Uring);
                }
                if matches!(r.opcode, OP_ACCEPT | OP_SOCKET | OP_OPENAT | OP_OPENAT2) {
                    forget_closed();
                }
                let msg: *const libc::msghdr = core::ptr::with_exposed_provenance(r.addr as usize);
                if r.opcode == OP_SENDMSG && !msg.is_null() && (*msg).msg_controllen > 0 {
                    crate::passed::each_passed(msg, life::passing_on);
                }
            }
        }
    }
}

fn is_set(fd: c_int) -> bool {
    table::lookup(fd).is_some_and(|h| h.kind() == Kind::Epoll)
}

/// The kernel will give out a number, the lowest that is free, and nobody tells us which: what stands in the table under that
/// number was closed round us.
fn forget_closed() {
    // Not a copy of another: locks of a file go with any number of it.
    let Ok(fd) = sys::eventfd(0, libc::EFD_CLOEXEC) else {
        return;
    };
    files::fresh(fd);
    let _ = sys::close(fd);
}

/// A descriptor goes, as by close(2). Where its turn depends on others' it stays with the kernel until then.
unsafe fn close(r: &mut Request, linked: bool) {
    // SAFETY: a request, by the caller's word.
    unsafe {
        // Not a descriptor, but one of the ring's own files.
        if r.splice_fd_in != 0 || table::lookup(r.fd).is_none() || process::is_borrowed() {
            return;
        }
        if linked && table::lookup(r.fd).is_some_and(|h| h.kind() == Kind::Socket) {
            life::to_kernel(r.fd, Reason::Uring);
            files::fresh(r.fd);
        } else if files::close(r.fd) == 0 {
            clear(r);
        }
    }
}

/// It is done: what the kernel has to do is to say so.
unsafe fn clear(r: &mut Request) {
    // SAFETY: the smallest request has 64 bytes.
    unsafe {
        let (flags, user_data) = (r.flags, r.user_data);
        core::ptr::from_mut(r).cast::<u8>().write_bytes(0, 64);
        (r.flags, r.user_data, r.fd) = (flags, user_data, -1);
    }
}

/// A change of an epoll set: made here, the kernel having to say that it was done; or that it failed, in the same way.
unsafe fn change_set(r: &mut Request) {
    // SAFETY: a request, by the caller's word; its event is null or the program's.
    unsafe {
        let (ep, op, fd) = (r.fd, r.len as c_int, r.off as c_int);
        if table::lookup(ep).is_none() && table::lookup(fd).is_none() {
            return;
        }
        let event = core::ptr::with_exposed_provenance_mut(r.addr as usize);
        if epoll::ctl(ep, op, fd, event) == 0 {
            clear(r);
        } else if next::errno() == libc::ENOENT {
            // The kernel may still have what the program took out.
            epoll::take_out(ep, fd);
        }
    }
}

/// liburing's own function. A module that brings liburing may have it to itself: then it does not come after us.
fn of_liburing(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: C strings; a library that is loaded stays so while its function is called.
    unsafe {
        let next = libc::dlsym(libc::RTLD_NEXT, name.as_ptr());
        if !next.is_null() {
            return Some(next);
        }
        [c"liburing.so.2", c"liburing.so.1"]
            .iter()
            .find_map(|library| {
                let library = libc::dlopen(library.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
                if library.is_null() {
                    return None;
                }
                let found = libc::dlsym(library, name.as_ptr());
                libc::dlclose(library);
                (!found.is_null()).then_some(found)
            })
    }
}

macro_rules! liburing {
    ($($name:ident($($arg:ident: $type:ty),*);)*) => {$(
        /// liburing's: from its first ring on requests are not seen.
        ///
        /// # Safety
        #[doc = concat!("As ", stringify!($name), "(3) asks of its caller.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($arg: $type),*) -> c_int {
            const NAME: &CStr = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("name"),
            };
            let (false, Some(at)) = (is_refused(), of_liburing(NAME)) else {
                return -libc::ENOSYS;
            };
            if process::present() {
                unseen();
            }
            // SAFETY: liburing's function of this name, with the program's arguments.
            unsafe {
                let f: unsafe extern "C-unwind" fn($($type),*) -> c_int = core::mem::transmute(at);
                f($($arg),*)
            }
        }
    )*};
}

liburing! {
    io_uring_queue_init(entries: c_uint, ring: *mut c_void, flags: c_uint);
    io_uring_queue_init_params(entries: c_uint, ring: *mut c_void, params: *mut c_void);
    io_uring_queue_init_mem(entries: c_uint, ring: *mut c_void, params: *mut c_void, at: *mut c_void, size: usize);
    io_uring_queue_mmap(fd: c_int, params: *mut c_void, ring: *mut c_void);
    io_uring_setup(entries: c_uint, params: *mut c_void);
}
