//! What lies in the slots of each process, as far as the generator knows.

use crate::make::{PROCESSES, SLOTS};
use crate::script::Step;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Nothing,
    Listener,
    Connection,
    /// A connection that the C library has a stream over.
    Stream,
    Set,
    Pipe,
}

/// For each process that lives.
pub type Slots = [Option<[Kind; SLOTS as usize]>; PROCESSES];

/// Before the first step.
pub fn at_first() -> Slots {
    let mut slots = [None; PROCESSES];
    slots[0] = Some([Kind::Nothing; SLOTS as usize]);
    slots
}

/// Behind this step.
pub fn follow(slots: &mut Slots, step: &Step) {
    let p = step.process;
    let numbers = &step.numbers[..];
    let kind = match step.name.as_str() {
        "pair" | "pair6" | "connect" | "accept" | "accept4" | "take" | "dup" | "dupfd" => {
            Kind::Connection
        }
        "pipe" => Kind::Pipe,
        "epoll_create" => Kind::Set,
        "listen" => Kind::Listener,
        "fdopen" => Kind::Stream,
        "close" | "fclose" | "close_range" | "pour" => Kind::Nothing,
        "fork" => {
            let child = numbers.first().map_or(PROCESSES, |&n| n as usize);
            if slots.get(child).is_some_and(Option::is_none) {
                slots[child] = slots.get(p).copied().flatten();
            }
            return;
        }
        "kill" | "exit" => {
            if let Some(own) = slots.get_mut(p) {
                *own = None;
            }
            return;
        }
        _ => return,
    };
    let becomes = match (step.name.as_str(), numbers) {
        ("pair" | "pair6" | "pipe", &[a, b, ..]) => vec![a, b],
        // Who is full is closed, or the other end is.
        ("pour", &[a, _, b, _, what]) => match what {
            1 => vec![a],
            3 => vec![b],
            _ => Vec::new(),
        },
        // What lies between is not known: as a rule, what was made between.
        ("close_range", &[a, b, flags]) if flags & 5 == 0 => (a.min(b)..=a.max(b)).collect(),
        ("close_range", _) => Vec::new(),
        (_, numbers) => numbers.iter().take(1).copied().collect(),
    };
    let Some(Some(own)) = slots.get_mut(p) else {
        return;
    };
    for slot in becomes {
        if let Some(one) = usize::try_from(slot)
            .ok()
            .and_then(|slot| own.get_mut(slot))
        {
            *one = kind;
        }
    }
}
