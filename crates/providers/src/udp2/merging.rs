//! Whose turn it is where a receiver has a ring and the kernel.
//!
//! The ring tells for nothing whether it has something; the kernel has to be asked, which costs more than a datagram from the
//! ring. So while the ring is never empty the kernel is asked now and then, the more often the more it had lately.

/// Datagrams from the ring between two looks at the kernel, at most.
const RARELY: u32 = 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    Ring,
    Wire,
}

impl Side {
    pub fn other(self) -> Side {
        match self {
            Side::Ring => Side::Wire,
            Side::Wire => Side::Ring,
        }
    }
}

pub struct Merging {
    /// Who served last.
    last: Side,
    /// The rest of a datagram waits there.
    piece: bool,
    /// From the ring since the last look at the kernel, and how many may be.
    since: u32,
    after: u32,
    /// The last look at the kernel found something: so what comes next is likely to come by it.
    pub by_wire: bool,
}

impl Default for Merging {
    fn default() -> Merging {
        Merging {
            last: Side::Wire,
            piece: false,
            since: 0,
            after: 1,
            by_wire: false,
        }
    }
}

impl Merging {
    /// `ring`: it has something; `wire`: something was already taken from the kernel. If neither, the kernel is asked.
    #[inline]
    pub fn turn(&mut self, ring: bool, wire: bool) -> Side {
        if self.piece {
            return self.last;
        }
        if !ring || wire && self.last == Side::Ring || !wire && self.since >= self.after {
            return Side::Wire;
        }
        self.since += 1;
        Side::Ring
    }

    /// Who served in the end, and whether the rest of a datagram stays there.
    #[inline]
    pub fn served(&mut self, by: Side, piece: bool) {
        (self.last, self.piece) = (by, piece);
    }

    /// The kernel was asked; had it something?
    #[inline]
    pub fn looked_at_wire(&mut self, found: bool) {
        self.since = 0;
        self.by_wire = found;
        self.after = if found {
            1
        } else {
            (self.after * 2).min(RARELY)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_ring_does_not_keep_the_kernel_out() {
        let mut merging = Merging::default();
        let mut looks = 0;
        for _ in 0..1000 {
            if merging.turn(true, false) == Side::Wire {
                looks += 1;
                merging.looked_at_wire(false);
            }
            merging.served(Side::Ring, false);
        }
        assert!((1000 / RARELY..100).contains(&looks), "{looks}");
    }

    #[test]
    fn both_are_served_in_turn_while_both_have_something() {
        let mut merging = Merging::default();
        let turns: Vec<Side> = (0..4)
            .map(|_| {
                let turn = merging.turn(true, true);
                merging.served(turn, false);
                turn
            })
            .collect();
        assert_eq!(turns, [Side::Ring, Side::Wire, Side::Ring, Side::Wire]);
    }

    #[test]
    fn the_rest_of_a_datagram_comes_before_anything_else() {
        let mut merging = Merging::default();
        // The look at the kernel was in vain.
        merging.served(Side::Ring, true);
        assert_eq!(merging.turn(true, true), Side::Ring);
        merging.served(Side::Ring, false);
        assert_eq!(merging.turn(true, true), Side::Wire);
    }
}
