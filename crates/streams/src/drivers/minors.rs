//! Which minor devices of a driver are open.

use core::ffi::c_int;
use std::collections::BTreeSet;

use headwater_host::guarded::Guarded;

use crate::exec::OpenFlag;

pub struct Minors(Guarded<Used>);

struct Used {
    numbers: BTreeSet<u32>,
    /// None below is free.
    lowest: u32,
}

/// A minor device, in use until this is dropped.
pub struct Minor {
    number: u32,
    of: &'static Minors,
}

impl Minors {
    pub const fn new() -> Minors {
        Minors(Guarded::new(Used {
            numbers: BTreeSet::new(),
            lowest: 0,
        }))
    }

    /// The one that `dev` names, or for a clone open the lowest free one, which is put into `dev`. EBUSY if it is in use.
    pub fn take(&'static self, dev: &mut libc::dev_t, flag: OpenFlag) -> Result<Minor, c_int> {
        let mut used = self.0.enter();
        let number = match flag {
            OpenFlag::Clone => used.lowest_free(),
            _ => libc::minor(*dev),
        };
        if !used.numbers.insert(number) {
            return Err(libc::EBUSY);
        }
        *dev = libc::makedev(libc::major(*dev), number);
        Ok(Minor { number, of: self })
    }
}

impl Used {
    fn lowest_free(&mut self) -> u32 {
        while self.numbers.contains(&self.lowest) {
            self.lowest += 1;
        }
        self.lowest
    }
}

impl Minor {
    pub fn number(&self) -> u32 {
        self.number
    }
}

impl Drop for Minor {
    fn drop(&mut self) {
        let mut used = self.of.0.enter();
        used.numbers.remove(&self.number);
        used.lowest = used.lowest.min(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static MINORS: Minors = Minors::new();

    #[test]
    fn the_lowest_free_one_is_taken_and_a_named_one_only_once() {
        let clone = |dev: &mut libc::dev_t| MINORS.take(dev, OpenFlag::Clone).ok().unwrap();
        let mut dev = libc::makedev(300, 0);
        let all = [clone(&mut dev), clone(&mut dev), clone(&mut dev)];
        assert_eq!((libc::major(dev), libc::minor(dev)), (300, 2));
        let [_zero, one, _two] = all;
        dev = libc::makedev(300, 1);
        let again = MINORS.take(&mut dev, OpenFlag::Driver);
        assert_eq!(again.err(), Some(libc::EBUSY));
        drop(one);
        assert_eq!(clone(&mut dev).number(), 1);
    }
}
