//! How large packets may be on a path, found by probing (RFC 8899): HEARTBEATs padded to a size are sent, and those that are
//! answered prove it. Sizes are those of SCTP packets, header included.
//!
//! ```text
//!             probe lost 3 times: lower ceiling       mtu and ceiling near each other, or mtu = max
//!        .------------.                             .------------> complete
//!        v            |                             |                 |
//!      search --------+-----------------------------'                 | raise timer
//!        ^   ^ probe acknowledged: higher mtu                         |
//!        |   `--------------------------------------------------------'
//!        `--- black hole: mtu falls to base, or from base to the least
//! ```
//! The association itself proves the base size: it is not probed before use.

use core::time::Duration;

use crate::Time;

/// A size is given up after that many probes (MAX_PROBES).
const MOST_PROBES: u32 = 3;
/// Timeouts in a row after which full packets are taken for lost because of their size.
const BLACK_HOLE: u32 = 3;
/// After that long, what was too large is tried again (PMTU_RAISE_TIMER).
const RAISE: Duration = Duration::from_secs(600);
/// A search that could gain no more than that is over.
const STEP: usize = 32;
/// No path is believed to carry less (MIN_PLPMTU): 576 bytes of IPv4, with UDP.
const LEAST: usize = 548;
/// What the usual links carry inside IPv6 and UDP: 1280, 1400, 1420, 1480, 1492, 1500, 4464, 9000.
const COMMON: [usize; 8] = [1232, 1352, 1372, 1432, 1444, 1452, 4416, 8952];

#[derive(Clone, Debug, Default)]
pub struct Pmtu {
    base: usize,
    max: usize,
    mtu: usize,
    /// Sizes from here on are taken for too large.
    ceiling: usize,
    /// Worth trying first.
    hint: usize,
    /// The size that is searched by now; none: the search is over.
    wanted: Option<usize>,
    /// A probe of the wanted size is on its way.
    in_flight: bool,
    /// Probes of the wanted size that were lost.
    lost: u32,
    /// When the last probe was sent.
    last: Time,
    /// Timeouts of data in a row.
    timeouts: u32,
    /// The size is the user's wish, whatever passes.
    fixed: bool,
    /// It does not seem to pass.
    too_large: bool,
}

impl Pmtu {
    /// `base` is used at once; nothing beyond `max` is tried.
    pub fn new(base: usize, max: usize) -> Pmtu {
        let (base, max) = (aligned(base), aligned(max).max(aligned(base)));
        let mut pmtu = Pmtu {
            base,
            max,
            mtu: base,
            ..Pmtu::default()
        };
        pmtu.search_anew();
        pmtu
    }

    /// This size, without any search. What does not pass as a whole is IP's to fragment.
    pub fn fixed(size: usize) -> Pmtu {
        Pmtu {
            fixed: true,
            ..Pmtu::new(size, size)
        }
    }

    /// Are packets to be fragmented on their way, rather than made smaller?
    pub fn is_to_be_fragmented(&self) -> bool {
        self.too_large
    }

    /// The largest packet that data may be sent in.
    pub fn mtu(&self) -> usize {
        self.mtu
    }

    /// The size of a probe that is to be sent now. It counts as sent.
    pub fn probe(&mut self, now: Time) -> Option<usize> {
        if self.wanted.is_none() && self.next().is_some_and(|raise| raise <= now) {
            self.search_anew();
        }
        let size = self.wanted.filter(|_| !self.in_flight)?;
        self.in_flight = true;
        self.last = now;
        Some(size)
    }

    /// A probe of this size was answered.
    pub fn on_ack(&mut self, size: usize) {
        if size > self.mtu && size < self.ceiling {
            self.mtu = size;
        }
        if self.wanted.is_some_and(|wanted| wanted <= self.mtu) {
            self.choose();
        }
    }

    /// The probe on its way was not answered in time; or, when none is, the time of [`Pmtu::next`] has come.
    pub fn on_timeout(&mut self, now: Time) {
        if let Some(size) = self.wanted.filter(|_| self.in_flight) {
            self.in_flight = false;
            self.lost += 1;
            if self.lost >= MOST_PROBES {
                self.ceiling = size;
                self.choose();
            }
        } else if self.next().is_some_and(|raise| raise <= now) {
            self.search_anew();
        }
    }

    /// The network says that no more than `mtu` passes (an ICMP message that was checked to be about one of our packets). It is
    /// a hint only: above what is in use it shortens the search, below it is treated as a black hole (RFC 8899 4.6.2).
    pub fn on_too_big(&mut self, mtu: usize) {
        let size = aligned(mtu);
        let sent = self.wanted.filter(|_| self.in_flight);
        let sent = sent.unwrap_or(self.mtu).max(self.mtu);
        if size < LEAST.min(self.base) || size >= sent || size + 1 >= self.ceiling {
            return;
        }
        if self.fixed {
            self.too_large = true;
            return;
        }
        if size < self.mtu {
            self.mtu = self.base.min(size);
        }
        self.ceiling = size + 1;
        self.hint = size;
        self.choose();
    }

    /// Data was not acknowledged in time; whether that makes a black hole likely, which it does once until [`Pmtu::data_passed`]
    /// (RFC 8899 4.3). `errors`: packets of any size without an answer since one had it. Where fewer of those are missing the
    /// path is there, and only data is lost.
    pub fn data_lost(&mut self, errors: u32) -> bool {
        self.timeouts = self.timeouts.saturating_add(1);
        self.timeouts == BLACK_HOLE && errors < BLACK_HOLE
    }

    /// Data was acknowledged.
    pub fn data_passed(&mut self) {
        self.timeouts = 0;
    }

    /// Full packets are lost and small ones are not, or so it seems: back to the base, or when that is in use to the least.
    pub fn black_hole(&mut self) {
        if self.fixed {
            self.too_large = true;
            return;
        }
        let old = self.mtu;
        self.mtu = if old > self.base {
            self.base
        } else {
            LEAST.min(old)
        };
        if self.mtu < old {
            self.ceiling = old;
            self.hint = 0;
            self.choose();
        }
    }

    /// When to call [`Pmtu::on_timeout`] to begin another search, once one is over that did not reach the maximum.
    pub fn next(&self) -> Option<Time> {
        (self.wanted.is_none() && self.mtu < self.max).then(|| self.last + RAISE)
    }

    fn search_anew(&mut self) {
        self.ceiling = self.max + 1;
        self.hint = self.max;
        self.choose();
    }

    /// The next size to be tried: the hint, the largest common one, or the middle of what is left.
    fn choose(&mut self) {
        let (low, ceiling) = (self.mtu, self.ceiling);
        let open = |size: &usize| *size > low && *size < ceiling;
        let common = || COMMON.iter().rev().copied().find(open);
        let middle = || (ceiling > low + STEP).then(|| aligned(low + (ceiling - low) / 2));
        self.wanted = Some(self.hint)
            .filter(open)
            .or_else(common)
            .or_else(middle)
            .filter(open);
        self.in_flight = false;
        self.lost = 0;
    }
}

/// Chunks are padded to four bytes, and so are packets.
fn aligned(size: usize) -> usize {
    size & !3
}

#[cfg(test)]
mod tests;
