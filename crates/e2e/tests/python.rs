//! Python's ways of serving and of asking, each server style against several client styles.

use headwater_e2e::{Lab, both, lab, network};
use headwater_testkit::needs;

const PYTHON: &str = "/usr/bin/python3";

fn talk(lab: &Lab, server: &str, clients: &[&str]) -> Vec<String> {
    let port = network::free_port();
    let mut c = lab.command(PYTHON);
    c.arg(lab::source("py/echo_server.py"))
        .arg(server)
        .arg(port.to_string());
    let server = lab.serve(c, port);
    let ask = |style: &&str| {
        let mut c = lab.command(PYTHON);
        c.arg(lab::source("py/echo_client.py"))
            .arg(style)
            .arg(port.to_string());
        lab.run(c).text()
    };
    let results = clients.iter().map(ask).collect();
    server.stop(libc::SIGTERM);
    results
}

/// Both directions of six clients of each style, mostly through shared memory.
fn carried(server: &str, clients: &[&str]) {
    let payload = clients.len() as u64 * 6 * (1 << 20);
    headwater_e2e::carried(payload, |lab| talk(lab, server, clients));
}

#[test]
fn selectors_epoll() {
    needs!("python3");
    carried("epoll", &["threads", "epoll", "timeouts"]);
}

#[test]
fn selectors_poll() {
    needs!("python3");
    carried("poll", &["threads", "poll"]);
}

#[test]
fn selectors_select() {
    needs!("python3");
    carried("select", &["asyncio", "select"]);
}

#[test]
fn asyncio() {
    needs!("python3");
    carried("asyncio", &["asyncio", "epoll", "serial"]);
}

#[test]
fn threads() {
    needs!("python3");
    carried("threads", &["threads", "timeouts", "asyncio"]);
}

#[test]
fn socketserver_with_threads() {
    needs!("python3");
    carried("threading_server", &["threads", "select"]);
}

#[test]
fn socketserver_with_forks() {
    needs!("python3");
    carried("forking_server", &["threads", "serial"]);
}

#[test]
fn accepted_by_the_parent_and_read_by_the_child() {
    needs!("python3");
    let lab = both(|lab| talk(lab, "fork", &["serial", "threads", "epoll"]));
    assert!(
        lab.lines().iter().any(|l| l.accelerated > 0),
        "{}",
        lab.lines_text()
    );
}

#[test]
fn a_parent_that_closes_late() {
    needs!("python3");
    carried("late_close", &["serial"]);
}

#[test]
fn workers_that_share_a_listener() {
    needs!("python3");
    carried("workers", &["threads", "serial"]);
}

#[test]
fn workers_with_a_listener_each() {
    needs!("python3");
    carried("workers_reuseport", &["threads", "serial"]);
}

#[test]
fn multiprocessing_with_fork() {
    needs!("python3");
    both(|lab| talk(lab, "multiprocessing", &["serial", "threads"]));
}

#[test]
fn multiprocessing_with_descriptors_sent() {
    needs!("python3");
    both(|lab| talk(lab, "spawned", &["serial", "threads"]));
}

#[test]
fn programs_on_the_connection() {
    needs!("python3");
    both(|lab| talk(lab, "programs", &["serial", "threads", "asyncio"]));
}

#[test]
fn http() {
    needs!("python3");
    let lab = both(|lab| {
        let port = network::free_port();
        let pair = |role: &str| {
            let mut c = lab.command(PYTHON);
            c.arg(lab::source("py/http_pair.py"))
                .arg(role)
                .arg(port.to_string());
            c
        };
        let server = lab.serve(pair("server"), port);
        let said = lab.run(pair("client")).text();
        server.stop(libc::SIGTERM).ok();
        said
    });
    assert!(
        lab.lines()
            .iter()
            .any(|l| l.accelerated > 0 && l.shm_tx > 1 << 20),
        "{}",
        lab.lines_text()
    );
}
