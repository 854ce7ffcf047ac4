//! Whether taking over connections of a listener pays. Most connections that are carried pay many times over; those of a server
//! whose clients come for a few messages each may end before the takeover has earned what it cost, or before there is one. That
//! can't be known of one connection beforehand, but it is mostly the same for all of a listener, so each listener on the board
//! keeps an account: a connection brings in what it moves and is charged for its takeover, or, where many end without one, for
//! being looked after. A listener in debt is left alone for so many connections, or until none has come for a while, then tried
//! again, each time in debt for twice as many. Clients see it too and offer nothing.

use headwater_host::sync::{AtomicU64, Ordering};
use headwater_host::sys;

/// What a message by the ring saves is the unit; so many bytes copied once less are worth as much.
const BYTES: u64 = 4096;
/// A segment with its bells made, sent and mapped, and the rest of a takeover; and one from the pool.
const FRESH: i32 = 24;
const POOLED: i32 = 4;
/// Looking after a connection that ends without a takeover.
const UNUSED: i32 = 1;
/// The same in a child that was forked for it: the pages that it is the first to write to are copied.
const FORKED: i32 = 16;
/// No single connection brings in more, no account holds more.
const MOST: i32 = 4096;
/// Debt from which a listener is left alone, and where it stands when it is tried again: a few connections from there.
const DEBT: i32 = -192;
const RETRY: i32 = -144;
/// Connections that are left alone the first time, and how often that doubles.
const PAUSE: u16 = 32;
const DOUBLINGS: u8 = 6;
/// Of debt by connections without a takeover, so much is forgiven with each tick: where fewer come, they cost nobody anything.
const FORGIVEN: i32 = 32;
/// Ticks without a connection after which a listener is not left alone any more.
const QUIET: u8 = 4;

/// Time in units of 67 ms, which comes round after 17 s. What is taken for short then was long: a pause that goes on, at worst.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Tick(u8);

impl Tick {
    fn now() -> Tick {
        Tick((sys::now_roughly() >> 26) as u8)
    }
    fn since(self, before: Tick) -> u8 {
        self.0.wrapping_sub(before.0)
    }
}

/// A listener's account, in one word of the board.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Account {
    balance: i32,
    /// Connections that are still to be left alone.
    pause: u16,
    /// Pauses in a row.
    pauses: u8,
    /// When the latest connection came that was left alone, or went without a takeover.
    at: Tick,
}

impl Account {
    fn of(word: u64) -> Account {
        Account {
            balance: word as u32 as i32,
            pause: (word >> 32) as u16,
            pauses: (word >> 48) as u8,
            at: Tick((word >> 56) as u8),
        }
    }

    fn word(self) -> u64 {
        let [pause, pauses, at]: [u64; 3] =
            [self.pause.into(), self.pauses.into(), self.at.0.into()];
        self.balance as u32 as u64 | pause << 32 | pauses << 48 | at << 56
    }

    fn after(self, gain: i32, cost: i32, now: Tick) -> Account {
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
                at: now,
            }
        }
    }

    fn forgiven(self, now: Tick) -> Account {
        let forgiven = i32::from(now.since(self.at)) * FORGIVEN;
        let balance = match self.balance.clamp(DEBT, MOST) {
            debt @ ..0 => (debt + forgiven).min(0),
            sound => sound,
        };
        Account {
            balance,
            at: now,
            ..self
        }
    }

    fn pays(self, now: Tick) -> bool {
        self.pause == 0 || now.since(self.at) >= QUIET
    }

    fn accepted(self, now: Tick) -> Account {
        match (self.pause, self.pays(now)) {
            (0, _) => self,
            (_, true) => Account { pause: 0, ..self },
            (pause, false) => Account {
                pause: pause - 1,
                at: now,
                ..self
            },
        }
    }
}

fn change(account: &AtomicU64, f: impl Fn(Account) -> Account) {
    let step = |word| Some(f(Account::of(word)).word());
    let _ = account.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step);
}

/// What so many messages and bytes by the rings bring in.
pub fn units(messages: u64, bytes: u64) -> u64 {
    messages.saturating_add(bytes / BYTES)
}

fn gain(units: u64) -> i32 {
    units.min(MOST as u64) as i32
}

/// Are connections of this listener worth taking over just now?
#[inline]
pub fn pays(account: &AtomicU64) -> bool {
    let account = Account::of(account.load(Ordering::Relaxed));
    account.pause == 0 || account.pays(Tick::now())
}

/// A connection was accepted. False when it is one of those to be left alone.
pub fn accepted(account: &AtomicU64) -> bool {
    let known = Account::of(account.load(Ordering::Relaxed));
    known.pause == 0 || accepted_at(account, Tick::now())
}

