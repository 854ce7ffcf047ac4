//! Flow control, and a queue's parameters.
//!
//! # Contract
//! As for [`super::queue`]: inside the perimeter.

use core::cell::Cell;
use core::ffi::{c_int, c_long};

use super::block::OnQueue;
use super::queue::*;

/// qfields_t of strqget(9F) and strqset(9F).
pub const QHIWAT: c_int = 0;
pub const QLOWAT: c_int = 1;
pub const QMAXPSZ: c_int = 2;
pub const QMINPSZ: c_int = 3;
pub const QCOUNT: c_int = 4;
pub const QFIRST: c_int = 5;
pub const QLAST: c_int = 6;
pub const QFLAG: c_int = 7;

impl Queue {
    /// canput(9F): is there room in the first queue from here on that has a service procedure, or the last one? If not, the
    /// queue behind it is enabled once there is.
    #[inline]
    pub fn canput(self) -> bool {
        let q = self.holder();
        if q.flags() & QFULL == 0 {
            return true;
        }
        q.raise(QWANTW);
        false
    }

    /// bcanput(9F): canput for a band. A band never used has room.
    pub fn bcanput(self, pri: u8) -> bool {
        if pri == 0 {
            return self.canput();
        }
        match self.holder().find_band(pri) {
            Some(band) if band.qb_flag.get() & QB_FULL != 0 => {
                band.qb_flag.set(band.qb_flag.get() | QB_WANTW);
                false
            }
            _ => true,
        }
    }

    /// canputnext(9F); true at the end of a stream, where nothing is kept.
    #[inline]
    pub fn canputnext(self) -> bool {
        self.next().is_none_or(Queue::canput)
    }

    /// bcanputnext(9F).
    #[inline]
    pub fn bcanputnext(self, band: u8) -> bool {
        self.next().is_none_or(|q| q.bcanput(band))
    }

    /// The queue where a message put here would be held.
    #[inline(always)]
    fn holder(self) -> Queue {
        let mut q = self;
        while q.procedures().qi_srvp.is_none()
            && let Some(next) = q.next()
        {
            q = next;
        }
        q
    }

    /// strqget(9F): a field of the queue, or of band `pri`; or EINVAL.
    pub fn strqget(self, what: c_int, pri: u8) -> Result<c_long, c_int> {
        let address = |m: &Cell<Option<OnQueue>>| {
            m.get().map_or(0, |m| m.as_ptr().expose_provenance()) as c_long
        };
        let band = (pri > 0).then(|| self.make_band(pri));
        Ok(match (what, band) {
            (QHIWAT, None) => self.q_hiwat.get() as c_long,
            (QLOWAT, None) => self.q_lowat.get() as c_long,
            (QMAXPSZ, None) => self.q_maxpsz.get() as c_long,
            (QMINPSZ, None) => self.q_minpsz.get() as c_long,
            (QCOUNT, None) => self.q_count.get() as c_long,
            (QFIRST, None) => address(&self.q_first),
            (QLAST, None) => address(&self.q_last),
            (QFLAG, None) => self.flags() as c_long,
            (QHIWAT, Some(band)) => band.qb_hiwat.get() as c_long,
            (QLOWAT, Some(band)) => band.qb_lowat.get() as c_long,
            (QCOUNT, Some(band)) => band.qb_count.get() as c_long,
            (QFIRST, Some(band)) => address(&band.qb_first),
            (QLAST, Some(band)) => address(&band.qb_last),
            (QFLAG, Some(band)) => band.qb_flag.get() as c_long,
            _ => return Err(libc::EINVAL),
        })
    }

    /// strqset(9F): sets marks or packet sizes; or EPERM for a field that can't be set, EINVAL.
    /// A queue (band) that has room by its new marks is no longer full.
    pub fn strqset(self, what: c_int, pri: u8, value: c_long) -> Result<(), c_int> {
        match what {
            QHIWAT | QLOWAT => self.set_mark(what, pri, value as usize),
            QMAXPSZ if pri == 0 => self.q_maxpsz.set(value as isize),
            QMINPSZ if pri == 0 => self.q_minpsz.set(value as isize),
            QCOUNT | QFIRST | QLAST | QFLAG => return Err(libc::EPERM),
            _ => return Err(libc::EINVAL),
        }
        Ok(())
    }

    fn set_mark(self, what: c_int, pri: u8, value: usize) {
        if pri == 0 {
            match what {
                QHIWAT => self.q_hiwat.set(value),
                _ => self.q_lowat.set(value),
            }
            if self.q_count < self.q_hiwat {
                self.lower(QFULL);
            } else if self.q_first.get().is_some() {
                self.raise(QFULL);
            }
        } else {
            let band = self.make_band(pri);
            match what {
                QHIWAT => band.qb_hiwat.set(value),
                _ => band.qb_lowat.set(value),
            }
            let flag = band.qb_flag.get();
            if band.qb_count < band.qb_hiwat {
                band.qb_flag.set(flag & !QB_FULL);
            } else if band.qb_first.get().is_some() {
                band.qb_flag.set(flag | QB_FULL);
            }
        }
        self.relieve(pri);
    }
}
