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
mod tests {
    use super::*;

    #[test]
    fn an_account_is_found_by_its_whole_name() {
        let passwd =
            "root:x:0:0:root:/root:/bin/sh\npostgres2:x:5:5::/:/\npostgres:x:101:104::/:/bin/sh\n";
        let (uid, gid) = (101, 104);
        assert_eq!(find(passwd, "postgres"), Some(Account { uid, gid }));
        assert_eq!(find(passwd, "post"), None);
    }

    #[test]
    fn a_closed_folder_closes_what_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        let close = |mode| fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode));
        // Nobody's, so that only what all may do counts.
        let (uid, gid) = (u32::MAX - 1, u32::MAX - 1);
        let account = Account { uid, gid };
        close(0o755).unwrap();
        assert!(account.may_read(&file));
        close(0o700).unwrap();
        assert!(!account.may_read(&file));
        assert!(!account.may_read(Path::new("/nowhere")));
    }
}
