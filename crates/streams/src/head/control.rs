//! ioctl(2) on a stream: streamio(7I). What needs modules or a driver is in [`local`], passing of descriptors in [`passing`].

use core::ffi::{CStr, c_char, c_int};
use core::slice;

use headwater_host::sync::Ordering::{Relaxed, Release};
use headwater_host::sys::Errno;
use headwater_host::{process, stand_in};

use super::inlet::{Front, Inlet, RingInlet, Trouble, flush_ring};
use super::message::{Choice, Priority, RS_HIPRI};
use super::read::{RMODEMASK, RPROTDAT, RPROTDIS, RPROTNORM};
use super::{Head, is_bad, life, linking, local, passing, requests, signals, write};
use crate::ddi::{FLUSHR, FLUSHRW, FLUSHW, I_LINK, I_PLINK, I_PUNLINK, I_UNLINK, M_PASSFP};
use crate::exec::registry::{FMNAMESZ, find_module};
use crate::pipe::section;
use crate::pipe::words::state;

/// The request is one that the kernel answers on any descriptor.
pub const KERNEL: Errno = -1;

const SID: c_int = (b'S' as c_int) << 8;
const I_NREAD: c_int = SID | 1;
const I_PUSH: c_int = SID | 2;
const I_POP: c_int = SID | 3;
const I_LOOK: c_int = SID | 4;
const I_FLUSH: c_int = SID | 5;
const I_SRDOPT: c_int = SID | 6;
const I_GRDOPT: c_int = SID | 7;
pub const I_STR: c_int = SID | 8;
const I_SETSIG: c_int = SID | 9;
const I_GETSIG: c_int = SID | 10;
const I_FIND: c_int = SID | 11;
const I_RECVFD: c_int = SID | 14;
const I_PEEK: c_int = SID | 15;
const I_FDINSERT: c_int = SID | 16;
pub const I_SENDFD: c_int = SID | 17;
const I_SWROPT: c_int = SID | 19;
const I_GWROPT: c_int = SID | 20;
const I_LIST: c_int = SID | 21;
const I_ANCHOR: c_int = SID | 24;
const I_FLUSHBAND: c_int = SID | 28;
const I_CKBAND: c_int = SID | 29;
const I_GETBAND: c_int = SID | 30;
const I_ATMARK: c_int = SID | 31;
const I_SETCLTIME: c_int = SID | 32;
const I_GETCLTIME: c_int = SID | 33;
const I_CANPUT: c_int = SID | 34;
const I_SERROPT: c_int = SID | 35;
const I_GERROPT: c_int = SID | 36;
const I_ESETSIG: c_int = SID | 37;
const I_EGETSIG: c_int = SID | 38;

const FIONBIO: c_int = 0x5421;
const FIOASYNC: c_int = 0x5452;
const FIOCLEX: c_int = 0x5451;
const FIONCLEX: c_int = 0x5450;
const FIONREAD: c_int = 0x541b;
const TCGETS: c_int = 0x5401;

const ANYMARK: usize = 1;
const LASTMARK: usize = 2;

/// struct strbuf of `<stropts.h>`: `buf` is bad, or has `len` bytes to send, or room for `maxlen`.
#[repr(C)]
pub struct StrBuf {
    pub maxlen: c_int,
    pub len: c_int,
    pub buf: *mut c_char,
}

impl StrBuf {
    /// What is to be sent; `None`: a length of -1. EFAULT.
    ///
    /// # Safety
    /// It is the program's, whose bytes stay as they are.
    #[inline]
    pub unsafe fn sent(&self) -> Result<Option<&[u8]>, Errno> {
        match usize::try_from(self.len) {
            Err(_) => Ok(None),
            Ok(0) => Ok(Some(&[])),
            Ok(_) if is_bad(self.buf) => Err(libc::EFAULT),
            // SAFETY: so many bytes are there, as the caller says.
            Ok(n) => Ok(Some(unsafe { slice::from_raw_parts(self.buf.cast(), n) })),
        }
    }

    /// Where something is to be put; `None`: a maximum of -1. EFAULT.
    ///
    /// # Safety
    /// It is the program's, and nobody else uses the room meanwhile.
    #[inline]
    pub unsafe fn room(&mut self) -> Result<Option<&mut [u8]>, Errno> {
        match usize::try_from(self.maxlen) {
            Err(_) => Ok(None),
            Ok(0) => Ok(Some(&mut [])),
            Ok(_) if is_bad(self.buf) => Err(libc::EFAULT),
            // SAFETY: there is so much room, as the caller says.
            Ok(n) => Ok(Some(unsafe {
                slice::from_raw_parts_mut(self.buf.cast(), n)
            })),
        }
    }

