//! Faults to plant: each file of `faults/` takes one mend of the library back.
//!
//! ```text
//! # what a program then sees
//! mix transfer                        what should find it; with `missed WHY` it does not within ten minutes, as is known
//! crates/sockets/src/recv.rs
//! <<<<
//! text that is there once
//! ====
//! what it is replaced by
//! >>>>                                and so on: several texts, of several files
//! ```

use std::path::{Path, PathBuf};

use clap::ValueEnum;

use crate::script::Mix;

#[derive(Clone, Debug)]
pub struct Fault {
    pub name: String,
    pub about: String,
    pub mix: Mix,
    /// Why sequences by chance hardly find it.
    pub missed: Option<String>,
    changes: Vec<Change>,
}

#[derive(Clone, Debug)]
struct Change {
    file: String,
    there: String,
    instead: String,
}

/// The folder that they are in.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("faults")
}

/// All of them, in the order of their names.
///
/// # Errors
/// If one can't be read: which, and why.
pub fn all() -> Result<Vec<Fault>, String> {
    let entries = std::fs::read_dir(folder()).map_err(|e| format!("faults: {e}"))?;
    let files = entries.map(|entry| Ok(entry.map_err(|e| format!("faults: {e}"))?.path()));
    let mut files = files.collect::<Result<Vec<_>, String>>()?;
    files.retain(|file| file.extension().is_some_and(|e| e == "fault"));
    files.sort();
    files.iter().map(|file| read(file)).collect()
}

fn read(file: &Path) -> Result<Fault, String> {
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    let text = std::fs::read_to_string(file).map_err(|e| format!("{name}: {e}"))?;
    parse(&name, &text).map_err(|line| format!("{name}: not understood: {line}"))
}

fn parse(name: &str, text: &str) -> Result<Fault, String> {
    let mut about = Vec::new();
    let (mut mix, mut missed) = (None, None);
    let mut changes = Vec::new();
    let mut file = "";
    let mut lines = text.lines();
    // Whole lines, with their ends.
    let until = |lines: &mut std::str::Lines<'_>, end: &str| {
        let mut text = String::new();
        for line in lines {
            if line == end {
                return Ok(text);
            }
            text += line;
            text += "\n";
        }
        Err(format!("no {end}"))
    };
    while let Some(line) = lines.next() {
        match line.split_once(' ').unwrap_or((line, "")) {
            ("", _) => {}
            ("#", text) => about.push(text),
            ("mix", which) => mix = Some(Mix::from_str(which, false)?),
            ("missed", why) => missed = Some(why.to_string()),
            ("<<<<", "") => changes.push(Change {
                file: file.to_string(),
                there: until(&mut lines, "====")?,
                instead: until(&mut lines, ">>>>")?,
            }),
            (path, "") => file = path,
            _ => return Err(line.to_string()),
        }
    }
    if changes.is_empty() || about.is_empty() {
        return Err("says nothing".to_string());
    }
    Ok(Fault {
        name: name.to_string(),
        about: about.join(" "),
        mix: mix.ok_or("no mix")?,
        missed,
        changes,
    })
}

impl Fault {
    /// The first of the files that it changes.
    pub fn file(&self) -> &str {
        &self.changes[0].file
    }

    /// Changes what is in files below this folder, which are read where they are not among these yet.
    ///
    /// # Errors
    /// If the tree is no longer one that it applies to, or the faults before have changed that place: its name, and the file.
    pub fn change(&self, root: &Path, changed: &mut Changed) -> Result<(), String> {
        for change in &self.changes {
            let wrong = |why: String| format!("{}: {}: {why}", self.name, change.file);
            let path = root.join(&change.file);
            let at = match changed.iter().position(|(file, _)| *file == path) {
                Some(at) => at,
                None => {
                    let text = std::fs::read_to_string(&path).map_err(|e| wrong(e.to_string()))?;
                    changed.push((path, text));
                    changed.len() - 1
                }
            };
            let text = &mut changed[at].1;
            match text.matches(&change.there).count() {
                1 => *text = text.replace(&change.there, &change.instead),
                n => {
                    return Err(wrong(format!(
                        "has this {n} times, not once:\n{}",
                        change.there
                    )));
                }
            }
        }
        Ok(())
    }
}

/// Files, and what is in them then.
pub type Changed = Vec<(PathBuf, String)>;

/// What all of these change together.
///
/// # Errors
/// Of the first that does not apply.
pub fn changed_by(faults: &[Fault], root: &Path) -> Result<Changed, String> {
    let mut changed = Vec::new();
    for fault in faults {
        fault.change(root, &mut changed)?;
    }
    Ok(changed)
}

/// Groups of at most so many that one mix looks for, and that can be planted at one time.
///
/// # Errors
/// Of the first that does not apply to this tree by itself.
pub fn groups(faults: Vec<Fault>, most: usize, root: &Path) -> Result<Vec<Vec<Fault>>, String> {
    let mut groups: Vec<Vec<Fault>> = Vec::new();
    for fault in faults {
        fault.change(root, &mut Vec::new())?;
        let fits = |group: &&mut Vec<Fault>| {
            let with = [&group[..], std::slice::from_ref(&fault)].concat();
            group.len() < most && group[0].mix == fault.mix && changed_by(&with, root).is_ok()
        };
        match groups.iter_mut().find(fits) {
            Some(group) => group.push(fault),
            None => groups.push(vec![fault]),
        }
    }
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fault whose place has changed is to be planted there again, or goes with what it took back.
    #[test]
    fn all_apply_to_this_tree() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let faults = all().expect("all are understood");
        assert!(!faults.is_empty());
        let wrong: Vec<String> = faults
            .iter()
            .filter_map(|fault| fault.change(&root, &mut Vec::new()).err())
            .collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn what_does_not_apply_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("a.rs"), "one\ntwo\ntwo\n").expect("our own");
        let planted = |there: &str| {
            let text = format!("# why\nmix ready\na.rs\n<<<<\n{there}\n====\nthree\n>>>>\n");
            let fault = parse("some", &text).expect("a fault");
            changed_by(&[fault], folder.path())
        };
        assert_eq!(planted("one").expect("once")[0].1, "three\ntwo\ntwo\n");
        for (there, n) in [("two", 2), ("four", 0)] {
            let said = planted(there).expect_err("not once");
            assert!(
                said.starts_with(&format!("some: a.rs: has this {n} times")),
                "{said}"
            );
        }
        assert!(parse("some", "# why\nmix none\n").is_err());
    }

    #[test]
    fn those_of_one_mix_that_leave_each_others_place_alone_are_planted_together() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("a.rs"), "one\ntwo\n").expect("our own");
        let fault = |name: &str, mix: &str, there: &str| {
            let text = format!("# why\nmix {mix}\na.rs\n<<<<\n{there}\n====\nthree\n>>>>\n");
            parse(name, &text).expect("a fault")
        };
        let all = [
            fault("a", "ready", "one"),
            fault("b", "ready", "one"),
            fault("c", "ready", "two"),
            fault("d", "transfer", "two"),
        ];
        let named = |most: usize| {
            let groups = groups(all.to_vec(), most, folder.path()).expect("they apply");
            let names = |group: &Vec<Fault>| group.iter().map(|f| f.name.as_str()).collect();
            groups.iter().map(names).collect::<Vec<String>>()
        };
        assert_eq!(named(9), ["ac", "b", "d"]);
        assert_eq!(named(1), ["a", "b", "c", "d"]);
    }
}
