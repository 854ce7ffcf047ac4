//! SCTP between our engine and other people's stacks: over UDP encapsulation, with loss, over several paths; every capture is
//! read by an independent dissector.

mod sctp_peers;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use headwater_e2e::{Lab, PATIENCE, Running, network, program};
use headwater_testkit::needs;
use headwater_testkit::network::inside;
use sctp_peers::capture::{Capture, NOTHING, RETRANSMISSIONS, SLOW_READER};
use sctp_peers::{
    Tally, await_ready, counted, ours, pion, serve_udp, serve_usrsctp, stack, tally, usrsctp, wire,
};

const OUR_UDP: u16 = 9900;
const THEIR_UDP: u16 = 9901;

#[test]
fn usrsctp_discards_what_we_send() {
    needs!("tshark", "namespaces", "libusrsctp-examples");
    inside("usrsctp_discards_what_we_send", || {
        assert!((0..5).any(|_| usrsctp_has_discarded_all()), "{GIVEN_UP}");
    });
}

/// The engine alone, from port 5000 of this host to that of a peer.
fn ours_towards(lab: &Lab, to: &str, words: &[&str]) -> Command {
    let from = ["--udp", "127.0.0.1:9900", "--port", "5000", "--to", to];
    ours(lab, &[&from[..], words].concat())
}

/// What usrsctp has acknowledged, and its program not read when the association has ended, it gives up.
const GIVEN_UP: &str = "usrsctp's program has not read something each time";

fn usrsctp_has_discarded_all() -> bool {
    let lab = sctp_peers::lab();
    let capture = Capture::start(&lab, "lo", &[OUR_UDP]);
    let server = serve_usrsctp(&lab, usrsctp(&lab, "discard_server", &["9901", "9900"]));
    let words = ["--streams", "5", "source", "500", "3000"];
    let client = ours_towards(&lab, "127.0.0.1:9901/9", &words);
    assert_eq!(tally(lab.run(client)), Tally::sent(500, 3000));
    let all = usrsctp_has_read(&server, 3000, 500);
    capture.judge(&lab, &NOTHING);
    all
}

/// Has usrsctp's example read `count` messages of this length, or does it within a second? More is a fault.
fn usrsctp_has_read(server: &Running, length: usize, count: u64) -> bool {
    let line = format!("Msg of length {length} received");
    let read = || server.said().matches(&line).count() as u64;
    let begun = Instant::now();
    while read() < count && begun.elapsed() < Duration::from_secs(1) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let read = read();
    assert!(read <= count, "{read} of {count}");
    read == count
}

#[test]
fn usrsctp_echoes_what_we_send() {
    needs!("tshark", "namespaces", "libusrsctp-examples");
    inside("usrsctp_echoes_what_we_send", || {
        let lab = sctp_peers::lab();
        let capture = Capture::start(&lab, "lo", &[OUR_UDP]);
        let _server = serve_usrsctp(&lab, usrsctp(&lab, "echo_server", &["9901", "9900"]));
        for (count, size) in [("200", 1), ("200", 3000), ("20", 10_000)] {
            let size_text = size.to_string();
            let words = ["ping", count, &size_text];
            let client = ours_towards(&lab, "127.0.0.1:9901/7", &words);
            assert_eq!(
                tally(lab.run(client)),
                Tally::both(count.parse().expect("a number"), size)
            );
        }
        capture.judge(&lab, &NOTHING);
    });
}

#[test]
fn usrsctp_sends_to_us() {
    needs!("tshark", "namespaces", "libusrsctp-examples");
    inside("usrsctp_sends_to_us", || {
        let lab = sctp_peers::lab();
        let capture = Capture::start(&lab, "lo", &[OUR_UDP]);
        for (count, size) in [("2000", 100), ("500", 5000)] {
            let server = serve_udp(
                &lab,
                ours(
                    &lab,
                    &["--udp", "127.0.0.1:9900", "--port", "5001", "discard"],
                ),
                OUR_UDP,
            );
            let size_text = size.to_string();
            let words = [
                "-E",
                "9901",
                "-U",
                "9900",
                "-p",
                "5001",
                "-l",
                &size_text,
                "-n",
                count,
                "127.0.0.1",
            ];
            lab.run(usrsctp(&lab, "tsctp", &words)).ok();
            assert_eq!(
                tally(server.finish()),
                Tally::received(count.parse().expect("a number"), size)
            );
        }
        capture.judge(&lab, &NOTHING);
    });
}

