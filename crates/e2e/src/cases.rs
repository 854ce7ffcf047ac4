//! Conformance cases in C, linked against the library as a user's programs are: `c/SUITE/AREA.c`. Run without arguments such a
//! program lists its cases, `name<TAB>page`; with a name it runs that one, and says nothing if it passes.
//!
//! Each case runs in a process, a folder and a runtime folder of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::lab::{library, source};

/// Defines a test per area of a suite, and the list of all.
#[macro_export]
macro_rules! areas {
    ($suite:literal: $($area:ident),* $(,)?) => {
        const AREAS: &[&str] = &[$(stringify!($area)),*];
        $(#[test]
        fn $area() {
            $crate::cases::Area::build($suite, stringify!($area)).run();
        })*

        #[test]
        fn there_are_at_least_250_cases() {
            let cases = |area: &&'static str| $crate::cases::Area::build($suite, area).cases().len();
            let count: usize = AREAS.iter().map(cases).sum();
            assert!(count >= 250, "{count} cases");
        }
    };
}

/// The program of one area, and the folder that it lives in.
pub struct Area {
    name: &'static str,
    folder: tempfile::TempDir,
}

pub struct Case {
    name: String,
    page: String,
}

impl Area {
    pub fn build(suite: &str, name: &'static str) -> Area {
        let name = name.trim_start_matches("r#");
        let area = Area {
            name,
            folder: tempfile::Builder::new()
                .prefix("headwater-")
                .tempdir()
                .expect("a folder for the test"),
        };
        let folder = area.folder.path();
        let library = library();
        for link in ["libheadwater.so", "libheadwater.so.0"] {
            std::os::unix::fs::symlink(&library, folder.join(link)).expect("our own folder");
        }
        // Bad pointers and lengths are what some cases are about.
        let flags = "-std=gnu11 -D_GNU_SOURCE -g -O1 -Wall -Wextra -Werror -pthread -Wno-nonnull \
            -Wno-stringop-overflow -Wno-stringop-overread";
        let file = format!("c/{suite}/{name}.c");
        let built = Command::new("cc")
            .args(flags.split_whitespace())
            .arg("-I")
            .arg(source("../../include"))
            .arg("-o")
            .arg(area.program())
            .arg(source(&file))
            .arg("-L")
            .arg(folder)
            .arg("-lheadwater")
            .arg(format!("-Wl,-rpath,{}", folder.display()))
            .output()
            .expect("cc is installed");
        let said = String::from_utf8_lossy(&built.stderr);
        assert!(built.status.success(), "{file}: {said}");
        area
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
        command.args(["-s", "KILL", "30"]).arg(self.program());
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
