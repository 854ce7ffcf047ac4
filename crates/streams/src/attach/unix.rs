//! Abstract UNIX sockets (unix(7)) by which processes of one user meet. None of them blocks.

use headwater_host::peer::Peer;
pub use headwater_host::sys::{abstract_name as named, poll_for as poll};
use headwater_host::{hidden, sys};
use libc::c_int;

/// Of sequenced packets; the caller hides it.
pub fn socket() -> sys::Result<c_int> {
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    sys::socket(libc::AF_UNIX, kind, 0)
}

/// Connects to who listens at an address. ECONNREFUSED: nobody of this user; EAGAIN: too many before us, later.
pub fn connect(fd: c_int, to: &(libc::sockaddr_un, u32)) -> sys::Result<()> {
    sys::connect(fd, to)?;
    is_ours(fd).then_some(()).ok_or(libc::ECONNREFUSED)
}

/// The next one who has connected, hidden; `None`: it was not one of this user. EAGAIN.
pub fn accept(listener: c_int) -> sys::Result<Option<c_int>> {
    let fd = sys::accept(listener, libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC)?;
    let fd = hidden::hide_or_keep(fd)?;
    if is_ours(fd) {
        return Ok(Some(fd));
    }
    hidden::close(fd);
    Ok(None)
}

/// Has the other side of a connected socket, or of a FIFO, gone?
pub fn has_hung_up(fd: c_int) -> bool {
    poll(fd, 0, 0) & (libc::POLLHUP | libc::POLLERR) != 0
}

fn is_ours(fd: c_int) -> bool {
    Peer::of(fd).is_some_and(Peer::is_this_user)
}
