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

/// Runs made before it counts that a sender stalled in each of them.
const RUNS: usize = 6;

/// As [`both`], and most of `payload` bytes go through shared memory: a [`carrying`] run.
pub fn carried<T: PartialEq + std::fmt::Debug>(payload: u64, work: impl Fn(&Lab) -> T) -> Lab {
    carrying(payload, || both(&work))
}

/// The first run that carries most of `payload` bytes. One that carries less fails the test, unless a sender stalled in it: whose
/// receiver does not get its CPU for 200 ms goes on by TCP, as it has to, and what then goes by which path the machine's load decides;
/// or a server on a busy machine had each request before it waited, for as long. So another one is made.
pub fn carrying(payload: u64, run: impl Fn() -> Lab) -> Lab {
    judged(run, |lab| lab.carries(payload))
}

/// The first run that is `right`, or in which nothing was in the way.
///
/// # Panics
/// If that one is wrong.
pub fn judged(run: impl Fn() -> Lab, right: impl Fn(&Lab) -> Result<(), String>) -> Lab {
    for _ in 1..RUNS {
        let lab = run();
        match right(&lab) {
            Ok(()) => return lab,
            Err(wrong) if lab.was_hindered() => eprintln!("once more: {wrong}"),
            Err(wrong) => panic!("{wrong}"),
        }
    }
    let lab = run();
    right(&lab).unwrap_or_else(|wrong| panic!("{wrong}"));
    lab
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

    /// Did a sender find that its peer took nothing for a while, or a server that what it wants was always there, so that no wait of it
    /// was seen for long? The reason is counted there.
    pub fn was_hindered(&self) -> bool {
        let said = self.lines_text();
        ["\"stalled\":", "\"unseen-waits\":"]
            .iter()
            .any(|reason| said.contains(reason))
    }

    /// Asserts what [`carries`](Lab::carries) says.
    pub fn assert_carried(&self, payload: u64) {
        self.carries(payload)
            .unwrap_or_else(|wrong| panic!("{wrong}"));
    }

    /// Did most of `payload` bytes go through shared memory (what is sent before the peer claims a connection goes by the
    /// kernel), and did the kernel's loopback device see but a fraction of all?
    pub fn carries(&self, payload: u64) -> Result<(), String> {
        let carried = self.carries_part(payload / 4 * 3)?;
        self.kernel_saw_less_than(payload.max(carried) / 3 + (64 << 10))
    }

    /// Asserts that at least so many bytes went through shared memory, whatever went by the kernel.
    pub fn assert_part_carried(&self, part: u64) {
        self.carries_part(part)
            .unwrap_or_else(|wrong| panic!("{wrong}"));
    }

    /// How many bytes went through shared memory; an error if less than `part`.
    fn carries_part(&self, part: u64) -> Result<u64, String> {
        let lines = self.lines();
        let sum = |f: fn(&Line) -> u64| lines.iter().map(f).sum::<u64>();
        let text = self.lines_text();
        if sum(|l| l.accelerated) == 0 {
            return Err(format!("nothing was accelerated\n{text}"));
        }
        let carried = sum(|l| l.shm_tx).max(sum(|l| l.shm_rx));
        if carried < part {
            return Err(format!(
                "{carried} of {part} bytes through shared memory\n{text}"
            ));
        }
        Ok(carried)
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

    pub fn kernel_saw_less_than(&self, bytes: u64) -> Result<(), String> {
        let seen = self.kernel_bytes();
        if seen < bytes {
            return Ok(());
        }
        let text = self.lines_text();
        Err(format!(
            "{seen} bytes (bound {bytes}) on the loopback device\n{text}"
        ))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// As a run leaves it, with or without a sender that stalled.
    fn ran(stalled: bool) -> Lab {
        let lab = Lab::new(Mode::Native);
        let counts = [
            "pid",
            "accelerated",
            "fallback",
            "shm_bytes_tx",
            "shm_bytes_rx",
            "kernel_bytes_tx",
            "kernel_bytes_rx",
        ];
        let counts = counts.map(|name| format!("\"{name}\":1,")).concat();
        let reasons = if stalled { "\"stalled\":1" } else { "" };
        let line = format!("{{{counts}\"fallback_reasons\":{{{reasons}}}}}\n");
        std::fs::write(lab.path("stats"), line).expect("our own folder");
        lab
    }

    /// How many runs are made of which all stall or none does, and the one of this number is right.
    fn runs(stalled: bool, right: usize) -> (usize, bool) {
        let made = Cell::new(0);
        let run = || {
            made.set(made.get() + 1);
            ran(stalled)
        };
        let judge = |_: &Lab| match made.get() == right {
            true => Ok(()),
            false => Err("too little".to_string()),
        };
        let judged = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| judged(run, judge)));
        (made.get(), judged.is_ok())
    }

    #[test]
    fn only_a_run_in_which_a_sender_stalled_is_made_again() {
        assert_eq!(runs(false, 1), (1, true));
        assert_eq!(runs(true, 3), (3, true));
        assert_eq!(runs(false, 2), (1, false));
        assert_eq!(runs(true, RUNS + 1), (RUNS, false));
    }
}
