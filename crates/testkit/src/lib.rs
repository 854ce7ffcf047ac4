//! What the tests need beside the toolchain. A test that can't run where something is missing says so at its beginning, by
//! [`needs!`]; `make test` then names it in the table at its end. With STRICT=1, or under CI, it fails instead. What HEADWATER_WITHOUT
//! names, separated by spaces, counts as missing: so a test sees that another one asks for it.
//! Beside that, what several crates' tests do alike: [`network`] namespaces and [`processes`].

pub mod network;
pub mod processes;

use std::collections::HashMap;
use std::env;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// Ends the calling test, as one that was not run, unless everything named is there: packages of `programs.txt`, `root`
/// (network devices, other users), `mounts` (file systems of one's own below the temporary folder, which a chroot may not allow), `ipv6` (its loop-back address), `namespaces` (networks of one's own, by root or user
/// namespaces), `containers` (user namespaces too, which a chroot has not), `go` (a toolchain that compiles the peers) or
/// `node` (with a current libuv).
#[macro_export]
macro_rules! needs {
    ($($name:expr),+ $(,)?) => {{
        fn here() {}
        // The test's path, with `::here` behind it.
        let test = std::any::type_name_of_val(&here);
        if !$crate::are_there(&[$($name),+], test.trim_end_matches("::here")) {
            return;
        }
    }};
}

const PROGRAMS: &str = include_str!("../programs.txt");
/// Where Debian has programs that only root has in the path.
const ALSO_IN: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];
/// The oldest that compiles what `peers` of the end-to-end tests depend on.
/// A toolchain since then fetches the one that a module asks for.
const GO: (u32, u32) = (1, 21);
/// The oldest whose libuv knows io_uring.
const NODE: (u32, u32) = (20, 3);

/// Is all of it there? If not, it is noted that `test` was not run.
///
/// # Panics
/// If something is missing where nothing may be.
pub fn are_there(names: &[&str], test: &str) -> bool {
    let missing: Vec<&str> = names.iter().copied().filter(|n| !is_there(n)).collect();
    if missing.is_empty() {
        return true;
    }
    let missing = missing.join(" ");
    assert!(!strict(), "this test needs {missing}");
    note(test, &missing);
    false
}

/// The library under test: what HEADWATER_E2E_LIBRARY names, else what `make build` left where the calling test was built, which
/// CARGO_TARGET_DIR may have chosen.
pub fn library() -> PathBuf {
    if let Some(path) = env::var_os("HEADWATER_E2E_LIBRARY") {
        return path.into();
    }
    let caller = env::current_exe().expect("a program has a path");
    target_of(&caller).join("release/libheadwater.so")
}

/// Of TARGET/testing/deps/TEST, or TARGET/testing/PROGRAM.
fn target_of(caller: &Path) -> &Path {
    let folder = caller.parent().filter(|folder| folder.ends_with("deps"));
    let profile = folder.unwrap_or(caller).parent();
    profile
        .and_then(Path::parent)
        .expect("what cargo builds is below its target folder")
}

/// Is a missing program a failure?
fn strict() -> bool {
    let set = |name| env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0");
    set("STRICT") || set("CI")
}

/// For the table at the end of `make test`.
fn note(test: &str, missing: &str) {
    eprintln!("not run: {test} needs {missing}");
    if let Some(file) = env::var_os("HEADWATER_NOT_RUN") {
        let file = OpenOptions::new().append(true).create(true).open(file);
        let line = format!("{missing}\t{test}\n");
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        written.expect("HEADWATER_NOT_RUN names a writable file");
    }
}

fn is_there(name: &str) -> bool {
    static KNOWN: Mutex<Option<HashMap<String, bool>>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap_or_else(|e| e.into_inner());
    let known = known.get_or_insert_default();
    *known.entry(name.to_string()).or_insert_with(|| look(name))
}

fn look(name: &str) -> bool {
    let without = env::var("HEADWATER_WITHOUT").unwrap_or_default();
    if without.split(' ').any(|it| it == name) {
        return false;
    }
    match name {
        "root" => is_user_zero() && makes_networks(&[]),
        "mounts" => is_user_zero() && mounts_below(&env::temp_dir()),
        "namespaces" => makes_networks(&[]) || makes_networks(&["--map-root-user"]),
        "ipv6" => std::net::UdpSocket::bind("[::1]:0").is_ok(),
        "containers" => makes_networks(&["--user"]),
        "go" => version(&["go", "version"]).is_some_and(|found| found >= GO),
        "node" => version(&["node", "--version"]).is_some_and(|found| found >= NODE),
        package => present(probe(package)),
    }
}

/// How the presence of a package is told.
///
/// # Panics
/// For a name that is not in the list.
fn probe(package: &str) -> &'static str {
    let lines = PROGRAMS.lines().filter(|line| !line.starts_with('#'));
    let mut pairs = lines.filter_map(|line| line.split_once(' '));
    let found = pairs.find(|(name, _)| *name == package);
    found
        .unwrap_or_else(|| panic!("{package} is not in programs.txt"))
        .1
        .trim()
}

fn present(probe: &str) -> bool {
    if let Some(module) = probe.strip_prefix("python:") {
        return succeeds("/usr/bin/python3", &["-c", &format!("import {module}")]);
    }
    if probe.starts_with('/') {
        return Path::new(probe).exists();
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(ALSO_IN.map(Into::into));
    folders
        .map(|folder| folder.join(probe))
        .any(|f| f.is_file())
}

fn succeeds(program: &str, words: &[&str]) -> bool {
    let mut command = Command::new(program);
    command
        .args(words)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Is a network of one's own permitted, with these words for unshare(1)?
fn makes_networks(how: &[&str]) -> bool {
    succeeds("unshare", &[&["--net"], how, &["true"]].concat())
}

/// Can what is mounted below a folder be kept from everybody else? Some folder above it must be where something is mounted, which in a
/// chroot(2) not even its root may be.
fn mounts_below(folder: &Path) -> bool {
    let mounted = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let points: Vec<&str> = mounted
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .collect();
    let is_point = |at: &Path| points.iter().any(|point| Path::new(point) == at);
    folder.ancestors().any(is_point)
}

/// Not told by who makes networks: that may be the root of a namespace of its own.
fn is_user_zero() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    ids.is_some_and(|ids| ids.split_whitespace().nth(1) == Some("0"))
}

/// The first two numbers of what a program says of itself, as `go version go1.24.1 linux/amd64` or `v20.20.2`.
fn version(words: &[&str]) -> Option<(u32, u32)> {
    let output = Command::new(words[0]).args(&words[1..]).output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?;
    let from = said.find(|c: char| c.is_ascii_digit())?;
    let mut parts = said[from..].split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_told_by_what_it_brings() {
        assert!(present("sh") && present("/bin/sh"));
        assert!(!present("no-such-program") && !present("/no/such/file"));
        assert_eq!(probe("netcat-openbsd"), "nc.openbsd");
    }

    #[test]
    fn every_line_of_the_list_names_a_package_and_how_to_tell_it() {
        let lines = PROGRAMS.lines().filter(|line| !line.starts_with('#'));
        for line in lines {
            assert_eq!(line.split_whitespace().count(), 2, "{line}");
        }
    }

    #[test]
    fn a_test_and_a_program_of_ours_are_below_one_target_folder() {
        for caller in [
            "/t/testing/deps/calls-1",
            "/t/testing/headwater-differential",
        ] {
            assert_eq!(target_of(Path::new(caller)), Path::new("/t"));
        }
    }
}
