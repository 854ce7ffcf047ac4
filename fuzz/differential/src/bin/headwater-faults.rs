//! `make faults`: is what was mended found by sequences of calls, were it taken back?

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use clap::Parser;
use headwater_differential::faults::{self, Fault};
use headwater_differential::hunt::{Counts, Hunt};
use headwater_differential::machine::Answers;
use headwater_differential::{Machine, Mix, Script, Verdict, kept};
use headwater_e2e::chance;

/// Takes one mend of the library after the other back, and looks how long sequences by chance take to tell
#[derive(Parser)]
struct Arguments {
    /// How long for each fault
    #[arg(long, default_value_t = 600)]
    seconds: u64,
    /// The first sequence's number; HEADWATER_SEED, or the time, where it is not given
    #[arg(long)]
    seed: Option<u64>,
    /// Sequences at a time
    #[arg(long, default_value_t = 4)]
    jobs: usize,
    /// By this mix, and not by that which each fault names
    #[arg(long, value_enum)]
    mix: Option<Mix>,
    /// Faults of one mix at a time, at most: whose a sequence is that tells is found out, and the others stay
    #[arg(long, default_value_t = 1)]
    together: usize,
    /// Sequences near those that once differed, but for those that tell themselves, instead of by chance alone; over sockets
    #[arg(long)]
    near: bool,
    /// Folder for the copy of the tree, what is built of it, and the sequences that tell
    #[arg(long, default_value = "target/faults")]
    out: PathBuf,
    /// Faults, by their files' names; all if there are none
    names: Vec<String>,
}

/// Many a fault makes sequences hang; each is run several times.
const HANGS: Duration = Duration::from_secs(5);
/// As often a sequence that told runs on a library with some of the faults, until it tells of those.
const ANEW: usize = 4;

/// Faults that are planted at one time, and for how long they were looked for.
struct Planted {
    faults: Vec<Fault>,
    spent: Duration,
    sequences: u64,
    /// What sequences are near to: what tells of none of them; `None`: not looked for yet.
    near: Option<Vec<Script>>,
}

/// Libraries with faults, and sequences that run on them.
struct Workshop {
    root: PathBuf,
    tree: PathBuf,
    out: PathBuf,
    machines: Vec<Machine>,
    sound: Mutex<Machine>,
    near: bool,
}

