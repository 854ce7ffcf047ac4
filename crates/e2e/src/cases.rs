//! Conformance cases in C, linked against the library as a user's programs are, or with it preloaded: `c/SUITE/AREA.c`. Run without
//! arguments such a program lists its cases, `name<TAB>page`; with a name it runs that one, and says nothing if it passes.
//!
//! Each case runs in a process, a folder and a runtime folder of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::lab::{library, source};
use crate::{compile, network};

/// Defines a test per area of a suite, and the list of all; for programs linked against the library also a test that counts.
#[macro_export]
macro_rules! areas {
    ($suite:literal: $($area:ident),* $(,)?) => {
        $crate::areas!($suite, $crate::cases::Library::Linked; $($area),*);

        #[test]
        fn there_are_at_least_250_cases() {
            let count = $crate::cases::count($suite, $crate::cases::Library::Linked, AREAS);
            assert!(count >= 250, "{count} cases");
        }
    };
    ($suite:literal, $library:expr; $($area:ident),* $(,)?) => {
        pub const AREAS: &[&str] = &[$(stringify!($area)),*];
        $(#[test]
        fn $area() {
            let test = concat!($suite, "::", stringify!($area));
            if let Some(area) = $crate::cases::Area::build(test, $suite, stringify!($area), $library) {
                area.run();
            }
        })*
    };
}

/// The area whose programs load modules in C.
const MODULES: &str = "c_modules";

/// What an area uses beside the C compiler, as `headwater_testkit::needs!` names it.
fn needed(suite: &str, area: &str) -> &'static [&'static str] {
    match (suite, area) {
        ("sctp_sockets", _) => &["libsctp-dev"],
        ("xti", "interop_python") => &["python3"],
        _ => &[],
    }
}

/// Is this, and so most likely the library too, built without optimisation? Then calls need more stack than they may.
pub fn is_unoptimised() -> bool {
    let us = std::env::current_exe().expect("a path");
    us.components().any(|c| c.as_os_str() == "debug")
}

/// The cases of these areas, of which each must be one that compiles here.
pub fn count(suite: &str, library: Library, areas: &[&'static str]) -> usize {
    let cases = |area: &&'static str| Area::compile(suite, area, library).cases().len();
    areas.iter().map(cases).sum()
}

/// How the programs of a suite come to the library.
#[derive(Clone, Copy)]
pub enum Library {
    Linked,
    /// Preloaded, serving sockets, with these variables, in a network of its own where that is permitted. The program knows of
    /// libsctp alone.
    Preloaded(&'static [(&'static str, &'static str)]),
}

/// The program of one area, and the folder that it lives in.
pub struct Area {
    name: &'static str,
    library: Library,
    folder: tempfile::TempDir,
}

pub struct Case {
    name: String,
    page: String,
}

impl Area {
    /// None where something is missing that it uses; then it is noted that `test` was not run.
    pub fn build(test: &str, suite: &str, name: &'static str, library: Library) -> Option<Area> {
        let name = name.trim_start_matches("r#");
        headwater_testkit::are_there(needed(suite, name), test)
            .then(|| Area::compile(suite, name, library))
    }

    fn compile(suite: &str, name: &'static str, library: Library) -> Area {
        let name = name.trim_start_matches("r#");
        let area = Area {
            name,
            library,
            folder: tempfile::Builder::new()
                .prefix("headwater-")
                .tempdir()
                .expect("a folder for the test"),
        };
        let folder = area.folder.path();
        for link in ["libheadwater.so", "libheadwater.so.0"] {
            std::os::unix::fs::symlink(self::library(), folder.join(link)).expect("our own folder");
        }
        // Bad pointers and lengths are what some cases are about.
        let flags = "-std=gnu11 -D_GNU_SOURCE -g -O1 -Wall -Wextra -Werror -pthread -Wno-nonnull \
            -Wno-stringop-overflow -Wno-stringop-overread";
        let file = format!("c/{suite}/{name}.c");
        if name == MODULES {
            let to = area.modules();
            std::fs::create_dir(&to).expect("our own folder");
            for from in ["../../examples/modules", "c/modules"] {
                compile::modules(&source(from), &to);
            }
        }
        compile::cc(
            flags.split_whitespace().chain(["-I", &compile::include()]),
            &source(&file),
            &area.program(),
            area.linking().iter().map(String::as_str),
        );
        area
    }

    fn linking(&self) -> Vec<String> {
        let folder = self.folder.path().display();
        match self.library {
            Library::Linked => vec![
                format!("-L{folder}"),
                "-lheadwater".to_string(),
                format!("-Wl,-rpath,{folder}"),
            ],
            Library::Preloaded(_) => vec!["-lsctp".to_string()],
        }
    }

    fn modules(&self) -> PathBuf {
        self.folder.path().join("modules")
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join(self.name)
    }

    pub fn cases(&self) -> Vec<Case> {
        let listed = self.execute(self.folder.path(), &[]);
        let text = String::from_utf8(listed.stdout).expect("names in ASCII");
        let cases: Vec<Case> = text.lines().map(Case::listed).collect();
        assert!(
            listed.status.success() && !cases.is_empty(),
            "{}: no cases: {}",
            self.name,
            String::from_utf8_lossy(&listed.stderr)
        );
        cases
    }

    /// Runs every case, then says which failed.
    pub fn run(&self) {
        if let Library::Preloaded(_) = self.library {
            network::isolate();
        }
        let cases = self.cases();
        let failures: Vec<String> = cases.iter().filter_map(|c| self.failure(c)).collect();
        assert!(
            failures.is_empty(),
            "{} of {} cases failed\n{}",
            failures.len(),
            cases.len(),
            failures.join("\n")
        );
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
        command.args(["-s", "KILL", "150", "env", "SECONDS_OF_A_CASE=60"]);
        self.complete(command, folder, arguments)
            .output()
            .expect("timeout, of coreutils")
    }

    /// For the program to be run by somebody else.
    pub fn command(&self, folder: &Path, case: &str) -> Command {
        self.complete(Command::new("env"), folder, &[case])
    }

    fn complete(&self, mut command: Command, folder: &Path, arguments: &[&str]) -> Command {
        if let Library::Preloaded(variables) = self.library {
            let preload = self.folder.path().join("libheadwater.so");
            command
                .arg(format!("LD_PRELOAD={}", preload.display()))
                .arg("HEADWATER_SOCKETS=1")
                .args(
                    variables
                        .iter()
                        .map(|(name, value)| format!("{name}={value}")),
                );
        }
        command.arg(self.program());
        if is_unoptimised() {
            command.env("STACK", "262144");
        }
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("HEADWATER_") {
                command.env_remove(name);
            }
        }
        if self.name == MODULES {
            // Then what a case makes itself.
            let folders = format!("{}:local", self.modules().display());
            command.env("HEADWATER_MODULES", folders);
        }
        command
            .args(arguments)
            .current_dir(folder)
            .env("HEADWATER_DIR", folder.join("runtime"))
            .env_remove("LD_PRELOAD")
            .stdin(Stdio::null());
        command
    }
}

impl Case {
    pub fn name(&self) -> &str {
        &self.name
    }

    fn listed(line: &str) -> Case {
        let (name, page) = line.split_once('\t').expect("name, tab, page");
        let (name, page) = (name.to_string(), page.to_string());
        Case { name, page }
    }
}
