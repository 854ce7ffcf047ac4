//! Runs scripts, natively and with the library, and compares.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use headwater_e2e::lab;

use crate::rows;
use crate::script::Script;

/// A script takes a hundredth of it, unless it hangs.
const BOUND: Duration = Duration::from_secs(60);
/// As often a script runs natively at most, and where its answers vary: one of them is to be ours.
const NATIVE: usize = 8;
const VARYING: usize = 40;

/// Where scripts run: the program that runs them, and a folder for what the library leaves.
pub struct Machine {
    folder: tempfile::TempDir,
    carried: AtomicU64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum How {
    Native,
    Accelerated,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    Same,
    /// The kernel's own answers vary, and ours is one of them.
    Varies,
    /// It met this row of docs/deviations.md.
    Row(&'static str),
    Differs {
        native: Vec<String>,
        accelerated: Vec<String>,
    },
}

impl Verdict {
    pub fn differs(&self) -> bool {
        matches!(self, Verdict::Differs { .. })
    }

    /// Both outputs from a little before they part.
    pub fn tell(&self) -> String {
        let Verdict::Differs {
            native,
            accelerated,
        } = self
        else {
            return format!("{self:?}");
        };
        let mut text = String::new();
        for i in 0..native.len().max(accelerated.len()) {
            let (a, b) = (native.get(i), accelerated.get(i));
            let none = String::new();
            let (a, b) = (a.unwrap_or(&none), b.unwrap_or(&none));
            text += &match a == b {
                true => format!("  {a}\n"),
                false => format!("- {a}\n+ {b}\n"),
            };
        }
        text
    }
}

impl Machine {
    /// # Panics
    /// Without a C compiler, or without the library where the end-to-end tests look for it.
    pub fn new() -> Machine {
        let folder = tempfile::tempdir().expect("a folder");
        let private = std::fs::Permissions::from_mode(0o700);
        std::fs::create_dir(folder.path().join("run")).expect("our own folder");
        std::fs::set_permissions(folder.path().join("run"), private).expect("our own folder");
        compile(&crate::program::source(), &folder.path().join("steps"));
        assert!(
            lab::library().is_file(),
            "{} is missing: run `make build` first",
            lab::library().display()
        );
        Machine {
            folder,
            carried: AtomicU64::new(0),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What a script prints.
    pub fn run(&self, script: &Script, how: How, slow: bool) -> Vec<String> {
        let mut command = Command::new(self.path("steps"));
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        if how == How::Accelerated {
            command
                .env("LD_PRELOAD", lab::library())
                .env("HEADWATER_SOCKETS", "1")
                .env("HEADWATER_DIR", self.path("run"))
                .env("HEADWATER_STATS_FILE", self.path("stats"));
        }
        let mut child = command.spawn().expect("steps starts");
        let text = format!("slow {}\n{script}", u8::from(slow));
        let mut input = child.stdin.take().expect("piped");
        // Who ends early has said why.
        let _ = input.write_all(text.as_bytes());
        drop(input);
        let group = child.id() as i32;
        let mut output = child.stdout.take().expect("piped");
        let reader = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = output.read_to_string(&mut text);
            text
        });
        let begun = Instant::now();
        let ended = loop {
            match child.try_wait() {
                Ok(Some(status)) => break Some(status),
                _ if begun.elapsed() > BOUND => break None,
                _ => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        // SAFETY: a group of our own making.
        unsafe { libc::kill(-group, libc::SIGKILL) };
        let _ = child.wait();
        let mut said = reader.join().unwrap_or_default();
        match ended {
            None => said += "\ndid not end\n",
            Some(status) if !status.success() => said += &format!("\n{status}\n"),
            Some(_) => {}
        }
        let mut complaints = String::new();
        if let Some(mut err) = child.stderr.take() {
            let _ = err.read_to_string(&mut complaints);
        }
        said += &complaints;
        said.lines().map(str::to_string).collect()
    }

    /// Compares, as often as it takes to know the kernel's answers. What differs only where there is no time is no difference.
    pub fn judge(&self, script: &Script) -> Verdict {
        match self.look(script, false) {
            Verdict::Differs { .. } => {}
            other => return other,
        }
        // Once more, each step with time to have its effect.
        match self.look(script, true) {
            Verdict::Differs { .. } => self.look(script, true),
            other => other,
        }
    }

    pub fn look(&self, script: &Script, slow: bool) -> Verdict {
        let accelerated = self.run(script, How::Accelerated, slow);
        let row = self.take_statistics();
        let mut known: Vec<Vec<String>> = Vec::new();
        let mut varies = false;
        while known.len() < if varies { VARYING } else { NATIVE } {
            let native = self.run(script, How::Native, slow);
            if native == accelerated {
                return match varies {
                    true => Verdict::Varies,
                    false => Verdict::Same,
                };
            }
            let again = known.contains(&native);
            varies |= !again && !known.is_empty();
            known.push(native);
            if again && !varies && known.len() >= if slow { 3 } else { 2 } {
                break;
            }
        }
        if let Some(row) = row {
            return Verdict::Row(row);
        }
        // Where ours parts from all of theirs that began alike.
        let alike = |n: &[String]| {
            n.iter()
                .zip(&accelerated)
                .take_while(|(a, b)| a == b)
                .count()
        };
        let part = known.iter().map(|n| alike(n)).max().unwrap_or(0);
        let there = known.into_iter().find(|n| alike(n) == part);
        Verdict::Differs {
            native: there.unwrap_or_default(),
            accelerated,
        }
    }

    /// Of the last run: which row it met. Its carried connections are added to the others'.
    fn take_statistics(&self) -> Option<&'static str> {
        let lines = headwater_e2e::stats::read_of_killed(&self.path("stats"));
        let _ = std::fs::remove_file(self.path("stats"));
        let carried = lines.iter().map(|line| line.accelerated).sum();
        self.carried.fetch_add(carried, Ordering::Relaxed);
        lines.iter().find_map(|line| rows::met(&line.text))
    }

    /// How many connections the library has carried here since this was asked last.
    pub fn take_carried(&self) -> u64 {
        self.carried.swap(0, Ordering::Relaxed)
    }
}

impl Default for Machine {
    fn default() -> Machine {
        Machine::new()
    }
}

/// Builds a program from C.
///
/// # Panics
/// If the compiler complains.
pub fn compile(source: &str, to: &Path) {
    let file = to.with_extension("c");
    std::fs::write(&file, source).expect("our own folder");
    let output = Command::new("cc")
        .args([
            "-O1",
            "-g",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wno-unused-function",
            "-D_GNU_SOURCE",
        ])
        .args(["-pthread", "-o"])
        .arg(to)
        .arg(&file)
        .output()
        .expect("cc is installed");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}
