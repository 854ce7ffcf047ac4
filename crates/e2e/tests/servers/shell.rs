//! A shell with everything that one does in it, under the library from the first process to the last.

use headwater_e2e::{PATIENCE, both, lab};
use headwater_testkit::needs;

/// A program's whole way from its sources: configure scripts are hundreds of short processes.
#[test]
fn configure_and_make() {
    needs!("autoconf", "automake", "gcc", "make");
    both(|lab| {
        let mut c = lab.plain("cp");
        c.arg("-r")
            .arg(lab::source("autotools"))
            .arg(lab.path("built"));
        lab.run(c).ok();
        let script =
            "set -e; cd built; autoreconf -i; ./configure; make; make check; ./hello; echo done";
        let mut c = lab.command("bash");
        c.args(["-c", script]);
        // Hundreds of processes after one another: longer than anything else here where the machine is busy.
        let said = lab.start(c).wait_within(8 * PATIENCE).text();
        let last: Vec<_> = said.lines().rev().take(2).map(str::to_string).collect();
        let header = std::fs::read_to_string(lab.path("built/config.h")).expect("it was made");
        (last, header)
    });
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
