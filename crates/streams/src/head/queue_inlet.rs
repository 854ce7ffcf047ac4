//! The messages in a queued head's queue.
//!
//! # Contract
//! Made and used inside the perimeter.

use super::Head;
use super::inlet::{Front, Inlet, Trouble};
use crate::ddi::*;

pub struct QueueInlet<'a> {
    q: *mut queue_t,
    /// A pipe's head without modules, whose ring holds what comes after the queue.
    ring: Option<&'a Head>,
}

impl<'a> QueueInlet<'a> {
    pub fn new(q: *mut queue_t, ring: Option<&'a Head>) -> QueueInlet<'a> {
        QueueInlet { q, ring }
    }
}

/// # Safety
/// A message on a queue, inside its perimeter.
unsafe fn front_of(mp: *mut mblk_t) -> Front {
    // SAFETY: a message on a queue, inside its perimeter, as the caller says: b_cont leads from one live block to the next.
    unsafe {
        let kind = mtype(mp);
        let mut front = Front {
            kind,
            band: (*mp).b_band,
            control: None,
            data: None,
            mark: (*mp).b_flag & MSGMARK != 0,
            delim: (*mp).b_flag & MSGDELIM != 0,
        };
        let mut at = mp;
        while !at.is_null() {
            let part = if mtype(at) == M_DATA || kind == M_PASSFP {
                &mut front.data
            } else {
                &mut front.control
            };
            *part = Some(part.unwrap_or(0) + length(at));
            at = (*at).b_cont;
        }
        front
    }
}

impl Inlet for QueueInlet<'_> {
    fn front(&mut self) -> Result<Option<Front>, Trouble> {
        // SAFETY: inside the perimeter.
        unsafe {
            // What goes before the first here may be in the ring, now that what went before both is taken.
            if let Some(head) = self.ring.filter(|head| head.incoming().specials() > 0)
                && !(*self.q).q_first.is_null()
                && let Some(local) = head.local()
            {
                super::bottom::pump(head, local);
            }
            let mp = (*self.q).q_first;
            Ok((!mp.is_null()).then(|| front_of(mp)))
        }
    }

    fn each(&self, f: &mut dyn FnMut(&Front)) -> Result<(), Trouble> {
        // SAFETY: inside the perimeter.
        unsafe {
            let mut mp = (*self.q).q_first;
            while !mp.is_null() {
                f(&front_of(mp));
                mp = (*mp).b_next;
            }
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
            && super::bottom::pump(head, local)
    }

    fn copy(&self, mut skip: usize, mut buf: &mut [u8]) {
        // SAFETY: inside the perimeter; blocks hold what lies between their pointers.
        unsafe {
            let mut mp = (*self.q).q_first;
            while !mp.is_null() && !buf.is_empty() {
                let len = length(mp);
                if skip < len {
                    let n = (len - skip).min(buf.len());
                    core::ptr::copy_nonoverlapping((*mp).b_rptr.add(skip), buf.as_mut_ptr(), n);
                    buf = &mut buf[n..];
                    skip = 0;
                } else {
                    skip -= len;
                }
                mp = (*mp).b_cont;
            }
        }
    }

    fn take(&mut self, control: Option<usize>, data: Option<usize>) -> Result<(), Trouble> {
        // SAFETY: inside the perimeter; the message is off the queue while it is taken apart.
        unsafe {
            let front = front_of((*self.q).q_first);
            let mp = getq(self.q);
            if mp.is_null() {
                return Ok(());
            }
            let high = mtype(mp) == M_PCPROTO;
            let control_gone = front.control.is_none() || control == front.control;
            let data_gone = front.data.is_none() || data == front.data;
            if control_gone && data_gone {
                freemsg(mp);
                return Ok(());
            }
            let (mut first, mut second) = split(mp);
            if control_gone {
                freemsg(first);
                first = core::ptr::null_mut();
            } else {
                drop_front(first, control.unwrap_or(0));
            }
            if data_gone {
                freemsg(second);
                second = core::ptr::null_mut();
            } else {
                drop_front(second, data.unwrap_or(0));
            }
            let rest = if first.is_null() {
                second
            } else {
                if !second.is_null() {
                    linkb(first, second);
                }
                first
            };
            if !rest.is_null() {
                (*rest).b_band = if high { 0 } else { front.band };
                if front.delim {
                    (*rest).b_flag |= MSGDELIM;
                }
                putbq(self.q, rest);
            }
            Ok(())
        }
    }
}

/// Control and data blocks, each perhaps null.
///
/// # Safety
/// A message of the caller's.
unsafe fn split(mp: *mut mblk_t) -> (*mut mblk_t, *mut mblk_t) {
    // SAFETY: blocks of the caller's message, which is taken apart before the first data block.
    unsafe {
        if mtype(mp) == M_DATA || mtype(mp) == M_PASSFP {
            return (core::ptr::null_mut(), mp);
        }
        let mut last = mp;
        while !(*last).b_cont.is_null() && mtype((*last).b_cont) != M_DATA {
            last = (*last).b_cont;
        }
        let rest = unlinkb(last);
        (mp, rest)
    }
}

/// Moves past `n` bytes of a chain, whose blocks stay.
///
/// # Safety
/// A message of the caller's, or null.
unsafe fn drop_front(mut mp: *mut mblk_t, mut n: usize) {
    // SAFETY: blocks of the caller's message; no read pointer passes the write pointer.
    unsafe {
        while !mp.is_null() && n > 0 {
            let some = length(mp).min(n);
            (*mp).b_rptr = (*mp).b_rptr.add(some);
            n -= some;
            mp = (*mp).b_cont;
        }
    }
}
