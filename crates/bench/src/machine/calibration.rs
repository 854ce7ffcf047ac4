//! What the machine's own parts cost, whatever runs on it: the scale to read all other figures by.
//!
//! Each is the median of many short tries, for a fixed time, so that all take less than 0.3 s also where somebody disturbs.

use std::fs::File;
use std::hint::black_box;
use std::io::{Read, Write};
use std::thread;
use std::time::{Duration, Instant};

use headwater_channel::sync::{AtomicU64, Ordering, relax};
use headwater_load::raw::cache_line;
use headwater_load::raw::{Wire, pin};
use rustix::event::{EventfdFlags, eventfd};
use serde::{Deserialize, Serialize};

use crate::numbers::{duration, number};
use crate::stats::median;

const SHORT: Duration = Duration::from_millis(5);
const LONG: Duration = Duration::from_millis(25);

/// None is what could not be measured, such as anything between two CPUs where there is one.
#[derive(Clone, Copy, Default, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Calibration {
    /// A word in a cache line goes to the second CPU and comes back.
    pub cache_line_ns: Option<f64>,
    /// A system call that does next to nothing, getppid(2).
    pub syscall_ns: Option<f64>,
    /// The monotonic clock, as programs read it.
    pub clock_ns: Option<f64>,
    /// From the write to an eventfd until the thread that sleeps in read(2) runs, on another CPU that has been idle for 0.3 ms.
    pub wake_ns: Option<f64>,
    /// Bytes a second that are copied, 16 KiB again and again.
    pub copy_cached: Option<f64>,
    /// 16 MiB to another 16 MiB, which is more than most caches hold.
    pub copy_memory: Option<f64>,
}

impl Calibration {
    /// On the first of `cpus`, and the second where it takes two.
    pub fn measure(cpus: &[usize]) -> Calibration {
        thread::scope(|scope| {
            let measuring = thread::Builder::new().spawn_scoped(scope, || {
                pin(cpus.first().copied());
                Calibration {
                    cache_line_ns: cache_line_ns(cpus),
                    syscall_ns: syscall_ns(),
                    clock_ns: clock_ns(),
                    wake_ns: wake_ns(cpus),
                    copy_cached: copy(16 << 10, 64),
                    copy_memory: copy(16 << 20, 1),
                }
            });
            measuring
                .ok()
                .and_then(|thread| thread.join().ok())
                .unwrap_or_default()
        })
    }
}

/// One of them.
pub struct Figure {
    /// On its own, and in a sentence about two runs.
    pub head: &'static str,
    pub compared: &'static str,
    pub value: Option<f64>,
    /// By how much it differs from one look to the next on one machine: each is measured for some hundredths of a second, and
    /// how soon a CPU wakes is the hypervisor's affair too.
    pub usual: f64,
    pub show: fn(f64) -> String,
}

impl Calibration {
    pub fn figures(&self) -> [Figure; 6] {
        let speed: fn(f64) -> String = |bytes| format!("{} GB/s", number(bytes / 1e9));
        let time: fn(f64) -> String = duration;
        let figure = |head, compared, value, usual, show| Figure {
            head,
            compared,
            value,
            usual,
            show,
        };
        let line = "a cache line's round trip";
        [
            figure(
                "cache line to another CPU and back",
                line,
                self.cache_line_ns,
                1.2,
                time,
            ),
            figure("system call", "a system call", self.syscall_ns, 1.2, time),
            figure(
                "reading the clock",
                "reading the clock",
                self.clock_ns,
                1.2,
                time,
            ),
            figure(
                "waking an idle CPU",
                "waking an idle CPU",
                self.wake_ns,
                1.5,
                time,
            ),
            figure(
                "copying in the cache",
                "copying in the cache",
                self.copy_cached,
                1.2,
                speed,
            ),
            figure(
                "copying in memory",
                "copying in memory",
                self.copy_memory,
                1.2,
                speed,
            ),
        ]
    }
}

