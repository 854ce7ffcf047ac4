//! Scripts: what they are.

use std::fmt;
use std::str::FromStr;

/// What a script is mostly made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Mix {
    /// Sending and receiving, with every flag, by one process.
    Transfer,
    /// poll, select and epoll.
    Ready,
    /// Calls that wait, in two threads, with signals and time limits.
    Blocked,
    /// fork, exec, SCM_RIGHTS, exit and kill.
    Processes,
    /// Out-of-band data, its mark, and what tells of it.
    Urgent,
    /// The C library's streams over connections.
    Stdio,
    /// Socket options, right ones and wrong ones.
    Options,
    /// All of these.
    All,
    /// Streams: messages, bands, marks, flushes.
    Streams,
    /// Transport endpoints: connections, data, datagrams, options.
    Xti,
}

pub const MIXES: [Mix; 10] = [
    Mix::Transfer,
    Mix::Ready,
    Mix::Blocked,
    Mix::Processes,
    Mix::Urgent,
    Mix::Stdio,
    Mix::Options,
    Mix::All,
    Mix::Streams,
    Mix::Xti,
];

/// What a script is about, and so what is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Over {
    /// The kernel, and the library preloaded.
    #[default]
    Sockets,
    /// A stream as it comes, with a module that hands everything on, with one that was popped again, and with one now and then.
    Streams,
    /// An endpoint by function calls, by messages, with a module above timod and below it, and turned into one of these when in use.
    Xti,
}

impl Mix {
    pub fn over(self) -> Over {
        match self {
            Mix::Streams => Over::Streams,
            Mix::Xti => Over::Xti,
            _ => Over::Sockets,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    pub process: usize,
    pub thread: usize,
    pub name: String,
    pub numbers: Vec<i64>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Script {
    pub over: Over,
    pub threads: usize,
    pub restarts: bool,
    pub steps: Vec<Step>,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.process, self.thread, self.name)?;
        self.numbers.iter().try_for_each(|n| write!(f, " {n}"))
    }
}

impl Script {
    /// Up to this step, if there are others behind it.
    pub fn until(&self, last: usize) -> Option<Script> {
        let (steps, behind) = self.steps.split_at_checked(last + 1)?;
        (!behind.is_empty()).then(|| Script {
            steps: steps.to_vec(),
            ..self.clone()
        })
    }

    /// With an end by exit in the place of each kill, and of each step, by its place, at which a process `dies`, if there are any.
    /// Children are killed with their parent: they end before it. By each thread: one may wait. Who `waits` in all of them, by the
    /// places of steps, could not: what it waits in is left out.
    pub fn without_kills(
        &self,
        dies: impl Fn(usize) -> bool,
        waits: impl Fn(usize) -> bool,
    ) -> Option<Script> {
        // What is left of it, and the places.
        let mut steps: Vec<(Option<usize>, Step)> = Vec::new();
        // Who is there, and whose child.
        let mut parents: Vec<(usize, usize)> = Vec::new();
        let mut kills = 0;
        for (place, step) in self.steps.iter().enumerate() {
            let p = step.process;
            let name = match dies(place) {
                true => "kill",
                false => step.name.as_str(),
            };
            match name {
                "fork" => parents.extend(step.numbers.first().map(|&q| (q as usize, p))),
                "kill" | "exit" => {
                    let mut ending = vec![p];
                    let mut at = 0;
                    while at < ending.len() {
                        let below = parents.iter().filter(|&&(_, parent)| parent == ending[at]);
                        let below: Vec<usize> = below.map(|&(child, _)| child).collect();
                        ending.extend(below);
                        at += 1;
                    }
                    kills += ending.len() - usize::from(name == "exit");
                    parents.retain(|(child, _)| !ending.contains(child));
                    for process in ending.into_iter().rev() {
                        let last = |thread| {
                            steps.iter().rposition(|(_, step)| {
                                (step.process, step.thread) == (process, thread)
                            })
                        };
                        let is_waiting = |&at: &usize| steps[at].0.is_some_and(&waits);
                        let waiting: Vec<usize> = (0..self.threads)
                            .filter_map(last)
                            .filter(is_waiting)
                            .collect();
                        if waiting.len() == self.threads {
                            let first = waiting.into_iter().min();
                            first.into_iter().for_each(|at| drop(steps.remove(at)));
                        }
                        steps.extend((0..self.threads).map(|thread| {
                            let exit = Step {
                                process,
                                thread,
                                name: "exit".to_string(),
                                numbers: vec![1],
                            };
                            (None, exit)
                        }));
                    }
                    continue;
                }
                _ => {}
            }
            steps.push((Some(place), step.clone()));
        }
        (kills > 0).then(|| Script {
            steps: steps.into_iter().map(|(_, step)| step).collect(),
            ..self.clone()
        })
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.over {
            Over::Sockets => {}
            Over::Streams => writeln!(f, "over streams")?,
            Over::Xti => writeln!(f, "over xti")?,
        }
        writeln!(f, "threads {}", self.threads)?;
        writeln!(f, "restarts {}", u8::from(self.restarts))?;
        self.steps.iter().try_for_each(|s| writeln!(f, "{s}"))
    }
}

impl FromStr for Script {
    type Err = String;

