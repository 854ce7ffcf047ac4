use super::*;
use crate::process::{self, Running};
use std::process::Command;

/// Calls of a shell that looks for `n` files which are not there, one stat(2) each.
fn calls(counter: Counter, n: u32) -> u64 {
    let mut command = Command::new("/bin/sh");
    // It begins when its input ends, so that none of them is missed.
    let script = format!("read x; i=0; while [ $i -lt {n} ]; do [ -e /nowhere ]; i=$((i+1)); done");
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
