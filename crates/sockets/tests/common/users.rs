//! Processes of several users that share a runtime folder. Only root can have them.

use std::os::unix::fs::PermissionsExt;

use super::world::{Child, leave, run_workers};

pub const VICTIM: u32 = 65_001;
pub const FRIEND: u32 = 65_002;
pub const ENEMY: u32 = 65_003;
/// Whom none of them names.
pub const ANYBODY: u32 = 65_004;
const GROUP: u32 = 65_010;
const PEERS: &str = "uid:65001,uid:65002,uid:65003";

/// Can there be several?
pub fn possible() -> bool {
    // SAFETY: no arguments.
    unsafe { libc::geteuid() == 0 }
}

/// In a worker and its children: are there several?
pub fn several() -> bool {
    std::env::var_os("HEADWATER_PEERS").is_some()
}

/// Runs a worker with a runtime folder that the users share, if there can be several; else an ordinary one.
pub fn run(worker: &str, env: &[(&str, &str)]) {
    if !possible() {
        return assert!(run_workers(worker, 1, env));
    }
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("run");
    std::fs::create_dir(&folder).unwrap();
    std::os::unix::fs::chown(&folder, Some(0), Some(GROUP)).unwrap();
    for (path, mode) in [(outer.path(), 0o755), (folder.as_path(), 0o770)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let folder = folder.to_str().unwrap();
    let mut all = vec![("HEADWATER_DIR", folder), ("HEADWATER_PEERS", PEERS)];
    all.extend(env);
    assert!(run_workers(worker, 1, &all));
}

/// A child that is that user's, where there are several.
pub fn child(uid: u32, work: impl FnOnce()) -> Child {
    Child::run(|| {
        if several() {
            // SAFETY: integers, and no supplementary groups.
            let done = unsafe {
                libc::setgroups(0, core::ptr::null()) == 0
                    && libc::setresgid(GROUP, GROUP, GROUP) == 0
                    && libc::setresuid(uid, uid, uid) == 0
            };
            assert!(done);
            // Becoming another user has taken this back.
            // SAFETY: integers only.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        }
        work();
        leave(0);
    })
}
