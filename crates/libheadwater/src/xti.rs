//! `<xti.h>` and `<tiuser.h>`: structures and buffers in C, and t_errno. What the calls do is in the xti crate.

use core::cell::Cell;
use core::ffi::CStr;

use headwater_endpoints::device::Device;
use headwater_endpoints::endpoint;
use headwater_host::next;
use headwater_providers::provider::Datagram;
use headwater_streams::head::control::is_bad;
use headwater_tpi::state::Call;
use headwater_tpi::{Refusal, error, prim};
use headwater_xti::calls::{self, Connection};
use headwater_xti::{Outcome, Port, with};
use libc::{c_char, c_int, c_uint, c_void, iovec};

mod alloc;
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
/// Room for an address or a list of options that the caller does not want.
const UNWANTED: usize = 2048;

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

    unsafe fn room<'a>(&self) -> Outcome<&'a mut [u8]> {
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

    /// Fills it; false if it is too small. A buffer without room is not wanted.
    unsafe fn fill(&mut self, bytes: &[u8]) -> bool {
        self.len = 0;
        if self.maxlen == 0 {
            return true;
        }
        if bytes.len() > self.maxlen as usize || is_bad(self.buf) {
            return bytes.is_empty();
        }
        core::ptr::copy_nonoverlapping(bytes.as_ptr(), self.buf.cast(), bytes.len());
        self.len = bytes.len() as c_uint;
        true
    }
}

/// A structure that the caller must give.
unsafe fn given<'a, T>(p: *const T) -> Outcome<&'a T> {
    if is_bad(p) { fault() } else { Ok(&*p) }
}

unsafe fn given_mut<'a, T>(p: *mut T) -> Outcome<&'a mut T> {
    if is_bad(p) { fault() } else { Ok(&mut *p) }
}

