//! The two ends by themselves, over what the kernel has and over the channel: every byte arrives and is counted, wrong ones are
//! noticed at either end, and what cannot be done is said.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::thread;

use serde_json::Value;

fn lan() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headwater-load"));
    command.arg("lan");
    command
}

struct Server {
    child: Child,
    address: String,
    output: BufReader<ChildStdout>,
}

impl Server {
    fn start(work: &str, address: &str, words: &str) -> Server {
        let mut child = lan()
            .args(["serve", work, address])
            .args(words.split_whitespace())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening ").unwrap().to_string();
        Server {
            child,
            address,
            output,
        }
    }

    /// Ends its input, and gives what it says to that.
    fn stop(mut self) -> Value {
        drop(self.child.stdin.take());
        let mut said = String::new();
        self.output.read_to_string(&mut said).unwrap();
        assert!(self.child.wait().unwrap().success());
        serde_json::from_str(&said).unwrap()
    }
}

fn run(words: &str) -> Output {
    let mut command = lan();
    command.args(words.split_whitespace()).output().unwrap()
}

fn result(words: &str) -> Value {
    let output = run(words);
    assert!(output.status.success(), "{words}: {output:?}");
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["verified"], true, "{words}: {said}");
    said
}

fn count(said: &Value, name: &str) -> u64 {
    said[name].as_u64().unwrap()
}

const WORKS: [(&str, &str); 7] = [
    ("exchange", "--request 1 --response 1"),
    ("exchange", "--request 65536 --response 65536"),
    ("exchange", "--request 70 --response 9000 --within 0.5"),
    ("exchange", "--request 1000 --burst 500"),
    ("connects", "--request 64 --response 1024"),
    ("stream", "--request 5000"),
    ("stream", "--request 100 --read 100 --count 300"),
];

#[test]
fn every_work_carries_its_bytes_over_tcp_and_over_a_unix_socket() {
    let folder = tempfile::tempdir().unwrap();
    for (work, words) in WORKS {
        let path = folder.path().join("socket");
        for address in ["127.0.0.1:0", &format!("unix:{}", path.display())] {
            let _ = std::fs::remove_file(&path);
            let words = format!("{words} --seconds 0.02 --buffers 65536 --nodelay");
            let server = Server::start(work, address, &words);
            let driven = result(&format!("drive {work} {} {words}", server.address));
            let served = server.stop();
            assert_eq!(served["verified"], true, "{work} {words}");
            assert!(count(&driven, "messages") > 0, "{work} {words}: {driven}");
            let size = count(&driven, "bytes") / count(&driven, "messages");
            let sent = count(&driven, "all_messages") * size;
            assert_eq!(count(&served, "bytes"), sent, "{work} {words}");
        }
    }
}

#[test]
fn exchanges_and_streams_go_over_the_bare_channel() {
    for (work, words) in WORKS.into_iter().filter(|(work, _)| *work != "connects") {
        let said = result(&format!(
            "raw {work} {words} --seconds 0.02 --buffers 131072"
        ));
        assert_eq!(said["served"]["verified"], true, "{said}");
    }
}

#[test]
fn an_exchange_tells_its_latencies_and_how_well_its_mean_is_known() {
    let said = result("raw exchange --seconds 0.05");
    let latency = &said["latency"];
    assert_eq!(count(latency, "count"), count(&said, "messages"));
    assert!(latency["p50_ns"].as_f64() <= latency["p99_ns"].as_f64());
    assert!(count(&said, "batches") > 0);
}

#[test]
fn messages_reach_a_reader_through_pipe_and_ring_and_straight_into_its_memory() {
    // 5000 bytes are no whole pages, 300000 more than a pipe or the ring holds.
    for size in [1, 5000, 300_000] {
        for wire in ["pipe", "ring", "posted"] {
            let words = format!("post {wire} --request {size} --seconds 0.02");
            let output = run(&words);
            let complaint = String::from_utf8_lossy(&output.stderr);
            if wire == "posted" && complaint.contains("not permitted") {
                continue;
            }
            let said = result(&words);
            let bytes = count(&said, "messages") * size;
            assert_eq!(count(&said, "bytes"), bytes, "{words}");
        }
    }
}

#[test]
fn a_driver_notices_an_answer_that_is_not_its_own() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let spoiler = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut message = [0; 64];
        while stream.read_exact(&mut message).is_ok() {
            message[63] ^= 1;
            stream.write_all(&message).unwrap();
        }
    });
    let output = run(&format!(
        "drive exchange {address} --request 64 --response 64"
    ));
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("wrong bytes"));
    spoiler.join().unwrap();
}

#[test]
fn a_server_says_at_its_end_that_what_it_heard_was_wrong() {
    for work in ["exchange", "connects", "stream"] {
        let server = Server::start(work, "127.0.0.1:0", "--request 4");
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream.write_all(&[7; 4]).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert!(!answer.is_empty());
        assert_eq!(server.stop()["verified"], false, "{work}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_the_usage() {
    for words in ["raw connects", "post exchange", "drive exchange"] {
        let output = run(words);
        assert_eq!(output.status.code(), Some(2), "{words}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("Usage:"));
    }
}
