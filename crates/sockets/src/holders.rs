//! Who else has a connection, as /proc tells: before one that an image without the library had comes back to the ring, and when
//! one that a former image lent goes with bytes unread, and nobody can tell who was lent it.
//!
//! Each process has to be one that has not got it, or that has the library too. Where we may not look, it is one that can't
//! have inherited it: it is older than the connection, or was started by one that is, and that is not above us.

use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::mem::MaybeUninit;
use core::time::Duration;

use headwater_channel::identity::Process;
use headwater_channel::lock::Lock;
use headwater_host::sync::{AtomicU64, Ordering};
use headwater_host::{process, reclaim, sys};

use crate::conn::{self, Conn};
use crate::images;
use crate::record::{self, Record};

/// Connections looked for at once.
const MOST: usize = 128;
/// A look may take this long of the processor, whoever else has it meanwhile, and looks no more than a part of the time.
const BOUND: u64 = Duration::from_millis(50).as_nanos() as u64;
const SHARE: u64 = 20;
/// So far questions about single connections may be ahead of that part: they come many at a time, when a process ends.
const CREDIT: u64 = Duration::from_secs(1).as_nanos() as u64;
/// Times that a process whose descriptors move is looked at.
const TRIES: u32 = 8;

/// PF_KTHREAD among the flags in /proc/PID/stat.
const KERNEL_THREAD: u64 = 0x20_0000;

#[derive(Clone, Copy)]
struct Wanted {
    record: &'static Record,
    letting: u32,
    inode: u64,
    found: bool,
}

// Every fork touches it: see process.rs.
#[unsafe(link_section = ".data")]
pub static LOOKING: Lock = Lock::new();

struct Search {
    /// When the next look may begin.
    next: AtomicU64,
    /// By when the questions about single connections have had no more than their part of the time.
    owed_until: AtomicU64,
    wanted: UnsafeCell<[MaybeUninit<Wanted>; MOST]>,
}

// SAFETY: `wanted` is only reached under the lock.
unsafe impl Sync for Search {}

headwater_host::large! {
    rarely:
    static SEARCH: Search = Search {
        next: AtomicU64::new(0),
        owed_until: AtomicU64::new(0),
        wanted: UnsafeCell::new([MaybeUninit::uninit(); MOST]),
    };
}

/// Looks who has the connections that images without the library were given, now that the pipe says that these are gone. For
/// each that only processes with the library have, its record says so afterwards.
#[cold]
pub fn look() {
    if sys::now() < SEARCH.next.load(Ordering::Relaxed) {
        return;
    }
    let Some(_section) = process::try_lock(&LOOKING) else {
        return;
    };
    let begun = sys::thread_time();
    // SAFETY: under the lock.
    let wanted = unsafe { &mut *SEARCH.wanted.get() };
    let mut count = 0;
    for w in conn::all().filter_map(wanting).take(MOST) {
        wanted[count].write(w);
        count += 1;
    }
    // One that was let out just now may be with a child of ours still, which has the library until its exec.
    if images::is_present() {
        return;
    }
    // SAFETY: so many were written.
    let wanted = unsafe { wanted[..count].assume_init_mut() };
    if count > 0 && search(wanted, Whom::Strangers).is_some() {
        for w in wanted.iter().filter(|w| !w.found) {
            w.record.cleared.store(w.letting, Ordering::SeqCst);
        }
    }
    let took = sys::thread_time() - begun;
    let next = sys::now() + took * SHARE;
    SEARCH.next.store(next, Ordering::Relaxed);
}

/// Has no other process a connection? False where that can't be told, or has been asked too often.
#[cold]
pub fn is_ours_alone(record: &'static Record, inode: u64) -> bool {
    let (now, begun) = (sys::now(), sys::thread_time());
    let owed = SEARCH.owed_until.load(Ordering::Relaxed).max(now);
    if owed - now > CREDIT {
        return false;
    }
    let mut wanted = [Wanted {
        record,
        letting: 0,
        inode,
        found: false,
    }];
    let alone = search(&mut wanted, Whom::Anybody).is_some() && !wanted[0].found;
    let took = sys::thread_time() - begun;
    SEARCH
        .owed_until
        .store(owed + took * SHARE, Ordering::Relaxed);
    alone
}

