use super::*;

fn looked(syscall_ns: f64, copy_memory: f64) -> Calibration {
    Calibration {
        syscall_ns: Some(syscall_ns),
        copy_memory: Some(copy_memory),
        ..Calibration::default()
    }
}

#[test]
fn a_machine_that_drifted_is_told_in_a_sentence() {
    let before = looked(100.0, 9e9);
    assert_eq!(drift(&before, &looked(115.0, 8e9)), None);
    assert_eq!(drift(&before, &Calibration::default()), None);
    let found = drift(&before, &looked(140.0, 3e9)).unwrap();
    for part in ["a system call 100 ns before, 140 ns now", "3.00 GB/s now"] {
        assert!(found.contains(part), "{found}");
    }
    assert!(!found.contains("clock"), "{found}");
}
