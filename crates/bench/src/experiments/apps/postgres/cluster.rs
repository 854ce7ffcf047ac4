//! A database cluster in the scratch folder, filled once by pgbench.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rustix::process::geteuid;

use crate::account::Account;
use crate::experiment::Job;
use crate::failure::{Failure, Result};
use crate::process::{self, Running};
use crate::tools;

/// The server refuses to run as root.
const ACCOUNT: &str = "postgres";
/// The database's user, whoever we are.
const USER: &str = "bench";
/// A branch for each client at least: transactions of one branch wait for each other.
const SCALE: &str = "8";
/// How the names of pgbench's logs begin.
pub const LOG: &str = "transactions.";
const MAKING: Duration = Duration::from_secs(120);

/// Nothing of it is to survive, so nothing waits for the disk; what is shared goes with the folder; and nothing is done in the
/// background that one arm might get more of than another.
const SETTINGS: &str = include_str!("../../../../tables/postgresql.conf");

pub struct Cluster {
    folder: PathBuf,
    account: Option<Account>,
}

impl Cluster {
    /// That of this run, made where it is not there yet.
    pub fn of(job: &Job<'_>) -> Result<Cluster> {
        let cluster = Cluster {
            folder: job.site.scratch.join("postgres"),
            account: account()?,
        };
        let made = cluster.folder.join("made");
        if !made.exists() {
            if let Some(account) = cluster.account {
                account.let_in(&job.site.scratch)?;
            }
            cluster.make()?;
            fs::write(made, "")?;
        }
        Ok(cluster)
    }

    /// Whom server and clients run as, if not as us. Both, as connections between accounts stay with the kernel.
    pub fn account(&self) -> Option<Account> {
        self.account
    }

    pub fn server(&self, port: u16) -> Result<Command> {
        let mut command = self.command("postgres")?;
        command.arg("-D").arg(self.data());
        command.args(["-p", &port.to_string()]);
        command.arg("-k").arg(&self.folder);
        Ok(command)
    }

    /// pgbench, by a UNIX socket or TCP.
    pub fn client(&self, unix: bool, port: u16) -> Result<Command> {
        let mut command = self.command("pgbench")?;
        match unix {
            true => command.arg("-h").arg(&self.folder),
            false => command.args(["-h", "127.0.0.1"]),
        };
        command.args(["-p", &port.to_string(), "-U", USER]);
        command.env("PGDATABASE", "postgres");
        Ok(command)
    }

    /// What pgbench has logged.
    pub fn logs(&self) -> String {
        let read = |path: &PathBuf| fs::read_to_string(path).unwrap_or_default();
        self.log_files().iter().map(read).collect()
    }

    pub fn clear_logs(&self) {
        for path in self.log_files() {
            let _ = fs::remove_file(path);
        }
    }

    fn log_files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let is_log = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(LOG)
        };
        entries.map(|entry| entry.path()).filter(is_log).collect()
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn make(&self) -> Result<()> {
        // What an attempt that failed has left.
        let _ = fs::remove_dir_all(&self.folder);
        fs::create_dir(&self.folder)?;
        if let Some(account) = self.account {
            account.give(&self.folder)?;
        }
        let mut initdb = self.command("initdb")?;
        initdb.args(["--no-sync", "-A", "trust", "-U", USER]);
        initdb
            .args(["--locale=C", "-E", "UTF8", "-D"])
            .arg(self.data());
        self.run("initdb", initdb)?;
        let settings = self.data().join("postgresql.conf");
        let usual = fs::read_to_string(&settings)?;
        fs::write(&settings, usual + "\n" + SETTINGS)?;
        self.fill()
    }

    /// By the UNIX socket, so that no port matters.
    fn fill(&self) -> Result<()> {
        let port = 5432;
        let mut server = self.server(port)?;
        server.args(["-c", "listen_addresses="]);
        let mut server = self.start("postgres", server)?;
        server.wait_until(MAKING, |server| server.said().contains("ready to accept"))?;
        let mut client = self.client(true, port)?;
        client.args(["--initialize", "--quiet", "--scale", SCALE]);
        let filled = self.run("pgbench --initialize", client);
        server.stop(Some(libc::SIGINT)).map(drop).and(filled)
    }

    fn run(&self, name: &str, command: Command) -> Result<()> {
        self.start(name, command)?.finish(MAKING).map(drop)
    }

    fn start(&self, name: &str, mut command: Command) -> Result<Running> {
        process::prepare(&mut command, None, None);
        if let Some(account) = self.account {
            account.run(&mut command);
        }
        Running::start(name, command)
    }

    /// With nothing of what our own user has set for it.
    fn command(&self, program: &str) -> Result<Command> {
        let mut command = Command::new(tools::of_postgresql(program)?);
        for (name, _) in env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("PG") || text.starts_with("LC_") || text == "LANG" {
                command.env_remove(&name);
            }
        }
        command.env("HOME", &self.folder).current_dir(&self.folder);
        command.envs([
            ("LC_ALL", "C"),
            ("PGSSLMODE", "disable"),
            ("PGGSSENCMODE", "disable"),
        ]);
        Ok(command)
    }
}

fn account() -> Result<Option<Account>> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    let account = Account::named(ACCOUNT);
    let why = "the user postgres, as which root runs the server (Debian package postgresql)";
    account
        .map(Some)
        .ok_or_else(|| Failure::Missing(why.to_string()))
}
