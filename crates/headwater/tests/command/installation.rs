//! An installation of its own: the command, and in the library's place a tiny one that reports what a test expects.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Leaves one line of statistics when a process ends, as the library would.
const STAND_IN: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void __attribute__((destructor)) report(void) {
    const char *path = getenv("HEADWATER_STATS_FILE");
    FILE *file = path ? fopen(path, "a") : 0;
    if (!file) return;
    fprintf(file, "{\"pid\":%d,\"version\":\"VERSION\",\"accelerated\":3,\"shm_bytes_tx\":2048,"
                  "\"fallback\":1,\"fallback_reasons\":{\"no-offer\":1}}\n", (int)getpid());
    fclose(file);
}
"#;

pub struct Installation {
    folder: tempfile::TempDir,
}

impl Installation {
    pub fn new() -> Installation {
        let it = Installation::without_library();
        let text = STAND_IN.replace("VERSION", env!("CARGO_PKG_VERSION"));
        let flags = ["-shared", "-fPIC"];
        assert!(it.compile(&text, &flags, &it.library()));
        it
    }

    pub fn without_library() -> Installation {
        let folder = tempfile::Builder::new()
            .prefix("headwater-test-")
            .tempdir()
            .unwrap();
        fs::create_dir(folder.path().join("bin")).unwrap();
        fs::create_dir(folder.path().join("lib")).unwrap();
        let command = folder.path().join("bin/headwater");
        fs::copy(env!("CARGO_BIN_EXE_headwater"), command).unwrap();
        Installation { folder }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn library(&self) -> PathBuf {
        self.path().join("lib/libheadwater.so.0")
    }

    /// The command, in an environment without settings.
    pub fn headwater(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.path().join("bin/headwater"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("HEADWATER_") {
                command.env_remove(name);
            }
        }
        command
            .args(arguments)
            .env_remove("LD_PRELOAD")
            .env("HEADWATER_DIR", self.path().join("run"));
        command
    }

    pub fn output(&self, arguments: &[&str]) -> Output {
        self.headwater(arguments).output().unwrap()
    }

    /// Writes a file that may be executed.
    pub fn program(&self, name: &str, text: &str) -> String {
        use std::os::unix::fs::PermissionsExt;
        let path = self.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.display().to_string()
    }

    /// Compiles a C program; false where the compiler can't (no static C library, say).
    pub fn compile(&self, text: &str, flags: &[&str], to: &Path) -> bool {
        let source = to.with_extension("c");
        fs::write(&source, text).unwrap();
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_string());
        let status = Command::new(compiler)
            .args(flags)
            .arg("-o")
            .arg(to)
            .arg(&source)
            .status();
        status.expect("a C compiler, cc").success()
    }
}

/// `make install` puts everything that a program for streams is built and documented with where it is looked for, and
/// `make uninstall` takes it back.
#[test]
fn make_installs_and_takes_back() {
    const INSTALLED: &[&str] = &[
        "bin/headwater",
        "include/headwater.h",
        "include/stropts.h",
        "include/sys/sad.h",
        "include/sys/strlog.h",
        "include/sys/stropts.h",
        "lib/libheadwater.so",
        "lib/libheadwater.so.0",
        "lib/libstreams.so",
        "lib/pkgconfig/headwater.pc",
        "share/man/man1/headwater.1",
        "share/man/man1/headwater-streams.1",
        "share/man/man3/streams_pipe.3",
        "share/man/man7/headwater.7",
        "share/man/man7/streams.7",
    ];
    let folder = tempfile::Builder::new()
        .prefix("headwater-test-")
        .tempdir()
        .unwrap();
    let (built, root) = (folder.path().join("built"), folder.path().join("root"));
    fs::create_dir(&built).unwrap();
    // What is built does not matter here, so nothing is.
    for name in [
        "headwater",
        "headwater-echo",
        "headwater-raw",
        "headwater-perftest",
        "headwater-xtiperf",
        "headwater-sctpperf",
        "headwater-speed",
        "headwater-lan",
    ] {
        fs::write(built.join(name), "").unwrap();
    }
    fs::write(built.join("libheadwater.so"), "").unwrap();
    let make = |target: &str| {
        let output = Command::new("make")
            .args(["-s", target, "PREFIX=/usr"])
            .arg(format!("BUILT={}", built.display()))
            .arg(format!("DESTDIR={}", root.display()))
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
            .output()
            .expect("make");
        assert!(output.status.success(), "{}", stderr(&output));
    };
    let there = |name: &&&str| root.join("usr").join(name).exists();
    make("install");
    let missing: Vec<_> = INSTALLED.iter().filter(|n| !there(n)).collect();
    assert!(missing.is_empty(), "not installed: {missing:?}");
    make("uninstall");
    let left: Vec<_> = INSTALLED.iter().filter(there).collect();
    assert!(left.is_empty(), "not taken back: {left:?}");
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
