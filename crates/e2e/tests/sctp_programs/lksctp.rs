//! lksctp-tools: sctp_test, both styles and all its cases, and sctp_darn, which also does by hand what programs do seldom.

use std::process::Command;
use std::time::{Duration, Instant};

use headwater_e2e::{Running, program};
use headwater_testkit::needs;

use crate::ground::{Ground, await_said, await_that};
use crate::sctp_peers::usrsctp;

everywhere! {
    ["lksctp-tools"]
    sctp_test_one_to_many
    sctp_test_one_to_one
    sctp_test_on_several_streams
    sctp_darn_one_to_many
    sctp_darn_one_to_one
}

pub const PORT: &str = "5000";
/// What a sctp_test says that listens. Of each call it speaks before it makes that.
pub const SERVES: &str = "Server: Receiving packets";

fn sctp_test_one_to_many(ground: &Ground) {
    let repeats = ground.scaled(10).to_string();
    for case in ["0", "1", "4"] {
        sctp_test(ground, &[], &["-c", case, "-x", &repeats, "-o", "1"]);
    }
    sctp_test(
        ground,
        &[],
        &["-c", "6", "-m", "65515", "-r", "7", "-x", &repeats],
    );
}

fn sctp_test_one_to_one(ground: &Ground) {
    let repeats = ground.scaled(10).to_string();
    for case in ["2", "3", "5", "-1000"] {
        sctp_test(ground, &["-T"], &["-c", case, "-x", &repeats, "-o", "2"]);
    }
}

fn sctp_test_on_several_streams(ground: &Ground) {
    let repeats = ground.scaled(20).to_string();
    for order in ["0", "1", "3"] {
        let words = [
            "-M", "7", "-t", "1", "-r", "5", "-c", "4", "-x", &repeats, "-o", order,
        ];
        sctp_test(ground, &[], &words);
        sctp_test(ground, &["-T"], &words);
    }
}

/// Everything that the client sent is received, in as many messages.
fn sctp_test(ground: &Ground, style: &[&str], words: &[&str]) {
    let server = serve_sctp_test(ground, style);
    let sent = told_sent(&send_by_sctp_test(
        ground,
        style,
        ground.server_address(),
        PORT,
        words,
    ));
    assert!(sent.bytes > 0, "{words:?}");
    await_that(&server, "all messages", |said| {
        told_received(said).bytes >= sent.bytes
    });
    assert_eq!(told_received(&server.said()).bytes, sent.bytes, "{words:?}");
    ground.assert_carried(sent.bytes);
}

pub fn serve_sctp_test(ground: &Ground, style: &[&str]) -> Running {
    let words = [&["-H", ground.server_address(), "-P", PORT, "-l"], style].concat();
    ground.serve(ground.server("sctp_test", &words), SERVES)
}

/// One that sends, to this port of this host.
pub fn sctp_test_that_sends(
    ground: &Ground,
    style: &[&str],
    (to, port): (&str, &str),
    words: &[&str],
) -> Command {
    let from = ["-H", ground.client_address(), "-P", "5001"];
    let to = ["-h", to, "-p", port, "-s"];
    ground.client("sctp_test", &[&from[..], &to, style, words].concat())
}

