//! Runs scripts, natively and with the library or in several ways, and compares.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use headwater_e2e::lab;

use crate::rows;
use crate::script::{Over, Script};

mod said;

const BOUND: Duration = Duration::from_secs(60);
/// As often a script runs natively before ours is no answer of the kernel's: at first, with time for each step, and before it is
/// told of, since which of two that wait is served first seldom varies.
const AT_FIRST: usize = 2;
const SLOWLY: usize = 3;
const AT_LAST: usize = 20;
/// The same where we gave ours but once.
const SELDOM: usize = 500;
/// The same where its answers vary.
const VARYING: usize = 40;
/// How often a script that differs at times runs anew until it does.
const ANEW: usize = 8;
/// No more than [`SLOWLY`] when that has taken so long.
const LONG: Duration = Duration::from_secs(20);

/// Where scripts run: the programs that run them, and a folder for what the library leaves.
pub struct Machine {
    library: PathBuf,
    folder: tempfile::TempDir,
    /// For sockets; linked with the library, for streams and transport endpoints.
    built: [OnceLock<PathBuf>; 2],
    carried: AtomicU64,
    /// A script takes a hundredth of it, unless it hangs.
    pub bound: Duration,
    /// Keeps what scripts answer natively, for those that run with one library after the other.
    pub answers: Option<Answers>,
}

/// What the kernel answers to scripts, by their text and by whether they run slowly.
pub type Answers = Arc<Mutex<HashMap<(String, bool), Answered>>>;

#[derive(Clone, Default)]
pub struct Answered {
    known: Vec<Vec<String>>,
    varies: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    Native,
    Accelerated,
    /// Linked with the library; streams and endpoints are made in this way, by its number in `c/`.
    Way(u8),
}

impl How {
    /// What says so in a script.
    pub fn header(self) -> String {
        match self {
            How::Native | How::Accelerated => String::new(),
            How::Way(way) => format!("way {way}\n"),
        }
    }
}

impl Over {
    /// What the others are compared with.
    fn reference(self) -> How {
        match self {
            Over::Sockets => How::Native,
            Over::Streams | Over::Xti => How::Way(0),
        }
    }

