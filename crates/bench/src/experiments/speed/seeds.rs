//! The document's figures beside ours. Its machine had four CPUs of 400 MHz, Solaris 8.

use super::chat;
use super::conclude::copies_share;
use super::figures::{MANY, factor, find, latency, time_each};
use super::messages::THREADED;
use super::way::{COPY_ALONE, DOORBELL, HAND_OFF, SEMAPHORE, ZERO_COPY};
use crate::experiment::{ACCELERATED_NODELAY, Arm, TCP_NODELAY};
use crate::findings::Seed;
use crate::placement::Placement::Apart;
use crate::report::{ArmReport, CellReport};
use crate::table::{duration, number};

const FILE: &str = "002_17239467083f8f65.txt";

const WAYS: [(Arm, &str); 4] = [
    (TCP_NODELAY, "kernel TCP"),
    (HAND_OFF, "implementation I"),
    (DOORBELL, "implementation II"),
    (SEMAPHORE, "implementation III"),
];
/// Seconds for 100,000 messages, in the order of the ways.
const ELAPSED: [(usize, [f64; 4]); 3] = [
    (70, [16.1879, 6.25777, 5.99889, 4.89628]),
    (512, [9.77146, 8.04453, 6.8338, 5.13338]),
    (1000, [10.8131, 10.3504, 6.56088, 5.61761]),
];
/// In percent of one CPU, of the client.
const CPU_USE: [(usize, [f64; 4]); 3] = [
    (70, [28.9, 89.6, 102.2, 93.4]),
    (512, [76.8, 92.9, 105.4, 94.2]),
    (1000, [97.2, 82.5, 107.8, 94.6]),
];
/// Milliseconds of a call with 70 bytes, the server in a processor set: kernel TCP, implementation III.
const CALLS: [(&str, &str, [f64; 2]); 4] = [
    ("server_read", "a server's read", [0.12444, 0.02086]),
    ("server_write", "a server's write", [0.02802, 0.02033]),
    ("client_read", "a client's read", [0.08935, 0.05868]),
    ("client_write", "a client's write", [0.07638, 0.05218]),
];
/// Milliseconds of 100,000 copies.
const COPIES: [(usize, f64); 3] = [(70, 34.3), (512, 250.0), (1000, 490.0)];

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
    Seed {
        file: FILE.to_string(),
        what,
        theirs,
        ours: ours.unwrap_or_default(),
    }
}

fn base(cells: &[CellReport], size: usize) -> Option<&CellReport> {
    find(cells, &format!("messages-{size}"), Apart)
}

fn elapsed(cells: &[CellReport]) -> Vec<Seed> {
    each_way(&ELAPSED, |size, arm, way, seconds| {
        let ours = base(cells, size)?.arm(arm.name).and_then(time_each);
        Some(seed(
            format!("100,000 messages of {size} bytes, {way}"),
            duration(seconds * 1e9),
            ours.map(|ns| duration(ns * MANY)),
        ))
    })
}

fn cpu_use(cells: &[CellReport]) -> Vec<Seed> {
    each_way(&CPU_USE, |size, arm, way, percent| {
        let ours = base(cells, size)?
            .arm(arm.name)
            .filter(|arm| arm.is_proved())
            .and_then(|arm| arm.cpu_share);
        Some(seed(
            format!("CPU use, {size} bytes, {way}; theirs of the client, ours of both ends"),
            format!("{percent} %"),
            ours.map(|share| format!("{} %", number(share * 100.0))),
        ))
    })
}

fn each_way(
    figures: &[(usize, [f64; 4])],
    mut seed: impl FnMut(usize, Arm, &str, f64) -> Option<Seed>,
) -> Vec<Seed> {
    let mut seeds = Vec::new();
    for &(size, values) in figures {
        let ways = WAYS.into_iter().zip(values);
        seeds.extend(ways.filter_map(|((arm, way), value)| seed(size, arm, way, value)));
    }
    seeds
}

fn calls(cells: &[CellReport]) -> Vec<Seed> {
    let Some(cell) = find(cells, "latency-70", Apart) else {
        return Vec::new();
    };
    let mut seeds = Vec::new();
    for (call, words, theirs) in CALLS {
        for ((arm, way), ms) in [WAYS[0], WAYS[3]].into_iter().zip(theirs) {
            let mean = |arm: &ArmReport| latency(arm, call, |latency| latency.mean_ns);
            seeds.push(seed(
                format!("{words} of 70 bytes, mean, {way}"),
                // Printed as seconds, which the time of all messages rules out.
                duration(ms * 1e6),
                cell.arm(arm.name).and_then(mean).map(duration),
            ));
        }
    }
    seeds
}

fn copies(cells: &[CellReport]) -> Vec<Seed> {
    let one = |(size, ms): (usize, f64)| {
        let alone = base(cells, size)?.arm(COPY_ALONE.name).and_then(time_each);
        Some(seed(
            format!("100,000 copies of {size} bytes to or from shared memory"),
            duration(ms * 1e6),
            alone.map(|ns| duration(ns / 4.0 * MANY)),
        ))
    };
    COPIES.into_iter().filter_map(one).collect()
}

fn others(cells: &[CellReport]) -> Vec<Seed> {
    let times = |cell: Option<&CellReport>, arm: Arm, against: Arm| {
        let found = factor(cell?, arm.name, against.name)?;
        Some(format!("{}x", number(found.middle)))
    };
    let thousand = base(cells, 1000);
    let share = thousand.and_then(|cell| copies_share(cell, SEMAPHORE, 4.0));
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
