//! What a part of the tree uses stands below it: neither crates nor the modules of one go in a circle. A module and those
//! within it are one thing to this, and test code is left out.

mod graph;
mod uses;

use std::fs;
use std::path::{Path, PathBuf};

use graph::Graph;

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn crates() -> Vec<PathBuf> {
    let repository = Path::new(REPOSITORY).canonicalize().unwrap();
    let folders = fs::read_dir(repository.join("crates")).unwrap();
    let mut crates: Vec<_> = folders.map(|folder| folder.unwrap().path()).collect();
    crates.push(repository.join("fuzz/differential"));
    crates.sort();
    crates
}

/// The files that programs and libraries begin with.
fn roots(of: &Path) -> Vec<PathBuf> {
    let source = of.join("src");
    let mut roots = vec![source.join("lib.rs"), source.join("main.rs")];
    if let Ok(programs) = fs::read_dir(source.join("bin")) {
        let programs = programs.map(|program| program.unwrap().path());
        roots.extend(programs.map(|program| match program.is_dir() {
            true => program.join("main.rs"),
            false => program,
        }));
    }
    roots.retain(|root| root.exists());
    roots
}

fn name(of: &Path) -> &str {
    of.file_name().unwrap().to_str().unwrap()
}

#[test]
fn modules_go_in_no_circle() {
    let mut wrong = Vec::new();
    for path in crates() {
        let read = |file: &Path| fs::read_to_string(file).ok();
        let roots = roots(&path);
        let circles = roots
            .iter()
            .filter_map(|root| uses::of_modules(root, &read).circle());
        wrong.extend(circles.map(|circle| format!("{}:\n{circle}", name(&path))));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn crates_go_in_no_circle() {
    let mut graph = Graph::default();
    for path in crates() {
        let manifest = path.join("Cargo.toml");
        for (i, line) in fs::read_to_string(&manifest).unwrap().lines().enumerate() {
            let Some((used, _)) = line.split_once(['.', ' ', '=']) else {
                continue;
            };
            if let Some(used) = used.strip_prefix("headwater-") {
                let at = format!("{}:{}", manifest.display(), i + 1);
                graph.add(name(&path), used, at);
            }
        }
    }
    assert!(!graph.is_empty());
    if let Some(circle) = graph.circle() {
        panic!("crates:\n{circle}");
    }
}
