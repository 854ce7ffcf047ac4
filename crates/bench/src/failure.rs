//! Why a sample could not be taken.

use std::fmt;
use std::io;

use headwater_load::WRONG_BYTES;
pub use headwater_load::tells_wrong_bytes;

pub type Result<T> = std::result::Result<T, Failure>;

#[derive(Debug)]
pub enum Failure {
    /// The command line does not make sense.
    Usage(String),
    /// A program or library is not there: skip what needs it.
    Missing(String),
    /// A program could not be started.
    Start(String, io::Error),
    /// A program did not get ready or did not end in time, and was killed; what it last said.
    Late(String, String),
    /// The run was interrupted, and its programs with it.
    Interrupted,
    /// A program ended badly; what it last said.
    Ended(String, String),
    /// A program's output is not what it should be.
    Output(String, String),
    /// Received bytes differ from the sent ones.
    Contents(String),
    /// A file or folder cannot be read or written.
    File(std::path::PathBuf, io::Error),
    /// A file of results could not be read, or written; a whole sentence.
    Read(String),
    Write(String),
    /// The measuring process itself failed.
    Io(io::Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(problem) => f.write_str(problem),
            Failure::Missing(what) => write!(f, "{what} is not there"),
            Failure::Start(what, error) => write!(f, "cannot start {what}: {error}"),
            Failure::Late(what, said) if said.is_empty() => write!(f, "{what} took too long"),
            Failure::Late(what, said) => write!(f, "{what} took too long, having said: {said}"),
            Failure::Interrupted => f.write_str("the run was interrupted"),
            Failure::Ended(what, said) => write!(f, "{what} failed: {said}"),
            Failure::Output(what, said) => write!(f, "{what} said something unexpected: {said}"),
            Failure::Contents(what) => write!(f, "{what} received {WRONG_BYTES}"),
            Failure::File(path, error) => write!(f, "{}: {error}", path.display()),
            Failure::Read(words) | Failure::Write(words) => f.write_str(words),
            Failure::Io(error) => error.fmt(f),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Io(error)
    }
}

impl Failure {
    /// What a program that ended badly, with these last words, means by all that it `said`.
    pub fn ended(name: &str, last_words: String, said: &str) -> Failure {
        match tells_wrong_bytes(said) {
            true => Failure::Contents(name.to_string()),
            false => Failure::Ended(name.to_string(), last_words),
        }
    }

    /// Whether it is about received bytes, also where it only tells of another failure that is.
    pub fn is_wrong_contents(&self) -> bool {
        tells_wrong_bytes(&self.to_string())
    }
}

#[cfg(test)]
mod tests;
