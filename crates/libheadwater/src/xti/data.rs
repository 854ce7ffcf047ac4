//! Data, on connections and without them.

use headwater_host::sys::buffer;
use headwater_providers::provider::Datagram;
use headwater_sockets::buffers::length;
use headwater_streams::head::is_bad;
use headwater_tpi::{Refusal, error};
use headwater_xti::calls;
use headwater_xti::{Outcome, Port, with};
use libc::{c_int, c_uint, c_void, iovec};

use super::{TUdErr, TUnitData, done, fault, fits, given, optional, place, status};
use crate::given::{Given, Place};
use crate::netbuf::NetBuf;

/// Room for an address or a list of options that the caller does not want.
const UNWANTED: usize = 1024;

/// The vector of the calls with a v; TBADDATA for none or too many.
unsafe fn vector<'a>(iov: *const iovec, n: c_uint) -> Outcome<&'a [iovec]> {
    if n == 0 || n as usize > calls::T_IOV_MAX {
        return Err(Refusal::new(error::TBADDATA));
    }
    if is_bad(iov) {
        return fault();
    }
    // SAFETY: as many of the program's, by the caller's word.
    let iov = unsafe { core::slice::from_raw_parts(iov, n as usize) };
    if length(iov) > c_int::MAX as usize {
        return Err(Refusal::new(error::TBADDATA));
    }
    if iov.iter().any(|v| v.iov_len > 0 && is_bad(v.iov_base)) {
        return fault();
    }
    Ok(iov)
}

/// # Safety
/// As t_snd(3) asks of its caller: `buf` has `n` bytes.
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
        calls::snd(p, &[buffer(buf, most as usize)], flags).map(|n| n as c_int)
    }))
}

/// # Safety
/// As t_sndv(3) asks of its caller: `n` buffers.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_sndv(
    fd: c_int,
    iov: *const iovec,
    n: c_uint,
    flags: c_int,
) -> c_int {
    status(with(fd, |p| {
        // SAFETY: the program's buffers.
        let data = unsafe { vector(iov, n) }?;
        calls::snd(p, data, flags).map(|n| n as c_int)
    }))
}

fn rcv(p: &dyn Port, into: &[iovec], flags: Place<c_int>) -> Outcome<c_int> {
    let flags = place(flags)?;
    let (n, said) = calls::rcv(p, into)?;
    *flags = said;
    Ok(n as c_int)
}

/// # Safety
/// As t_rcv(3) asks of its caller: `buf` has room for `n` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_rcv(
    fd: c_int,
    buf: *mut c_void,
    n: c_uint,
    flags: Place<c_int>,
) -> c_int {
    status(with(fd, |p| {
        if n > 0 && is_bad(buf) {
            return fault();
        }
        rcv(p, &[buffer(buf, n as usize)], flags)
    }))
}

/// # Safety
/// As t_rcvv(3) asks of its caller: `n` buffers.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_rcvv(
    fd: c_int,
    iov: *mut iovec,
    n: c_uint,
    flags: Place<c_int>,
) -> c_int {
    // SAFETY: the program's buffers.
    status(with(fd, |p| rcv(p, unsafe { vector(iov, n) }?, flags)))
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn t_sndudata(fd: c_int, unit: Given<TUnitData>) -> c_int {
    done(with(fd, |p| {
        let unit = given(unit)?;
        unit.udata.bytes()?;
        let data = [unit.udata.sent()];
        calls::sndudata(p, unit.addr.bytes()?, unit.opt.bytes()?, &data)
    }))
}

/// # Safety
/// As t_sndvudata(3) asks of its caller: `n` buffers.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_sndvudata(
    fd: c_int,
    unit: Given<TUnitData>,
    iov: *const iovec,
    n: c_uint,
) -> c_int {
    done(with(fd, |p| {
        let unit = given(unit)?;
        // SAFETY: the program's buffers.
        let data = unsafe { vector(iov, n) }?;
        calls::sndudata(p, unit.addr.bytes()?, unit.opt.bytes()?, data)
    }))
}

fn wanted<'a>(
    netbuf: &'a mut NetBuf,
    otherwise: &'a mut Option<[u8; UNWANTED]>,
) -> Outcome<&'a mut [u8]> {
    match netbuf.room()? {
        [] => Ok(otherwise.get_or_insert([0; UNWANTED])),
        room => Ok(room),
    }
}

/// Receives into `data`; says how much.
fn rcvudata(
    p: &dyn Port,
    unit: &mut TUnitData,
    data: &[iovec],
    flags: Place<c_int>,
) -> Outcome<usize> {
    let flags = place(flags)?;
    let (mut unwanted_addr, mut unwanted_opts) = (None, None);
    let mut d = Datagram {
        addr: wanted(&mut unit.addr, &mut unwanted_addr)?,
        opts: wanted(&mut unit.opt, &mut unwanted_opts)?,
        data,
        addr_len: 0,
        opts_len: 0,
        data_len: 0,
        more: false,
    };
    calls::rcvudata(p, &mut d)?;
    let (addr, opts, n, more) = (d.addr_len, d.opts_len, d.data_len, d.more);
    unit.addr.filled(addr);
    unit.opt.filled(opts);
    *flags = if more { calls::T_MORE } else { 0 };
    Ok(n)
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn t_rcvudata(
    fd: c_int,
    unit: Place<TUnitData>,
    flags: Place<c_int>,
) -> c_int {
    done(with(fd, |p| {
        let unit = place(unit)?;
        unit.udata.room()?;
        let data = [unit.udata.part()];
        let n = rcvudata(p, unit, &data, flags)?;
        unit.udata.filled(n);
        Ok(())
    }))
}

/// # Safety
/// As t_rcvvudata(3) asks of its caller: `n` buffers.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_rcvvudata(
    fd: c_int,
    unit: Place<TUnitData>,
    iov: *mut iovec,
    n: c_uint,
    flags: Place<c_int>,
) -> c_int {
    status(with(fd, |p| {
        let unit = place(unit)?;
        // SAFETY: the program's buffers.
        let data = unsafe { vector(iov, n) }?;
        rcvudata(p, unit, data, flags).map(|n| n as c_int)
    }))
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn t_rcvuderr(fd: c_int, uderr: Place<TUdErr>) -> c_int {
    done(with(fd, |p| {
        let uderr = optional(uderr)?;
        let e = calls::rcvuderr(p)?;
        let Some(to) = uderr else { return Ok(()) };
        to.error = e.error;
        fits(to.addr.fill(&e.addr) & to.opt.fill(&e.opts))
    }))
}
