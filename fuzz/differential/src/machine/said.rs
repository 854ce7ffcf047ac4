//! What the outputs of two runs say about why they differ.

use crate::rows;
use crate::script::{Over, Script, Step};

/// How an error is printed that has no name: it is one of the kernel's inside.
const INTERNAL: &str = "= internal error";

/// A row that only what is said tells of.
pub fn row(expected: &[String], seen: &[String]) -> Option<&'static str> {
    let says = |what: &[&str]| {
        let all = |line: &String| what.iter().all(|word| line.contains(word));
        expected.iter().any(all)
    };
    // As a number, or as EPOLLERR only.
    if says(&[INTERNAL]) || says(&[" recvmmsg ", "= waits"]) && says(&[" signal "]) {
        return rows::named("internal-error");
    }
    if was_low_water_set_under_a_wait(expected, seen) {
        return rows::named("low-water-waits");
    }
    let splices = |line: &&String| line.contains(" splice ") && line.contains("= waits");
    let splices = expected.iter().filter(splices).count();
    if splices > 1 || splices > 0 && says(&[" close", "= waits"]) {
        return rows::named("pipe-held");
    }
    match was_closed_under_a_wait(expected, seen) {
        true => rows::named("poll-held"),
        false => None,
    }
}

/// What this output says of each step.
pub fn results(script: &Script, said: &[String]) -> Vec<String> {
    let mut lines = said.iter();
    let result = |step: &Step| {
        let step = step.to_string();
        let mut rest = lines.by_ref().filter_map(|line| line.strip_prefix(&step));
        let result = rest.find(|rest| rest.is_empty() || rest.starts_with(' '));
        result.unwrap_or_default().to_string()
    };
    script.steps.iter().map(result).collect()
}

/// Do these differ first in which of several that wait for one endpoint's or connection's data is served? No page says who comes
/// first, and the kernel, which wakes them all, has them come in any order, though seldom in each.
pub fn is_about_who_comes_first(script: &Script, expected: &[String], seen: &[String]) -> bool {
    let mut waiting: Vec<(usize, &Step)> = Vec::new();
    let both = [results(script, expected), results(script, seen)];
    for (place, step) in script.steps.iter().enumerate() {
        let [here, there] = [&both[0][place], &both[1][place]].map(|result| served(result));
        if both[0][place] != both[1][place] {
            let of_several = |&(at, _): &(usize, u64)| {
                let known = waiting.iter().find(|(other, _)| *other == at);
                known.is_some_and(|(_, one)| {
                    let is_beside =
                        |(_, other): &&(usize, &Step)| wait_for_the_same(script, one, other);
                    waiting.iter().filter(is_beside).count() > 1
                })
            };
            let bytes = |all: &[(usize, u64)]| all.iter().map(|(_, n)| n).sum::<u64>();
            let own = |result: &str| result.split(" | ").next().map(str::to_string);
            let mut all = here.iter().chain(&there);
            return match script.over {
                Over::Sockets => {
                    let is_all_the_same = bytes(&here) == bytes(&there)
                        && own(&both[0][place]) == own(&both[1][place]);
                    bytes(&here) > 0 && is_all_the_same && all.all(of_several)
                }
                Over::Streams => false,
                Over::Xti => all.any(of_several),
            };
        }
        waiting.retain(|(at, _)| here.iter().all(|(done, _)| done != at));
        if both[0][place].starts_with(" = waits") {
            waiting.push((place, step));
        }
    }
    false
}

/// Which waits, by the places of their steps, this result of a step says to be over, and the numbers that they returned.
fn served(result: &str) -> Vec<(usize, u64)> {
    let answer = |answer: &str| {
        let mut words = answer.split(' ');
        let place = words.next()?.parse().ok()?;
        let number = words.nth(1).and_then(|number| number.parse().ok());
        Some((place, number.unwrap_or(0)))
    };
    result.split(" | ").skip(1).filter_map(answer).collect()
}

fn wait_for_the_same(script: &Script, one: &Step, other: &Step) -> bool {
    let receives = |step: &Step| step.name.starts_with("recv") || step.name.starts_with("read");
    let alike = match script.over {
        // A slot is what it was in the parent, unless something else was put there.
        Over::Sockets => receives(one) && receives(other),
        Over::Streams | Over::Xti => one.process == other.process,
    };
    alike && one.numbers.first() == other.numbers.first()
}

