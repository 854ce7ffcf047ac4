//! What the program's epoll sets know of a connection. A number of the library's own is in none of them, and none is asked: a
//! set that waits holds itself while it looks at transport endpoints, and these hold themselves while they use their connection.

use headwater_host::counters::Reason;
use headwater_host::epoll;

use crate::conn::{self, Conn};

/// May the connection be taken over, as far as its registrations go?
pub fn allow(c: &Conn, fd: i32) -> Result<(), Reason> {
    if c.is_ours() {
        Ok(())
    } else {
        epoll::allows(fd)
    }
}

/// Are all sets that `fd` is in waited for by calls of ours?
pub fn are_waited_for(c: &Conn, fd: i32) -> bool {
    c.is_ours() || epoll::is_waited_for(fd)
}

/// Is `fd` in one?
pub fn hold(c: &Conn, fd: i32) -> bool {
    !c.is_ours() && epoll::holds(fd)
}

/// Is `fd` in one, or was the connection put there by a number that is closed by now?
pub fn know(c: &Conn, fd: i32) -> bool {
    !c.is_ours() && epoll::knows(fd, conn::handle(c))
}

/// Has this process put it into one, by `fd` or such a number?
pub fn were_given(c: &Conn, fd: i32) -> bool {
    !c.is_ours() && epoll::was_given(fd, conn::handle(c))
}

/// It is carried from now on.
pub fn carried(c: &Conn, fd: i32) {
    if !c.is_ours() {
        epoll::carried(fd);
    }
}

/// `fd` is about to be closed, the last of its numbers.
pub fn closing(c: &Conn, fd: i32) {
    if !c.is_ours() {
        epoll::closing(fd);
    }
}

/// `fd` is about to be closed, and the connection lives on.
pub fn orphaned(c: &Conn, fd: i32) {
    if !c.is_ours() {
        epoll::orphaned(fd);
    }
}

/// It has ended after its last number.
pub fn ended(c: &Conn) {
    if !c.is_ours() {
        epoll::ended(conn::handle(c));
    }
}
