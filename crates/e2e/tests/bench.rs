//! What the user of `headwater bench` sees where things go wrong: programs that are missing, die or are killed, and ports
//! that others take. What is concerned says so, the rest goes on. And what is left when it is interrupted, and of arms and
//! samples that were asked for.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use headwater_e2e::{Lab, Mode, PATIENCE, lab};
use headwater_testkit::needs;
use serde_json::Value;

const ROUNDS: usize = 2;

/// A bench of its own, whose programs stand in one folder.
struct Bench {
    lab: Lab,
    programs: PathBuf,
}

impl Bench {
    fn new() -> Bench {
        let lab = Lab::new(Mode::Native);
        let programs = lab.path("programs");
        std::fs::create_dir(&programs).unwrap();
        Bench { lab, programs }
    }

    /// A script in place of a program. `$REAL` is the one that is installed.
    fn stand_in(&self, name: &str, script: &str) {
        let path = self.programs.join(name);
        let real = installed(name);
        let text = format!("#!/bin/sh\nREAL={}\n{script}\n", real.display());
        std::fs::write(&path, text).unwrap();
        let all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, all).unwrap();
    }

    fn link(&self, name: &str) {
        std::os::unix::fs::symlink(installed(name), self.programs.join(name)).unwrap();
    }

    /// Measures cells in one placement, and shows what it says. Programs are looked for where ours are, and where shells find
    /// theirs if `elsewhere`.
    fn run(&self, cells: &[&str], elsewhere: bool) -> Said {
        Said(self.lab.run(self.command(cells, elsewhere)).text())
    }

    fn command(&self, cells: &[&str], elsewhere: bool) -> Command {
        let mut command = self.lab.plain(beside_library("headwater"));
        command.arg("bench");
        command.args(cells.iter().map(|cell| format!("{cell}/same")));
        command.arg("--out").arg(self.lab.path("out"));
        let mut path = vec![self.programs.clone()];
        if elsewhere {
            path.extend(["/usr/bin", "/bin"].map(PathBuf::from));
        }
        command
            .env("PATH", std::env::join_paths(path).unwrap())
            .env("HEADWATER_LIBRARY", lab::library())
            .env("HEADWATER_DIR", self.lab.path("run"))
            .env("HEADWATER_BENCH_PAIRS", ROUNDS.to_string())
            .env("HEADWATER_BENCH_SECONDS", "0.1")
            .env("HEADWATER_BENCH_ARMS", "tcp,unix");
        command
    }

    fn left(&self, name: &str) -> PathBuf {
        self.lab.path("out").join(name)
    }
}

fn json(path: &Path) -> Value {
    let text = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap()
}

/// The cells of the only experiment in some results.
fn cells(results: &Value) -> Vec<&str> {
    let cells = results["experiments"][0]["cells"].as_array().unwrap();
    cells
        .iter()
        .filter_map(|cell| cell["cell"].as_str())
        .collect()
}

/// What a bench printed.
struct Said(String);

impl Said {
    /// Of one cell: its table and what follows it.
    fn about(&self, cell: &str) -> &str {
        let head = format!("\n{cell} same\n");
        let (_, rest) = self
            .0
            .split_once(&head)
            .unwrap_or_else(|| panic!("nothing about {cell} in {}", self.0));
        rest.split("\n\n").next().unwrap_or_default()
    }

    /// Whether an arm of a cell has figures.
    fn has(&self, cell: &str, arm: &str) -> bool {
        let row = |line: &&str| line.split_whitespace().nth(1) == Some(arm);
        let line = self.about(cell).lines().find(row);
        let line = line.unwrap_or_else(|| panic!("no {arm} in {}", self.about(cell)));
        line.split_whitespace().nth(2) != Some("none")
    }
}

fn installed(name: &str) -> PathBuf {
    Path::new("/usr/bin").join(name)
}

fn beside_library(name: &str) -> PathBuf {
    lab::library().with_file_name(name)
}

