//! The System V manual pages as cases in C, linked against the library as a user's programs are: `c/streams/AREA.c`.
//!
//! Each case runs in a process, a folder and a runtime folder of its own, and names the page that it holds the library to.

use std::process::Command;

use headwater_e2e::lab::library;

headwater_e2e::areas!(
    "streams":
    head, options, opening, messages, reading, writing, flow, bands, pipes, fifos, fifo_opens, mux, signals,
    poll, faults, drivers, presence
);

/// HEADWATER_PIPE=streams: the pipes of a shell, whose programs write by the C library's stdout after dup2 and exec.
#[test]
fn a_shell_pipes_through_streams() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let script = r#"x=$(echo a; echo b); echo "[$x]"; seq 1 20000 | sort -n | tail -1; printf '1\n2\n' | head -n1"#;
    let output = Command::new("timeout")
        .args(["-s", "KILL", "30", "bash", "-c", script])
        .env("LD_PRELOAD", library())
        .env("HEADWATER_PIPE", "streams")
        .env("HEADWATER_DIR", folder.path().join("runtime"))
        .output()
        .expect("timeout, of coreutils");
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said, "[a\nb]\n20000\n1\n", "{errors}");
}
