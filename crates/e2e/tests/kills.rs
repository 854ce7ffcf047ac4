//! SIGKILL under load: servers, workers and clients that are killed at any moment, again and again. Whoever is left sees what TCP
//! would show, never a wrong byte, never waits for ever, and holds no more in the end than in the beginning.
//!
//! HEADWATER_ROUNDS says how many are killed, HEADWATER_SEED repeats a run.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use headwater_e2e::census::{self, Holds, Series};
use headwater_e2e::chance::{self, Chance, variable};
use headwater_e2e::inject::{self, Plan, Ran};
use headwater_e2e::{Lab, Mode, PATIENCE, compile, lab, network, stats};
use headwater_testkit::needs;

/// Rounds of an ordinary run of the tests.
const ROUNDS: u64 = 400;
/// Nothing that is traced takes a tenth of it unless it hangs.
const BOUND: Duration = Duration::from_secs(10);
/// Workers of the server that is killed.
const WORKERS: usize = 2;
/// Ups and downs of the same work for each kill of a second: what was shared with the dead is kept for up to a second, a segment with
/// its three descriptors for each, and something for what is under way.
fn under_way(kills: u64) -> Holds {
    let segments = 32 + 2 * kills;
    Holds {
        descriptors: 3 * segments,
        segments,
        attached: 0,
        mappings: 3 * segments,
        memory: (4 << 10) + 256 * segments,
    }
}
/// What may be more when nobody has died for a while: a segment or two that each of the clients has used and may use again,
/// with its three descriptors, and memory in pieces.
const SETTLED: Holds = Holds {
    descriptors: 30,
    segments: 8,
    attached: 0,
    mappings: 28,
    memory: 4 << 10,
};

/// A process of the play, which says by lines what has happened.
struct Player {
    name: String,
    child: Child,
    said: ChildStdout,
    lines: VecDeque<String>,
    piece: String,
    /// Those of its own that it has told of.
    children: VecDeque<u32>,
}

