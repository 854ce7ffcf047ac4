//! What the library costs programs that have no socket or stream of ours: it is loaded, and that is all.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use headwater_e2e::compile;
use headwater_e2e::lab::{library, source};
use headwater_testkit::needs;

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

/// What the processes of `program` do, with `preload` in them, as strace(1) tells.
fn trace(program: &[&str], preload: Option<&Path>) -> String {
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
    std::fs::read_to_string(&trace).expect("strace wrote it")
}

/// How often each system call is made. What the loader calls for each library is left out.
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
    let text = trace(program, preload);
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
    needs!("strace");
    says_nothing_of_ours(&["/bin/true"]);
    says_nothing_of_ours(&["cat", "/etc/passwd"]);
}

#[test]
fn forks_signals_and_pipes_of_a_shell_cost_no_call() {
    needs!("strace");
    says_nothing_of_ours(&["sh", "-c", "trap : USR1; x=$(:); (:); (:); kill -USR1 $$"]);
}

/// Numbers that are given anew, in a set.
const IN_A_SET: &str = "
import os, select
with select.epoll() as members:
    for _ in range(50):
        r, w = os.pipe()
        members.register(r, select.EPOLLIN)
        os.close(r)
        os.close(w)
";

#[test]
fn members_of_a_set_that_are_none_of_ours_cost_no_call() {
    needs!("strace", "python3");
    let program = ["/usr/bin/python3", "-c", IN_A_SET];
    let all = calls(&program, Some(&library()));
    assert_eq!(all["epoll_ctl"], 50, "{all:?}");
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

/// Is the library built as it is installed? Without optimisation it has several times as much of everything.
fn is_optimised() -> bool {
    let exe = std::env::current_exe().expect("a test has a path");
    !exe.components().any(|c| c.as_os_str() == "debug")
}

/// Where a bound is passed, it was something new that every process pays for, most often a table with addresses in it.
#[test]
fn loading_has_little_to_relocate() {
    if !is_optimised() {
        return;
    }
    let output = Command::new("readelf").arg("-rW").arg(library()).output();
    let output = output.expect("readelf, from the package binutils");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let of_kind = |kind: &str| text.lines().filter(|l| l.contains(kind)).count();
    let (relative, all) = (of_kind(" R_X86_64_RELATIVE"), of_kind(" R_X86_64_"));
    let (relative, symbols) = match all {
        0 => (of_kind(" R_AARCH64_RELATIVE"), of_kind(" R_AARCH64_")),
        _ => (relative, all),
    };
    let symbols = symbols - relative;
    assert!((1..=2400).contains(&relative), "{relative} addresses");
    assert!((1..=80).contains(&symbols), "{symbols} names to look up");
}

/// Bytes from the library's first to the end of its zeroes.
fn span() -> usize {
    let output = Command::new("readelf").arg("-lW").arg(library()).output();
    let output = output.expect("readelf, from the package binutils");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let hexadecimal = |word: &str| usize::from_str_radix(word.trim_start_matches("0x"), 16);
    let ends = text.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["LOAD", _, start, _, _, length, ..] = words[..] else {
            return None;
        };
        Some(hexadecimal(start).ok()? + hexadecimal(length).ok()?)
    });
    ends.max().expect("it is loaded somewhere")
}

/// Of a page of memory, as pagemap(5) of proc tells it.
const PRESENT: u64 = 1 << 63;
const OF_A_FILE: u64 = 1 << 61;
const MAPPED_HERE_ALONE: u64 = 1 << 56;

/// KiB of the library and of the zeroes behind it that this process has written to: pages of its own. The sizes of
/// mappings don't tell it, as what stands right behind the zeroes may be one mapping with them.
fn dirtied(pid: u32, library: &Path) -> usize {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("it still waits");
    let ours = maps
        .lines()
        .find(|l| Path::new(l.split_whitespace().last().unwrap_or("")) == library);
    let start = ours
        .and_then(|l| l.split('-').next())
        .expect("it was loaded");
    let start = u64::from_str_radix(start, 16).expect("an address");
    // SAFETY: it is given nothing of ours.
    let page =
        usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).expect("pages have a size");
    let mut flags = vec![0; span().div_ceil(page) * 8];
    let pages = File::open(format!("/proc/{pid}/pagemap")).expect("it still waits");
    let first = start / page as u64 * 8;
    pages
        .read_exact_at(&mut flags, first)
        .expect("all of it is below the end of memory");
    let written = flags.as_chunks().0.iter().map(|f| u64::from_ne_bytes(*f));
    let written = written
        .filter(|f| f & (PRESENT | MAPPED_HERE_ALONE | OF_A_FILE) == PRESENT | MAPPED_HERE_ALONE);
    written.count() * page / 1024
}