    fn others(self) -> &'static [How] {
        match self {
            Over::Sockets => &[How::Accelerated],
            Over::Streams => &[How::Way(1), How::Way(2), How::Way(3)],
            Over::Xti => &[How::Way(1), How::Way(2), How::Way(3), How::Way(4)],
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    Same,
    /// The kernel's own answers vary, or those of the first way, and ours is one of them.
    Varies,
    /// It met this row of docs/deviations.md.
    Row(&'static str),
    Differs {
        how: How,
        expected: Vec<String>,
        seen: Vec<String>,
    },
}

impl Verdict {
    pub fn differs(&self) -> bool {
        matches!(self, Verdict::Differs { .. })
    }

    /// Both outputs from a little before they part.
    pub fn tell(&self) -> String {
        let Verdict::Differs {
            how,
            expected,
            seen,
        } = self
        else {
            return format!("{self:?}");
        };
        let mut text = how.header();
        for i in 0..expected.len().max(seen.len()) {
            let (a, b) = (expected.get(i), seen.get(i));
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
        Machine::of(lab::library())
    }

    /// # Panics
    /// Without a C compiler, or without this library.
    pub fn of(library: PathBuf) -> Machine {
        let folder = tempfile::tempdir().expect("a folder");
        let private = std::fs::Permissions::from_mode(0o700);
        std::fs::create_dir(folder.path().join("run")).expect("our own folder");
        std::fs::set_permissions(folder.path().join("run"), private).expect("our own folder");
        assert!(
            library.is_file(),
            "{} is missing: run `make build` first",
            library.display()
        );
        let mut machine = Machine {
            library: PathBuf::new(),
            folder,
            built: Default::default(),
            carried: AtomicU64::new(0),
            bound: BOUND,
            answers: None,
        };
        machine.change(library);
        machine
    }

    /// Goes on with another library.
    pub fn change(&mut self, library: PathBuf) {
        for name in ["libheadwater.so", "libheadwater.so.0"] {
            let _ = std::fs::remove_file(self.path(name));
            std::os::unix::fs::symlink(&library, self.path(name)).expect("our own folder");
        }
        self.library = library;
    }

    /// What runs scripts over these.
    fn program(&self, over: Over) -> &Path {
        let linked = over != Over::Sockets;
        self.built[usize::from(linked)].get_or_init(|| {
            let to = self.path(if linked { "linked" } else { "steps" });
            let folder = self.folder.path().display();
            let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../../include");
            let flags = match linked {
                false => vec![],
                true => vec![
                    include.to_string(),
                    format!("-L{folder}"),
                    "-lheadwater".to_string(),
                    format!("-Wl,-rpath,{folder}"),
                ],
            };
            compile(&source(over), &to, &flags);
            to
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What a script prints.
    pub fn run(&self, script: &Script, how: How, slow: bool) -> Vec<String> {
        let mut command = Command::new(self.program(script.over));
        command
            .current_dir(self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        match how {
            How::Native => &mut command,
            How::Accelerated => command
                .env("LD_PRELOAD", &self.library)
                .env("HEADWATER_SOCKETS", "1")
                .env("HEADWATER_DIR", self.path("run"))
                .env("HEADWATER_STATS_FILE", self.path("stats")),
            // Where a queue is full is not the same for all ways.
            How::Way(_) => command
                .env("HEADWATER_STREAMS", "hiwat=65536 lowat=16384")
                .env("HEADWATER_DIR", self.path("run")),
        };
        let mut child = command.spawn().expect("steps starts");
        let text = format!("slow {}\n{}{script}", u8::from(slow), how.header());
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
                _ if begun.elapsed() > self.bound => break None,
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
        let verdict = self.compare(script);
        self.unseen_row(script, &verdict)
            .map_or(verdict, Verdict::Row)
    }

    /// A row that no statistics tell of.
    pub fn unseen_row(&self, script: &Script, verdict: &Verdict) -> Option<&'static str> {
        let Verdict::Differs { expected, seen, .. } = verdict else {
            return None;
        };
        if let Some(row) = said::row(expected, seen) {
            return Some(row);
        }
        // Who was killed leaves none. Had it ended by exit it would not differ, or tell of a row.
        let (here, there) = (said::results(script, expected), said::results(script, seen));
        // What came behind the first difference is no reason for it, and whoever waits since then is killed with its parent,
        // though that one ends by exit.
        let first = here.iter().zip(&there).position(|(a, b)| a != b);
        if let Some(cut) = first.and_then(|first| script.until(first)) {
            let mut looks = (0..ANEW).map(|_| self.look(&cut, true));
            let told = looks.find(|v| matches!(v, Verdict::Row(_) | Verdict::Differs { .. }));
            if let Some(Verdict::Row(row)) = told {
                return Some(row);
            }
        }
        let both =
            |place: usize, word| here[place].starts_with(word) && there[place].starts_with(word);
        let gentle = script.without_kills(
            |place| both(place, " = dead"),
            |place| both(place, " = waits"),
        )?;
        match self.compare(&gentle) {
            Verdict::Same | Verdict::Varies => rows::named("killed"),
            Verdict::Row(row) => Some(row),
            Verdict::Differs { .. } => None,
        }
    }

    fn compare(&self, script: &Script) -> Verdict {
        match self.look(script, false) {
            Verdict::Differs { .. } => {}
            other => return other,
        }
        // Once more, each step with time to have its effect.
        let last = match self.look(script, true) {
            Verdict::Differs { expected, seen, .. } => match said::row(&expected, &seen) {
                Some(row) => return Verdict::Row(row),
                None => self.look_for(script, true, AT_LAST),
            },
            other => return other,
        };
        let Verdict::Differs { expected, seen, .. } = &last else {
            return last;
        };
        if said::is_about_who_comes_first(script, expected, seen) {
            return Verdict::Varies;
        }
        // What we answer seldom the kernel may answer as seldom.
        match self.look(script, true) {
            again if !again.differs() && self.is_answered(script, seen) => again,
            _ => last,
        }
    }

    /// Does the reference answer this too, if it is asked often?
    fn is_answered(&self, script: &Script, seen: &[String]) -> bool {
        let begun = Instant::now();
        let reference = script.over.reference();
        (0..SELDOM)
            .take_while(|_| begun.elapsed() < BOUND)
            .any(|_| self.run(script, reference, true) == seen)
    }

    pub fn look(&self, script: &Script, slow: bool) -> Verdict {
        self.look_for(script, slow, if slow { SLOWLY } else { AT_FIRST })
    }

    fn look_for(&self, script: &Script, slow: bool, natively: usize) -> Verdict {
        let reference = script.over.reference();
        let answers = self.answers.as_ref().filter(|_| reference == How::Native);
        let at = (script.to_string(), slow);
        let kept = answers.and_then(|a| a.lock().expect("not poisoned").get(&at).cloned());
        let mut answered = kept.unwrap_or_default();
        let verdict = self.look_beside(script, slow, natively, &mut answered);
        if let Some(answers) = answers {
            answers.lock().expect("not poisoned").insert(at, answered);
        }
        verdict
    }

    fn look_beside(
        &self,
        script: &Script,
        slow: bool,
        natively: usize,
        answered: &mut Answered,
    ) -> Verdict {
        let reference = script.over.reference();
        let Answered { known, varies } = answered;
        let begun = Instant::now();
        for &how in script.over.others() {
            let seen = self.run(script, how, slow);
            let row = self.take_statistics();
            while !known.contains(&seen) {
                let most = match *varies {
                    _ if begun.elapsed() > LONG => SLOWLY,
                    true => VARYING,
                    false => natively,
                };
                if known.len() >= most {
                    return match row {
                        Some(row) => Verdict::Row(row),
                        None => differs(how, known.clone(), seen),
                    };
                }
                let answer = self.run(script, reference, slow);
                *varies |= !known.is_empty() && !known.contains(&answer);
                known.push(answer);
            }
        }
        match *varies {
            true => Verdict::Varies,
            false => Verdict::Same,
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

/// Told against that answer of theirs which ours is like for the longest.
fn differs(how: How, known: Vec<Vec<String>>, seen: Vec<String>) -> Verdict {
    let alike = |answer: &Vec<String>| {
        let pairs = answer.iter().zip(&seen);
        pairs.take_while(|(a, b)| a == b).count()
    };
    // Of those that are alike as long, the first.
    let longest = known.iter().rev().max_by_key(|answer| alike(answer));
    Verdict::Differs {
        how,
        expected: longest.cloned().unwrap_or_default(),
        seen,
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
pub fn compile(source: &str, to: &Path, flags: &[String]) {
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
            "-Wno-unused-variable",
            "-D_GNU_SOURCE",
        ])
        .args(["-pthread", "-o"])
        .arg(to)
        .arg(&file)
        .args(flags)
        .output()
        .expect("cc is installed");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

/// The program in C that runs scripts.
pub fn source(over: Over) -> String {
    let surface = match over {
        Over::Sockets => [
            include_str!("../c/sockets.c"),
            include_str!("../c/stdio.c"),
            include_str!("../c/spawn.c"),
        ]
        .concat(),
        Over::Streams | Over::Xti => {
            [include_str!("../c/streams.c"), include_str!("../c/xti.c")].concat()
        }
    };
    [
        include_str!("../c/steps.h"),
        include_str!("../c/any.c"),
        &surface,
        include_str!("../c/steps.c"),
    ]
    .concat()
}