fn wanting(c: &'static Conn) -> Option<Wanted> {
    let looks = reclaim::enter();
    let v = c.view(&looks)?;
    let record = c.record();
    let letting = record.lettings.load(Ordering::SeqCst);
    let ours = record.strangers.load(Ordering::SeqCst) == images::family();
    let open = record.cleared.load(Ordering::SeqCst) != letting;
    (ours && open && c.serves(&v) && record::memory_of(c.record_index()).is_some()).then(|| {
        Wanted {
            record,
            letting,
            inode: c.inode.load(Ordering::Relaxed),
            found: false,
        }
    })
}

/// `None`: there may be a holder that can't be seen.
type Told = Option<()>;

/// A folder of /proc.
pub struct Folder(pub i32);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = sys::close(self.0);
    }
}

impl Folder {
    pub fn open(parent: i32, path: &CStr) -> Result<Folder, i32> {
        sys::open_at(parent, path, libc::O_DIRECTORY).map(Folder)
    }

    /// What stands in the file `rest` of the folder named `number`: its length, or as much as there is room for.
    pub fn read(&self, number: i32, rest: &str, text: &mut [u8]) -> Result<usize, i32> {
        let mut room = [0u8; 32];
        let name = name(&mut room, number, rest).ok_or(libc::EINVAL)?;
        let file = sys::open_at(self.0, name, 0).map(Folder)?;
        sys::read_at(file.0, text, 0)
    }
}

/// Who counts as a holder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whom {
    Anybody,
    /// Who has not got the library.
    Strangers,
}

/// Looks through all processes but this one.
fn search(wanted: &mut [Wanted], whom: Whom) -> Told {
    let proc = Folder::open(libc::AT_FDCWD, c"/proc").ok()?;
    // One that does not show the first process hides others too.
    sys::stat_at(proc.0, c"1/stat").ok()?;
    let until = sys::thread_time() + BOUND;
    let me = sys::getpid();
    let mut told = Some(());
    sys::each_number(proc.0, |pid| {
        if pid != me {
            told = process(&proc, pid, wanted, whom).filter(|()| sys::thread_time() < until);
        }
        told.is_some()
    })
    .ok()?;
    told
}

#[inline(never)]
fn process(proc: &Folder, pid: i32, wanted: &mut [Wanted], whom: Whom) -> Told {
    let mut room = [0u8; 32];
    let descriptors = match Folder::open(proc.0, name(&mut room, pid, "/fd")?) {
        Ok(folder) => folder,
        Err(e) => return unseen(e, proc, pid, wanted),
    };
    let mut hits = [0u8; MOST / 8];
    let mut any = false;
    let mut look = || {
        each_file(&descriptors, |st| {
            for (i, w) in wanted.iter().enumerate() {
                if st.st_mode & libc::S_IFMT == libc::S_IFSOCK && st.st_ino == w.inode {
                    hits[i / 8] |= 1 << (i % 8);
                    any = true;
                }
            }
        })
    };
    let mut seen = look();
    for _ in 1..TRIES {
        if seen != Err(libc::EAGAIN) {
            break;
        }
        seen = look();
    }
    if let Err(e) = seen {
        return unseen(e, proc, pid, wanted);
    }
    if any && (whom == Whom::Anybody || !has_library(&descriptors)?) {
        for (i, w) in wanted.iter_mut().enumerate() {
            w.found |= hits[i / 8] & 1 << (i % 8) != 0;
        }
    }
    Some(())
}

/// A descriptor that was not seen because it has just been closed may be open by another number: EAGAIN.
fn each_file(descriptors: &Folder, mut each: impl FnMut(&libc::stat)) -> Result<(), i32> {
    let mut seen = Ok(());
    sys::each_number(descriptors.0, |fd| {
        let mut room = [0u8; 32];
        let st = name(&mut room, fd, "")
            .ok_or(libc::EAGAIN)
            .and_then(|name| sys::stat_at(descriptors.0, name));
        match st {
            Ok(st) => each(&st),
            Err(libc::ENOENT) => seen = Err(libc::EAGAIN),
            Err(e) => seen = Err(e),
        }
        seen.is_ok()
    })?;
    seen
}

/// What can be told of a process that could not be looked at.
fn unseen(e: i32, proc: &Folder, pid: i32, wanted: &[Wanted]) -> Told {
    match e {
        // It has ended.
        libc::ENOENT | libc::ESRCH => Some(()),
        libc::EACCES | libc::EPERM => {
            let born = |w: &Wanted| w.record.born.load(Ordering::Relaxed);
            let oldest = wanted.iter().map(born).min()?;
            is_no_heir(proc, pid, oldest)
        }
        _ => None,
    }
}

