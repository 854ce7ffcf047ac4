//! Files by FTP: ncftpget fetches some of one size in a session with vsftpd, which forks a process for it. Neither knows of
//! the library. Files are in memory at both ends.

mod files;

use std::fs::{self, DirBuilder, File};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use files::Files;

use super::super::apps::Rates;
use super::super::work::{Work, boxed};
use super::{FTP, SENDFILE};
use crate::carriage::Proof;
use crate::exchange::{Exchange, Outcome};
use crate::experiment::{ACCELERATED, Cell, Job, Sample, TCP, Unit};
use crate::failure::{Failure, Result};
use crate::placement::Placement::{Apart, Free};
use crate::stats;
use crate::{tables, tools};

/// Samples say what share of their bytes went through shared memory, which is less than one: a connection for a small file
/// ends before it would be taken over.
pub const SHARE: &str = "shared_memory_share";
/// What the client says of the data connection alone.
pub const REPORTED: &str = "reported_bytes_per_second";
/// 1 where files were in memory, 0 where they were not.
pub const IN_MEMORY: &str = "files_in_memory";

const SERVER: (&str, &str) = ("vsftpd", "vsftpd");
const CLIENT: (&str, &str) = ("ncftpget", "ncftp");
/// Of one session: names are arguments.
const MOST_FILES: u64 = 2000;
/// Where nothing is known of an arm.
const FIRST_FILES: u64 = 16;

pub fn works() -> Vec<Box<dyn Work>> {
    let sizes = [0, 4, 8, 10, 12, 14, 16, 18, 20, 21, 22, 24, 26].map(|power| 1 << power);
    let all = sizes.map(|size| Ftp::new(size, false)).into_iter();
    boxed(all.chain([Ftp::new(1 << 26, true)])).collect()
}

struct Ftp {
    size: usize,
    /// The server lets the kernel read the file and send it, as it does unless told otherwise; one call sends all of it.
    sendfile: bool,
    rates: Rates,
}

impl Ftp {
    fn new(size: usize, sendfile: bool) -> Ftp {
        Ftp {
            size,
            sendfile,
            rates: Rates::default(),
        }
    }

    fn session(&self, job: &Job<'_>, count: u64) -> Result<Sample> {
        let [server, client] = [SERVER, CLIENT].map(|(program, package)| {
            tools::installed(program)
                .map_err(|_| Failure::Missing(format!("{program} (Debian package {package})")))
        });
        let (server, client) = (server?, client?);
        let files = Files::offer(&job.site.scratch, self.size, count)?;
        let session = Session::new(job, self.sendfile)?;
        let outcome = session.run(job, &server, &client, &files)?;
        files.check()?;
        Ok(self.read(&outcome, count, files.in_memory()))
    }

    fn read(&self, outcome: &Outcome, count: u64, in_memory: bool) -> Sample {
        let rate = count as f64 / outcome.time.as_secs_f64().max(1e-9);
        let per = 1.0 / count as f64;
        let mut sample = Sample {
            bytes_rate: Some(rate * self.size as f64),
            cpu_ns: Some((outcome.client.cpu_ns + outcome.server.cpu_ns) as f64 * per),
            ..outcome.sample(count, rate)
        };
        let mut tell = |name: &str, value: f64| sample.values.insert(name.to_string(), value);
        tell(IN_MEMORY, in_memory as u8 as f64);
        let reported = reported(&outcome.client_said);
        if !reported.is_empty() {
            tell(REPORTED, stats::median(&reported));
        }
        if let Some(counters) = &outcome.counters {
            let all = counters.shm_bytes_rx + counters.kernel_bytes_rx;
            tell(SHARE, counters.shm_bytes_rx as f64 / all.max(1) as f64);
        }
        sample
    }
}

