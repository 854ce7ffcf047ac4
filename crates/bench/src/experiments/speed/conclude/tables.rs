//! Tables: what 100,000 messages take, latencies, slots, windows, threads, classes, the chat.

use super::super::chat::{CALLS, MEMBERS, ROOMS};
use super::super::figures::{MANY, factor, find, latency, middle, time_each};
use super::super::messages::{LARGER, SIZES, THREADED, THREADS};
use super::super::schedule::{self, NORMAL};
use super::super::sweeps::{SLOT_SIZES, SLOTS, SWEEPS, Sweep};
use super::APART;
use crate::counts;
use crate::experiment::TCP_NODELAY;
use crate::findings::Measure::{self, Bytes, Count, Factor, Nanoseconds, PerSecond, Share, Text};
use crate::findings::{Sheet, Value};
use crate::report::{ArmReport, CarriedReport, CellReport};

/// The calls that are timed, and how they are called here.
pub const CALLS_TIMED: [(&str, &str); 4] = [
    ("server_read", "server read"),
    ("server_write", "server write"),
    ("client_read", "client read"),
    ("client_write", "client write"),
];

pub fn all(cells: &[CellReport]) -> Vec<Sheet> {
    let runs = SIZES.into_iter().map(|size| run_information(cells, size));
    let sweeps = SWEEPS.iter().map(|sweep| slots(cells, sweep));
    let rest = [
        windows(cells),
        threads(cells),
        larger(cells),
        classes(cells),
        chat(cells),
        not_carried(cells),
    ];
    let sheets = runs.chain([latencies(cells)]).chain(sweeps).chain(rest);
    sheets.filter(|sheet| !sheet.rows.is_empty()).collect()
}

/// The document's "Run Information".
fn run_information(cells: &[CellReport], size: usize) -> Sheet {
    let mut sheet = Sheet::new(
        &format!("run-{size}"),
        &format!("100,000 messages of {size} bytes there and back"),
        "Both processes together; CPU use is of one CPU. copy-alone is one process that makes the four copies of each message \
         and nothing else.",
        &[
            ("placement", Text),
            ("arm", Text),
            ("elapsed", Nanoseconds),
            ("user", Nanoseconds),
            ("system", Nanoseconds),
            ("voluntary switches", Count),
            ("involuntary switches", Count),
            ("system calls", Count),
            ("wake-ups", Count),
            ("CPU use", Share),
            ("over tcp-nodelay", Factor),
        ],
    );
    let name = format!("messages-{size}");
    for cell in cells.iter().filter(|cell| cell.cell == name) {
        for arm in measured(cell) {
            let many = |value: Option<f64>| Value::from(value.map(|value| value * MANY));
            sheet.rows.push(vec![
                cell.placement.name().into(),
                arm.arm.as_str().into(),
                many(time_each(arm)),
                many(middle(arm, |sample| sample.user_ns)),
                many(middle(arm, |sample| sample.system_ns)),
                many(middle(arm, |sample| sample.voluntary)),
                many(middle(arm, |sample| sample.involuntary)),
                many(arm.syscalls.as_ref().map(|calls| calls.per_message)),
                many(arm.doorbells),
                arm.cpu_share.into(),
                over(cell, arm, TCP_NODELAY.name),
            ]);
        }
    }
    sheet
}

fn latencies(cells: &[CellReport]) -> Sheet {
    let mut columns = vec![("size", Bytes), ("placement", Text), ("arm", Text)];
    let heads = CALLS_TIMED.map(|(_, name)| ["p50", "p99"].map(|of| format!("{name}, {of}")));
    columns.extend(
        heads
            .iter()
            .flatten()
            .map(|head| (head.as_str(), Nanoseconds)),
    );
    let mut sheet = Sheet::new(
        "latency",
        "How long each read and each write takes",
        "From the call to its return, with the wait for the message. From runs of their own; asking for the time is part of each.",
        &columns,
    );
    for cell in cells.iter().filter(|cell| cell.work == "latency") {
        for arm in measured(cell) {
            let mut row = vec![
                Value::from(cell.size.map(|size| size as f64)),
                cell.placement.name().into(),
                arm.arm.as_str().into(),
            ];
            for (call, _) in CALLS_TIMED {
                row.push(latency(arm, call, |latency| latency.p50_ns).into());
                row.push(latency(arm, call, |latency| latency.p99_ns).into());
            }
            sheet.rows.push(row);
        }
    }
    sheet
}

