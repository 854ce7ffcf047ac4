//! Each system call of the library's own that may fail does, in turn: programs end as they do natively, and what could not be carried
//! is counted.
//!
//! Runs a share of all of them; `HEADWATER_FAULTS=all`, all. Which ones is told by a seed, which failures name and
//! `HEADWATER_SEED` sets. Of an area in C `HEADWATER_CASE` picks one case.

use std::cell::Cell;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use headwater_e2e::cases::{Area, Case};
use headwater_e2e::chance::{self, Chance};
use headwater_e2e::inject::{self, Fault, Plan, Ran, Starved};
use headwater_e2e::{Lab, Mode, compile, lab, network, stats};

/// Nothing takes a tenth of it unless it hangs.
const BOUND: Duration = Duration::from_secs(20);
/// Of each program, unless all are asked for.
const SHARE: u64 = 6;

/// Cases that send datagrams until one is held up. By the kernel, to which they may go back, none ever is: they would send for ever.
const WAITS_FOR_FULL: [&str; 2] = [
    "full_until_somebody_reads",
    "full_ring_hinders_no_plain_program",
];

/// Cases in which a thread asks a set as fast as it can: where each of its calls stops for the tracer, others hardly get a turn.
const NEVER_RESTS: [&str; 2] = ["used_while_a_set_looks", "pushed_while_a_set_looks"];

/// Those whose runs take longer get half of it.
const LONG: [(&str, &str); 9] = [
    ("unseen", "carried"),
    ("unseen", "room"),
    ("unseen", "silent"),
    ("takeover", "file"),
    ("comeback", "reads_connected"),
    ("comeback", "polled_accepted"),
    ("uring", "sets"),
    ("uring", "liburing"),
    ("handed_on", "pass_stalled"),
];

/// How many runs of each program: all, or a share.
fn share() -> Option<u64> {
    match std::env::var("HEADWATER_FAULTS") {
        Ok(all) if all == "all" => None,
        Ok(some) => Some(some.parse().expect("HEADWATER_FAULTS is a number, or all")),
        Err(_) => Some(SHARE),
    }
}

struct Work {
    program: PathBuf,
    case: &'static str,
    lab: Lab,
}

impl Work {
    fn of_sockets(file: &str, case: &'static str, flags: &[&str]) -> Work {
        Work {
            program: compile::program(file, flags),
            case,
            lab: Lab::new(Mode::Accelerated),
        }
    }

    fn run(&self, label: &str, plan: Plan) -> (Ran, Vec<stats::Line>) {
        let folder = self.lab.path(label);
        std::fs::create_dir(&folder).expect("the lab's folder is writable");
        let mut command: Command = self.lab.command(&self.program);
        command
            .arg(self.case)
            .current_dir(&folder)
            .env("HEADWATER_DIR", folder.join("run"))
            .env("HEADWATER_STATS_FILE", folder.join("stats"));
        let ran = inject::run(command, &folder, &lab::library(), plan, BOUND);
        let lines = stats::read(&folder.join("stats"));
        let _ = std::fs::remove_dir_all(&folder);
        (ran, lines)
    }

    fn natively(&self) -> String {
        let mut command = self.lab.plain(&self.program);
        command.arg(self.case);
        self.lab.run(command).text()
    }
}

/// What is wrong with a run.
fn wrong(ran: &Ran, lines: &[stats::Line], native: &str, gives_up: &str) -> Option<String> {
    let carried: u64 = lines.iter().map(|l| l.accelerated).sum();
    let reasons = |l: &stats::Line| !l.text.contains("\"fallback_reasons\":{}");
    let gives_up = !gives_up.is_empty() && lines.iter().any(|l| l.text.contains(gives_up));
    if ran.err.contains("wrong byte") {
        return Some("bytes are lost or doubled".to_string());
    }
    if lines.iter().any(|l| l.text.contains("\"panic\"")) {
        return Some("a panic".to_string());
    }
    if gives_up && ran.fatal.is_empty() && ran.status.is_some_and(|s| s.code().is_some()) {
        // Who can't have what is in the ring gets an error, and so does who waits for it: no other bytes, and an end.
        return None;
    }
    if !ran.status.is_some_and(|s| s.success()) || !ran.fatal.is_empty() {
        return Some(format!("{}, signals {:?}", ran.ended_with(), ran.fatal));
    }
    if ran.out != native {
        return Some("says something else".to_string());
    }
    (carried == 0 && !lines.is_empty() && !lines.iter().any(reasons))
        .then(|| "not carried, and no reason counted".to_string())
}

