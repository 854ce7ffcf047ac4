//! getmsg, putmsg and their kind.

use headwater_host::sys;
use headwater_host::table::Handle;
use headwater_streams::head::control::StrBuf;
use headwater_streams::head::message::{self, Choice, Got, Priority};
use libc::c_int;

use super::{reading, status, stream, writing};
use crate::given::{Given, Place};
use crate::result;

#[unsafe(no_mangle)]
pub extern "C-unwind" fn putmsg(
    fd: c_int,
    control: Given<StrBuf>,
    data: Given<StrBuf>,
    flags: c_int,
) -> c_int {
    let priority = match flags {
        0 => Ok(Priority::Band(0)),
        message::RS_HIPRI => Ok(Priority::High),
        _ => Err(libc::EINVAL),
    };
    status(put(fd, control, data, priority))
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn putpmsg(
    fd: c_int,
    control: Given<StrBuf>,
    data: Given<StrBuf>,
    band: c_int,
    flags: c_int,
) -> c_int {
    let priority = match (flags, band) {
        (message::MSG_HIPRI, 0) => Ok(Priority::High),
        (message::MSG_BAND, 0..=255) => Ok(Priority::Band(band as u8)),
        _ => Err(libc::EINVAL),
    };
    status(put(fd, control, data, priority))
}

fn put(
    fd: c_int,
    control: Given<StrBuf>,
    data: Given<StrBuf>,
    priority: sys::Result<Priority>,
) -> sys::Result<()> {
    let h = stream(fd)?;
    let priority = priority?;
    if let Priority::Band(band) = priority
        && band as usize >= headwater_streams::tunables::get().nband
    {
        return Err(libc::EINVAL);
    }
    let (control, data) = (sent(control)?, sent(data)?);
    writing(h, |head| {
        head.put_message(control, data, priority, None)?;
        Ok(0)
    })
    .map(drop)
}

/// A part to send; `None` for NULL and a length of -1.
#[inline]
fn sent(part: Given<'_, StrBuf>) -> sys::Result<Option<&[u8]>> {
    match part.is_null() {
        true => Ok(None),
        // SAFETY: the program has so many bytes there.
        false => unsafe { part.get().ok_or(libc::EFAULT)?.sent() },
    }
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn getmsg(
    fd: c_int,
    control: Place<StrBuf>,
    data: Place<StrBuf>,
    flags: Place<c_int>,
) -> c_int {
    let take = || {
        let h = stream(fd)?;
        let flags = flags.get().ok_or(libc::EFAULT)?;
        let choice = match *flags {
            0 => Choice::Any,
            message::RS_HIPRI => Choice::High,
            _ => return Err(libc::EINVAL),
        };
        let got = get(h, control, data, choice)?;
        *flags = if got.high { message::RS_HIPRI } else { 0 };
        Ok(got.more as usize)
    };
    result(take()) as c_int
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn getpmsg(
    fd: c_int,
    control: Place<StrBuf>,
    data: Place<StrBuf>,
    band: Place<c_int>,
    flags: Place<c_int>,
) -> c_int {
    let take = || {
        let h = stream(fd)?;
        let flags = flags.get().ok_or(libc::EFAULT)?;
        let band = band.get().ok_or(libc::EFAULT)?;
        let choice = match (*flags, *band) {
            (message::MSG_ANY, _) => Choice::Any,
            (message::MSG_HIPRI, 0) => Choice::High,
            (message::MSG_BAND, least @ 0..=255) => Choice::AtLeast(least as u8),
            _ => return Err(libc::EINVAL),
        };
        let got = get(h, control, data, choice)?;
        *flags = if got.high {
            message::MSG_HIPRI
        } else {
            message::MSG_BAND
        };
        *band = got.band as c_int;
        Ok(got.more as usize)
    };
    result(take()) as c_int
}

fn get(h: Handle, control: Place<StrBuf>, data: Place<StrBuf>, choice: Choice) -> sys::Result<Got> {
    let (mut control, mut data) = (wanted(control)?, wanted(data)?);
    let (first, second) = (room(&mut control)?, room(&mut data)?);
    let mut got = Got::default();
    reading(h, |head| {
        got = head.get_message(first, second, choice, None)?;
        Ok(0)
    })?;
    if let Some(control) = control {
        control.filled(got.control);
    }
    if let Some(data) = data {
        data.filled(got.data);
    }
    Ok(got)
}

/// A part that may be null.
#[inline]
fn wanted(part: Place<'_, StrBuf>) -> sys::Result<Option<&mut StrBuf>> {
    match part.is_null() {
        true => Ok(None),
        false => part.get().ok_or(libc::EFAULT).map(Some),
    }
}

#[inline]
fn room<'a>(part: &'a mut Option<&mut StrBuf>) -> sys::Result<Option<&'a mut [u8]>> {
    // SAFETY: the program has so much room there.
    part.as_mut()
        .map_or(Ok(None), |part| unsafe { part.room() })
}
