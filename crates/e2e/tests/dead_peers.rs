//! What a server keeps of clients that were killed: nothing.

use std::time::Instant;

use headwater_e2e::census::Holds;
use headwater_e2e::{Lab, Mode, PATIENCE, lab, network};
use headwater_testkit::needs;

const PYTHON: &str = "/usr/bin/python3";

fn holds(pid: u32) -> Holds {
    Holds::of(pid).expect("it runs")
}

/// The bound is for what hangs. How soon the dead are looked for, within a second, is not measured: on a busy machine
/// that would fail without a reason.
fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    eprintln!("{what}: after {} ms", begun.elapsed().as_millis());
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
    let before = holds(server.pid());
    for _ in 0..3 {
        let crowd = lab.start(command("crowd"));
        until("the crowd is served", || crowd.said().contains("ready"));
        let most = holds(server.pid());
        assert!(
            most.descriptors > before.descriptors + 100 && most.segments > before.segments + 40,
            "carried"
        );
        drop(crowd);
        // One descriptor for the process's place on the board.
        until("nothing is left", || {
            let now = holds(server.pid());
            now.descriptors <= before.descriptors + 1 && now.segments <= before.segments
        });
    }
    drop(server);
}
