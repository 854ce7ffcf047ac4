//! Another user's account, for programs that refuse to run as root.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Account {
    uid: u32,
    gid: u32,
}

impl Account {
    pub fn named(name: &str) -> Option<Account> {
        find(&fs::read_to_string("/etc/passwd").ok()?, name)
    }

    /// Makes a command run under it. It looks for the library's runtime folder where this user has it, as that of the
    /// measuring process would be closed to it.
    pub fn run(self, command: &mut Command) {
        command.uid(self.uid).gid(self.gid);
        command.env_remove("HEADWATER_DIR");
    }

    /// Lets it reach what it may read or write in a folder of ours.
    pub fn let_in(self, folder: &Path) -> io::Result<()> {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o711))
    }

    /// Gives it a file or a folder.
    pub fn give(self, path: &Path) -> io::Result<()> {
        chown(path, Some(self.uid), Some(self.gid))
    }

    /// Whether it may read a file, as far as the plain permissions say.
    pub fn may_read(self, path: &Path) -> bool {
        let allows = |path: &Path, bit: u32| {
            let Ok(meta) = fs::metadata(path) else {
                return false;
            };
            let shift = match (meta.uid() == self.uid, meta.gid() == self.gid) {
                (true, _) => 6,
                (_, true) => 3,
                _ => 0,
            };
            (meta.mode() >> shift) & bit != 0
        };
        let Ok(path) = path.canonicalize() else {
            return false;
        };
        let mut folders = path.ancestors().skip(1);
        allows(&path, 0o4) && folders.all(|folder| allows(folder, 0o1))
    }
}

/// In the text of /etc/passwd.
fn find(passwd: &str, name: &str) -> Option<Account> {
    passwd.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        match fields.as_slice() {
            &[known, _, uid, gid, ..] if known == name => Some(Account {
                uid: uid.parse().ok()?,
                gid: gid.parse().ok()?,
            }),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests;