/// Which calls fail, and how: a share of all.
fn plans(calls: u64, share: Option<u64>, chance: &mut Chance) -> Vec<Plan> {
    if calls == 0 {
        return Vec::new();
    }
    let starved = Starved::learn(&lab::library());
    let with = |at, kind, error| Plan {
        at,
        error,
        lasting: kind == 1,
        kills: false,
        starved: starved.filter(|_| kind == 2),
        allocates: false,
    };
    let Some(some) = share else {
        let each = (1..=calls).flat_map(|at| [0, 1, 2].map(|kind| (at, kind)));
        return each
            .map(|(at, kind)| with(at, kind, chance.number() >> 32))
            .collect();
    };
    let some = some.min(calls);
    let first = chance.number() % calls;
    let at = |i| (first + i * calls / some) % calls + 1;
    (0..some)
        .map(|i| with(at(i), chance.number() % 3, chance.number() >> 32))
        .collect()
}

/// Runs a program with one call after the other failing.
fn survives(
    name: &str,
    first: Plan,
    plans: impl Fn(u64, &mut Chance) -> Vec<Plan>,
    run: impl Fn(&str, Plan) -> (Ran, Vec<stats::Line>),
    wrong: impl Fn(&Ran, &[stats::Line]) -> Option<String>,
) {
    let (ran, lines) = run("first", first);
    let plain = wrong(&ran, &lines);
    assert!(
        plain.is_none() && ran.status.is_some_and(|s| s.success()),
        "without a fault: {ran:?}"
    );
    let seed = chance::seed();
    let mut chance = Chance::new(seed);
    let plans = plans(ran.calls, &mut chance);
    let mut failures = Vec::new();
    let mut told = Instant::now();
    for (i, &plan) in plans.iter().enumerate() {
        if told.elapsed() > Duration::from_secs(2) {
            told = Instant::now();
            println!("{name}: {i} of {} runs", plans.len());
        }
        let (ran, lines) = run(&i.to_string(), plan);
        if let Some(what) = wrong(&ran, &lines) {
            failures.push(tell(&what, plan, &ran, &lines));
        }
    }
    assert!(
        failures.is_empty(),
        "{name}: {} of {} runs, {} calls, HEADWATER_SEED={seed}\n{}",
        failures.len(),
        plans.len(),
        ran.calls,
        failures.join("\n")
    );
}

/// What it takes to build a program: what the test needs, and flags. Under a tracer each call takes long: so less is sent.
fn built(file: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match file {
        "uring" => (&["liburing-dev"], &["-O1", "-luring"]),
        "takeover" => (&[], &["-O1", "-DFILES=6"]),
        "comeback" => (&[], &["-O1", "-DMUCH=100"]),
        _ => (&[], &[]),
    }
}

/// What a connection that can neither be carried nor go by the kernel alone counts: in an image that can't map its memory, or passed
/// on or inherited where no process can be made that serves it.
fn gives_up(file: &str, case: &str) -> &'static str {
    match (file, case) {
        ("exec", _) | (_, "exec") => "\"no-segment\"",
        (
            _,
            "pass" | "pass_busy" | "pass_half_closed" | "pass_stalled" | "vfork_shut"
            | "spawn_shut",
        ) => "\"no-memory\"",
        _ => "",
    }
}

