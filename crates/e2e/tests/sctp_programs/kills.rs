//! A side that is killed: the other one ends, ports are free again, and no name is left.

use std::time::{Duration, Instant};

use headwater_e2e::{PATIENCE, Running};
use headwater_testkit::needs;

use crate::ground::{Ground, await_said, await_that};
use crate::{iperf, lksctp};

#[test]
fn a_killed_iperf_client_leaves_its_server_at_work() {
    needs!("iperf3");
    for ground in [Ground::shared_memory, Ground::udp] {
        let ground = ground();
        let server = iperf::serve(&ground, &[]);
        for round in 1..=3 {
            let client = ground.lab.start(iperf::client(&ground, &["-t", "60"]));
            await_times(&server, "connected to", round);
            std::thread::sleep(Duration::from_millis(300));
            killed(client);
            await_times(&server, "Server listening", round + 1);
        }
        ground.lab.run(iperf::client(&ground, &["-n", "10M"])).ok();
        killed(server);
        assert_nothing_left();
    }
}

#[test]
fn a_killed_iperf_server_ends_its_client() {
    needs!("iperf3");
    for ground in [Ground::shared_memory, Ground::udp] {
        let ground = ground();
        for _ in 0..2 {
            let server = iperf::serve(&ground, &[]);
            let client = ground.lab.start(iperf::client(&ground, &["-t", "60"]));
            await_said(&server, "connected to");
            std::thread::sleep(Duration::from_millis(300));
            killed(server);
            client.finish();
        }
        assert_nothing_left();
    }
}

#[test]
fn a_killed_sctp_test_leaves_its_port() {
    needs!("lksctp-tools");
    for ground in [Ground::shared_memory, Ground::udp] {
        let ground = ground();
        for style in [&[][..], &["-T"]] {
            for _ in 0..2 {
                let server = lksctp::serve_sctp_test(&ground, style);
                let load = ["-x", "100000", "-c", "4"];
                let to = (ground.server_address(), lksctp::PORT);
                let client = lksctp::sctp_test_that_sends(&ground, style, to, &load);
                let client = ground.lab.start(client);
                await_said(&server, "Data 10000 bytes");
                killed(server);
                // It may end by an error, or see the loss of its peer and call again, in vain.
                killed(client);
            }
        }
        assert_nothing_left();
    }
}

/// A client of one-to-one style sees the end of a server that is killed: at once in shared memory. By packets, silence ends it as late as
/// its retransmissions say.
#[test]
fn a_killed_server_ends_a_client_of_one_to_one_style() {
    needs!("lksctp-tools");
    let ground = Ground::shared_memory();
    let server = lksctp::serve_sctp_test(&ground, &["-T"]);
    let load = ["-x", "1000000", "-c", "5"];
    let to = (ground.server_address(), lksctp::PORT);
    let client = lksctp::sctp_test_that_sends(&ground, &["-T"], to, &load);
    let client = ground.lab.start(client);
    await_said(&server, "Data 32768 bytes");
    killed(server);
    assert!(client.finish().status.code().is_some_and(|code| code != 0));
    assert_nothing_left();
}

fn killed(program: Running) {
    program.stop(libc::SIGKILL);
}

/// Waits until a server has said something so many times.
fn await_times(server: &Running, what: &str, times: usize) {
    await_that(server, what, |said| said.matches(what).count() >= times);
}

/// The network of this test has no abstract name any more, and nobody holds a port.
fn assert_nothing_left() {
    let begun = Instant::now();
    loop {
        let left = left();
        if left.is_empty() {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "left: {left:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn left() -> Vec<String> {
    let read = |table| std::fs::read_to_string(format!("/proc/thread-self/net/{table}"));
    let names = read("unix").unwrap_or_default();
    let names = names.lines().filter(|line| line.contains(" @"));
    let ports = ["udp", "udp6", "raw", "raw6"].map(|table| read(table).unwrap_or_default());
    let ports = ports.iter().flat_map(|text| text.lines().skip(1));
    names.chain(ports).map(str::to_string).collect()
}
