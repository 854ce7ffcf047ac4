//! Folders for what a run needs for a while: gone with it, however it ends.

use std::env;
use std::fs;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::failure::{Failure, Result};

/// Those that are there.
static ALL: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A folder that is removed when dropped, and before an interrupted run ends.
pub struct Scratch(PathBuf);

impl Scratch {
    /// Where temporary files go.
    pub fn new(prefix: &str) -> Result<Scratch> {
        Scratch::new_in(&env::temp_dir(), prefix)
    }

    pub fn new_in(place: &Path, prefix: &str) -> Result<Scratch> {
        // Held until it is listed, so that none is made that `remove_all` does not know.
        let mut all = all();
        let made = tempfile::Builder::new().prefix(prefix).tempdir_in(place);
        let made = made.map_err(|error| Failure::File(place.to_path_buf(), error))?;
        let path = made.keep();
        all.push(path.clone());
        Ok(Scratch(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
        all().retain(|path| *path != self.0);
    }
}

/// Removes all of them, for good: whoever makes another one waits for the end of this process.
pub fn remove_all() {
    /// Somebody may still write while it goes on.
    const TRIES: usize = 5;
    let all = all();
    for _ in 0..TRIES {
        all.iter().for_each(|path| {
            let _ = fs::remove_dir_all(path);
        });
    }
    mem::forget(all);
}

fn all() -> MutexGuard<'static, Vec<PathBuf>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