    /// So much was put there.
    #[inline]
    pub fn filled(&mut self, len: c_int) {
        self.len = if self.maxlen < 0 { -1 } else { len };
    }
}

/// struct strpeek
#[repr(C)]
struct StrPeek {
    control: StrBuf,
    data: StrBuf,
    flags: u32,
}

/// struct strfdinsert
#[repr(C)]
struct StrFdInsert {
    control: StrBuf,
    data: StrBuf,
    flags: u32,
    fildes: c_int,
    offset: c_int,
}

/// struct str_list
#[repr(C)]
struct StrList {
    count: c_int,
    names: *mut [c_char; FMNAMESZ + 1],
}

/// struct bandinfo
#[repr(C)]
struct BandInfo {
    band: u8,
    flag: c_int,
}

/// struct strsigset
#[repr(C)]
struct StrSigSet {
    pid: libc::pid_t,
    events: c_int,
}

/// Errors: streamio(7I); EINVAL also for a stream linked below a multiplexer, [`KERNEL`] for requests that are not ours.
///
/// # Safety
/// `arg` is what the request wants; NULL where it wants a pointer is EFAULT.
pub unsafe fn ioctl(head: &'static Head, request: u32, arg: usize) -> Result<c_int, Errno> {
    let request = request as c_int;
    if matches!(request, FIONBIO | FIOASYNC | FIOCLEX | FIONCLEX) {
        if request == FIOASYNC && !is_bad(arg as *const c_int) {
            // SAFETY: FIOASYNC wants a pointer to an int, and the argument is what the request wants.
            let on = unsafe { *(arg as *const c_int) != 0 };
            signals::set_async(head, on)?;
        }
        return Err(KERNEL);
    }
    if request == TCGETS {
        // isatty(3)
        return Err(libc::ENOTTY);
    }
    head.check_not_linked()?;
    head.attend()?;
    // SAFETY: `arg` is what the request wants, as the caller says, and `pointer` looks that it is not NULL.
    unsafe {
        match request {
            I_NREAD => nread(head, out(arg)?),
            FIONREAD => fionread(head, out(arg)?),
            I_PUSH => alive(head).and_then(|()| local::push(head, name(arg)?)),
            I_POP => alive(head).and_then(|()| local::pop(head)),
            I_LOOK => {
                let to: *mut [u8; FMNAMESZ + 1] = pointer(arg)?;
                let name = local::top(head).ok_or(libc::EINVAL)?;
                *to = padded(&name);
                Ok(0)
            }
            I_FIND => {
                let wanted = name(arg)?;
                if find_module(wanted).is_none() {
                    return Err(libc::EINVAL);
                }
                Ok(local::modules(head).iter().any(|m| m.as_bytes() == wanted) as c_int)
            }
            I_LIST => list(head, arg),
            I_FLUSH => {
                let what = u8::try_from(integer(arg)).map_err(|_| libc::EINVAL)?;
                flush(head, what, None)
            }
            I_FLUSHBAND => {
                let info: *const BandInfo = pointer(arg)?;
                let what = u8::try_from((*info).flag).map_err(|_| libc::EINVAL)?;
                flush(head, what, Some((*info).band))
            }
            I_SRDOPT => set_read_options(head, integer(arg)),
            I_GRDOPT => {
                let options = head.words().read_options.load(Relaxed);
                let protocol = options & !RMODEMASK;
                let shown = if protocol == 0 { RPROTNORM } else { protocol };
                tell(arg, options & RMODEMASK | shown)
            }
            I_SWROPT => {
                let arg = integer(arg);
                if arg & !(write::SNDZERO as usize) != 0 {
                    return Err(libc::EINVAL);
                }
                head.words().write_options.store(arg as u32, Release);
                Ok(0)
            }
            I_GWROPT => tell(arg, head.words().write_options.load(Relaxed)),
            I_STR => requests::strioctl(head, pointer(arg)?),
            I_SETSIG => signals::set(head, 0, arg as u32),
            I_GETSIG => tell(arg, signals::events(head, 0).ok_or(libc::EINVAL)?),
            I_ESETSIG => {
                let set: *const StrSigSet = pointer(arg)?;
                signals::set(head, (*set).pid, (*set).events as u32)
            }
            I_EGETSIG => {
                let set: *mut StrSigSet = pointer(arg)?;
                (*set).events = signals::events(head, (*set).pid).ok_or(libc::EINVAL)? as c_int;
                Ok(0)
            }
            I_PEEK => peek(head, pointer(arg)?),
            I_FDINSERT => fdinsert(head, pointer(arg)?),
            I_SENDFD => {
                head.check_connected()?;
                passing::send_fd(head, arg as c_int)
            }
            I_RECVFD => passing::receive_fd(head, pointer(arg)?),
            I_LINK | I_PLINK => life::link(head, arg as c_int, request == I_PLINK),
            I_UNLINK | I_PUNLINK => {
                linking::unlink(head, arg as c_int, request == I_PUNLINK, life::let_go)
            }
            I_ANCHOR => local::anchor(head),
            I_CKBAND => {
                let wanted = band(arg)?;
                let mut found = false;
                each(head, &mut |f| {
                    found |= f.kind != M_PASSFP && !f.is_high() && f.band == wanted
                })?;
                Ok(found as c_int)
            }
            I_GETBAND => {
                let to = out(arg)?;
                *to = front(head)?.ok_or(libc::ENODATA)?.band as c_int;
                Ok(0)
            }
            I_ATMARK => at_mark(head, integer(arg)),
            I_CANPUT => Ok(local::can_put(head, band(arg)?) as c_int),
            I_SETCLTIME => {
                let time: *const c_int = pointer(arg)?;
                let ms = u32::try_from(*time).map_err(|_| libc::EINVAL)?;
                head.words().close_time.store(ms, Relaxed);
                Ok(0)
            }
            I_GETCLTIME => tell(arg, head.words().close_time.load(Relaxed)),
            I_SERROPT => {
                let arg = integer(arg);
                if arg & !0xf != 0 || arg & 3 == 3 || arg & 0xc == 0xc {
                    return Err(libc::EINVAL);
                }
                let words = head.words();
                let (read, write) = (arg as u32 & 3, arg as u32 & 0xc);
                let old = shown_error_options(words.error_options.load(Relaxed));
                let read = if read == 0 { old & 3 } else { read };
                let write = if write == 0 { old & 0xc } else { write };
                words.error_options.store(read | write, Release);
                Ok(0)
            }
            I_GERROPT => tell(
                arg,
                shown_error_options(head.words().error_options.load(Relaxed)),
            ),
            _ if request & 0xff00 == SID => Err(libc::EINVAL),
            _ => requests::transparent(head, request, arg),
        }
    }
}

