//! Where the programs and the library are.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Failure, Result};

pub struct Tools {
    load: PathBuf,
    /// The library to preload; without it nothing is accelerated.
    pub library: Option<PathBuf>,
    /// Where it was said to be.
    named: Option<PathBuf>,
}

/// The programs that are measured.
const LOAD: &str = "headwater-load";

/// The variable that tells where the library is.
const LIBRARY: &str = "HEADWATER_LIBRARY";

impl Tools {
    /// Looks beside this executable, then where an installation puts things. HEADWATER_LIBRARY overrides the library.
    pub fn locate() -> Result<Tools> {
        let beside = env::current_exe()
            .map_err(|error| Failure::File(PathBuf::from("/proc/self/exe"), error))?;
        let beside = beside.parent().unwrap_or(Path::new("/"));
        let find = |name: &str| {
            ["", "..", "../../lib"]
                .into_iter()
                .map(|place| beside.join(place).join(name))
                .find(|path| path.is_file())
        };
        let named = env::var_os(LIBRARY).map(PathBuf::from);
        let library = match &named {
            Some(path) => named.clone().filter(|_| path.is_file()),
            None => find("libheadwater.so"),
        };
        Ok(Tools {
            // What is not there is missed by the experiments that need it.
            load: find(LOAD).unwrap_or_else(|| beside.join(LOAD)),
            library,
            named,
        })
    }

    /// A program of those that are measured.
    pub fn load(&self, name: &str) -> Command {
        let mut command = Command::new(&self.load);
        command.arg(name);
        command
    }

    pub fn library(&self) -> Result<&Path> {
        self.library
            .as_deref()
            .ok_or_else(|| Failure::Missing(missing_library(self.named.as_deref())))
    }
}

/// What is not there, and how it would be found.
fn missing_library(named: Option<&Path>) -> String {
    match named {
        Some(path) => format!("{} (named by {LIBRARY})", path.display()),
        None => format!("libheadwater.so (its path can be given by {LIBRARY})"),
    }
}

/// Programs that are measured where they are installed, and the Debian packages that they come in.
const PACKAGES: [(&str, &str); 10] = [
    ("redis-server", "redis-server"),
    ("redis-benchmark", "redis-tools"),
    ("memcached", "memcached"),
    ("nginx", "nginx"),
    ("wrk", "wrk"),
    ("uwsgi", "uwsgi-core, with uwsgi-plugin-python3"),
    ("iperf3", "iperf3"),
    ("sockperf", "sockperf"),
    ("postgres", "postgresql"),
    ("pgbench", "postgresql"),
];

/// Finds an installed program, also where daemons live.
pub fn installed(name: &str) -> Result<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders =
        env::split_paths(&path).chain(["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from));
    find(name, folders)
}

/// Finds a program of PostgreSQL: the newest of Debian's versions, each of which has a folder of its own.
pub fn of_postgresql(name: &str) -> Result<PathBuf> {
    let mut versions: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
        .collect();
    versions.sort();
    let folders = versions.into_iter().rev().map(|(_, path)| path.join("bin"));
    find(name, folders).or_else(|_| installed(name))
}

fn find(name: &str, folders: impl Iterator<Item = PathBuf>) -> Result<PathBuf> {
    folders
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
        .ok_or_else(|| Failure::Missing(with_package(name)))
}

fn with_package(name: &str) -> String {
    match PACKAGES.iter().find(|(program, _)| *program == name) {
        Some((_, package)) => format!("{name} (Debian package {package})"),
        None => name.to_string(),
    }
}

#[cfg(test)]
mod tests;
