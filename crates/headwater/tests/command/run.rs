//! `headwater run`: what the program finds, and what its caller sees.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};

use crate::installation::{Installation, stderr, stdout};

#[test]
fn the_programs_status_is_the_commands_status() {
    let it = Installation::new();
    for stats in [&[][..], &["--stats"]] {
        let status = |script: &str| {
            let arguments = [&["run"], stats, &["--", "sh", "-c", script]].concat();
            it.output(&arguments).status
        };
        assert_eq!(status("exit 0").code(), Some(0));
        assert_eq!(status("exit 7").code(), Some(7));
        assert_eq!(status("exit 200").code(), Some(200));
    }
}

#[test]
fn a_killed_program_is_128_and_the_signal() {
    use std::os::unix::process::ExitStatusExt;
    let it = Installation::new();
    let counted = it.output(&["run", "--stats", "--", "sh", "-c", "kill -TERM $$"]);
    assert_eq!(counted.status.code(), Some(128 + libc::SIGTERM));
    // Without a table the command is the program, so its caller sees the signal itself.
    let plain = it.output(&["run", "--", "sh", "-c", "kill -TERM $$"]);
    assert_eq!(plain.status.signal(), Some(libc::SIGTERM));
}

#[test]
fn failures_to_start_have_the_statuses_of_env() {
    let it = Installation::new();
    let text = it.program("text", "");
    fs::set_permissions(&text, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    for stats in [&[][..], &["--stats"]] {
        let status = |name: &str| {
            let arguments = [&["run"], stats, &["--", name]].concat();
            it.output(&arguments).status.code()
        };
        assert_eq!(status("no-such-program-anywhere"), Some(127));
        assert_eq!(status(&text), Some(126));
    }
    let code = |arguments: &[&str]| it.output(arguments).status.code();
    assert_eq!(code(&["run", "--no-such-flag", "--", "true"]), Some(125));
    assert_eq!(code(&["run"]), Some(125));
    assert_eq!(code(&["run", "--ring", "100000", "--", "true"]), Some(125));
    assert_eq!(code(&["no-such-verb"]), Some(2));
}

#[test]
fn a_wrong_value_of_a_variable_is_a_failure_to_start() {
    let it = Installation::new();
    for (name, value) in [
        ("HEADWATER_RING", "7"),
        ("HEADWATER_PORTS", "http"),
        ("HEADWATER_SCTP_LINK", "tcp"),
        ("HEADWATER_SCTP_MTU", "7"),
        ("HEADWATER_SCTP_UDP_PORT", "0"),
        ("HEADWATER_UDP2_LINK", "tcp"),
        ("HEADWATER_STREAMS", "hiwat=many"),
    ] {
        let run = |flags: &[&str]| {
            let arguments = [&["run"], flags, &["--", "echo", "started"]].concat();
            it.headwater(&arguments).env(name, value).output().unwrap()
        };
        for flags in [&[][..], &["--stats"]] {
            let output = run(flags);
            assert_eq!(output.status.code(), Some(125), "{name}");
            assert!(output.stdout.is_empty());
            let said = stderr(&output);
            assert!(said.contains(&format!("{name}={value}: want")) || name.ends_with("STREAMS"));
            assert!(said.contains(name) && !said.contains("ignored"), "{said}");
        }
    }
    // A flag wins over the variable.
    let output = it
        .headwater(&["run", "--ring=64K", "--", "true"])
        .env("HEADWATER_RING", "7")
        .output();
    assert!(output.unwrap().status.success());
}

#[test]
fn without_the_library_nothing_is_run() {
    let it = Installation::without_library();
    let output = it.output(&["run", "--", "echo", "started"]);
    assert_eq!(output.status.code(), Some(125));
    assert!(output.stdout.is_empty());
    assert!(stderr(&output).contains("libheadwater.so"));
}

#[test]
fn an_existing_preload_is_kept_behind_the_library() {
    let it = Installation::new();
    let library = it.library().display().to_string();
    let output = it
        .headwater(&[
            "run",
            "--",
            "sh",
            "-c",
            "echo $LD_PRELOAD; echo $HEADWATER_SOCKETS",
        ])
        .env("LD_PRELOAD", "libc.so.6")
        .output()
        .unwrap();
    assert_eq!(stdout(&output), format!("{library}:libc.so.6\n1\n"));
    assert!(stderr(&output).is_empty());
}

#[test]
fn a_program_with_address_sanitizer_and_defaults_of_its_own_runs() {
    let it = Installation::new();
    let text = r#"#include <stdio.h>
        const char *__asan_default_options(void) { return "detect_leaks=0"; }
        int main(void) { puts("hi"); }"#;
    let program = it.path().join("sanitized");
    assert!(it.compile(text, &["-fsanitize=address"], &program));
    let program = program.to_str().unwrap();
    let script = format!("{program}; echo $ASAN_OPTIONS");
    let run = |command: &[&str]| {
        let arguments = [&["run", "--"], command].concat();
        let output = it
            .headwater(&arguments)
            .env("ASAN_OPTIONS", "verbosity=0")
            .output();
        let output = output.unwrap();
        assert!(output.status.success(), "{output:?}");
        stdout(&output)
    };
    assert_eq!(run(&[program]), "hi\n");
    let options = "verify_asan_link_order=0:verbosity=0";
    assert_eq!(run(&["sh", "-c", &script]), format!("hi\n{options}\n"));
}

#[test]
fn flags_become_variables_and_win_over_them() {
    let it = Installation::new();
    let script = "echo $HEADWATER_RING $HEADWATER_DENY_PORTS $HEADWATER_SPIN $HEADWATER_DIR";
    let output = it
        .headwater(&[
            "run",
            "--ring=1M",
            "--deny-ports",
            "22,80-90",
            "--dir",
            "here",
            "sh",
            "-c",
            script,
        ])
        .env("HEADWATER_RING", "64K")
        .env("HEADWATER_SPIN", "5")
        .current_dir(it.path())
        .output()
        .unwrap();
    let here = it.path().canonicalize().unwrap().join("here");
    let expected = format!("1M 22,80-90 5 {}\n", here.display());
    assert_eq!(stdout(&output), expected);
}

#[test]
fn statistics_end_in_a_table_and_leave_nothing_behind() {
    let it = Installation::new();
    let output = it.output(&["run", "--stats", "--", "env"]);
    let table = stderr(&output);
    let row = |name: &str| {
        let line = table.lines().find(|line| line.trim().starts_with(name));
        line.unwrap_or_else(|| panic!("no {name} in {table}"))
            .to_string()
    };
    assert!(table.starts_with("headwater: env, "), "{table}");
    assert_eq!(
        row("connections").split_whitespace().collect::<Vec<_>>(),
        ["connections", "3", "1"]
    );
    assert!(row("bytes sent").contains("2.0 KiB"));
    assert!(row("fallbacks").contains("no-offer 1"));
    let environment = stdout(&output);
    let file = environment
        .lines()
        .find_map(|line| line.strip_prefix("HEADWATER_STATS_FILE="))
        .unwrap();
    assert!(!fs::exists(file).unwrap(), "{file} is left");
}

#[test]
fn a_named_statistics_file_is_kept_and_only_its_new_lines_are_shown() {
    let it = Installation::new();
    let file = it.path().join("stats");
    fs::write(&file, "{\"pid\":1,\"accelerated\":1000}\n").unwrap();
    let name = file.display().to_string();
    let output = it.output(&["run", "--stats", "--stats-file", &name, "--", "true"]);
    assert!(output.status.success());
    assert!(!stderr(&output).contains("1003"));
    let lines = fs::read_to_string(&file).unwrap();
    assert_eq!(lines.lines().count(), 2);
    let quiet = it.output(&["run", "--stats-file", &name, "--", "true"]);
    assert!(quiet.stderr.is_empty());
    assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 3);
}