/// RERRNORM and WERRNORM where nothing was set.
fn shown_error_options(word: u32) -> u32 {
    let read = if word & 3 == 0 { 1 } else { word & 3 };
    let write = if word & 0xc == 0 { 4 } else { word & 0xc };
    read | write
}

fn pointer<T>(arg: usize) -> Result<*mut T, Errno> {
    let pointer = arg as *mut T;
    (!is_bad(pointer)).then_some(pointer).ok_or(libc::EFAULT)
}

/// # Safety
/// The argument of a request that wants a pointer to an int, to be written to.
unsafe fn out<'a>(arg: usize) -> Result<&'a mut c_int, Errno> {
    // SAFETY: the program's int, as the caller says; nobody else refers to it while the call lasts.
    pointer::<c_int>(arg).map(|p| unsafe { &mut *p })
}

/// Answers with an int.
///
/// # Safety
/// As for [`out`].
unsafe fn tell(arg: usize, value: u32) -> Result<c_int, Errno> {
    // SAFETY: the program's int, as the caller says.
    *unsafe { out(arg) }? = value as c_int;
    Ok(0)
}

fn band(arg: usize) -> Result<u8, Errno> {
    u8::try_from(integer(arg)).map_err(|_| libc::EINVAL)
}

/// An argument that is an int: what is above it means nothing.
fn integer(arg: usize) -> usize {
    arg as u32 as usize
}

/// A module's name: EFAULT for NULL, EINVAL for an impossible one.
///
/// # Safety
/// The argument of a request that wants a C string.
unsafe fn name<'a>(arg: usize) -> Result<&'a [u8], Errno> {
    let name = pointer::<c_char>(arg)?;
    // SAFETY: a C string of the program's, as the caller says.
    let name = unsafe { CStr::from_ptr(name).to_bytes() };
    if name.is_empty() || name.len() > FMNAMESZ {
        return Err(libc::EINVAL);
    }
    Ok(name)
}