#[test]
fn loading_writes_to_few_pages() {
    let program = compile::program("start", &[]);
    let folder = tempfile::tempdir().expect("a folder for the test");
    let preload = library().canonicalize().expect("it was built");
    let mut child = Command::new(program)
        .arg("wait")
        .env("LD_PRELOAD", &preload)
        .env("HEADWATER_SOCKETS", "1")
        .env("HEADWATER_DIR", folder.path().join("runtime"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a program of ours");
    let said = child.stdout.as_mut().map(|s| s.read_exact(&mut [0]));
    let dirtied = dirtied(child.id(), &preload);
    drop(child.stdin.take());
    let status = child.wait().expect("it was started");
    assert!(
        said.is_some_and(|s| s.is_ok()) && status.success(),
        "{status}"
    );
    let most = if is_optimised() { 60 } else { 512 };
    assert!((1..=most).contains(&dirtied), "{dirtied} KiB");
}

/// The number that the program `start` prints.
fn number(case: &str, preload: Option<&Path>) -> i64 {
    let program = compile::program("start", &[]);
    let folder = tempfile::tempdir().expect("a folder for the test");
    let program = program.to_str().expect("a plain name");
    let preload = preload.map_or("", |p| p.to_str().expect("a plain name"));
    let variables = [("LD_PRELOAD", preload), ("HEADWATER_SOCKETS", "1")];
    let output = run("env", &[program, case], &variables, folder.path());
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    said.trim().parse().expect("a number")
}

#[test]
fn a_child_of_fork_needs_few_pages_of_the_library() {
    let (ours, none) = (number("forks", Some(&library())), number("forks", None));
    let most = if is_optimised() { 5 } else { 12 };
    assert!(ours <= none + most, "{ours} faults, without it {none}");
}

/// The kernel's table of descriptors is copied by each fork, up to the highest.
#[test]
fn descriptors_of_the_library_are_not_the_highest_there_can_be() {
    let highest = number("highest", Some(&library()));
    assert!(highest < 2048, "{highest}");
}

#[test]
fn a_first_connection_brings_in_no_more_than_it_needs() {
    needs!("strace");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let program = compile::program("start", &[]);
    let program = program.to_str().expect("a plain name");
    let program = [program, "connect", &port.to_string()];
    let count = |text: &str| text.lines().count();
    let (ours, none) = (trace(&program, Some(&library())), trace(&program, None));
    assert!(!ours.contains("libgcc_s"), "{ours}");
    assert!(!ours.contains("memfd_create"), "{ours}");
    assert!(count(&ours) <= count(&none) + 60, "{ours}");
}

/// What a takeover needs is looked for when there is one. A program that can't reach it any more goes on by the kernel.
#[test]
fn a_client_that_gave_up_its_root_stays_with_the_kernel() {
    headwater_testkit::needs!("root");
    let program = compile::program("start", &[]);
    let folder = tempfile::tempdir().expect("a folder for the test");
    let preload = library();
    let start = |arguments: &[&str]| {
        Command::new(&program)
            .args(arguments)
            .env("LD_PRELOAD", &preload)
            .env("HEADWATER_SOCKETS", "1")
            .env("HEADWATER_DIR", folder.path().join("runtime"))
            .env("HEADWATER_STATS_FILE", folder.path().join("lines"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("a program of ours")
    };
    let mut server = start(&["echo"]);
    let mut port = String::new();
    let said = server.stdout.as_mut().expect("it is piped");
    BufReader::new(said).read_line(&mut port).expect("a line");
    let root = folder.path().join("root");
    std::fs::create_dir(&root).expect("our own folder");
    let root = root.to_str().expect("a plain name");
    let client = start(&["confined", port.trim(), root]).wait();
    let client = client.expect("it was started");
    if !client.success() {
        let _ = server.kill();
    }
    let server = server.wait().expect("it was started");
    assert!(client.success() && server.success(), "{client} {server}");
    let lines = std::fs::read_to_string(folder.path().join("lines")).expect("they were written");
    assert!(lines.contains("\"no-unwinder\":1"), "{lines}");
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

/// The program's function of that name comes before the library's, so it takes the variable that `headwater run` sets.
#[test]
fn a_program_with_address_sanitizer_and_defaults_of_its_own_runs() {
    let program = compile::program("start", &["-fsanitize=address", "-DHAS_DEFAULTS"]);
    let folder = tempfile::tempdir().expect("a folder for the test");
    let preload = library();
    let variables = [
        ("LD_PRELOAD", preload.to_str().expect("a plain name")),
        ("HEADWATER_SOCKETS", "1"),
        ("ASAN_OPTIONS", "verify_asan_link_order=0"),
    ];
    let program = program.to_str().expect("a plain name");
    let script = format!("exec {program} listen");
    for command in [["env", program, "listen"], ["bash", "-c", &script]] {
        let output = run(command[0], &command[1..], &variables, folder.path());
        assert!(output.status.success(), "{output:?}");
        assert!(output.stderr.is_empty(), "{output:?}");
    }
}

/// Starts a program where the runtime folder can't be had, of which the log tells. What came of it, and what it wrote to `data`.
fn without_folder(
    command: &str,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> (Output, String) {
    let folder = tempfile::tempdir().expect("a folder for the test");
    std::fs::write(folder.path().join("runtime"), "no folder").expect("our own folder");
    let preload = library();
    let mut all = vec![
        ("LD_PRELOAD", preload.to_str().expect("a plain name")),
        ("HEADWATER_SOCKETS", "1"),
    ];
    all.extend(variables);
    let output = run(command, arguments, &all, folder.path());
    assert!(output.status.success(), "{output:?}");
    let data = std::fs::read_to_string(folder.path().join("data")).unwrap_or_default();
    (output, data)
}

fn listens(case: &str, variables: &[(&str, &str)]) -> (String, String) {
    let program = compile::program("start", &[]);
    let program = program.to_str().expect("a plain name");
    let (output, data) = without_folder("env", &[program, case], variables);
    (String::from_utf8_lossy(&output.stderr).into_owned(), data)
}

#[test]
fn standard_error_is_left_to_the_program() {
    assert_eq!(listens("listen", &[]).0, "");
    let asked = listens("listen", &[("HEADWATER_LOG", "warn")]).0;
    assert!(asked.starts_with("headwater["), "{asked:?}");
}

/// script(1) has the program at a terminal of its own, and tells what comes there.
#[test]
fn a_person_at_a_terminal_is_told() {
    needs!("bsdutils");
    let program = compile::program("start", &[]);
    let command = format!("{} listen", program.display());
    let (output, _) = without_folder("script", &["-qec", &command, "/dev/null"], &[]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.starts_with("headwater["), "{output:?}");
}

#[test]
fn a_number_that_became_a_file_is_not_standard_error() {
    let (said, data) = listens("reused", &[("HEADWATER_LOG", "debug")]);
    assert_eq!((said.as_str(), data.as_str()), ("", "mine"));
}

#[test]
fn nobody_waits_for_the_reader_of_a_fifo() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let made = run("mkfifo", &["fifo"], &[], folder.path());
    assert!(made.status.success(), "{made:?}");
    let fifo = folder.path().join("fifo").display().to_string();
    let library = library();
    let variables = [
        ("LD_PRELOAD", library.to_str().expect("a plain name")),
        ("HEADWATER_SOCKETS", "1"),
        ("HEADWATER_LOG", "debug"),
        ("HEADWATER_LOG_FILE", &*fifo),
        ("HEADWATER_STATS_FILE", &*fifo),
    ];
    let words = ["-c", ": < /dev/tcp/127.0.0.1/1; exit 3"];
    let output = run("bash", &words, &variables, folder.path());
    assert_eq!(output.status.code(), Some(3), "{output:?}");
}

/// A copy that belongs to somebody else and is set-user-ID, which only root can make.
#[test]
fn a_set_user_id_program_trusts_no_variable() {
    headwater_testkit::needs!("root");
    use std::os::unix::fs::{PermissionsExt, chown};
    let folder = tempfile::tempdir().expect("a folder for the test");
    let at = |name: &str| folder.path().join(name);
    let open = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode));
    open(folder.path(), 0o777).expect("our own folder");
    std::fs::copy(library(), at("libheadwater.so.0")).expect("a copy of the library");
    let library = at("libheadwater.so.0");
    let linking = format!("-Wl,-rpath,{},--no-as-needed", folder.path().display());
    let libraries = [library.to_str().expect("a plain name"), &linking];
    compile::cc([], &source("c/start.c"), &at("own"), libraries);
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
    chown(&program, Some(65534), None).expect("root may");
    open(&program, 0o4755).expect("root may");
    let output = run("env", &[name, "listen"], &variables, folder.path());
    assert!(output.status.success() && !lines.exists(), "{output:?}");
}

/// Whoever starts a program says what it inherits, and may say anything: its own descriptors stay its own.
#[test]
fn what_is_said_to_be_inherited_takes_nothing_from_the_program() {
    const TEXT: &str = "read from one, written to the other\n";
    let folder = tempfile::tempdir().expect("a folder for the test");
    let [input, output] = ["input", "output"].map(|name| folder.path().join(name));
    std::fs::write(&input, TEXT).expect("a file of our own");
    std::fs::write(&output, "").expect("as above");
    let inode = |path: &Path| path.metadata().expect("it is there").ino();
    let (r, w) = (inode(&input), inode(&output));
    let said = [
        ("CONNECTIONS", format!("0,{r},0,0,0,0,0,1,0,1,0;")),
        (
            "CONNECTIONS",
            format!("1,{w},1,1,1,0,0,1,0,1,2;0,{r},-1,-1,-1,1,0,1,0,1,1;"),
        ),
        (
            "CONNECTIONS",
            "9,5,0,1,2,0,0,0,0,0,1;700,1,701,702,703,0,0,0,0,0,1;".into(),
        ),
        (
            "INHERIT",
            format!("0:0:0:1:2:2:{r}:{w};1:0:0:0:1:2:{w}:{r};"),
        ),
        (
            "INHERIT",
            format!("0:1:1:1:0:0:{r}:{w};-1:0:0:-1:-1:-1:0:0;"),
        ),
        (
            "ENDPOINTS",
            format!("0:{r}:ticlts:0:0:0:;1:{w}:ticots:0:0:0:///0/;"),
        ),
        (
            "ENDPOINTS",
            format!("9:1:udp2:1:0:0:held1/{w};0:{r}:tcp:1:0:5:1 5 0  0.{r} 1.{w};"),
        ),
        (
            "ENDPOINTS",
            format!("1:{w}:ticots:6:0:0:61/0/{r}/0/0:1:{w}:0:0:1:61:62;"),
        ),
        (
            "SCTP_INHERIT",
            format!("1,{w};0,{r},5,0,1;-1,0,6,0,0/0,{r};1,{w},5,0,0"),
        ),
    ];
    let all: Vec<(&str, &str)> = said.iter().map(|(name, text)| (*name, &text[..])).collect();
    let each = all.iter().map(std::slice::from_ref);
    for variables in each.chain([&all[..]]) {
        std::fs::write(&output, "").expect("as above");
        let status = Command::new("timeout")
            .args(["-s", "KILL", PATIENCE, "cat"])
            .env("LD_PRELOAD", library())
            .env("HEADWATER_SOCKETS", "1")
            .env("HEADWATER_DIR", folder.path().join("runtime"))
            .envs(
                variables
                    .iter()
                    .map(|(name, text)| (format!("HEADWATER_{name}"), text)),
            )
            .stdin(File::open(&input).expect("it is there"))
            .stdout(
                File::options()
                    .write(true)
                    .open(&output)
                    .expect("it is there"),
            )
            .status()
            .expect("cat");
        let copied = std::fs::read_to_string(&output).expect("it is there");
        assert!(
            status.success() && copied == TEXT,
            "{variables:?}: {status}, {copied:?}"
        );
    }
}
