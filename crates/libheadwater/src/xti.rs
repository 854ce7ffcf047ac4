//! `<xti.h>` and `<tiuser.h>`: structures and buffers in C, and t_errno. What the calls do is in the xti crate.

use core::cell::Cell;

use headwater_endpoints::device::Device;
use headwater_endpoints::endpoint;
use headwater_host::next;
use headwater_tpi::{Refusal, error, prim};
use headwater_xti::calls;
use headwater_xti::{Outcome, with};
use libc::{c_int, c_uint};

use crate::given::{Given, Place, Text};
use crate::netbuf::{Fault, NetBuf};

mod alloc;
mod connections;
mod data;
mod text;

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
    noted(r).unwrap_or(-1)
}

#[inline]
pub fn noted<T>(r: Outcome<T>) -> Outcome<T> {
    r.inspect_err(|e| {
        T_ERRNO.set(e.tli);
        if e.unix != 0 {
            next::set_errno(e.unix);
        }
    })
}

fn done(r: Outcome<()>) -> c_int {
    status(r.map(|()| 0))
}

fn fault<T>() -> Outcome<T> {
    Err(Refusal::system(libc::EFAULT))
}

impl From<Fault> for Refusal {
    fn from(_: Fault) -> Refusal {
        Refusal::system(libc::EFAULT)
    }
}

fn fits(all: bool) -> Outcome<()> {
    all.then_some(()).ok_or(Refusal::new(error::TBUFOVFLW))
}

/// A structure that the caller must give.
fn given<T>(p: Given<'_, T>) -> Outcome<&T> {
    Ok(p.get().ok_or(Fault)?)
}

fn place<T>(p: Place<'_, T>) -> Outcome<&mut T> {
    Ok(p.get().ok_or(Fault)?)
}

/// One that may be null.
fn optional<T>(p: Place<'_, T>) -> Outcome<Option<&mut T>> {
    match p.is_null() {
        true => Ok(None),
        false => place(p).map(Some),
    }
}

/// One that may be null, and is only read.
fn optionally_given<T>(p: Given<'_, T>) -> Outcome<Option<&T>> {
    match p.is_null() {
        true => Ok(None),
        false => given(p).map(Some),
    }
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

fn open(path: Text, oflag: c_int, info: Place<TInfo>) -> Outcome<c_int> {
    let path = path.get().ok_or(Fault)?;
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
    let info = optional(info)?;
    let fd = endpoint::open(device, oflag)?;
    if let Some(info) = info {
        info.set(&with(fd, |p| p.info())?);
    }
    Ok(fd)
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn t_open(path: Text, oflag: c_int, info: Place<TInfo>) -> c_int {
    status(open(path, oflag, info))
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

#[unsafe(no_mangle)]
pub extern "C-unwind" fn t_getinfo(fd: c_int, info: Place<TInfo>) -> c_int {
    done(with(fd, |p| {
        place(info)?.set(&p.info()?);
        Ok(())
    }))
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

#[unsafe(no_mangle)]
pub extern "C-unwind" fn t_bind(fd: c_int, req: Given<TBind>, ret: Place<TBind>) -> c_int {
    done(with(fd, |p| {
        let ret = optional(ret)?;
        let (addr, qlen) = match optionally_given(req)? {
            Some(req) => (Some(req.addr.bytes()?), req.qlen),
            None => (None, 0),
        };
        let (bound, granted) = calls::bind(p, addr, qlen)?;
        let Some(ret) = ret else { return Ok(()) };
        ret.qlen = granted;
        fits(ret.addr.fill(&bound))
    }))
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn t_unbind(fd: c_int) -> c_int {
    done(with(fd, calls::unbind))
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn t_getprotaddr(
    fd: c_int,
    bound: Place<TBind>,
    peer: Place<TBind>,
) -> c_int {
    done(with(fd, |p| {
        let parts = [
            (optional(bound)?, p.local()?),
            (optional(peer)?, p.remote()?),
        ];
        for (to, addr) in parts {
            if let Some(to) = to {
                fits(to.addr.fill(&addr.unwrap_or_default()))?;
            }
        }
        Ok(())
    }))
}

/// TLI's way to ask for one of the two addresses.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn t_getname(fd: c_int, name: Place<NetBuf>, which: c_int) -> c_int {
    const LOCALNAME: c_int = 0;
    const REMOTENAME: c_int = 1;
    done(with(fd, |p| {
        let name = place(name)?;
        name.room()?;
        let addr = match which {
            LOCALNAME => p.local()?,
            REMOTENAME => p.remote()?,
            _ => return Err(Refusal::new(error::TBADFLAG)),
        };
        let addr = addr.unwrap_or_default();
        fits(addr.len() <= name.maxlen() && name.fill(&addr))
    }))
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn t_optmgmt(fd: c_int, req: Given<TOptMgmt>, ret: Place<TOptMgmt>) -> c_int {
    done(with(fd, |p| {
        let req = given(req)?;
        let ret = place(ret)?;
        let (flags, list) = calls::optmgmt(p, req.flags, req.opt.bytes()?)?;
        ret.flags = flags;
        fits(ret.opt.fill(&list))
    }))
}