/// With NULs.
pub(crate) fn padded(name: &str) -> [u8; FMNAMESZ + 1] {
    let mut to = [0; FMNAMESZ + 1];
    let n = name.len().min(FMNAMESZ);
    to[..n].copy_from_slice(&name.as_bytes()[..n]);
    to
}

fn alive(head: &Head) -> Result<(), Errno> {
    head.check_connected()?;
    if head.words().has(state::READ_ERROR | state::WRITE_ERROR) {
        return Err(head.take_error(head.words().has(state::READ_ERROR)));
    }
    Ok(())
}

/// Runs `f` on the inlet of the head, whichever it is.
pub fn look<T>(
    head: &Head,
    mut f: impl FnMut(&mut dyn Inlet) -> Result<T, Trouble>,
) -> Result<T, Errno> {
    loop {
        let found = if head.is_queued() {
            local::with_inlet(head, &mut f)
        } else {
            head.with_ring_inlet(&mut f)
        };
        match found {
            Ok(value) => return Ok(value),
            Err(Trouble::NeedsQueue) => local::begin(head)?,
            Err(Trouble::Fails(e)) => return Err(e),
        }
    }
}

fn front(head: &Head) -> Result<Option<Front>, Errno> {
    stand_in::glance();
    look(head, |inlet| inlet.front())
}

/// Every message that waits, in some order.
fn each(head: &Head, f: &mut dyn FnMut(&Front)) -> Result<(), Errno> {
    look(head, |inlet| inlet.each(f))
}

fn nread(head: &Head, to: &mut c_int) -> Result<c_int, Errno> {
    let mut count = 0;
    each(head, &mut |_| count += 1)?;
    *to = front(head)?.map_or(0, |f| f.data.unwrap_or(0)) as c_int;
    Ok(count)
}

fn fionread(head: &Head, to: &mut c_int) -> Result<c_int, Errno> {
    let mut bytes = 0;
    each(head, &mut |f| bytes += f.data.unwrap_or(0))?;
    *to = bytes as c_int;
    Ok(0)
}

fn at_mark(head: &Head, arg: usize) -> Result<c_int, Errno> {
    if arg & (ANYMARK | LASTMARK) == 0 || arg & !(ANYMARK | LASTMARK) != 0 {
        return Err(libc::EINVAL);
    }
    let mut marks = 0;
    each(head, &mut |f| marks += f.mark as u32)?;
    let marked = front(head)?.is_some_and(|f| f.mark);
    Ok((marked && (arg & ANYMARK != 0 || marks == 1)) as c_int)
}

fn set_read_options(head: &Head, arg: usize) -> Result<c_int, Errno> {
    let all = (RMODEMASK | RPROTDAT | RPROTDIS | RPROTNORM) as usize;
    let (mode, protocol) = (arg as u32 & RMODEMASK, arg as u32 & !RMODEMASK);
    if arg & !all != 0
        || mode == RMODEMASK
        || !matches!(protocol, 0 | RPROTDAT | RPROTDIS | RPROTNORM)
    {
        return Err(libc::EINVAL);
    }
    let words = head.words();
    // The mode alone leaves the rest as it is.
    let protocol = match protocol {
        0 => words.read_options.load(Relaxed) & !RMODEMASK,
        RPROTNORM => 0,
        other => other,
    };
    words.set_read_options(mode | protocol);
    Ok(0)
}

/// I_LIST.
///
/// # Safety
/// `arg` is NULL or a str_list, whose names have as much room as it says.
unsafe fn list(head: &Head, arg: usize) -> Result<c_int, Errno> {
    let names = local::names(head);
    if arg == 0 {
        return Ok(names.len() as c_int);
    }
    let list = pointer::<StrList>(arg)?;
    // SAFETY: a str_list of the program's, as the caller says.
    let list = unsafe { &mut *list };
    if list.count < 1 {
        return Err(libc::EINVAL);
    }
    if is_bad(list.names) {
        return Err(libc::EFAULT);
    }
    let n = names.len().min(list.count as usize);
    for (i, name) in names.iter().take(n).enumerate() {
        // SAFETY: there is room for `count` names, as the caller says, and no more are written.
        unsafe { *list.names.add(i) = padded(name).map(|b| b as c_char) };
    }
    list.count = n as c_int;
    Ok(0)
}

