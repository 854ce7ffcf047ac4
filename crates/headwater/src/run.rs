//! `headwater run`: CMD with the library preloaded.
//!
//! Without `--stats` this process becomes CMD. With it, CMD is a child, and what its processes counted is shown at the end.
//! CMD's status is ours; our own failures have the statuses that env(1) and timeout(1) use.

mod child;
mod report;

use std::env;
use std::ffi::{CString, OsStr, OsString};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use crate::settings::{Settings, absolute, effective};
use crate::{library, program, sigpipe};

/// Headwater itself failed, and CMD was not started.
pub const OWN_FAILURE: u8 = 125;
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

#[derive(clap::Args)]
#[command(
    override_usage = "headwater run [OPTIONS] [--] CMD [ARGS]...",
    after_help = "The status is CMD's own (128+N when signal N killed it); 125 when headwater fails, 126 when CMD can't be \
                  run, 127 when there is no CMD.\nEvery option but --stats has a variable: --deny-ports is \
                  HEADWATER_DENY_PORTS. See headwater(7)."
)]
pub struct Run {
    /// At the end, show on stderr what was carried
    #[arg(long)]
    stats: bool,
    /// Append a line of JSON for each process that ends
    #[arg(long, value_name = "FILE")]
    stats_file: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
    /// The program and its arguments
    #[arg(
        value_name = "CMD",
        required = true,
        trailing_var_arg = true,
        num_args = 1..
    )]
    command: Vec<OsString>,
}

impl Run {
    #[cfg(test)]
    pub fn command(&self) -> &[OsString] {
        &self.command
    }

    pub fn execute(&self) -> ExitCode {
        match self.start() {
            Ok(status) => ExitCode::from(status),
            Err(problem) => {
                say(&problem);
                ExitCode::from(OWN_FAILURE)
            }
        }
    }

    /// Returns CMD's status, or ours when it could not be run.
    fn start(&self) -> Result<u8, String> {
        self.settings
            .check()
            .map_err(|complaints| complaints.join("; "))?;
        let library = library::locate().map_err(|missing| missing.to_string())?;
        let collected = self.collect()?;
        self.warn();
        self.set_environment(&library, collected.as_ref().map(|c| c.file.as_path()));
        let Some(collected) = collected.filter(|_| self.stats) else {
            return Ok(become_program(&self.command));
        };
        let began = Instant::now();
        let status = child::run(&self.command).map_err(|e| format!("can't fork: {e}"))?;
        let text = report::table(
            &collected.file,
            collected.from,
            &self.name(),
            began.elapsed(),
        );
        // Nobody is left to tell when stderr is closed.
        let _ = io::stderr().write_all(text.as_bytes());
        Ok(status)
    }

    /// Where the processes leave their lines, if anywhere: FILE, or with `--stats` alone a file of our own.
    fn collect(&self) -> Result<Option<Collected>, String> {
        let inherited = env::var_os("HEADWATER_STATS_FILE").filter(|value| !value.is_empty());
        let file = self.stats_file.clone().or(inherited.map(PathBuf::from));
        let collected = match file.map(|file| absolute(&file)) {
            Some(file) => {
                Collected::named(&file, self.stats).map_err(|e| format!("{}: {e}", file.display()))
            }
            None if !self.stats => return Ok(None),
            None => Collected::temporary().map_err(|e| format!("no temporary file: {e}")),
        };
        collected.map(Some)
    }

    /// What the user can't see otherwise: a program that runs, but can't be accelerated.
    fn warn(&self) {
        // A command that is not there is named by exec's own failure.
        let Ok(found) = program::examine(&self.command[0]) else {
            return;
        };
        let config = effective(&self.settings);
        let why = match &found.obstacle {
            Some(obstacle) => obstacle.to_string(),
            None if config.program_allowed(&crate::doctor::comm(&found.image)) => return,
            None => "is excluded by the list of programs".to_string(),
        };
        let image = found.image.display();
        say(&format!("{image} {why}: it runs without acceleration"));
    }

