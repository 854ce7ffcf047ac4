//! What is to be sent: where a message goes in the order, and the bytes of a write.

use libc::iovec;

use crate::ddi as kind;

/// Where a new message goes in the order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Priority {
    High,
    Band(u8),
}

impl Priority {
    /// Type and band of a message, which may have a control part.
    pub(super) fn of_message(self, has_control: bool) -> (u8, u8) {
        match self {
            Priority::High => (kind::M_PCPROTO, 0),
            Priority::Band(band) if has_control => (kind::M_PROTO, band),
            Priority::Band(band) => (kind::M_DATA, band),
        }
    }
}

/// The bytes of a vector, one after the other.
pub struct Source<'a> {
    iov: &'a [iovec],
    skip: usize,
}

impl<'a> Source<'a> {
    pub fn new(iov: &'a [iovec]) -> Source<'a> {
        Source { iov, skip: 0 }
    }

    /// Moves on by `to.len()` bytes, copying them. The caller asks for no more than there are.
    pub fn take(&mut self, mut to: &mut [u8]) {
        self.each(to.len(), |part| {
            to[..part.len()].copy_from_slice(part);
            to = &mut core::mem::take(&mut to)[part.len()..];
        });
    }

    /// The same, behind what `to` has.
    pub fn append(&mut self, to: &mut Vec<u8>, len: usize) {
        to.reserve(len);
        self.each(len, |part| to.extend_from_slice(part));
    }

    fn each(&mut self, mut len: usize, mut take: impl FnMut(&[u8])) {
        while len > 0
            && let Some(v) = self.iov.first()
        {
            let n = (v.iov_len - self.skip).min(len);
            if n > 0 {
                // SAFETY: the program's buffer, as writev(2) wants it, of which `skip` bytes and these are no more than there are.
                take(unsafe {
                    core::slice::from_raw_parts((v.iov_base as *const u8).add(self.skip), n)
                });
            }
            len -= n;
            self.skip += n;
            if self.skip == v.iov_len {
                self.iov = &self.iov[1..];
                self.skip = 0;
            }
        }
    }
}
