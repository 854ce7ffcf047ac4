//! The C programs under `c/`, built with the system's compiler when a test first wants them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};

use crate::lab::source;

/// Builds `c/NAME.c` with `flags` and returns the program's path.
pub fn program(name: &str, flags: &[&str]) -> PathBuf {
    static BUILT: OnceLock<Mutex<HashMap<String, PathBuf>>> = OnceLock::new();
    let key = format!("{name}{}", flags.concat());
    let built = BUILT.get_or_init(Mutex::default);
    let mut built = built.lock().unwrap_or_else(|e| e.into_inner());
    built
        .entry(key)
        .or_insert_with(|| build(name, flags))
        .clone()
}

/// Builds each module of STREAMS there, NAME.c, as NAME.so of another folder.
pub fn modules(from: &Path, to: &Path) {
    let files = std::fs::read_dir(from).expect("a folder of modules");
    let files = files.map(|file| file.expect("a file of it").path());
    for source in files.filter(|file| file.extension().is_some_and(|is| is == "c")) {
        let name = source.with_extension("so");
        let to = to.join(name.file_name().expect("it is a file"));
        let flags = "-g -O1 -Wall -Wextra -Werror -fPIC -shared";
        cc(flags.split(' ').chain(["-I", &include()]), &source, &to, []);
    }
}

/// Where the headers are.
pub fn include() -> String {
    source("../../include").display().to_string()
}

/// Has the C compiler make `to` of `source`.
pub fn cc<'a>(
    flags: impl IntoIterator<Item = &'a str>,
    source: &Path,
    to: &Path,
    libraries: impl IntoIterator<Item = &'a str>,
) {
    let output = Command::new("cc")
        .args(flags)
        .arg("-o")
        .arg(to)
        .arg(source)
        .args(libraries)
        .output()
        .expect("cc is installed");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", source.display());
}

fn build(name: &str, flags: &[&str]) -> PathBuf {
    let source = source(&format!("c/{name}.c"));
    let to = folder().join(format!("{name}{}", flags.concat().replace(['/', '='], "")));
    let always = "-g -Wall -Wextra -Werror -pthread -D_GNU_SOURCE";
    let own = if flags.is_empty() { &["-O1"] } else { flags };
    let libraries = flags.iter().filter(|flag| flag.starts_with("-l"));
    cc(
        always.split(' ').chain(own.iter().copied()),
        &source,
        &to,
        libraries.copied(),
    );
    to
}

/// Programs of this test binary; removed by the next run of the same process number at the latest.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let exe = std::env::current_exe().expect("a test has a path");
        let folder = exe.with_extension("programs");
        std::fs::create_dir_all(&folder).expect("the target folder is writable");
        folder
    })
}
