//! The echo pair by itself: every mode carries its bytes, and wrong bytes are noticed by whichever end checks them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::thread;

const LOAD: &str = env!("CARGO_BIN_EXE_headwater-load");

fn echo() -> Command {
    let mut command = Command::new(LOAD);
    command.arg("echo");
    command
}

struct Server {
    child: Child,
    address: String,
    output: BufReader<std::process::ChildStdout>,
}

impl Server {
    fn start(mode: &str, address: &str) -> Server {
        let mut child = echo()
            .args([
                "server",
                mode,
                address,
                "--until-eof",
                "--connections",
                "50",
            ])
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
    fn stop(mut self) -> String {
        drop(self.child.stdin.take());
        let mut said = String::new();
        self.output.read_to_string(&mut said).unwrap();
        assert!(self.child.wait().unwrap().success());
        said
    }
}

fn client(mode: &str, address: &str, more: &[&str]) -> Output {
    let mut command = echo();
    command
        .args(["client", mode, address, "--count", "300"])
        .args(more);
    command.output().unwrap()
}

fn assert_verified(output: &Output) {
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("\"verified\":true"), "{said}");
}

#[test]
fn every_mode_carries_its_bytes_over_tcp_and_over_a_unix_socket() {
    let folder = tempfile::tempdir().unwrap();
    for (mode, server) in [
        ("rtt", "echo"),
        ("stream", "sink"),
        ("connect", "epoll"),
        ("fan", "epoll"),
    ] {
        let path = format!("unix:{}/{mode}", folder.path().display());
        for address in ["127.0.0.1:0", "[::1]:0", &path] {
            if address.starts_with('[') && TcpListener::bind(address).is_err() {
                continue;
            }
            let server = Server::start(server, address);
            for size in ["1", "70000"] {
                let output = client(
                    mode,
                    &server.address,
                    &["--size", size, "--connections", "50"],
                );
                assert_verified(&output);
            }
            assert!(server.stop().contains("\"verified\":true"));
        }
    }
}

#[test]
fn an_idle_client_says_so_and_ends_with_its_input() {
    let server = Server::start("epoll", "127.0.0.1:0");
    let mut child = echo()
        .args(["client", "idle", &server.address])
        .args(["--connections", "50", "--count", "3"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut said = String::new();
    output.read_line(&mut said).unwrap();
    assert_eq!(said, "idle\n");
    assert_eq!(child.try_wait().unwrap(), None);
    drop(child.stdin.take());
    output.read_to_string(&mut said).unwrap();
    assert!(said.contains("\"messages\":150,"), "{said}");
    assert!(child.wait().unwrap().success());
    assert!(server.stop().contains("\"verified\":true"));
}

#[test]
fn foreign_calls_are_counted_one_by_one() {
    let output = echo().args(["calls", "--count", "5000"]).output().unwrap();
    assert_verified(&output);
    let said = String::from_utf8_lossy(&output.stdout);
    // Whole batches of a thousand pairs.
    assert!(said.contains("\"messages\":6000,"), "{said}");
}

#[test]
fn a_client_notices_an_echo_that_is_not_its_own() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let spoiler = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut message = [0; 64];
        while stream.read_exact(&mut message).is_ok() {
            message[63] ^= 1;
            stream.write_all(&message).unwrap();
        }
    });
    let output = client("rtt", &address, &["--size", "64"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"verified\":false"));
    spoiler.join().unwrap();
}

#[test]
fn a_sink_counts_what_came_and_says_when_it_is_wrong() {
    let server = Server::start("sink", "127.0.0.1:0");
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.write_all(&[7; 5000]).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert_eq!(answer[..8], 5000u64.to_le_bytes());
    assert_eq!(answer[8], 0);
    assert!(server.stop().contains("\"verified\":false"));
}

#[test]
fn the_raw_arms_run_without_sockets() {
    let raw = |wire: &str, mode: &str, size: &str| {
        let output = Command::new(LOAD)
            .args(["raw", wire, mode, size, "0.02", "any", "any"])
            .output()
            .unwrap();
        assert_verified(&output);
    };
    raw("cache-line", "rtt", "1");
    for size in ["1", "70", "65536"] {
        raw("channel", "rtt", size);
        raw("channel", "stream", size);
    }
}
