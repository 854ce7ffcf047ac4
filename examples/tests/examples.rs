//! Each example runs, says what docs/streams.md says it says, and ends by itself.

use std::path::Path;
use std::process::{Command, Output};

/// In a runtime folder of its own, for no longer than a minute.
fn run(program: &Path, folder: &Path) -> String {
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", "60"]).arg(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("HEADWATER_") {
            command.env_remove(name);
        }
    }
    let output = command
        .env("HEADWATER_DIR", folder.join("run"))
        .env_remove("LD_PRELOAD")
        .output();
    said(&output.expect("timeout, of coreutils"))
}

fn said(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {stderr}", output.status);
    assert_eq!(stderr, "");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::Builder::new().prefix("headwater-").tempdir();
    folder.expect("a folder for the test")
}

#[test]
fn line_editor() {
    let folder = folder();
    let text = run(Path::new(env!("CARGO_BIN_EXE_line_editor")), folder.path());
    assert_eq!(
        text,
        r#"pushed: lined
line: "hello, wörld\n"
line: "ls\n"
line: "pwd\n"
unfinished: the deadline passed
line: "last\n"
shown on the screen: 61 bytes
then: the stream has hung up
"#
    );
}

#[test]
fn fan_out() {
    let folder = folder();
    let text = run(Path::new(env!("CARGO_BIN_EXE_fan_out")), folder.path());
    assert_eq!(
        text,
        "linked: 3
published: 0 to 999
link 1: 1000 messages so far
link 2: 1000 messages so far
link 3: 1000 messages so far
unlinked: 3
published: 1000 to 1499
link 1: 1500 messages so far
link 2: 1500 messages so far
link 1: 1500 messages in all
link 2: 1500 messages in all
link 3: 1000 messages in all
"
    );
}

/// Against the library that `make build` left.
#[test]
fn messages_in_c() {
    let folder = folder();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let library = std::env::var_os("HEADWATER_E2E_LIBRARY").map_or_else(
        || root.join("../target/release/libheadwater.so"),
        Into::into,
    );
    let library = library.canonicalize().expect("the library: make build");
    for link in ["libheadwater.so", "libheadwater.so.0"] {
        std::os::unix::fs::symlink(&library, folder.path().join(link)).expect("our own folder");
    }
    let program = folder.path().join("messages");
    let built = Command::new("cc")
        .args(["-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .arg(root.join("messages.c"))
        .arg("-I")
        .arg(root.join("../include"))
        .arg("-L")
        .arg(folder.path())
        .arg("-lheadwater")
        .arg(format!("-Wl,-rpath,{}", folder.path().display()))
        .output();
    said(&built.expect("cc is installed"));
    assert_eq!(
        run(&program, folder.path()),
        r#"a stream: yes
poll: high priority yes
waiting: 4 messages, the first has 4 bytes of data
high priority, band 0: control "alarm" data "fire"
ordinary, band 2: data "in band 2"
ordinary, band 1: data "in band 1"
ordinary, band 0: data "ordinary"
on top: bufmod
ordinary, band 0: data "through a module"
a second I_POP: Invalid argument
read: "bytes too"
then: 0 bytes
"#
    );
}
