//! A close with something unread resets a connection of TCP: when one of ours is to be a reset, and how it is made one.

use headwater_host::sync::Ordering;
use headwater_host::sys;

use crate::conn::Conn;
use crate::record::{PASSED, Record};
use crate::segment::View;
use crate::{holders, images, look, switch};

/// TCP resets a connection that is closed with unread data.
pub fn reset_if_unread(c: &Conn, v: &View<'static>, fd: i32) {
    if is_last_to_read(c, v) {
        reset(fd);
    }
}

/// Is something unread, and has nobody an image that may read it yet? An image that the connection was lent to may have closed it
/// unused, and tells nobody; nor does one that has the kernel's part of it alone.
pub fn is_last_to_read(c: &Conn, v: &View<'static>) -> bool {
    let inode = c.inode.load(Ordering::Relaxed);
    let is_out = images::is_out(v.record) || images::may_go_round(v.record);
    is_unread(v) && (!is_out || is_left_unread(v, v.record, inode))
}

/// Is something unread that nobody but this process could read? Others may read it while they are looked for.
pub fn is_left_unread(v: &View<'_>, record: &'static Record, inode: u64) -> bool {
    is_unread(v) && holders::is_ours_alone(record, inode) && is_unread(v)
}

fn is_unread(v: &View<'_>) -> bool {
    // Who was passed the descriptor reads by the kernel what is taken back.
    let is_others = switch::is_taken_back(v) && v.record.has(PASSED);
    !is_others && switch::readable(v) && v.in_ring().unread() > 0
}

/// SO_LINGER, on and seconds, of a connection whose close is a reset.
pub const AT_ONCE: [i32; 2] = [1, 0];

/// The close that comes is to be a reset.
pub fn reset(fd: i32) {
    set_linger(fd, AT_ONCE);
}

pub fn linger(fd: i32) -> Option<[i32; 2]> {
    sys::sockopt(fd, libc::SOL_SOCKET, libc::SO_LINGER).ok()
}

pub fn set_linger(fd: i32, to: [i32; 2]) -> bool {
    sys::set_sockopt(fd, libc::SOL_SOCKET, libc::SO_LINGER, &to).is_ok()
}

/// Does a close of the connection reset it, because there is something that the program has not read?
pub fn is_reset_by_close(v: &View<'_>, shadow: i32) -> bool {
    (!switch::is_taken_back(v) && switch::readable(v) && v.in_ring().unread() > 0)
        || look::has_bytes(shadow)
        || look::events_of(shadow) & (libc::POLLERR | libc::POLLHUP) != 0
}