#[test]
fn a_missing_program_and_one_that_does_not_start_are_named_and_the_rest_is_measured() {
    needs!("redis-server", "memcached", "iperf3", "redis-tools");
    let bench = Bench::new();
    bench.link("iperf3");
    bench.stand_in("memcached", "echo no memory today >&2; exit 1");
    let cells = ["redis-get-c1", "memcached-get", "iperf3-p1"];
    let said = bench.run(
        &cells
            .map(|cell| format!("apps/{cell}"))
            .each_ref()
            .map(|c| c.as_str()),
        false,
    );
    let missing = "tcp: redis-server (Debian package redis-server) is not there";
    assert!(said.about(cells[0]).contains(missing), "{}", said.0);
    assert!(!said.has(cells[0], "tcp"));
    let dead = "tcp: memcached failed: no memory today";
    assert!(said.about(cells[1]).contains(dead), "{}", said.0);
    assert!(said.has(cells[2], "tcp"), "{}", said.0);
}

#[test]
fn a_port_that_somebody_else_takes_is_chosen_anew() {
    needs!("redis-server", "redis-tools");
    let bench = Bench::new();
    // Between the choice and the start of the first server, another one takes the port; it lives while the pipe is open.
    let pipe = bench.lab.path("pipe");
    let held = bench.lab.path("held");
    let path = std::ffi::CString::new(pipe.to_str().unwrap()).unwrap();
    // SAFETY: the path is a string that outlives the call.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
    let open = std::fs::File::options()
        .read(true)
        .write(true)
        .open(&pipe)
        .unwrap();
    let script = format!(
        "if [ ! -e {held} ]; then\n\
           {load} echo server sink 127.0.0.1:$2 --until-eof <{pipe} >{held} 2>&1 &\n\
           until [ -s {held} ]; do sleep 0.01; done\n\
         fi\n\
         exec $REAL \"$@\"",
        load = beside_library("headwater-load").display(),
        held = held.display(),
        pipe = pipe.display(),
    );
    bench.stand_in("redis-server", &script);
    let said = bench.run(&["apps/redis-get-c1"], true);
    drop(open);
    let taken = std::fs::read_to_string(&held).unwrap();
    assert!(taken.starts_with("listening 127.0.0.1:"), "{taken}");
    assert!(said.has("redis-get-c1", "tcp") && said.has("redis-get-c1", "unix"));
    assert!(!said.0.contains("failed"), "{}", said.0);
}

#[test]
fn a_server_that_is_killed_in_the_middle_is_blamed_and_the_next_rounds_go_on() {
    needs!("redis-server", "redis-tools");
    let bench = Bench::new();
    let killed = bench.lab.path("killed");
    let pid = bench.lab.path("pid");
    bench.stand_in(
        "redis-server",
        &format!("echo $$ >{}; exec $REAL \"$@\"", pid.display()),
    );
    // The first one has more to do than time.
    let script = format!(
        "[ -e {killed} ] && exec $REAL \"$@\"\n\
         : >{killed}\n\
         $REAL \"$@\" -n 100000000 &\n\
         sleep 0.1; kill -KILL $(cat {pid})\n\
         wait $!",
        killed = killed.display(),
        pid = pid.display(),
    );
    bench.stand_in("redis-benchmark", &script);
    let said = bench.run(&["apps/redis-get-c1"], true);
    let about = said.about("redis-get-c1");
    assert!(
        about.contains("tcp: redis-server failed: killed by SIGKILL"),
        "{}",
        said.0
    );
    assert!(about.contains("redis-benchmark failed"), "{}", said.0);
    assert!(!about.contains("unix: "), "{}", said.0);
    assert!(said.has("redis-get-c1", "tcp") && said.has("redis-get-c1", "unix"));
}

