//! Programs whose limits are low: of descriptors (RLIMIT_NOFILE), of memory (RLIMIT_AS), and where no thread can be made. Nothing crashes,
//! nothing waits for ever, and what could not be carried goes by the kernel, counted, or gets an error that says why.
//!
//! A program's own calls fail under such limits too: where it fails natively under the same one, or says which of its calls failed,
//! the library is not to blame.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use headwater_e2e::cases::{Area, Library};
use headwater_e2e::{Lab, Mode, compile, network, stats};

/// Cases end themselves after ten seconds.
const BOUND: Duration = Duration::from_secs(25);
/// Of the cases of an area so many are run.
const SHARE: usize = 3;

#[derive(Clone, Copy, Debug)]
enum Limit {
    Descriptors(u64),
    Memory(u64),
    NoThreads,
    /// As where `epoll_create1` finds no descriptor.
    NoSets,
}

/// Those under which the library has no thread that works while the program waits.
const ALONE: &[Limit] = &[Limit::NoThreads, Limit::NoSets];

const LIMITS: &[Limit] = &[
    Limit::Descriptors(16),
    Limit::Descriptors(32),
    Limit::Descriptors(64),
    Limit::Memory(24 << 20),
    Limit::Memory(40 << 20),
    Limit::Memory(80 << 20),
    Limit::NoThreads,
];

impl Limit {
    fn set(self, command: &mut Command) {
        // SAFETY: system calls alone.
        unsafe {
            command.pre_exec(move || {
                let done = match self {
                    Limit::Descriptors(most) => bound(libc::RLIMIT_NOFILE, most),
                    Limit::Memory(most) => bound(libc::RLIMIT_AS, most),
                    Limit::NoThreads => refuse_threads(),
                    Limit::NoSets => refuse_sets(),
                };
                match done {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            });
        }
    }
}

fn bound(what: libc::__rlimit_resource_t, most: u64) -> i32 {
    let limit = libc::rlimit {
        rlim_cur: most,
        rlim_max: most,
    };
    // SAFETY: limit is valid.
    unsafe { libc::setrlimit(what, &limit) }
}

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const ANY: u32 = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
const GIVE: u32 = libc::BPF_RET | libc::BPF_K;

fn part(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    }
}

fn error(errno: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno as u32
}

/// As RLIMIT_NPROC has it for whoever is not root: clone(2) of a thread gives EAGAIN. clone3(2), whose flags no filter sees, is not there,
/// for which the C library uses clone.
fn refuse_threads() -> i32 {
    filter(&mut [
        part(LOAD, 0, 0, 0),
        part(EQUAL, 4, 0, libc::SYS_clone3 as u32),
        part(EQUAL, 0, 4, libc::SYS_clone as u32),
        part(LOAD, 0, 0, 16),
        part(ANY, 0, 2, libc::CLONE_THREAD as u32),
        part(GIVE, 0, 0, error(libc::EAGAIN)),
        part(GIVE, 0, 0, error(libc::ENOSYS)),
        part(GIVE, 0, 0, libc::SECCOMP_RET_ALLOW),
    ])
}

fn refuse_sets() -> i32 {
    filter(&mut [
        part(LOAD, 0, 0, 0),
        part(EQUAL, 0, 1, libc::SYS_epoll_create1 as u32),
        part(GIVE, 0, 0, error(libc::EMFILE)),
        part(GIVE, 0, 0, libc::SECCOMP_RET_ALLOW),
    ])
}

fn filter(filter: &mut [libc::sock_filter]) -> i32 {
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the program is valid for the call.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            | libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program)
    }
}

#[derive(Debug)]
struct Ran {
    /// None: it did not end within the bound.
    status: Option<ExitStatus>,
    said: String,
}

