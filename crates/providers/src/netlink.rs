//! Questions to the kernel's tables (netlink(7)), each a message that another one answers at once.

use headwater_host::{hidden, sys};

/// A socket for those of one protocol, opened by the first of them.
pub struct Netlink<const PROTOCOL: i32>(i32);

impl<const PROTOCOL: i32> Default for Netlink<PROTOCOL> {
    fn default() -> Self {
        Netlink(-1)
    }
}

impl<const PROTOCOL: i32> Netlink<PROTOCOL> {
    /// `None`: no answer.
    pub fn ask<'a>(&mut self, question: &[u8], answer: &'a mut [u8]) -> Option<&'a [u8]> {
        if self.0 < 0 {
            let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
            let socket = sys::socket(libc::AF_NETLINK, kind, PROTOCOL);
            self.0 = socket.and_then(hidden::hide).ok()?;
        }
        sys::send_bytes(self.0, question, libc::MSG_DONTWAIT).ok()?;
        let n = sys::recv_bytes(self.0, answer, libc::MSG_DONTWAIT).ok()?;
        answer.get(..n)
    }
}

impl<const PROTOCOL: i32> Drop for Netlink<PROTOCOL> {
    fn drop(&mut self) {
        hidden::close(self.0);
    }
}
