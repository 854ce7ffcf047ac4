//! What the kernel does not take at once of an endpoint that ends is sent by a *keeper*, as that of sockets is: a process that has
//! nothing of the program but the socket and a copy of those bytes. So no close and no exit waits for a peer to read.

use core::time::Duration;

use headwater_host::counters::{self, Reason};
use headwater_host::{aside, process, sys};

/// A keeper whose peer takes nothing for so long gives up, as the kernel does with a connection that nobody owns.
const STALL_TIMEOUT: u64 = Duration::from_secs(120).as_nanos() as u64;
const SLICE: u64 = Duration::from_secs(1).as_nanos() as u64;

/// Leaves `data`, and with `shuts` the end of what is sent, to a keeper. False: there can't be one.
pub fn leave(fd: i32, data: &[u8], shuts: bool) -> bool {
    let left = !process::is_confined() && aside::leave(|| keep(fd, data, shuts));
    counters::note(if left { Reason::Kept } else { Reason::NoMemory });
    left
}

fn keep(fd: i32, mut data: &[u8], shuts: bool) {
    aside::become_nobody([fd].into_iter());
    let mut since = sys::now();
    while !data.is_empty() {
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // SAFETY: bytes of this process.
        match unsafe { sys::send(fd, data.as_ptr(), data.len(), flags) } {
            Ok(n) => {
                data = &data[n..];
                since = sys::now();
            }
            Err(libc::EINTR) => {}
            Err(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => {
                let told = sys::poll_for(fd, libc::POLLOUT, SLICE);
                let gone = told & (libc::POLLERR | libc::POLLHUP) != 0;
                if gone || sys::now() - since > STALL_TIMEOUT {
                    return;
                }
            }
            Err(_) => return,
        }
    }
    if shuts {
        let _ = sys::shutdown(fd, libc::SHUT_WR);
    }
}