impl Work for Ftp {
    fn cell(&self) -> Cell {
        let word = if self.sendfile { SENDFILE } else { FTP };
        let name = format!("{word}-{}", self.size);
        Cell {
            // Files are made before and compared afterwards.
            stretch: 2.0,
            placements: &[Apart, Free],
            // The connection for commands, at both ends.
            proof: Proof::Counted { ends: 2 },
            ..Cell::new(name, Unit::Messages, vec![TCP, ACCELERATED])
        }
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        let room = Files::room(&job.site.scratch, self.size);
        let most = MOST_FILES.min(room).max(1);
        let few = FIRST_FILES.min(most);
        let session = |count| self.session(job, count);
        self.rates.within(job, few, job.time, 1..=most, session)
    }
}

/// What one session needs beside the files.
struct Session {
    password: String,
    folder: PathBuf,
    sendfile: bool,
}

impl Session {
    fn new(job: &Job<'_>, sendfile: bool) -> Result<Session> {
        let folder = job.site.scratch.join("ftp");
        // It holds a password.
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)?;
        Ok(Session {
            password: password()?,
            folder,
            sendfile,
        })
    }

    fn run(&self, job: &Job<'_>, server: &Path, client: &Path, files: &Files) -> Result<Outcome> {
        let passwords = self.write("passwords", &format!("{}\n", self.password))?;
        let command = |port: u16| {
            let configuration = self.configuration(port, &files.offered(), &passwords);
            let mut command = Command::new(server);
            command.arg(self.write("vsftpd.conf", &configuration)?);
            Ok(command)
        };
        let is_up = |_: &_| true;
        let (exchange, port) = Exchange::serve_on_port(None, job, SERVER.0, command, is_up)?;

        let login = format!("host 127.0.0.1\nuser anonymous\npass {}\n", self.password);
        let mut command = Command::new(client);
        command
            .env("HOME", &self.folder)
            .args(["-v", "-P", &port.to_string(), "-f"])
            .arg(self.write("login", &login)?)
            .arg(files.wanted())
            .args(files.names());
        // A session's process leaves its counters when it ends, a little after the client.
        exchange
            .join(CLIENT.0, command)?
            .finish_when(Some(libc::SIGTERM), |server| server.family().len() == 1)
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.folder.join(name);
        let _ = fs::remove_file(&path);
        let mut file = File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        file.write_all(text.as_bytes())?;
        Ok(path)
    }

    /// For the user who runs the bench, whoever that is: no root, no change of user, no chroot, no sandbox. Hence the password,
    /// and only the commands that fetching takes.
    fn configuration(&self, port: u16, offered: &Path, passwords: &Path) -> String {
        let sendfile = if self.sendfile { "YES" } else { "NO" };
        let words = [
            ("port", &*port.to_string()),
            ("passwords", &passwords.display().to_string()),
            ("offered", &offered.display().to_string()),
            ("sendfile", sendfile),
        ];
        tables::filled(include_str!("../../../tables/vsftpd.conf"), &words)
    }
}

/// Nobody else on this machine is to fetch this user's files meanwhile.
fn password() -> Result<String> {
    let mut random = [0; 16];
    std::io::Read::read_exact(&mut File::open("/dev/urandom")?, &mut random)?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What ncftpget says of each file: `NAME:   64.00 MB  754.28 MB/s`, the last of many such pieces between carriage returns; in
/// bytes a second.
fn reported(said: &str) -> Vec<f64> {
    let rate = |line: &str| {
        let last = line.trim_end().rsplit('\r').next()?;
        let mut words = last.split_whitespace().rev();
        let unit = words.next()?.strip_suffix("/s")?;
        let number: f64 = words.next()?.parse().ok()?;
        let scale = match unit {
            "B" => 1.0,
            "kB" => 1024.0,
            "MB" => 1024.0 * 1024.0,
            "GB" => 1024.0 * 1024.0 * 1024.0,
            _ => return None,
        };
        Some(number * scale)
    };
    said.lines().filter_map(rate).collect()
}

#[cfg(test)]
mod tests;
