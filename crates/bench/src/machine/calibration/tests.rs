use super::*;

#[test]
fn one_cpu_has_no_neighbour() {
    let first = crate::machine::allowed_cpus()[0];
    let found = Calibration::measure(&[first]);
    assert_eq!((found.cache_line_ns, found.wake_ns), (None, None));
    for known in [
        found.syscall_ns,
        found.clock_ns,
        found.copy_cached,
        found.copy_memory,
    ] {
        assert!(known.is_some_and(|value| value > 0.0), "{found:?}");
    }
}

/// As where somebody else has the CPU for longer than a measurement takes.
#[test]
fn a_step_that_takes_longer_than_all_the_time_is_measured_too() {
    let late = || {
        thread::sleep(2 * SHORT);
        Some(1.0)
    };
    assert_eq!(tries(SHORT, late), Some(1.0));
    assert_eq!(tries(Duration::ZERO, || None), None);
}

#[test]
fn two_cpus_reach_each_other() {
    let cpus = crate::machine::allowed_cpus();
    let found = Calibration::measure(&cpus);
    assert_eq!(found.cache_line_ns.is_some(), cpus.len() > 1);
    assert_eq!(found.wake_ns.is_some(), cpus.len() > 1);
}
