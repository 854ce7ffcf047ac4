//! io_uring. What is submitted by syscall(2) is read first: a change of an epoll set is made as if epoll_ctl(2) had been
//! called, and a socket that is named goes to TCP. Where requests can't be seen (liburing's functions, which make system calls
//! of their own, and rings that the kernel polls) all sockets of the process go to the kernel, and stay there.

use core::ffi::{CStr, c_int, c_long, c_uint, c_void};
use std::sync::Mutex;

use headwater_host::counters::Reason;
use headwater_host::{config, counters, epoll, next, process, table};
use headwater_sockets::life;

const SETUP_SQPOLL: u32 = 1 << 1;
const SETUP_SQE128: u32 = 1 << 10;
const SETUP_NO_MMAP: u32 = 1 << 14;
const SETUP_NO_SQARRAY: u32 = 1 << 16;
const ENTER_REGISTERED_RING: u32 = 1 << 4;
const REGISTER_BUFFERS: c_long = 0;
const UNREGISTER_BUFFERS: c_long = 1;
const REGISTER_EVENTFD: c_long = 4;
const UNREGISTER_EVENTFD: c_long = 5;
const REGISTER_PROBE: c_long = 8;
const OP_NOP: u8 = 0;
const OP_SENDMSG: u8 = 9;
const OP_EPOLL_CTL: u8 = 29;
const OP_SPLICE: u8 = 30;
const OP_TEE: u8 = 33;
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
#[derive(Clone, Copy)]
struct Ring {
    fd: c_int,
    flags: u32,
    offsets: [u32; 4],
    /// Where the program has mapped it, once known: the ring, and the requests.
    at: [usize; 2],
}

static RINGS: Mutex<Vec<Ring>> = Mutex::new(Vec::new());

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
pub fn setting_up(params: *const Params) -> Option<c_long> {
    if is_refused() {
        next::set_errno(libc::ENOSYS);
        return Some(-1);
    }
    // SAFETY: the program's argument, if it is one.
    let flags = unsafe { params.as_ref() }.map_or(0, |p| p.flags);
    if flags & (SETUP_SQPOLL | SETUP_NO_MMAP) != 0 {
        unseen();
    }
    None
}

/// After it.
pub fn set_up(fd: c_long, params: *const Params) {
    let (Ok(fd), false) = (c_int::try_from(fd), params.is_null()) else {
        return;
    };
    if fd < 0 {
        return;
    }
    crate::files::fresh(fd);
    // SAFETY: the kernel has filled it.
    let p = unsafe { &*params };
    let ring = Ring {
        fd,
        flags: p.flags,
        offsets: [p.head, p.tail, p.ring_mask, p.array],
        at: [0; 2],
    };
    if let Ok(mut rings) = RINGS.lock() {
        // What had the number before is closed.
        rings.retain(|r| r.fd != fd);
        rings.push(ring);
    }
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
    if !harmless.contains(&operation) {
        unseen();
    }
}

/// Before io_uring_enter(2): what is submitted.
pub fn entering(fd: c_int, count: c_uint, flags: c_uint) {
    if count == 0 || !table::any_tracked() {
        return;
    }
    let errno = next::errno();
    match (flags & ENTER_REGISTERED_RING == 0)
        .then(|| mapped(fd))
        .flatten()
    {
        // SAFETY: mapped, and the program submits what is in it.
        Some(ring) => unsafe { look(&ring, count) },
        None => unseen(),
    }
    next::set_errno(errno);
}

/// The ring with the places where the program has mapped it.
fn mapped(fd: c_int) -> Option<Ring> {
    let mut rings = RINGS.lock().ok()?;
    let i = rings.iter().position(|r| r.fd == fd)?;
    if rings[i].at[0] == 0 {
        let taken = |at: &usize| rings.iter().any(|r| r.at.contains(at));
        let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
        let mut at = [0; 2];
        for line in maps
            .lines()
            .filter(|l| l.ends_with("anon_inode:[io_uring]"))
        {
            let mut words = line.split_ascii_whitespace();
            let start = words.next()?.split('-').next()?;
            let start = usize::from_str_radix(start, 16).ok()?;
            let offset = u64::from_str_radix(words.nth(1)?, 16).ok()?;
            let which = match offset {
                0 => 0,
                SQES => 1,
                _ => continue,
            };
            if taken(&start) {
                continue;
            }
            if at[which] != 0 {
                // Two rings of which nothing was submitted yet.
                return None;
            }
            at[which] = start;
        }
        if at.contains(&0) {
            return None;
        }
        rings[i].at = at;
    }
    Some(rings[i])
}

unsafe fn look(ring: &Ring, count: c_uint) {
    let base = core::ptr::with_exposed_provenance_mut::<u8>(ring.at[0]);
    let requests = core::ptr::with_exposed_provenance_mut::<u8>(ring.at[1]);
    let [head, tail, mask, array] = ring.offsets.map(|o| base.add(o as usize).cast::<u32>());
    let (head, tail, mask) = (head.read_volatile(), tail.read_volatile(), mask.read());
    let size = if ring.flags & SETUP_SQE128 != 0 {
        128
    } else {
        64
    };
    for n in 0..count.min(tail.wrapping_sub(head)) {
        let slot = head.wrapping_add(n) & mask;
        let i = if ring.flags & SETUP_NO_SQARRAY != 0 {
            slot
        } else {
            array.add(slot as usize).read_volatile() & mask
        };
        serve(&mut *requests.add(i as usize * size).cast::<Request>());
    }
}

/// One request, before the kernel has it.
unsafe fn serve(r: &mut Request) {
    match r.opcode {
        OP_NOP => {}
        OP_EPOLL_CTL => change_set(r),
        _ => {
            life::to_kernel(r.fd, Reason::Uring);
            if matches!(r.opcode, OP_SPLICE | OP_TEE) {
                life::to_kernel(r.splice_fd_in, Reason::Uring);
            }
            let msg: *const libc::msghdr = core::ptr::with_exposed_provenance(r.addr as usize);
            if r.opcode == OP_SENDMSG && !msg.is_null() && (*msg).msg_controllen > 0 {
                crate::process::before_passing(msg);
            }
        }
    }
}

/// A change of an epoll set: made here, the kernel having to say that it was done; or that it failed, in the same way.
unsafe fn change_set(r: &mut Request) {
    let (ep, op, fd) = (r.fd, r.len as c_int, r.off as c_int);
    if table::lookup(ep).is_none() && table::lookup(fd).is_none() {
        return;
    }
    let event = core::ptr::with_exposed_provenance_mut(r.addr as usize);
    if epoll::ctl(ep, op, fd, event) == 0 {
        let (flags, user_data) = (r.flags, r.user_data);
        core::ptr::from_mut(r).cast::<u8>().write_bytes(0, 64);
        (r.flags, r.user_data, r.fd) = (flags, user_data, -1);
    } else if next::errno() == libc::ENOENT {
        // The kernel may still have what the program took out.
        epoll::take_out(ep, fd);
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
            let f: unsafe extern "C-unwind" fn($($type),*) -> c_int = core::mem::transmute(at);
            f($($arg),*)
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
