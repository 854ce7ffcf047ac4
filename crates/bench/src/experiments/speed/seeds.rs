//! The document's figures beside ours. Its machine had four CPUs of 400 MHz, Solaris 8.

use super::chat;
use super::copies;
use super::figures::{MANY, factor, latency, time_each};
use super::messages::THREADED;
use super::way::{COPY_ALONE, DOORBELL, HAND_OFF, SEMAPHORE, ZERO_COPY};
use crate::cells::{ArmReport, CellReport};
use crate::conclude::find;
use crate::experiment::{ACCELERATED_NODELAY, Arm, TCP_NODELAY};
use crate::findings::Seed;
use crate::numbers::{duration, number};
use crate::placement::Placement::Apart;
use crate::tables;

const FILE: &str = "002_17239467083f8f65.txt";

const WAYS: [(Arm, &str); 4] = [
    (TCP_NODELAY, "kernel TCP"),
    (HAND_OFF, "implementation I"),
    (DOORBELL, "implementation II"),
    (SEMAPHORE, "implementation III"),
];
/// Of which calls the paper gives the time, with the server in a processor set.
const CALLS: [(&str, &str); 4] = [
    ("server_read", "a server's read"),
    ("server_write", "a server's write"),
    ("client_read", "a client's read"),
    ("client_write", "a client's write"),
];

pub fn all(cells: &[CellReport]) -> Vec<Seed> {
    let all = [
        elapsed(cells),
        cpu_use(cells),
        calls(cells),
        copies(cells),
        others(cells),
    ];
    all.concat()
}

fn seed(what: String, theirs: String, ours: Option<String>) -> Seed {
    Seed::new(FILE, what, theirs, ours)
}

fn base(cells: &[CellReport], size: usize) -> Option<&CellReport> {
    find(cells, &format!("messages-{size}"), Apart)
}

/// The paper's figures of one kind, with our arm that stands where theirs did.
fn figures(figure: &str) -> impl Iterator<Item = (&'static tables::Speed, Option<Arm>)> {
    let own = tables::SPEED.iter().filter(move |row| row.figure == figure);
    own.map(|row| {
        let way = WAYS.iter().find(|(_, way)| *way == row.way);
        (row, way.map(|(arm, _)| *arm))
    })
}

fn elapsed(cells: &[CellReport]) -> Vec<Seed> {
    let one = |(theirs, arm): (&tables::Speed, Option<Arm>)| {
        let ours = base(cells, theirs.size)?.arm(arm?.name).and_then(time_each);
        Some(seed(
            format!("100,000 messages of {} bytes, {}", theirs.size, theirs.way),
            duration(theirs.value * 1e9),
            ours.map(|ns| duration(ns * MANY)),
        ))
    };
    figures("elapsed_seconds").filter_map(one).collect()
}

fn cpu_use(cells: &[CellReport]) -> Vec<Seed> {
    let one = |(theirs, arm): (&tables::Speed, Option<Arm>)| {
        let ours = base(cells, theirs.size)?
            .arm(arm?.name)
            .filter(|arm| arm.is_proved())
            .and_then(|arm| arm.cpu_share);
        let tables::Speed {
            size, way, value, ..
        } = theirs;
        Some(seed(
            format!("CPU use, {size} bytes, {way}; theirs of the client, ours of both ends"),
            format!("{value} %"),
            ours.map(|share| format!("{} %", number(share * 100.0))),
        ))
    };
    figures("cpu_percent").filter_map(one).collect()
}

fn calls(cells: &[CellReport]) -> Vec<Seed> {
    let Some(cell) = find(cells, "latency-70", Apart) else {
        return Vec::new();
    };
    let mut seeds = Vec::new();
    for (call, words) in CALLS {
        for (theirs, arm) in figures(&format!("{call}_ms")) {
            let mean = |arm: &ArmReport| latency(arm, call, |latency| latency.mean_ns);
            let ours = arm.and_then(|arm| cell.arm(arm.name)).and_then(mean);
            seeds.push(seed(
                format!("{words} of 70 bytes, mean, {}", theirs.way),
                // Printed as seconds, which the time of all messages rules out.
                duration(theirs.value * 1e6),
                ours.map(duration),
            ));
        }
    }
    seeds
}

fn copies(cells: &[CellReport]) -> Vec<Seed> {
    let one = |(theirs, _): (&tables::Speed, _)| {
        let cell = base(cells, theirs.size)?;
        let alone = cell.arm(COPY_ALONE.name).and_then(time_each);
        Some(seed(
            format!(
                "100,000 copies of {} bytes to or from shared memory",
                theirs.size
            ),
            duration(theirs.value * 1e6),
            alone.map(|ns| duration(ns / 4.0 * MANY)),
        ))
    };
    figures("copies_ms").filter_map(one).collect()
}

fn others(cells: &[CellReport]) -> Vec<Seed> {
    let times = |cell: Option<&CellReport>, arm: Arm, against: Arm| {
        let found = factor(cell?, arm.name, against.name)?;
        Some(format!("{}x", number(found.value)))
    };
    let thousand = base(cells, 1000);
    let share = thousand.and_then(|cell| copies::share(cell, SEMAPHORE, 4.0));
    let percent = share.map(|share| format!("{} %", number(share * 100.0)));
    let threads = find(cells, &format!("threads5-{THREADED}"), Apart);
    let chat = find(cells, &chat::name(8, "epoll"), Apart);
    let mut seeds = Vec::new();
    if thousand.is_some() {
        seeds.push(seed(
            "four copies, as a share of a message of 1000 bytes, implementation III".to_string(),
            "35 %".to_string(),
            percent,
        ));
        seeds.push(seed(
            "a call that spares half of the copies, 1000 bytes, over implementation III"
                .to_string(),
            "expected to help, not measured".to_string(),
            times(thousand, ZERO_COPY, SEMAPHORE),
        ));
    }
    if threads.is_some() {
        seeds.push(seed(
            "5 threads, 7000 bytes: implementation III over kernel TCP".to_string(),
            "nearly even, no figure".to_string(),
            times(threads, SEMAPHORE, TCP_NODELAY),
        ));
    }
    if chat.is_some() {
        seeds.push(seed(
            "a chat with many connections (theirs Volano 1.0, ours 8 rooms over epoll), preloaded library over kernel TCP".to_string(),
            "5x".to_string(),
            times(chat, ACCELERATED_NODELAY, TCP_NODELAY),
        ));
    }
    seeds
}
