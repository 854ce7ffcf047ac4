//! The library: found, loadable, of this version? It is preloaded into a short-lived program, which then reports.

use std::env;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;

use super::Check;
use crate::library;

const NAME: &str = "library";
const TIMEOUT: Timespec = Timespec {
    tv_sec: 10,
    tv_nsec: 0,
};

pub fn checks() -> Vec<Check> {
    vec![library(), preloaded()]
}

fn library() -> Check {
    let path = match library::locate() {
        Ok(path) => path,
        Err(missing) => {
            let remedy = "build it: make build, or make install";
            return Check::fail(NAME, missing.to_string(), remedy);
        }
    };
    const OURS: &str = env!("CARGO_PKG_VERSION");
    let shown = path.display();
    let again = "build or install command and library together";
    let wrong = match ask_version(&path) {
        Ok(Some(version)) if version == OURS => {
            return Check::ok(NAME, format!("{shown}, version {version}"));
        }
        Ok(Some(version)) => {
            let detail = format!("{shown} has version {version}, the command {OURS}");
            return Check::warn(NAME, detail, again);
        }
        Ok(None) => format!("{shown} does not load, or does not report"),
        Err(e) => format!("{shown} can't be tried: {e}"),
    };
    Check::fail(NAME, wrong, again)
}

/// Has `headwater --version` run with the library, and reads the version in the statistics it leaves.
fn ask_version(library: &Path) -> io::Result<Option<String>> {
    let folder = tempfile::Builder::new().prefix("headwater-").tempdir()?;
    let stats = folder.path().join("stats");
    let mut child = Command::new("/proc/self/exe")
        .arg("--version")
        .env("LD_PRELOAD", library)
        .env("HEADWATER_SOCKETS", "1")
        .env("HEADWATER_STATS_FILE", &stats)
        .env_remove("HEADWATER_PROGRAMS")
        .env_remove("HEADWATER_DENY_PROGRAMS")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    if !ended(&child)? {
        child.kill()?;
    }
    child.wait()?;
    let Ok(text) = std::fs::read_to_string(&stats) else {
        return Ok(None);
    };
    let line = text.lines().next().unwrap_or_default();
    let line: Value = serde_json::from_str(line).unwrap_or_default();
    Ok(line["version"].as_str().map(str::to_string))
}

/// Waits until the child has closed its output, but not for ever.
fn ended(child: &Child) -> io::Result<bool> {
    let out = child.stdout.as_ref().expect("piped");
    let mut fds = [PollFd::new(out, PollFlags::empty())];
    Ok(poll(&mut fds, Some(&TIMEOUT))? > 0)
}

/// Other preloaded libraries may define the same functions.
fn preloaded() -> Check {
    let detail = match env::var("LD_PRELOAD") {
        Ok(list) if !list.is_empty() => {
            &format!("{list}: `headwater run` keeps it, behind the library")
        }
        _ => "nothing else is preloaded",
    };
    Check::ok("ld-preload", detail)
}
