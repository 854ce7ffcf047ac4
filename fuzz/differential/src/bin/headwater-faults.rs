//! `make faults`: is what was mended found by sequences of calls, were it taken back?

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use clap::Parser;
use headwater_differential::faults::{self, Fault};
use headwater_differential::hunt::{Counts, Hunt};
use headwater_differential::machine::Answers;
use headwater_differential::{Machine, Mix};
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
    /// Folder for the copy of the tree, what is built of it, and the sequences that tell
    #[arg(long, default_value = "target/faults")]
    out: PathBuf,
    /// Faults, by their files' names; all if there are none
    names: Vec<String>,
}

/// Many a fault makes sequences hang; each is run several times.
const HANGS: Duration = Duration::from_secs(5);

/// What found a fault, and when.
struct Found {
    after: Duration,
    sequences: u64,
    seed: u64,
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
    // Those of one crate one after the other: what lies below it is built once.
    chosen.sort_by(|a, b| a.file().cmp(b.file()));

    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::create_dir_all(&arguments.out).map_err(|e| format!("{:?}: {e}", arguments.out))?;
    let out = arguments.out.canonicalize().map_err(|e| e.to_string())?;
    let tree = out.join("tree");
    copy(&root, &tree)?;
    let applied = chosen.iter().map(|fault| fault.changed(&tree));
    let applied = applied.collect::<Result<Vec<_>, _>>()?;
    let sound = out.join("sound.so");
    std::fs::copy(build(&tree, &out)?, &sound).map_err(|e| e.to_string())?;

    let first = arguments.seed.unwrap_or_else(chance::seed);
    println!(
        "{} faults, each from seed {first} on, {} s at most",
        chosen.len(),
        arguments.seconds
    );
    println!("{:44} {:10} found", "fault", "mix");
    let mut all = true;
    let answers = Answers::default();
    let machine = || {
        let mut machine = Machine::of(sound.clone());
        machine.bound = HANGS;
        machine.answers = Some(answers.clone());
        machine
    };
    let mut machines: Vec<Machine> = (0..arguments.jobs).map(|_| machine()).collect();
    let sound = Mutex::new(machine());
    // The next one is built meanwhile.
    let (built, planted) = mpsc::sync_channel(0);
    std::thread::scope(|scope| {
        let (root, tree, out) = (&root, &tree, &out);
        scope.spawn(move || {
            for (fault, changed) in chosen.into_iter().zip(applied) {
                let library = build_with(&fault, changed, root, tree, out);
                if built.send((fault, library)).is_err() {
                    return;
                }
            }
        });
        for (fault, library) in planted {
            let mix = arguments.mix.unwrap_or(fault.mix);
            let told = match library {
                Err(said) => {
                    all = false;
                    format!("is not built:\n{said}")
                }
                Ok(library) => {
                    for machine in &mut machines {
                        machine.change(library.clone());
                    }
                    let hunt = Hunt {
                        mix,
                        first,
                        machines: &machines,
                    };
                    let found = look(&hunt, &sound, &fault, arguments.seconds, out);
                    all &= found.is_ok() || fault.missed.is_some();
                    let _ = std::fs::remove_file(&library);
                    tell(found, &fault)
                }
            };
            println!("{:44} {:10} {told}", fault.name, format!("{mix:?}"));
        }
    });
    Ok(all)
}

fn tell(found: Result<Found, u64>, fault: &Fault) -> String {
    match (found, &fault.missed) {
        (Ok(found), _) => format!(
            "after {:.0} s, {} sequences, by seed {}",
            found.after.as_secs_f64(),
            found.sequences,
            found.seed
        ),
        (Err(sequences), Some(why)) => format!("not in {sequences} sequences: {why}"),
        (Err(sequences), None) => format!("NOT in {sequences} sequences"),
    }
}

/// The library with a fault, in a file of its own.
fn build_with(
    fault: &Fault,
    changed: Vec<(PathBuf, String)>,
    root: &Path,
    tree: &Path,
    out: &Path,
) -> Result<PathBuf, String> {
    copy(root, tree)?;
    for (file, text) in changed {
        std::fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    let library = out.join(format!("{}.so", fault.name));
    std::fs::copy(build(tree, out)?, &library).map_err(|e| e.to_string())?;
    Ok(library)
}

/// What tells must not do so of the library without the fault. Or how many sequences told nothing.
fn look(
    hunt: &Hunt<'_>,
    sound: &Mutex<Machine>,
    fault: &Fault,
    seconds: u64,
    out: &Path,
) -> Result<Found, u64> {
    let begun = Instant::now();
    let bound = Duration::from_secs(seconds);
    let found = Mutex::new(None);
    let telling = || found.lock().unwrap_or_else(|e| e.into_inner());
    let counts = hunt.run(
        |_| telling().is_some() || begun.elapsed() > bound,
        |_, seed, script, _| {
            let after = begun.elapsed();
            let sound = sound.lock().unwrap_or_else(|e| e.into_inner());
            if !sound.judge(script).differs() {
                let text = format!("# {}\n{script}", fault.about);
                if let Err(e) = std::fs::write(out.join(format!("{}.script", fault.name)), text) {
                    eprintln!("{}: {e}", fault.name);
                }
                telling().get_or_insert((after, seed));
            }
        },
        |_| {},
    );
    let sequences = Counts::of(&counts.run);
    match *telling() {
        Some((after, seed)) => Ok(Found {
            after,
            sequences,
            seed,
        }),
        None => Err(sequences),
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
