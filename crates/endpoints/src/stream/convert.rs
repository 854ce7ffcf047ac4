//! From direct to message mode.

use std::cell::Cell;

use headwater_channel::lock::Lock;
use headwater_host::epoll;
use headwater_host::process;
use headwater_host::reclaim::enter;
use headwater_host::sys::{self, Errno};
use headwater_host::table::{self, Kind};
use headwater_streams::board;
use headwater_streams::exec::registry;
use headwater_streams::head::{self, life, local};

use crate::endpoint::{self, Endpoint};

thread_local! {
    /// For the driver that is being opened.
    static GIVEN: Cell<Option<&'static Endpoint>> = const { Cell::new(None) };
}

/// Held while an endpoint becomes a stream. Until it is one its numbers are nobody's.
static TURNING: Lock = Lock::new();

/// Waits for who is about to make a stream of an endpoint.
pub fn wait_for_others() {
    drop(process::lock_free_in_child(&TURNING));
}

/// The endpoint that the driver is to have, instead of a new one.
pub fn given() -> Option<&'static Endpoint> {
    GIVEN.take()
}

/// Makes a stream, with timod on it, of an endpoint of t_open: all its descriptors become the stream's. Errors: EBADF for
/// any other descriptor, those of open(2). Epoll sets keep what they hold of it.
pub fn convert(fd: i32) -> Result<(), Errno> {
    let _turning = process::lock_free_in_child(&TURNING);
    if table::stream(fd).is_some() {
        // Another thread was quicker.
        return Ok(());
    }
    let h = table::lookup(fd)
        .filter(|h| h.kind() == Kind::Endpoint)
        .ok_or(libc::EBADF)?;
    let (end, numbers) = endpoint::detach(h).ok_or(libc::EBADF)?;
    let first = open(end)?;
    let stream = table::stream(first).ok_or(libc::EBADF)?;
    for number in numbers {
        epoll::replace(number, || {
            if sys::dup_over(first, number).is_ok() {
                life::duplicated(stream, number);
            }
        });
    }
    life::close(first, stream);
    let looks = enter();
    let head = head::get(stream, &looks).ok_or(libc::EBADF)?;
    board::enter(head.index, fd, &local::device(head), None);
    local::push(head, b"timod").map(drop)
}

/// A descriptor of a stream with this endpoint, which is closed if there can't be one.
fn open(end: &'static Endpoint) -> Result<i32, Errno> {
    let entry = end
        .device()
        .and_then(|device| registry::find_device(device.name()));
    let mut flags = libc::O_RDWR | libc::O_CLOEXEC;
    if end.is_nonblocking() {
        flags |= libc::O_NONBLOCK;
    }
    GIVEN.set(Some(end));
    let opened = entry.ok_or(libc::ENODEV);
    let opened = opened.and_then(|entry| headwater_streams::open::device(entry, flags));
    // A driver that had taken it has closed it.
    if let Some(left) = GIVEN.take() {
        left.let_go();
    }
    opened
}
