//! Scripts near those that once differed. What takes five steps in an order on one connection and set is seldom made by chance alone,
//! and lies near what took four of them.

use headwater_e2e::chance::Chance;

use super::{Maker, slots, spare_peeks, spare_rows};
use crate::make::{Makes, Pen};
use crate::script::{Mix, Script, Step};

/// So many changes of a script at most.
const CHANGES: i64 = 6;
/// So many steps of another one are taken at a time.
const RUN: i64 = 4;

/// One of these, of which there must be one, changed a little.
pub fn near(mix: Mix, seed: u64, kept: &[Script]) -> Script {
    let mut chance = Chance::new(seed);
    let script = kept[chance.below(kept.len() as u64) as usize].clone();
    let mut maker = Maker {
        pen: Pen { chance, script },
        mix,
        slots: slots::at_first(),
    };
    for _ in 0..=maker.below(CHANGES) {
        maker.change(kept);
    }
    for step in &mut maker.pen.script.steps {
        spare_rows(mix, maker.pen.script.threads, step);
    }
    spare_peeks(&mut maker.pen.script);
    maker.pen.script
}

impl Maker {
    fn change(&mut self, kept: &[Script]) {
        let len = self.pen.script.steps.len() as i64;
        if len == 0 {
            return self.insert(0);
        }
        let at = self.below(len) as usize;
        let behind = at + self.below(len - at as i64) as usize;
        match self.below(10) {
            0 => {
                self.pen.script.steps.remove(at);
            }
            1 => {
                let again = self.pen.script.steps[at].clone();
                self.pen.script.steps.insert(behind, again);
            }
            2 => {
                let step = self.pen.script.steps.remove(at);
                self.pen.script.steps.insert(behind, step);
            }
            3 | 4 => self.take_number(at, kept),
            5 => {
                let other = &kept[self.below(kept.len() as i64) as usize].steps;
                let from = self.below(other.len().max(1) as i64) as usize;
                let run = 1 + self.below(RUN) as usize;
                let run: Vec<Step> = other.iter().skip(from).take(run).cloned().collect();
                self.pen.script.steps.splice(at..at, run);
            }
            _ => self.insert(at),
        }
    }

    /// A number of this step becomes what one of its name has in another script.
    fn take_number(&mut self, at: usize, kept: &[Script]) {
        let name = self.pen.script.steps[at].name.clone();
        let others = kept.iter().flat_map(|script| &script.steps);
        let others: Vec<&Step> = others.filter(|step| step.name == name).collect();
        if others.is_empty() {
            return;
        }
        let other = others[self.below(others.len() as i64) as usize];
        let numbers = self.pen.script.steps[at].numbers.len();
        let which = self.below(numbers.max(1) as i64) as usize;
        if let (Some(own), Some(taken)) = (
            self.pen.script.steps[at].numbers.get_mut(which),
            other.numbers.get(which),
        ) {
            *own = *taken;
        }
    }

    /// A step as chance makes it where the script has come so far.
    fn insert(&mut self, at: usize) {
        let tail = self.pen.script.steps.split_off(at);
        self.slots = slots::at_first();
        for step in &self.pen.script.steps {
            slots::follow(&mut self.slots, step);
        }
        self.step();
        self.pen.script.steps.extend(tail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_has_most_of_what_it_is_near_to() {
        let text = "threads 1\n0 0 pair 0 1\n0 0 epoll_create 8\n0 0 epoll_ctl 8 1 0 5\n0 0 fork 1\n1 0 read 1 7\n";
        let kept: Vec<Script> = vec![text.parse().expect("a script")];
        let mut changed = 0;
        for seed in 0..300 {
            let script = near(Mix::Processes, seed, &kept);
            let same = kept[0].steps.iter();
            let same = same.filter(|step| script.steps.contains(step)).count();
            changed += usize::from(script != kept[0]);
            assert!(same + CHANGES as usize >= kept[0].steps.len());
            assert!(script.steps.len() <= kept[0].steps.len() + 50, "{script}");
        }
        assert!(changed > 250, "{changed}");
    }
}
