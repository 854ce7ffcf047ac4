//! Questions to the kernel's tables (netlink(7)), each a message that another one answers at once.

use core::mem;

use crate::{hidden, sys};

/// struct nlmsghdr.
const HEADER: usize = 16;
const QUESTION: usize = 128;

/// A socket for those of one protocol, opened by the first of them.
pub struct Netlink<const PROTOCOL: i32>(i32);

impl<const PROTOCOL: i32> Default for Netlink<PROTOCOL> {
    fn default() -> Self {
        Netlink(-1)
    }
}

impl<const PROTOCOL: i32> Netlink<PROTOCOL> {
    /// The kind of the answer, and what it says. `None`: no answer.
    pub fn ask<'a>(
        &mut self,
        kind: u16,
        question: &[u8],
        answer: &'a mut [u8],
    ) -> Option<(u16, &'a [u8])> {
        if self.0 < 0 {
            let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
            let socket = sys::socket(libc::AF_NETLINK, kind, PROTOCOL);
            self.0 = socket.and_then(hidden::hide).ok()?;
        }
        let mut message = [0; HEADER + QUESTION];
        let len = HEADER + question.len();
        message[..4].copy_from_slice(&(len as u32).to_ne_bytes());
        message[4..6].copy_from_slice(&kind.to_ne_bytes());
        message[6..8].copy_from_slice(&(libc::NLM_F_REQUEST as u16).to_ne_bytes());
        message.get_mut(HEADER..len)?.copy_from_slice(question);
        sys::send_bytes(self.0, &message[..len], libc::MSG_DONTWAIT).ok()?;
        let n = sys::recv_bytes(self.0, answer, libc::MSG_DONTWAIT).ok()?;
        let answer = answer.get(..n)?;
        Some((half(answer, 4)?, answer.get(HEADER..)?))
    }
}

impl<const PROTOCOL: i32> Drop for Netlink<PROTOCOL> {
    fn drop(&mut self) {
        hidden::close(self.0);
    }
}

/// The kinds and the values of attributes (struct nlattr) that stand there one after the other.
pub fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    core::iter::from_fn(move || {
        let (len, kind) = (usize::from(half(bytes, 0)?), half(bytes, 2)?);
        let value = bytes.get(4..len)?;
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    let half = bytes.get(at..at + 2)?.try_into().ok()?;
    Some(u16::from_ne_bytes(half))
}

/// struct inet_diag_sockid; ports and addresses in the network's order.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct SocketId {
    pub sport: [u8; 2],
    pub dport: [u8; 2],
    pub src: [u8; 16],
    pub dst: [u8; 16],
    pub interface: u32,
    pub cookie: [u32; 2],
}

/// struct inet_diag_req_v2.
#[repr(C)]
struct SocketQuestion {
    family: u8,
    protocol: u8,
    extensions: u8,
    pad: u8,
    states: u32,
    id: SocketId,
}

/// struct inet_diag_msg.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct SocketTold {
    pub family: u8,
    pub state: u8,
    pub timer: u8,
    pub retransmits: u8,
    pub id: SocketId,
    pub expires: u32,
    pub unread: u32,
    pub unsent: u32,
    pub uid: u32,
    pub inode: u32,
}

impl Netlink<{ libc::NETLINK_SOCK_DIAG }> {
    /// What the kernel says of a socket of this family and protocol (sock_diag(7)), and behind it the attributes that
    /// `extensions` asks for. The cookie may be any.
    pub fn ask_of_socket<'a>(
        &mut self,
        (family, protocol): (u8, i32),
        id: SocketId,
        extensions: u8,
        answer: &'a mut [u8],
    ) -> Option<(SocketTold, &'a [u8])> {
        const SOCK_DIAG_BY_FAMILY: u16 = 20;
        const TOLD: usize = size_of::<SocketTold>();
        let question = SocketQuestion {
            family,
            protocol: protocol as u8,
            extensions,
            pad: 0,
            states: u32::MAX,
            id: SocketId {
                cookie: [u32::MAX; 2],
                ..id
            },
        };
        // SAFETY: numbers without padding.
        let question: [u8; size_of::<SocketQuestion>()] = unsafe { mem::transmute(question) };
        let (kind, answer) = self.ask(SOCK_DIAG_BY_FAMILY, &question, answer)?;
        if kind != SOCK_DIAG_BY_FAMILY {
            return None;
        }
        let (told, rest) = answer.split_first_chunk::<TOLD>()?;
        // SAFETY: numbers, which may have any values.
        Some((
            unsafe { mem::transmute::<[u8; TOLD], SocketTold>(*told) },
            rest,
        ))
    }
}
