//! The programs' own command lines.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};

fn bench(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headwater-bench"));
    // As `headwater bench` starts it.
    command.arg0("headwater").args(words);
    command
}

#[test]
fn a_reader_that_leaves_ends_the_list() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut child = bench(&["bench", "list"]);
    let child = child.stdout(writer).stderr(Stdio::piped());
    let output = child.spawn().unwrap().wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), Some(libc::SIGPIPE), "{said}");
    assert_eq!(said, "");
}

#[test]
fn the_list_is_of_what_is_named() {
    let listed = |words: &[&str]| {
        let output = bench(words).output().unwrap();
        assert!(output.status.success(), "{words:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let (all, pipe) = (
        listed(&["bench", "list"]),
        listed(&["bench", "list", "pipe"]),
    );
    assert!(all.contains("  sockets/rtt-70 "), "{all}");
    assert!(
        pipe.contains("  pipe/one-64 ") && !pipe.contains("  sockets/"),
        "{pipe}"
    );
}

#[test]
fn help_names_the_command_that_was_typed() {
    for (words, usage) in [
        (["bench", "--help"], "Usage: headwater bench [OPTIONS]"),
        (["demo", "--help"], "Usage: headwater demo"),
    ] {
        let output = bench(&words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains(usage), "{said}");
    }
}

#[test]
fn what_is_wrong_on_the_command_line_is_refused() {
    for (words, complaint) in [
        (&["bench", "--rounds", "0"][..], "0 is not in 1.."),
        (
            &["bench", "--seconds", "61"],
            "a number from 0.01 to 60 is wanted",
        ),
        (&["bench", "--quik"], "--quick"),
        (&["bench", "--compare", "one.json"], "2 values required"),
        (&["bench", "list", "pipes"], "pipes"),
    ] {
        let output = bench(words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(complaint), "{words:?}: {said}");
    }
}