fn send_by_sctp_test(
    ground: &Ground,
    style: &[&str],
    to: &str,
    port: &str,
    words: &[&str],
) -> String {
    let client = sctp_test_that_sends(ground, style, (to, port), words);
    ground.lab.run(client).text()
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Told {
    messages: usize,
    bytes: usize,
}

fn told_sent(said: &str) -> Told {
    told(said, |line| {
        line.split_once("sendmsg(sk=")?
            .1
            .split_once(')')?
            .1
            .trim()
            .strip_suffix(" bytes.")
    })
}

fn told_received(said: &str) -> Told {
    told(said, |line| {
        line.split_once("Data ")?
            .1
            .split_once(" bytes.")
            .map(|(number, _)| number)
    })
}

fn told(said: &str, number: impl Fn(&str) -> Option<&str>) -> Told {
    let sizes: Vec<usize> = said
        .lines()
        .filter_map(|line| number(line)?.trim().parse().ok())
        .collect();
    Told {
        messages: sizes.len(),
        bytes: sizes.iter().sum(),
    }
}

fn sctp_darn_one_to_many(ground: &Ground) {
    sctp_darn(ground, &[]);
}

fn sctp_darn_one_to_one(ground: &Ground) {
    sctp_darn(ground, &["-t"]);
}

fn sctp_darn(ground: &Ground, style: &[&str]) {
    let server = serve_sctp_darn(ground, style);
    let lines = "first\nsecond, and a longer one\nthird\n";
    run_typed(ground, lines, &[&["-s"], style].concat());
    for line in lines.lines() {
        await_said(&server, line);
    }
}

fn serve_sctp_darn(ground: &Ground, style: &[&str]) -> Running {
    let words = [&["-H", ground.server_address(), "-P", PORT, "-l"], style].concat();
    ground.serve(ground.server("sctp_darn", &words), "listening")
}

/// What sctp_darn says, with `lines` typed into it. Its status is what its last call gave.
fn run_typed(ground: &Ground, lines: &str, words: &[&str]) -> String {
    let file = ground.lab.path("typed");
    std::fs::write(&file, lines).expect("the lab's folder is writable");
    let mut own = vec!["-H", ground.client_address(), "-P", "5001"];
    own.extend(["-h", ground.server_address(), "-p", PORT]);
    let mut command = ground.client("sctp_darn", &[&own, words].concat());
    command.stdin(program::input(&file));
    let output = ground.lab.run(command);
    assert!(output.status.code().is_some(), "{output:?}");
    String::from_utf8_lossy(&output.out).into_owned()
}

/// Options and addresses of an association, by hand.
#[test]
fn sctp_darn_by_hand() {
    needs!("lksctp-tools");
    for ground in [Ground::shared_memory, Ground::udp] {
        let ground = ground();
        let server = serve_sctp_darn(&ground, &[]);
        let lines = "snd=10\nrcvbuf\nsndbuf\nnodelay=1\nnodelay\nmaxseg=1000\nmaxseg\nsnd=100\nheartbeat=127.0.0.1\nprimary\nsnd=2000\nshutdown\n";
        let said = run_typed(&ground, lines, &["-s", "-I"]);
        assert!(
            said.contains("nodelay is 1") && said.contains("maxseg is 1000"),
            "{said}"
        );
        await_said(&server, "SHUTDOWN_COMP");
        let told = server.said();
        for size in [10, 100, 2000] {
            assert!(told.contains(&format!("DATA({size})")), "{told}");
        }
    }
}

/// Ten endpoints of one process, looked at by select and by poll, one of which sends.
#[test]
fn sctp_darn_waits_for_many() {
    needs!("lksctp-tools");
    for wait in [&[][..], &["--use-poll"]] {
        let ground = Ground::shared_memory();
        let words = ["-H", "127.0.0.1", "-P", "4991", "-i", "10"];
        let server = ground.server("sctp_darn", &[&words, wait].concat());
        let server = ground.serve(server, "listening");
        run_typed(&ground, "one\ntwo\n", &["-s"]);
        await_said(&server, "two");
    }
}

#[test]
fn sctp_test_in_containers() {
    needs!(
        "lksctp-tools",
        "root",
        "containers",
        "iproute2",
        "nftables",
        "ethtool",
        "util-linux"
    );
    let ground = Ground::containers();
    sctp_test(&ground, &[], &["-c", "4", "-x", "5", "-o", "1"]);
    sctp_test(&ground, &["-T"], &["-c", "3", "-x", "5"]);
}

#[test]
fn sctp_test_straight_on_ip() {
    needs!(
        "lksctp-tools",
        "root",
        "iproute2",
        "nftables",
        "ethtool",
        "util-linux"
    );
    let ground = Ground::raw();
    sctp_test(&ground, &[], &["-c", "4", "-x", "5", "-o", "1"]);
    sctp_test(&ground, &["-T"], &["-c", "6", "-x", "5"]);
}

#[test]
fn sctp_test_sends_to_usrsctp() {
    needs!(
        "lksctp-tools",
        "root",
        "iproute2",
        "nftables",
        "ethtool",
        "util-linux",
        "libusrsctp-examples"
    );
    for (port, words) in [(None, &[][..]), (Some(9901), &["9901", "9899"])] {
        let all = (0..5).any(|_| usrsctp_receives_all(port, words));
        assert!(all, "something is missing each time");
    }
}

/// Has its program read all that was sent? What usrsctp has acknowledged, and its program not read when the association has ended, it
/// gives up.
fn usrsctp_receives_all(port: Option<u16>, words: &[&str]) -> bool {
    let ground = Ground::towards(port);
    let server = usrsctp(&ground.lab, "discard_server", words);
    let server = ground.serve(ground.there(server), "Main hash to bind");
    let words = ["-c", "4", "-x", "5", "-o", "1", "-M", "4"];
    let sent = told_sent(&send_by_sctp_test(&ground, &[], "10.0.0.2", "9", &words));
    let has_all = |said: &str| usrsctp_received(said) >= sent.bytes;
    // Nothing is shut down in order before all of it was acknowledged.
    let in_order = |said: &str| said.contains("handling SHUTDOWN-COMPLETE");
    await_that(&server, "all messages, nor an end in order", |said| {
        has_all(said) || in_order(said)
    });
    let until = Instant::now() + Duration::from_secs(1);
    while !has_all(&server.said()) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    let received = usrsctp_received(&server.said());
    assert!(received <= sent.bytes, "{received} of {}", sent.bytes);
    received == sent.bytes
}

fn usrsctp_received(said: &str) -> usize {
    let length = |line: &str| {
        let rest = line.split_once("Msg of length ")?.1;
        rest.split_once(' ')?.0.parse::<usize>().ok()
    };
    said.lines().filter_map(length).sum()
}

#[test]
fn usrsctp_sends_to_sctp_test() {
    needs!(
        "lksctp-tools",
        "root",
        "iproute2",
        "nftables",
        "ethtool",
        "util-linux",
        "libusrsctp-examples"
    );
    for (port, words) in [(None, &[][..]), (Some(9901), &["-E", "9901", "-U", "9899"])] {
        let ground = Ground::towards(port);
        for style in [&[][..], &["-T"]] {
            let server = serve_sctp_test(&ground, style);
            let load = ["-p", PORT, "-l", "3000", "-n", "200", "10.0.0.2"];
            ground
                .lab
                .run(usrsctp(&ground.lab, "tsctp", &[words, &load].concat()))
                .ok();
            await_that(&server, "all messages", |said| {
                told_received(said).messages >= 200
            });
            assert_eq!(
                told_received(&server.said()),
                Told {
                    messages: 200,
                    bytes: 600_000
                }
            );
        }
    }
}

#[test]
fn usrsctp_types_to_sctp_darn() {
    needs!(
        "lksctp-tools",
        "root",
        "iproute2",
        "nftables",
        "ethtool",
        "util-linux",
        "libusrsctp-examples"
    );
    let ground = Ground::towards(Some(9901));
    let server = serve_sctp_darn(&ground, &[]);
    let lines = ground.lab.path("lines");
    std::fs::write(&lines, "first\nsecond\nthird\n").expect("the lab's folder is writable");
    let words = ["10.0.0.2", PORT, "5002", "9901", "9899"];
    let mut client = usrsctp(&ground.lab, "client", &words);
    client.stdin(program::input(&lines));
    ground.lab.run(client).ok();
    await_said(&server, "third");
}
