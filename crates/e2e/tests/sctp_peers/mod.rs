//! What the tests of SCTP share: peers, two networks with a wire between them, and captures judged by tshark.

#![allow(dead_code)]

pub mod capture;
pub mod wire;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use headwater_e2e::{Lab, Mode, Output, PATIENCE, Running, lab};

pub const USRSCTP: &str = "/usr/lib/usrsctp";

/// A lab with a network of its own, and the engine alone over UDP as one of its programs.
pub fn lab() -> Lab {
    Lab::new(Mode::Native)
}

/// The engine alone: the example of its crate.
pub fn ours(lab: &Lab, words: &[&str]) -> Command {
    let mut command = lab.plain(env!("CARGO_BIN_EXE_sctp-udp-peer"));
    command.args(words);
    command
}

/// Our stack over a link ("raw", "udp:PORT"), by its Rust API, as the benchmark's program has it.
pub fn stack(lab: &Lab, link: &str, words: &[&str]) -> Command {
    let mut command = lab.plain(headwater_e2e::lab::library().with_file_name("headwater-load"));
    command
        .arg("sctpperf")
        .args(words)
        .env("HEADWATER_SCTP_LINK", link);
    // Each network has a port 9899 of its own.
    let name = format!("run-{}", words[0]);
    command.env("HEADWATER_DIR", lab.path(&name));
    command
}

/// A number in the line that such a program ends with.
pub fn counted(output: Output, name: &str) -> u64 {
    let text = output.text();
    let line = text.lines().last().unwrap_or_default();
    let value: serde_json::Value =
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {text}"));
    value[name]
        .as_u64()
        .unwrap_or_else(|| panic!("no {name} in {line}"))
}

/// Waits until a server of ours says that it is ready.
pub fn await_ready(server: &Running) {
    let begun = Instant::now();
    while !server.said().contains("ready") {
        assert!(
            server.alive() && begun.elapsed() < PATIENCE,
            "it does not get ready: {}",
            server.said()
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// One of usrsctp's own programs.
pub fn usrsctp(lab: &Lab, program: &str, words: &[&str]) -> Command {
    let mut command = lab.plain(Path::new(USRSCTP).join(program));
    command.args(words);
    command
}

/// pion/sctp, compiled when a test first wants it: before that test leaves the machine's network.
pub fn compiled_pion() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let exe = std::env::current_exe().expect("a test has a path");
        let to = exe.with_extension("pion");
        let output = Command::new("go")
            .args(["build", "-buildvcs=false", "-o"])
            .arg(&to)
            .arg(".")
            .current_dir(lab::source("peers/pion"))
            .output()
            .expect("go is installed");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        to
    })
}

pub fn pion(lab: &Lab, words: &[&str]) -> Command {
    let mut command = lab.plain(compiled_pion());
    command.args(words);
    command
}

/// Waits until an example of usrsctp's that says nothing serves: it has all of its threads, and the first sleeps until a peer comes.
fn await_usrsctp(server: &Running) {
    let begun = Instant::now();
    let of = |file: &str| format!("/proc/{}/{file}", server.pid());
    let has_timer = || {
        let tasks = std::fs::read_dir(of("task"))
            .into_iter()
            .flatten()
            .flatten();
        let mut names = tasks.map(|task| std::fs::read_to_string(task.path().join("comm")));
        names.any(|name| name.is_ok_and(|name| name == "SCTP timer\n"))
    };
    let sleeps = || {
        let call = std::fs::read_to_string(of("syscall")).unwrap_or_default();
        call.starts_with(&format!("{} ", libc::SYS_futex))
    };
    while !(has_timer() && sleeps()) {
        assert!(
            server.alive() && begun.elapsed() < PATIENCE,
            "usrsctp does not serve: {}",
            server.said()
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Starts one of usrsctp's servers, where it says nothing, and waits until it serves: it has its UDP port before its socket listens, and refuses whoever comes
/// between the two.
pub fn serve_usrsctp(lab: &Lab, command: Command) -> Running {
    let server = lab.start(command);
    await_usrsctp(&server);
    server
}

/// Starts a program and waits until somebody has bound this UDP port.
pub fn serve_udp(lab: &Lab, command: Command, port: u16) -> Running {
    let server = lab.start(command);
    await_udp(port, &server);
    server
}

fn await_udp(port: u16, server: &Running) {
    let begun = Instant::now();
    let suffix = format!(":{port:04X}");
    let bound = || {
        ["udp", "udp6"].iter().any(|table| {
            let text = std::fs::read_to_string(format!("/proc/thread-self/net/{table}"))
                .unwrap_or_default();
            text.lines().any(|line| {
                line.split_whitespace()
                    .nth(1)
                    .is_some_and(|local| local.ends_with(&suffix))
            })
        })
    };
    while !bound() {
        assert!(server.alive(), "the server ended before it had port {port}");
        assert!(begun.elapsed() < PATIENCE, "nobody has port {port}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// What the engine's example said at its end.
pub fn tally(output: Output) -> Tally {
    let text = output.text();
    let line = text.lines().last().unwrap_or_default();
    let numbers: Vec<u64> = line
        .split(|c: char| !c.is_ascii_digit() && c != '.')
        .filter_map(|word| word.parse().ok())
        .collect();
    assert!(numbers.len() >= 4, "{text}");
    Tally {
        sent: numbers[0],
        sent_bytes: numbers[1],
        received: numbers[2],
        received_bytes: numbers[3],
    }
}

#[derive(Debug, PartialEq, Eq)]
pub struct Tally {
    pub sent: u64,
    pub sent_bytes: u64,
    pub received: u64,
    pub received_bytes: u64,
}

impl Tally {
    pub fn sent(messages: u64, size: u64) -> Tally {
        Tally {
            sent: messages,
            sent_bytes: messages * size,
            received: 0,
            received_bytes: 0,
        }
    }

    pub fn received(messages: u64, size: u64) -> Tally {
        Tally {
            sent: 0,
            sent_bytes: 0,
            received: messages,
            received_bytes: messages * size,
        }
    }

    pub fn both(messages: u64, size: u64) -> Tally {
        Tally {
            received: messages,
            received_bytes: messages * size,
            ..Tally::sent(messages, size)
        }
    }
}
