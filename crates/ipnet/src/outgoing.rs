//! Datagrams that leave, one by one.

use headwater_host::sys;
use libc::{iovec, msghdr};

use crate::{Address, again};

fn message(to: &Address, data: &[iovec], control: &[u8]) -> msghdr {
    let mut message: msghdr = sys::zeroed();
    message.msg_name = to.pointer() as *mut _;
    message.msg_namelen = to.len();
    message.msg_iov = data.as_ptr() as *mut iovec;
    message.msg_iovlen = data.len() as _;
    if !control.is_empty() {
        message.msg_control = control.as_ptr() as *mut _;
        message.msg_controllen = control.len() as _;
    }
    message
}

const FLAGS: i32 = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;

/// Sends one datagram. ENOBUFS counts as EAGAIN.
#[inline]
pub fn send(fd: i32, to: &Address, data: &[iovec], control: &[u8]) -> sys::Result<()> {
    let sent = again(|| match data {
        [one] if control.is_empty() => send_one(fd, to, one),
        _ => {
            let message = message(to, data, control);
            // SAFETY: the message's parts are valid.
            unsafe { sys::sendmsg(fd, &message, FLAGS) }
        }
    });
    match sent {
        Err(libc::ENOBUFS | libc::ENOMEM) => Err(libc::EAGAIN),
        result => result.map(drop),
    }
}

#[inline]
fn send_one(fd: i32, to: &Address, data: &iovec) -> sys::Result<usize> {
    use syscalls::{Sysno, syscall};
    let (base, len) = (data.iov_base, data.iov_len);
    // SAFETY: the user's buffer, and an address with its length.
    unsafe { syscall!(Sysno::sendto, fd, base, len, FLAGS, to.pointer(), to.len()) }
        .map_err(|e| e.into_raw())
}