impl Player {
    fn start(lab: &Lab, name: &str, args: &[u64]) -> Player {
        let mut c = lab.command(compile::program("kills", &[]));
        c.arg(name).args(args.iter().map(u64::to_string));
        let errors = File::options()
            .append(true)
            .create(true)
            .open(errors_of(lab));
        c.stdout(Stdio::piped())
            .stderr(errors.expect("the lab's folder is writable"));
        // SAFETY: prctl is async-signal-safe.
        unsafe {
            c.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            });
        }
        let mut child = c.spawn().expect("our own program starts");
        Player {
            name: format!("{name} {args:?}"),
            said: child.stdout.take().expect("piped"),
            child,
            lines: VecDeque::new(),
            piece: String::new(),
            children: VecDeque::new(),
        }
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Takes in what it says within `bound`. False when nothing has come.
    fn listen(&mut self, bound: Duration) -> bool {
        if !readable(self.said.as_raw_fd(), bound) {
            return false;
        }
        let mut some = [0; 4096];
        let n = self.said.read(&mut some).expect("a pipe");
        assert!(n > 0, "{} has ended by itself", self.name);
        self.piece += std::str::from_utf8(&some[..n]).expect("text");
        while let Some((line, rest)) = self.piece.split_once('\n') {
            match line.strip_prefix("child ") {
                Some(pid) => self.children.push_back(pid.parse().expect("a number")),
                None => self.lines.push_back(line.to_string()),
            }
            self.piece = rest.to_string();
        }
        true
    }

    fn await_line(&mut self, wanted: &str) {
        let begun = Instant::now();
        while !self.lines.iter().any(|l| l == wanted) {
            let left = PATIENCE.saturating_sub(begun.elapsed());
            assert!(self.listen(left), "{} does not say {wanted}", self.name);
        }
        self.lines.clear();
    }

    /// Waits until it has told of a child more than so many.
    fn await_children(&mut self, n: usize) {
        let begun = Instant::now();
        while self.children.len() < n {
            let left = PATIENCE.saturating_sub(begun.elapsed());
            assert!(self.listen(left), "{} starts nobody", self.name);
        }
    }

    /// Nothing but SIGKILL of ours has ended it.
    fn kill(&mut self) {
        self.child.kill().expect("our own child");
        let status = self.child.wait().expect("our own child");
        let signal = status.signal();
        assert_eq!(signal, Some(libc::SIGKILL), "{}: {status}", self.name);
    }

    /// Kills one of its children, the `i`th from the end, if that has not ended meanwhile.
    fn kill_child(&mut self, i: usize) -> bool {
        while self.listen(Duration::ZERO) {}
        let Some(&child) = self.children.iter().rev().nth(i) else {
            return false;
        };
        let Some(fd) = watch(child) else {
            return false;
        };
        if parent(child) != Some(self.pid()) {
            return false;
        }
        self.children.retain(|&c| c != child);
        // SAFETY: a pidfd of its child.
        unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                fd.as_raw_fd(),
                libc::SIGKILL,
                0,
                0,
            )
        };
        true
    }

    /// It ends well when it is asked to.
    fn stop(mut self) {
        // SAFETY: our own child, not reaped yet.
        unsafe { libc::kill(self.pid() as i32, libc::SIGTERM) };
        let end = watch(self.pid()).expect("not reaped yet");
        assert!(
            readable(end.as_raw_fd(), PATIENCE),
            "{} does not end",
            self.name
        );
        let status = self.child.wait().expect("our own child");
        assert!(status.success(), "{}: {status}", self.name);
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn errors_of(lab: &Lab) -> std::path::PathBuf {
    lab.path("errors")
}

fn readable(fd: i32, bound: Duration) -> bool {
    let mut p = libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one valid entry.
    unsafe { libc::poll(&mut p, 1, bound.as_millis() as i32) > 0 }
}

fn watch(pid: u32) -> Option<OwnedFd> {
    // SAFETY: makes a descriptor.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    // SAFETY: the call just made it.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let after_name = stat.rsplit(')').next()?;
    after_name.split_whitespace().nth(1)?.parse().ok()
}

/// Everybody in the play.
struct Play<'a> {
    lab: &'a Lab,
    chance: Chance,
    ports: [u64; 2],
    /// Serves from one process and is never killed, as the two clients that stay.
    server: Player,
    staying: Vec<Player>,
    /// Is killed, and so are its workers.
    master: Player,
    /// Are killed: one that blocks, one that polls, and one that shares its connection with a child, which is killed too.
    clients: Vec<Player>,
}

/// The kinds of clients.
const BLOCKING: u64 = 0;
const POLLING: u64 = 1;
const SHARING: u64 = 2;

