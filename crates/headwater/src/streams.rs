//! `headwater streams`: the STREAMS of this user's processes, and their administration.

mod autopush;
mod list;
mod log;
mod modules;

use std::process::ExitCode;

use clap::Subcommand;

#[derive(clap::Args)]
pub struct Streams {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List the live streams: modules, what waits, marks, how often full, wake-ups
    List(list::List),
    /// List what can be pushed and opened: what comes with the library, and modules in C
    Modules(modules::Modules),
    /// Print trace messages of strlog as they come
    Strace(log::Trace),
    /// Print error messages of strlog as they come
    Strerr(log::Errors),
    /// Show or change which modules are pushed when a device is opened
    Autopush(autopush::Autopush),
}

impl Streams {
    pub fn execute(&self) -> ExitCode {
        headwater_host::process::identify();
        let (name, done) = match &self.verb {
            Verb::List(list) => ("list", list.execute()),
            Verb::Modules(modules) => ("modules", modules.execute()),
            Verb::Strace(trace) => ("strace", trace.execute()),
            Verb::Strerr(errors) => ("strerr", errors.execute()),
            Verb::Autopush(autopush) => ("autopush", autopush.execute()),
        };
        match done {
            Ok(()) => ExitCode::SUCCESS,
            Err(problem) => {
                eprintln!("headwater streams {name}: {problem}");
                ExitCode::FAILURE
            }
        }
    }
}

/// What went wrong with the runtime folder.
fn explain(errno: i32) -> String {
    let folder = headwater_host::board::folder();
    match errno {
        libc::EPERM => {
            format!("{folder}: not this user's alone, or open to others; see headwater doctor")
        }
        errno => format!("{folder}: {}", std::io::Error::from_raw_os_error(errno)),
    }
}
