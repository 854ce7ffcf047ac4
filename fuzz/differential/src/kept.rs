//! Scripts that once differed.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use headwater_e2e::network;

use crate::script::{Mix, Over, Script};
use crate::{Machine, Verdict, make};

/// All of them, and their files.
///
/// # Errors
/// If one can't be read: which, and why.
pub fn all() -> Result<Vec<(PathBuf, Script)>, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds");
    let entries = std::fs::read_dir(folder).map_err(|e| format!("seeds: {e}"))?;
    let files = entries.map(|entry| Ok(entry.map_err(|e| format!("seeds: {e}"))?.path()));
    let mut files = files.collect::<Result<Vec<_>, String>>()?;
    files.sort();
    files.into_iter().map(read).collect()
}

fn read(file: PathBuf) -> Result<(PathBuf, Script), String> {
    let wrong = |why: String| format!("{}: {why}", file.display());
    let text = std::fs::read_to_string(&file).map_err(|e| wrong(e.to_string()))?;
    let script = text.parse().map_err(wrong)?;
    Ok((file, script))
}

/// Those to which sequences of a mix can be near: over sockets, and of steps that the mix has.
///
/// # Errors
/// As for [`all`].
pub fn like(mix: Mix) -> Result<Vec<Script>, String> {
    if mix.over() != Over::Sockets {
        return Ok(Vec::new());
    }
    let words = make::words(mix);
    let mut scripts: Vec<Script> = all()?.into_iter().map(|(_, script)| script).collect();
    scripts.retain(|script| {
        let mut words_of = script.steps.iter().map(|step| &step.name);
        script.over == mix.over() && words_of.all(|word| words.contains(word))
    });
    Ok(scripts)
}

/// What each does, on several machines at a time, each in a network of its own.
pub fn judge<T: Send>(
    machines: &[Machine],
    scripts: impl IntoIterator<Item = T>,
    script: impl Fn(&T) -> &Script + Sync,
    told: impl Fn(T, &Verdict) + Sync,
) {
    let scripts: Vec<T> = scripts.into_iter().collect();
    let left = Mutex::new(scripts.into_iter());
    let next = || left.lock().unwrap_or_else(|e| e.into_inner()).next();
    let one_after_the_other = &|machine: &Machine| {
        network::isolate();
        while let Some(one) = next() {
            let verdict = machine.judge(script(&one));
            told(one, &verdict);
        }
    };
    std::thread::scope(|scope| {
        for machine in machines {
            scope.spawn(move || one_after_the_other(machine));
        }
    });
}
