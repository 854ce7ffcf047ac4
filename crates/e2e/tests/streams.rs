//! The System V manual pages as cases in C, linked against the library as a user's programs are: `c/streams/AREA.c`.
//!
//! Each case runs in a process, a folder and a runtime folder of its own, and names the page that it holds the library to.

use std::process::Command;

use headwater_e2e::{compile, lab::library};

headwater_e2e::areas!(
    "streams":
    head, options, opening, messages, reading, writing, flow, bands, pipes, pipe_holders, names, connld, fifos,
    fifo_opens, mux, signals, poll, faults, drivers, presence, held, c_modules
);

/// What a shell says whose pipes are streams.
fn shell(script: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let output = Command::new("timeout")
        .args(["-s", "KILL", "30", "bash", "-c", script])
        .env("LD_PRELOAD", library())
        .env("HEADWATER_PIPE", "streams")
        .env("HEADWATER_DIR", folder.path().join("runtime"))
        .output()
        .expect("timeout, of coreutils");
    let said = String::from_utf8_lossy(&output.stdout);
    format!("{said}{}", String::from_utf8_lossy(&output.stderr))
}

/// HEADWATER_PIPE=streams: the pipes of a shell, whose programs write by the C library's stdout after dup2 and exec.
#[test]
fn a_shell_pipes_through_streams() {
    let script = r#"x=$(echo a; echo b); echo "[$x]"; seq 1 20000 | sort -n | tail -1; printf '1\n2\n' | head -n1"#;
    assert_eq!(shell(script), "[a\nb]\n20000\n1\n");
}

/// Programs that read and write wide characters there, or open their standard streams again.
#[test]
fn a_shell_pipes_wide_characters_through_streams() {
    let program = compile::program("wide_pipes", &[]);
    let program = program.display();
    let script = format!(
        r#"set -o pipefail; printf 'sch\303\266n\nzwei\n' | {program} pass | cat
        printf 'sch\303\266n\nzwei\n' | {program} pass | {program} end 2>&1 | cat; echo $?"#
    );
    assert_eq!(
        shell(&script),
        "1 «schön»\n2 «zwei»\nende ß\n1 schön\ngröße 3\n0\n"
    );
}
