//! Datagrams that arrive: several in one call, and several in one message (UDP_GRO).

use headwater_host::{memory, sys};

use crate::again;
use crate::control::{Control, controls};

const BUFFER: usize = 64 << 10;
/// Messages taken in one call at most.
const MESSAGES: usize = 8;

struct Slot {
    bytes: Box<[u8]>,
    from: libc::sockaddr_storage,
    control: Control,
    control_len: usize,
}

/// Datagrams that have arrived and were not handed out yet.
pub struct Incoming {
    slots: Vec<Slot>,
    /// Of the slots: length and segment size.
    filled: [(usize, usize); MESSAGES],
    count: usize,
    /// The slot that is being handed out, from which byte on.
    slot: usize,
    at: usize,
    /// Messages to ask for next: as many as are likely to be there.
    ask: usize,
}

/// The datagram in front.
pub struct Front<'a> {
    pub data: &'a [u8],
    pub from: &'a libc::sockaddr_storage,
    /// The control messages that came with it: see [`controls`].
    pub control: &'a [u8],
}

impl Default for Incoming {
    fn default() -> Incoming {
        Incoming {
            slots: Vec::new(),
            filled: [(0, 0); MESSAGES],
            count: 0,
            slot: 0,
            at: 0,
            ask: 1,
        }
    }
}

impl Incoming {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.slot >= self.count
    }

    /// The datagram in front, from the byte on up to which it was handed out.
    #[inline]
    pub fn front(&self, skip: usize) -> Option<Front<'_>> {
        if self.is_empty() {
            return None;
        }
        let slot = &self.slots[self.slot];
        let (len, size) = self.filled[self.slot];
        let end = (self.at + size).min(len);
        Some(Front {
            data: &slot.bytes[self.at + skip..end],
            from: &slot.from,
            control: &slot.control.0[..slot.control_len],
        })
    }

    /// The one in front is done with.
    #[inline]
    pub fn pop(&mut self) {
        let (len, size) = self.filled[self.slot];
        self.at += size;
        if size == 0 || self.at >= len {
            self.slot += 1;
            self.at = 0;
        }
    }

    /// Takes what the kernel has, when all has been handed out.
    pub fn fill(&mut self, fd: i32) -> sys::Result<()> {
        // The reserve is not for datagrams that can be taken one by one.
        while self.slots.len() < self.ask && (self.slots.is_empty() || !memory::is_scarce()) {
            let from = sys::zeroed();
            self.slots.push(Slot {
                bytes: vec![0; BUFFER].into_boxed_slice(),
                from,
                control: Control([0; 128]),
                control_len: 0,
            });
        }
        let ask = self.ask.min(self.slots.len());
        let mut messages: [libc::mmsghdr; MESSAGES] = sys::zeroed();
        let mut parts = [sys::buffer(core::ptr::null::<u8>(), 0); MESSAGES];
        for (i, slot) in self.slots[..ask].iter_mut().enumerate() {
            parts[i] = sys::buffer(slot.bytes.as_mut_ptr(), BUFFER);
            let header = &mut messages[i].msg_hdr;
            header.msg_name = &raw mut slot.from as *mut _;
            header.msg_namelen = size_of::<libc::sockaddr_storage>() as u32;
            header.msg_iov = &mut parts[i];
            header.msg_iovlen = 1;
            header.msg_control = slot.control.0.as_mut_ptr() as *mut _;
            header.msg_controllen = size_of::<Control>() as _;
        }
        let got = again(|| receive(fd, &mut messages[..ask]))?;
        for (i, message) in messages[..got].iter().enumerate() {
            let len = message.msg_len as usize;
            let slot = &mut self.slots[i];
            slot.control_len = size_of::<Control>().min(message.msg_hdr.msg_controllen as _);
            let size = segment_size(&slot.control.0[..slot.control_len]);
            self.filled[i] = (len, size.unwrap_or(len));
        }
        (self.count, self.slot, self.at) = (got, 0, 0);
        self.ask = if got == ask {
            (ask * 2).min(MESSAGES)
        } else {
            got.max(1)
        };
        Ok(())
    }
}

fn receive(fd: i32, messages: &mut [libc::mmsghdr]) -> sys::Result<usize> {
    use syscalls::{Sysno, syscall};
    if let [one] = messages {
        // SAFETY: the caller's message has valid parts.
        let len = unsafe { sys::recvmsg(fd, &mut one.msg_hdr, libc::MSG_DONTWAIT) }?;
        one.msg_len = len as u32;
        return Ok(1);
    }
    // SAFETY: the caller has filled in each of them, with valid parts.
    unsafe {
        syscall!(
            Sysno::recvmmsg,
            fd,
            messages.as_mut_ptr(),
            messages.len(),
            libc::MSG_DONTWAIT,
            0
        )
    }
    .map_err(|e| e.into_raw())
}

/// Of a message that the kernel has put together from several.
fn segment_size(control: &[u8]) -> Option<usize> {
    let (_, _, value) = controls(control).find(|c| (c.0, c.1) == (libc::SOL_UDP, libc::UDP_GRO))?;
    let size = i32::from_ne_bytes(value.get(..4)?.try_into().ok()?);
    usize::try_from(size).ok().filter(|&size| size > 0)
}
