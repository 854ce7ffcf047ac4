//! `<xti.h>` and `<tiuser.h>`: structures and buffers in C, and t_errno. What the calls do is in the xti crate.

use core::cell::Cell;
use core::ffi::CStr;

use headwater_endpoints::device::Device;
use headwater_endpoints::endpoint;
use headwater_host::next;
use headwater_streams::head::control::is_bad;
use headwater_tpi::{Refusal, error, prim};
use headwater_xti::calls;
use headwater_xti::{Outcome, with};
use libc::{c_char, c_int, c_uint, c_void};

mod alloc;
mod connections;
mod data;
mod text;

#[repr(C)]
pub struct NetBuf {
    maxlen: c_uint,
    len: c_uint,
    buf: *mut c_void,
}

#[repr(C)]
pub struct TBind {
    addr: NetBuf,
    qlen: c_uint,
}

#[repr(C)]
pub struct TCall {
    addr: NetBuf,
    opt: NetBuf,
    udata: NetBuf,
    sequence: c_int,
}

#[repr(C)]
pub struct TDiscon {
    udata: NetBuf,
    reason: c_int,
    sequence: c_int,
}

#[repr(C)]
pub struct TOptMgmt {
    opt: NetBuf,
    flags: c_int,
}

#[repr(C)]
pub struct TUnitData {
    addr: NetBuf,
    opt: NetBuf,
    udata: NetBuf,
}

#[repr(C)]
pub struct TUdErr {
    addr: NetBuf,
    opt: NetBuf,
    error: c_int,
}

#[repr(C)]
pub struct TInfo {
    addr: c_int,
    options: c_int,
    tsdu: c_int,
    etsdu: c_int,
    connect: c_int,
    discon: c_int,
    servtype: c_int,
    flags: c_int,
}

const T_SENDZERO: c_int = 1;

thread_local! {
    static T_ERRNO: Cell<c_int> = const { Cell::new(0) };
}

/// Where t_errno of this thread is.
#[unsafe(no_mangle)]
pub extern "C" fn _t_errno() -> *mut c_int {
    T_ERRNO.with(Cell::as_ptr)
}

/// The convention of the calls: -1, t_errno, and errno with TSYSERR.
#[inline]
fn status(r: Outcome<c_int>) -> c_int {
    r.unwrap_or_else(|e| {
        T_ERRNO.set(e.tli);
        if e.unix != 0 {
            next::set_errno(e.unix);
        }
        -1
    })
}

fn done(r: Outcome<()>) -> c_int {
    status(r.map(|()| 0))
}

fn fault<T>() -> Outcome<T> {
    Err(Refusal::system(libc::EFAULT))
}

fn overflow<T>() -> Outcome<T> {
    Err(Refusal::new(error::TBUFOVFLW))
}

impl NetBuf {
    const NONE: NetBuf = NetBuf {
        maxlen: 0,
        len: 0,
        buf: core::ptr::null_mut(),
    };

    unsafe fn bytes(&self) -> Outcome<&[u8]> {
        // SAFETY: a buffer of the caller's, as long as it says.
        unsafe {
            if self.len == 0 {
                return Ok(&[]);
            }
            if is_bad(self.buf) {
                return fault();
            }
            Ok(core::slice::from_raw_parts(
                self.buf.cast(),
                self.len as usize,
            ))
        }
    }

    unsafe fn room<'a>(&self) -> Outcome<&'a mut [u8]> {
        // SAFETY: a buffer of the caller's, as long as it says.
        unsafe {
            if self.maxlen == 0 {
                return Ok(&mut []);
            }
            if is_bad(self.buf) {
                return fault();
            }
            Ok(core::slice::from_raw_parts_mut(
                self.buf.cast(),
                self.maxlen as usize,
            ))
        }
    }

    /// Fills it; false if it is too small. A buffer without room is not wanted.
    unsafe fn fill(&mut self, bytes: &[u8]) -> bool {
        self.len = 0;
        if self.maxlen == 0 {
            return true;
        }
        if bytes.len() > self.maxlen as usize || is_bad(self.buf) {
            return bytes.is_empty();
        }
        // SAFETY: the program's room for `maxlen` bytes, of which these are no more.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), self.buf.cast(), bytes.len()) };
        self.len = bytes.len() as c_uint;
        true
    }
}

/// A structure that the caller must give.
unsafe fn given<'a, T>(p: *const T) -> Outcome<&'a T> {
    if is_bad(p) {
        return fault();
    }
    // SAFETY: a structure of the program's, by the caller's word.
    Ok(unsafe { &*p })
}

unsafe fn given_mut<'a, T>(p: *mut T) -> Outcome<&'a mut T> {
    if is_bad(p) {
        return fault();
    }
    // SAFETY: a structure of the program's, by the caller's word, which nobody else uses during a call.
    Ok(unsafe { &mut *p })
}

/// One that may be null.
unsafe fn optional<'a, T>(p: *mut T) -> Outcome<Option<&'a mut T>> {
    if p.is_null() {
        return Ok(None);
    }
    // SAFETY: not null, and so a structure of the program's.
    unsafe { given_mut(p) }.map(Some)
}

impl TInfo {
    fn set(&mut self, i: &headwater_tpi::Info) {
        *self = TInfo {
            addr: i.addr,
            options: i.opt,
            tsdu: i.tsdu,
            etsdu: i.etsdu,
            connect: i.cdata,
            discon: i.ddata,
            servtype: i.serv,
            flags: if i.provider_flag & prim::SENDZERO != 0 {
                T_SENDZERO
            } else {
                0
            },
        };
    }
}