#[test]
fn a_fifo_has_the_lines_of_the_program_for_its_reader() {
    let it = Installation::new();
    let fifo = it.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    let name = fifo.display().to_string();
    // It ends at the first writer's end, which is to be the program's.
    let reader = std::thread::spawn(move || fs::read_to_string(fifo).unwrap());
    let output = it.output(&["run", "--stats-file", &name, "--", "true"]);
    assert!(output.status.success());
    assert_eq!(reader.join().unwrap().lines().count(), 1);
    let output = it.output(&["run", "--stats", "--stats-file", "/dev/null", "--", "true"]);
    assert_eq!(output.status.code(), Some(125));
    assert!(stderr(&output).contains("not a regular file"));
}

#[test]
fn a_static_program_runs_and_is_named() {
    headwater_testkit::needs!("libc6-dev");
    let it = Installation::new();
    let path = it.path().join("static");
    assert!(it.compile("int main(void) { return 5; }", &["-static"], &path));
    let path = path.display().to_string();
    let output = it.output(&["run", "--", &path]);
    assert_eq!(output.status.code(), Some(5));
    let warning = stderr(&output);
    assert!(warning.contains("statically linked") && warning.lines().count() == 1);
    let script = it.program("script", &format!("#!{path}\n"));
    let output = it.output(&["run", "--", &script]);
    assert!(stderr(&output).contains("statically linked"));
}

