//! Makes a script shorter that shows a difference.

use crate::machine::Machine;
use crate::script::{Over, Script};

/// Leaves out what can be left out, `tell` being told of each success.
pub fn shrink(machine: &Machine, script: &Script, tell: impl Fn(usize)) -> Script {
    // What different ways of making a stream print is not a matter of time, as a rule.
    let slowly = script.over == Over::Sockets;
    let differs = |s: &Script| {
        let seen = machine.look(s, false);
        seen.differs()
            && (!slowly || machine.look(s, true).differs())
            && machine.unseen_row(s, &seen).is_none()
    };
    let mut best = script.clone();
    let mut size = best.steps.len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        let mut shorter = false;
        while at < best.steps.len() {
            let mut next = best.clone();
            next.steps.drain(at..(at + size).min(best.steps.len()));
            if !next.steps.is_empty() && differs(&next) {
                best = next;
                shorter = true;
                tell(best.steps.len());
            } else {
                at += size;
            }
        }
        if size == 1 && shorter {
            continue;
        }
        size /= 2;
    }
    if !slowly && !machine.look(&best, true).differs() {
        // What it was shortened to was another one, of time.
        best = script.clone();
    }
    let mut single = best.clone();
    single.threads = 1;
    if single.steps.iter().all(|s| s.thread == 0) && differs(&single) {
        best = single;
    }
    best
}
