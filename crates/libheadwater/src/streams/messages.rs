//! getmsg, putmsg and their kind.

use headwater_host::sys;
use headwater_host::table::Handle;
use headwater_streams::head::control;
use headwater_streams::head::message::{self, Choice, Got, Priority};
use libc::{c_char, c_int, c_void};

use super::{reading, slice, slice_mut, status, stream, writing};
use crate::result;

/// struct strbuf of `<stropts.h>`.
#[repr(C)]
pub struct StrBuf {
    maxlen: c_int,
    len: c_int,
    buf: *mut c_char,
}

/// # Safety
/// As putmsg(3) asks of its caller: a part is null, or has as many bytes as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn putmsg(
    fd: c_int,
    control: *const StrBuf,
    data: *const StrBuf,
    flags: c_int,
) -> c_int {
    let priority = match flags {
        0 => Ok(Priority::Band(0)),
        message::RS_HIPRI => Ok(Priority::High),
        _ => Err(libc::EINVAL),
    };
    // SAFETY: the program's parts, null or whole.
    status(unsafe { put(fd, control, data, priority) })
}

/// # Safety
/// As putpmsg(3) asks of its caller: a part is null, or has as many bytes as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn putpmsg(
    fd: c_int,
    control: *const StrBuf,
    data: *const StrBuf,
    band: c_int,
    flags: c_int,
) -> c_int {
    let priority = match (flags, band) {
        (message::MSG_HIPRI, 0) => Ok(Priority::High),
        (message::MSG_BAND, 0..=255) => Ok(Priority::Band(band as u8)),
        _ => Err(libc::EINVAL),
    };
    // SAFETY: the program's parts, null or whole.
    status(unsafe { put(fd, control, data, priority) })
}

unsafe fn put(
    fd: c_int,
    control: *const StrBuf,
    data: *const StrBuf,
    priority: sys::Result<Priority>,
) -> sys::Result<()> {
    let h = stream(fd)?;
    let priority = priority?;
    if let Priority::Band(band) = priority
        && band as usize >= headwater_streams::tunables::get().nband
    {
        return Err(libc::EINVAL);
    }
    // SAFETY: the program's parts, null or whole.
    let (control, data) = unsafe { (given(control)?, given(data)?) };
    writing(h, |head| {
        head.put_message(control, data, priority, None)?;
        Ok(0)
    })
    .map(drop)
}

/// A part to send; `None` for NULL and a length of -1.
unsafe fn given<'a>(part: *const StrBuf) -> sys::Result<Option<&'a [u8]>> {
    // SAFETY: a part of the program's, and as many bytes as it says, by the caller's word.
    unsafe {
        if part.is_null() {
            return Ok(None);
        }
        if control::is_bad(part) {
            return Err(libc::EFAULT);
        }
        let part = &*part;
        if part.len < 0 {
            return Ok(None);
        }
        if control::is_bad(part.buf) && part.len > 0 {
            return Err(libc::EFAULT);
        }
        Ok(Some(slice(part.buf as *const c_void, part.len as usize)))
    }
}

/// # Safety
/// As getmsg(3) asks of its caller: a part is null, or has as much room as it says; `flags` is a number.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn getmsg(
    fd: c_int,
    control: *mut StrBuf,
    data: *mut StrBuf,
    flags: *mut c_int,
) -> c_int {
    // SAFETY: the program's parts, null or whole, and its number.
    unsafe {
        let take = || {
            let h = stream(fd)?;
            if control::is_bad(flags) {
                return Err(libc::EFAULT);
            }
            let choice = match *flags {
                0 => Choice::Any,
                message::RS_HIPRI => Choice::High,
                _ => return Err(libc::EINVAL),
            };
            let got = get(h, control, data, choice)?;
            flags.write(if got.high { message::RS_HIPRI } else { 0 });
            Ok(got.more as usize)
        };
        result(take()) as c_int
    }
}

/// # Safety
/// As getpmsg(3) asks of its caller: a part is null, or has as much room as it says; `band` and `flags` are numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn getpmsg(
    fd: c_int,
    control: *mut StrBuf,
    data: *mut StrBuf,
    band: *mut c_int,
    flags: *mut c_int,
) -> c_int {
    // SAFETY: the program's parts, null or whole, and its numbers.
    unsafe {
        let take = || {
            let h = stream(fd)?;
            if control::is_bad(flags) || control::is_bad(band) {
                return Err(libc::EFAULT);
            }
            let least = *band;
            let choice = match (*flags, least) {
                (message::MSG_ANY, _) => Choice::Any,
                (message::MSG_HIPRI, 0) => Choice::High,
                (message::MSG_BAND, 0..=255) => Choice::AtLeast(least as u8),
                _ => return Err(libc::EINVAL),
            };
            let got = get(h, control, data, choice)?;
            flags.write(if got.high {
                message::MSG_HIPRI
            } else {
                message::MSG_BAND
            });
            band.write(got.band as c_int);
            Ok(got.more as usize)
        };
        result(take()) as c_int
    }
}

unsafe fn get(
    h: Handle,
    control: *mut StrBuf,
    data: *mut StrBuf,
    choice: Choice,
) -> sys::Result<Got> {
    // SAFETY: the program's parts, null or whole, by the caller's word.
    unsafe {
        let (first, second) = (wanted(control)?, wanted(data)?);
        let mut got = Got::default();
        reading(h, |head| {
            got = head.get_message(first, second, choice, None)?;
            Ok(0)
        })?;
        if let Some(control) = control.as_mut() {
            control.len = if control.maxlen < 0 { -1 } else { got.control };
        }
        if let Some(data) = data.as_mut() {
            data.len = if data.maxlen < 0 { -1 } else { got.data };
        }
        Ok(got)
    }
}

/// Room for a part; `None` for NULL and a maximum of -1.
unsafe fn wanted<'a>(part: *mut StrBuf) -> sys::Result<Option<&'a mut [u8]>> {
    // SAFETY: a part of the program's, and as much room as it says, by the caller's word.
    unsafe {
        if part.is_null() {
            return Ok(None);
        }
        if control::is_bad(part) {
            return Err(libc::EFAULT);
        }
        let part = &mut *part;
        if part.maxlen < 0 {
            return Ok(None);
        }
        if control::is_bad(part.buf) && part.maxlen > 0 {
            return Err(libc::EFAULT);
        }
        Ok(Some(slice_mut(
            part.buf as *mut c_void,
            part.maxlen as usize,
        )))
    }
}