/// I_FLUSH and I_FLUSHBAND. On a pipe without modules the rings themselves are emptied.
fn flush(head: &Head, what: u8, band: Option<u8>) -> Result<c_int, Errno> {
    if !matches!(what, FLUSHR | FLUSHW | FLUSHRW) {
        return Err(libc::EINVAL);
    }
    head.check_connected()?;
    if head.is_queued() || head.peer_words().is_some_and(|w| w.has(state::QUEUED)) {
        local::begin(head)?;
        local::flush(head, what, band)?;
        return Ok(0);
    }
    if what & FLUSHR != 0 {
        let opened = flush_ring(head, false, band);
        head.ring_peer_for_band(opened);
    }
    if what & FLUSHW != 0 {
        let _ = flush_ring(head, true, band);
        head.notify();
    }
    Ok(0)
}

/// I_PEEK.
///
/// # Safety
/// A strpeek of the program's, whose buffers have as much room as it says.
unsafe fn peek(head: &Head, peek: *mut StrPeek) -> Result<c_int, Errno> {
    // SAFETY: a strpeek, as the caller says, that nobody else refers to while the call lasts.
    let peek = unsafe { &mut *peek };
    let choice = match peek.flags as i32 {
        0 => Choice::Any,
        RS_HIPRI => Choice::High,
        _ => return Err(libc::EINVAL),
    };
    // SAFETY: the buffers have as much room as they say, as the caller says.
    let mut rooms = unsafe { [peek.control.room()?, peek.data.room()?] };
    let seen = look(head, |inlet| {
        let Some(front) = choice.first_of(inlet)? else {
            return Ok(None);
        };
        let (mut lens, mut skip) = ([None; 2], 0);
        let parts = [front.control, front.data].into_iter().zip(&mut rooms);
        for (len, (have, room)) in lens.iter_mut().zip(parts) {
            let Some(have) = have else { continue };
            if let Some(room) = room {
                let n = have.min(room.len());
                if n > 0 {
                    inlet.copy(skip, &mut room[..n]);
                }
                *len = Some(n);
            }
            skip += have;
        }
        Ok(Some((lens, front.is_high())))
    })?;
    let Some((lens, high)) = seen else {
        return Ok(0);
    };
    [peek.control.len, peek.data.len] = lens.map(|len| len.map_or(-1, |len| len as c_int));
    peek.flags = if high { RS_HIPRI as u32 } else { 0 };
    Ok(1)
}

/// I_FDINSERT.
///
/// # Safety
/// A strfdinsert of the program's, whose buffers hold as much as it says.
unsafe fn fdinsert(head: &Head, insert: *const StrFdInsert) -> Result<c_int, Errno> {
    // SAFETY: a strfdinsert, as the caller says.
    let insert = unsafe { &*insert };
    let priority = match insert.flags as i32 {
        0 => Priority::Band(0),
        RS_HIPRI => Priority::High,
        _ => return Err(libc::EINVAL),
    };
    let looks = headwater_host::reclaim::enter();
    let other = headwater_host::table::stream(insert.fildes)
        .and_then(|h| super::get(h, &looks))
        .ok_or(libc::EINVAL)?;
    head.check_connected()?;
    other.check_connected()?;
    let value = local::acceptor(other);
    let size = size_of_val(&value);
    let (offset, len) = (insert.offset, insert.control.len);
    let fits = offset >= 0 && len >= 0 && offset as usize + size <= len as usize;
    if !fits || !(offset as usize).is_multiple_of(align_of::<u32>()) {
        return Err(libc::EINVAL);
    }
    // SAFETY: both buffers hold as many bytes as the program says.
    let (control, data) = unsafe { (insert.control.sent()?, insert.data.sent()?) };
    let mut control = control.unwrap_or_default().to_vec();
    control[offset as usize..][..size].copy_from_slice(&value.to_ne_bytes());
    head.put_message(Some(&control), data, priority, None)?;
    Ok(0)
}

/// For the inlet of a ring.
impl Head {
    pub fn with_ring_inlet<T>(
        &self,
        f: &mut impl FnMut(&mut dyn Inlet) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        self.enter();
        let _quiet = process::Quiet::new();
        let ring = self.incoming();
        let section = section::reading(&ring).ok_or(Trouble::Fails(libc::EPROTO))?;
        if self.is_queued() {
            // Since we looked.
            return Err(Trouble::NeedsQueue);
        }
        let mut inlet = RingInlet::new(ring, self.band_bytes(false));
        let found = f(&mut inlet);
        let opened = inlet.opened;
        drop(section);
        self.ring_peer_for_band(opened);
        self.tell_local_peer();
        found
    }
}
