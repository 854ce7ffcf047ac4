//! The library exports the libc names that it interposes, and nothing else; and it interposes every function of the C library
//! that takes or makes a descriptor, and every system call that does by its number, unless there is a reason not to.

use headwater_testkit::needs;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use syscalls::Sysno;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/libheadwater")
}

/// What the library exports: by the table of calls on a descriptor, whose lines are `which fn name, other names(...`, and the others.
fn pinned() -> BTreeSet<String> {
    let calls = std::fs::read_to_string(folder().join("src/prototypes.rs")).unwrap();
    let (_, table) = calls.split_once("$to! {\n").expect("a table");
    let (table, _) = table.split_once("\n        }").expect("its end");
    let lines = table.lines().filter_map(|l| l.split_once(" fn "));
    let names = lines.flat_map(|(_, l)| l.split('(').next().unwrap_or_default().split(", "));
    let mut all: BTreeSet<String> = names.map(String::from).collect();
    let others = std::fs::read_to_string(folder().join("exports.txt")).unwrap();
    for name in others.lines() {
        assert!(all.insert(name.into()), "{name} is there twice");
    }
    all
}

fn dynamic_symbols(of: &Path) -> String {
    let nm = Command::new("nm")
        .args(["-D", "--defined-only", "--format=posix"])
        .arg(of)
        .output()
        .expect("nm, from the package binutils");
    assert!(
        nm.status.success(),
        "nm cannot read {of:?}: run make build first"
    );
    String::from_utf8(nm.stdout).unwrap()
}

#[test]
fn the_list_of_dynamic_symbols_is_pinned() {
    needs!("binutils");
    let text = dynamic_symbols(&headwater_testkit::library());
    let exported: BTreeSet<&str> = text.lines().filter_map(|l| l.split(' ').next()).collect();
    let pinned = pinned();
    let pinned: BTreeSet<&str> = pinned.iter().map(String::as_str).collect();
    assert_eq!(
        exported, pinned,
        "a change of the list is a change of src/prototypes.rs, or of crates/libheadwater/exports.txt"
    );
}

/// Names that headers of ours give to functions, since other libraries have those by the standards' names.
#[test]
fn every_label_in_the_headers_is_exported() {
    let include = folder().join("../../include");
    let headers = ["", "sys"].map(|below| std::fs::read_dir(include.join(below)).unwrap());
    let files = headers.into_iter().flatten().map(|f| f.unwrap().path());
    let text = files.filter_map(|f| std::fs::read_to_string(f).ok());
    let text: String = text.collect();
    let labels = text.split("__asm__(\"").skip(1);
    let labels: BTreeSet<String> = labels
        .filter_map(|rest| rest.split('"').next().map(String::from))
        .collect();
    assert!(labels.contains("hw_tli_alloc"), "{labels:?}");
    let pinned = pinned();
    let unknown: Vec<&String> = labels.difference(&pinned).collect();
    assert!(unknown.is_empty(), "not exported: {unknown:?}");
}

/// Headers that declare functions which take or make descriptors.
const HEADERS: &str = "aio.h dirent.h execinfo.h fcntl.h ftw.h mntent.h mqueue.h netdb.h netinet/in.h poll.h pty.h rpc/rpc.h sched.h spawn.h stdio.h \
    stdlib.h sys/epoll.h sys/eventfd.h sys/fanotify.h sys/file.h sys/inotify.h sys/ioctl.h sys/mman.h sys/mount.h sys/pidfd.h \
    sys/select.h sys/sendfile.h sys/signalfd.h sys/socket.h sys/stat.h sys/statfs.h sys/statvfs.h sys/time.h sys/timerfd.h \
    sys/uio.h sys/wait.h sys/xattr.h termios.h unistd.h utmp.h";

