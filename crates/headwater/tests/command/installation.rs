//! An installation of its own: the command, and in the library's place a tiny one that reports what a test expects.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};

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
        "libexec/headwater/headwater-bench",
        "libexec/headwater/headwater-load",
        "lib/libstreams.so",
        "lib/pkgconfig/headwater.pc",
        "share/man/man1/headwater.1",
        "share/man/man1/headwater-streams.1",
        "share/man/man3/streams_pipe.3",
        "share/man/man7/headwater.7",
        "share/man/man7/streams.7",
    ];
    let site = Site::new();
    let there = |name: &&&str| site.usr().join(name).exists();
    site.make("install");
    let missing: Vec<_> = INSTALLED.iter().filter(|n| !there(n)).collect();
    assert!(missing.is_empty(), "not installed: {missing:?}");
    site.make("uninstall");
    let left: Vec<_> = INSTALLED.iter().filter(there).collect();
    assert!(left.is_empty(), "not taken back: {left:?}");
}

/// Another version is installed while programs start and run.
#[test]
fn an_installed_library_is_replaced_at_once() {
    let site = Site::new();
    let library = site.usr().join("lib/libheadwater.so.0");
    let sizes = [8 << 20, 9 << 20];
    fs::write(site.built.join("libheadwater.so"), vec![1; sizes[0]]).unwrap();
    site.make("install");
    let mut running = fs::File::open(&library).unwrap();
    let done = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let look = scope.spawn(|| {
            let mut seen = Vec::new();
            while !done.load(Ordering::Acquire) {
                seen.push(fs::metadata(&library).map_or(0, |m| m.len() as usize));
            }
            seen
        });
        for turn in [1, 0, 1] {
            let new = vec![turn as u8 + 1; sizes[turn]];
            fs::write(site.built.join("libheadwater.so"), new).unwrap();
            site.make("install");
        }
        done.store(true, Ordering::Release);
        look.join().unwrap()
    });
    assert!(seen.iter().all(|size| sizes.contains(size)), "half there");
    let mut mapped = Vec::new();
    running.read_to_end(&mut mapped).unwrap();
    assert!(mapped == vec![1; sizes[0]], "changed under who runs");
    let files = fs::read_dir(library.parent().unwrap()).unwrap();
    let left = files.flatten().map(|f| f.file_name());
    let left: Vec<_> = left
        .filter(|n| n.to_string_lossy().contains("new"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

/// What was built, as far as it matters here, and where it is installed.
struct Site {
    _folder: tempfile::TempDir,
    built: PathBuf,
    root: PathBuf,
}

impl Site {
    fn new() -> Site {
        let folder = tempfile::Builder::new()
            .prefix("headwater-test-")
            .tempdir()
            .unwrap();
        let (built, root) = (folder.path().join("built"), folder.path().join("root"));
        fs::create_dir(&built).unwrap();
        for name in [
            "headwater",
            "headwater-bench",
            "headwater-load",
            "libheadwater.so",
        ] {
            fs::write(built.join(name), "").unwrap();
        }
        Site {
            _folder: folder,
            built,
            root,
        }
    }

    fn usr(&self) -> PathBuf {
        self.root.join("usr")
    }

    fn make(&self, target: &str) {
        let output = Command::new("make")
            .args(["-s", target, "PREFIX=/usr"])
            .arg(format!("BUILT={}", self.built.display()))
            .arg(format!("DESTDIR={}", self.root.display()))
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
            .output()
            .expect("make");
        assert!(output.status.success(), "{}", stderr(&output));
    }
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