/// Nanoseconds of a step, of which so many are taken between two looks at the clock.
fn typical(time: Duration, batch: u32, mut step: impl FnMut()) -> Option<f64> {
    tries(time, || {
        let begun = Instant::now();
        (0..batch).for_each(|_| step());
        Some(begun.elapsed().as_nanos() as f64 / f64::from(batch))
    })
    .filter(|ns| *ns > 0.0)
}

/// The median of what is found again and again for this time: twice at the least, however long others kept it from its CPU.
fn tries(time: Duration, mut find: impl FnMut() -> Option<f64>) -> Option<f64> {
    let mut found = Vec::new();
    let start = Instant::now();
    // Not the first: it finds everything cold, and a thread that it starts not asleep yet.
    while found.len() < 2 || start.elapsed() < time {
        found.push(find()?);
    }
    Some(median(&found[1..]))
}

fn cache_line_ns(cpus: &[usize]) -> Option<f64> {
    const LAST: u8 = 1;
    let &[_, second, ..] = cpus else {
        return None;
    };
    let (mut here, mut there) = cache_line::pair().ok()?;
    thread::scope(|scope| {
        let echo = move || {
            pin(Some(second));
            let mut word = [0];
            // A line is never at its end, and neither call fails.
            while word[0] != LAST && there.receive(&mut word).is_ok() && there.send(&word).is_ok() {
            }
        };
        thread::Builder::new().spawn_scoped(scope, echo).ok()?;
        let mut trip = |word: u8| here.send(&[word]).and_then(|()| here.receive(&mut [0]));
        let found = typical(LONG, 64, || {
            let _ = trip(0);
        });
        let _ = trip(LAST);
        found
    })
}

fn syscall_ns() -> Option<f64> {
    typical(SHORT, 200, || {
        // SAFETY: takes nothing. Through syscall(2), because a C library may remember the answer.
        black_box(unsafe { libc::syscall(libc::SYS_getppid) });
    })
}

fn clock_ns() -> Option<f64> {
    typical(SHORT, 200, || {
        black_box(Instant::now());
    })
}

fn wake_ns(cpus: &[usize]) -> Option<f64> {
    const IDLE: Duration = Duration::from_micros(300);
    let &[_, second, ..] = cpus else {
        return None;
    };
    let mut bell = File::from(eventfd(0, EventfdFlags::CLOEXEC).ok()?);
    let mut ear = bell.try_clone().ok()?;
    let start = Instant::now();
    // Nanoseconds since the start; 0 until it has woken.
    let woken_at = AtomicU64::new(0);
    thread::scope(|scope| {
        let woken_at = &woken_at;
        let sleeper = move || {
            pin(Some(second));
            let mut rung = [0; 8];
            while ear.read_exact(&mut rung).is_ok() && u64::from_ne_bytes(rung) == 1 {
                woken_at.store(since(start).max(1), Ordering::Release);
            }
        };
        thread::Builder::new().spawn_scoped(scope, sleeper).ok()?;
        let found = tries(LONG, || {
            let rest = Instant::now();
            // This CPU stays awake: the other one's sleep is what is asked for.
            while rest.elapsed() < IDLE {
                relax();
            }
            woken_at.store(0, Ordering::Relaxed);
            let rung_at = since(start);
            bell.write_all(&1u64.to_ne_bytes()).ok()?;
            while woken_at.load(Ordering::Acquire) == 0 {
                relax();
            }
            Some(woken_at.load(Ordering::Acquire).saturating_sub(rung_at) as f64)
        });
        // Anything but 1 ends it.
        let _ = bell.write_all(&2u64.to_ne_bytes());
        found
    })
}

fn since(start: Instant) -> u64 {
    start.elapsed().as_nanos() as u64
}

/// Bytes a second from one buffer of `size` bytes to another.
fn copy(size: usize, batch: u32) -> Option<f64> {
    // Written, so that no page is still missing.
    let (from, mut to) = (vec![1u8; size], vec![2u8; size]);
    let ns = typical(SHORT, batch, || {
        black_box(&mut to).copy_from_slice(black_box(&from));
    })?;
    Some(size as f64 / ns * 1e9)
}

#[cfg(test)]
mod tests;
