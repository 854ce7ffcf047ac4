//! How many numbers the program has of what a handle stands for, and which of those that had its place one after the other that is: for kinds
//! whose numbers made by dup(2) are one thing.

use crate::epoll;
use crate::sync::{AtomicU64, Ordering};
use crate::table::{self, Handle};

/// {generation: 32, numbers of this process: 32}, in one word, so that a fork copies it whole.
#[derive(Default)]
pub struct Numbers(AtomicU64);

const GENERATION: u64 = 1 << 32;

impl Numbers {
    pub const fn new() -> Numbers {
        Numbers(AtomicU64::new(0))
    }

    /// The place is taken, by what has one number. Gives its generation, for the handle; `None`: somebody has it.
    pub fn begin(&self) -> Option<u32> {
        self.change(|word| (word as u32 == 0).then_some(word + 1))
            .map(|word| (word / GENERATION) as u32)
    }

    /// Does the place belong to `h`, which has numbers still?
    #[inline(always)]
    pub fn are_of(&self, h: Handle) -> bool {
        are_of(self.0.load(Ordering::Acquire), h)
    }

    /// `h` gets another number, unless it has lost its last one this moment. Who can't enter that has [`fewer`](Numbers::fewer).
    pub fn more(&self, h: Handle) -> bool {
        self.change(|word| are_of(word, h).then_some(word + 1))
            .is_some()
    }

    /// Before the kernel closes `fd`, one of these numbers: sets that it is in are told, and it is foreign from here on. It counts until
    /// there is one [`fewer`](Numbers::fewer).
    pub fn closing(&self, fd: i32) {
        if self.0.load(Ordering::Acquire) as u32 > 1 {
            epoll::orphaned(fd);
        } else {
            epoll::closing(fd);
        }
        table::clear(fd);
    }

    /// `h` has lost a number. True: that was its last, and the place is for another to [begin](Numbers::begin).
    pub fn fewer(&self, h: Handle) -> bool {
        let fewer = |word: u64| match word as u32 {
            1 => word - 1 + GENERATION,
            _ => word - 1,
        };
        self.change(|word| are_of(word, h).then(|| fewer(word)))
            .is_some_and(|word| word as u32 == 1)
    }

    fn change(&self, to: impl Fn(u64) -> Option<u64>) -> Option<u64> {
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, to)
            .ok()
    }
}

#[inline(always)]
fn are_of(word: u64, h: Handle) -> bool {
    word as u32 > 0 && (word / GENERATION) as u32 & 0xff_ffff == h.generation()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Kind;

    fn begun(numbers: &Numbers) -> Handle {
        let generation = numbers.begin().expect("nobody has it");
        Handle::new(Kind::Sctp, generation, 0)
    }

    #[test]
    fn a_place_is_its_handles_until_the_last_number_is_gone() {
        let numbers = Numbers::new();
        let h = begun(&numbers);
        assert!(numbers.begin().is_none());
        assert!(numbers.more(h) && numbers.are_of(h));
        assert!(!numbers.fewer(h) && numbers.are_of(h));
        assert!(numbers.fewer(h) && !numbers.are_of(h));
        assert!(!numbers.more(h) && !numbers.fewer(h));
    }

    #[test]
    fn a_handle_of_before_has_nothing_to_do_with_who_comes_then() {
        let numbers = Numbers(AtomicU64::new(0xff_ffff * GENERATION));
        let first = begun(&numbers);
        assert!(numbers.fewer(first));
        let second = begun(&numbers);
        assert!(!numbers.are_of(first) && !numbers.more(first) && !numbers.fewer(first));
        assert!(numbers.are_of(second) && numbers.fewer(second));
    }
}
