//! What a carried connection takes more than one over TCP, of both ends together, as docs/sockets.md says.

use std::time::Instant;

use headwater_e2e::census::Holds;
use headwater_e2e::{Lab, PATIENCE, Running, accelerated, compile, native, network};

const COUNT: u64 = 100;
/// KiB for each connection: that has exchanged little and waits; through which much went both ways.
const IDLE: u64 = 48;
const BUSY: u64 = 576;
/// KiB for a pair of processes whose connections have ended.
const CLOSED: u64 = 32 << 10;
/// KiB for each process, with one connection. Mostly relocated data, of which a build without optimisation has more.
const PROCESS: u64 = 640;
/// Descriptors for each connection, of both ends.
const DESCRIPTORS: u64 = 6;

fn await_stage(client: &Running, name: &str) {
    let begun = Instant::now();
    let line = format!("{name}\n");
    while !client.said().contains(&line) {
        assert!(
            client.alive() && begun.elapsed() < PATIENCE,
            "{}",
            client.said()
        );
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// What server and client hold together when the client waits in each of the stages.
fn stages(lab: &Lab) -> [Holds; 4] {
    let port = network::free_port();
    let mut c = lab.command(compile::program("soak", &[]));
    c.args(["server", &port.to_string()]);
    let server = lab.serve(c, port);
    let mut c = lab.command(compile::program("crowd", &[]));
    c.args([port.to_string(), COUNT.to_string()]);
    let client = lab.start(c);
    let both = || {
        let [server, client] = [&server, &client].map(|p| Holds::of(p.pid()).expect("it runs"));
        server.plus(client)
    };
    let mut start = Holds::default();
    let stages = ["start", "idle", "busy", "closed"].map(|name| {
        await_stage(&client, name);
        let (begun, mut seen) = (Instant::now(), both());
        // It takes a second or two until what was kept is given up.
        while name == "closed" && seen.memory > start.memory + CLOSED && begun.elapsed() < PATIENCE
        {
            std::thread::sleep(std::time::Duration::from_millis(20));
            seen = both();
        }
        if name == "start" {
            start = seen;
        }
        client.signal(libc::SIGUSR1);
        seen
    });
    client.finish().ok();
    server.stop(libc::SIGTERM).ok();
    stages
}

#[test]
fn what_a_connection_takes_has_bounds() {
    let (_, tcp) = native(stages);
    let (lab, carried) = accelerated(stages);
    // More than in the first stage, and more than natively.
    let more = |stage: usize, what: fn(&Holds) -> u64| {
        let grown = |seen: &[Holds; 4]| what(&seen[stage]).saturating_sub(what(&seen[0]));
        grown(&carried).saturating_sub(grown(&tcp))
    };
    let [idle, busy, closed] = [1, 2, 3].map(|stage| more(stage, |h| h.memory));
    let processes = carried[0].memory.saturating_sub(tcp[0].memory);
    let descriptors = more(1, |h| h.descriptors);
    println!(
        "more than by TCP: {processes} KiB for both processes; for each of {COUNT} connections {} KiB idle, {} KiB busy, {:.2} \
         descriptors at both ends; {closed} KiB when they are closed",
        idle / COUNT,
        busy / COUNT,
        descriptors as f64 / COUNT as f64,
    );
    let counted = lab.lines().iter().all(|l| l.accelerated > COUNT);
    assert!(counted, "{}", lab.lines_text());
    assert!(processes <= 2 * PROCESS, "{processes} KiB");
    assert!(idle <= COUNT * IDLE, "{idle} KiB idle");
    assert!(busy <= COUNT * BUSY, "{busy} KiB busy");
    assert!(closed <= CLOSED, "{closed} KiB closed");
    assert!(descriptors <= COUNT * DESCRIPTORS, "{descriptors}");
}
