//! `headwater demo`: a minute or so that shows what acceleration does, on whatever is installed.

use std::process::ExitCode;
use std::time::Duration;

use comfy_table::Table;

use crate::cells::{ArmReport, CarriedReport, CellReport};
use crate::ctrl_c;
use crate::effort::Effort;
use crate::experiment::{ACCELERATED, Cell, Site, TCP};
use crate::experiments::{self, Works};
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::measuring::{Pace, measure};
use crate::numbers;
use crate::placement::Placement;
use crate::progress::{Progress, say};
use crate::runner::End;
use crate::scratch::Scratch;
use crate::select::Extent;
use crate::table;
use crate::tools;

/// What is shown: a title, the cell, and the programs it takes.
const SHOWN: [(&str, &str, &[&str]); 4] = [
    ("echo, 70 bytes there and back", "rtt-70", &[]),
    (
        "redis GET, 1 client",
        "redis-get-c1",
        &["redis-server", "redis-benchmark"],
    ),
    (
        "redis GET, 50 clients",
        "redis-get-c50",
        &["redis-server", "redis-benchmark"],
    ),
    (
        "nginx, a small file, wrk with 1 connection",
        "nginx-c1",
        &["nginx", "wrk"],
    ),
];
const PLACEMENTS: [Placement; 2] = [Placement::Apart, Placement::Same];

/// Shows ordinary programs natively and accelerated, in turn, with the same work. Takes less than two minutes.
pub fn demo() -> ExitCode {
    match show() {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Interrupted) => ExitCode::from(End::Interrupted.code()),
        Err(failure) => {
            eprintln!("headwater demo: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn show() -> Result<()> {
    ctrl_c::listen();
    let scratch = Scratch::new("headwater-demo-")?;
    let site = Site::enter(scratch.path())?;
    site.tools.library()?;
    say(site.machine.describe());
    say(
        "The same programs without and with Headwater, in turn. Figures are medians; per message of both ends.",
    );
    let sockets = experiments::sockets();
    let mut missing = false;
    for (title, name, programs) in SHOWN {
        let is_missing = |program: &&str| tools::installed(program).is_err();
        if programs.iter().any(is_missing) {
            missing = true;
            continue;
        }
        if let Some(cell) = sockets.cells().into_iter().find(|cell| cell.name == name) {
            one(&sockets, &site, title, cell, programs.is_empty())?;
        }
        if interrupt::asked() {
            return Err(Failure::Interrupted);
        }
    }
    if missing {
        say("\nFor redis and nginx too: apt-get install redis-server redis-tools nginx wrk");
    }
    Ok(())
}

fn one(
    sockets: &Works,
    site: &Site,
    title: &'static str,
    mut cell: Cell,
    ours: bool,
) -> Result<()> {
    cell.arms = vec![TCP, ACCELERATED];
    let effort = Effort {
        extent: Extent::Quick,
        pairs: if ours { 7 } else { 3 },
        time: Duration::from_millis(if ours { 400 } else { 500 }),
        rerun: false,
        count: true,
        failures: 1,
    };
    let placements: Vec<Placement> = Placement::offered(&site.machine.cpus)
        .filter(|placement| PLACEMENTS.contains(placement))
        .collect();
    let takes = effort.time * (effort.pairs * cell.arms.len()) as u32;
    let progress = Progress::new(takes * placements.len() as u32);
    progress.now(title.to_string());
    let mut rows =
        table::new("where|how|median time|messages/s|CPU/msg|system calls/msg|switches/msg|result");
    for placement in placements {
        let pace = Pace {
            progress: &progress,
            takes,
            until: None,
        };
        let Some(measured) = measure(sockets, site, &cell, placement, effort, pace)? else {
            break;
        };
        let report = CellReport::new(&cell, placement, &measured.all);
        let native = report.arm(TCP.name);
        let accelerated = report.arm(ACCELERATED.name);
        let ratio = report
            .comparisons
            .iter()
            .find(|c| c.against == TCP.name)
            .map(|c| c.figure.value());
        let words = placement_words(placement);
        row(&mut rows, [words, "native"], native, String::new());
        row(
            &mut rows,
            [words, "accelerated"],
            accelerated,
            accelerated.map_or(String::new(), |arm| result(arm, ratio)),
        );
    }
    progress.end();
    say(format_args!("\n{title}\n{rows}"));
    Ok(())
}

/// The ratio, unless it means nothing.
fn result(arm: &ArmReport, ratio: Option<f64>) -> String {
    let proved = arm.carried.as_ref().is_some_and(CarriedReport::holds);
    match ratio {
        Some(ratio) if proved => format!("{}x", numbers::number(ratio)),
        Some(_) => table::carried(arm),
        None => String::new(),
    }
}

fn row(rows: &mut Table, labels: [&str; 2], arm: Option<&ArmReport>, result: String) {
    let Some(arm) = arm else {
        return;
    };
    let [place, how] = labels.map(str::to_string);
    let count = |value: Option<f64>| value.map_or(String::new(), numbers::number);
    let time = |value: Option<f64>| value.map_or(String::new(), numbers::duration);
    let median = arm.p50_ns.or(arm.rate.map(|rate| 1e9 / rate));
    let fields = [
        place,
        how,
        arm.failures
            .first()
            .cloned()
            .unwrap_or_else(|| time(median)),
        count(arm.rate),
        time(arm.cpu_ns),
        table::calls(arm),
        count(arm.switches),
        result,
    ];
    table::row(rows, fields);
}

fn placement_words(placement: Placement) -> &'static str {
    match placement {
        Placement::Apart => "a CPU each",
        Placement::Same => "one CPU for both",
        other => other.name(),
    }
}
