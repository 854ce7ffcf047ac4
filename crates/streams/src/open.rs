//! open(2) by name: devices, FIFOs, attached files.

use core::ffi::CStr;
use core::ptr::null_mut;

use headwater_host::log::{self, Level};
use headwater_host::sync::Ordering::{Relaxed, Release};
use headwater_host::sys::{self, Errno};
use libc::c_int;

use crate::ddi::CLONEOPEN;
use crate::drivers::pushlist;
use crate::exec::attach::qattach;
use crate::exec::registry::{self, Entry};
use crate::head::opening::Opened;
use crate::head::write::SNDZERO;
use crate::head::{life, local, opening};
use crate::pipe::words::state;
use crate::{attach, board};

/// Opens a stream; `None`: the name is the kernel's. Ordinary paths cost two loads while no file has a stream.
///
/// Streams are the registered devices, as /dev/NAME and /dev/streams/NAME, FIFOs (/dev/fifo, /dev/fifo.NAME), and files with
/// an attached stream. Errors: ENOENT for an unknown name in /dev/streams, and those of the device, of
/// [`attach::open`], [`attach::open_fifo`] and [`opening::begin`].
#[inline]
pub fn open(path: &CStr, flags: c_int) -> Option<Result<c_int, Errno>> {
    if let Some(name) = path.to_bytes().strip_prefix(b"/dev/")
        && let Some(opened) = open_device(name, flags)
    {
        return Some(opened);
    }
    let opened = attach::open(path, flags)?;
    Some(named(opened, flags))
}

/// Access mode and O_NONBLOCK are the open's own. A FIFO with a name waits here for the other side.
fn named(opened: Result<Opened, Errno>, flags: c_int) -> Result<c_int, Errno> {
    let opened = opened?;
    opening::begin(opened, flags, life::abandon)?;
    Ok(opened.fd)
}

#[cold]
fn open_device(name: &[u8], flags: c_int) -> Option<Result<c_int, Errno>> {
    let (name, only_ours) = match name.strip_prefix(b"streams/") {
        Some(name) => (name, true),
        None => (name, false),
    };
    if let Some(fifo) = fifo_name(name) {
        return Some(named(attach::open_fifo(fifo, flags), flags));
    }
    match registry::device(name) {
        Some(device) => Some(self::device(device, flags)),
        None if only_ours => {
            let name = String::from_utf8_lossy(name);
            let told = "open: no STREAMS device named";
            log::write(Level::Warn, format_args!("{told} {name}"));
            Some(Err(libc::ENOENT))
        }
        None => None,
    }
}

/// open(2) of a device: of its next minor one.
pub fn device(device: &'static Entry, flags: c_int) -> Result<i32, Errno> {
    let visible = crate::pipe::placeholder(flags)?;
    let head = life::local_head(visible).inspect_err(|_| {
        let _ = sys::close(visible);
    })?;
    let words = head.words();
    words.write_options.store(SNDZERO, Relaxed);
    match flags & libc::O_ACCMODE {
        libc::O_RDONLY => words.set(state::NO_WRITE),
        libc::O_WRONLY => words.set(state::NO_READ),
        _ => {}
    }
    if flags & libc::O_NONBLOCK != 0 {
        words.nonblocking.store(1, Release);
    }
    let shared = device.shared_perimeter();
    let shared = shared.map_or(null_mut(), |p| core::ptr::from_ref(p).cast_mut());
    head.perimeter.store(shared, Release);
    let opened = local::begin(head).and_then(|()| {
        local::inside(head, |local| {
            let mut dev = device.number(0);
            // SAFETY: inside the perimeter.
            unsafe { qattach(local.rq, device.table(), &mut dev, flags, CLONEOPEN)? };
            local.driver.set(Some(device));
            Ok(libc::minor(dev))
        })
        .unwrap_or(Err(libc::ENXIO))
    });
    let opened_head = Opened {
        head,
        handle: head.handle(),
        fd: visible,
    };
    let close = |_: &Errno| life::abandon(opened_head);
    let minor = opened.inspect_err(close)?;
    board::enter(head.index, visible, device.name(), None);
    for name in pushlist::modules_for(device.name(), minor) {
        local::push(head, name.as_bytes()).inspect_err(close)?;
    }
    Ok(visible)
}

/// What follows "fifo."; empty for the unnamed one.
fn fifo_name(name: &[u8]) -> Option<&[u8]> {
    if name == b"fifo" {
        return Some(&[]);
    }
    name.strip_prefix(b"fifo.").filter(|rest| !rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifo_is_named_after_the_dot() {
        assert_eq!(fifo_name(b"fifo"), Some(&b""[..]));
        assert_eq!(fifo_name(b"fifo.jobs"), Some(&b"jobs"[..]));
        assert_eq!(fifo_name(b"fifo."), None);
        assert_eq!(fifo_name(b"fifos"), None);
    }

    #[test]
    fn other_names_are_the_kernels() {
        assert!(open(c"/dev/null", libc::O_RDONLY).is_none());
        assert!(open(c"/etc/passwd", libc::O_RDONLY).is_none());
    }

    #[test]
    fn an_unknown_stream_does_not_exist() {
        let opened = open(c"/dev/streams/nowhere", libc::O_RDWR);
        assert_eq!(opened, Some(Err(libc::ENOENT)));
    }
}
