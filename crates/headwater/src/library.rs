//! Where the library is, and how LD_PRELOAD names it.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Names the library instead.
pub const VARIABLE: &str = "HEADWATER_LIBRARY";
/// The library's name as a build leaves it, and as an installation does.
const NAMES: [&str; 2] = ["libheadwater.so.0", "libheadwater.so"];
/// Folders to look in, from that of the command: a build, then installations.
const PLACES: [&str; 4] = ["", "../lib", "../lib64", MULTIARCH];
#[cfg(target_arch = "x86_64")]
const MULTIARCH: &str = "../lib/x86_64-linux-gnu";
#[cfg(target_arch = "aarch64")]
const MULTIARCH: &str = "../lib/aarch64-linux-gnu";
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const MULTIARCH: &str = "../lib/headwater";

/// Why there is no library to preload.
#[derive(Debug)]
pub enum Missing {
    /// Nowhere near this folder.
    NotFound(PathBuf),
    /// LD_PRELOAD separates its names by spaces and colons and has no way to quote them.
    Unspeakable(PathBuf),
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::NotFound(folder) => write!(
                f,
                "libheadwater.so is neither in {0} nor in {0}/../lib; HEADWATER_LIBRARY=FILE names it",
                folder.display()
            ),
            Missing::Unspeakable(path) => write!(
                f,
                "{}: LD_PRELOAD can't name a path with a space or a colon in it",
                path.display()
            ),
        }
    }
}

/// Finds the library: HEADWATER_LIBRARY, else beside the command, else where an installation puts it.
pub fn locate() -> Result<PathBuf, Missing> {
    let path = match env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        Some(path) if Path::new(&path).is_file() => super::settings::absolute(Path::new(&path)),
        Some(path) => return Err(Missing::NotFound(path.into())),
        None => near_command()?,
    };
    let unspeakable = |byte: &u8| matches!(byte, b' ' | b':');
    if path.as_os_str().as_bytes().iter().any(unspeakable) {
        return Err(Missing::Unspeakable(path));
    }
    Ok(path)
}

/// `LD_PRELOAD` with `library` first and all that was there before, except other copies of the library.
pub fn preload(library: &Path, before: Option<&OsStr>) -> OsString {
    let mut list = library.as_os_str().as_bytes().to_vec();
    for entry in before
        .unwrap_or_default()
        .as_bytes()
        .split(|&byte| byte == b' ' || byte == b':')
    {
        if !entry.is_empty() && !is_library(entry) {
            list.push(b':');
            list.extend_from_slice(entry);
        }
    }
    OsString::from_vec(list)
}

fn near_command() -> Result<PathBuf, Missing> {
    let command = env::current_exe().unwrap_or_default();
    let folder = command.parent().unwrap_or(Path::new("/"));
    PLACES
        .iter()
        .filter_map(|place| folder.join(place).canonicalize().ok())
        .flat_map(|folder| NAMES.map(|name| folder.join(name)))
        .find(|path| path.is_file())
        .ok_or_else(|| Missing::NotFound(folder.to_path_buf()))
}

fn is_library(entry: &[u8]) -> bool {
    let name = entry.rsplit(|&byte| byte == b'/').next();
    name.is_some_and(|name| name.starts_with(b"libheadwater.so"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_preloaded_before_stays_behind_the_library() {
        let list = preload(
            Path::new("/a/libheadwater.so.0"),
            Some(OsStr::new("libx.so /lib/liby.so")),
        );
        assert_eq!(list, "/a/libheadwater.so.0:libx.so:/lib/liby.so");
    }

    #[test]
    fn a_run_within_a_run_preloads_one_copy() {
        let once = preload(Path::new("/a/libheadwater.so"), None);
        let twice = preload(Path::new("/b/libheadwater.so.0"), Some(&once));
        assert_eq!(twice, "/b/libheadwater.so.0");
    }
}
