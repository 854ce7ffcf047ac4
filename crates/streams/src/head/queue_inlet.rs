//! The messages in a queued head's queue.
//!
//! # Contract
//! Made and used inside the perimeter.

use super::Head;
use super::inlet::{Front, Inlet, Trouble};
use crate::ddi::*;

pub struct QueueInlet<'a> {
    q: Queue,
    /// A pipe's head without modules, whose ring holds what comes after the queue.
    ring: Option<&'a Head>,
}

impl<'a> QueueInlet<'a> {
    pub fn new(q: Queue, ring: Option<&'a Head>) -> QueueInlet<'a> {
        QueueInlet { q, ring }
    }
}

fn front_of(m: &Message) -> Front {
    let kind = m.kind();
    let mut front = Front {
        kind,
        band: m.band(),
        control: None,
        data: None,
        mark: m.flags() & MSGMARK != 0,
        delim: m.flags() & MSGDELIM != 0,
    };
    for (of, bytes) in m.blocks() {
        let part = if of == M_DATA || kind == M_PASSFP {
            &mut front.data
        } else {
            &mut front.control
        };
        *part = Some(part.unwrap_or(0) + bytes.len());
    }
    front
}

impl Inlet for QueueInlet<'_> {
    fn front(&mut self) -> Result<Option<Front>, Trouble> {
        // What goes before the first here may be in the ring, now that what went before both is taken.
        if let Some(head) = self.ring.filter(|head| head.incoming().specials() > 0)
            && self.q.first().is_some()
            // SAFETY: inside the perimeter.
            && let Some(local) = unsafe { head.local() }
        {
            super::bottom::pump(head, local.bottom);
        }
        Ok(self.q.messages().next().map(|m| front_of(&m)))
    }

    fn each(&self, f: &mut dyn FnMut(&Front)) -> Result<(), Trouble> {
        for m in self.q.messages() {
            f(&front_of(&m));
        }
        if let Some(head) = self.ring {
            super::bottom::each_in_ring(head, f);
        }
        Ok(())
    }

    fn fetch(&mut self, wanted: &dyn Fn(&Front) -> bool) -> bool {
        let Some(head) = self.ring else { return false };
        // SAFETY: inside the perimeter.
        let Some(local) = (unsafe { head.local() }) else {
            return false;
        };
        super::bottom::first_in_ring(head).is_some_and(|front| wanted(&front))
            && super::bottom::pump(head, local.bottom)
    }

    fn copy(&self, mut skip: usize, mut buf: &mut [u8]) {
        let Some(m) = self.q.messages().next() else {
            return;
        };
        for (_, bytes) in m.blocks() {
            let left = bytes.get(skip..).unwrap_or(&[]);
            skip = skip.saturating_sub(bytes.len());
            let n = left.len().min(buf.len());
            let (to, rest) = buf.split_at_mut(n);
            to.copy_from_slice(&left[..n]);
            buf = rest;
        }
    }

    fn take(&mut self, control: Option<usize>, data: Option<usize>) -> Result<(), Trouble> {
        let Some(mut m) = self.q.getq() else {
            return Ok(());
        };
        let front = front_of(&m);
        let (mut first, mut second) = match m.kind() {
            M_DATA | M_PASSFP => (None, Some(m)),
            _ => {
                let second = m.take_data();
                (Some(m), second)
            }
        };
        for (part, all, taken) in [
            (&mut first, front.control, control),
            (&mut second, front.data, data),
        ] {
            if all.is_none() || taken == all {
                *part = None;
            } else if let Some(part) = part {
                part.skip(taken.unwrap_or(0));
            }
        }
        let rest = match (first, second) {
            (Some(mut first), Some(second)) => {
                first.append(second);
                Some(first)
            }
            (first, second) => first.or(second),
        };
        if let Some(mut rest) = rest {
            let high = front.kind == M_PCPROTO;
            rest.set_band(if high { 0 } else { front.band });
            if front.delim {
                rest.set_flags(rest.flags() | MSGDELIM);
            }
            self.q.putbq(rest);
        }
        Ok(())
    }
}
