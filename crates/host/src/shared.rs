//! Memory that a user's programs share, found by a small file in the user's runtime folder.
//!
//! It is a System V segment, and the file says which one. A mapped file would be simpler, but whoever may write to a file may
//! truncate it, and on a full file system it has holes: either is SIGBUS at the next access. A segment can't shrink, and takes
//! nothing from the folder's file system. It is marked for removal as soon as it is made, so it lasts for as long as some
//! process has it attached: nothing is left behind (whoever is killed before that has left its key in the file, by which the next
//! removes it), and a folder that is deleted under running programs (RemoveIPC= of
//! logind.conf(5)) takes nothing away from them. Programs that come later make another.
//!
//! Segments belong to an IPC namespace, so each of these has a file of its own. One of them has a second name without the
//! namespace's, which those who come later try first: to learn one's namespace takes longer than all the rest.

use std::ffi::CString;

use headwater_channel::shm::SharedSafe;

use crate::peer::Peer;
use crate::sync::{AtomicU64, Ordering};
use crate::{config, hidden, process, sys};

/// Why there is no shared memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenError {
    /// Folder, file or memory could not be made or opened: errno.
    Failed(&'static str, sys::Errno),
    /// Folder or file belongs to somebody else, is a link, or lets others in.
    Unsafe(&'static str),
}

impl OpenError {
    /// As a call would say it.
    pub fn errno(self) -> sys::Errno {
        match self {
            OpenError::Failed(_, e) => e,
            OpenError::Unsafe(_) => libc::EPERM,
        }
    }
}

/// The runtime folder of this user: `/dev/shm/headwater-UID`, or what HEADWATER_DIR names.
pub fn folder() -> String {
    config::get()
        .dir
        .clone()
        .unwrap_or_else(|| format!("/dev/shm/headwater-{}", sys::getuid()))
}

/// Who may use a runtime folder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Access {
    /// This user alone.
    Own,
    /// A group, in a folder that HEADWATER_DIR names, when HEADWATER_PEERS names other users.
    Peers,
}

impl Access {
    /// What owner and mode of a folder, file or segment allow, if that is safe.
    fn of(uid: u32, gid: u32, mode: u32) -> Option<Access> {
        let c = config::get();
        let ours = uid == sys::getuid();
        if ours && mode & 0o077 == 0 {
            return Some(Access::Own);
        }
        let by_root = uid == 0 || Peer { uid, gid }.is_allowed();
        let shared = !c.peers.is_empty() && c.dir.is_some();
        (shared && by_root && mode & 0o007 == 0).then_some(Access::Peers)
    }

    fn of_file(st: &libc::stat) -> Option<Access> {
        Access::of(st.st_uid, st.st_gid, st.st_mode)
    }

    fn mode(self) -> u32 {
        if self == Access::Own { 0o600 } else { 0o660 }
    }
}

/// What every segment begins with; the user's words follow.
#[derive(SharedSafe)]
#[repr(C, align(64))]
struct Header {
    magic: AtomicU64,
    /// Also in the file: the number of a segment that is gone may be another's by now.
    token: AtomicU64,
    size: AtomicU64,
    reserved: [u64; 5],
}

const MAGIC: u64 = u64::from_le_bytes(*b"HWSHARED");
/// In the file while a segment is made.
const MAKING: u64 = u64::from_le_bytes(*b"HWMAKING");
const HEADER: usize = size_of::<Header>();
/// Marked for removal, in `shm_perm.mode`: shmctl(2).
const REMOVED: u32 = 0o1000;

/// What the file holds: which segment it leads to, or the key of one that is just made.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C)]
struct Record {
    magic: u64,
    token: u64,
    segment: u64,
}

/// A file as it was when it was read. Whoever writes a record changes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Version(u64, u64, i64, i64);

impl Version {
    fn of(st: &libc::stat) -> Version {
        Version(st.st_dev, st.st_ino, st.st_mtime, st.st_mtime_nsec)
    }
}

/// How the file is opened. Somebody else's may have a lease, which is not waited for: fcntl(2), F_SETLEASE.
const OPEN: i32 = libc::O_RDWR | libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK;

/// How often somebody else is waited for who is just writing the file, a millisecond each time.
const ATTEMPTS: u32 = 50;

/// Attached memory, with the descriptor of its file.
pub struct Shared {
    /// The user's words, zero at first; attached for the life of the process.
    pub at: *mut u8,
    /// A hidden descriptor of the file, for locks on it.
    pub file: i32,
    path: CString,
    version: Version,
}

