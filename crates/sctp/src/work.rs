//! For tests: does work grow as what it is done to?

use std::time::Instant;

/// Times more work than in the small case.
const SCALE: u32 = 16;
/// As much as each item may cost more: far from a quadratic cost, which would be the scale, and from what disturbances make.
const MOST: u64 = 5;

/// The least that some runs took, in nanoseconds that this thread had the CPU.
fn cost(work: impl Fn()) -> u64 {
    let runs = (0..3).map(|_| {
        let (began, at) = (on_cpu(), Instant::now());
        work();
        match (began, on_cpu()) {
            (Some(began), Some(now)) => now - began,
            _ => at.elapsed().as_nanos() as u64,
        }
    });
    runs.min().unwrap_or_default()
}

fn on_cpu() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok()
}

/// How often a machine that others disturb is asked. A cost that grows with the square is found each time.
const ATTEMPTS: u32 = 5;

/// `work` on sixteen times as many items costs about as much as sixteen times on so many.
pub fn assert_linear(count: u32, work: impl Fn(u32)) {
    let mut said = String::new();
    for _ in 0..ATTEMPTS {
        let small = cost(|| (0..SCALE).for_each(|_| work(count)));
        let large = cost(|| work(count * SCALE));
        if large <= MOST * small.max(1_000_000) {
            return;
        }
        said = format!(
            "{count} items: {small} ns for {SCALE} times; {} items: {large} ns",
            count * SCALE
        );
    }
    panic!("{said}");
}