#[test]
fn an_interrupted_run_leaves_what_it_has_measured_and_can_be_completed() {
    needs!("redis-server", "memcached", "redis-tools");
    let bench = Bench::new();
    // The first one never gets ready.
    let held = bench.lab.path("held");
    let script = format!(
        "[ -e {held} ] && exec $REAL \"$@\"\n: >{held}\nexec sleep 1000",
        held = held.display()
    );
    bench.stand_in("memcached", &script);
    let scratch = bench.lab.path("scratch");
    std::fs::create_dir(&scratch).unwrap();

    let mut command = bench.command(&["apps/redis-get-c1", "apps/memcached-get"], true);
    command.env("TMPDIR", &scratch);
    let running = bench.lab.start(command);
    let begun = Instant::now();
    while !held.exists() {
        assert!(begun.elapsed() < PATIENCE, "{}", running.said());
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = running.stop(libc::SIGINT);
    assert_eq!(output.status.code(), Some(130), "{}", output.err);
    for name in ["results.partial.json", "results.json"] {
        let results = json(&bench.left(name));
        assert_eq!(results["complete"], false, "{name}");
        assert_eq!(cells(&results), ["redis-get-c1"], "{name}");
    }
    let report = std::fs::read_to_string(bench.left("report.html")).unwrap();
    assert!(report.contains("redis-get-c1") && report.trim_end().ends_with("</html>"));
    assert_eq!(std::fs::read_dir(&scratch).unwrap().count(), 0);

    let mut command = bench.command(&[], true);
    command.arg("--resume");
    let said = Said(bench.lab.run(command).text());
    assert!(said.has("memcached-get", "tcp"), "{}", said.0);
    let results = json(&bench.left("results.json"));
    assert_eq!(results["complete"], true);
    assert_eq!(cells(&results), ["redis-get-c1", "memcached-get"]);
    assert!(!bench.left("results.partial.json").exists());
}

#[test]
fn a_second_interruption_leaves_neither_programs_nor_scratch_folders() {
    needs!("memcached");
    let bench = Bench::new();
    // It takes its time to end, and is asked for more than that.
    let pid = bench.lab.path("pid");
    let script = format!(
        "trap '' TERM INT\necho $$ >{pid}.new; mv {pid}.new {pid}\nwhile :; do sleep 1; done",
        pid = pid.display()
    );
    bench.stand_in("memcached", &script);
    let scratch = bench.lab.path("scratch");
    std::fs::create_dir(&scratch).unwrap();
    let mut command = bench.command(&["apps/memcached-get"], true);
    command.env("TMPDIR", &scratch);
    let running = bench.lab.start(command);
    let begun = Instant::now();
    while !pid.exists() {
        assert!(begun.elapsed() < PATIENCE, "{}", running.said());
        std::thread::sleep(Duration::from_millis(5));
    }
    running.signal(libc::SIGTERM);
    let output = running.stop(libc::SIGINT);
    assert_eq!(output.status.code(), Some(130), "{}", output.err);
    assert_eq!(std::fs::read_dir(&scratch).unwrap().count(), 0);
    let pid = std::fs::read_to_string(&pid).unwrap();
    let map = std::fs::read_to_string(format!("/proc/{}/statm", pid.trim()));
    // Gone, or a zombie that nobody has waited for yet.
    assert!(map.is_err() || map.is_ok_and(|map| map.starts_with("0 ")));
}

/// As with `headwater bench | head`: what is measured is in files.
#[test]
fn a_reader_that_leaves_ends_no_measurement() {
    let bench = Bench::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = bench.command(&["sockets/rtt-70"], true);
    let output = command.stdout(writer).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(cells(&json(&bench.left("results.json"))), ["rtt-70"]);
    assert!(bench.left("report.html").exists());
}

#[test]
fn an_arm_of_the_users_own_and_every_single_sample_are_in_the_results() {
    needs!("memcached");
    let bench = Bench::new();
    bench.link("memcached");
    let seen = bench.lab.path("seen");
    let wrapper = bench.programs.join("wrapper");
    let script = format!("echo \"$1\" >>{}; exec \"$@\"", seen.display());
    bench.stand_in("wrapper", &script);
    let samples = bench.lab.path("samples.json");
    let mut command = bench.command(&["apps/memcached-get"], true);
    let arm = format!("mine={}", wrapper.display());
    command.args(["--arm", &arm]).arg("--samples").arg(&samples);
    command.env("HEADWATER_BENCH_ARMS", "tcp,mine");
    let said = Said(bench.lab.run(command).text());
    assert!(said.has("memcached-get", "mine"), "{}", said.0);
    let seen = std::fs::read_to_string(seen).unwrap();
    assert!(seen.contains("memcached"), "{seen}");

    let results = json(&bench.left("results.json"));
    assert_eq!(results["arms"][0], arm.as_str());
    let arms = results["experiments"][0]["cells"][0]["arms"]
        .as_array()
        .unwrap();
    let names: Vec<&Value> = arms.iter().map(|arm| &arm["arm"]).collect();
    assert_eq!(names, ["tcp", "mine"]);
    assert!(arms.iter().all(|arm| arm["samples"] == ROUNDS));

    let exported = json(&samples);
    let arms = exported["arms"].as_array().unwrap();
    let all = arms
        .iter()
        .flat_map(|arm| arm["samples"].as_array().unwrap());
    assert_eq!(all.filter(|sample| sample.is_object()).count(), 2 * ROUNDS);
}
