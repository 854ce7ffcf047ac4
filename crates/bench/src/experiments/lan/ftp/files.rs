//! The files that are offered, and those that were fetched.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::statfs;

use crate::failure::{Failure, Result};
use crate::scratch::Scratch;

const MEMORY: &str = "/dev/shm";
/// As much as all files of a session may take, fetched and offered; half of what is free if that is less.
const MOST_BYTES: u64 = 256 << 20;

/// A folder with one file under many names, and an empty one beside it.
pub struct Files {
    folder: Scratch,
    in_memory: bool,
    size: usize,
    count: u64,
}

impl Files {
    /// How many files of a size can be fetched at once.
    pub fn room(scratch: &Path, size: usize) -> u64 {
        let free = free(place(scratch, size).0).unwrap_or(0) / 2;
        (MOST_BYTES.min(free) / size as u64).saturating_sub(1)
    }

    /// Puts a file where the server finds it, in memory if there is room.
    pub fn offer(scratch: &Path, size: usize, count: u64) -> Result<Files> {
        let (place, in_memory) = place(scratch, size);
        let folder = Scratch::new_in(place, "headwater-lan-")?;
        let files = Files {
            folder,
            in_memory,
            size,
            count,
        };
        fs::create_dir(files.offered())?;
        fs::create_dir(files.wanted())?;
        let mut names = files.names();
        let first = files.offered().join(names.next().unwrap_or_default());
        let mut file = File::create(&first)?;
        pieces(size).try_for_each(|piece| file.write_all(&piece))?;
        // The server gives anonymous users only what all may read.
        file.set_permissions(fs::Permissions::from_mode(0o644))?;
        names.try_for_each(|name| fs::hard_link(&first, files.offered().join(name)))?;
        Ok(files)
    }

    pub fn offered(&self) -> PathBuf {
        self.folder.path().join("offered")
    }

    /// Where fetched files belong.
    pub fn wanted(&self) -> PathBuf {
        self.folder.path().join("fetched")
    }

    pub fn names(&self) -> impl Iterator<Item = String> + use<> {
        (1..=self.count).map(|number| format!("f-{number}"))
    }

    pub fn in_memory(&self) -> bool {
        self.in_memory
    }

    /// Compares every fetched file.
    pub fn check(&self) -> Result<()> {
        for name in self.names() {
            let right = is_right(&self.wanted().join(&name), self.size)?;
            if !right {
                return Err(Failure::Contents(format!("ncftpget {name}")));
            }
        }
        Ok(())
    }
}

/// Where files go, and whether that is memory.
fn place(scratch: &Path, size: usize) -> (&Path, bool) {
    let memory = Path::new(MEMORY);
    // The file, and at least two copies.
    let enough = free(memory).is_some_and(|free| free / 3 > size as u64);
    if enough && is_tmpfs(memory) && tempfile::tempfile_in(memory).is_ok() {
        return (memory, true);
    }
    (scratch, is_tmpfs(scratch))
}

fn is_tmpfs(path: &Path) -> bool {
    statfs(path).is_ok_and(|found| found.f_type == libc::TMPFS_MAGIC)
}

fn free(path: &Path) -> Option<u64> {
    let found = statfs(path).ok()?;
    Some(found.f_bavail * found.f_bsize as u64)
}

/// Of prime length, so that lost and doubled pieces do not line up again.
const PERIOD: usize = 65_521;

/// The contents of a file: a random block over and over.
fn pieces(size: usize) -> impl Iterator<Item = Vec<u8>> {
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let block: Vec<u8> = (0..PERIOD)
        .map(|_| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed as u8
        })
        .collect();
    (0..size)
        .step_by(PERIOD)
        .map(move |start| block[..PERIOD.min(size - start)].to_vec())
}

fn is_right(path: &Path, size: usize) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let mut found = Vec::with_capacity(PERIOD);
    for piece in pieces(size) {
        found.clear();
        Read::by_ref(&mut file)
            .take(piece.len() as u64)
            .read_to_end(&mut found)?;
        if found != piece {
            return Ok(false);
        }
    }
    Ok(file.read(&mut [0])? == 0)
}

#[cfg(test)]
mod tests;