/// The C library's headers as the compiler sees them, in one line.
fn declarations() -> String {
    let includes: String = HEADERS
        .split_whitespace()
        .map(|h| format!("#if __has_include(<{h}>)\n#include <{h}>\n#endif\n"))
        .collect();
    let mut cc = Command::new("cc")
        .args([
            "-E",
            "-P",
            "-D_GNU_SOURCE",
            "-D_LARGEFILE64_SOURCE",
            "-xc",
            "-",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("cc is installed");
    let mut stdin = cc.stdin.take().expect("piped");
    stdin.write_all(includes.as_bytes()).expect("cc reads");
    drop(stdin);
    let output = cc.wait_with_output().expect("cc ends");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("ASCII");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Does this parameter name descriptors?
fn is_descriptor(parameter: &str) -> bool {
    if ["pollfd", "fd_set", "aiocb"]
        .iter()
        .any(|t| parameter.contains(t))
    {
        return true;
    }
    let Some(name) = parameter.strip_prefix("int ").map(str::trim) else {
        return false;
    };
    let number = ["fd", "fildes", "sock"]
        .iter()
        .any(|part| name.contains(part));
    number && !["__nfds", "__fdtype"].contains(&name)
}

/// The name of a declared function that takes a descriptor.
fn taker(declaration: &str) -> Option<&str> {
    let (before, rest) = declaration.split_once('(')?;
    let name = before.trim().rsplit([' ', '*']).next()?;
    let parameters = rest.split(')').next()?;
    let mut parameters = parameters.split(',').map(str::trim);
    parameters.any(is_descriptor).then_some(name)
}

/// The name of which this is one more: `__pread64_chk` of `pread`.
fn plain(name: &str) -> &str {
    let mut plain = name.trim_start_matches('_');
    for prefix in ["libc_", "IO_"] {
        plain = plain.strip_prefix(prefix).unwrap_or(plain);
    }
    for suffix in ["_nocancel", "_chk", "_2", "64", "64v2"] {
        plain = plain.strip_suffix(suffix).unwrap_or(plain);
    }
    plain
}

/// The C library of this program.
fn libc_path() -> PathBuf {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("proc is mounted");
    let paths = maps.lines().filter_map(|l| l.split_whitespace().nth(5));
    let libc = paths
        .map(Path::new)
        .find(|p| p.file_name().is_some_and(|n| n == "libc.so.6"));
    libc.expect("a program of the GNU C library").to_path_buf()
}

/// "reason: names", an indented line going on with the names.
fn reasons(file: &str) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(folder().join(file)).unwrap();
    let text = text.replace("\n    ", " ");
    let lines = text
        .lines()
        .filter(|l| !l.is_empty() && !l.starts_with('#'));
    lines
        .flat_map(|l| {
            let (reason, names) = l.split_once(": ").expect("reason: names");
            let names: Vec<_> = names.split_whitespace().map(str::to_string).collect();
            names.into_iter().map(|n| (n, reason.to_string()))
        })
        .collect()
}

/// Names and places of the functions among dynamic symbols.
fn functions(symbols: &str) -> impl Iterator<Item = (&str, &str)> {
    symbols.lines().filter_map(|l| {
        let mut words = l.split(' ');
        let (name, kind, at) = (words.next()?, words.next()?, words.next()?);
        let name = name.split('@').next()?;
        matches!(kind, "T" | "W" | "i").then_some((name, at))
    })
}

/// The functions that are declared and of this kind; `known` are.
fn among<'a>(
    declared: &'a str,
    kind: fn(&'a str) -> Option<&'a str>,
    known: &[&str],
) -> BTreeSet<&'a str> {
    let found: BTreeSet<&str> = declared.split([';', '{', '}']).filter_map(kind).collect();
    for name in known {
        assert!(
            found.contains(name),
            "the headers are not understood: {name}"
        );
    }
    found
}

#[test]
fn every_function_that_takes_a_descriptor_is_interposed_or_has_a_reason_not_to_be() {
    needs!("binutils");
    let text = dynamic_symbols(&libc_path());
    let functions: Vec<(&str, &str)> = functions(&text).collect();
    let pinned = pinned();
    let exported: BTreeSet<&str> = pinned.iter().map(String::as_str).collect();
    let reasons = reasons("not-interposed.txt");

    let declared = declarations();
    let known = [
        "read",
        "sendmmsg",
        "copy_file_range",
        "epoll_pwait2",
        "aio_read",
        "poll",
    ];
    let takers = among(&declared, taker, &known);

    let takes = |name: &str| {
        takers.contains(name) || takers.contains(plain(name)) || exported.contains(name)
    };
    let places: BTreeSet<&str> = functions
        .iter()
        .filter(|(name, _)| takes(name) || reasons.contains_key(*name))
        .map(|(_, at)| *at)
        .collect();
    let unexplained: BTreeSet<&str> = functions
        .iter()
        .filter(|(name, at)| takes(name) || places.contains(at))
        .map(|(name, _)| *name)
        .filter(|name| !exported.contains(name) && !reasons.contains_key(*name))
        .collect();
    assert!(
        unexplained.is_empty(),
        "to be interposed, or to have a reason in crates/libheadwater/not-interposed.txt: {unexplained:?}"
    );
    let both: Vec<&String> = reasons
        .keys()
        .filter(|n| exported.contains(n.as_str()))
        .collect();
    assert!(both.is_empty(), "interposed after all: {both:?}");
}

/// Does this function make a descriptor, by its name and by what it returns? What only sounds so has its reason too.
fn maker(declaration: &str) -> Option<&str> {
    let (before, _) = declaration.split_once('(')?;
    let name = before.trim().rsplit([' ', '*']).next()?;
    let returns = before.trim().strip_suffix(name)?.trim();
    let returns = returns.trim_start_matches("extern ");
    let words = [
        "open", "creat", "temp", "tmpf", "dup", "pipe", "socket", "accept", "init", "epoll", "pty",
        "getpt", "_tty", "daemon", "rcmd", "rexec", "resvport", "fspick", "fsmount", "fd_",
        "pidfd", "eventfd", "signalfd", "shm_", "clone",
    ];
    let file = ["FILE *", "__FILE *", "DIR *"].contains(&returns);
    let number = ["int", "mqd_t", "pid_t", "__pid_t"].contains(&returns);
    (file || number && words.iter().any(|w| name.contains(w))).then_some(name)
}

#[test]
fn every_function_that_makes_a_descriptor_is_interposed_or_has_a_reason_not_to_be() {
    needs!("binutils");
    let text = dynamic_symbols(&libc_path());
    let there: BTreeMap<&str, &str> = functions(&text).collect();
    let pinned = pinned();
    let exported: BTreeSet<&str> = pinned.iter().map(String::as_str).collect();
    let not_makers = reasons("not-makers.txt");
    let reasons = reasons("not-interposed.txt");

    let declared = declarations();
    let known = ["fopen", "opendir", "mkostemps64", "pidfd_open", "openpty"];
    let makers = among(&declared, maker, &known);
    let places: BTreeSet<&str> = makers
        .iter()
        .filter_map(|m| there.get(m).copied())
        .collect();
    let unexplained: BTreeSet<&str> = there
        .iter()
        .filter(|(name, at)| makers.contains(*name) || places.contains(*at))
        .map(|(name, _)| *name)
        .filter(|n| {
            !exported.contains(n) && !not_makers.contains_key(*n) && !reasons.contains_key(*n)
        })
        .collect();
    assert!(
        unexplained.is_empty(),
        "to be interposed, or to have a reason in crates/libheadwater/not-makers.txt: {unexplained:?}"
    );
    let both: Vec<&String> = not_makers
        .keys()
        .filter(|n| exported.contains(n.as_str()) || reasons.contains_key(*n))
        .collect();
    assert!(
        both.is_empty(),
        "interposed after all, or there twice: {both:?}"
    );
}

#[test]
fn every_system_call_by_number_is_served_or_has_a_reason_not_to_be() {
    let files = ["src/prototypes.rs", "src/round.rs"];
    let text = files.map(|f| std::fs::read_to_string(folder().join(f)).unwrap());
    let text = text.concat();
    let served: BTreeSet<&str> = text
        .split("SYS_")
        .skip(1)
        .filter_map(|rest| {
            rest.split(|c: char| !c.is_alphanumeric() && c != '_')
                .next()
        })
        .collect();
    let reasons = reasons("not-by-number.txt");
    let all: BTreeSet<&str> = (0..Sysno::table_size())
        .filter_map(Sysno::new)
        .map(|nr| nr.name())
        .collect();
    let unexplained: Vec<&&str> = all
        .iter()
        .filter(|n| !served.contains(*n) && !reasons.contains_key(**n))
        .collect();
    assert!(
        unexplained.is_empty(),
        "to be served by src/prototypes.rs or src/round.rs, or to have a reason in crates/libheadwater/not-by-number.txt: {unexplained:?}"
    );
    let wrong: Vec<&String> = reasons
        .keys()
        .filter(|n| served.contains(n.as_str()) || !all.contains(n.as_str()))
        .collect();
    assert!(
        wrong.is_empty(),
        "served after all, or no system call: {wrong:?}"
    );
}

/// The words within the parentheses that `rest` begins inside of.
fn words_within(rest: &str) -> impl Iterator<Item = &str> {
    let mut depth = 1;
    let end = rest.find(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth == 0
    });
    let within = &rest[..end.expect("balanced")];
    within.split(|c: char| !c.is_alphanumeric() && c != '_')
}

#[test]
fn every_export_is_called_on_a_small_stack_or_has_a_reason_not_to_be() {
    let c = Path::new(env!("CARGO_MANIFEST_DIR")).join("c");
    let programs = ["handlers.c", "handlers_peers.c"];
    let text = programs.map(|f| std::fs::read_to_string(c.join(f)).unwrap());
    let text = text.concat();
    let callers = [
        "DO(", "WORKS(", "INSIDE(", "MAKES(", "SETS(", "JUMPS(", "STARTS(", "TRIES(",
    ];
    let called: BTreeSet<&str> = callers
        .iter()
        .flat_map(|m| text.split(m).skip(1).flat_map(words_within))
        .collect();
    let pinned = pinned();
    let exported: BTreeSet<&str> = pinned.iter().map(String::as_str).collect();
    let reasons = reasons("not-in-handlers.txt");
    let explained: BTreeSet<&str> = reasons.keys().map(String::as_str).collect();
    let uncalled: BTreeSet<&str> = exported.difference(&called).copied().collect();
    assert_eq!(
        uncalled, explained,
        "what is not called in handlers.c is explained in crates/libheadwater/not-in-handlers.txt"
    );
}
