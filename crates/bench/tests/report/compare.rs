//! Two runs beside each other.

use headwater_bench::data::*;
use headwater_bench::{Change, ChangeVerdict, compare};

use crate::fixture;

fn changed(of: impl Fn(&mut Run)) -> Run {
    let mut run = fixture::plausible().without_samples();
    run.experiments
        .iter_mut()
        .for_each(|report| report.cells.truncate(3));
    of(&mut run);
    run
}

fn find<'a>(changes: &'a [Change], cell: &str, arm: &str) -> &'a Change {
    let mut found = changes
        .iter()
        .filter(|change| change.place.cell == cell && change.place.arm == arm);
    found.next().expect("the arm is compared")
}

#[test]
fn what_changed_stands_out_from_what_did_not() {
    let old = changed(|_| ());
    let new = changed(|run| {
        let arm = &mut run.experiments[1].cells[0].arms[0];
        arm.rates.iter_mut().flatten().for_each(|rate| *rate *= 1.3);
    });
    let found = compare(&old, &new);
    assert_eq!(
        find(&found.changes, "tcp-1", "accelerated").verdict,
        ChangeVerdict::Faster
    );
    assert_eq!(found.count(ChangeVerdict::Faster), 1);
    assert_eq!(found.count(ChangeVerdict::Slower), 0);
    assert_eq!(found.warnings, Vec::<String>::new());
    let back = compare(&new, &old);
    assert_eq!(
        find(&back.changes, "tcp-1", "accelerated").verdict,
        ChangeVerdict::Slower
    );
    let table = found.table();
    for part in [
        "tcp-1",
        "1.30x",
        "faster",
        "within the noise",
        "by chance alone",
    ] {
        assert!(table.contains(part), "{table}");
    }
}

#[test]
fn cells_of_one_run_alone_are_named_and_not_compared() {
    let old = changed(|run| run.experiments.truncate(3));
    let new = changed(|run| drop(run.experiments.remove(0)));
    let found = compare(&old, &new);
    assert!(
        found
            .changes
            .iter()
            .all(|change| ["tcp", "lan"].contains(&change.place.experiment.as_str()))
    );
    assert!(
        found
            .only_old
            .iter()
            .any(|name| name == "pipe/one-4/apart streams")
    );
    assert!(
        found
            .only_new
            .iter()
            .any(|name| name == "apps/redis-get/free unix")
    );
    // An arm that failed has no rates, so it is in neither.
    assert!(!found.table().contains("pgbench"));
}

#[test]
fn another_machine_is_warned_about() {
    let old = changed(|_| ());
    let new = changed(|run| {
        run.machine.kernel = "6.12.0".to_string();
        run.machine.cpu = "Another".to_string();
        run.version = "9.9.9".to_string();
        run.complete = false;
    });
    let found = compare(&old, &new);
    assert_eq!(found.warnings.len(), 4, "{:?}", found.warnings);
    assert!(found.table().starts_with("warning: the CPU differs"));
}

#[test]
fn what_is_wrong_with_an_arm_is_carried_into_the_comparison() {
    let old = changed(|_| ());
    let new = changed(|run| {
        run.quick = true;
        run.disturbed_kept = 2;
        run.machine.calibration.syscall_ns = Some(190.0);
        run.skipped.push(Skipped {
            name: "sctp".to_string(),
            why: "the kernel is too old".to_string(),
        });
        let arms = &mut run.experiments[1].cells[0].arms;
        let unproved = CarriedReport {
            yes: 3,
            of: 15,
            objection: None,
        };
        arms[0].carried = Some(unproved);
        arms[1].failures.push("the server died".to_string());
        arms[1].rates.iter_mut().for_each(|rate| *rate = None);
    });
    let died = old.experiments[1].cells[0].arms[1].arm.clone();
    let found = compare(&old, &new);
    assert_eq!(
        find(&found.changes, "tcp-1", "accelerated").verdict,
        ChangeVerdict::NoResult
    );
    assert_eq!(found.warnings.len(), 3, "{:?}", found.warnings);
    assert!(
        found
            .only_old
            .iter()
            .any(|name| name.contains(&died) && name.contains("the server died"))
    );
    let table = found.table();
    for part in [
        "a quick one",
        "the machine itself drifted",
        "the new run counts 2 rounds",
        "not carried in 12 of 15",
        "skipped: sctp (in the new run: the kernel is too old)",
    ] {
        assert!(table.contains(part), "{part}: {table}");
    }
}

#[test]
fn nothing_in_common_is_no_error() {
    let found = compare(&fixture::empty(), &fixture::hostile());
    assert!(found.changes.is_empty() && !found.only_new.is_empty());
    assert!(found.table().contains("no arm has rates in both runs"));
}