/// Slot sizes down, numbers of slots across.
fn slots(cells: &[CellReport], sweep: &Sweep) -> Sheet {
    let heads = SLOTS.map(|(_, slots)| format!("{slots} slots"));
    let mut columns = vec![("slot", Bytes)];
    columns.extend(heads.iter().map(|head| (head.as_str(), Nanoseconds)));
    let mut sheet = Sheet::new(
        sweep.work,
        &format!("Slots: {}", sweep.title),
        "The time of a message that fills a slot, there and back. Rings of less than 4096 bytes do not exist.",
        &columns,
    );
    for slot in SLOT_SIZES {
        let Some(cell) = find(cells, &format!("{}-{slot}", sweep.work), APART) else {
            continue;
        };
        let time = |name: &str| Value::from(cell.arm(name).and_then(time_each));
        let times = SLOTS.map(|(arm, _)| time(arm.name));
        sheet
            .rows
            .push([vec![Value::from(slot as f64)], times.into()].concat());
    }
    sheet
}

fn windows(cells: &[CellReport]) -> Sheet {
    let mut sheet = Sheet::new(
        "windows",
        "Windows: rings that messages take in turn",
        &counts::caption(
            "Rings of 32 slots of 1024 bytes, iii-futex; with one message under way, and with 32.",
        ),
        &counts::beside(&[
            ("under way", Text),
            ("windows", Text),
            ("time each", Nanoseconds),
            ("over one", Factor),
        ]),
    );
    for (name, under_way) in [("windows-1024", "one"), ("windows-filled-1024", "32")] {
        let Some(cell) = find(cells, name, APART) else {
            continue;
        };
        for arm in measured(cell) {
            let windows = arm.arm.trim_start_matches("windows-");
            let time = time_each(arm).into();
            let over = over(cell, arm, "windows-1");
            let row = vec![under_way.into(), windows.into(), time, over];
            sheet.rows.push(explained(row, arm));
        }
    }
    sheet
}

fn threads(cells: &[CellReport]) -> Sheet {
    let names = THREADS.map(|threads| (threads, format!("threads{threads}-{THREADED}")));
    by_arm(
        cells,
        "threads",
        "Messages of 7000 bytes over connections at once, a thread at each end",
        ("threads", Count),
        &names,
    )
}

fn larger(cells: &[CellReport]) -> Sheet {
    let names = LARGER.map(|size| (size, format!("larger-{size}")));
    by_arm(
        cells,
        "larger",
        "Messages larger than a slot of 1024 bytes",
        ("size", Bytes),
        &names,
    )
}

/// Arms in cells that differ in one number.
fn by_arm(
    cells: &[CellReport],
    name: &str,
    title: &str,
    number: (&str, Measure),
    names: &[(usize, String)],
) -> Sheet {
    let mut sheet = Sheet::new(
        name,
        title,
        &counts::caption(
            "All connections together, there and back; CPU time is that of both processes.",
        ),
        &counts::beside(&[
            number,
            ("arm", Text),
            ("messages", PerSecond),
            ("CPU per message", Nanoseconds),
            ("over tcp-nodelay", Factor),
        ]),
    );
    for (number, name) in names {
        let Some(cell) = find(cells, name, APART) else {
            continue;
        };
        for arm in measured(cell) {
            let row = vec![
                Value::from(*number as f64),
                arm.arm.as_str().into(),
                arm.rate.into(),
                arm.cpu_ns.into(),
                over(cell, arm, TCP_NODELAY.name),
            ];
            sheet.rows.push(explained(row, arm));
        }
    }
    sheet
}

