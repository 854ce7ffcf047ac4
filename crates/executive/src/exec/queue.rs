//! A queue as a module in Rust sees it: what the routines of the DDI/DKI ([`crate::ddi`]) leave to do.

use core::ffi::CStr;

use crate::ddi;
use crate::ddi::owned::Message;
use crate::ddi::queue::*;
pub use crate::ddi::{Flush, Queue};

impl Queue {
    /// Is there room behind for this message? High priority needs none.
    #[inline]
    pub fn takes_next(self, m: &Message) -> bool {
        m.is_priority() || self.bcanputnext(m.band())
    }

    /// What a service procedure does by default: hands messages on in order while there is room.
    pub fn forward(self) {
        self.forward_by(self);
    }

    /// The same, behind another queue than its own.
    pub fn forward_by(self, by: Queue) {
        while let Some(m) = self.getq() {
            if !by.takes_next(&m) {
                return self.putbq(m);
            }
            by.putnext(m);
        }
    }

    /// Flushes this queue as an M_FLUSH's bytes say, of which `side` is ours.
    pub fn flush_as(self, m: &Message, what: Flush) {
        let bytes = m.bytes();
        let side = if self.is_read() {
            ddi::FLUSHR
        } else {
            ddi::FLUSHW
        };
        match bytes {
            [sides, ..] if sides & side == 0 => {}
            [sides, band, ..] if sides & ddi::FLUSHBAND != 0 => self.flushband(*band, what),
            [_, ..] => self.flushq(what),
            [] => {}
        }
    }

    /// A driver's read queue: have it serviced when somebody looks for messages at an empty head, and by
    /// the head's own looks below.
    pub fn looks(self) {
        self.raise(QLOOKS);
    }

    /// q_count: bytes of normal and high-priority messages.
    pub fn count(self) -> usize {
        self.q_count.get()
    }

    /// Type and band of the first message.
    pub fn first(self) -> Option<(u8, u8)> {
        self.q_first.get().map(|m| (m.kind(), m.band()))
    }

    /// Runs `f` on the type and the first block of the first message.
    pub fn with_first<T>(self, f: impl FnOnce(u8, &[u8]) -> T) -> Option<T> {
        self.q_first.get().map(|m| f(m.kind(), m.bytes()))
    }

    /// Name of the module that the queue belongs to.
    pub fn name(self) -> Option<&'static CStr> {
        let name = self.procedures().qi_minfo?.mi_idname;
        // SAFETY: a name in such a table stays.
        (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) })
    }
}
