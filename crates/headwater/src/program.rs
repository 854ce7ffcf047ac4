//! What a file would be as a program, and what keeps a preloaded library out of it.

pub(crate) mod elf;
mod forgetful;
mod script;

use std::env;
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use headwater_host::sys;
use rustix::fs::{Access, StatVfsMountFlags, access, getxattr_query, statvfs};
use rustix::thread::no_new_privs;

use self::forgetful::Forgetful;

/// A command as the kernel would run it.
#[derive(Debug)]
pub struct Program {
    /// What the command's name leads to.
    pub path: PathBuf,
    /// What is executed in the end: the interpreter where `path` is a script, else `path` itself.
    pub image: PathBuf,
    /// Why a preloaded library would not be in it, or do nothing.
    pub obstacle: Option<Obstacle>,
    /// Does it keep the library from what it starts?
    pub forgetful: Option<Forgetful>,
}

/// What keeps the library out of a program, or from doing anything in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// No dynamic loader, so nothing can be preloaded.
    Static,
    /// Go's runtime makes its system calls itself, in dynamic programs too.
    Go,
    StaticGo,
    /// It would run with more rights than its caller's; the loader then ignores preloading.
    Setuid,
    Setgid,
    Capabilities,
    /// Its loader, by name, is that of musl.
    Musl(String),
    /// Some other loader than glibc's.
    Loader(String),
    Bits32,
    Machine,
    /// Its runtime checks by its own versions of the C library's functions what a program reads and writes, and knows nothing of
    /// what comes by a ring.
    Sanitizer(&'static str),
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Obstacle::Musl(loader) => {
                return write!(f, "is linked against musl ({loader}), not glibc");
            }
            Obstacle::Loader(loader) => return write!(f, "is loaded by {loader}, not by glibc"),
            Obstacle::Sanitizer(name) => {
                return write!(
                    f,
                    "is built with {name}, so its sockets stay with the kernel"
                );
            }
            Obstacle::Static => "is statically linked",
            Obstacle::StaticGo => "is a statically linked Go program",
            Obstacle::Go => "is a Go program, which makes its system calls without the C library",
            Obstacle::Setuid => "is setuid, so the loader ignores LD_PRELOAD",
            Obstacle::Setgid => "is setgid, so the loader ignores LD_PRELOAD",
            Obstacle::Capabilities => "has file capabilities, so the loader ignores LD_PRELOAD",
            Obstacle::Bits32 => "is a 32-bit program, the library is 64-bit",
            Obstacle::Machine => "is a program for another kind of CPU",
        };
        f.write_str(text)
    }
}

impl Obstacle {
    /// What can be done about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Obstacle::Static => "use a dynamically linked build of it",
            Obstacle::Go | Obstacle::StaticGo => {
                "none: put the other programs of the host under Headwater; this one talks to them over TCP"
            }
            Obstacle::Setuid | Obstacle::Setgid => {
                "start it as the user that it changes to, or use a copy without the bit"
            }
            Obstacle::Capabilities => {
                "give it its capabilities otherwise (AmbientCapabilities= in a unit), or use a copy without them"
            }
            Obstacle::Musl(_) | Obstacle::Loader(_) => {
                "use a build for glibc, such as a Debian image instead of an Alpine one"
            }
            Obstacle::Bits32 | Obstacle::Machine => "use a build for this machine",
            Obstacle::Sanitizer(_) => "use a build without it where speed matters",
        }
    }
}

/// Looks up `name` and examines what would run. An error is what execvp(3) would say.
pub fn examine(name: &OsStr) -> io::Result<Program> {
    let path = find(name)?;
    let image = script::image(&path);
    let obstacle = obstacle(&image);
    // A name may lead elsewhere, as apachectl does.
    let real = path.canonicalize().ok();
    let forgetful = forgetful::known(&path).or_else(|| forgetful::known(real.as_deref()?));
    Ok(Program {
        path,
        image,
        obstacle,
        forgetful,
    })
}

/// The file that execvp(3) would run: `name` itself when it has a slash, else the first such executable in PATH.
pub fn find(name: &OsStr) -> io::Result<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return executable(&path).map(|()| path);
    }
    let folders = env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    let mut failure = io::Error::from_raw_os_error(libc::ENOENT);
    for folder in env::split_paths(&folders) {
        let path = match folder.as_os_str().is_empty() {
            true => Path::new(".").join(name),
            false => folder.join(name),
        };
        match executable(&path) {
            Ok(()) => return Ok(path),
            Err(e) if e.raw_os_error() == Some(libc::EACCES) => failure = e,
            Err(_) => {}
        }
    }
    Err(failure)
}

fn executable(path: &Path) -> io::Result<()> {
    let is_file = fs::metadata(path)?.is_file();
    if is_file && access(path, Access::EXEC_OK).is_ok() {
        return Ok(());
    }
    Err(io::Error::from_raw_os_error(libc::EACCES))
}

/// What can't be read, or is no ELF file, has no obstacle that we know of.
fn obstacle(image: &Path) -> Option<Obstacle> {
    let meta = fs::metadata(image).ok();
    let of_rights = meta.and_then(|meta| rights(image, &meta));
    of_rights.or_else(|| elf::obstacle(image))
}

/// Would it run with more rights than ours? See execve(2) and "secure-execution mode" in ld.so(8).
fn rights(image: &Path, meta: &Metadata) -> Option<Obstacle> {
    if ignores_rights(image) {
        return None;
    }
    let [_, uid, _, gid] = sys::users_and_groups();
    let mode = meta.mode();
    if mode & libc::S_ISUID != 0 && meta.uid() != uid {
        return Some(Obstacle::Setuid);
    }
    let setgid = libc::S_ISGID | libc::S_IXGRP;
    if mode & setgid == setgid && meta.gid() != gid {
        return Some(Obstacle::Setgid);
    }
    let has_capabilities = || getxattr_query(image, "security.capability").is_ok_and(|len| len > 0);
    (uid != 0 && has_capabilities()).then_some(Obstacle::Capabilities)
}

/// On a nosuid mount, or with no_new_privs, the kernel gives no rights away.
fn ignores_rights(image: &Path) -> bool {
    no_new_privs().is_ok_and(|set| set)
        || statvfs(image).is_ok_and(|fs| fs.f_flag.contains(StatVfsMountFlags::NOSUID))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_tests_own_program_can_be_preloaded() {
        let own = env::current_exe().unwrap();
        assert_eq!(examine(own.as_os_str()).unwrap().obstacle, None);
    }

    #[test]
    fn a_setuid_program_of_another_user_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tool");
        fs::copy(env::current_exe().unwrap(), &path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o4755)).unwrap();
        let mine = examine(path.as_os_str()).unwrap();
        assert_eq!(
            mine.obstacle, None,
            "one's own setuid program gains nothing"
        );
        let other = std::os::unix::fs::chown(&path, Some(12345), None);
        let may_chown = other.is_ok();
        if may_chown && !ignores_rights(&path) {
            // chown clears the bit.
            fs::set_permissions(&path, fs::Permissions::from_mode(0o4755)).unwrap();
            let theirs = examine(path.as_os_str()).unwrap();
            assert_eq!(theirs.obstacle, Some(Obstacle::Setuid));
        }
    }

    #[test]
    fn what_is_not_there_and_what_may_not_run_differ() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("text");
        fs::write(&path, "hello").unwrap();
        let errno = |path: &Path| find(path.as_os_str()).unwrap_err().raw_os_error();
        assert_eq!(errno(&path), Some(libc::EACCES));
        assert_eq!(errno(&dir.path().join("none")), Some(libc::ENOENT));
    }
}