/// Has it the memory in which the holders with the library know of each other?
fn has_library(descriptors: &Folder) -> Option<bool> {
    let mut found = false;
    each_file(descriptors, |st| found |= record::is_memory(st)).ok()?;
    Some(found)
}

/// Generations that are followed upwards.
const DEPTH: u32 = 64;

/// Can a process not have what came when the machine was `born` ticks old? It would descend from one that had it: from this
/// one, from one above, to whom orphans go, or from one that is younger and does so in turn.
fn is_no_heir(proc: &Folder, pid: i32, born: u64) -> Told {
    let mut p = match stat(proc, pid) {
        Err(libc::ENOENT | libc::ESRCH) => return Some(()),
        read => read.ok()?,
    };
    if has_no_files(&p) || p.start < born {
        return Some(());
    }
    for _ in 0..DEPTH {
        let parent = p.parent;
        p = stat(proc, parent).ok()?;
        if p.start < born {
            return (!is_above(proc, parent)?).then_some(());
        }
    }
    None
}

/// Is it this process, or has it started one that has ... started this one?
fn is_above(proc: &Folder, pid: i32) -> Option<bool> {
    let mut above = sys::getpid();
    for _ in 0..DEPTH {
        if above == pid {
            return Some(true);
        }
        above = match stat(proc, above).ok()?.parent {
            0 => return Some(false),
            parent => parent,
        };
    }
    None
}

fn has_no_files(p: &Process) -> bool {
    p.zombie || p.flags & KERNEL_THREAD != 0
}

// Apart: signal handlers may have little stack.
#[inline(never)]
fn stat(proc: &Folder, pid: i32) -> Result<Process, i32> {
    let mut text = [0u8; 512];
    let n = proc.read(pid, "/stat", &mut text)?;
    Process::parse(&text[..n]).ok_or(libc::EINVAL)
}

fn name<'a>(room: &'a mut [u8; 32], number: i32, rest: &str) -> Option<&'a CStr> {
    sys::c_text(room, format_args!("{number}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_of_a_process_is_understood() {
        let said = b"7 (a ) b (c) S 1 7 7 0 -1 4194560 160 0 0 0 0 0 0 0 20 0 1 0 8123 2 0";
        let lives = Process::parse(said).unwrap();
        assert!(!has_no_files(&lives));
        assert_eq!((lives.parent, lives.threads, lives.start), (1, 1, 8123));
        let text = String::from_utf8_lossy(said).replace(") S", ") Z");
        assert!(Process::parse(text.as_bytes()).is_some_and(|p| has_no_files(&p)));
        let text = String::from_utf8_lossy(said).replace("4194560", "2129984");
        assert!(Process::parse(text.as_bytes()).is_some_and(|p| has_no_files(&p)));
        assert!(Process::parse(b"7 (a) S 1").is_none());
    }

    #[test]
    fn this_process_began_before_now() {
        let text = std::fs::read("/proc/self/stat").unwrap();
        let p = Process::parse(&text).unwrap();
        assert!(!has_no_files(&p) && p.start > 0 && p.start <= sys::boot_ticks());
        assert_eq!(p.parent, sys::getppid());
    }

    #[test]
    fn heirs_are_those_that_came_later_and_by_us() {
        let proc = Folder::open(libc::AT_FDCWD, c"/proc").unwrap();
        let me = sys::getpid();
        assert_eq!(is_above(&proc, me), Some(true));
        assert_eq!(is_above(&proc, sys::getppid()), Some(true));
        let began = stat(&proc, me).unwrap().start;
        // What came after this process and before its children.
        let mut child = std::process::Command::new("sleep")
            .arg("100")
            .spawn()
            .unwrap();
        let pid = child.id() as i32;
        assert_eq!(is_above(&proc, pid), Some(false));
        let theirs = stat(&proc, pid).unwrap().start;
        assert_eq!(is_no_heir(&proc, pid, theirs + 1), Some(()));
        if began < theirs {
            assert_eq!(is_no_heir(&proc, pid, theirs), None);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(is_no_heir(&proc, pid, 0), Some(()));
    }
}
