//! Room for messages that arrive, many in one call: recvmmsg(2).

use headwater_host::{memory, sys};

use crate::again;
use crate::control::Control;

/// The largest packet of either version of IP, and what the kernel puts together of several datagrams.
const LARGEST: usize = 64 << 10;

pub(crate) struct Slot {
    pub bytes: Box<[u8]>,
    pub from: libc::sockaddr_storage,
    pub control: Control,
    pub control_len: usize,
    pub len: usize,
}

impl Slot {
    fn new() -> Slot {
        Slot {
            bytes: vec![0; LARGEST].into_boxed_slice(),
            from: sys::zeroed(),
            control: Control([0; 128]),
            control_len: 0,
            len: 0,
        }
    }

    /// The bytes, and the control messages, of which `control_len` bytes are said.
    pub fn parts(&mut self) -> (&mut [u8], &mut Control) {
        (&mut self.bytes[..self.len], &mut self.control)
    }
}

/// Takes up to `N` messages in a call. Memory is used as they come.
pub(crate) struct Slots<const N: usize> {
    pub slots: Vec<Slot>,
    most: usize,
    /// Messages to ask for next: as many as are likely to be there.
    ask: usize,
}

impl<const N: usize> Slots<N> {
    pub fn new(most: usize) -> Slots<N> {
        Slots {
            slots: Vec::new(),
            most: most.clamp(1, N),
            ask: 1,
        }
    }

    /// Fills slots from the first one on; gives how many. EAGAIN, or an error that an ICMP message has left.
    pub fn fill(&mut self, fd: i32) -> sys::Result<usize> {
        // The reserve is not for what can be taken one by one.
        while self.slots.len() < self.ask && (self.slots.is_empty() || !memory::is_scarce()) {
            self.slots.push(Slot::new());
        }
        let ask = self.ask.min(self.slots.len());
        let mut messages: [libc::mmsghdr; N] = sys::zeroed();
        let mut parts = [sys::buffer(core::ptr::null::<u8>(), 0); N];
        for (i, slot) in self.slots[..ask].iter_mut().enumerate() {
            parts[i] = sys::buffer(slot.bytes.as_mut_ptr(), slot.bytes.len());
            let header = &mut messages[i].msg_hdr;
            header.msg_name = &raw mut slot.from as *mut _;
            header.msg_namelen = size_of::<libc::sockaddr_storage>() as u32;
            header.msg_iov = &mut parts[i];
            header.msg_iovlen = 1;
            header.msg_control = slot.control.0.as_mut_ptr() as *mut _;
            header.msg_controllen = size_of::<Control>() as _;
        }
        let got = again(|| receive(fd, &mut messages[..ask]))?;
        for (slot, message) in self.slots.iter_mut().zip(&messages[..got]) {
            slot.len = message.msg_len as usize;
            slot.control_len = size_of::<Control>().min(message.msg_hdr.msg_controllen as _);
        }
        self.ask = if got == ask {
            (ask * 2).min(self.most)
        } else {
            got.max(1)
        };
        Ok(got)
    }
}

fn receive(fd: i32, messages: &mut [libc::mmsghdr]) -> sys::Result<usize> {
    if let [one] = messages {
        // SAFETY: the caller's message has valid parts.
        let len = unsafe { sys::recvmsg(fd, &mut one.msg_hdr, libc::MSG_DONTWAIT) }?;
        one.msg_len = len as u32;
        return Ok(1);
    }
    // SAFETY: the caller has filled in each of them, with valid parts.
    unsafe { sys::recvmmsg(fd, messages, libc::MSG_DONTWAIT) }
}
