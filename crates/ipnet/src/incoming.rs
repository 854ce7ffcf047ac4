//! Datagrams that arrive: several in one call, and several in one message (UDP_GRO).

use headwater_host::sys;

use crate::control::controls;
use crate::slots::Slots;

/// Messages taken in one call at most.
const MESSAGES: usize = 8;

/// Datagrams that have arrived and were not handed out yet.
pub struct Incoming {
    slots: Slots<MESSAGES>,
    /// Of the slots: length and segment size.
    filled: [(usize, usize); MESSAGES],
    count: usize,
    /// The slot that is being handed out, from which byte on.
    slot: usize,
    at: usize,
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
            slots: Slots::new(MESSAGES),
            filled: [(0, 0); MESSAGES],
            count: 0,
            slot: 0,
            at: 0,
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
        let slot = &self.slots.slots[self.slot];
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
        let got = self.slots.fill(fd)?;
        for (filled, slot) in self.filled.iter_mut().zip(&self.slots.slots[..got]) {
            let size = segment_size(&slot.control.0[..slot.control_len]);
            *filled = (slot.len, size.unwrap_or(slot.len));
        }
        (self.count, self.slot, self.at) = (got, 0, 0);
        Ok(())
    }
}

/// Of a message that the kernel has put together from several.
fn segment_size(control: &[u8]) -> Option<usize> {
    let (_, _, value) = controls(control).find(|c| (c.0, c.1) == (libc::SOL_UDP, libc::UDP_GRO))?;
    let size = i32::from_ne_bytes(value.get(..4)?.try_into().ok()?);
    usize::try_from(size).ok().filter(|&size| size > 0)
}