/// One that may be null.
unsafe fn optional<'a, T>(p: *mut T) -> Outcome<Option<&'a mut T>> {
    if p.is_null() {
        return Ok(None);
    }
    given_mut(p).map(Some)
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
    let path = CStr::from_ptr(path);
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
pub unsafe extern "C-unwind" fn t_open(
    path: *const c_char,
    oflag: c_int,
    info: *mut TInfo,
) -> c_int {
    status(open(path, oflag, info))
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_close(fd: c_int) -> c_int {
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
pub unsafe extern "C-unwind" fn t_getinfo(fd: c_int, info: *mut TInfo) -> c_int {
    done(with(fd, |p| {
        given_mut(info)?.set(&p.info()?);
        Ok(())
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_getstate(fd: c_int) -> c_int {
    status(with(fd, |p| p.state()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_sync(fd: c_int) -> c_int {
    status(headwater_xti::syncing(fd, calls::sync))
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_look(fd: c_int) -> c_int {
    status(with(fd, calls::look))
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_bind(fd: c_int, req: *const TBind, ret: *mut TBind) -> c_int {
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

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_unbind(fd: c_int) -> c_int {
    done(with(fd, calls::unbind))
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_getprotaddr(
    fd: c_int,
    bound: *mut TBind,
    peer: *mut TBind,
) -> c_int {
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

/// TLI's way to ask for one of the two addresses.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_getname(fd: c_int, name: *mut NetBuf, which: c_int) -> c_int {
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

/// What t_listen, t_connect and t_rcvconnect give.
unsafe fn fill_call(call: &mut TCall, c: &Connection) -> Outcome<()> {
    call.sequence = c.seq;
    let parts = [
        (&mut call.addr, &c.addr),
        (&mut call.opt, &c.opts),
        (&mut call.udata, &c.data),
    ];
    let mut fits = true;
    for (to, bytes) in parts {
        fits &= to.fill(bytes);
    }
    if fits { Ok(()) } else { overflow() }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_listen(fd: c_int, call: *mut TCall) -> c_int {
    done(with(fd, |p| {
        let call = given_mut(call)?;
        fill_call(call, &calls::listen(p)?)
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_accept(fd: c_int, resfd: c_int, call: *const TCall) -> c_int {
    done(with(fd, |p| {
        let call = given(call)?;
        let (opts, data) = (call.opt.bytes()?, call.udata.bytes()?);
        let ours = p.endpoint().map(core::ptr::from_ref);
        let accept = |on: &dyn Port| {
            // A copy of the descriptor is the same endpoint.
            let same = fd == resfd || ours == on.endpoint().map(core::ptr::from_ref);
            calls::accept(p, on, same, call.sequence, opts, data)
        };
        with(resfd, accept)
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_connect(
    fd: c_int,
    sent: *const TCall,
    received: *mut TCall,
) -> c_int {
    done(with(fd, |p| {
        let sent = given(sent)?;
        let received = optional(received)?;
        let (to, opts, data) = (sent.addr.bytes()?, sent.opt.bytes()?, sent.udata.bytes()?);
        let confirmed = calls::connect(p, to, opts, data)?;
        received.map_or(Ok(()), |call| fill_call(call, &confirmed))
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_rcvconnect(fd: c_int, call: *mut TCall) -> c_int {
    done(with(fd, |p| {
        let call = optional(call)?;
        let confirmed = calls::rcvconnect(p)?;
        call.map_or(Ok(()), |call| fill_call(call, &confirmed))
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_rcvdis(fd: c_int, discon: *mut TDiscon) -> c_int {
    done(with(fd, |p| {
        let discon = optional(discon)?;
        let d = calls::rcvdis(p)?;
        let Some(discon) = discon else { return Ok(()) };
        discon.reason = d.reason;
        discon.sequence = d.seq;
        if discon.udata.fill(&d.data) {
            Ok(())
        } else {
            overflow()
        }
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_snddis(fd: c_int, call: *const TCall) -> c_int {
    done(with(fd, |p| match optional(call.cast_mut())? {
        Some(call) => calls::snddis(p, Some(call.sequence), call.udata.bytes()?),
        None => calls::snddis(p, None, &[]),
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_sndrel(fd: c_int) -> c_int {
    done(with(fd, |p| calls::sndrel(p, Call::SndRel, &[])))
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_sndreldata(fd: c_int, discon: *const TDiscon) -> c_int {
    done(with(fd, |p| {
        let discon = optional(discon.cast_mut())?;
        let data = discon.map_or(Ok(&[][..]), |d| d.udata.bytes())?;
        calls::sndrel(p, Call::SndRelData, data)
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_rcvrel(fd: c_int) -> c_int {
    done(with(fd, |p| calls::rcvrel(p, Call::RcvRel).map(drop)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_rcvreldata(fd: c_int, discon: *mut TDiscon) -> c_int {
    done(with(fd, |p| {
        let discon = optional(discon)?;
        let data = calls::rcvrel(p, Call::RcvRelData)?;
        let Some(discon) = discon else { return Ok(()) };
        discon.reason = 0;
        discon.sequence = -1;
        if discon.udata.fill(&data) {
            Ok(())
        } else {
            overflow()
        }
    }))
}

fn part(buf: *mut c_void, len: c_uint) -> iovec {
    iovec {
        iov_base: buf,
        iov_len: len as usize,
    }
}

/// The vector of the calls with a v; TBADDATA for none or too many.
unsafe fn vector<'a>(iov: *const iovec, n: c_uint) -> Outcome<&'a [iovec]> {
    if n == 0 || n as usize > calls::T_IOV_MAX {
        return Err(Refusal::new(error::TBADDATA));
    }
    if is_bad(iov) {
        return fault();
    }
    let iov = core::slice::from_raw_parts(iov, n as usize);
    let total = iov
        .iter()
        .try_fold(0usize, |sum, v| sum.checked_add(v.iov_len));
    match total {
        Some(total) if total <= c_int::MAX as usize => {}
        _ => return Err(Refusal::new(error::TBADDATA)),
    }
    if iov.iter().any(|v| v.iov_len > 0 && is_bad(v.iov_base)) {
        return fault();
    }
    Ok(iov)
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_snd(
    fd: c_int,
    buf: *const c_void,
    n: c_uint,
    flags: c_int,
) -> c_int {
    status(with(fd, |p| {
        if n > 0 && is_bad(buf) {
            return fault();
        }
        // What is sent must be an int.
        let most = n.min(c_int::MAX as c_uint);
        calls::snd(p, &[part(buf.cast_mut(), most)], flags).map(|n| n as c_int)
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_sndv(
    fd: c_int,
    iov: *const iovec,
    n: c_uint,
    flags: c_int,
) -> c_int {
    status(with(fd, |p| {
        calls::snd(p, vector(iov, n)?, flags).map(|n| n as c_int)
    }))
}

unsafe fn rcv(p: &dyn Port, into: &[iovec], flags: *mut c_int) -> Outcome<c_int> {
    if is_bad(flags) {
        return fault();
    }
    let (n, said) = calls::rcv(p, into)?;
    *flags = said;
    Ok(n as c_int)
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_rcv(
    fd: c_int,
    buf: *mut c_void,
    n: c_uint,
    flags: *mut c_int,
) -> c_int {
    status(with(fd, |p| {
        if n > 0 && is_bad(buf) {
            return fault();
        }
        rcv(p, &[part(buf, n)], flags)
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_rcvv(
    fd: c_int,
    iov: *mut iovec,
    n: c_uint,
    flags: *mut c_int,
) -> c_int {
    status(with(fd, |p| rcv(p, vector(iov, n)?, flags)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_sndudata(fd: c_int, unit: *const TUnitData) -> c_int {
    done(with(fd, |p| {
        let unit = given(unit)?;
        unit.udata.bytes()?;
        let data = [part(unit.udata.buf, unit.udata.len)];
        calls::sndudata(p, unit.addr.bytes()?, unit.opt.bytes()?, &data)
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_sndvudata(
    fd: c_int,
    unit: *const TUnitData,
    iov: *const iovec,
    n: c_uint,
) -> c_int {
    done(with(fd, |p| {
        let unit = given(unit)?;
        calls::sndudata(p, unit.addr.bytes()?, unit.opt.bytes()?, vector(iov, n)?)
    }))
}

/// Receives into `data`; says how much.
unsafe fn rcvudata(
    p: &dyn Port,
    unit: &mut TUnitData,
    data: &[iovec],
    flags: *mut c_int,
) -> Outcome<usize> {
    if is_bad(flags) {
        return fault();
    }
    let mut unwanted = [0u8; UNWANTED];
    let (unwanted_addr, unwanted_opts) = unwanted.split_at_mut(UNWANTED / 2);
    let (mut addr, mut opts) = (unwanted_addr, unwanted_opts);
    if unit.addr.maxlen > 0 {
        addr = unit.addr.room()?;
    }
    if unit.opt.maxlen > 0 {
        opts = unit.opt.room()?;
    }
    let mut d = Datagram {
        addr,
        opts,
        data,
        addr_len: 0,
        opts_len: 0,
        data_len: 0,
        more: false,
    };
    calls::rcvudata(p, &mut d)?;
    let (addr, opts, n, more) = (d.addr_len, d.opts_len, d.data_len, d.more);
    unit.addr.len = if unit.addr.maxlen == 0 {
        0
    } else {
        addr as c_uint
    };
    unit.opt.len = if unit.opt.maxlen == 0 {
        0
    } else {
        opts as c_uint
    };
    *flags = if more { calls::T_MORE } else { 0 };
    Ok(n)
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_rcvudata(
    fd: c_int,
    unit: *mut TUnitData,
    flags: *mut c_int,
) -> c_int {
    done(with(fd, |p| {
        let unit = given_mut(unit)?;
        unit.udata.room()?;
        let data = [part(unit.udata.buf, unit.udata.maxlen)];
        unit.udata.len = rcvudata(p, unit, &data, flags)? as c_uint;
        Ok(())
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_rcvvudata(
    fd: c_int,
    unit: *mut TUnitData,
    iov: *mut iovec,
    n: c_uint,
    flags: *mut c_int,
) -> c_int {
    status(with(fd, |p| {
        let unit = given_mut(unit)?;
        rcvudata(p, unit, vector(iov, n)?, flags).map(|n| n as c_int)
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_rcvuderr(fd: c_int, uderr: *mut TUdErr) -> c_int {
    done(with(fd, |p| {
        let uderr = optional(uderr)?;
        let e = calls::rcvuderr(p)?;
        let Some(to) = uderr else { return Ok(()) };
        to.error = e.error;
        if to.addr.fill(&e.addr) & to.opt.fill(&e.opts) {
            Ok(())
        } else {
            overflow()
        }
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_optmgmt(
    fd: c_int,
    req: *const TOptMgmt,
    ret: *mut TOptMgmt,
) -> c_int {
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
