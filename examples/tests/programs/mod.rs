//! Building and running the examples.
#![allow(dead_code)] // each test has a use for some of it

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// In a runtime folder of its own, for no longer than a minute.
pub fn run(program: &Path, folder: &Path) -> String {
    said(
        &command(program, folder)
            .output()
            .expect("timeout, of coreutils"),
    )
}

pub fn command(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", "60"]).arg(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("HEADWATER_") {
            command.env_remove(name);
        }
    }
    command
        .env("HEADWATER_DIR", folder.join("run"))
        .env_remove("LD_PRELOAD");
    command
}

pub fn said(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {stderr}", output.status);
    assert_eq!(stderr, "");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn folder() -> tempfile::TempDir {
    let folder = tempfile::Builder::new().prefix("headwater-").tempdir();
    folder.expect("a folder for the test")
}

pub fn build(name: &str, folder: &Path) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    build_at(&root.join(name).with_extension("c"), folder)
}

/// Against the library that `make build` left.
pub fn build_at(source: &Path, folder: &Path) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let library = headwater_testkit::library()
        .canonicalize()
        .expect("the library: make build");
    for link in ["libheadwater.so", "libheadwater.so.0"] {
        let _ = std::os::unix::fs::symlink(&library, folder.join(link));
    }
    let program = folder.join(source.file_stem().expect("a name"));
    let built = Command::new("cc")
        .args(["-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .arg(source)
        .arg("-I")
        .arg(root.join("../include"))
        .arg("-L")
        .arg(folder)
        .arg("-lheadwater")
        .arg(format!("-Wl,-rpath,{}", folder.display()))
        .output();
    said(&built.expect("cc is installed"));
    program
}
