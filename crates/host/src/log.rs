//! One line per event, to HEADWATER_LOG_FILE or standard error. No allocation, async-signal-safe.
//!
//! Standard error is the program's, and others may read it: a compiler's is shown as the compiler's, a daemon may have closed it and
//! opened a file of its data under its number. So a line goes there only if somebody asked for a log (HEADWATER_LOG) and the
//! number still is what it was when the library was loaded, or if it is the terminal of a person who started the program.

use core::fmt::{Arguments, Write};

pub use crate::config::Level;
use crate::sync::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use crate::{config, env, sys};

static LEVEL: AtomicU32 = AtomicU32::new(Level::Warn as u32);
/// HEADWATER_LOG_FILE; -1: none.
static FILE: AtomicI32 = AtomicI32::new(-1);
/// What FILE is, or standard error where HEADWATER_LOG asks for lines there, as [`sys::identity`]; 0: not known.
static FILE_IS: AtomicU64 = AtomicU64::new(0);
static STDERR_IS: AtomicU64 = AtomicU64::new(0);

const STDERR: i32 = 2;

/// When the library is loaded, and no later than [`start`]: what standard error is, if lines were asked for there.
pub fn loaded() {
    if env::is_set("HEADWATER_LOG", &[]) {
        STDERR_IS.store(sys::identity(STDERR), Ordering::Relaxed);
    }
}

/// The value of a variable, or `otherwise`, where it says nothing, or nothing legal, of which a line tells.
pub fn said<T>(name: &str, parse: fn(&str) -> Result<T, String>, otherwise: T) -> T {
    let Some(text) = env::var(name).filter(|text| !text.is_empty()) else {
        return otherwise;
    };
    parse(&text).unwrap_or_else(|why| {
        write(Level::Warn, format_args!("{name}={text}: {why}; ignored"));
        otherwise
    })
}

/// Takes level and file from the configuration.
pub fn start() {
    let c = config::get();
    LEVEL.store(c.log as u32, Ordering::Relaxed);
    if !env::is_remembered() && env::var("HEADWATER_LOG").is_some_and(|v| !v.is_empty()) {
        STDERR_IS.store(sys::identity(STDERR), Ordering::Relaxed);
    }
    let Some(path) = &c.log_file else { return };
    let Ok(path) = std::ffi::CString::new(path.as_str()) else {
        return;
    };
    match sys::open_to_append(&path, 0o600).and_then(crate::hidden::hide) {
        Ok(fd) => {
            FILE_IS.store(sys::identity(fd), Ordering::Relaxed);
            FILE.store(fd, Ordering::Relaxed);
        }
        Err(e) => write(Level::Warn, format_args!("log file {path:?}: errno {e}")),
    }
}

pub fn write(level: Level, text: Arguments<'_>) {
    if level as u32 > LEVEL.load(Ordering::Relaxed) {
        return;
    }
    let Some(fd) = destination() else { return };
    let mut buf = [0u8; 400];
    let mut line = sys::Cursor::new(&mut buf[..399]);
    let _ = write!(line, "headwater[{}]: {text}", sys::getpid());
    let len = line.len;
    buf[len] = b'\n';
    sys::write_all(fd, &buf[..=len]);
}

/// Where a line may go now.
fn destination() -> Option<i32> {
    let file = FILE.load(Ordering::Relaxed);
    if file >= 0 {
        return (sys::identity(file) == FILE_IS.load(Ordering::Relaxed)).then_some(file);
    }
    let asked = STDERR_IS.load(Ordering::Relaxed);
    let may = match asked {
        0 => is_persons_terminal(STDERR),
        known => sys::identity(STDERR) == known,
    };
    may.then_some(STDERR)
}

/// Is it the terminal from which this process is controlled? A terminal that a daemon has opened for its work is not, nor is the
/// other side of one.
fn is_persons_terminal(fd: i32) -> bool {
    let answers = |request: u64| sys::ioctl_int(fd, request).is_ok();
    answers(libc::TIOCGPGRP) && !answers(libc::TIOCGPTN)
}