#[test]
fn usrsctp_talks_to_our_echo() {
    needs!("libusrsctp-examples");
    let lab = sctp_peers::lab();
    let lines = lab.path("lines");
    std::fs::write(&lines, "first\nsecond\nthird\n").expect("the lab's folder is writable");
    let server = serve_udp(
        &lab,
        ours(&lab, &["--udp", "127.0.0.1:9900", "--port", "7", "echo"]),
        OUR_UDP,
    );
    let mut client = usrsctp(&lab, "client", &["127.0.0.1", "7", "5002", "9901", "9900"]);
    client.stdin(program::input(&lines));
    lab.run(client).ok();
    let tally = tally(server.finish());
    assert_eq!(tally.received_bytes, 19, "{tally:?}");
}

#[test]
fn pion_echoes_what_we_send() {
    needs!("tshark", "namespaces", "go");
    sctp_peers::compiled_pion();
    inside("pion_echoes_what_we_send", || {
        let lab = sctp_peers::lab();
        let capture = Capture::start(&lab, "lo", &[OUR_UDP]);
        let server = serve_udp(
            &lab,
            pion(&lab, &["-listen", "127.0.0.1:9901", "-mode", "echo"]),
            THEIR_UDP,
        );
        let client = ours(
            &lab,
            &[
                "--udp",
                "127.0.0.1:9900",
                "--to",
                "127.0.0.1:9901/5000",
                "--streams",
                "3",
                "ping",
                "300",
                "4000",
            ],
        );
        assert_eq!(tally(lab.run(client)), Tally::both(300, 4000));
        assert!(
            server
                .finish()
                .text()
                .contains("received 300 messages 1200000 bytes")
        );
        capture.judge(&lab, &NOTHING);
    });
}

#[test]
fn pion_talks_to_our_echo() {
    needs!("tshark", "namespaces", "go");
    sctp_peers::compiled_pion();
    inside("pion_talks_to_our_echo", || {
        let lab = sctp_peers::lab();
        let capture = Capture::start(&lab, "lo", &[OUR_UDP]);
        let server = serve_udp(
            &lab,
            ours(&lab, &["--udp", "127.0.0.1:9900", "echo"]),
            OUR_UDP,
        );
        let words = [
            "-local",
            "127.0.0.1:9901",
            "-to",
            "127.0.0.1:9900",
            "-mode",
            "ping",
            "-streams",
            "3",
            "-count",
            "300",
            "-size",
            "4000",
        ];
        assert!(
            lab.run(pion(&lab, &words))
                .text()
                .contains("received 300 messages 1200000 bytes")
        );
        assert_eq!(tally(server.finish()), Tally::both(300, 4000));
        capture.judge(&lab, &NOTHING);
    });
}

/// Packets written by hand, and ours taken apart by somebody else's eyes.
#[test]
fn scapy_speaks_with_us_packet_by_packet() {
    needs!("root", "python3-scapy");
    let lab = sctp_peers::lab();
    let _server = serve_udp(
        &lab,
        ours(
            &lab,
            &["--udp", "127.0.0.1:9900", "--port", "7", "--stay", "echo"],
        ),
        OUR_UDP,
    );
    let mut command = lab.plain("/usr/bin/python3");
    command
        .arg(headwater_e2e::lab::source("peers/sctp_by_hand.py"))
        .args(["127.0.0.1", "9900", "7"]);
    lab.run(command).ok();
}

#[test]
fn one_percent_of_loss_costs_time_only() {
    needs!(
        "root",
        "iproute2",
        "nftables",
        "ethtool",
        "util-linux",
        "tshark"
    );
    let lab = sctp_peers::lab();
    let far = wire::wires(&lab, 1);
    let capture = Capture::start(&lab, "near0", &[OUR_UDP]);
    wire::lose(&lab, 10);
    far.lose(&lab, 10);
    let server = lab.start(far.command(
        &lab,
        &ours(&lab, &["--udp", "10.0.0.2:9901", "--port", "7", "echo"]),
    ));
    let client = ours(
        &lab,
        &[
            "--udp",
            "10.0.0.1:9900",
            "--to",
            "10.0.0.2:9901/7",
            "--streams",
            "4",
            // The server may have to ask again whether it is over.
            "--linger",
            "4000",
            "ping",
            "500",
            "3000",
        ],
    );
    assert_eq!(tally(lab.run(client)), Tally::both(500, 3000));
    assert_eq!(tally(server.finish()), Tally::both(500, 3000));
    capture.judge(&lab, &RETRANSMISSIONS);
}

#[test]
fn usrsctp_and_we_get_through_loss() {
    needs!(
        "root",
        "iproute2",
        "nftables",
        "ethtool",
        "util-linux",
        "tshark",
        "libusrsctp-examples"
    );
    let lab = sctp_peers::lab();
    let far = wire::wires(&lab, 1);
    let capture = Capture::start(&lab, "near0", &[OUR_UDP]);
    wire::lose(&lab, 10);
    far.lose(&lab, 10);
    let _server = serve_usrsctp(
        &lab,
        far.command(&lab, &usrsctp(&lab, "echo_server", &["9901", "9900"])),
    );
    let client = ours(
        &lab,
        &[
            "--udp",
            "10.0.0.1:9900",
            "--to",
            "10.0.0.2:9901/7",
            "ping",
            "200",
            "3000",
        ],
    );
    assert_eq!(tally(lab.run(client)), Tally::both(200, 3000));
    capture.judge(&lab, &RETRANSMISSIONS);
}

