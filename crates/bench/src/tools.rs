//! Where the programs and the library are.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Failure, Result};

pub struct Tools {
    echo: PathBuf,
    raw: PathBuf,
    perftest: PathBuf,
    xtiperf: PathBuf,
    sctpperf: PathBuf,
    /// The library to preload; without it nothing is accelerated.
    pub library: Option<PathBuf>,
}

impl Tools {
    /// Looks beside this executable, then where an installation puts things. HEADWATER_LIBRARY overrides the library.
    pub fn locate() -> Result<Tools> {
        let beside = env::current_exe()?;
        let beside = beside.parent().unwrap_or(Path::new("/"));
        let find = |name: &str| {
            [
                "",
                "..",
                "../lib",
                "../lib/headwater",
                "../libexec/headwater",
            ]
            .into_iter()
            .map(|place| beside.join(place).join(name))
            .find(|path| path.is_file())
        };
        let program = |name: &str| {
            find(name)
                .ok_or_else(|| Failure::Missing(format!("{name} (beside {})", beside.display())))
        };
        let library = env::var_os("HEADWATER_LIBRARY").map(PathBuf::from);
        Ok(Tools {
            echo: program("headwater-echo")?,
            raw: program("headwater-raw")?,
            perftest: program("headwater-perftest")?,
            xtiperf: program("headwater-xtiperf")?,
            sctpperf: program("headwater-sctpperf")?,
            library: library.or_else(|| find("libheadwater.so")),
        })
    }

    pub fn echo(&self) -> Command {
        Command::new(&self.echo)
    }

    pub fn raw(&self) -> Command {
        Command::new(&self.raw)
    }

    pub fn perftest(&self) -> Command {
        Command::new(&self.perftest)
    }

    pub fn xtiperf(&self) -> Command {
        Command::new(&self.xtiperf)
    }

    pub fn sctpperf(&self) -> Command {
        Command::new(&self.sctpperf)
    }

    pub fn library(&self) -> Result<&Path> {
        self.library
            .as_deref()
            .ok_or_else(|| Failure::Missing("libheadwater.so".to_string()))
    }
}

/// Finds an installed program, also where daemons live.
pub fn installed(name: &str) -> Result<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
        .ok_or_else(|| Failure::Missing(name.to_string()))
}