fn main() -> ExitCode {
    match plant(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// Was all found that is known to be?
fn plant(arguments: &Arguments) -> Result<bool, String> {
    let mut chosen = faults::all()?;
    let known = |name: &&String| chosen.iter().any(|fault| fault.name == **name);
    if let Some(name) = arguments.names.iter().find(|name| !known(name)) {
        return Err(format!("{name}: no such fault"));
    }
    chosen.retain(|fault| arguments.names.is_empty() || arguments.names.contains(&fault.name));
    if let Some(mix) = arguments.mix {
        chosen.iter_mut().for_each(|fault| fault.mix = mix);
    }
    // Those of one crate one after the other: what lies below it is built once.
    chosen.sort_by(|a, b| a.file().cmp(b.file()));

    let mut workshop = Workshop::new(&arguments.out, arguments.jobs, arguments.near)?;
    let first = arguments.seed.unwrap_or_else(chance::seed);
    println!(
        "{} faults, each from seed {first} on, {} s at most",
        chosen.len(),
        arguments.seconds
    );
    println!("{:44} {:10} found", "fault", "mix");
    let groups = faults::groups(chosen, arguments.together, &workshop.tree)?;
    let planted = |faults| Planted {
        faults,
        spent: Duration::ZERO,
        sequences: 0,
        near: None,
    };
    let mut left: Vec<Planted> = groups.into_iter().rev().map(planted).collect();
    let mut all = true;
    while let Some(mut group) = left.pop() {
        match workshop.look(&mut group, first, Duration::from_secs(arguments.seconds)) {
            Err(said) => {
                all = false;
                let names: Vec<&str> = group.faults.iter().map(|f| f.name.as_str()).collect();
                println!("{}: not built:\n{said}", names.join(", "));
            }
            Ok(None) => {
                for fault in &group.faults {
                    all &= fault.missed.is_some();
                    group.tell(fault, None);
                }
            }
            Ok(Some((script, seed))) => {
                match workshop.who(&group.faults, &script)? {
                    Some(at) => {
                        let fault = group.faults.remove(at);
                        workshop.keep(&fault, &script);
                        group.tell(&fault, Some(seed));
                    }
                    // Of several together: each half by itself from here on.
                    None => {
                        let half = group.faults.split_off(group.faults.len() / 2);
                        left.push(Planted {
                            faults: half,
                            near: group.near.clone(),
                            ..group
                        });
                    }
                }
                left.push(group);
            }
        }
        left.retain(|group| !group.faults.is_empty());
    }
    Ok(all)
}

impl Planted {
    fn tell(&self, fault: &Fault, found_by: Option<u64>) {
        let told = match (found_by, &fault.missed) {
            (Some(seed), _) => format!(
                "after {:.0} s, {} sequences, by seed {seed}",
                self.spent.as_secs_f64(),
                self.sequences,
            ),
            (None, Some(why)) => format!("not in {} sequences: {why}", self.sequences),
            (None, None) => format!("NOT in {} sequences", self.sequences),
        };
        println!("{:44} {:10} {told}", fault.name, format!("{:?}", fault.mix));
    }
}

impl Workshop {
    fn new(out: &Path, jobs: usize, near: bool) -> Result<Workshop, String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        std::fs::create_dir_all(out).map_err(|e| format!("{out:?}: {e}"))?;
        let out = out.canonicalize().map_err(|e| e.to_string())?;
        let tree = out.join("tree");
        copy(&root, &tree)?;
        let sound = out.join("sound.so");
        std::fs::copy(build(&tree, &out)?, &sound).map_err(|e| e.to_string())?;
        let answers = Answers::default();
        let machine = || {
            let mut machine = Machine::of(sound.clone());
            machine.bound = HANGS;
            machine.answers = Some(answers.clone());
            machine
        };
        Ok(Workshop {
            machines: (0..jobs).map(|_| machine()).collect(),
            sound: Mutex::new(machine()),
            near,
            root,
            tree,
            out,
        })
    }

    /// Has sequences run on a library with these faults from here on.
    fn plant(&mut self, faults: &[Fault]) -> Result<(), String> {
        copy(&self.root, &self.tree)?;
        for (file, text) in faults::changed_by(faults, &self.tree)? {
            std::fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))?;
        }
        let library = self.out.join("planted.so");
        let _ = std::fs::remove_file(&library);
        std::fs::copy(build(&self.tree, &self.out)?, &library).map_err(|e| e.to_string())?;
        for machine in &mut self.machines {
            machine.change(library.clone());
        }
        Ok(())
    }

    /// Kept scripts of this mix that tell of none of the faults that are planted, where sequences are to be near such.
    fn silent(&self, mix: Mix) -> Result<Vec<Script>, String> {
        let silent = Mutex::new(Vec::new());
        if self.near {
            let same = |script: Script, verdict: &Verdict| {
                if !verdict.differs() {
                    silent
                        .lock()
                        .unwrap_or_else(|e| e.into_inner())
                        .push(script);
                }
            };
            kept::judge(&self.machines, kept::like(mix)?, |script| script, same);
        }
        Ok(silent.into_inner().unwrap_or_else(|e| e.into_inner()))
    }

    /// A sequence that differs with these faults and not without, and its number; what has run is added to the account.
    fn look(
        &mut self,
        group: &mut Planted,
        first: u64,
        bound: Duration,
    ) -> Result<Option<(Script, u64)>, String> {
        self.plant(&group.faults)?;
        let near = match group.near.take() {
            Some(near) => near,
            None => self.silent(group.faults[0].mix)?,
        };
        let begun = Instant::now();
        let found = Mutex::new(None);
        let telling = || found.lock().unwrap_or_else(|e| e.into_inner());
        let hunt = Hunt {
            mix: group.faults[0].mix,
            first: first.wrapping_add(group.sequences),
            near: &near,
            machines: &self.machines,
        };
        let counts = hunt.run(
            |_| telling().is_some() || group.spent + begun.elapsed() > bound,
            |_, seed, script, _| {
                let sound = self.sound.lock().unwrap_or_else(|e| e.into_inner());
                if !sound.judge(script).differs() {
                    telling().get_or_insert((script.clone(), seed));
                }
            },
            |_| {},
        );
        group.spent += begun.elapsed();
        group.sequences += Counts::of(&counts.run);
        group.near = Some(near);
        Ok(found.into_inner().unwrap_or_else(|e| e.into_inner()))
    }

    /// Of which of these faults a sequence tells, if it is one alone: the half that tells, and so on.
    fn who(&mut self, faults: &[Fault], script: &Script) -> Result<Option<usize>, String> {
        let mut among = 0..faults.len();
        while among.len() > 1 {
            let middle = among.start + among.len() / 2;
            let mut telling = None;
            for half in [among.start..middle, middle..among.end] {
                self.plant(&faults[half.clone()])?;
                if (0..ANEW).any(|_| self.machines[0].judge(script).differs()) {
                    telling = Some(half);
                    break;
                }
            }
            match telling {
                Some(half) => among = half,
                None => return Ok(None),
            }
        }
        Ok(Some(among.start))
    }

    fn keep(&self, fault: &Fault, script: &Script) {
        let text = format!("# {}\n{script}", fault.about);
        if let Err(e) = std::fs::write(self.out.join(format!("{}.script", fault.name)), text) {
            eprintln!("{}: {e}", fault.name);
        }
    }
}

