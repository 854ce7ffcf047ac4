//! Whether taking over connections of a listener pays. Most connections that are carried pay many times over; those of a server
//! whose clients come for a few messages each may end before the takeover has earned what it cost. That can't be known of one
//! connection beforehand, but it is mostly the same for all of a listener, so each listener on the board keeps an account: a
//! connection that ends brings in what it moved and is charged for its takeover. A listener in debt is left alone for so many
//! connections, then tried again, each time in debt for twice as many. Clients see it too and offer nothing.

use headwater_host::sync::{AtomicU64, Ordering};

/// What a message by the ring saves is the unit; so many bytes copied once less are worth as much.
const BYTES: u64 = 4096;
/// A segment with its bells made, sent and mapped, and the rest of a takeover; and one from the pool.
const FRESH: i32 = 24;
const POOLED: i32 = 4;
/// No single connection brings in more, no account holds more.
const MOST: i32 = 4096;
/// Debt from which a listener is left alone, and where it stands when it is tried again: a few connections from there.
const DEBT: i32 = -192;
const RETRY: i32 = -144;
/// Connections that are left alone the first time, and how often that doubles.
const PAUSE: u16 = 32;
const DOUBLINGS: u8 = 6;

/// A listener's account, in one word of the board.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Account {
    balance: i32,
    /// Connections that are still to be left alone.
    pause: u16,
    /// Pauses in a row.
    pauses: u8,
}

impl Account {
    fn of(word: u64) -> Account {
        Account {
            balance: word as u32 as i32,
            pause: (word >> 32) as u16,
            pauses: (word >> 48) as u8,
        }
    }

    fn word(self) -> u64 {
        self.balance as u32 as u64 | (self.pause as u64) << 32 | (self.pauses as u64) << 48
    }

    fn after(self, gain: i32, cost: i32) -> Account {
        // Whoever may write to the board may write anything.
        let balance = self.balance.clamp(DEBT, MOST) + gain - cost;
        if balance > DEBT {
            Account {
                balance: balance.min(MOST),
                pauses: if balance > 0 { 0 } else { self.pauses },
                ..self
            }
        } else {
            Account {
                balance: RETRY,
                pause: PAUSE << self.pauses.min(DOUBLINGS),
                pauses: self.pauses.saturating_add(1),
            }
        }
    }
}

fn change(account: &AtomicU64, f: impl Fn(Account) -> Account) {
    let step = |word| Some(f(Account::of(word)).word());
    let _ = account.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step);
}

/// Are connections of this listener worth taking over just now?
#[inline]
pub fn pays(account: &AtomicU64) -> bool {
    Account::of(account.load(Ordering::Relaxed)).pause == 0
}

/// A connection was accepted. False when it is one of those to be left alone.
pub fn accepted(account: &AtomicU64) -> bool {
    if pays(account) {
        return true;
    }
    change(account, |a| Account {
        pause: a.pause.saturating_sub(1),
        ..a
    });
    false
}

/// A carried connection has ended at its accepting end, which moved so much by the rings; `fresh` says that its segment was made
/// for it.
pub fn ended(account: &AtomicU64, messages: u64, bytes: u64, fresh: bool) {
    let gain = (messages + bytes / BYTES).min(MOST as u64) as i32;
    let cost = if fresh { FRESH } else { POOLED };
    change(account, |a| a.after(gain, cost));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of `n` connections are carried that move so many messages each.
    fn carried(account: &AtomicU64, n: u32, messages: u64, fresh: bool) -> u32 {
        let one = |_| {
            let carried = accepted(account);
            if carried {
                ended(account, messages, 100 * messages, fresh);
            }
            u32::from(carried)
        };
        (0..n).map(one).sum()
    }

    #[test]
    fn what_never_pays_is_left_alone_ever_longer() {
        let account = AtomicU64::new(0);
        let [first, later] = [1000, 10_000].map(|n| carried(&account, n, 4, true));
        assert!(first < 40, "{first} of 1000");
        assert!(later < 20, "{later} of 10000");
    }

    #[test]
    fn what_pays_is_never_left_alone() {
        let account = AtomicU64::new(0);
        assert_eq!(carried(&account, 1000, 100, true), 1000);
        assert_eq!(carried(&account, 1000, 10, false), 1000);
    }

    #[test]
    fn one_good_connection_pays_for_many_short_ones() {
        let account = AtomicU64::new(0);
        for _ in 0..100 {
            assert!(accepted(&account));
            ended(&account, 10_000, 0, true);
            assert_eq!(carried(&account, 50, 4, true), 50);
        }
    }

    #[test]
    fn a_listener_that_has_changed_is_found_out() {
        let account = AtomicU64::new(0);
        carried(&account, 100_000, 0, true);
        assert!(carried(&account, 100_000, 1000, true) > 90_000);
        assert_eq!(carried(&account, 100, 1000, true), 100);
    }

    #[test]
    fn bytes_count_too() {
        let account = AtomicU64::new(0);
        for _ in 0..1000 {
            assert!(accepted(&account));
            ended(&account, 2, 1 << 20, true);
        }
    }

    #[test]
    fn nonsense_on_the_board_does_no_harm() {
        for word in [u64::MAX, 1 << 63, 0x8000_0000, 0x7fff_ffff, 0xffff << 32] {
            let account = AtomicU64::new(word);
            ended(&account, u64::MAX / 2, u64::MAX, true);
            carried(&account, 70_000, 0, true);
            assert!(carried(&account, 100_000, 1000, true) > 50_000);
        }
    }
}