// SAFETY: the memory is shared by design, and its users reach it through atomics only.
unsafe impl Send for Shared {}
// SAFETY: nothing changes in it but that memory, which threads share as processes do.
unsafe impl Sync for Shared {}

impl Shared {
    /// Attaches the memory that `file` of the runtime folder leads to, with at least `size` bytes. Folder, file and memory are
    /// made when `create` and they are not there; otherwise ENOENT.
    pub fn open(folder: &str, file: &str, size: usize, create: bool) -> Result<Shared, OpenError> {
        let _quiet = process::Quiet::new();
        let path =
            |text: String| CString::new(text).map_err(|_| OpenError::Failed("file", libc::EINVAL));
        let short = path(format!("{folder}/{file}"))?;
        let c = config::get();
        // Where peers are named, a folder that was this user's own may have become a group's.
        let may_be_shared = !c.peers.is_empty() && c.dir.is_some();
        if !may_be_shared && let Some(shared) = Shared::known(&short, size) {
            return Ok(shared);
        }
        let access = enter(folder, create)?;
        let namespace = sys::inode(c"/proc/self/ns/ipc");
        if namespace == 0 {
            return Err(OpenError::Failed("/proc", libc::ENOENT));
        }
        let path = path(format!("{folder}/{file}.{namespace}"))?;
        for _ in 0..ATTEMPTS {
            if let Some(shared) = Shared::try_open(&path, access, size, create)? {
                if create && access == Access::Own {
                    // It may be another namespace's already.
                    let _ = sys::link(&path, &short);
                }
                return Ok(shared);
            }
            let _ = sys::ppoll(&mut [], Some(1_000_000));
        }
        Err(OpenError::Failed("file", libc::EAGAIN))
    }

    /// The memory that the name without a namespace leads to, if it is this user's own and in this namespace: another's
    /// segments have other tokens. Nobody else can have put a file of this user's there, so the folder is not looked at.
    fn known(path: &CString, size: usize) -> Option<Shared> {
        let file = sys::open(path, OPEN, 0).ok()?;
        let found = sys::fstat(file).ok().and_then(|st| {
            let ours = Access::of_file(&st) == Some(Access::Own);
            let record = recorded(file, MAGIC).filter(|_| ours)?;
            Some((attach(&record, Access::Own, size)?, Version::of(&st)))
        });
        let Some((at, version)) = found else {
            let _ = sys::close(file);
            return None;
        };
        match hidden::hide(file) {
            Ok(file) => Some(Shared {
                at,
                file,
                path: path.clone(),
                version,
            }),
            Err(_) => {
                // SAFETY: nobody has seen it.
                unsafe { sys::shmdt(at.wrapping_sub(HEADER)) };
                None
            }
        }
    }

    /// `None`: somebody else is just writing the file.
    fn try_open(
        path: &CString,
        access: Access,
        size: usize,
        create: bool,
    ) -> Result<Option<Shared>, OpenError> {
        let failed = |e| OpenError::Failed("file", e);
        let flags = if create { OPEN | libc::O_CREAT } else { OPEN };
        let file = sys::open(path, flags, access.mode())
            .and_then(hidden::hide)
            .map_err(failed)?;
        let found = attach_by(file, path, access, size, create);
        let version = sys::fstat(file).map(|st| Version::of(&st));
        match (found, version) {
            (Ok(Some(at)), Ok(version)) => Ok(Some(Shared {
                at,
                file,
                path: path.clone(),
                version,
            })),
            (found, version) => {
                hidden::close(file);
                found?;
                version.map_err(failed).map(|_| None)
            }
        }
    }

    /// Do programs that come now get other memory by this name? Folder and file may have been deleted and made anew. While
    /// there is none at all, this one is as good as any.
    pub fn is_replaced(&self) -> bool {
        sys::stat(&self.path).is_ok_and(|st| Version::of(&st) != self.version)
    }

    /// Is the descriptor still that of the file? A program may have closed it by a way that we don't see.
    pub fn has_file(&self) -> bool {
        sys::fstat(self.file).is_ok_and(|st| {
            let Version(dev, ino, ..) = self.version;
            (st.st_dev, st.st_ino) == (dev, ino)
        })
    }

    /// Closes the descriptor, for users who need no locks.
    pub fn without_file(self) -> *mut u8 {
        hidden::close(self.file);
        self.at
    }
}

