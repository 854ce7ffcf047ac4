//! The two ends by themselves, over what the kernel has: every message arrives, and what cannot be done is said.

use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

fn xtiperf() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headwater-load"));
    command.arg("xtiperf");
    command
}

/// Runs both ends, and gives what the driver said.
fn exchange(work: &str, carrier: &str, words: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let (board, name) = (folder.path().join("board"), folder.path().join("name"));
    let end = |side: &str| {
        let mut command = xtiperf();
        command.args([side, work, carrier]).args(words);
        command.arg("--board").arg(&board);
        command
    };
    let mut server = end("serve");
    if carrier == "unix" {
        server.arg("--at").arg(&name);
    }
    let mut server = server.stdout(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    let mut output = BufReader::new(server.stdout.take().unwrap());
    output.read_line(&mut said).unwrap();
    let address = said.trim().strip_prefix("ready ").unwrap();
    let mut driver = end("drive");
    driver.args(["--seconds", "0.02", "--at", address]);
    let driven = driver.output().unwrap();
    if !driven.status.success() {
        let _ = server.kill();
    }
    assert_eq!(server.wait().unwrap().success(), driven.status.success());
    driven
}

fn number(said: &str, name: &str) -> f64 {
    let (_, rest) = said.split_once(&format!("\"{name}\":")).unwrap();
    let end = rest.find([',', '}']).unwrap();
    rest[..end].parse().unwrap()
}

#[test]
fn every_work_goes_over_the_sockets_that_can_do_it() {
    let works: &[(&str, &str, &[&str])] = &[
        ("flow", "tcp", &["--size", "1"]),
        ("flow", "tcp", &["--size", "16384", "--nodelay"]),
        ("flow", "unix", &["--size", "5000"]),
        ("lone", "tcp", &["--nodelay"]),
        ("lone", "unix", &["--computing"]),
        ("trips", "tcp", &["--nodelay"]),
        ("trips", "unix", &[]),
        ("connects", "tcp", &[]),
        ("connects", "unix", &[]),
        ("datagrams", "udp", &["--size", "64"]),
        ("datagrams", "udp", &["--size", "1", "--mixed"]),
        ("datagrams", "udp-batched", &["--size", "64"]),
        ("datagrams", "udp-batched", &["--size", "8192", "--mixed"]),
        ("datagrams", "udp-mmsg", &["--size", "64"]),
        ("datagrams", "udp-mmsg", &["--size", "16384", "--mixed"]),
        ("datagrams", "unix", &["--size", "1000", "--lossless"]),
    ];
    for &(work, carrier, words) in works {
        let driven = exchange(work, carrier, words);
        assert!(driven.status.success(), "{work} {carrier}: {driven:?}");
        let said = String::from_utf8_lossy(&driven.stdout);
        let [messages, sent, received] =
            ["messages", "sent", "received"].map(|name| number(&said, name));
        assert!(messages > 0.0, "{work} {carrier}: {said}");
        assert_eq!(messages, sent.min(received), "{work} {carrier}");
    }
}

#[test]
fn buffers_are_those_that_were_asked_for_or_more() {
    for (work, carrier) in [("flow", "tcp"), ("trips", "tcp"), ("datagrams", "udp")] {
        let driven = exchange(work, carrier, &["--buffers", "16384"]);
        let said = String::from_utf8_lossy(&driven.stdout);
        let (_, rest) = said.split_once("\"buffers\":[").unwrap();
        let (all, _) = rest.split_once(']').unwrap();
        let bytes: Vec<u64> = all.split(',').map(|n| n.parse().unwrap()).collect();
        assert_eq!(bytes.len(), 4, "{work} {carrier}: {said}");
        assert!(
            bytes.iter().all(|&n| n >= 16384),
            "{work} {carrier}: {said}"
        );
    }
    let driven = exchange("flow", "tcp", &[]);
    assert!(String::from_utf8_lossy(&driven.stdout).contains("\"buffers\":null"));
}

#[test]
fn a_transport_device_without_the_library_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = xtiperf();
    command.args(["serve", "flow", "/dev/ticotsord", "--board"]);
    let output = command.arg(folder.path().join("board")).output().unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("t_open"), "{said}");
}
