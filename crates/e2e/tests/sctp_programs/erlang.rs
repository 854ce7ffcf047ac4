//! Erlang's gen_sctp, whose machine waits in its own ways, and never blocks.

use std::process::Command;

use headwater_e2e::{lab, program::Output};
use headwater_testkit::needs;

use crate::ground::Ground;
use crate::sctp_peers::{serve_usrsctp, usrsctp};

everywhere! {
    ["erlang-base"]
    passive
    active
    peeled_off
    given_up
}

const SCRIPT: &str = "erl/gen_sctp_talk.escript";
const PORT: &str = "6000";

fn passive(ground: &Ground) {
    talk(ground, "passive", &["eof", "close"]);
}

fn active(ground: &Ground) {
    talk(ground, "active", &["eof", "close"]);
}

fn peeled_off(ground: &Ground) {
    let said = talk(ground, "passive", &["peel_off", "eof"]);
    assert!(said.contains("peeled off"), "{said}");
    talk(ground, "active", &["peel_off"]);
}

fn given_up(ground: &Ground) {
    let said = talk(ground, "passive", &["abort"]);
    assert!(said.contains("lost"), "{said}");
}

/// One server; callers, one after the other, end in these ways. What the server said.
fn talk(ground: &Ground, mode: &str, ways: &[&str]) -> String {
    let callers = ways.len().to_string();
    let words = ["serve", ground.server_address(), PORT, mode, &callers];
    let server = ground.serve(erlang(ground.server("escript", &script(&words))), "ready");
    let rounds = ground.scaled(100).to_string();
    let to = format!("{}:{PORT}", ground.server_address());
    let mut bytes = 0;
    for (port, way) in ["6001", "6002"].iter().zip(ways) {
        let words = ["call", ground.client_address(), port, &to, &rounds, way];
        let caller = erlang(ground.client("escript", &script(&words)));
        bytes += told(ground.lab.run(caller), "bytes ");
    }
    let said = server.finish().text();
    assert!(said.contains("up 8 8"), "{said}");
    ground.assert_carried(bytes);
    said
}

fn script(words: &[&str]) -> Vec<String> {
    let script = lab::source(SCRIPT).display().to_string();
    [script]
        .into_iter()
        .chain(words.iter().map(|word| word.to_string()))
        .collect()
}

/// Few threads, which end soon.
fn erlang(mut command: Command) -> Command {
    command
        .env("ERL_FLAGS", "+S 1:1 +A 1 +sbwt none")
        .env("HOME", "/tmp");
    command
}

fn told(output: Output, before: &str) -> usize {
    let text = output.text();
    let number = text.split_once(before).map(|(_, rest)| rest.trim());
    number
        .and_then(|number| number.parse().ok())
        .unwrap_or_else(|| panic!("{text}"))
}

/// The caller's process is gone, and with it who would answer a SHUTDOWN ACK again.
#[test]
fn the_last_word_is_lost() {
    needs!("erlang-base", "root", "iproute2", "nftables", "ethtool");
    const SHUTDOWN_COMPLETE: u8 = 14;
    talk(&Ground::without(SHUTDOWN_COMPLETE), "passive", &["eof"]);
}

#[test]
fn usrsctp_echoes() {
    needs!(
        "erlang-base",
        "root",
        "iproute2",
        "nftables",
        "ethtool",
        "util-linux",
        "libusrsctp-examples"
    );
    for (port, words) in [(None, &[][..]), (Some(9901), &["9901", "9899"])] {
        let ground = Ground::towards(port);
        let server = usrsctp(&ground.lab, "echo_server", words);
        let _server = serve_usrsctp(&ground.lab, ground.there(server));
        let words = script(&["call_usrsctp", "10.0.0.1", "10.0.0.2", "7"]);
        let output = ground.lab.run(erlang(ground.client("escript", &words)));
        assert_eq!(told(output, "echoed "), 40);
    }
}