    fn from_str(text: &str) -> Result<Script, String> {
        let mut script = Script {
            threads: 1,
            ..Script::default()
        };
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let bad = || format!("not a step: {line}");
            let number = |word: &str| word.parse::<i64>().map_err(|_| bad());
            match words[..] {
                [] => {}
                [first, ..] if first.starts_with('#') => {}
                ["over", "streams"] => script.over = Over::Streams,
                ["over", "xti"] => script.over = Over::Xti,
                ["threads", n] => script.threads = number(n)? as usize,
                ["restarts", n] => script.restarts = number(n)? != 0,
                [process, thread, name, ref numbers @ ..] => script.steps.push(Step {
                    process: number(process)? as usize,
                    thread: number(thread)? as usize,
                    name: name.to_string(),
                    numbers: numbers
                        .iter()
                        .map(|n| number(n))
                        .collect::<Result<_, _>>()?,
                }),
                _ => return Err(bad()),
            }
        }
        Ok(script)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_read_as_they_are_written() {
        for mix in MIXES {
            for seed in 0..200 {
                let script = crate::make::generate(mix, seed);
                assert_eq!(script.to_string().parse(), Ok(script));
            }
        }
    }

    #[test]
    fn what_is_behind_a_step_is_cut_off() {
        let text = "threads 1\nrestarts 0\n0 0 fork 1\n1 0 read 3 5\n1 0 kill\n";
        let script = text.parse::<Script>().expect("a script");
        let told = script.until(1).expect("a kill").to_string();
        assert!(told.ends_with("0 0 fork 1\n1 0 read 3 5\n"), "{told}");
        assert_eq!(script.until(2), None);
        assert_eq!(script.until(3), None);
    }

    #[test]
    fn who_waits_when_it_is_killed_does_not_wait_before_it_ends() {
        let text = "threads 1\nrestarts 0\n0 0 fork 1\n0 0 read 3 5\n1 0 read 2 5\n0 0 kill\n";
        let script = text.parse::<Script>().expect("a script");
        let gentle = script.without_kills(|_| false, |place| place == 2);
        let told = gentle.expect("a kill").to_string();
        let ends = "0 0 fork 1\n0 0 read 3 5\n1 0 exit 1\n0 0 exit 1\n";
        assert!(told.ends_with(ends), "{told}");
    }

    #[test]
    fn children_end_before_their_parents() {
        let text =
            "threads 1\nrestarts 0\n0 0 fork 1\n1 0 fork 2\n0 0 close 3\n1 0 kill\n0 0 write 3 5\n";
        let script = text.parse::<Script>().expect("a script");
        let gentle = script.without_kills(|_| false, |_| false);
        let told = gentle.expect("a kill").to_string();
        let ends = "1 0 fork 2\n0 0 close 3\n2 0 exit 1\n1 0 exit 1\n0 0 write 3 5\n";
        assert!(told.ends_with(ends), "{told}");
        let none = "threads 1\nrestarts 0\n0 0 fork 1\n1 0 exit 0\n".parse::<Script>();
        let none = none.expect("a script");
        assert_eq!(none.without_kills(|_| false, |_| false), None);
        let dies = none.without_kills(|place| place == 0, |_| false);
        assert!(
            dies.expect("a death")
                .to_string()
                .ends_with("0 0 exit 1\n1 0 exit 1\n")
        );
    }
}
