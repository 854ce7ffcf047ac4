//! Datagrams that leave.

use headwater_host::sys;
use libc::{iovec, mmsghdr, msghdr};

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
    let sent = with_patience(|| match data {
        // SAFETY: the user's buffer.
        [one] if control.is_empty() => unsafe { sys::sendto(fd, one, FLAGS, to) },
        _ => {
            let message = message(to, data, control);
            // SAFETY: the message's parts are valid.
            unsafe { sys::sendmsg(fd, &message, FLAGS) }
        }
    });
    sent.map(drop)
}

/// Sends datagrams in one call; how many have left. ENOBUFS counts as EAGAIN.
///
/// # Safety
/// The messages have valid parts.
pub unsafe fn send_all(fd: i32, messages: &mut [mmsghdr]) -> sys::Result<usize> {
    with_patience(|| match &mut *messages {
        // SAFETY: the caller's promise.
        [one] => unsafe { sys::sendmsg(fd, &one.msg_hdr, FLAGS) }.map(|_| 1),
        // SAFETY: the same.
        all => unsafe { sys::sendmmsg(fd, all, FLAGS) },
    })
}

#[inline]
fn with_patience(send: impl FnMut() -> sys::Result<usize>) -> sys::Result<usize> {
    match again(send) {
        Err(libc::ENOBUFS | libc::ENOMEM) => Err(libc::EAGAIN),
        result => result,
    }
}
