//! `make fuzz`: sequences of calls by chance, natively and under Headwater.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use headwater_differential::hunt::{Counts, Hunt};
use headwater_differential::{Machine, Mix, Script, Verdict, kept, make, program, shrink};
use headwater_e2e::{chance, network};
use indicatif::{ProgressBar, ProgressStyle};

/// Runs sequences of calls natively and under Headwater, and tells where they differ
#[derive(Parser)]
struct Arguments {
    /// How long
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// How many, however long that takes: the same ones each time where a seed is given
    #[arg(long, conflicts_with = "seconds")]
    sequences: Option<u64>,
    /// What the sequences are made of
    #[arg(long, value_enum, default_value_t = Mix::All)]
    mix: Mix,
    /// The first sequence's number; HEADWATER_SEED, or the time, where it is not given
    #[arg(long)]
    seed: Option<u64>,
    /// Sequences at a time
    #[arg(long, default_value_t = 4)]
    jobs: usize,
    /// Folder for what differs: a script and a program in C each
    #[arg(long, default_value = "differences")]
    out: PathBuf,
    /// Stop after so many differences
    #[arg(long, default_value_t = 1)]
    most: usize,
    /// Sequences near those that once differed, changed a little, instead of by chance alone; over sockets
    #[arg(long)]
    near: bool,
    /// Print the sequence of the seed, and run nothing
    #[arg(long, requires = "seed")]
    print: bool,
    /// Scripts to run instead of sequences by chance
    scripts: Vec<PathBuf>,
}

fn main() -> std::process::ExitCode {
    let arguments = Arguments::parse();
    let near = match kept_near(&arguments) {
        Ok(near) => near,
        Err(why) => {
            eprintln!("{why}");
            return std::process::ExitCode::FAILURE;
        }
    };
    if let (true, Some(seed)) = (arguments.print, arguments.seed) {
        print!("{}", make::near(arguments.mix, seed, &near));
        return std::process::ExitCode::SUCCESS;
    }
    network::isolate();
    let found = match arguments.scripts.is_empty() {
        true => search(&arguments, &near),
        false => replay(&arguments.scripts),
    };
    match found {
        0 => std::process::ExitCode::SUCCESS,
        _ => std::process::ExitCode::FAILURE,
    }
}

fn replay(scripts: &[PathBuf]) -> usize {
    let machine = Machine::new();
    let differs = scripts.iter().filter(|file| {
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(e) => {
                eprintln!("{}: {e}", file.display());
                return true;
            }
        };
        let script: Script = match text.parse() {
            Ok(script) => script,
            Err(e) => {
                eprintln!("{}: {e}", file.display());
                return true;
            }
        };
        let verdict = machine.judge(&script);
        match &verdict {
            Verdict::Differs { .. } => println!("{} differs:\n{}", file.display(), verdict.tell()),
            other => println!("{}: {other:?}", file.display()),
        }
        verdict.differs()
    });
    differs.count()
}

/// What sequences are to be near to, if they are.
fn kept_near(arguments: &Arguments) -> Result<Vec<Script>, String> {
    if !arguments.near {
        return Ok(Vec::new());
    }
    match kept::like(arguments.mix)? {
        near if near.is_empty() => Err(format!(
            "--near: nothing is kept that mix {:?} could be near to: take one over sockets",
            arguments.mix
        )),
        near => Ok(near),
    }
}

fn search(arguments: &Arguments, near: &[Script]) -> usize {
    let first = arguments.seed.unwrap_or_else(chance::seed);
    let beside = if near.is_empty() {
        ""
    } else {
        ", near kept ones"
    };
    println!("mix {:?}{beside}, from seed {first} on", arguments.mix);
    let (length, unit) = match arguments.sequences {
        Some(sequences) => (sequences, ""),
        None => (arguments.seconds, " s"),
    };
    let bar = ProgressBar::new(length);
    let template = format!("{{bar:30}} {{pos}}/{{len}}{unit}  {{msg}}");
    bar.set_style(ProgressStyle::with_template(&template).expect("a template"));
    let begun = Instant::now();
    let over = |seed: u64| match arguments.sequences {
        Some(sequences) => seed - first >= sequences,
        None => begun.elapsed() > Duration::from_secs(arguments.seconds),
    };
    let found = AtomicUsize::new(0);
    let machines: Vec<Machine> = (0..arguments.jobs).map(|_| Machine::new()).collect();
    let hunt = Hunt {
        mix: arguments.mix,
        first,
        near,
        machines: &machines,
    };
    let counts = hunt.run(
        |seed| over(seed) || found.load(Ordering::Relaxed) >= arguments.most,
        |machine, seed, script, verdict| {
            let name = format!("{seed}");
            found.fetch_add(1, Ordering::Relaxed);
            say(&bar, &format!("seed {seed} differs, making it shorter"));
            keep(arguments, machine, &name, script, verdict, &bar);
        },
        |counts| {
            let position = match arguments.sequences {
                Some(_) => Counts::of(&counts.run),
                None => begun.elapsed().as_secs(),
            };
            bar.set_position(position.min(length));
            bar.set_message(format!(
                "{} sequences, {} of them not the same natively, {} ends carried",
                Counts::of(&counts.run),
                Counts::of(&counts.varied),
                Counts::of(&counts.carried)
            ));
        },
    );
    bar.finish_and_clear();
    let found = found.into_inner();
    println!(
        "{} sequences in {} s, {} of them not the same natively, {} in rows of docs/deviations.md, {} ends carried, {} differ",
        Counts::of(&counts.run),
        begun.elapsed().as_secs(),
        Counts::of(&counts.varied),
        Counts::of(&counts.in_rows),
        Counts::of(&counts.carried),
        found
    );
    found
}

/// Makes it shorter, and writes it down.
fn keep(
    arguments: &Arguments,
    machine: &Machine,
    name: &str,
    whole: &Script,
    first: &Verdict,
    bar: &ProgressBar,
) {
    let short = shrink::shrink(machine, whole, |steps| {
        bar.set_message(format!("seed {name}: {steps} steps"));
    });
    let verdict = machine.look(&short, true);
    if !verdict.differs() {
        let told = first.tell();
        say(
            bar,
            &format!("seed {name}: not seen again, but this:\n{told}"),
        );
        return;
    }
    let told = verdict.tell();
    say(
        bar,
        &format!("seed {name}, mix {:?}:\n{told}", arguments.mix),
    );
    let write = |extension: &str, text: String| {
        let file = arguments.out.join(format!("{name}.{extension}"));
        if let Err(e) =
            std::fs::create_dir_all(&arguments.out).and_then(|()| std::fs::write(&file, text))
        {
            say(bar, &format!("{}: {e}", file.display()));
        }
    };
    write("script", short.to_string());
    if let Verdict::Differs { how, .. } = verdict {
        write("c", program::of(&short, how, &told));
    }
}

/// The bar itself says nothing where there is no terminal.
fn say(bar: &ProgressBar, text: &str) {
    bar.suspend(|| println!("{text}"));
}