    fn set_environment(&self, library: &Path, stats_file: Option<&Path>) {
        let preload = library::preload(library, env::var_os("LD_PRELOAD").as_deref());
        let mut variables = self.settings.variables();
        variables.push(("LD_PRELOAD", preload));
        variables.push(("HEADWATER_SOCKETS", "1".into()));
        let options = env::var_os("ASAN_OPTIONS");
        variables.push(("ASAN_OPTIONS", asan_options(options.as_deref())));
        if let Some(file) = stats_file {
            variables.push(("HEADWATER_STATS_FILE", file.into()));
        }
        for (name, value) in variables {
            // SAFETY: no thread was started, so nobody else reads the environment.
            unsafe { env::set_var(name, value) };
        }
    }

    fn name(&self) -> String {
        let path = Path::new(&self.command[0]);
        let name = path.file_name().unwrap_or(path.as_os_str());
        name.to_string_lossy().into_owned()
    }
}

/// AddressSanitizer would end its programs, CMD and what it starts, where a library was loaded before its own. The library says so by
/// a function that such a program may have too, which then is the one that is asked. What comes last in the list holds: the user's.
fn asan_options(before: Option<&OsStr>) -> OsString {
    let mut options = OsString::from("verify_asan_link_order=0");
    if let Some(before) = before.filter(|before| !before.is_empty()) {
        options.push(":");
        options.push(before);
    }
    options
}

/// Where statistics are collected, and from which byte on they are those of this run.
struct Collected {
    file: PathBuf,
    from: u64,
    /// Removes the folder at the end.
    _folder: Option<tempfile::TempDir>,
}

impl Collected {
    /// To be `read` again, it must be a file that keeps what is written.
    fn named(file: &Path, read: bool) -> io::Result<Collected> {
        // Who reads a FIFO would see an end of it when this process has looked.
        let metadata = match file.metadata() {
            Ok(metadata) if metadata.file_type().is_fifo() => metadata,
            _ => OpenOptions::new()
                .append(true)
                .create(true)
                .open(file)?
                .metadata()?,
        };
        if read && !metadata.is_file() {
            return Err(io::Error::other(
                "not a regular file, so that --stats can't show its lines: give --stats-file alone",
            ));
        }
        Ok(Collected {
            file: file.to_path_buf(),
            from: metadata.len(),
            _folder: None,
        })
    }

    /// Workers of CMD may have become another user, so all may append. The folder is not a sticky one: there the kernel may
    /// refuse to open somebody else's file (fs.protected_regular).
    fn temporary() -> io::Result<Collected> {
        let folder = tempfile::Builder::new().prefix("headwater-").tempdir()?;
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o711))?;
        let file = folder.path().join("stats");
        let opened = OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(&file)?;
        opened.set_permissions(PermissionsExt::from_mode(0o622))?;
        Ok(Collected {
            file,
            from: 0,
            _folder: Some(folder),
        })
    }
}

/// execvp(3) of the command; returns only when that failed, with the status to exit with.
fn become_program(command: &[OsString]) -> u8 {
    sigpipe::as_at_start();
    let words: Vec<CString> = command
        .iter()
        .map(|word| CString::new(word.as_bytes()).expect("arguments come without NUL"))
        .collect();
    let mut argv: Vec<*const libc::c_char> = words.iter().map(|word| word.as_ptr()).collect();
    argv.push(std::ptr::null());
    // SAFETY: terminated strings in a terminated array.
    unsafe { libc::execvp(argv[0], argv.as_ptr()) };
    let error = io::Error::last_os_error();
    say(&format!("{}: {error}", command[0].display()));
    match error.raw_os_error() {
        Some(libc::ENOENT) => NOT_FOUND,
        _ => NOT_EXECUTABLE,
    }
}

fn say(text: &str) {
    let _ = writeln!(io::stderr(), "headwater: {text}");
}