#[cold]
fn accepted_at(account: &AtomicU64, now: Tick) -> bool {
    let pays = Account::of(account.load(Ordering::Relaxed)).pays(now);
    change(account, |a| a.accepted(now));
    pays
}

/// A carried connection has ended at its accepting end, which moved so much by the rings that it was not credited for; `fresh`
/// says that its segment was made for it.
pub fn ended(account: &AtomicU64, units: u64, fresh: bool) {
    let cost = if fresh { FRESH } else { POOLED };
    let now = Tick::now();
    change(account, |a| a.after(gain(units), cost, now));
}

/// One that goes on has moved so much.
pub fn earned(account: &AtomicU64, units: u64) {
    let now = Tick::now();
    change(account, |a| a.after(gain(units), 0, now));
}

/// A connection has ended at its accepting end that was not taken over; `forked` says that a child looked after it.
pub fn unused(account: &AtomicU64, forked: bool) {
    unused_at(account, cost_unused(forked), Tick::now());
}

fn cost_unused(forked: bool) -> i32 {
    match forked {
        true => FORKED,
        false => UNUSED,
    }
}

fn unused_at(account: &AtomicU64, cost: i32, now: Tick) {
    change(account, |a| a.forgiven(now).after(0, cost, now));
}

/// Would the next one of those begin a pause? What goes on is credited before.
pub fn is_spent(account: &AtomicU64, forked: bool) -> bool {
    Account::of(account.load(Ordering::Relaxed)).balance <= DEBT + cost_unused(forked)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of `n` connections are carried that move so many messages each.
    fn carried(account: &AtomicU64, n: u32, messages: u64, fresh: bool) -> u32 {
        let one = |_| {
            let carried = accepted(account);
            if carried {
                ended(account, units(messages, 100 * messages), fresh);
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
            ended(&account, 10_000, true);
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
            ended(&account, units(2, 1 << 20), true);
        }
    }

    #[test]
    fn nonsense_on_the_board_does_no_harm() {
        for word in [u64::MAX, 1 << 63, 0x8000_0000, 0x7fff_ffff, 0xffff << 32] {
            let account = AtomicU64::new(word);
            ended(&account, units(u64::MAX, u64::MAX), true);
            carried(&account, 70_000, 0, true);
            assert!(carried(&account, 100_000, 1000, true) > 50_000);
        }
    }

    /// How many of `n` connections are looked after that end without a takeover, so many in a tick.
    fn looked_after(account: &AtomicU64, cost: i32, n: u32, in_a_tick: u32) -> u32 {
        let one = |i: u32| {
            let now = Tick((i / in_a_tick) as u8);
            let taken = accepted_at(account, now);
            if taken {
                unused_at(account, cost, now);
            }
            u32::from(taken)
        };
        (0..n).map(one).sum()
    }

    #[test]
    fn a_storm_of_connections_without_a_takeover_is_left_alone() {
        let account = AtomicU64::new(0);
        looked_after(&account, UNUSED, 20_000, 500);
        let later = looked_after(&account, UNUSED, 20_000, 500);
        assert!(later < 1000, "{later} of 20000");
    }

    #[test]
    fn a_few_now_and_then_are_never_left_alone() {
        let account = AtomicU64::new(0);
        assert_eq!(looked_after(&account, UNUSED, 20_000, 20), 20_000);
    }

    #[test]
    fn children_for_a_request_each_are_left_alone_sooner() {
        let account = AtomicU64::new(0);
        let first = looked_after(&account, FORKED, 100, 10);
        assert!(first < 25, "{first} of 100");
        assert_eq!(looked_after(&AtomicU64::new(0), FORKED, 1000, 2), 1000);
    }

    #[test]
    fn a_storm_that_is_over_is_forgotten() {
        let account = AtomicU64::new(0);
        looked_after(&account, UNUSED, 20_000, 20_000);
        assert!(!accepted_at(&account, Tick(QUIET - 1)));
        assert!(accepted_at(&account, Tick(2 * QUIET - 1)));
    }

    #[test]
    fn what_goes_on_pays_for_a_storm() {
        let account = AtomicU64::new(0);
        for _ in 0..20_000 {
            assert!(accepted_at(&account, Tick(0)));
            if is_spent(&account, false) {
                earned(&account, 200);
            }
            unused_at(&account, UNUSED, Tick(0));
        }
    }

    #[test]
    fn ticks_come_round() {
        let account = AtomicU64::new(0);
        for t in 0..1000u32 {
            for _ in 0..20 {
                let now = Tick(t as u8);
                assert!(accepted_at(&account, now));
                unused_at(&account, UNUSED, now);
            }
        }
    }
}
