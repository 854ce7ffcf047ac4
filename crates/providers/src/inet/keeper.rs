//! What the kernel does not take at once of an endpoint that ends is sent by a *keeper*, as that of sockets is: a process that has
//! nothing of the program but the socket and a copy of those bytes. So no close and no exit waits for a peer to read.

use headwater_host::counters::{self, Reason};
use headwater_host::{aside, process, sys};
use headwater_sockets::keeper::{Took, send_all};

/// Leaves `data`, and with `shuts` the end of what is sent, to a keeper. False: there can't be one.
pub fn leave(fd: i32, data: &[u8], shuts: bool) -> bool {
    let left = !process::is_confined() && aside::leave(|| keep(fd, data, shuts));
    counters::note(if left { Reason::Kept } else { Reason::NoMemory });
    left
}

fn keep(fd: i32, mut data: &[u8], shuts: bool) {
    aside::become_nobody([fd].into_iter());
    let all = send_all(fd, || {
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        match sys::send_bytes(fd, data, flags) {
            Ok(n) => {
                data = &data[n..];
                match data.is_empty() {
                    true => Took::All,
                    false => Took::Some,
                }
            }
            Err(libc::EINTR | libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => Took::Nothing,
            // It is over.
            Err(_) => Took::All,
        }
    });
    if all && shuts {
        let _ = sys::shutdown(fd, libc::SHUT_WR);
    }
}
