//! Streams arrive byte for byte, whatever the sizes of the pieces, wherever the directions switch and un-switch, and whatever
//! happens to the processes meanwhile.
//!
//! Each case is a seed. `HEADWATER_TEST_SEED=N` repeats that one, `HEADWATER_TEST_CASES=N` runs so many, beginning with
//! `HEADWATER_TEST_FIRST=N`.

#[path = "../common/mod.rs"]
mod common;
mod end;
mod plan;
mod transfer;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use common::calls;
use common::stream::Random;
use common::world::{Child, End, load, run_workers, shared, soon};
use plan::{Plan, Victim};
use transfer::{Side, World};

const CASES: u64 = 200;
const WORKERS: u64 = 2;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn streams_arrive_byte_for_byte_through_any_switches_forks_freezes_and_kills() {
    let workers = if number("HEADWATER_TEST_SEED").is_some() {
        1
    } else {
        WORKERS
    };
    assert!(run_workers("worker", workers, &[]), "see the seeds above");
}

#[test]
#[ignore = "started by the test above"]
fn worker() {
    let Some((index, count)) = common::world::share() else {
        return;
    };
    load();
    let one = number("HEADWATER_TEST_SEED");
    let cases = number("HEADWATER_TEST_CASES").unwrap_or(CASES);
    let first = number("HEADWATER_TEST_FIRST").unwrap_or(0);
    let seeds: Vec<u64> = match one {
        Some(seed) => vec![seed; cases.min(50) as usize],
        None => (first..first + cases)
            .filter(|s| s % count == index)
            .collect(),
    };
    let mut sum = [0u64; 4];
    let mut failed = Vec::new();
    for &seed in &seeds {
        if failed.len() >= 3 {
            break;
        }
        let (ok, w) = case(seed);
        if !ok {
            failed.push(seed);
        }
        let seen = [
            (w.carried.load(Ordering::Relaxed) > 0) as u64,
            w.switches.load(Ordering::Relaxed),
            w.unswitches.load(Ordering::Relaxed),
            w.ring_bytes.load(Ordering::Relaxed),
        ];
        for (a, b) in sum.iter_mut().zip(seen) {
            *a += b;
        }
    }
    let [carried, switches, unswitches, bytes] = sum;
    eprintln!(
        "{} cases, {carried} carried, {switches} switches, {unswitches} un-switches, {bytes} bytes by ring",
        seeds.len()
    );
    assert!(
        failed.is_empty(),
        "failed: HEADWATER_TEST_SEED in {failed:?}"
    );
    if one.is_none() {
        assert!(
            carried * 10 > seeds.len() as u64 * 7,
            "most cases are carried"
        );
        assert!(switches > 0 && unswitches > 0 && bytes > 0);
    }
}

fn case(seed: u64) -> (bool, &'static World) {
    let plan: &'static Plan = Box::leak(Box::new(Plan::new(seed)));
    let world: &'static World = shared();
    // SAFETY: integers only.
    let trigger = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
    world.trigger.store(trigger, Ordering::Relaxed);
    let spin = if plan.spins {
        headwater_channel::wait::DEFAULT_BUDGET
    } else {
        0
    };
    headwater_channel::wait::set_limit(spin);
    let server = Child::run(|| {
        let (listener, port) = calls::listen(plan.v6, plan.buffers);
        world.port.store(port as u32, Ordering::Release);
        let socket = calls::accept(listener);
        play(plan, world, 1, socket);
    });
    let client = Child::run(|| {
        let deadline = soon();
        while world.port.load(Ordering::Acquire) == 0 && Instant::now() < deadline {
            std::thread::yield_now();
        }
        let port = world.port.load(Ordering::Acquire) as u16;
        play(plan, world, 0, calls::connect(plan.v6, port, plan.buffers));
    });
    let mut ends = [client, server];
    kill_if_planned(plan, world, &ends, trigger);
    let ok = judge(plan, world, &mut ends);
    // SAFETY: ours.
    unsafe { libc::close(trigger) };
    (ok, world)
}

fn play(plan: &'static Plan, world: &'static World, end: usize, socket: calls::Socket) {
    let side = Side {
        plan,
        world,
        end,
        socket,
        forked: false,
    };
    report_when_asked(side);
    end::run(side);
}

/// Waits until the plan's point is reached, or an end is over, and kills a little later.
fn kill_if_planned(plan: &Plan, world: &World, ends: &[Child; 2], trigger: i32) {
    let Some(kill) = plan.kill else { return };
    let mut fds = [trigger, ends[0].fd, ends[1].fd].map(|fd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    });
    // SAFETY: three entries.
    unsafe { libc::poll(fds.as_mut_ptr(), 3, 20_000) };
    for _ in 0..Random::new(plan.seed ^ 0x61).below(2000) {
        core::hint::spin_loop();
    }
    match kill.what {
        Victim::End => ends[kill.end].signal(libc::SIGKILL),
        Victim::Sibling => {
            let pid = world.sibling.load(Ordering::Relaxed) as i32;
            if pid > 0 && world.over[kill.end].load(Ordering::Relaxed) == 0 {
                // SAFETY: a sibling that its parent has not reaped, as the end is not over.
                unsafe { libc::kill(pid, libc::SIGKILL) };
            }
        }
    }
}

fn judge(plan: &Plan, world: &World, ends: &mut [Child; 2]) -> bool {
    let deadline = soon();
    let mut ok = true;
    for end in [0, 1] {
        let ended = ends[end].wait(deadline);
        let killed = plan.loses_tail() && plan.kill.is_some_and(|k| k.end == end);
        match ended {
            Some(End::Exit(0)) => {}
            Some(End::Signal(libc::SIGKILL)) if killed => {}
            None => {
                eprintln!("seed {}: end {end} hangs", plan.seed);
                for e in ends.iter() {
                    e.signal(libc::SIGUSR1);
                }
                let _ = ends[end].wait(Instant::now() + Duration::from_millis(500));
                ok = false;
                break;
            }
            other => {
                eprintln!("seed {}: end {end}: {other:?}", plan.seed);
                ok = false;
            }
        }
    }
    let whole = |i: usize| {
        world.sent[i].load(Ordering::Relaxed) == world.received[i].load(Ordering::Relaxed)
    };
    if ok && !plan.loses_tail() && !(whole(0) && whole(1)) {
        eprintln!("seed {}: hashes differ", plan.seed);
        ok = false;
    }
    if !ok {
        eprintln!("{plan:?}");
    }
    ok
}

/// SIGUSR1 prints the state of the connection: for hangs.
fn report_when_asked(side: Side) {
    use std::sync::OnceLock;
    static SIDE: OnceLock<Side> = OnceLock::new();
    extern "C" fn report(_: i32) {
        if let Some(side) = SIDE.get() {
            let w = side.world;
            let moved =
                |of: &[std::sync::atomic::AtomicU64; 2]| of[side.end].load(Ordering::Relaxed);
            eprintln!(
                "end {} wrote {} read {} of {:?}: {:?}",
                side.end,
                moved(&w.written),
                moved(&w.read),
                side.plan.total,
                side.socket.view().map(|v| calls::describe(&v))
            );
        }
    }
    let _ = SIDE.set(side);
    // SAFETY: a report of a failed test may take its chances.
    unsafe { libc::signal(libc::SIGUSR1, report as *const () as usize) };
}