/// Two wires, one is cut while data flows both ways; nothing is lost.
#[test]
fn a_cut_path_loses_nothing() {
    needs!("root", "iproute2", "nftables", "ethtool", "util-linux");
    let lab = sctp_peers::lab();
    let far = wire::wires(&lab, 2);
    let server = ours(
        &lab,
        &[
            "--udp",
            "0.0.0.0:9901",
            "--address",
            "10.0.0.2",
            "--address",
            "10.1.0.2",
            "--quick",
            "--port",
            "7",
            "echo",
        ],
    );
    let server = lab.start(far.command(&lab, &server));
    let client = ours(
        &lab,
        &[
            "--udp",
            "0.0.0.0:9900",
            "--address",
            "10.0.0.1",
            "--address",
            "10.1.0.1",
            "--quick",
            "--to",
            "10.0.0.2:9901/7",
            // The server may have to ask again whether it is over.
            "--linger",
            "4000",
            "--pace",
            "2",
            "ping",
            "2000",
            "1000",
        ],
    );
    let mut client = client;
    client.stdin(Stdio::null());
    let client = lab.start(client);
    let begun = Instant::now();
    while network::packets_received("near0") < 700 {
        let waits = client.alive() && begun.elapsed() < PATIENCE;
        assert!(waits, "little comes by the first wire: {}", client.said());
        std::thread::sleep(Duration::from_millis(5));
    }
    let by_second = network::packets_received("near1");
    wire::sh(&lab, "ip link set near0 down");
    assert!(client.alive(), "{:?}", client.finish());
    assert_eq!(tally(client.finish()), Tally::both(2000, 1000));
    assert_eq!(tally(server.finish()), Tally::both(2000, 1000));
    let by_second = network::packets_received("near1") - by_second;
    assert!(by_second > 100, "{by_second} packets by the second wire");
}

/// The whole stack, straight on IP and encapsulated, to usrsctp on another host.
#[test]
fn our_stack_sends_to_usrsctp_by_both_links() {
    needs!(
        "root",
        "iproute2",
        "nftables",
        "ethtool",
        "util-linux",
        "tshark",
        "libusrsctp-examples"
    );
    for (link, words) in [("raw", &[][..]), ("udp:9901", &["9901", "9899"])] {
        let all = (0..5).any(|_| our_stack_has_sent_all_to_usrsctp(link, words));
        assert!(all, "by {link}: {GIVEN_UP}");
    }
}

fn our_stack_has_sent_all_to_usrsctp(link: &str, words: &[&str]) -> bool {
    let lab = sctp_peers::lab();
    let far = wire::wires(&lab, 1);
    let capture = Capture::start(&lab, "near0", &[9899]);
    let server = lab.start(far.command(&lab, &usrsctp(&lab, "discard_server", words)));
    // It has no port that /proc would show.
    let begun = Instant::now();
    while !server.said().contains("Main hash to bind") {
        assert!(begun.elapsed() < PATIENCE, "usrsctp does not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    let drive = [
        "drive",
        "--at",
        "10.0.0.2",
        "--port",
        "9",
        "--size",
        "1234",
        "--seconds",
        "0.2",
    ];
    let sent = counted(lab.run(stack(&lab, link, &drive)), "all_messages");
    assert!(sent > 0);
    let all = usrsctp_has_read(&server, 1234, sent);
    capture.judge(&lab, &SLOW_READER);
    all
}

#[test]
fn usrsctp_sends_to_our_stack_by_both_links() {
    needs!(
        "root",
        "iproute2",
        "nftables",
        "ethtool",
        "util-linux",
        "tshark",
        "libusrsctp-examples"
    );
    for (link, words) in [
        ("raw", &[][..]),
        ("udp:9901", &["-E", "9901", "-U", "9899"]),
    ] {
        let lab = sctp_peers::lab();
        let far = wire::wires(&lab, 1);
        let capture = Capture::start(&lab, "near0", &[9899]);
        let server =
            lab.start(far.command(&lab, &stack(&lab, link, &["serve", "--at", "10.0.0.2"])));
        await_ready(&server);
        let mut words = words.to_vec();
        words.extend(["-p", "5001", "-l", "3000", "-n", "500", "10.0.0.2"]);
        lab.run(usrsctp(&lab, "tsctp", &words)).ok();
        assert_eq!(counted(server.finish(), "messages"), 500, "by {link}");
        capture.judge(&lab, &NOTHING);
    }
}
