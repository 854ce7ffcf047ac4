//! What the user of `headwater bench` sees where things go wrong: programs that are missing, die or are killed, and ports
//! that others take. What is concerned says so, the rest goes on.

use std::path::{Path, PathBuf};

use headwater_e2e::{Lab, Mode, lab};

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
        Said(self.lab.run(command).text())
    }
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
           {echo} server sink 127.0.0.1:$2 --until-eof <{pipe} >{held} 2>&1 &\n\
           until [ -s {held} ]; do sleep 0.01; done\n\
         fi\n\
         exec $REAL \"$@\"",
        echo = beside_library("headwater-echo").display(),
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
