use super::*;
use crate::experiment::Cell;
use crate::experiments::{self, names};

fn cells(experiment: &str) -> Vec<Cell> {
    let found = experiments::by_name(experiment);
    found.expect("an experiment of this name").cells()
}

fn assert_known(experiment: &str, name: &str, arms: [&str; 2]) {
    let cells = cells(experiment);
    let cell = cells.iter().find(|cell| cell.name == name);
    let cell = cell.unwrap_or_else(|| panic!("{experiment} has no cell {name}"));
    for arm in arms {
        let known = cell.arms.iter().any(|own| own.name == arm);
        assert!(known, "{experiment}/{name} has no arm {arm}");
    }
}

#[test]
fn every_experiment_has_its_texts_and_cells_of_a_quick_run() {
    let named: Vec<&str> = TEXTS.iter().map(|texts| texts.name.as_str()).collect();
    assert_eq!(named, names());
    for texts in TEXTS.iter() {
        assert!(texts.question.ends_with('?') && texts.method.ends_with('.'));
        assert!(!texts.describe.is_empty());
        let cells = cells(&texts.name);
        let quick = quick(&texts.name);
        let first: Vec<&str> = cells.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(first[..quick.len()], quick);
        assert!(!quick.is_empty());
    }
    assert!(QUICK.iter().all(|row| names().contains(&&*row.experiment)));
}

#[test]
fn of_each_experiment_a_usual_run_has_something_by_rows_that_name_cells() {
    for row in USUAL.iter() {
        let cells = cells(&row.experiment);
        for name in row.cells.split(' ') {
            let known = |cell: &Cell| is_of(name, cell);
            assert!(cells.iter().any(known), "{} {name}", row.experiment);
        }
    }
    let has = |name: &&str| cells(name).iter().any(|c| !usual(name, c).is_empty());
    assert!(names().iter().all(has));
}

#[test]
fn what_is_compared_is_measured() {
    for row in COMPARED.iter() {
        assert_known(&row.experiment, &row.cell, [&row.arm, &row.against]);
    }
    for row in HEADLINES.iter() {
        assert_known(&row.experiment, &row.cell, [&row.arm, &row.against]);
        assert!(!row.placements.is_empty(), "{}", row.label);
    }
    assert_eq!((COMPARED.len(), HEADLINES.len()), (89, 27));
}

#[test]
fn what_is_wanted_is_wanted_of_cells_and_arms_that_there_are() {
    // One of both is there; the other stack is only where Go is.
    const ELSEWHERE: [&str; 3] = ["prio-20-19", "prio-0-19", "pion"];
    for row in GOALS.iter() {
        let cells = cells(&row.experiment);
        let meant = cells.iter().filter(|cell| is_of(&row.cells, cell));
        for name in row.cells.split(' ') {
            let first = name.split("..").next();
            assert!(
                meant.clone().any(|cell| Some(&*cell.name) == first),
                "{name}"
            );
        }
        let goal = row.goal();
        for arm in [Some(goal.arm), goal.against.arm()].into_iter().flatten() {
            let has = |cell: &Cell| cell.arms.iter().any(|own| own.name == arm);
            assert!(ELSEWHERE.contains(&arm) || meant.clone().all(has), "{arm}");
        }
        assert!(!matches!(goal.against, Against::Time(ns) if ns.is_nan()));
    }
    assert_eq!(GOALS.len(), 183);
}

#[test]
fn heads_are_whole_and_words_are_filled_in() {
    for row in SHEETS.iter() {
        let sheet = sheet(&row.experiment, &row.name, &[]);
        let counts = if row.counts { 3 } else { 0 };
        assert_eq!(sheet.columns.len(), row.columns.split('|').count() + counts);
    }
    let words = [("work", "tcp"), ("title", "TCP"), ("placement", "apart")];
    let found = sheet("sizes", "{work}-rates-{placement}", &words);
    assert_eq!(found.name, "tcp-rates-apart");
    assert!(found.title.starts_with("TCP, apart:"));
    assert_eq!(found.columns.last().map(|c| &*c.head), Some("calls/msg"));
}

#[test]
fn the_papers_figures_are_all_there() {
    for (machines, columns) in [(&UDP_OF_2007, 3), (&TCP_OF_2007, 4)] {
        assert_eq!((machines.columns.len(), machines.rows.len()), (columns, 28));
        let whole = |row: &(_, usize, Vec<f64>)| row.2.len() == columns;
        assert!(machines.rows.iter().all(whole));
    }
    let counts = [SPEED.len(), ROUND_TRIPS.len(), BANDWIDTHS.len()];
    assert_eq!(counts, [35, 8, 8]);
    for row in ROUND_TRIPS.iter() {
        assert_known("lan", "rtt-1", [&row.arm, "tcp"]);
    }
    for row in BANDWIDTHS.iter() {
        assert_known("lan", &format!("{}-1024", row.work), [&row.arm, "tcp"]);
    }
}