unsafe fn open(path: *const c_char, oflag: c_int, info: *mut TInfo) -> Outcome<c_int> {
    if is_bad(path) {
        return fault();
    }
    // SAFETY: the program's string.
    let path = unsafe { CStr::from_ptr(path) };
    let Some(device) = Device::find(path.to_bytes()) else {
        text::name_devices(path);
        return Err(Refusal {
            tli: error::TBADNAME,
            unix: libc::ENOENT,
        });
    };
    let known = libc::O_RDWR | libc::O_NONBLOCK | libc::O_CLOEXEC;
    if oflag & libc::O_ACCMODE != libc::O_RDWR || oflag & !known != 0 {
        return Err(Refusal::new(error::TBADFLAG));
    }
    if !crate::start::streams() {
        return Err(Refusal::system(libc::ENOSYS));
    }
    // SAFETY: null or the program's structure.
    let info = unsafe { optional(info) }?;
    let fd = endpoint::open(device, oflag)?;
    if let Some(info) = info {
        info.set(&with(fd, |p| p.info())?);
    }
    Ok(fd)
}

/// # Safety
/// As t_open(3) asks of its caller: `path` is a string, and `info` is null or has room for what is told.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_open(
    path: *const c_char,
    oflag: c_int,
    info: *mut TInfo,
) -> c_int {
    // SAFETY: the program's string and its structure.
    unsafe { status(open(path, oflag, info)) }
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn t_close(fd: c_int) -> c_int {
    // With tirdwr on it there is only this call left.
    let known = with(fd, |_| Ok(())).or_else(|e| match headwater_xti::is_transport(fd) {
        true => Ok(()),
        false => Err(e),
    });
    done(known.map(|()| {
        crate::files::close(fd);
    }))
}

/// # Safety
/// As t_getinfo(3) asks of its caller: what is not null is whole, and its buffers are as long as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_getinfo(fd: c_int, info: *mut TInfo) -> c_int {
    // SAFETY: the program's structures, null or whole, and their buffers.
    unsafe {
        done(with(fd, |p| {
            given_mut(info)?.set(&p.info()?);
            Ok(())
        }))
    }
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn t_getstate(fd: c_int) -> c_int {
    status(with(fd, |p| p.state()))
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn t_sync(fd: c_int) -> c_int {
    status(headwater_xti::syncing(fd, calls::sync))
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn t_look(fd: c_int) -> c_int {
    status(with(fd, calls::look))
}

/// # Safety
/// As t_bind(3) asks of its caller: what is not null is whole, and its buffers are as long as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_bind(fd: c_int, req: *const TBind, ret: *mut TBind) -> c_int {
    // SAFETY: the program's structures, null or whole, and their buffers.
    unsafe {
        done(with(fd, |p| {
            let ret = optional(ret)?;
            let (addr, qlen) = match optional(req.cast_mut())? {
                Some(req) => (Some(req.addr.bytes()?), req.qlen),
                None => (None, 0),
            };
            let (bound, granted) = calls::bind(p, addr, qlen)?;
            let Some(ret) = ret else { return Ok(()) };
            ret.qlen = granted;
            if ret.addr.fill(&bound) {
                Ok(())
            } else {
                overflow()
            }
        }))
    }
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn t_unbind(fd: c_int) -> c_int {
    done(with(fd, calls::unbind))
}

/// # Safety
/// As t_getprotaddr(3) asks of its caller: what is not null is whole, and its buffers are as long as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_getprotaddr(
    fd: c_int,
    bound: *mut TBind,
    peer: *mut TBind,
) -> c_int {
    // SAFETY: the program's structures, null or whole, and their buffers.
    unsafe {
        done(with(fd, |p| {
            let parts = [
                (optional(bound)?, p.local()?),
                (optional(peer)?, p.remote()?),
            ];
            for (to, addr) in parts {
                if let Some(to) = to
                    && !to.addr.fill(&addr.unwrap_or_default())
                {
                    return overflow();
                }
            }
            Ok(())
        }))
    }
}

/// TLI's way to ask for one of the two addresses.
///
/// # Safety
/// As t_getname(3) asks of its caller: what is not null is whole, and its buffers are as long as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_getname(fd: c_int, name: *mut NetBuf, which: c_int) -> c_int {
    // SAFETY: the program's structures, null or whole, and their buffers.
    unsafe {
        const LOCALNAME: c_int = 0;
        const REMOTENAME: c_int = 1;
        done(with(fd, |p| {
            let name = given_mut(name)?;
            name.room()?;
            let addr = match which {
                LOCALNAME => p.local()?,
                REMOTENAME => p.remote()?,
                _ => return Err(Refusal::new(error::TBADFLAG)),
            };
            let addr = addr.unwrap_or_default();
            if addr.len() > name.maxlen as usize || !name.fill(&addr) {
                return overflow();
            }
            Ok(())
        }))
    }
}

/// # Safety
/// As t_optmgmt(3) asks of its caller: what is not null is whole, and its buffers are as long as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_optmgmt(
    fd: c_int,
    req: *const TOptMgmt,
    ret: *mut TOptMgmt,
) -> c_int {
    // SAFETY: the program's structures, null or whole, and their buffers.
    unsafe {
        done(with(fd, |p| {
            let req = given(req)?;
            let ret = given_mut(ret)?;
            let (flags, list) = calls::optmgmt(p, req.flags, req.opt.bytes()?)?;
            ret.flags = flags;
            if ret.opt.fill(&list) {
                Ok(())
            } else {
                overflow()
            }
        }))
    }
}
