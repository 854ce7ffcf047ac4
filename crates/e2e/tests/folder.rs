//! The runtime folder full, truncated, deleted and made anew under running programs: none of them notices.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::Instant;

use headwater_e2e::{Lab, Mode, PATIENCE, Running, disk, lab, network};
use headwater_testkit::needs;

const PYTHON: &str = "/usr/bin/python3";

fn serve(lab: &Lab, port: u16) -> Running {
    let mut c = lab.command(PYTHON);
    c.arg(lab::source("py/echo_server.py"))
        .arg("threads")
        .arg(port.to_string());
    lab.serve(c, port)
}

/// A client's whole work.
fn ask(lab: &Lab, port: u16) -> String {
    let mut c = lab.command(PYTHON);
    c.arg(lab::source("py/echo_client.py"))
        .arg("serial")
        .arg(port.to_string());
    lab.run(c).text()
}

/// One short connection, with `messages` of one byte back and forth.
fn chat(lab: &Lab, port: u16) {
    let talk = format!(
        "import socket\ns = socket.create_connection(('127.0.0.1', {port}))\n\
         for i in range(40): s.sendall(b'x'); assert s.recv(1) == b'x'"
    );
    let mut c = lab.command(PYTHON);
    c.args(["-c", &talk]);
    lab.run(c).ok();
}

/// Ends the server, which nothing has killed.
fn stop(server: Running) {
    let status = server.stop(libc::SIGTERM).status;
    assert_eq!((status.code(), status.signal()), (Some(0), None));
}

fn carried(lab: &Lab) -> u64 {
    lab.lines().iter().map(|l| l.accelerated).sum()
}

/// Truncates every file of the runtime folder.
fn truncate(run: &Path) {
    for entry in std::fs::read_dir(run).expect("the runtime folder") {
        let path = entry.expect("a file").path();
        let file = std::fs::OpenOptions::new().write(true).open(path);
        file.and_then(|f| f.set_len(0)).expect("our own file");
    }
}

/// Programs run as ever, and talk by the kernel.
fn programs_run(lab: &Lab) {
    let mut c = lab.command("/bin/bash");
    c.args(["-c", ": < /dev/null; (:); cat /dev/null"]);
    lab.run(c).ok();
    let mut c = lab.command("git");
    c.arg("--version");
    assert!(lab.run(c).text().starts_with("git version"));
    let port = network::free_port();
    let mut c = lab.command("redis-server");
    c.args(["--save", "", "--bind", "127.0.0.1", "--port"])
        .arg(port.to_string());
    let server = lab.serve(c, port);
    let mut c = lab.command("redis-benchmark");
    c.args(["-q", "-t", "set", "-n", "200", "-p"])
        .arg(port.to_string());
    lab.run(c).ok();
    stop(server);
}

#[test]
fn a_full_folder_costs_the_acceleration_only() {
    needs!(
        "root",
        "mounts",
        "python3",
        "git",
        "redis-server",
        "redis-tools"
    );
    for there_before in [false, true] {
        let lab = Lab::new(Mode::Accelerated);
        let disk = lab.path("disk");
        disk::small(&disk);
        lab.set("HEADWATER_DIR", disk.join("run").to_str().expect("a path"));
        if there_before {
            let mut c = lab.command("/bin/bash");
            c.args(["-c", ":"]);
            lab.run(c).ok();
        }
        disk::fill(&disk);
        programs_run(&lab);
        let port = network::free_port();
        let server = serve(&lab, port);
        ask(&lab, port);
        stop(server);
        lab.assert_not_carried();
        let lines = lab.lines();
        let counted = |comm: &str| {
            lines
                .iter()
                .any(|l| l.comm == comm && l.text.contains("\"no-board\":"))
        };
        assert!(counted("python3"), "{}", lab.lines_text());
    }
}

#[test]
fn a_folder_that_fills_up_later_is_no_concern_of_those_who_run() {
    needs!(
        "root",
        "mounts",
        "python3",
        "git",
        "redis-server",
        "redis-tools"
    );
    let lab = Lab::new(Mode::Accelerated);
    let disk = lab.path("disk");
    disk::small(&disk);
    lab.set("HEADWATER_DIR", disk.join("run").to_str().expect("a path"));
    let port = network::free_port();
    let server = serve(&lab, port);
    disk::fill(&disk);
    ask(&lab, port);
    assert!(carried(&lab) > 0, "{}", lab.lines_text());
    programs_run(&lab);
    ask(&lab, port);
    stop(server);
}

#[test]
fn files_truncated_under_running_programs() {
    needs!("python3");
    let lab = Lab::new(Mode::Accelerated);
    let port = network::free_port();
    let server = serve(&lab, port);
    let expected = ask(&lab, port);
    truncate(&lab.path("run"));
    assert_eq!(ask(&lab, port), expected);
    truncate(&lab.path("run"));
    meets_again(&lab, port);
    assert_eq!(ask(&lab, port), expected);
    stop(server);
}

#[test]
fn a_folder_deleted_under_running_programs() {
    needs!("python3");
    let lab = Lab::new(Mode::Accelerated);
    let port = network::free_port();
    let server = serve(&lab, port);
    let expected = ask(&lab, port);
    // As logind does at logout, with RemoveIPC=.
    std::fs::remove_dir_all(lab.path("run")).expect("the runtime folder");
    assert_eq!(ask(&lab, port), expected);
    meets_again(&lab, port);
    // A newcomer's server, and the older one.
    let second = network::free_port();
    let newer = serve(&lab, second);
    let before = carried(&lab);
    assert_eq!(ask(&lab, second), expected);
    assert_eq!(ask(&lab, port), expected);
    assert!(carried(&lab) > before, "{}", lab.lines_text());
    stop(newer);
    stop(server);
}

/// Newcomers have a board of their own; sooner or later the server comes there.
fn meets_again(lab: &Lab, port: u16) {
    let (before, begun) = (carried(lab), Instant::now());
    while carried(lab) == before {
        assert!(begun.elapsed() < PATIENCE, "{}", lab.lines_text());
        chat(lab, port);
    }
}

#[test]
fn a_full_board_is_said_once() {
    needs!("python3");
    let lab = Lab::new(Mode::Accelerated);
    let log = lab.path("log");
    lab.set("HEADWATER_LOG_FILE", log.to_str().expect("a path"));
    // All of them have their places near each other.
    let listen = format!(
        "import socket\nall = [socket.create_server((f'127.0.0.{{i}}', {})) for i in range(1, 41)]",
        network::free_port()
    );
    let mut c = lab.command(PYTHON);
    c.args(["-c", &listen]);
    lab.run(c).ok();
    let counted = lab.lines_text();
    assert!(counted.contains("\"board-full\":24"), "{counted}");
    let log = std::fs::read_to_string(log).expect("a log");
    assert_eq!(log.matches("too many listeners").count(), 1, "{log}");
}
