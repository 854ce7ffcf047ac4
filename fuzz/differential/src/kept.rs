//! Scripts that once differed.

use std::path::{Path, PathBuf};

use crate::script::Script;

/// All of them, and their files.
///
/// # Errors
/// If one can't be read: which, and why.
pub fn all() -> Result<Vec<(PathBuf, Script)>, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds");
    let entries = std::fs::read_dir(folder).map_err(|e| format!("seeds: {e}"))?;
    let files = entries.map(|entry| Ok(entry.map_err(|e| format!("seeds: {e}"))?.path()));
    let mut files = files.collect::<Result<Vec<_>, String>>()?;
    files.sort();
    files.into_iter().map(read).collect()
}

fn read(file: PathBuf) -> Result<(PathBuf, Script), String> {
    let wrong = |why: String| format!("{}: {why}", file.display());
    let text = std::fs::read_to_string(&file).map_err(|e| wrong(e.to_string()))?;
    let script = text.parse().map_err(wrong)?;
    Ok((file, script))
}
