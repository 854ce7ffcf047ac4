//! Curves over slots, threads, sizes and rooms, and bars of latencies.

use super::super::chat::{self, CALLS, ROOMS};
use super::super::figures::{latency, times};
use super::super::messages::{LARGER, THREADED, THREADS};
use super::super::sweeps::{SLOT_SIZES, SLOTS, SWEEPS, Sweep};
use super::APART;
use super::tables::CALLS_TIMED;
use crate::cells::{ArmReport, CellReport};
use crate::conclude::find;
use crate::findings::{Curve, Plot, Point};
use crate::tables;

pub fn all(cells: &[CellReport]) -> Vec<Plot> {
    let threads = THREADS.map(|threads| (threads, format!("threads{threads}-{THREADED}")));
    let larger = LARGER.map(|size| (size, format!("larger-{size}")));
    let plot = |name, curves| tables::plot("speed", name, &[], curves);
    let mut plots = vec![latencies(cells)];
    plots.extend(
        SWEEPS
            .iter()
            .map(|sweep| plot(sweep.work, slots(cells, sweep))),
    );
    plots.extend([
        plot("threads", by_arm(cells, &threads, rate_at)),
        plot("larger", by_arm(cells, &larger, times)),
        plot("chat", chatting(cells)),
    ]);
    plots.retain(|plot| !plot.curves.is_empty());
    plots
}

fn latencies(cells: &[CellReport]) -> Plot {
    let cell = find(cells, "latency-70", APART).into_iter();
    let arms: Vec<&ArmReport> = cell.flat_map(CellReport::measured).collect();
    let curve = |(call, name): (&str, &str)| {
        let bar = |(place, arm): (usize, &&ArmReport)| {
            let y = latency(arm, call, |latency| latency.p50_ns)?;
            Some(Point::new(place as f64, y))
        };
        Curve::new(name, arms.iter().enumerate().filter_map(bar))
    };
    let mut plot = tables::plot("speed", "latency", &[], CALLS_TIMED.map(curve));
    plot.x.names = arms.iter().map(|arm| arm.arm.clone()).collect();
    plot
}

fn slots(cells: &[CellReport], sweep: &Sweep) -> Vec<Curve> {
    let curve = |slot: usize| {
        let cell = find(cells, &format!("{}-{slot}", sweep.work), APART);
        let points = SLOTS
            .into_iter()
            .filter_map(|(arm, slots)| times(slots, cell?.arm(arm.name)?));
        Curve::new(&format!("slots of {slot} bytes"), points)
    };
    SLOT_SIZES.map(curve).into()
}

fn chatting(cells: &[CellReport]) -> Vec<Curve> {
    let of = |call| {
        let names = ROOMS.map(|rooms| (rooms, chat::name(rooms, call)));
        let mut curves = by_arm(cells, &names, rate_at);
        curves
            .iter_mut()
            .for_each(|curve| curve.name += &format!(", {call}"));
        curves
    };
    CALLS.into_iter().flat_map(of).collect()
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
                None => curves.push(Curve::new(&arm.arm, [point])),
            }
        }
    }
    curves
}

fn rate_at(x: usize, arm: &ArmReport) -> Option<Point> {
    let time = times(x, arm)?;
    Some(Point::within(
        time.x,
        1e9 / time.y,
        1e9 / time.high?,
        1e9 / time.low?,
    ))
}
