//! How chance makes scripts.

mod sockets;
mod streams;
mod xti;

use std::collections::HashSet;

use headwater_e2e::chance::Chance;

use crate::script::{Mix, Over, Script, Step};

const SLOTS: i64 = 12;
const PROCESSES: usize = 3;
/// So many scripts of a mix have all that it is made of.
const SOME: u64 = 500;

/// The script of a seed.
pub fn generate(mix: Mix, seed: u64) -> Script {
    match mix.over() {
        Over::Sockets => sockets::sockets(mix, seed),
        Over::Streams => streams::streams(seed),
        Over::Xti => xti::xti(seed),
    }
}

/// The script of a seed that is one of [those that a mix can be near to](crate::kept::like), changed a little; by chance alone where
/// there are none.
pub fn near(mix: Mix, seed: u64, kept: &[Script]) -> Script {
    match kept {
        [] => generate(mix, seed),
        kept => sockets::near(mix, seed, kept),
    }
}

/// The names of the steps that a mix has.
pub fn words(mix: Mix) -> HashSet<String> {
    let some = (0..SOME).flat_map(|seed| generate(mix, seed).steps);
    some.map(|step| step.name).collect()
}

/// Chance, and the script that it makes.
struct Pen {
    chance: Chance,
    script: Script,
}

impl Pen {
    fn new(mut chance: Chance, over: Over, threads: usize) -> Pen {
        let script = Script {
            over,
            threads,
            restarts: chance.below(2) == 0,
            steps: Vec::new(),
        };
        Pen { chance, script }
    }
}

trait Makes {
    fn pen(&mut self) -> &mut Pen;

    fn below(&mut self, n: i64) -> i64 {
        self.pen().chance.below(n as u64) as i64
    }

    fn one_in(&mut self, n: i64) -> bool {
        self.below(n) == 0
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as i64) as usize]
    }

    /// How many steps: from `least` on, of a range; every other time some three times as many. What needs five of them in an order is
    /// hundreds of times as likely then, and a long sequence takes but little longer than two short ones.
    fn steps(&mut self, least: i64, range: i64) -> i64 {
        let times = if self.one_in(2) { 3 } else { 1 };
        least * times + self.below(range * times)
    }

    /// Which of these, by their weights.
    fn weighed(&mut self, weights: &[u64]) -> usize {
        let mut at = self.pen().chance.below(weights.iter().sum());
        let group = weights.iter().position(|&w| {
            let here = at < w;
            at = at.wrapping_sub(w);
            here
        });
        group.unwrap_or(weights.len() - 1)
    }

    fn say(&mut self, process: usize, thread: usize, name: &str, numbers: &[i64]) {
        self.put(Step {
            process,
            thread,
            name: name.to_string(),
            numbers: numbers.to_vec(),
        });
    }

    /// The next step.
    fn put(&mut self, step: Step) {
        self.pen().script.steps.push(step);
    }
}
