//! Curves over slots, threads, sizes and rooms, and bars of latencies.

use super::super::chat::{self, CALLS, ROOMS};
use super::super::figures::{find, latency, times};
use super::super::messages::{LARGER, THREADED, THREADS};
use super::super::sweeps::{SLOT_SIZES, SLOTS, SWEEPS, Sweep};
use super::APART;
use super::tables::CALLS_TIMED;
use crate::findings::Measure::{Bytes, Count, Nanoseconds, PerSecond};
use crate::findings::Scale::{Linear, Log2, Log10};
use crate::findings::{Axis, Curve, Plot, Point};
use crate::report::{ArmReport, CellReport};
use crate::table;

pub fn all(cells: &[CellReport]) -> Vec<Plot> {
    let mut plots = vec![latencies(cells)];
    plots.extend(SWEEPS.iter().map(|sweep| slots(cells, sweep)));
    plots.extend([threads(cells), larger(cells), chatting(cells)]);
    plots.retain(|plot| !plot.curves.is_empty());
    plots
}

fn latencies(cells: &[CellReport]) -> Plot {
    let arms = find(cells, "latency-70", APART).map_or(&[][..], |cell| &cell.arms);
    let arms: Vec<&ArmReport> = arms
        .iter()
        .filter(|arm| arm.samples > 0 && arm.is_proved())
        .collect();
    let curve = |(call, name): (&str, &str)| {
        let bar = |(place, arm): (usize, &&ArmReport)| {
            let y = latency(arm, call, |latency| latency.p50_ns)?;
            Some(Point::new(place as f64, y))
        };
        Curve {
            name: name.to_string(),
            points: arms.iter().enumerate().filter_map(bar).collect(),
            fit: Vec::new(),
        }
    };
    Plot {
        name: "latency".to_string(),
        title: "Reads and writes of 70 bytes, a CPU each".to_string(),
        caption: "Medians. A read includes the wait for the message.".to_string(),
        x: Axis {
            names: arms.iter().map(|arm| arm.arm.clone()).collect(),
            ..Axis::new("arm", Count, Linear)
        },
        y: Axis::new("time of a call", Nanoseconds, Log10),
        curves: drawn(CALLS_TIMED.map(curve)),
    }
}

fn slots(cells: &[CellReport], sweep: &Sweep) -> Plot {
    let curve = |slot: usize| {
        let cell = find(cells, &format!("{}-{slot}", sweep.work), APART);
        let point =
            |(arm, slots): (crate::experiment::Arm, usize)| time_at(slots, cell?.arm(arm.name)?);
        Curve {
            name: format!("slots of {slot} bytes"),
            points: SLOTS.into_iter().filter_map(point).collect(),
            fit: Vec::new(),
        }
    };
    Plot {
        name: sweep.work.to_string(),
        title: format!("Slots: {}", sweep.title),
        caption: "The time of a message that fills a slot, there and back.".to_string(),
        x: Axis::new("slots", Count, Log2),
        y: Axis::new("time of a message", Nanoseconds, Log10),
        curves: drawn(SLOT_SIZES.map(curve)),
    }
}

fn threads(cells: &[CellReport]) -> Plot {
    let names = THREADS.map(|threads| (threads, format!("threads{threads}-{THREADED}")));
    Plot {
        name: "threads".to_string(),
        title: "Connections at once, 7000 bytes".to_string(),
        caption: "All connections together, a thread at each end, a CPU for each process."
            .to_string(),
        x: Axis::new("threads", Count, Log2),
        y: Axis::new("messages there and back", PerSecond, Log10),
        curves: by_arm(cells, &names, rate_at),
    }
}

fn larger(cells: &[CellReport]) -> Plot {
    let names = LARGER.map(|size| (size, format!("larger-{size}")));
    Plot {
        name: "larger".to_string(),
        title: "Messages larger than a slot of 1024 bytes".to_string(),
        caption: "ii-eventfd and iii-futex cut them up; TCP and Fast Sockets know no slots."
            .to_string(),
        x: Axis::new("size", Bytes, Log2),
        y: Axis::new("time of a message", Nanoseconds, Log10),
        curves: by_arm(cells, &names, time_at),
    }
}

fn chatting(cells: &[CellReport]) -> Plot {
    let curves = CALLS.into_iter().flat_map(|call| {
        let names = ROOMS.map(|rooms| (rooms, chat::name(rooms, call)));
        by_arm(cells, &names, rate_at)
            .into_iter()
            .map(move |curve| Curve {
                name: format!("{}, {call}", curve.name),
                ..curve
            })
    });
    Plot {
        name: "chat".to_string(),
        title: "A chat: rooms of 20 members".to_string(),
        caption: "Each message goes to all of its room.".to_string(),
        x: Axis::new("rooms", Count, Log2),
        y: Axis::new("messages delivered", PerSecond, Log10),
        curves: curves.collect(),
    }
}

/// A curve for each arm that any of the cells has.
pub fn by_arm(
    cells: &[CellReport],
    names: &[(usize, String)],
    point: impl Fn(usize, &ArmReport) -> Option<Point>,
) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    for (x, name) in names {
        let arms = find(cells, name, APART).map_or(&[][..], |cell| &cell.arms);
        for arm in arms {
            let Some(point) = point(*x, arm) else {
                continue;
            };
            match curves.iter_mut().find(|curve| curve.name == arm.arm) {
                Some(curve) => curve.points.push(point),
                None => curves.push(Curve {
                    name: arm.arm.clone(),
                    points: vec![point],
                    fit: Vec::new(),
                }),
            }
        }
    }
    curves
}

pub fn time_at(x: usize, arm: &ArmReport) -> Option<Point> {
    let (y, low, high) = times(arm)?;
    Some(Point {
        low: Some(low),
        high: Some(high),
        ..Point::new(x as f64, y)
    })
}

fn rate_at(x: usize, arm: &ArmReport) -> Option<Point> {
    let (time, low, high) = times(arm)?;
    Some(Point {
        low: Some(1e9 / high),
        high: Some(1e9 / low),
        ..Point::new(x as f64, 1e9 / time)
    })
}

fn drawn<const N: usize>(curves: [Curve; N]) -> Vec<Curve> {
    curves
        .into_iter()
        .filter(|curve| !curve.points.is_empty())
        .collect()
}

/// A size as people say it.
pub fn bytes(size: f64) -> String {
    match size {
        size if size >= 1048576.0 => format!("{} MiB", table::number(size / 1048576.0)),
        size if size >= 1024.0 => format!("{} KiB", table::number(size / 1024.0)),
        size => format!("{size} bytes"),
    }
}
