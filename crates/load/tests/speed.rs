//! The program of `speed` by itself: every way carries its messages, counts add up, and what is wrong is noticed.

use std::fs;
use std::io::Read;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const CARRIERS: [&str; 5] = ["tcp", "unix", "eventfd", "futex", "in-place"];

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headwater-load"));
    command.arg("speed");
    command
}

fn speed(words: &str) -> Output {
    program().args(words.split(' ')).output().unwrap()
}

fn said(words: &str) -> String {
    let output = speed(words);
    assert!(output.status.success(), "{words}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn number(said: &str, name: &str) -> f64 {
    let (_, rest) = said.split_once(&format!("\"{name}\":")).unwrap();
    let end = rest.find([',', '}']).unwrap();
    rest[..end].parse().unwrap()
}

#[test]
fn every_way_carries_all_messages_of_every_size() {
    for carrier in CARRIERS {
        for size in [16, 70, 1000, 40_000] {
            let said = said(&format!("run {carrier} --size {size} --count 300"));
            assert_eq!(number(&said, "messages"), 300.0, "{carrier} {size}");
            // The warm-up, and the message that says that it is the last.
            assert_eq!(number(&said, "all_messages"), 331.0, "{carrier} {size}");
            assert_eq!(number(&said, "bytes"), 300.0 * size as f64);
        }
    }
}

#[test]
fn messages_are_cut_into_slots_and_take_windows_in_turn() {
    for carrier in ["eventfd", "futex"] {
        // 98 frames in a ring that holds 16 of them.
        let words = format!("run {carrier} --size 97000 --slot 1024 --slots 16 --count 200");
        assert_eq!(number(&said(&words), "messages"), 200.0, "{carrier}");
        let words = format!("run {carrier} --size 3000 --slot 1024 --slots 32 --windows 3");
        let said = said(&format!("{words} --ahead 8 --count 500"));
        assert_eq!(number(&said, "all_messages"), 558.0, "{carrier}");
    }
}

#[test]
fn threads_have_connections_of_their_own() {
    for carrier in CARRIERS {
        let said = said(&format!(
            "run {carrier} --size 7000 --threads 5 --count 100"
        ));
        assert_eq!(number(&said, "messages"), 500.0, "{carrier}");
    }
}

#[test]
fn each_call_is_timed_where_that_is_asked_for() {
    for carrier in CARRIERS {
        let timed = said(&format!("run {carrier} --count 200 --latencies"));
        for call in [
            "client_read",
            "client_write",
            "server_read",
            "server_write",
            "round_trip",
        ] {
            let (_, latency) = timed.split_once(&format!("\"{call}\":")).unwrap();
            // The server has seen the last message too.
            let count = number(latency, "count");
            assert!(
                (200.0..=201.0).contains(&count),
                "{carrier} {call}: {count}"
            );
        }
        assert!(said(&format!("run {carrier} --count 200")).contains("\"latencies\":{}"));
    }
}

#[test]
fn the_copies_alone_are_made_and_counted() {
    let said = said("copy --size 1000 --count 640");
    assert_eq!(number(&said, "messages"), 640.0);
}

#[test]
fn a_chat_delivers_everything_to_everybody() {
    for carrier in ["tcp", "unix"] {
        for words in ["", " --poll", " --clients 3"] {
            let words = format!("chat {carrier} --rooms 4 --members 5 --count 500{words}");
            let said = said(&words);
            let (messages, all) = (number(&said, "messages"), number(&said, "all_messages"));
            // Each process counts for itself.
            assert!(messages >= 500.0, "{words}: {said}");
            assert!(all >= messages && all % 5.0 == 0.0, "{words}: {said}");
        }
    }
}

#[test]
fn a_spoilt_byte_is_noticed_whatever_carries_it() {
    for carrier in CARRIERS {
        let output = speed(&format!("run {carrier} --count 1000 --spoil 17"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{carrier}");
        assert!(
            said.contains("wrong bytes: message 17"),
            "{carrier}: {said}"
        );
    }
    let output = speed("chat unix --count 1000 --spoil 77");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("wrong bytes"),
        "{output:?}"
    );
}

#[test]
fn a_server_that_dies_is_named_by_a_client_that_waits_for_it() {
    for carrier in ["futex", "eventfd"] {
        let mut client = program()
            .args(["run", carrier, "--seconds", "100"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        kill(only_child(client.id()));
        let mut said = String::new();
        client
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        assert!(!client.wait().unwrap().success());
        assert!(said.contains("the server: it died"), "{carrier}: {said}");
    }
}

fn only_child(pid: u32) -> i32 {
    let start = Instant::now();
    loop {
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        if let Some(child) = children.unwrap_or_default().split_whitespace().next() {
            return child.parse().unwrap();
        }
        assert!(
            start.elapsed() < Duration::from_secs(30),
            "there is no server"
        );
        thread::sleep(Duration::from_millis(1));
    }
}

fn kill(pid: i32) {
    // SAFETY: no pointers are passed; the process is a child of one that this test has started.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGKILL) }, 0);
}
