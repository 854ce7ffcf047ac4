//! Passing an end to another process over a UNIX socket: one message of four bytes that carries the four descriptors.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use super::{Fds, OpenError, Side};
use crate::pass::{self, Wanted};

/// First bytes of the message; the side and a zero follow.
const MARK: [u8; 2] = *b"HW";
const COUNT: usize = 4;

impl Fds {
    /// Sends the descriptors over a UNIX socket; waits, unless the socket is non-blocking. The end lives on while the message
    /// is under way. Errors: those of sendmsg(2).
    pub fn send_over(self, socket: impl AsFd) -> Result<(), OpenError> {
        let bytes = [MARK[0], MARK[1], self.side as u8, 0];
        let fds = [&self.memfd, &self.bell, &self.peer_bell, &self.shadow].map(|fd| fd.as_raw_fd());
        let socket = socket.as_fd().as_raw_fd();
        pass::send(socket, &[IoSlice::new(&bytes)], &fds, None, 0)?;
        Ok(())
    }

    /// Receives descriptors that [`send_over`](Fds::send_over) sent. [`OpenError::NotAChannel`] when something else comes, or
    /// the socket is closed. Errors: those of recvmsg(2).
    pub fn receive_from(socket: impl AsFd) -> Result<Fds, OpenError> {
        let mut bytes = [0; 4];
        let wanted = Wanted {
            descriptors: COUNT,
            credentials: false,
        };
        let socket = socket.as_fd().as_raw_fd();
        let came = pass::receive(socket, &mut [IoSliceMut::new(&mut bytes)], wanted, 0)?;
        let side = match bytes[2] {
            0 => Side::First,
            1 => Side::Second,
            _ => return Err(OpenError::NotAChannel),
        };
        if came.len != bytes.len() || bytes[..2] != MARK || came.lost {
            return Err(OpenError::NotAChannel);
        }
        let descriptors = came.descriptors.into_iter().flatten();
        let fds: Vec<OwnedFd> = descriptors.map(OwnedFd::from).collect();
        let fds: [OwnedFd; COUNT] = fds.try_into().map_err(|_| OpenError::NotAChannel)?;
        let [memfd, bell, peer_bell, shadow] = fds;
        Ok(Fds {
            side,
            memfd,
            bell,
            peer_bell,
            shadow,
        })
    }
}
