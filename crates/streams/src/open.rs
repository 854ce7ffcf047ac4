//! open(2) by name: devices, FIFOs, attached files.

use core::ffi::CStr;

use headwater_host::log::{self, Level};
use headwater_host::sys::Errno;
use libc::c_int;

use crate::attach;
use crate::exec::registry;
use crate::head::{life, local, opening};

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
fn named(opened: Result<c_int, Errno>, flags: c_int) -> Result<c_int, Errno> {
    let fd = opened?;
    opening::begin(fd, flags, life::close)?;
    Ok(fd)
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
    match registry::find_device(name) {
        Some(device) => Some(local::open_device(device, None, flags)),
        None if only_ours => {
            log::write(
                Level::Warn,
                format_args!(
                    "open: no STREAMS device named {}",
                    String::from_utf8_lossy(name)
                ),
            );
            Some(Err(libc::ENOENT))
        }
        None => None,
    }
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