fn sockets_survive(file: &str, case: &'static str, flags: &[&str]) {
    let work = Work::of_sockets(file, case, flags);
    let native = work.natively();
    let parts = 1 + u64::from(LONG.contains(&(file, case)));
    let share = share().map(|some| some.div_ceil(parts));
    survives(
        &format!("{file} {case}"),
        Plan::NONE,
        |calls, chance| plans(calls, share, chance),
        |label, plan| work.run(label, plan),
        |ran, lines| wrong(ran, lines, &native, gives_up(file, case)),
    );
}

/// Which allocations get nothing: that one alone, or all from there on too.
fn starvations(first: Plan, count: u64, share: Option<u64>, chance: &mut Chance) -> Vec<Plan> {
    let with = |at, lasting| Plan {
        at,
        lasting,
        ..first
    };
    if count == 0 {
        return Vec::new();
    }
    match share {
        None => (1..=count)
            .flat_map(|at| [false, true].map(|lasting| with(at, lasting)))
            .collect(),
        Some(some) => (0..some)
            .map(|i| with(chance.number() % count + 1, i % 2 == 1))
            .collect(),
    }
}

/// Counts allocations.
fn of_allocations() -> Plan {
    Plan {
        starved: Some(Starved::learn(&lab::library()).expect("the library has symbols")),
        allocates: true,
        ..Plan::NONE
    }
}

fn allocations_survive(file: &str, case: &'static str) {
    let (_, flags) = built(file);
    let work = Work::of_sockets(file, case, flags);
    let native = work.natively();
    let first = of_allocations();
    survives(
        &format!("{file} {case}, allocations"),
        first,
        |count, chance| {
            assert!(count > 0, "no allocation is seen");
            starvations(first, count, share().map(|some| some.div_ceil(3)), chance)
        },
        |label, plan| work.run(label, plan),
        |ran, lines| wrong(ran, lines, &native, gives_up(file, case)),
    );
}

/// Streams, endpoints and SCTP sockets have no kernel to fall back to: their calls fail, and what matters is that nothing else does.
fn area_survives(name: &str, area: Area, first: Plan) {
    network::isolate();
    let share = share().map(|some| some.div_ceil(6));
    let all = area.cases();
    // A larger share is one of more cases too.
    let picked = std::env::var("HEADWATER_CASE").ok();
    let step = match (share, &picked) {
        (Some(some), None) => all.len().div_ceil(2 * some as usize),
        _ => 1,
    };
    let is_picked = |case: &&Case| picked.as_ref().is_none_or(|it| it == case.name());
    // Some cases have none.
    let seen = Cell::new(0);
    let failures: Vec<String> = all
        .iter()
        .step_by(step)
        .filter(is_picked)
        .filter(|case| {
            let mut left_out = WAITS_FOR_FULL.iter().chain(&NEVER_RESTS);
            !left_out.any(|&it| case.name().starts_with(it))
        })
        .filter_map(|case| {
            let run = |_: &str, plan| {
                let folder = tempfile::tempdir().expect("a folder for the test");
                let command = area.command(folder.path(), case.name());
                (
                    inject::run_until(
                        command,
                        folder.path(),
                        &lab::library(),
                        plan,
                        BOUND,
                        has_failed,
                    ),
                    Vec::new(),
                )
            };
            let wrong = |ran: &Ran, _: &[stats::Line]| {
                // A thread whose call failed says so and leaves, and another that sends to what it had gets SIGPIPE, as by the
                // kernel.
                let left = has_failed(&said(ran))
                    && (ran.status).is_some_and(|s| s.signal() == Some(libc::SIGPIPE));
                let died = ran.status.is_none_or(|s| s.code().is_none()) && !left;
                let bad =
                    died || hung(ran) || ran.err.contains("panicked") || !ran.fatal.is_empty();
                bad.then(|| format!("{}, signals {:?}", ran.ended_with(), ran.fatal))
            };
            let run = || {
                survives(
                    &format!("{name} {}", case.name()),
                    first,
                    |count, chance| {
                        seen.set(seen.get() + count);
                        match first.allocates {
                            true => starvations(first, count, share, chance),
                            false => plans(count, share, chance),
                        }
                    },
                    run,
                    wrong,
                )
            };
            let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).err()?;
            Some(failed.downcast_ref::<String>().cloned().unwrap_or_default())
        })
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(
        step > 1 || seen.get() > 0,
        "{name}: nothing that may fail is seen"
    );
}