impl<'a> Play<'a> {
    fn start(lab: &'a Lab, seed: u64) -> Play<'a> {
        let mut chance = Chance::new(seed);
        let ports = network::free_ports().map(u64::from);
        let server = Player::start(lab, "server", &[ports[0], 0]);
        network::await_listener(ports[0] as u16, || true);
        let master = start_master(lab, ports[1]);
        let kinds = [BLOCKING, POLLING];
        let mut staying = kinds.map(|k| start_client(lab, &mut chance, k, ports));
        staying.iter_mut().for_each(|c| c.await_line("ready"));
        let kinds = [BLOCKING, POLLING, SHARING];
        let clients = kinds.map(|k| start_client(lab, &mut chance, k, ports));
        Play {
            lab,
            chance,
            ports,
            server,
            staying: staying.into(),
            master,
            clients: clients.into(),
        }
    }

    /// Kills somebody, and waits until whoever was killed has been replaced and the replacement has done its part.
    fn round(&mut self) {
        match self.chance.below(20) {
            0..=1 => {
                let workers: Vec<OwnedFd> = self.workers();
                self.master.kill();
                for w in workers {
                    assert!(readable(w.as_raw_fd(), PATIENCE), "a worker stays");
                }
                self.master = start_master(self.lab, self.ports[1]);
            }
            2..=6 => {
                let which = self.chance.below(WORKERS as u64) as usize;
                if self.master.kill_child(which) {
                    self.master.await_children(WORKERS);
                }
            }
            7..=9 => {
                let sharing = &mut self.clients[SHARING as usize];
                sharing
                    .children
                    .drain(..sharing.children.len().saturating_sub(1));
                if sharing.kill_child(0) {
                    let told = sharing.children.len();
                    sharing.await_children(told + 1);
                }
            }
            _ => {
                let which = self.chance.below(3) as usize;
                self.clients[which].kill();
                let kind = which as u64;
                let mut c = start_client(self.lab, &mut self.chance, kind, self.ports);
                c.await_line("ready");
                self.clients[which] = c;
            }
        }
        let everybody = self.staying.iter_mut().chain(&mut self.clients);
        for player in everybody.chain([&mut self.server, &mut self.master]) {
            let ended = player.child.try_wait().expect("our own child");
            assert!(ended.is_none(), "{}: {ended:?}", player.name);
        }
    }

    fn workers(&mut self) -> Vec<OwnedFd> {
        while self.master.listen(Duration::ZERO) {}
        let workers = self.master.children.iter().rev().take(WORKERS);
        workers.filter_map(|&pid| watch(pid)).collect()
    }
}

fn start_master(lab: &Lab, port: u64) -> Player {
    let mut master = Player::start(lab, "server", &[port, WORKERS as u64]);
    master.await_children(WORKERS);
    master
}

/// One that says when it has exchanged so little that it may not be carried yet, or much.
fn start_client(lab: &Lab, chance: &mut Chance, kind: u64, ports: [u64; 2]) -> Player {
    let (ready, seed) = (chance.below(80), chance.below(1 << 30));
    Player::start(lab, "client", &[kind, ready, seed, ports[0], ports[1]])
}

#[test]
fn whoever_is_left_goes_on_and_holds_no_more() {
    let rounds = variable("HEADWATER_ROUNDS").unwrap_or(ROUNDS);
    let seed = chance::seed();
    println!("HEADWATER_SEED={seed}, {rounds} rounds");
    let own_memory = network::isolate_memory();
    let lab = Lab::new(Mode::Accelerated);
    let played =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| play(&lab, seed, rounds)));
    if let Err(why) = played {
        eprintln!("HEADWATER_SEED={seed}");
        eprintln!(
            "{}",
            std::fs::read_to_string(errors_of(&lab)).unwrap_or_default()
        );
        std::panic::resume_unwind(why);
    }
    if lab.isolated() {
        let begun = Instant::now();
        while !network::processes().is_empty() {
            let left = network::processes();
            assert!(begun.elapsed() < PATIENCE, "{left:?} are left");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    if own_memory {
        assert_eq!(network::memory_segments(), 0, "System V memory is left");
    }
}

fn play(lab: &Lab, seed: u64, rounds: u64) {
    let mut play = Play::start(lab, seed);
    let names = ["the server", "the blocking client", "the polling client"];
    let stays = [&play.server, &play.staying[0], &play.staying[1]].map(Player::pid);
    let mut series = names.map(Series::new);
    let before = stays.map(|pid| Holds::of(pid).expect("it stays"));
    let files = census::files(&lab.path("run"));
    let (begun, mut told) = (Instant::now(), Instant::now());
    for round in 0..rounds {
        play.round();
        if round % (rounds / 200).max(1) == 0 {
            series
                .iter_mut()
                .zip(stays)
                .for_each(|(s, pid)| s.look(pid));
        }
        if told.elapsed() > Duration::from_secs(2) {
            told = Instant::now();
            let (seconds, server) = (begun.elapsed().as_secs(), series[0].last());
            println!("round {round}, {seconds} s: the server has {server}");
        }
    }
    println!(
        "{rounds} rounds took {:.1} s",
        begun.elapsed().as_secs_f64()
    );
    let kills = rounds as f64 / begun.elapsed().as_secs_f64();
    let slack = under_way(kills.ceil() as u64);
    series.iter().for_each(|s| s.assert_flat(slack));
    for (name, (pid, before)) in names.into_iter().zip(stays.into_iter().zip(before)) {
        await_no_more_than(name, pid, before.plus(SETTLED));
    }
    assert_eq!(files, census::files(&lab.path("run")), "the runtime folder");
    // Nobody connects any more when the second server goes.
    play.staying.into_iter().for_each(Player::stop);
    drop((play.clients, play.master));
    play.server.stop();
    let lines = stats::read_of_killed(&lab.path("stats"));
    for (name, pid) in names.into_iter().zip(stays) {
        let line = lines.iter().find(|l| l.pid == pid as u64);
        let line = line.unwrap_or_else(|| panic!("{name} left no line"));
        let (n, carried, kernel) = (line.accelerated, line.shm_rx, line.kernel_rx);
        println!("{name} carried {n} connections, {carried} bytes; {kernel} by TCP");
        assert!(n > rounds / 10 && carried > 3 * kernel, "{}", line.text);
    }
}

/// What was shared with the dead is given up.
fn await_no_more_than(name: &str, pid: u32, bound: Holds) {
    let begun = Instant::now();
    loop {
        let holds = Holds::of(pid).expect("it stays");
        if holds.is_within(bound) {
            println!("{name} settles at {holds}");
            return;
        }
        let waited = begun.elapsed();
        assert!(waited < PATIENCE, "{name} keeps {holds}; bound: {bound}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Kills the process that is about to make the `at`th of the library's own calls; what is wrong then, with those who are left or
/// with the same program afterwards.
fn wrong_after_a_kill(run: impl Fn(Plan) -> Ran, at: u64) -> Option<String> {
    let before = network::memory_segments();
    let plan = Plan { at, ..KILLED };
    let ran = run(plan);
    let tell = |what: String| {
        let call = ran.fault.as_ref().map(|f| f.describe(&lab::library()));
        Some(format!("{what}\n{}{}", call.unwrap_or_default(), ran.err))
    };
    if ran.status.is_none() || !ran.fatal.is_empty() || !ran.err.is_empty() {
        return tell(format!("{}, signals {:?}", ran.ended_with(), ran.fatal));
    }
    let again = run(Plan::NONE);
    if !again.status.is_some_and(|s| s.success()) {
        return tell(format!("{} afterwards: {}", again.ended_with(), again.err));
    }
    match network::memory_segments().saturating_sub(before) {
        0 => None,
        left => tell(format!("{left} segments of System V are left")),
    }
}

const KILLED: Plan = Plan {
    kills: true,
    ..Plan::NONE
};

/// Two ends, one of which is shared for a while, and one process is killed before each of the library's own system calls: those
/// who are left end, and whoever comes afterwards finds nothing in the way and leaves nothing.
#[test]
fn killed_at_any_call() {
    needs!("root");
    assert!(network::isolate_memory(), "root may");
    let rounds = variable("HEADWATER_ROUNDS").unwrap_or(ROUNDS);
    let seed = chance::seed();
    let lab = Lab::new(Mode::Accelerated);
    let run = |plan| {
        let mut c = lab.command(compile::program("kills", &[]));
        c.arg("pair");
        inject::run(c, &lab.path(""), &lab::library(), plan, BOUND)
    };
    let plain = run(KILLED);
    assert!(plain.status.is_some_and(|s| s.success()), "{plain:?}");
    // All, or a share of them from anywhere on.
    let calls = plain.calls;
    let share = calls.min(rounds / 25);
    let (first, begun) = (Chance::new(seed).below(calls), Instant::now());
    let at = |i: u64| (first + i * calls / share) % calls + 1;
    let mut failures = Vec::new();
    let mut told = Instant::now();
    for i in 0..share {
        failures.extend(wrong_after_a_kill(run, at(i)));
        if told.elapsed() > Duration::from_secs(2) {
            told = Instant::now();
            println!("killed at {} calls, {} failures", i + 1, failures.len());
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!("killed at {share} of {calls} calls in {seconds:.1} s");
    let (n, all) = (failures.len(), failures.join("\n"));
    assert!(n == 0, "HEADWATER_SEED={seed}, {n} failures\n{all}");
    let lines = stats::read_of_killed(&lab.path("stats"));
    let carried = lines.iter().filter(|l| l.accelerated > 0).count() as u64;
    assert!(carried >= share, "{}", lab.lines_text());
}
