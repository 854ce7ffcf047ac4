//! Sequences by chance, several at a time, until it is enough.

use std::sync::atomic::{AtomicU64, Ordering};

use headwater_e2e::network;

use crate::script::{Mix, Script};
use crate::{Machine, Verdict, make};

pub struct Hunt<'a> {
    pub mix: Mix,
    /// The first sequence's number; the others have those that follow.
    pub first: u64,
    /// What the sequences are near to; none, and they are by chance alone.
    pub near: &'a [Script],
    /// As many sequences at a time, each in a network of its own.
    pub machines: &'a [Machine],
}

#[derive(Default)]
pub struct Counts {
    pub run: AtomicU64,
    /// Not the same natively each time.
    pub varied: AtomicU64,
    pub in_rows: AtomicU64,
    /// Ends of connections.
    pub carried: AtomicU64,
}

impl Counts {
    pub fn of(count: &AtomicU64) -> u64 {
        count.load(Ordering::Relaxed)
    }
}

impl Hunt<'_> {
    /// Until `over` says so before a sequence; `differs` is told of what does, `after` is called after each.
    pub fn run(
        &self,
        over: impl Fn(u64) -> bool + Sync,
        differs: impl Fn(&Machine, u64, &Script, &Verdict) + Sync,
        after: impl Fn(&Counts) + Sync,
    ) -> Counts {
        let counts = Counts::default();
        let next = AtomicU64::new(self.first);
        let one_after_the_other = &|machine: &Machine| {
            network::isolate();
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if over(seed) {
                    return;
                }
                let script = make::near(self.mix, seed, self.near);
                let verdict = machine.judge(&script);
                let add = |count: &AtomicU64, n: u64| {
                    count.fetch_add(n, Ordering::Relaxed);
                };
                add(&counts.run, 1);
                add(&counts.carried, machine.take_carried());
                match &verdict {
                    Verdict::Same => {}
                    Verdict::Varies => add(&counts.varied, 1),
                    Verdict::Row(_) => add(&counts.in_rows, 1),
                    Verdict::Differs { .. } => differs(machine, seed, &script, &verdict),
                }
                after(&counts);
            }
        };
        std::thread::scope(|scope| {
            for machine in self.machines {
                scope.spawn(move || one_after_the_other(machine));
            }
        });
        counts
    }
}