#[test]
fn an_excluded_program_is_named_and_a_plain_one_is_not() {
    let it = Installation::new();
    let denied = it.output(&["run", "--programs", "redis-*", "--", "true"]);
    assert!(denied.status.success());
    assert!(stderr(&denied).contains("excluded"));
    let plain = it.output(&["run", "--", "true"]);
    assert!(plain.stderr.is_empty() && plain.stdout.is_empty());
}

/// Runs a shell that waits for `signal`, which is sent to headwater and must reach the shell.
fn passes_on(signal: libc::c_int, name: &str) {
    let it = Installation::new();
    let script = format!("trap 'echo got; exit 9' {name}; echo ready; read line");
    let mut command = it.headwater(&["run", "--stats", "--", "sh", "-c", &script]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    // Tests that are run by nohup(1) hand down that it is ignored, and a shell does not trap what was ignored when it began.
    // SAFETY: signal(2) may be called between fork and exec.
    unsafe {
        command.pre_exec(move || {
            libc::signal(signal, libc::SIG_DFL);
            Ok(())
        });
    }
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    send(&child, signal);
    assert_eq!(lines.next().unwrap().unwrap(), "got");
    assert_eq!(child.wait().unwrap().code(), Some(9));
}

fn send(child: &Child, signal: libc::c_int) {
    // SAFETY: our own child, not yet waited for.
    let done = unsafe { libc::kill(child.id() as i32, signal) };
    assert_eq!(done, 0);
}

#[test]
fn signals_pass_on_while_statistics_are_collected() {
    passes_on(libc::SIGTERM, "TERM");
    passes_on(libc::SIGHUP, "HUP");
    passes_on(libc::SIGUSR1, "USR1");
}

#[test]
fn the_meaning_of_sigpipe_is_handed_down() {
    let it = Installation::new();
    let ignored = |ignore: bool| {
        let run = format!(
            "{} exec {}/bin/headwater run -- grep SigIgn /proc/self/status",
            if ignore { "trap '' PIPE;" } else { "" },
            it.path().display()
        );
        // std::process gives its children the default, so a shell is between.
        let output = std::process::Command::new("sh")
            .args(["-c", &run])
            .output()
            .unwrap();
        let line = stdout(&output);
        let mask = line.split_whitespace().nth(1).unwrap();
        u64::from_str_radix(mask, 16).unwrap() >> (libc::SIGPIPE - 1) & 1 == 1
    };
    assert!(ignored(true));
    assert!(!ignored(false));
}
