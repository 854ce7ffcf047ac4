//! `headwater streams modules`.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

use headwater_streams::exec::registry::{self, FOLDERS};
use serde::Serialize;

use crate::program::elf;
use crate::stat::{lines, print, table};

#[derive(clap::Args)]
pub struct Modules {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What can be pushed or opened by a name.
#[derive(Serialize, Debug, PartialEq)]
struct Module {
    name: String,
    /// "module", "driver", or "in C": which of both it is, its open procedure says.
    kind: &'static str,
    /// `None`: it comes with the library.
    file: Option<PathBuf>,
    /// Why it would not be loaded.
    problem: Option<String>,
}

impl Modules {
    pub fn execute(&self) -> Result<(), String> {
        let value = env::var(FOLDERS).unwrap_or_default();
        let mut all: Vec<Module> = built_in().collect();
        for folder in registry::folders(&value) {
            let found = in_folder(Path::new(folder));
            all.extend(found.map_err(|e| format!("{FOLDERS}: {folder}: {e}"))?);
        }
        shadow(&mut all);
        // A reader that has had enough ends us by SIGPIPE.
        let _ = print(self.json, &all, || text(&all));
        Ok(())
    }
}

fn built_in() -> impl Iterator<Item = Module> {
    headwater_streams::modules::register();
    headwater_streams::drivers::register();
    headwater_endpoints::stream::register();
    let of = |kind| {
        move |name: &str| Module {
            name: name.to_string(),
            kind,
            file: None,
            problem: None,
        }
    };
    let modules = registry::modules().into_iter().map(|entry| entry.name());
    let drivers = registry::devices().into_iter().map(|entry| entry.name());
    // A transport's has a second name, for programs that know it by that.
    let drivers = drivers.filter(|name| !name.contains('/'));
    modules.map(of("module")).chain(drivers.map(of("driver")))
}

/// The shared objects there, by their names.
fn in_folder(folder: &Path) -> std::io::Result<Vec<Module>> {
    let mut found = Vec::new();
    for file in std::fs::read_dir(folder)? {
        let file = file?.path();
        let name = file.file_stem().and_then(|name| name.to_str());
        if let Some(name) = name.filter(|_| file.extension().is_some_and(|e| e == "so")) {
            found.push(Module {
                name: name.to_string(),
                kind: "in C",
                problem: problem(&file, name),
                file: Some(file),
            });
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

fn problem(file: &Path, name: &str) -> Option<String> {
    let Some(defined) = elf::defined(file) else {
        return Some("no shared object of this machine".to_string());
    };
    let lacks = |end: &&str| !defined.contains(&format!("{name}{end}"));
    let lacking = ["info", "devflag"].iter().find(|end| lacks(end))?;
    Some(format!("has no {name}{lacking}"))
}

/// The first of a name is the one that is found.
fn shadow(all: &mut [Module]) {
    let mut first: BTreeMap<String, String> = BTreeMap::new();
    for module in all.iter_mut() {
        let whose = module.file.as_ref();
        let whose = whose.map_or("the library".to_string(), |file| file.display().to_string());
        match first.get(&module.name) {
            // A module and a driver of ours may have one name.
            Some(before) if module.file.is_some() => {
                module.problem = Some(format!("{before} has this name before it"));
            }
            Some(_) => {}
            None => {
                first.insert(module.name.clone(), whose);
            }
        }
    }
}

fn text(all: &[Module]) -> String {
    let mut table = table(&["NAME", "KIND", "FROM", "PROBLEM"]);
    for module in all {
        let from = module.file.as_ref().map(|file| file.display().to_string());
        table.add_row([
            module.name.clone(),
            module.kind.to_string(),
            from.unwrap_or_else(|| "the library".to_string()),
            module.problem.clone().unwrap_or_default(),
        ]);
    }
    lines(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_with_the_library_is_there_once() {
        let all: Vec<Module> = built_in().collect();
        let count = |name: &str| all.iter().filter(|module| module.name == name).count();
        for name in ["nullmod", "timod", "echo", "ticotsord", "sad"] {
            assert_eq!(count(name), 1, "{name}");
        }
    }

    #[test]
    fn a_file_that_would_not_be_loaded_says_why() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("junk.so"), "junk").unwrap();
        std::fs::write(folder.path().join("echo.so"), "junk").unwrap();
        std::fs::write(folder.path().join("notes.txt"), "").unwrap();
        let mut all = in_folder(folder.path()).unwrap();
        let names: Vec<&str> = all.iter().map(|module| module.name.as_str()).collect();
        assert_eq!(names, ["echo", "junk"]);
        assert_eq!(
            all[1].problem.as_deref(),
            Some("no shared object of this machine")
        );
        all.splice(0..0, built_in());
        shadow(&mut all);
        let echo = all.iter().rfind(|module| module.name == "echo").unwrap();
        assert_eq!(
            echo.problem.as_deref(),
            Some("the library has this name before it")
        );
    }
}