/// The tree as it is, what is not committed too. What is the same is left alone, for cargo; what is there no more goes.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let listed = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(from)
        .output()
        .map_err(|e| format!("git: {e}"))?;
    let names = String::from_utf8_lossy(&listed.stdout);
    let names = names.split('\0').filter(|name| !name.is_empty());
    let names: HashSet<&Path> = names.map(Path::new).collect();
    keep_only(
        &|file: &Path| names.contains(file) && from.join(file).exists(),
        to,
        Path::new(""),
    );
    for name in names {
        let (source, copy) = (from.join(name), to.join(name));
        let Ok(text) = std::fs::read(&source) else {
            continue;
        };
        if std::fs::read(&copy).is_ok_and(|there| there == text) {
            continue;
        }
        let folder = copy.parent().unwrap_or(to);
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&copy, text))
            .map_err(|e| format!("{}: {e}", copy.display()))?;
    }
    Ok(())
}

/// Below a folder of `root`, which need not be there, removes files that are not to be kept, and folders that are empty then.
fn keep_only(keep: &dyn Fn(&Path) -> bool, root: &Path, below: &Path) {
    let entries = std::fs::read_dir(root.join(below)).into_iter().flatten();
    for entry in entries.flatten() {
        let name = below.join(entry.file_name());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            keep_only(keep, root, &name);
            let _ = std::fs::remove_dir(entry.path());
        } else if !keep(&name) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// The library, quickly made.
fn build(tree: &Path, out: &Path) -> Result<PathBuf, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let target = out.join("built");
    let mut command = Command::new(cargo);
    command
        .current_dir(tree)
        .args([
            "build",
            "--quiet",
            "--release",
            "--locked",
            "-p",
            "libheadwater",
        ])
        .arg("--target-dir")
        .arg(&target);
    for setting in [
        "lto='off'",
        "codegen-units=16",
        "incremental=true",
        "debug=false",
        "opt-level=1",
    ] {
        command.args(["--config", &format!("profile.release.{setting}")]);
    }
    let output = command.output().map_err(|e| format!("cargo: {e}"))?;
    match output.status.success() {
        true => Ok(target.join("release/libheadwater.so")),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}
