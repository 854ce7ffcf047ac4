//! iperf3 --sctp: its control connection goes by TCP, its data by SCTP.

use serde_json::Value;

use headwater_e2e::Running;
use headwater_testkit::needs;

use crate::ground::Ground;

everywhere! {
    ["iperf3", "libsctp-dev"]
    one_stream
    eight_associations
    eight_streams
    backwards
    several_sizes
}

pub const PORT: &str = "5201";
const MEGABYTE: usize = 1 << 20;

fn one_stream(ground: &Ground) {
    transfer(ground, 100, &["-l", "64K"]);
}

fn eight_associations(ground: &Ground) {
    transfer(ground, 100, &["-P", "8"]);
}

fn eight_streams(ground: &Ground) {
    transfer(ground, 100, &["--nstreams", "8", "-l", "16K"]);
}

fn backwards(ground: &Ground) {
    transfer(ground, 100, &["-R"]);
    transfer(ground, 50, &["-R", "-P", "8", "--nstreams", "8"]);
}

fn several_sizes(ground: &Ground) {
    for size in ["100", "1K", "128K"] {
        transfer(ground, 5, &["-l", size, "-N"]);
    }
}

/// Sends so many megabytes. The server closes its books when the client says by TCP that it has sent all, so that what is then on
/// its way is not counted.
fn transfer(ground: &Ground, megabytes: usize, words: &[&str]) {
    let server = serve(ground, &["-1"]);
    let bytes = ground.scaled(megabytes) * MEGABYTE;
    let report = client(ground, &[words, &["-n", &bytes.to_string()]].concat());
    let report: Value = serde_json::from_slice(&ground.lab.run(report).ok()).expect("JSON");
    server.finish().ok();
    let end = |name: &str| report["end"][name]["bytes"].as_u64().unwrap_or(0) as usize;
    let (sent, received) = (end("sum_sent"), end("sum_received"));
    // Both ends' buffers, several associations' of which may be on their way.
    let held = 32 * MEGABYTE;
    assert!(sent >= bytes, "{sent} of {bytes}: {report}");
    assert!(received + held >= sent, "{received} of {sent}: {report}");
    ground.assert_carried(received);
}

pub fn serve(ground: &Ground, words: &[&str]) -> Running {
    let own = ["-s", "-p", PORT, "--forceflush"];
    ground.serve(
        ground.server("iperf3", &[&own, words].concat()),
        "Server listening",
    )
}

pub fn client(ground: &Ground, words: &[&str]) -> std::process::Command {
    let own = ["-c", ground.server_address(), "-p", PORT, "--sctp", "-J"];
    // Version 3.12 takes the number of streams for a bit rate as well.
    let unbound = ["-b", "0"];
    ground.client("iperf3", &[&own, words, &unbound].concat())
}

#[test]
fn in_containers() {
    needs!(
        "iperf3",
        "libsctp-dev",
        "root",
        "containers",
        "iproute2",
        "nftables",
        "ethtool",
        "util-linux"
    );
    let ground = Ground::containers();
    transfer(&ground, 20, &[]);
    transfer(&ground, 20, &["-R", "-P", "2"]);
}

#[test]
fn straight_on_ip() {
    needs!(
        "iperf3",
        "libsctp-dev",
        "root",
        "iproute2",
        "nftables",
        "ethtool",
        "util-linux"
    );
    let ground = Ground::raw();
    transfer(&ground, 20, &["-P", "2", "--nstreams", "4"]);
}

#[test]
fn bound_to_addresses() {
    needs!("iperf3", "libsctp-dev");
    let ground = Ground::shared_memory();
    let server = serve(&ground, &["-1"]);
    let words = ["-X", "127.0.0.1", "-X", "127.0.0.2", "-n", "10M"];
    ground.lab.run(client(&ground, &words)).ok();
    server.finish().ok();
}
