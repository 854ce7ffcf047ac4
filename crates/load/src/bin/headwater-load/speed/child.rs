//! A process beside this one, and the line that it reports by a pipe when it is done.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::process;
use std::sync::OnceLock;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::sys::{check, end_with_parent, wait};

const FAILED: &str = "failed: ";

pub struct Child {
    pid: i32,
    pipe: PipeReader,
}

/// A child that is listened to.
pub struct Watched {
    pid: i32,
    listener: JoinHandle<String>,
}

/// Runs `work` in a child of this process, which ends with what it gives. To be called before there are threads.
pub fn fork(work: impl FnOnce() -> io::Result<String>) -> io::Result<Child> {
    let (reading, writing) = io::pipe()?;
    // SAFETY: this process has one thread, and the child goes on as an ordinary program.
    let pid = unsafe { libc::fork() };
    check(pid)?;
    if pid > 0 {
        return Ok(Child { pid, pipe: reading });
    }
    drop(reading);
    end_with_parent();
    let mut pipe = PIPE.get_or_init(|| writing);
    let said = work().unwrap_or_else(|error| give_up(&error.to_string()));
    let told = pipe.write_all(said.as_bytes());
    // With what a preloaded library does at the end of a program.
    process::exit(told.is_err() as i32);
}

/// What a process may take to say itself what is wrong.
pub const OWN_WORDS: Duration = Duration::from_millis(200);

/// A child's way to its parent.
static PIPE: OnceLock<PipeWriter> = OnceLock::new();

impl Child {
    /// Listens to it in a thread. This process ends where the child fails: nobody would wake those that wait for it.
    pub fn watch(mut self, name: &'static str) -> Watched {
        let listener = thread::spawn(move || {
            let mut said = String::new();
            let read = self.pipe.read_to_string(&mut said);
            let problem = match said.strip_prefix(FAILED) {
                _ if read.is_err() || said.is_empty() => "it died",
                Some(problem) => {
                    // Where this process has found something wrong and left, the child only suffers from that.
                    thread::sleep(OWN_WORDS);
                    problem
                }
                None => return said,
            };
            give_up(&format!("{name}: {problem}"));
        });
        let pid = self.pid;
        Watched { pid, listener }
    }
}

impl Watched {
    /// Waits for its report and its end.
    pub fn finish(self) -> io::Result<String> {
        let said = self
            .listener
            .join()
            .map_err(|_| io::Error::other("a thread failed"))?;
        match wait(self.pid)? {
            true => Ok(said),
            false => Err(io::Error::other("a process ended badly")),
        }
    }
}

/// Ends this process from any of its threads. A child tells its parent, which then ends too and says so.
pub fn give_up(problem: &str) -> ! {
    match PIPE.get() {
        Some(mut pipe) => {
            let _ = write!(pipe, "{FAILED}{problem}");
        }
        None => eprintln!("headwater-load speed: {problem}"),
    }
    process::exit(1)
}
