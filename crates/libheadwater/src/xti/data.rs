//! Data, on connections and without them.

use headwater_providers::provider::Datagram;
use headwater_streams::head::control::is_bad;
use headwater_tpi::{Refusal, error};
use headwater_xti::calls;
use headwater_xti::{Outcome, Port, with};
use libc::{c_int, c_uint, c_void, iovec};

use super::{TUdErr, TUnitData, done, fault, given, given_mut, optional, overflow, status};

/// Room for an address or a list of options that the caller does not want.
const UNWANTED: usize = 2048;

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
    // SAFETY: as many of the program's, by the caller's word.
    let iov = unsafe { core::slice::from_raw_parts(iov, n as usize) };
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
        calls::snd(p, &[part(buf.cast_mut(), most)], flags).map(|n| n as c_int)
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
    // SAFETY: the program's buffers.
    unsafe {
        status(with(fd, |p| {
            calls::snd(p, vector(iov, n)?, flags).map(|n| n as c_int)
        }))
    }
}

unsafe fn rcv(p: &dyn Port, into: &[iovec], flags: *mut c_int) -> Outcome<c_int> {
    if is_bad(flags) {
        return fault();
    }
    let (n, said) = calls::rcv(p, into)?;
    // SAFETY: the program's number.
    unsafe { *flags = said };
    Ok(n as c_int)
}

/// # Safety
/// As t_rcv(3) asks of its caller: `buf` has room for `n` bytes, and `flags` is a number.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_rcv(
    fd: c_int,
    buf: *mut c_void,
    n: c_uint,
    flags: *mut c_int,
) -> c_int {
    // SAFETY: the program's room for `n` bytes, and its number.
    unsafe {
        status(with(fd, |p| {
            if n > 0 && is_bad(buf) {
                return fault();
            }
            rcv(p, &[part(buf, n)], flags)
        }))
    }
}

/// # Safety
/// As t_rcvv(3) asks of its caller: `n` buffers, and `flags` is a number.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_rcvv(
    fd: c_int,
    iov: *mut iovec,
    n: c_uint,
    flags: *mut c_int,
) -> c_int {
    // SAFETY: the program's buffers, and its number.
    unsafe { status(with(fd, |p| rcv(p, vector(iov, n)?, flags))) }
}

/// # Safety
/// As t_sndudata(3) asks of its caller: what is not null is whole, and its buffers are as long as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_sndudata(fd: c_int, unit: *const TUnitData) -> c_int {
    // SAFETY: the program's structures, null or whole, and their buffers.
    unsafe {
        done(with(fd, |p| {
            let unit = given(unit)?;
            unit.udata.bytes()?;
            let data = [part(unit.udata.buf, unit.udata.len)];
            calls::sndudata(p, unit.addr.bytes()?, unit.opt.bytes()?, &data)
        }))
    }
}

/// # Safety
/// As t_sndvudata(3) asks of its caller: a structure whose buffers are as long as they say, and `n` more.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_sndvudata(
    fd: c_int,
    unit: *const TUnitData,
    iov: *const iovec,
    n: c_uint,
) -> c_int {
    // SAFETY: the program's structure and its buffers.
    unsafe {
        done(with(fd, |p| {
            let unit = given(unit)?;
            calls::sndudata(p, unit.addr.bytes()?, unit.opt.bytes()?, vector(iov, n)?)
        }))
    }
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
        // SAFETY: the program's buffer.
        addr = unsafe { unit.addr.room() }?;
    }
    if unit.opt.maxlen > 0 {
        // SAFETY: the program's buffer.
        opts = unsafe { unit.opt.room() }?;
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
    // SAFETY: the program's number.
    unsafe { *flags = if more { calls::T_MORE } else { 0 } };
    Ok(n)
}

/// # Safety
/// As t_rcvudata(3) asks of its caller: a structure whose buffers are as long as they say, and `flags` is a number.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_rcvudata(
    fd: c_int,
    unit: *mut TUnitData,
    flags: *mut c_int,
) -> c_int {
    // SAFETY: the program's structure and its buffers, and its number.
    unsafe {
        done(with(fd, |p| {
            let unit = given_mut(unit)?;
            unit.udata.room()?;
            let data = [part(unit.udata.buf, unit.udata.maxlen)];
            unit.udata.len = rcvudata(p, unit, &data, flags)? as c_uint;
            Ok(())
        }))
    }
}

/// # Safety
/// As t_rcvvudata(3) asks of its caller: a structure whose buffers are as long as they say, `n` more, and a number.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_rcvvudata(
    fd: c_int,
    unit: *mut TUnitData,
    iov: *mut iovec,
    n: c_uint,
    flags: *mut c_int,
) -> c_int {
    // SAFETY: the program's structure and its buffers, and its number.
    unsafe {
        status(with(fd, |p| {
            let unit = given_mut(unit)?;
            rcvudata(p, unit, vector(iov, n)?, flags).map(|n| n as c_int)
        }))
    }
}

/// # Safety
/// As t_rcvuderr(3) asks of its caller: what is not null is whole, and its buffers are as long as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_rcvuderr(fd: c_int, uderr: *mut TUdErr) -> c_int {
    // SAFETY: the program's structures, null or whole, and their buffers.
    unsafe {
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
}