fn classes(cells: &[CellReport]) -> Sheet {
    let mut sheet = Sheet::new(
        "schedule",
        "Scheduling classes, priorities and a reserved CPU, 70 bytes",
        &counts::caption(
            "Both ends in the class; reserved: the server has a CPU that the client keeps away from. Beside a busy process, that \
             one is of the normal class and on the server's CPU.",
        ),
        &counts::beside(&[
            ("carried by", Text),
            ("placement", Text),
            ("class", Text),
            ("elapsed for 100,000", Nanoseconds),
            ("CPU use", Share),
            ("involuntary switches", Count),
            ("over normal", Factor),
        ]),
    );
    for cell in cells {
        let Some(carried_by) = cell.work.strip_prefix(schedule::WORK) else {
            continue;
        };
        for arm in measured(cell) {
            let many = |value: Option<f64>| Value::from(value.map(|value| value * MANY));
            let row = vec![
                carried_by.trim_start_matches('-').into(),
                cell.placement.name().into(),
                arm.arm.as_str().into(),
                many(time_each(arm)),
                arm.cpu_share.into(),
                many(middle(arm, |sample| sample.involuntary)),
                over(cell, arm, NORMAL),
            ];
            sheet.rows.push(explained(row, arm));
        }
    }
    sheet
}

fn chat(cells: &[CellReport]) -> Sheet {
    let mut sheet = Sheet::new(
        "chat",
        &format!("A chat: rooms of {MEMBERS} members, each message to all of its room"),
        &counts::caption(
            "Messages delivered a second. A member says the next thing when it has heard itself, which takes the times shown.",
        ),
        &counts::beside(&[
            ("chat", Text),
            ("arm", Text),
            ("delivered", PerSecond),
            ("heard oneself, p50", Nanoseconds),
            ("heard oneself, p99", Nanoseconds),
            ("CPU per delivery", Nanoseconds),
            ("over tcp-nodelay", Factor),
        ]),
    );
    let all = ROOMS
        .iter()
        .flat_map(|rooms| CALLS.map(|call| (*rooms, call)));
    for (rooms, call) in all {
        let name = super::super::chat::name(rooms, call);
        // With those whose members are in several processes.
        let alike = |cell: &&CellReport| cell.cell.starts_with(&name) && cell.placement == APART;
        for cell in cells.iter().filter(alike) {
            for arm in measured(cell) {
                let row = vec![
                    cell.cell
                        .trim_start_matches("chat-")
                        .replace('-', " ")
                        .as_str()
                        .into(),
                    arm.arm.as_str().into(),
                    arm.rate.into(),
                    arm.p50_ns.into(),
                    arm.p99_ns.into(),
                    arm.cpu_ns.into(),
                    over(cell, arm, TCP_NODELAY.name),
                ];
                sheet.rows.push(explained(row, arm));
            }
        }
    }
    sheet
}

fn measured(cell: &CellReport) -> impl Iterator<Item = &ArmReport> {
    let counts = |arm: &&ArmReport| arm.samples > 0 && arm.is_proved();
    cell.arms.iter().filter(counts)
}

/// What the other tables and the curves are without.
fn not_carried(cells: &[CellReport]) -> Sheet {
    let mut sheet = Sheet::new(
        "not-carried",
        "Not carried",
        "Arms that are left out of tables and curves: their messages were not proved to go through shared memory.",
        &[
            ("cell", Text),
            ("placement", Text),
            ("arm", Text),
            ("samples", Count),
            ("carried", Count),
            ("why", Text),
        ],
    );
    for cell in cells {
        for arm in cell.arms.iter().filter(|arm| !arm.is_proved()) {
            let carried = arm.carried.as_ref();
            let count = |of: fn(&CarriedReport) -> usize| carried.map(|c| of(c) as f64);
            let why = carried.and_then(|carried| carried.objection.as_deref());
            sheet.rows.push(vec![
                cell.cell.as_str().into(),
                cell.placement.name().into(),
                arm.arm.as_str().into(),
                count(|carried| carried.of).into(),
                count(|carried| carried.yes).into(),
                why.unwrap_or_default().into(),
            ]);
        }
    }
    sheet
}

/// A row with what explains it at its end.
fn explained(mut row: Vec<Value>, arm: &ArmReport) -> Vec<Value> {
    row.extend(counts::fields(Some(arm)));
    row
}

fn over(cell: &CellReport, arm: &ArmReport, against: &str) -> Value {
    let own = arm.arm == against;
    let found = factor(cell, &arm.arm, against).filter(|_| !own);
    found.map(|factor| factor.middle).into()
}
