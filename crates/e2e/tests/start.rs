//! What the library costs programs that have no socket or stream of ours: it is loaded, and that is all.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use headwater_e2e::compile;
use headwater_e2e::lab::library;

const PATIENCE: &str = "30";

fn run(command: &str, arguments: &[&str], variables: &[(&str, &str)], folder: &Path) -> Output {
    Command::new("timeout")
        .args(["-s", "KILL", PATIENCE, command])
        .args(arguments)
        .env("HEADWATER_DIR", folder.join("runtime"))
        .envs(variables.iter().copied())
        .current_dir(folder)
        .output()
        .unwrap_or_else(|e| panic!("{command} is needed for this test and does not start: {e}"))
}

/// How often the processes of `program` make each system call, with `preload` in them. What the loader calls for each library is
/// left out.
fn calls(program: &[&str], preload: Option<&Path>) -> BTreeMap<String, usize> {
    const LOADERS: [&str; 9] = [
        "openat",
        "read",
        "pread64",
        "newfstatat",
        "fstat",
        "mmap",
        "mprotect",
        "munmap",
        "close",
    ];
    let folder = tempfile::tempdir().expect("a folder for the test");
    let trace = folder.path().join("trace");
    let mut arguments = vec!["-f", "-qq", "-o", trace.to_str().expect("a plain name")];
    let preload = preload.map(|p| format!("LD_PRELOAD={}", p.display()));
    if let Some(preload) = &preload {
        arguments.extend(["-E", preload, "-E", "HEADWATER_SOCKETS=1"]);
    }
    arguments.extend(program);
    let output = run("strace", &arguments, &[], folder.path());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "strace is needed for this test and does not start: {said}"
    );
    let text = std::fs::read_to_string(&trace).expect("strace wrote it");
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        let call = line
            .split_once(' ')
            .map_or("", |(_, rest)| rest.trim_start());
        let Some((name, _)) = call.split_once('(') else {
            continue;
        };
        let is_name =
            !name.is_empty() && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
        if is_name && !LOADERS.contains(&name) {
            *counts.entry(name.to_string()).or_default() += 1;
        }
    }
    assert!(text.contains("exit_group"), "{text}");
    counts
}

/// Files of the library's own that a trace names.
fn says_nothing_of_ours(program: &[&str]) {
    let ours = calls(program, Some(&library()));
    let none = calls(program, None);
    assert_eq!(ours, none, "{program:?}");
}

#[test]
fn a_program_without_sockets_makes_its_own_calls_only() {
    says_nothing_of_ours(&["/bin/true"]);
    says_nothing_of_ours(&["cat", "/etc/passwd"]);
}

#[test]
fn forks_signals_and_pipes_of_a_shell_cost_no_call() {
    says_nothing_of_ours(&["sh", "-c", "trap : USR1; x=$(:); (:); (:); kill -USR1 $$"]);
}

/// An unwinder of its own, or any other library, would cost every program more than all the rest.
#[test]
fn the_library_needs_the_c_library_alone() {
    let output = Command::new("readelf")
        .args(["-dW"])
        .arg(library())
        .output();
    let output = output.expect("readelf, from the package binutils");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let needed: Vec<&str> = text.lines().filter(|l| l.contains("(NEEDED)")).collect();
    let known = |l: &&str| l.contains("[libc.so") || l.contains("[ld-linux");
    assert!(!needed.is_empty() && needed.iter().all(known), "{needed:?}");
}

#[test]
fn a_program_with_address_sanitizer_runs() {
    let program = compile::program("start", &["-fsanitize=address"]);
    let folder = tempfile::tempdir().expect("a folder for the test");
    let preload = library();
    let variables = [
        ("LD_PRELOAD", preload.to_str().expect("a plain name")),
        ("HEADWATER_SOCKETS", "1"),
    ];
    let program = program.to_str().expect("a plain name");
    let output = run("env", &[program, "listen"], &variables, folder.path());
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

/// The runtime folder can't be had, of which the log tells.
fn listens(case: &str, variables: &[(&str, &str)]) -> (String, String) {
    let program = compile::program("start", &[]);
    let folder = tempfile::tempdir().expect("a folder for the test");
    std::fs::write(folder.path().join("runtime"), "no folder").expect("our own folder");
    let preload = library();
    let mut all = vec![
        ("LD_PRELOAD", preload.to_str().expect("a plain name")),
        ("HEADWATER_SOCKETS", "1"),
    ];
    all.extend(variables);
    let program = program.to_str().expect("a plain name");
    let output = run("env", &[program, case], &all, folder.path());
    assert!(output.status.success(), "{output:?}");
    let data = std::fs::read_to_string(folder.path().join("data")).unwrap_or_default();
    (String::from_utf8_lossy(&output.stderr).into_owned(), data)
}

#[test]
fn standard_error_is_left_to_the_program() {
    assert_eq!(listens("listen", &[]).0, "");
    let asked = listens("listen", &[("HEADWATER_LOG", "warn")]).0;
    assert!(asked.starts_with("headwater["), "{asked:?}");
}

#[test]
fn a_number_that_became_a_file_is_not_standard_error() {
    let (said, data) = listens("reused", &[("HEADWATER_LOG", "debug")]);
    assert_eq!((said.as_str(), data.as_str()), ("", "mine"));
}

/// A copy that belongs to somebody else and is set-user-ID, which root can make; anybody else skips this.
#[test]
fn a_set_user_id_program_trusts_no_variable() {
    use std::os::unix::fs::{PermissionsExt, chown};
    let folder = tempfile::tempdir().expect("a folder for the test");
    let at = |name: &str| folder.path().join(name);
    let open = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode));
    open(folder.path(), 0o777).expect("our own folder");
    std::fs::copy(library(), at("libheadwater.so.0")).expect("a copy of the library");
    let built = Command::new("cc")
        .arg("-o")
        .args([
            at("own"),
            Path::new(env!("CARGO_MANIFEST_DIR")).join("c/start.c"),
        ])
        .arg(at("libheadwater.so.0"))
        .arg(format!(
            "-Wl,-rpath,{},--no-as-needed",
            folder.path().display()
        ))
        .status();
    assert!(built.expect("cc is installed").success());
    let lines = at("lines");
    let variables = [(
        "HEADWATER_STATS_FILE",
        lines.to_str().expect("a plain name"),
    )];
    let program = at("own");
    let name = program.to_str().expect("a plain name");
    let output = run("env", &[name, "listen"], &variables, folder.path());
    assert!(output.status.success() && lines.exists(), "{output:?}");
    std::fs::remove_file(&lines).expect("our own file");
    if chown(&program, Some(65534), None).is_err() || open(&program, 0o4755).is_err() {
        return;
    }
    let output = run("env", &[name, "listen"], &variables, folder.path());
    assert!(output.status.success() && !lines.exists(), "{output:?}");
}
