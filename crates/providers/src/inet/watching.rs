//! A receiver of datagrams that come one by one: whoever sleeps has to be woken by the sender for each of them, which costs
//! both more than a few more looks. They are taken while they pay.

use core::time::Duration;

use headwater_host::sys;

/// For how long in nanoseconds, where the sender has a CPU of its own.
const LONG: u64 = Duration::from_micros(30).as_nanos() as u64;
/// Looks that paid are remembered up to here; one that did not costs [`VAIN`] of them.
const MOST: i32 = 64;
const VAIN: i32 = 16;
/// Waits without a look, before one is tried again.
const TRY_EVERY: i32 = 64;

#[derive(Default)]
pub struct Watching {
    /// Since when this wait looks; 0: it does not.
    since: u64,
    /// Above 0: looks pay. Below: so many waits go by without.
    luck: i32,
}

impl Watching {
    /// May the call that waits for `fd` look once more?
    pub fn goes_on(&mut self, fd: i32) -> bool {
        if self.since == 0 {
            return self.begin(fd);
        }
        if sys::now() - self.since < LONG {
            return true;
        }
        self.since = 0;
        self.luck -= VAIN;
        if self.luck <= 0 {
            self.luck = -TRY_EVERY;
        }
        false
    }

    fn begin(&mut self, fd: i32) -> bool {
        if self.luck < 0 {
            self.luck += 1;
            return false;
        }
        if !comes_from_elsewhere(fd) {
            return false;
        }
        self.since = sys::now();
        true
    }

    /// There is something.
    pub fn found(&mut self) {
        self.since = 0;
        self.luck = (self.luck + 1).min(MOST);
    }
}

/// Was the last datagram dealt with on another CPU than this one? On one host that is the sender's.
fn comes_from_elsewhere(fd: i32) -> bool {
    sys::sockopt::<i32>(fd, libc::SOL_SOCKET, libc::SO_INCOMING_CPU)
        .is_ok_and(|cpu| cpu >= 0 && cpu as u32 != sys::cpu())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_that_do_not_pay_are_given_up_for_a_while() {
        let mut watching = Watching { since: 1, luck: 1 };
        assert!(!watching.goes_on(-1));
        for _ in 0..TRY_EVERY {
            assert_eq!(watching.since, 0);
            assert!(!watching.goes_on(-1));
        }
        assert_eq!(watching.luck, 0);
    }
}
