//! Counting the system calls of the programs of a run.
//!
//! Where allowed by a kernel tracepoint, which costs them next to nothing; else by ptrace, which slows every call so much
//! that programs which could do without sleeping are made to sleep. The result names the method.

mod perf;
mod trace;

use perf::Tracepoint;
use trace::Tracer;

pub enum Counter {
    Tracepoint(Tracepoint),
    Ptrace(Tracer),
}

impl Counter {
    /// Begins to count in programs started from now on by this thread and given to `watch`.
    /// HEADWATER_BENCH_PTRACE=1 goes without the tracepoint.
    pub fn start() -> Counter {
        let forced = std::env::var("HEADWATER_BENCH_PTRACE").as_deref() == Ok("1");
        if !forced && let Ok(tracepoint) = Tracepoint::open() {
            return Counter::Tracepoint(tracepoint);
        }
        Counter::Ptrace(Tracer::default())
    }

    pub fn watch(&self, pid: i32) {
        match self {
            Counter::Tracepoint(tracepoint) => tracepoint.watch(pid),
            Counter::Ptrace(tracer) => tracer.watch(pid),
        }
    }

    pub fn method(&self) -> &'static str {
        match self {
            Counter::Tracepoint(_) => "tracepoint",
            Counter::Ptrace(_) => "ptrace",
        }
    }

    /// The calls of all watched programs, once they have ended; 0 where nothing could be counted.
    pub fn finish(self) -> u64 {
        match self {
            Counter::Tracepoint(tracepoint) => tracepoint.read(),
            Counter::Ptrace(tracer) => tracer.finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{self, Running};
    use std::process::Command;

    /// Calls of a shell that looks for `n` files which are not there, one stat(2) each.
    fn calls(counter: Counter, n: u32) -> u64 {
        let mut command = Command::new("/bin/sh");
        // It begins when its input ends, so that none of them is missed.
        let script =
            format!("read x; i=0; while [ $i -lt {n} ]; do [ -e /nowhere ]; i=$((i+1)); done");
        command.args(["-c", &script]);
        process::prepare(&mut command, None, None);
        let running = Running::start("sh", command).unwrap();
        wait_until_it_reads(running.pid);
        counter.watch(running.pid);
        running.stop(None).unwrap();
        counter.finish()
    }

    /// Else what the program does to start would be counted in one run and missed in another.
    fn wait_until_it_reads(pid: i32) {
        let reads = || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
            stat.contains("(sh) S")
        };
        while !reads() {
            std::thread::yield_now();
        }
    }

    fn check(start: impl Fn() -> Counter) {
        let (few, many) = (calls(start(), 100), calls(start(), 1100));
        let difference = many - few;
        assert!((950..=1200).contains(&difference), "{few} and {many}");
    }

    #[test]
    fn ptrace_counts_the_calls_of_a_longer_run() {
        // Where tracing is denied nothing is counted, and there is nothing to test.
        if calls(Counter::Ptrace(Tracer::default()), 10) > 0 {
            check(|| Counter::Ptrace(Tracer::default()));
        }
    }

    #[test]
    fn the_tracepoint_counts_the_calls_of_a_longer_run() {
        if Tracepoint::open().is_ok() {
            check(|| Counter::Tracepoint(Tracepoint::open().unwrap()));
        }
    }
}
