//! A shell with everything that one does in it, under the library from the first process to the last.

use std::process::Command;

use headwater_e2e::{Lab, Mode, PATIENCE, both, lab};
use headwater_testkit::needs;

/// As a user has it: by the command, and with nothing else set.
fn run(lab: &Lab, program: &str) -> Command {
    let mut c = lab.plain(lab::library().with_file_name("headwater"));
    c.args(["run", "--stats-file"])
        .arg(lab.path("stats"))
        .args(["--", program])
        .env("HEADWATER_DIR", lab.path("run"));
    c
}

/// A program's whole way from its sources: configure scripts are hundreds of short processes.
#[test]
fn configure_and_make() {
    needs!("autoconf", "automake", "gcc", "make");
    let lab = both(|lab| {
        let mut c = lab.plain("cp");
        c.arg("-r")
            .arg(lab::source("autotools"))
            .arg(lab.path("built"));
        lab.run(c).ok();
        let script =
            "set -e; cd built; autoreconf -i; ./configure; make; make check; ./hello; echo done";
        let mut c = match lab.mode() {
            Mode::Native => lab.plain("bash"),
            Mode::Accelerated => run(lab, "bash"),
        };
        c.args(["-c", script]);
        // Hundreds of processes after one another: longer than anything else here where the machine is busy.
        let said = lab.start(c).wait_within(8 * PATIENCE).text();
        let last: Vec<_> = said.lines().rev().take(2).map(str::to_string).collect();
        let header = std::fs::read_to_string(lab.path("built/config.h")).expect("it was made");
        (last, header)
    });
    // The library was in all of them.
    for program in ["bash", "make", "hello"] {
        let has_it = lab.lines().iter().any(|l| l.comm == program);
        assert!(has_it, "{program}\n{}", lab.lines_text());
    }
}

/// Pipelines, here documents, redirections, process substitution, jobs.
#[test]
fn what_shells_do() {
    needs!("python3");
    both(|lab| {
        let mut c = lab.command("bash");
        c.arg(lab::source("autotools/shell.sh"));
        lab.run(c).text()
    });
}
