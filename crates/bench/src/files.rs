//! Files that are replaced as a whole: whoever looks sees the old contents or the new, never a part.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::failure::{Failure, Result};

/// Writes `bytes` beside `path`, makes sure they are on the disk, and renames them into place. On failure what was there is
/// as it was, and nothing is left behind.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    replace_by(path, bytes.len(), |file| file.write_all(bytes))
}

/// Fails, and says what to do, where no file can be written in the folder. It is made if it is not there.
pub fn check_writable(folder: &Path) -> Result<()> {
    let tried = fs::create_dir_all(folder).and_then(|()| tempfile::tempfile_in(folder));
    tried.map(drop).map_err(|error| {
        Failure::Write(format!(
            "nothing can be written in {}: {error}; {}",
            folder.display(),
            remedy(folder, &error)
        ))
    })
}

fn replace_by(
    path: &Path,
    size: usize,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<()> {
    put(path, fill).map_err(|error| {
        Failure::Write(format!(
            "cannot write {} ({size} bytes): {error}; {}; {}",
            path.display(),
            remedy(folder(path), &error),
            match path.exists() {
                true => "what it held before is still there",
                false => "nothing was left behind",
            }
        ))
    })
}

fn put(path: &Path, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let folder = folder(path);
    fs::create_dir_all(folder)?;
    let mut file = tempfile::Builder::new()
        .prefix(".headwater-")
        // As any other file's, less the umask: results are there to be read.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)?;
    fill(file.as_file_mut())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    // The name is on the disk when the folder is; file systems that cannot do this still have the file.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

/// Where a file is.
pub fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

fn remedy(folder: &Path, error: &io::Error) -> String {
    const OTHER: &str = "choose another place (--out, --samples)";
    let folder = folder.display();
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            format!("free that much in {folder}, or {OTHER}")
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            format!("make {folder} writable, or {OTHER}")
        }
        _ => OTHER.to_string(),
    }
}

#[cfg(test)]
mod tests;
