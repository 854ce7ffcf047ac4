//! Handing messages on.
//!
//! # Contract
//! As for [`super::queue`]: inside the perimeter. The message belongs to the callee.

use super::message::*;
use super::owned::Message;
use super::queue::*;

impl Queue {
    /// put(9F): calls the put procedure.
    #[inline(always)]
    pub fn put(self, m: Message) {
        if let Some(put) = self.procedures().qi_putp {
            // SAFETY: the procedure that this queue has by `setq`, inside its perimeter.
            unsafe { put(self, m) };
        }
    }

    /// putnext(9F): calls the put procedure of the next queue. At the end of a stream the message is freed.
    #[inline(always)]
    pub fn putnext(self, m: Message) {
        if let Some(next) = self.next() {
            next.put(m);
        }
    }

    /// qreply(9F): sends a message back the other way.
    #[inline]
    pub fn qreply(self, m: Message) {
        self.other().putnext(m);
    }

    /// putctl(9F): puts a control message without data here. False for a data type, or without memory.
    pub fn putctl(self, kind: u8) -> bool {
        control(kind, &[]).map(|m| self.put(m)).is_some()
    }

    /// putctl1(9F): with one byte.
    pub fn putctl1(self, kind: u8, param: u8) -> bool {
        control(kind, &[param]).map(|m| self.put(m)).is_some()
    }

    /// putnextctl(9F).
    pub fn putnextctl(self, kind: u8) -> bool {
        self.next().is_some_and(|q| q.putctl(kind))
    }

    /// putnextctl1(9F).
    pub fn putnextctl1(self, kind: u8, param: u8) -> bool {
        self.next().is_some_and(|q| q.putctl1(kind, param))
    }
}

fn control(kind: u8, param: &[u8]) -> Option<Message> {
    if datamsg(kind) != 0 && kind != M_DELAY {
        return None;
    }
    let mut m = Message::try_new(kind, 1)?;
    m.push(param);
    Some(m)
}
