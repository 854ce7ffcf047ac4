//! Where a run leaves its results, and where it goes on from.

use std::path::PathBuf;

use crate::failure::{Failure, Result};
use crate::files;
use crate::machine::Machine;
use crate::results::Run;

/// Where results go.
pub struct Outputs {
    pub out: PathBuf,
    pub samples: Option<PathBuf>,
}

impl Outputs {
    /// Fails at once where nothing could be written in the end.
    pub fn prepare(&self) -> Result<()> {
        files::check_writable(&self.out)?;
        match &self.samples {
            Some(samples) => files::check_writable(files::folder(samples)),
            None => Ok(()),
        }
    }

    pub fn results(&self) -> PathBuf {
        self.out.join("results.json")
    }

    /// What there is so far of a run that is not over: earlier results stay as they are until then.
    pub fn partial(&self) -> PathBuf {
        self.out.join("results.partial.json")
    }

    pub fn earlier(&self) -> Result<Run> {
        let partial = self.partial();
        if !partial.exists() {
            let out = self.out.display();
            return Err(Failure::Usage(format!(
                "--resume: in {out} there is no run that was cut short; without --resume a new one begins"
            )));
        }
        Run::read(&partial)
    }

    /// Figures of different machines or versions don't belong together.
    pub fn check_same(&self, run: &Run, here: &Machine) -> Result<()> {
        let of = |machine: &Machine| {
            let (cpu, kernel, cpus) = (&machine.cpu, &machine.kernel, machine.cpus.len());
            format!(
                "headwater {}, {cpus} CPUs ({cpu}), Linux {kernel}",
                machine.version
            )
        };
        if of(&run.machine) == of(here) {
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "--resume: the run in {} was begun with {}, and this is {}; begin a new one, with another --out",
            self.out.display(),
            of(&run.machine),
            of(here)
        )))
    }
}
