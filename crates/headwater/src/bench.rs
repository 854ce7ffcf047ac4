//! `headwater bench` and `headwater demo` are a program of their own, `headwater-bench`, which knows their arguments.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::library;

const PROGRAM: &str = "headwater-bench";
/// Folders to look in, from that of the command: a build, an installation.
const PLACES: [&str; 2] = ["", "../libexec/headwater"];

#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Words {
    /// Names of experiments, and options: `headwater bench --help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<OsString>,
}

/// Becomes that program.
pub fn hand_on(verb: &str, words: &[OsString]) -> ExitCode {
    let command = env::current_exe().unwrap_or_default();
    let folder = command.parent().unwrap_or(Path::new("/"));
    let Some(program) = locate(folder) else {
        eprintln!(
            "headwater {verb}: {PROGRAM} is neither in {0} nor in {0}/{1}: `make build` or `make install` puts it there",
            folder.display(),
            PLACES[1]
        );
        return ExitCode::FAILURE;
    };
    // Results name the command as it was typed.
    let name = env::args_os().next().unwrap_or_else(|| "headwater".into());
    let failed = Command::new(&program)
        .arg0(name)
        .arg(verb)
        .args(words)
        .envs(library::locate().map(|path| (library::VARIABLE, path)))
        .exec();
    eprintln!("headwater {verb}: {}: {failed}", program.display());
    ExitCode::FAILURE
}

fn locate(folder: &Path) -> Option<PathBuf> {
    PLACES
        .iter()
        .map(|place| folder.join(place).join(PROGRAM))
        .find(|path| path.is_file())
}
