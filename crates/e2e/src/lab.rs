//! A place for programs, natively or with the library.

use std::cell::{Cell, RefCell};
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::program::{Output, Running};
use crate::stats::{self, Line};
use crate::{PATIENCE, network};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    Native,
    Accelerated,
}

pub struct Lab {
    mode: Mode,
    folder: tempfile::TempDir,
    isolated: bool,
    loopback_before: u64,
    labels: Cell<usize>,
    variables: RefCell<Vec<(String, String)>>,
}

/// Runs `work` natively and accelerated; the results are equal. Returns the accelerated lab, for its statistics.
pub fn both<T: PartialEq + std::fmt::Debug>(work: impl Fn(&Lab) -> T) -> Lab {
    let (_, expected) = native(&work);
    let (lab, seen) = accelerated(&work);
    assert_eq!(
        seen,
        expected,
        "accelerated against native\n{}",
        lab.lines_text()
    );
    lab
}

pub fn native<T>(work: impl FnOnce(&Lab) -> T) -> (Lab, T) {
    let lab = Lab::new(Mode::Native);
    let result = work(&lab);
    (lab, result)
}

pub fn accelerated<T>(work: impl FnOnce(&Lab) -> T) -> (Lab, T) {
    let lab = Lab::new(Mode::Accelerated);
    let result = work(&lab);
    (lab, result)
}

