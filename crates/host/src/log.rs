//! One line per event to stderr or HEADWATER_LOG_FILE. No allocation, async-signal-safe.

use core::fmt::{Arguments, Write};

use crate::sync::{AtomicI32, AtomicU32, Ordering};
use crate::{config, sys};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Level {
    Error,
    #[default]
    Warn,
    Info,
    Debug,
}

impl Level {
    pub fn parse(text: &str) -> Option<Level> {
        Some(match text {
            "error" => Level::Error,
            "warn" => Level::Warn,
            "info" => Level::Info,
            "debug" => Level::Debug,
            _ => return None,
        })
    }
}

static LEVEL: AtomicU32 = AtomicU32::new(Level::Warn as u32);
static FD: AtomicI32 = AtomicI32::new(2);

/// Takes level and file from the configuration.
pub fn start() {
    let c = config::get();
    LEVEL.store(c.log as u32, Ordering::Relaxed);
    let Some(path) = &c.log_file else { return };
    let Ok(path) = std::ffi::CString::new(path.as_str()) else {
        return;
    };
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND | libc::O_CLOEXEC;
    match sys::open(&path, flags, 0o600).and_then(crate::hidden::hide) {
        Ok(fd) => FD.store(fd, Ordering::Relaxed),
        Err(e) => write(Level::Warn, format_args!("log file {path:?}: errno {e}")),
    }
}

pub fn write(level: Level, text: Arguments<'_>) {
    if level as u32 > LEVEL.load(Ordering::Relaxed) {
        return;
    }
    let mut buf = [0u8; 400];
    let mut line = sys::Cursor {
        buf: &mut buf[..399],
        len: 0,
    };
    let _ = write!(line, "headwater[{}]: {text}", sys::getpid());
    let len = line.len;
    buf[len] = b'\n';
    sys::write_all(FD.load(Ordering::Relaxed), &buf[..=len]);
}
