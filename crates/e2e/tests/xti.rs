//! XNS 5.2 as cases in C, linked against the library as a user's programs are: `c/xti/AREA.c`, one suite for all providers.
//!
//! A case named `connect_refused@ticotsord` is the case `connect_refused` over that provider. Each runs in a process, a
//! folder and a runtime folder of its own, and names the page that it holds the library to.

use headwater_e2e::lab::{library, source};
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Defines a test per area, and the list of all.
macro_rules! areas {
    ($($area:ident),* $(,)?) => {
        const AREAS: &[&str] = &[$(stringify!($area)),*];
        $(#[test]
        fn $area() {
            run(stringify!($area));
        })*
    };
}

areas!(
    local,
    connect,
    accept,
    transfer,
    release,
    r#async,
    fork,
    states,
    datagrams,
    udp2,
    options,
    tpi,
    tli,
    modules,
    interop,
    threads,
    sctp,
    rawip,
    netdir,
    headers,
    headers_tli
);

/// Every case of the table, once per provider that it runs for.
#[test]
fn there_are_at_least_250_cases() {
    let count: usize = AREAS.iter().map(|a| Area::build(a).cases().len()).sum();
    assert!(count >= 250, "{count} cases");
}

/// Runs every case of an area, then says which failed.
fn run(name: &'static str) {
    let area = Area::build(name);
    let cases = area.cases();
    let failures: Vec<String> = cases.iter().filter_map(|c| area.failure(c)).collect();
    assert!(
        failures.is_empty(),
        "{} of {} cases failed\n{}",
        failures.len(),
        cases.len(),
        failures.join("\n")
    );
}

/// The program of one area, and the folder that it lives in.
struct Area {
    name: &'static str,
    folder: tempfile::TempDir,
}

/// `name<TAB>page`, as the program lists it.
struct Case {
    name: String,
    page: String,
}

impl Area {
    fn build(name: &'static str) -> Area {
        let name = name.trim_start_matches("r#");
        let folder = tempfile::Builder::new()
            .prefix("headwater-")
            .tempdir()
            .expect("a folder for the test");
        for link in ["libheadwater.so", "libheadwater.so.0"] {
            std::os::unix::fs::symlink(library(), folder.path().join(link))
                .expect("our own folder");
        }
        let flags = "-std=gnu11 -D_GNU_SOURCE -g -O1 -Wall -Wextra -Werror -pthread -Wno-nonnull \
            -Wno-stringop-overflow -Wno-stringop-overread";
        let built = Command::new("cc")
            .args(flags.split_whitespace())
            .arg("-I")
            .arg(source("../../include"))
            .arg("-o")
            .arg(folder.path().join(name))
            .arg(source(&format!("c/xti/{name}.c")))
            .arg("-L")
            .arg(folder.path())
            .arg("-lheadwater")
            .arg(format!("-Wl,-rpath,{}", folder.path().display()))
            .output()
            .expect("cc is installed");
        let said = String::from_utf8_lossy(&built.stderr);
        assert!(built.status.success(), "c/xti/{name}.c: {said}");
        Area { name, folder }
    }

    fn cases(&self) -> Vec<Case> {
        let listed = self.execute(self.folder.path(), &[]);
        let text = String::from_utf8(listed.stdout).expect("names in ASCII");
        let said = String::from_utf8_lossy(&listed.stderr);
        let cases: Vec<Case> = text.lines().map(Case::listed).collect();
        let name = self.name;
        assert!(
            listed.status.success() && !cases.is_empty(),
            "{name}: no cases: {said}"
        );
        cases
    }

    fn failure(&self, case: &Case) -> Option<String> {
        let folder = self.folder.path().join("run").join(&case.name);
        std::fs::create_dir_all(&folder).expect("our own folder");
        let output = self.execute(&folder, &[&case.name]);
        let passed = output.status.success() && output.stdout.is_empty();
        (!passed).then(|| {
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8_lossy(&said);
            let (name, page) = (&case.name, &case.page);
            let status = output.status;
            format!("{}.c {name} [{page}]: {status}: {}", self.name, said.trim())
        })
    }

    fn execute(&self, folder: &Path, arguments: &[&str]) -> Output {
        // The program has an alarm of its own; this is for one that is deaf to it.
        let mut command = Command::new("timeout");
        let program = self.folder.path().join(self.name);
        command.args(["-s", "KILL", "30"]).arg(program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("HEADWATER_") {
                command.env_remove(name);
            }
        }
        command
            .args(arguments)
            .current_dir(folder)
            .env("HEADWATER_DIR", folder.join("runtime"))
            .env_remove("LD_PRELOAD")
            .stdin(Stdio::null())
            .output()
            .expect("timeout, of coreutils")
    }
}

impl Case {
    fn listed(line: &str) -> Case {
        let (name, page) = line.split_once('\t').expect("name, tab, page");
        let (name, page) = (name.to_string(), page.to_string());
        Case { name, page }
    }
}