impl Ran {
    fn has_crashed(&self) -> bool {
        // An assert of its own is a program's way to say which call has failed; SIGPIPE says that a peer has ended.
        let meant = |signal| match signal {
            libc::SIGABRT => self.said.contains("Assertion `"),
            signal => matches!(signal, libc::SIGALRM | libc::SIGPIPE),
        };
        let by_signal = |s: ExitStatus| s.signal().is_some_and(|signal| !meant(signal));
        self.status.is_some_and(by_signal) || self.said.contains("panicked")
    }

    /// All of it waited until it was ended. Where one process has seen an error, others may wait for it.
    fn has_hung(&self) -> bool {
        let mut lines = self.said.lines();
        let late = |line: &str| line.contains("still not done");
        self.status.is_none() || !self.said.is_empty() && lines.all(late)
    }
}

fn run(mut command: Command, folder: &Path) -> Ran {
    let path = folder.join("said");
    let file = std::fs::File::create(&path).expect("our own folder");
    command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(file.try_clone().expect("a file"))
        .stderr(file);
    let mut child = command.spawn().expect("it starts");
    let begun = Instant::now();
    let status = loop {
        match child.try_wait().expect("our own child") {
            Some(status) => break Some(status),
            None if begun.elapsed() > BOUND => break None,
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    // SAFETY: the group is the program's.
    unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) };
    let _ = child.wait();
    let said = std::fs::read(&path).unwrap_or_default();
    let said = String::from_utf8_lossy(&said).into_owned();
    Ran { status, said }
}

