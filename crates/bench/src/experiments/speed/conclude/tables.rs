//! Tables: what 100,000 messages take, latencies, slots, windows, threads, classes, the chat.

use super::super::chat::{CALLS, ROOMS};
use super::super::figures::{MANY, factor, latency, middle, time_each};
use super::super::messages::{LARGER, SIZES, THREADED, THREADS};
use super::super::schedule::{self, NORMAL};
use super::super::sweeps::{SLOT_SIZES, SLOTS, SWEEPS, Sweep};
use super::APART;
use crate::cells::{ArmReport, CarriedReport, CellReport};
use crate::conclude::find;
use crate::experiment::TCP_NODELAY;
use crate::findings::{Sheet, Value};
use crate::tables;

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
    let threads = THREADS.map(|threads| (threads, format!("threads{threads}-{THREADED}")));
    let larger = LARGER.map(|size| (size, format!("larger-{size}")));
    let rest = [
        windows(cells),
        by_arm(cells, "threads", &threads),
        by_arm(cells, "larger", &larger),
        classes(cells),
        chat(cells),
        not_carried(cells),
    ];
    let sheets = runs.chain([latencies(cells)]).chain(sweeps).chain(rest);
    sheets.filter(|sheet| !sheet.rows.is_empty()).collect()
}

/// The document's "Run Information".
fn run_information(cells: &[CellReport], size: usize) -> Sheet {
    let text = size.to_string();
    let mut sheet = tables::sheet("speed", "run-{size}", &[("size", &text)]);
    let name = format!("messages-{size}");
    for cell in cells.iter().filter(|cell| cell.cell == name) {
        for arm in cell.measured() {
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
    let mut sheet = tables::sheet("speed", "latency", &[]);
    for cell in cells.iter().filter(|cell| cell.work == "latency") {
        for arm in cell.measured() {
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
    let mut sheet = tables::sheet("speed", sweep.work, &[]);
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
    let mut sheet = tables::sheet("speed", "windows", &[]);
    for (name, under_way) in [("windows-1024", "one"), ("windows-filled-1024", "32")] {
        let Some(cell) = find(cells, name, APART) else {
            continue;
        };
        for arm in cell.measured() {
            let windows = arm.arm.trim_start_matches("windows-");
            let time = time_each(arm).into();
            let over = over(cell, arm, "windows-1");
            let row = vec![under_way.into(), windows.into(), time, over];
            sheet.explained(row, Some(arm));
        }
    }
    sheet
}

/// Arms in cells that differ in one number.
fn by_arm(cells: &[CellReport], name: &str, names: &[(usize, String)]) -> Sheet {
    let mut sheet = tables::sheet("speed", name, &[]);
    for (number, name) in names {
        let Some(cell) = find(cells, name, APART) else {
            continue;
        };
        for arm in cell.measured() {
            let row = vec![
                Value::from(*number as f64),
                arm.arm.as_str().into(),
                arm.rate.into(),
                arm.cpu_ns.into(),
                over(cell, arm, TCP_NODELAY.name),
            ];
            sheet.explained(row, Some(arm));
        }
    }
    sheet
}

fn classes(cells: &[CellReport]) -> Sheet {
    let mut sheet = tables::sheet("speed", "schedule", &[]);
    for cell in cells {
        let Some(carried_by) = cell.work.strip_prefix(schedule::WORK) else {
            continue;
        };
        for arm in cell.measured() {
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
            sheet.explained(row, Some(arm));
        }
    }
    sheet
}

fn chat(cells: &[CellReport]) -> Sheet {
    let mut sheet = tables::sheet("speed", "chat", &[]);
    let all = ROOMS
        .iter()
        .flat_map(|rooms| CALLS.map(|call| (*rooms, call)));
    for (rooms, call) in all {
        let name = super::super::chat::name(rooms, call);
        // With those whose members are in several processes.
        let alike = |cell: &&CellReport| cell.cell.starts_with(&name) && cell.placement == APART;
        for cell in cells.iter().filter(alike) {
            for arm in cell.measured() {
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
                sheet.explained(row, Some(arm));
            }
        }
    }
    sheet
}

/// What the other tables and the curves are without.
fn not_carried(cells: &[CellReport]) -> Sheet {
    let mut sheet = tables::sheet("speed", "not-carried", &[]);
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

fn over(cell: &CellReport, arm: &ArmReport, against: &str) -> Value {
    let own = arm.arm == against;
    let found = factor(cell, &arm.arm, against).filter(|_| !own);
    found.map(|factor| factor.value).into()
}
