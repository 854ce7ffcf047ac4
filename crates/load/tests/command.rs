//! The command line.

use std::process::Command;

#[test]
fn a_load_that_is_not_known_is_refused_with_those_that_are() {
    let load = env!("CARGO_BIN_EXE_headwater-load");
    let output = Command::new(load).arg("eco").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("echo"), "{said}");
    let output = Command::new(load).args(["echo", "sing"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.starts_with("headwater-load echo: "), "{said}");
}
