//! PostgreSQL in a folder of its own: a forking server whose processes talk by signals and latches; COPY in both directions, a
//! connection for each transaction, and TLS.

use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use headwater_e2e::lab::{digest, source};
use headwater_e2e::{Lab, PATIENCE, Running, both, carried, network};
use headwater_testkit::needs;

use super::{ids, shown};

struct Database<'a> {
    lab: &'a Lab,
    programs: PathBuf,
    data: PathBuf,
    port: String,
    /// As root it must be somebody else.
    root: bool,
}

impl Database<'_> {
    fn start<'a>(lab: &'a Lab, more: &[&str]) -> (Database<'a>, Running) {
        let versions = std::fs::read_dir("/usr/lib/postgresql").expect("it is installed");
        let it = Database {
            lab,
            programs: versions
                .flatten()
                .map(|e| e.path().join("bin"))
                .max()
                .expect("a version"),
            data: lab.path("data"),
            port: network::free_port().to_string(),
            // SAFETY: reads a number.
            root: unsafe { libc::getuid() } == 0,
        };
        std::fs::create_dir(&it.data).expect("the lab's folder is writable");
        if it.root {
            let (uid, gid) = ids("postgres");
            std::fs::write(lab.path("stats"), "").expect("it is writable");
            for theirs in [&it.data, &lab.path("stats")] {
                chown(theirs, Some(uid), Some(gid)).expect("root may");
            }
            lab.set("HEADWATER_DIR", &shown(&it.data.join("run")));
        }
        let mut c = lab.plain(it.programs.join("initdb"));
        c.args(["-A", "trust", "--no-sync", "-D"]).arg(&it.data);
        it.run(c);
        it.make_certificate();
        let mut c = lab.command(it.programs.join("postgres"));
        c.arg("-D").arg(&it.data).args(["-p", &it.port]);
        for setting in [
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "fsync=off",
        ]
        .iter()
        .chain(more)
        {
            c.args(["-c", setting]);
        }
        it.own(&mut c);
        let server = lab.serve(c, it.port.parse().expect("a number"));
        it.await_answer();
        (it, server)
    }

    fn make_certificate(&self) {
        let mut c = self.lab.plain("openssl");
        c.args([
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
        ]);
        c.args(["-subj", "/CN=localhost", "-keyout"]);
        c.arg(self.data.join("server.key"));
        c.arg("-out").arg(self.data.join("server.crt"));
        self.run(c);
    }

    fn own(&self, command: &mut Command) {
        // Its client looks for certificates at home.
        command.current_dir(&self.data).env("HOME", &self.data);
        if self.root {
            let (uid, gid) = ids("postgres");
            self.lab.as_user(command, uid, gid);
        }
    }

    fn run(&self, mut command: Command) -> Vec<u8> {
        self.own(&mut command);
        self.lab.run(command).ok()
    }

    /// One of its clients; `words` come before the database's name.
    fn client(&self, program: &str, words: &[&str]) -> Vec<u8> {
        let mut c = self.lab.command(self.programs.join(program));
        c.args(["-h", "127.0.0.1", "-p", &self.port]).args(words);
        c.arg("postgres");
        self.run(c)
    }

    fn script(&self, file: &Path, with: &str) -> (usize, u64) {
        let mut c = self.lab.command(self.programs.join("psql"));
        c.args(["-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-f"]);
        c.arg(self.lab.copy(file)).arg("-d");
        c.arg(format!(
            "host=127.0.0.1 port={} dbname=postgres {with}",
            self.port
        ));
        digest(&self.run(c))
    }

    fn await_answer(&self) {
        let begun = Instant::now();
        loop {
            let mut c = self.lab.plain(self.programs.join("pg_isready"));
            c.args(["-q", "-h", "127.0.0.1", "-p", &self.port]);
            if self.lab.run(c).status.success() {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "the database does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn processed(said: Vec<u8>) -> String {
    let said = String::from_utf8(said).expect("text");
    let line = said.lines().find(|l| l.contains("actually processed"));
    line.unwrap_or_else(|| panic!("{said}")).to_string()
}

#[test]
fn postgresql_answers_the_same() {
    needs!("postgresql", "openssl");
    carried(8 << 20, |lab| {
        let (database, server) = Database::start(lab, &[]);
        let answers = database.script(&source("py/database.sql"), "");
        database.client("pgbench", &["-i", "-q"]);
        let load = ["-n", "-c", "4", "-j", "2", "-t", "300", "-S"];
        let kept = processed(database.client("pgbench", &load));
        server.stop(libc::SIGINT).ok();
        (answers, kept)
    });
}

#[test]
fn a_connection_for_each_transaction() {
    needs!("postgresql", "openssl");
    let lab = both(|lab| {
        let (database, server) = Database::start(lab, &[]);
        database.client("pgbench", &["-i", "-q"]);
        let load = ["-n", "-C", "-S", "-c", "4", "-t", "50"];
        let said = processed(database.client("pgbench", &load));
        server.stop(libc::SIGINT).ok();
        said
    });
    // Two hundred connections, each over before its takeover has paid: it learns that after a few.
    let lines = lab.lines();
    let clients = lines.iter().filter(|l| l.comm == "pgbench");
    let carried: u64 = clients.map(|l| l.accelerated).sum();
    assert!((1..60).contains(&carried), "{}", lab.lines_text());
}

#[test]
fn copies_through_tls() {
    needs!("postgresql", "openssl");
    carried(8 << 20, |lab| {
        let (database, server) = Database::start(lab, &["ssl=on"]);
        let answers = database.script(&source("py/database.sql"), "sslmode=require");
        server.stop(libc::SIGINT).ok();
        answers
    });
}