/// Cases of TCP, against themselves without the library.
fn sockets(file: &str, cases: &[&str]) {
    let native = Lab::new(Mode::Native);
    let lab = Lab::new(Mode::Accelerated);
    let program = compile::program(file, &[]);
    let mut wrong = Vec::new();
    for (i, case) in cases.iter().enumerate() {
        for (j, &limit) in LIMITS.iter().enumerate() {
            let folder = |lab: &Lab| {
                let folder = lab.path(&format!("{i}-{j}"));
                std::fs::create_dir(&folder).expect("the lab's folder is writable");
                folder
            };
            let (here, there) = (folder(&native), folder(&lab));
            let mut plain = native.plain(&program);
            plain.arg(case).current_dir(&here);
            limit.set(&mut plain);
            let plain = run(plain, &here);
            let mut command = lab.command(&program);
            command
                .arg(case)
                .current_dir(&there)
                .env("HEADWATER_DIR", there.join("run"))
                .env("HEADWATER_STATS_FILE", there.join("stats"));
            limit.set(&mut command);
            let ran = run(command, &there);
            let good = |ran: &Ran| ran.status.is_some_and(|s| s.success());
            let lines = stats::read(&there.join("stats"));
            let carried: u64 = lines.iter().map(|l| l.accelerated).sum();
            let counted = lines
                .iter()
                .any(|l| !l.text.contains("\"fallback_reasons\":{}"));
            // Of memory the library takes its own, and without any of it there is not even the program.
            let same = good(&ran)
                || !good(&plain)
                || match limit {
                    Limit::Memory(_) => !ran.said.is_empty(),
                    _ => false,
                };
            let silent = good(&ran) && !lines.is_empty() && carried == 0 && !counted;
            let crashed = ran.has_crashed() && !plain.has_crashed();
            if crashed || !same || silent || ran.has_hung() && !plain.has_hung() {
                wrong.push(format!(
                    "{file} {case} {limit:?}: {ran:?}\nnatively: {plain:?}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn area(suite: &str, name: &'static str, library: Library) {
    let test = format!("limits::{suite}");
    share_of_area(&test, suite, name, library, SHARE, LIMITS);
}

/// Streams, endpoints and SCTP sockets have no kernel to go back to: their calls fail, and the case says which.
fn share_of_area(
    test: &str,
    suite: &str,
    name: &'static str,
    library: Library,
    share: usize,
    limits: &[Limit],
) {
    network::isolate();
    let Some(area) = Area::build(test, suite, name, library) else {
        return;
    };
    let all = area.cases();
    let mut wrong = Vec::new();
    for case in all.iter().step_by(all.len().div_ceil(share)) {
        // By the kernel, to which they may go back, datagrams are never held up: this one would send for ever.
        if case.name().starts_with("full_until_somebody_reads") {
            continue;
        }
        for &limit in limits {
            let folder = tempfile::tempdir().expect("a folder for the test");
            let mut command = area.command(folder.path(), case.name());
            limit.set(&mut command);
            let ran = run(command, folder.path());
            if ran.has_crashed() || ran.has_hung() {
                wrong.push(format!("{suite} {name} {} {limit:?}: {ran:?}", case.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn tcp() {
    sockets("transfer", &["file", "peek"]);
    sockets("descriptors", &["fork"]);
    sockets("handed_on", &["pass"]);
    sockets("epoll", &["level", "edge"]);
    sockets("ends", &["half", "unread_exit"]);
    sockets("threads", &["duplex"]);
}

#[test]
fn streams() {
    for name in [
        "pipes",
        "pipe_holders",
        "names",
        "connld",
        "fifos",
        "messages",
        "mux",
    ] {
        area("streams", name, Library::Linked);
    }
}

#[test]
fn xti() {
    for name in [
        "connect",
        "transfer",
        "expedited",
        "datagrams",
        "datagram_flow",
        "udp2",
    ] {
        area("xti", name, Library::Linked);
    }
}

#[test]
fn sctp_sockets() {
    for name in ["opening", "messages", "forking", "successors"] {
        area("sctp_sockets", name, Library::Preloaded(&[]));
    }
    let packets = Library::Preloaded(&[("HEADWATER_SCTP_LINK", "udp")]);
    area("sctp_sockets", "opening", packets);
}

/// Who waits in a call does what the threads of the library would do.
#[test]
fn nobody_waits_for_a_thread() {
    let all = [
        ("xti", "modules"),
        ("xti", "timod"),
        ("xti", "interop"),
        ("xti", "interop_python"),
        ("streams", "signals"),
    ];
    for (suite, name) in all {
        let test = "limits::nobody_waits_for_a_thread";
        share_of_area(test, suite, name, Library::Linked, usize::MAX, ALONE);
    }
}

/// Nor does who looks over and over.
#[test]
fn what_comes_is_told_without_a_thread() {
    network::isolate();
    let packets = Library::Preloaded(&[("HEADWATER_SCTP_LINK", "udp")]);
    let test = "limits::what_comes_is_told_without_a_thread";
    passes(
        Area::build(test, "xti", "connect", Library::Linked),
        &[
            "connect_after_a_refusal@sctp_t",
            "connect_taken_back@sctp_t",
        ],
    );
    passes(
        Area::build(test, "sctp_sockets", "readiness", packets),
        &["bytes_waiting", "bytes_unsent"],
    );
}

/// Where a header is missing, the cases that are compiled with it are not run, and noted as that.
#[test]
fn cases_that_do_not_compile_here_are_not_run() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let notes = folder.path().join("notes");
    let tests = ["sctp_sockets", "what_comes_is_told_without_a_thread"];
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    for strict in ["STRICT", "CI"] {
        command.env_remove(strict);
    }
    let output = command
        .arg("--exact")
        .args(tests)
        .env("HEADWATER_WITHOUT", "libsctp-dev")
        .env("HEADWATER_NOT_RUN", &notes)
        .output()
        .expect("this program runs again");
    assert!(output.status.success(), "{output:?}");
    let noted = std::fs::read_to_string(notes).unwrap_or_default();
    for test in tests {
        let line = format!("libsctp-dev\tlimits::{test}");
        assert!(noted.lines().any(|l| l == line), "{test}: {noted}");
    }
}

fn passes(area: Option<Area>, cases: &[&str]) {
    let Some(area) = area else {
        return;
    };
    for case in cases {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let mut command = area.command(folder.path(), case);
        Limit::NoThreads.set(&mut command);
        let ran = run(command, folder.path());
        assert!(ran.status.is_some_and(|s| s.success()), "{case}: {ran:?}");
    }
}