/// Do these differ only behind a close by a thread while another of its process waits in poll or select?
fn was_closed_under_a_wait(expected: &[String], seen: &[String]) -> bool {
    let differs = expected.iter().zip(seen).position(|(a, b)| a != b);
    let until = differs.map_or(expected.len().min(seen.len()), |at| at + 1);
    let (mut waiting, mut used) = (Vec::new(), Vec::new());
    // What a thread that waits is asked to do it does not.
    let done = |line: &&String| !line.ends_with("= busy");
    for line in expected[..until.min(expected.len())].iter().filter(done) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [process, thread, name, ref arguments @ ..] = words[..] else {
            continue;
        };
        let numbers: Vec<i64> = arguments.iter().map_while(|n| n.parse().ok()).collect();
        let is_under = |at: &(&str, &str, u16)| at.0 == process && at.1 != thread;
        match name {
            "poll" | "ppoll" | "select" | "pselect" if line.contains("= waits") => {
                waiting.push((process, thread, slots_of_a_wait(name, &numbers)));
            }
            "close" | "close_range" | "closes_all" | "fclose" | "dup2" | "dup3" => {
                if waiting.iter().any(is_under) {
                    return true;
                }
                if name == "close" {
                    used.retain(|at| Some(at) != numbers.first().map(|&n| (process, n)).as_ref());
                }
            }
            "fork" => {
                let child = arguments.first().copied().unwrap_or_default();
                let own = used.iter().filter(|at| at.0 == process);
                let copies: Vec<_> = own.map(|&(_, slot)| (child, slot)).collect();
                used.extend(copies);
            }
            _ => {
                for &slot in numbers.iter().take(slots_put_into(name)) {
                    let is_waited_on = waiting
                        .iter()
                        .any(|at| is_under(at) && at.2 >> (slot & 15) & 1 != 0);
                    if is_waited_on && used.contains(&(process, slot)) {
                        return true;
                    }
                    used.push((process, slot));
                }
            }
        }
    }
    false
}

/// A bit for each slot that such a call looks at.
fn slots_of_a_wait(name: &str, numbers: &[i64]) -> u16 {
    let asked = numbers.iter().skip(1).take(3);
    match name.ends_with("select") {
        true => asked.fold(0, |all, &set| all | set as u16),
        false => asked
            .filter(|&&entry| entry >= 0)
            .fold(0, |all, entry| all | 1 << (entry & 15)),
    }
}

/// How many slots a step puts new numbers into. What is in them it closes, and of several the second may get the number of the first.
fn slots_put_into(name: &str) -> usize {
    match name {
        "pair" | "pipe" => 2,
        "accept" | "accept4" | "connect" | "dup" | "dupfd" | "epoll_create" | "listen" | "take" => {
            1
        }
        _ => 0,
    }
}

/// Do these differ only from where a call waits to receive while SO_RCVLOWAT, set in the same process, asks for more than one byte?
fn was_low_water_set_under_a_wait(expected: &[String], seen: &[String]) -> bool {
    let level = libc::SOL_SOCKET.to_string();
    let option = libc::SO_RCVLOWAT.to_string();
    let (mut waiting, mut set) = (Vec::new(), Vec::new());
    for (ours, theirs) in expected.iter().zip(seen) {
        let words: Vec<&str> = ours.split_whitespace().collect();
        let is_set = |value: &&str| !matches!(*value, "0" | "1");
        let process = words.first().copied().unwrap_or_default();
        match words[..] {
            [_, _, "setopt", _, at, name, ref value, ..]
                if at == level && name == option && is_set(value) =>
            {
                set.push(process);
            }
            [_, _, name, ..]
                if (name.starts_with("recv") || name.starts_with("read"))
                    && ours.contains("= waits") =>
            {
                waiting.push(process);
            }
            _ => {}
        }
        if waiting.iter().any(|process| set.contains(process)) {
            return true;
        }
        if ours != theirs {
            return false;
        }
    }
    false
}

#[cfg(test)]
mod tests;