/// Has one process said more than that it waited until the cases' alarm? Others may wait for it.
fn has_failed(said: &str) -> bool {
    // Nor does a case in XTI that has both sides look at what its client was told (T_DISCONNECT).
    let late = |line: &str| line.contains("still not done") && !line.contains("t_listen(");
    !said.lines().all(late)
}

fn said(ran: &Ran) -> String {
    format!("{}{}", ran.out, ran.err)
}

/// Did all of it wait?
fn hung(ran: &Ran) -> bool {
    let said = said(ran);
    let late = !said.is_empty() && !has_failed(&said);
    late && !ran.fault.as_ref().is_some_and(Fault::loses)
}

fn tell(what: &str, plan: Plan, ran: &Ran, lines: &[stats::Line]) -> String {
    let library: &Path = &lab::library();
    let fault = ran.fault.as_ref();
    format!(
        "---- {what}\n{plan:?}\n{}{}{}\n{}",
        fault.map_or(String::new(), |f| f.describe(library)),
        ran.out,
        ran.err,
        lines
            .iter()
            .map(|l| format!("{}\n", l.text))
            .collect::<String>()
    )
}

macro_rules! sockets {
    ($($file:ident: $($case:ident),*;)*) => {$(
        mod $file {
            $(#[test]
            fn $case() {
                let (file, case) = (stringify!($file), stringify!($case));
                let test = concat!(stringify!($file), "::", stringify!($case));
                let (needed, flags) = super::built(file);
                if headwater_testkit::are_there(needed, test) {
                    super::sockets_survive(file, case, flags);
                }
            })*
        }
    )*};
}

sockets! {
    descriptors: fork;
    handed_on: pass, pass_busy, pass_half_closed, pass_stalled, spawn_bare, exec, vfork_shut, spawn_shut, system;
    epoll: level, edge, fork_set;
    poll: polls, selects;
    transfer: file, peek;
    splice: proxy;
    ends: half, unread_exit;
    keeper: close, shutdown, exec;
    exec: unread, served;
    confine: filter, sets, shared;
    threads: duplex;
    unseen: carried, room, silent;
    takeover: file;
    comeback: untouched_accepted, reads_connected, polled_accepted;
    uring: sets, named, liburing;
}

macro_rules! areas {
    ($first:expr; $($suite:ident, $library:expr => $($area:ident),*;)*) => {$(
        mod $suite {
            use headwater_e2e::cases::Library;

            $(#[test]
            fn $area() {
                let (suite, name) = (stringify!($suite), stringify!($area));
                let test = concat!(stringify!($suite), "::", stringify!($area));
                if let Some(area) = headwater_e2e::cases::Area::build(test, suite, name, $library) {
                    crate::area_survives(test, area, $first);
                }
            })*
        }
    )*};
}

areas! {
    crate::Plan::NONE;
    streams, Library::Linked => pipes, pipe_holders, names, connld, fifos, mux, opening, messages;
    xti, Library::Linked => connect, accept, transfer, expedited, udp2, interop, interop_python, modules, timod;
    sctp_sockets, Library::Preloaded(&[]) => opening, messages, forking, successors, processes;
}

/// An allocation gets nothing, between any two system calls.
mod allocations {
    macro_rules! starved {
        ($($name:ident: $file:ident $case:ident),* $(,)?) => {
            $(#[test]
            fn $name() {
                super::allocations_survive(stringify!($file), stringify!($case));
            })*
        };
    }

    starved! {
        takeover: takeover file,
        epoll: epoll level,
        fork: descriptors fork,
        pass: handed_on pass,
        exec: exec unread,
        keeper: keeper close,
    }

    areas! {
        crate::of_allocations();
        streams, Library::Linked => pipes, pipe_holders, messages, mux;
        xti, Library::Linked => connect, transfer, expedited;
        sctp_sockets, Library::Preloaded(&[]) => messages, opening;
    }
}
