use std::collections::BTreeSet;

use super::*;
use crate::experiment::TCP;
use crate::tables;

fn item(experiment: usize, seconds: u64) -> Item {
    use crate::experiment::Unit;
    Item {
        experiment,
        cell: Cell::new("work", Unit::Rate, vec![TCP]),
        placement: Placement::Apart,
        takes: Duration::from_secs(seconds),
    }
}

#[test]
fn a_quick_run_has_something_of_each_experiment_and_keeps_its_time() {
    let mut plan = Plan::default();
    let queue = |at, times: &[u64]| times.iter().map(|&s| item(at, s)).collect();
    let queues = vec![queue(0, &[3, 3, 3]), queue(1, &[4, 1]), queue(2, &[9])];
    plan.fill(queues, Duration::from_secs(12));
    let taken: Vec<(usize, u64)> = plan
        .items
        .iter()
        .map(|item| (item.experiment, item.takes.as_secs()))
        .collect();
    assert_eq!(taken, [(0, 3), (1, 4), (0, 3), (1, 1)]);
    assert_eq!(plan.left_out, 2);
}

#[test]
fn cells_that_one_cpu_does_not_suffice_for_are_named() {
    let experiment = experiments::by_name("speed").unwrap();
    let skipped = |name: &str, cpus: &[usize]| {
        let mut plan = Plan::default();
        let selections = Selection::parse(&[name.to_string()]).unwrap();
        plan.skip_without_cpus(&experiment, &selections, cpus, Extent::All);
        plan.skip_unplaced(&experiment, &selections, Extent::All);
        plan.skipped
    };
    assert!(skipped("speed/windows-1024", &[0, 1]).is_empty());
    let (name, why) = skipped("speed/windows-1024", &[0]).remove(0);
    assert_eq!(name, "speed/windows-1024");
    assert!(why.contains("there is only one"));
    assert!(skipped("speed/messages-70", &[0]).is_empty());
    let (name, _) = skipped("speed/messages-70/apart", &[0]).remove(0);
    assert_eq!(name, "speed/messages-70");
    let (name, why) = skipped("speed/windows-1024/same", &[0, 1]).remove(0);
    assert_eq!(name, "speed/windows-1024/same");
    assert!(why.contains("not measured in that placement"));
}

/// Beside it stands what is measured once more, since it looked bad or was disturbed: some six minutes.
#[test]
fn a_usual_run_takes_little_more_than_an_hour() {
    let effort = Effort::new(Extent::Usual, None, None);
    assert!(effort.pairs >= 7 && effort.time >= Duration::from_millis(400));
    let selections = Selection::parse(&[]).unwrap();
    let mut whole = Duration::ZERO;
    for name in experiments::names() {
        let experiment = experiments::by_name(name).unwrap();
        let cpus = [0, 1];
        let items = items(&experiment, 0, &selections, &[], &cpus, effort);
        assert!(!items.is_empty(), "{name}");
        let takes: Duration = items.iter().map(|item| item.takes).sum();
        println!("{name}: {} measurements, {takes:.0?}", items.len());
        whole += takes;
    }
    assert!(whole < Duration::from_secs(66 * 60), "{whole:?}");
}

/// A line through the times at several sizes needs three of them, a pipe's up to 4 KiB.
#[test]
fn a_usual_run_has_sizes_enough_for_lines_and_what_one_cpu_can_show() {
    let effort = Effort::new(Extent::Usual, None, None);
    let selections = Selection::parse(&[]).unwrap();
    for name in experiments::names() {
        let experiment = experiments::by_name(name).unwrap();
        let of = |cpus: &[usize]| items(&experiment, 0, &selections, &[], cpus, effort);
        assert!(!of(&[0]).is_empty(), "{name}");
        let kept = of(&[0, 1]);
        let sizes = |work: &str| -> BTreeSet<usize> {
            let of_work = kept.iter().filter(|item| item.cell.work == work);
            of_work.filter_map(|item| item.cell.size).collect()
        };
        for cell in experiment.cells() {
            let offered = experiment.cells();
            let all = offered.iter().filter(|other| other.work == cell.work);
            let all: BTreeSet<usize> = all.filter_map(|other| other.size).collect();
            let left = sizes(&cell.work);
            let usual = !tables::usual(experiment.name, &cell).is_empty();
            assert!(
                !usual || left.len() >= all.len().min(3),
                "{name}/{}",
                cell.work
            );
            let small = left.iter().filter(|size| **size <= 4096);
            assert!(
                name != "pipe" || all.len() < 3 || small.count() >= 3,
                "{}",
                cell.work
            );
        }
    }
}

#[test]
fn a_cell_takes_its_arms_its_rounds_and_its_stretch() {
    let effort = Effort {
        pairs: 5,
        time: Duration::from_millis(100),
        count: false,
        ..Effort::new(Extent::Quick, None, None)
    };
    let mut cell = item(0, 0).cell;
    assert_eq!(takes(&cell, effort), Duration::from_millis(1050));
    cell.stretch = 10.0;
    assert_eq!(takes(&cell, effort), Duration::from_millis(5550));
}