impl Lab {
    pub fn new(mode: Mode) -> Lab {
        let isolated = network::isolate();
        let folder = tempfile::Builder::new()
            .prefix("headwater-e2e-")
            .tempdir()
            .expect("a folder for the test");
        // Some servers drop their privileges.
        let all = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.path(), all).expect("our own folder");
        if mode == Mode::Accelerated {
            let library = library();
            assert!(
                library.is_file(),
                "{} is missing: run `cargo build --release -p libheadwater` first (or set HEADWATER_E2E_LIBRARY)",
                library.display()
            );
        }
        Lab {
            mode,
            folder,
            isolated,
            loopback_before: network::loopback_bytes(),
            labels: Cell::new(0),
            variables: RefCell::default(),
        }
    }

    pub fn mode(&self) -> Mode {
        self.mode
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Has this lab a network of its own?
    pub fn isolated(&self) -> bool {
        self.isolated
    }

    /// A file of `n` bytes that look random and are the same each time.
    pub fn payload(&self, name: &str, n: usize) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, noise(n)).expect("the lab's folder is writable");
        path
    }

    /// A variable for every program of this lab from now on.
    pub fn set(&self, name: &str, value: &str) {
        let pair = (name.to_string(), value.to_string());
        self.variables.borrow_mut().push(pair);
    }

    /// A command that runs in this lab's mode.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut c = self.plain(program);
        if self.mode == Mode::Accelerated {
            c.env("LD_PRELOAD", library())
                .env("HEADWATER_SOCKETS", "1")
                .env("HEADWATER_DIR", self.path("run"))
                .env("HEADWATER_STATS_FILE", self.path("stats"));
            for (name, value) in self.variables.borrow().iter() {
                c.env(name, value);
            }
        }
        c
    }

    /// Has a command run as another user, with a library that this one may read too: not every tree is in a folder for all.
    pub fn as_user(&self, command: &mut Command, uid: u32, gid: u32) {
        use std::os::unix::process::CommandExt;
        command.uid(uid).gid(gid);
        let mut set = command.get_envs();
        if set.any(|(name, value)| name == "LD_PRELOAD" && value.is_some()) {
            command.env("LD_PRELOAD", self.copy(&library()));
        }
    }

    /// A copy that every user may read.
    pub fn copy(&self, file: &Path) -> PathBuf {
        let copy = self.path(&file.file_name().expect("a file").to_string_lossy());
        if !copy.exists() {
            std::fs::copy(file, &copy).expect("the lab's folder is writable");
            let all = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(&copy, all).expect("our own file");
        }
        copy
    }

    /// A command that knows nothing of the library.
    pub fn plain(&self, program: impl AsRef<OsStr>) -> Command {
        let mut c = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("HEADWATER_") {
                c.env_remove(name);
            }
        }
        c.env_remove("LD_PRELOAD")
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        c
    }

    pub fn start(&self, command: Command) -> Running {
        let label = self.labels.replace(self.labels.get() + 1);
        Running::start(command, self.folder.path(), label)
    }

    /// Starts a server and waits until it listens.
    pub fn serve(&self, command: Command, port: u16) -> Running {
        let server = self.start(command);
        network::await_listener(port, || server.alive());
        server
    }

    pub fn run(&self, command: Command) -> Output {
        self.start(command).finish()
    }

    pub fn lines(&self) -> Vec<Line> {
        stats::read(&self.path("stats"))
    }

    pub fn lines_text(&self) -> String {
        let lines = self.lines();
        lines.into_iter().map(|l| l.text + "\n").collect()
    }

    /// Waits until a line is there that `wanted` likes: of a process that is not our child.
    pub fn await_line(&self, wanted: impl Fn(&Line) -> bool) {
        let begun = Instant::now();
        while !self.lines().iter().any(&wanted) {
            assert!(
                begun.elapsed() < PATIENCE,
                "no such line: {}",
                self.lines_text()
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Asserts that most of `payload` bytes went through shared memory (what is sent before the peer claims a connection
    /// goes by the kernel), and that the kernel's loopback device saw but a fraction of all.
    pub fn assert_carried(&self, payload: u64) {
        let carried = self.assert_part_carried(payload / 4 * 3);
        self.assert_kernel_saw_less_than(payload.max(carried) / 3 + (64 << 10));
    }

    /// Asserts that at least so many bytes went through shared memory, whatever went by the kernel. How many did.
    pub fn assert_part_carried(&self, part: u64) -> u64 {
        let lines = self.lines();
        let sum = |f: fn(&Line) -> u64| lines.iter().map(f).sum::<u64>();
        let text = self.lines_text();
        assert!(
            sum(|l| l.accelerated) > 0,
            "nothing was accelerated\n{text}"
        );
        let carried = sum(|l| l.shm_tx).max(sum(|l| l.shm_rx));
        assert!(
            carried >= part,
            "{carried} of {part} bytes through shared memory\n{text}"
        );
        carried
    }

    /// Asserts that no connection was accelerated.
    pub fn assert_not_carried(&self) {
        let carried = self
            .lines()
            .iter()
            .any(|l| l.accelerated > 0 || l.shm_tx > 0);
        assert!(!carried, "accelerated\n{}", self.lines_text());
    }

    /// Bytes, headers included, on the loopback device since the lab was made; 0 where other tests share it.
    pub fn kernel_bytes(&self) -> u64 {
        if self.isolated {
            network::loopback_bytes() - self.loopback_before
        } else {
            0
        }
    }

    pub fn assert_kernel_saw_less_than(&self, bytes: u64) {
        let seen = self.kernel_bytes();
        let text = self.lines_text();
        assert!(
            seen < bytes,
            "{seen} bytes (bound {bytes}) on the loopback device\n{text}"
        );
    }
}

pub use headwater_testkit::library;

/// `n` bytes that look random and are the same each time.
pub fn noise(n: usize) -> Vec<u8> {
    let mut x = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = Vec::with_capacity(n + 8);
    while bytes.len() < n {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        bytes.extend_from_slice(&x.to_le_bytes());
    }
    bytes.truncate(n);
    bytes
}

/// A file of this crate.
pub fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Length and hash of a result that is too long to print.
pub fn digest(bytes: &[u8]) -> (usize, u64) {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |h, &b| {
        (h ^ b as u64).wrapping_mul(0x100_0000_01b3)
    });
    (bytes.len(), hash)
}
