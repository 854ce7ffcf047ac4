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
mod tests;
