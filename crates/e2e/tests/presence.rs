//! Configure scripts ask whether a device is there before programs open it: with the library the names that open are there.

use std::process::Command;

use headwater_e2e::lab::library;

/// What `command` says and how it ends, with the library or without.
fn ask(command: &[&str], preload: bool) -> (String, bool) {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let mut asked = Command::new("timeout");
    asked.args(["-s", "KILL", "30"]).args(command);
    asked.env("HEADWATER_DIR", folder.path().join("runtime"));
    if preload {
        asked.env("LD_PRELOAD", library());
    }
    let output = asked.output().expect("timeout, of coreutils");
    assert!(
        !folder.path().join("runtime").exists(),
        "a question makes nothing"
    );
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    (said, output.status.success())
}

/// Each line is a question, answered by what the shell's own `test` ends with.
const QUESTIONS: &str = "
    test -r /dev/tcp; echo $?
    test -w /dev/streams/ticots; echo $?
    [ -e /dev/inet/udp ]; echo $?
    [ -c /dev/ticlts ]; echo $?
    [ -p /dev/fifo.questions ]; echo $?
    [ -h /dev/tcp ]; echo $?
    test -x /dev/tcp; echo $?
    test -r /dev/streams/nosuch; echo $?
    test -r /dev/null; echo $?
";

fn a_shell_answers(shell: &str) {
    let (said, _) = ask(&[shell, "-c", QUESTIONS], true);
    assert_eq!(said, "0\n0\n0\n0\n0\n1\n1\n1\n0\n", "{shell}");
    let (said, _) = ask(&[shell, "-c", QUESTIONS], false);
    assert_eq!(said, "1\n1\n1\n1\n1\n1\n1\n1\n0\n", "{shell}");
}

#[test]
fn bash_finds_the_names_that_open() {
    a_shell_answers("bash");
}

#[test]
fn dash_finds_the_names_that_open() {
    a_shell_answers("dash");
}

/// What means something else on Linux is there only where the system has it: /dev/log is the socket of syslog, which a container
/// may lack.
#[test]
fn drivers_are_found_below_their_own_folder_alone() {
    for name in ["log", "loop", "echo", "nuls", "mux", "sad", "sad/admin"] {
        let of = |at: &str| format!("[ -e {at}/{name} ]; echo $?");
        let question = |at| ["sh".to_owned(), "-c".to_owned(), of(at)];
        let asked = |at, preload| {
            let [shell, option, script] = question(at);
            ask(&[&shell, &option, &script], preload).0
        };
        assert_eq!(asked("/dev", true), asked("/dev", false), "{name}");
        assert_eq!(asked("/dev/streams", true), "0\n", "{name}");
    }
}

#[test]
fn programs_find_the_names_that_open() {
    for option in ["-r", "-w", "-e", "-c"] {
        let question = ["/usr/bin/test", option, "/dev/tcp"];
        assert!(ask(&question, true).1, "{question:?}");
        assert!(!ask(&question, false).1, "{question:?}");
    }
    assert!(!ask(&["/usr/bin/test", "-x", "/dev/tcp"], true).1);
    let (said, _) = ask(&["stat", "-c", "%F %a", "/dev/tcp"], true);
    assert_eq!(said, "character special file 666\n");
    let (said, _) = ask(&["ls", "/dev/udp", "/dev/ticots"], true);
    assert_eq!(said, "/dev/ticots\n/dev/udp\n");
}
