//! What a server keeps of clients that were killed: nothing.

use std::time::Instant;

use headwater_e2e::{Lab, Mode, PATIENCE, lab, network};
use headwater_testkit::needs;

const PYTHON: &str = "/usr/bin/python3";

/// Descriptors, and mapped segments.
fn holds(pid: u32) -> (usize, usize) {
    let fds = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs");
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("it runs");
    let segments = maps.lines().filter(|l| l.contains("memfd:headwater"));
    (fds.count(), segments.count())
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "not within the bound: {what}");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[test]
fn a_server_that_only_waits_gives_up_what_it_shared_with_the_dead() {
    needs!("python3");
    let lab = Lab::new(Mode::Accelerated);
    let port = network::free_port();
    let command = |role: &str| {
        let mut c = lab.command(PYTHON);
        c.arg(lab::source("py/dead_peers.py"))
            .arg(role)
            .arg(port.to_string());
        c
    };
    let server = lab.serve(command("serve"), port);
    let (fds, mapped) = holds(server.pid());
    for _ in 0..3 {
        let crowd = lab.start(command("crowd"));
        until("the crowd is served", || crowd.said().contains("ready"));
        let (most_fds, segments) = holds(server.pid());
        assert!(most_fds > fds + 100 && segments >= mapped + 50, "carried");
        drop(crowd);
        // One descriptor for the process's place on the board.
        until("nothing is left", || {
            let (now, segments) = holds(server.pid());
            now <= fds + 1 && segments <= mapped
        });
    }
    drop(server);
}