/// Makes the runtime folder, if it must, and looks that it is this user's alone. EPERM: it is not.
pub fn enter_own(create: bool) -> Result<(), sys::Errno> {
    match enter(&folder(), create).map_err(OpenError::errno)? {
        Access::Own => Ok(()),
        Access::Peers => Err(libc::EPERM),
    }
}

/// Makes the folder, if it may and must; what it lets in.
fn enter(folder: &str, create: bool) -> Result<Access, OpenError> {
    let failed = |e| OpenError::Failed("folder", e);
    let dir = CString::new(folder).map_err(|_| failed(libc::EINVAL))?;
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    let mut opened = sys::open(&dir, flags, 0);
    if create && opened == Err(libc::ENOENT) {
        match sys::mkdir(&dir, 0o700) {
            Err(e) if e != libc::EEXIST => return Err(failed(e)),
            _ => opened = sys::open(&dir, flags, 0),
        }
    }
    let fd = opened.map_err(failed)?;
    let st = sys::fstat(fd);
    let _ = sys::close(fd);
    Access::of_file(&st.map_err(failed)?).ok_or(OpenError::Unsafe("folder"))
}

/// The memory that an open file leads to, or fresh memory that it leads to from now on.
fn attach_by(
    file: i32,
    path: &CString,
    access: Access,
    size: usize,
    create: bool,
) -> Result<Option<*mut u8>, OpenError> {
    let failed = |e| OpenError::Failed("file", e);
    let mut st = sys::fstat(file).map_err(failed)?;
    if access == Access::Peers && st.st_uid == sys::getuid() {
        // The umask may have taken away what the folder grants.
        let _ = sys::fchmod(file, access.mode());
        st = sys::fstat(file).map_err(failed)?;
    }
    if Access::of_file(&st) != Some(access) {
        return Err(OpenError::Unsafe("file"));
    }
    if let Some(at) = recorded(file, MAGIC).and_then(|r| attach(&r, access, size)) {
        return Ok(Some(at));
    }
    if !create {
        return Err(failed(libc::ENOENT));
    }
    match sys::flock(file, libc::LOCK_EX | libc::LOCK_NB) {
        Err(libc::EWOULDBLOCK) => return Ok(None),
        locked => locked.map_err(failed)?,
    }
    // Others may have been here first, or the file may have been deleted meanwhile: looked at once more.
    let current =
        sys::stat(path).is_ok_and(|now| (now.st_dev, now.st_ino) == (st.st_dev, st.st_ino));
    let attached = match recorded(file, MAGIC).and_then(|r| attach(&r, access, size)) {
        _ if !current => Ok(None),
        Some(at) => Ok(Some(at)),
        None => {
            recorded(file, MAKING).inspect(|r| remove_unfinished(r, size));
            make(file, access, st.st_gid, size).map(Some)
        }
    };
    let _ = sys::flock(file, libc::LOCK_UN);
    attached
}

fn recorded(file: i32, magic: u64) -> Option<Record> {
    let mut words = [[0; 8]; 3];
    let n = sys::read_at(file, words.as_flattened_mut(), 0);
    let whole = n == Ok(size_of_val(&words));
    let [found, token, segment] = words.map(u64::from_ne_bytes);
    (whole && found == magic).then_some(Record {
        magic,
        token,
        segment,
    })
}

/// Attaches a segment, if it is there, of the right kind, and of somebody who may use the folder.
fn attach(record: &Record, access: Access, size: usize) -> Option<*mut u8> {
    let id = i32::try_from(record.segment).ok()?;
    let at = sys::shmat(id).ok()?;
    let is_ours = |st: libc::shmid_ds| {
        let p = &st.shm_perm;
        let mode = p.mode as u32;
        // First the size, then what is in it.
        st.shm_segsz >= HEADER + size
            && mode & REMOVED != 0
            && Access::of(p.uid, p.gid, mode) == Some(access)
            && {
                // SAFETY: attached, at least that long, and any bits are valid.
                let h = unsafe { &*(at as *const Header) };
                h.magic.load(Ordering::Acquire) == MAGIC
                    && h.token.load(Ordering::Relaxed) == record.token
                    && h.size.load(Ordering::Relaxed) == size as u64
            }
    };
    if sys::shm_stat(id).is_ok_and(is_ours) {
        return Some(at.wrapping_add(HEADER));
    }
    // SAFETY: nobody has seen it.
    unsafe { sys::shmdt(at) };
    None
}

