//! `#!` lines: which program a script is run by.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The kernel looks at no more of a `#!` line, and follows no more interpreters that are scripts themselves.
const LINE: usize = 256;
const DEPTH: usize = 5;

/// What runs in the end: `path`, or the interpreter that its `#!` line leads to.
pub fn image(path: &Path) -> PathBuf {
    let mut image = path.to_path_buf();
    for _ in 0..DEPTH {
        match interpreter(&image) {
            Some(next) => image = next,
            None => break,
        }
    }
    image
}

fn interpreter(path: &Path) -> Option<PathBuf> {
    let mut head = Vec::new();
    let file = File::open(path).ok()?;
    file.take(LINE as u64).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|&b| b == b'\n').next()?;
    let mut words = line
        .split(|b| b.is_ascii_whitespace())
        .filter(|word| !word.is_empty());
    let interpreter = Path::new(OsStr::from_bytes(words.next()?));
    if interpreter.file_name() != Some(OsStr::new("env")) {
        return Some(interpreter.to_path_buf());
    }
    // `env` keeps the environment, so what counts is the program that it finds.
    let wanted = words.find(|word| !word.starts_with(b"-") && !word.contains(&b'='));
    let found = wanted.and_then(|word| super::find(OsStr::from_bytes(word)).ok());
    Some(found.unwrap_or_else(|| interpreter.to_path_buf()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn script(text: &str) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("script");
        fs::write(&path, text).unwrap();
        (dir, path)
    }

    #[test]
    fn a_script_is_its_interpreter() {
        let (_dir, path) = script("#! /bin/sh -e\necho\n");
        assert_eq!(image(&path), Path::new("/bin/sh"));
    }

    #[test]
    fn env_leads_to_what_it_finds() {
        let (_dir, path) = script("#!/usr/bin/env -S A=1 sh\n");
        assert_eq!(image(&path), super::super::find(OsStr::new("sh")).unwrap());
    }

    #[test]
    fn a_script_that_names_itself_ends() {
        let (_dir, path) = script("");
        fs::write(&path, format!("#!{}\n", path.display())).unwrap();
        assert_eq!(image(&path), path);
    }
}
