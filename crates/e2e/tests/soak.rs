//! Thousands of connections between the same and between ever new processes leave nothing behind.

use std::time::{Duration, Instant};

use headwater_e2e::census::{self, Holds};
use headwater_e2e::{Lab, PATIENCE, Running, accelerated, compile, native, network};

fn command(lab: &Lab, args: &[u32]) -> std::process::Command {
    let mut c = lab.command(compile::program("soak", &[]));
    c.arg(if args.len() == 1 { "server" } else { "client" });
    c.args(args.iter().map(|n| n.to_string()));
    c
}

fn start(lab: &Lab) -> (u32, Running) {
    let port = network::free_port();
    (port as u32, lab.serve(command(lab, &[port as u32]), port))
}

/// The numbers of a line "WHEN descriptors A B segments C D".
fn numbers(said: &str, when: &str) -> [usize; 4] {
    let line = said
        .lines()
        .find(|l| l.starts_with(when))
        .unwrap_or_else(|| panic!("{said}"));
    let numbers: Vec<usize> = line.split(' ').filter_map(|w| w.parse().ok()).collect();
    numbers.try_into().unwrap()
}

fn open_descriptors(pid: u32) -> u64 {
    Holds::of(pid).expect("it runs").descriptors
}

#[test]
fn ten_thousand_connections_and_two_hundred_at_once() {
    let work = |lab: &Lab| {
        let (port, server) = start(lab);
        let said = lab
            .run(command(lab, &[port, 0, 10_000, 200, server.pid()]))
            .text();
        server.stop(libc::SIGTERM).ok();
        said
    };
    native(work);
    let (lab, said) = accelerated(work);
    let (half, end, after) = (
        numbers(&said, "half"),
        numbers(&said, "end"),
        numbers(&said, "after"),
    );
    for (half, end) in half.into_iter().zip(end) {
        assert!(
            end <= half + 6,
            "grows with the number of connections: {said}"
        );
    }
    // What is kept for later connections is no more than what the first crowd needed, and most of that is given up.
    let (crowd, crowds) = (numbers(&said, "crowd "), numbers(&said, "crowds"));
    for (crowd, crowds) in crowd.into_iter().zip(crowds) {
        assert!(crowds <= crowd + 20, "grows with each crowd: {said}");
    }
    assert!(after[0] < 180 && after[1] < 180, "{said}");
    let (_, folder) = census::files(&lab.path("run"));
    assert!(folder < 64 << 20, "{folder} bytes in the runtime folder");
    let lines = lab.lines();
    let carried: u64 = lines.iter().map(|l| l.accelerated).min().unwrap();
    assert!(carried > 4000, "{}", lab.lines_text());
}

/// Serves new clients until what the server keeps of earlier ones is as little as after a few.
fn settles(lab: &Lab, port: u32, server: u32) {
    let begun = Instant::now();
    while open_descriptors(server) > 40 {
        let open = open_descriptors(server);
        assert!(
            begun.elapsed() < PATIENCE,
            "the server keeps {open} descriptors"
        );
        lab.run(command(lab, &[port, 0, 20, 0, server])).ok();
        std::thread::sleep(Duration::from_millis(250));
    }
}

#[test]
fn ever_new_processes() {
    let work = |lab: &Lab| {
        let (port, server) = start(lab);
        for i in 0..150 {
            lab.run(command(lab, &[port, i * 7, 20, 0, server.pid()]))
                .ok();
        }
        settles(lab, port, server.pid());
        server.stop(libc::SIGTERM).ok();
    };
    native(work);
    let (lab, ()) = accelerated(work);
    assert!(
        lab.lines().iter().filter(|l| l.accelerated > 5).count() > 100,
        "{}",
        lab.lines_text()
    );
}

#[test]
fn many_processes_at_once() {
    let work = |lab: &Lab| {
        let (port, server) = start(lab);
        let clients: Vec<Running> = (0..12)
            .map(|i| lab.start(command(lab, &[port, i * 1000, 300, 5, server.pid()])))
            .collect();
        for client in clients {
            client.finish().ok();
        }
        server.stop(libc::SIGTERM).ok();
    };
    native(work);
    let (lab, ()) = accelerated(work);
    assert!(
        lab.lines().iter().all(|l| l.accelerated > 50),
        "{}",
        lab.lines_text()
    );
}

/// Clients that are killed at any moment leave the server in order.
#[test]
fn killed_clients() {
    let (lab, ()) = accelerated(|lab| {
        let (port, server) = start(lab);
        for i in 0..100u32 {
            let mut client = lab.start(command(lab, &[port, i * 100, 1_000_000, 0, server.pid()]));
            let moment = std::time::Duration::from_millis((i * 7 % 40) as u64);
            std::thread::sleep(moment);
            client.signal(libc::SIGKILL);
            client.wait_within(PATIENCE);
        }
        settles(lab, port, server.pid());
        server.stop(libc::SIGTERM).ok();
    });
    assert!(lab.lines().iter().any(|l| l.accelerated > 0));
}