/// Removes what a process has made that was killed before it could mark it for removal. The file is locked, so nobody is at it.
fn remove_unfinished(record: &Record, size: usize) {
    let key = record.segment as i32;
    if key == libc::IPC_PRIVATE {
        return;
    }
    let Ok(id) = sys::shm_get(key, 0, 0) else {
        return;
    };
    // Whoever may write the file may name any key: nothing else looks like this.
    let is_unfinished = |st: libc::shmid_ds| {
        let p = &st.shm_perm;
        let uids = [p.uid, p.cuid];
        st.shm_segsz == HEADER + size
            && st.shm_nattch == 0
            && p.mode as u32 & REMOVED == 0
            && uids == [sys::getuid(); 2]
    };
    if sys::shm_stat(id).is_ok_and(is_unfinished) {
        let _ = sys::shm_remove(id);
    }
}

/// Makes a segment, and the file lead to it. Its key is in the file before there is one, so that it is found whenever this
/// process is killed.
fn make(file: i32, access: Access, gid: u32, size: usize) -> Result<*mut u8, OpenError> {
    let failed = |e| OpenError::Failed("memory", e);
    let token = (process::owner().bits()).rotate_left(32) ^ sys::now();
    let key = (token ^ token >> 32) as i32 | 1;
    let mut record = Record {
        magic: MAKING,
        token,
        segment: key as u32 as u64,
    };
    let written = |e| OpenError::Failed("file", e);
    write_record(file, &record).map_err(written)?;
    let id = sys::shmget_new(key, HEADER + size, access.mode()).map_err(failed)?;
    let attached = sys::shmat(id).and_then(|at| {
        if access == Access::Peers {
            sys::shm_set_group(id, gid)?;
        }
        Ok(at)
    });
    // From here on it is gone with the last process that has it.
    let removed = sys::shm_remove(id);
    let at = attached.map_err(failed)?;
    // SAFETY: attached, and zero: valid for a Header.
    let h = unsafe { &*(at as *const Header) };
    h.token.store(token, Ordering::Relaxed);
    h.size.store(size as u64, Ordering::Relaxed);
    h.magic.store(MAGIC, Ordering::Release);
    (record.magic, record.segment) = (MAGIC, id as u64);
    match removed.and_then(|()| write_record(file, &record)) {
        Ok(()) => Ok(at.wrapping_add(HEADER)),
        Err(e) => {
            // SAFETY: nobody has seen it.
            unsafe { sys::shmdt(at) };
            Err(OpenError::Failed("file", e))
        }
    }
}

fn write_record(file: i32, record: &Record) -> sys::Result<()> {
    let size = size_of::<Record>();
    if sys::largest_file() < size as u64 {
        // The kernel would raise SIGXFSZ.
        return Err(libc::EFBIG);
    }
    let words = [record.magic, record.token, record.segment].map(u64::to_ne_bytes);
    let n = sys::write_at(file, words.as_flattened(), 0)?;
    if n == size { Ok(()) } else { Err(libc::ENOSPC) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const SIZE: usize = 8192;

    fn folder() -> (tempfile::TempDir, String) {
        process::identify();
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("run").to_str().unwrap().to_string();
        (dir, folder)
    }

    fn first_word(s: &Shared) -> &AtomicU64 {
        // SAFETY: attached, and aligned.
        unsafe { &*(s.at as *const AtomicU64) }
    }

    /// By its name without a namespace's.
    fn file(folder: &str) -> std::path::PathBuf {
        std::path::Path::new(folder).join("a")
    }

    #[test]
    fn all_who_open_a_name_share_its_memory() {
        let (_dir, folder) = folder();
        assert!(Shared::open(&folder, "a", SIZE, false).is_err());
        let one = Shared::open(&folder, "a", SIZE, true).unwrap();
        let two = Shared::open(&folder, "a", SIZE, false).unwrap();
        let other = Shared::open(&folder, "b", SIZE, true).unwrap();
        first_word(&one).store(7, Ordering::Relaxed);
        assert_eq!(first_word(&two).load(Ordering::Relaxed), 7);
        assert_eq!(first_word(&other).load(Ordering::Relaxed), 0);
        assert!(!one.is_replaced() && !two.is_replaced());
    }

    #[test]
    fn memory_outlives_a_truncated_file_and_newcomers_get_another() {
        let (_dir, folder) = folder();
        let old = Shared::open(&folder, "a", SIZE, true).unwrap();
        let file = std::fs::OpenOptions::new()
            .write(true)
            .open(file(&folder))
            .unwrap();
        file.set_len(0).unwrap();
        first_word(&old).store(7, Ordering::Relaxed);
        let new = Shared::open(&folder, "a", SIZE, true).unwrap();
        assert_eq!(first_word(&new).load(Ordering::Relaxed), 0);
        assert!(old.is_replaced() && !new.is_replaced());
    }

    #[test]
    fn a_name_that_leads_to_memory_of_another_namespace_is_passed_over() {
        let (_dir, folder) = folder();
        let one = Shared::open(&folder, "a", SIZE, true).unwrap();
        let mut record = std::fs::read(file(&folder)).unwrap();
        record[8] ^= 1;
        std::fs::remove_file(file(&folder)).unwrap();
        std::fs::write(file(&folder), &record).unwrap();
        let private = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(file(&folder), private).unwrap();
        let two = Shared::open(&folder, "a", SIZE, true).unwrap();
        first_word(&one).store(7, Ordering::Relaxed);
        assert_eq!(first_word(&two).load(Ordering::Relaxed), 7);
        // Its namespace may live.
        assert_eq!(std::fs::read(file(&folder)).unwrap(), record);
    }

    #[test]
    fn a_lease_on_the_file_keeps_nobody_waiting() {
        use std::os::fd::AsRawFd;
        let (_dir, folder) = folder();
        let made = Shared::open(&folder, "a", SIZE, true).unwrap();
        hidden::close(made.file);
        let held = std::fs::File::open(file(&folder)).unwrap();
        /// Of <fcntl.h>.
        const F_SETSIG: i32 = 10;
        // SAFETY: integers only; SIGURG does nothing by default.
        let leased = unsafe {
            libc::fcntl(held.as_raw_fd(), F_SETSIG, libc::SIGURG) == 0
                && libc::fcntl(held.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK) == 0
        };
        assert!(leased, "{}", std::io::Error::last_os_error());
        let opened = Shared::open(&folder, "a", SIZE, true);
        assert_eq!(opened.err(), Some(OpenError::Failed("file", libc::EAGAIN)));
        drop(held);
        assert!(Shared::open(&folder, "a", SIZE, true).is_ok());
    }

    #[test]
    fn memory_outlives_its_folder() {
        let (_dir, folder) = folder();
        let old = Shared::open(&folder, "a", SIZE, true).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        first_word(&old).store(7, Ordering::Relaxed);
        assert!(!old.is_replaced());
        let new = Shared::open(&folder, "a", SIZE, true).unwrap();
        assert_eq!(first_word(&new).load(Ordering::Relaxed), 0);
        assert!(old.is_replaced() && !new.is_replaced());
    }

    #[test]
    fn a_file_that_leads_elsewhere_is_not_followed() {
        let (_dir, folder) = folder();
        drop(Shared::open(&folder, "a", SIZE, true).unwrap());
        let id = sys::shmget(1 << 20, 0o600).unwrap();
        let record = [MAGIC, 1, id as u64].map(u64::to_le_bytes).concat();
        std::fs::write(file(&folder), record).unwrap();
        let opened = Shared::open(&folder, "a", SIZE, true);
        assert_eq!(first_word(&opened.unwrap()).load(Ordering::Relaxed), 0);
        let st = sys::shm_stat(id).unwrap();
        assert_eq!(st.shm_nattch, 0);
        sys::shm_remove(id).unwrap();
    }

    #[test]
    fn what_was_killed_while_it_made_a_segment_left_it_to_the_next() {
        let (_dir, folder) = folder();
        drop(Shared::open(&folder, "a", SIZE, true).unwrap());
        let left = |size| {
            let key = sys::now() as i32 | 1;
            let id = sys::shmget_new(key, size, 0o600).unwrap();
            let record = [MAKING, 1, key as u32 as u64].map(u64::to_le_bytes);
            std::fs::write(file(&folder), record.concat()).unwrap();
            id
        };
        let id = left(HEADER + SIZE);
        drop(Shared::open(&folder, "a", SIZE, true).unwrap());
        assert!(sys::shm_stat(id).is_err());
        // Nothing of ours looks like that.
        let id = left(HEADER + SIZE + 1);
        drop(Shared::open(&folder, "a", SIZE, true).unwrap());
        assert!(sys::shm_stat(id).is_ok());
        sys::shm_remove(id).unwrap();
    }

    #[test]
    fn a_folder_that_others_may_enter_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let opened = Shared::open(dir.path().to_str().unwrap(), "a", SIZE, true);
        assert_eq!(opened.err(), Some(OpenError::Unsafe("folder")));
    }
}
