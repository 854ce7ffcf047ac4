//! Who we are as the owner of a lock, and whether another owner still lives.
//!
//! A child of fork is a new owner. It learns so without a hook: the word that remembers the owner lives on a page that the
//! kernel empties at fork (MADV_WIPEONFORK).

use core::ptr::null_mut;

use syscalls::{Sysno, syscall};

use crate::lock::Owner;
use crate::sync::{AtomicPtr, AtomicU64, Ordering};
use crate::sys;

static PAGE: AtomicPtr<AtomicU64> = AtomicPtr::new(null_mut());

/// This process.
#[inline]
pub fn me() -> Owner {
    match known_page().map_or(0, |page| page.load(Ordering::Relaxed)) {
        0 => learn(),
        known => Owner::from_bits(known),
    }
}

#[inline]
fn known_page() -> Option<&'static AtomicU64> {
    // SAFETY: null, or a mapped page that is never unmapped.
    unsafe { PAGE.load(Ordering::Acquire).as_ref() }
}

/// Is that process gone, or a zombie? Never says so of processes in another pid namespace, nor when in doubt.
pub fn dead(owner: Owner) -> bool {
    if !owner.is_beside(me()) {
        return false;
    }
    let pid = owner.pid() as i32;
    if !sys::process_exists(pid) {
        return true;
    }
    process(pid).is_some_and(|p| {
        let start = Owner::new(owner.pid(), p.start, 0).start();
        let other = owner.start() != 0 && start != owner.start();
        // A leader that left while its threads go on looks like a zombie too.
        other || (p.zombie && p.threads <= 1)
    })
}

#[cold]
fn learn() -> Owner {
    let pid = sys::getpid();
    let start = process(pid).map_or(0, |p| p.start);
    let namespace = sys::stat(c"/proc/self/ns/pid").map_or(0, |st| st.st_ino);
    let owner = Owner::new(pid as u32, start, namespace);
    if let Some(page) = page() {
        page.store(owner.bits(), Ordering::Relaxed);
    }
    owner
}

/// The remembering page; `None` where the kernel can't empty it at fork: then we learn anew each time.
fn page() -> Option<&'static AtomicU64> {
    if let Some(known) = known_page() {
        return Some(known);
    }
    let size = 4096;
    let rw = libc::PROT_READ | libc::PROT_WRITE;
    let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let fresh = sys::map(size, rw, private, -1).ok()?;
    // SAFETY: a fresh mapping, known to nobody else until it is stored, and unmapped only if it never is.
    unsafe {
        if syscall!(Sysno::madvise, fresh, size, libc::MADV_WIPEONFORK).is_err() {
            let _ = sys::munmap(fresh, size);
            return None;
        }
        let won = PAGE.compare_exchange(
            null_mut(),
            fresh.cast(),
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        match won {
            Ok(_) => Some(&*fresh.cast()),
            Err(other) => {
                let _ = sys::munmap(fresh, size);
                Some(&*other)
            }
        }
    }
}

/// What /proc/PID/stat says of a process, see proc(5).
pub struct Process {
    /// Only its parent has not yet seen that it ended.
    pub zombie: bool,
    /// 0: none, or none that is seen here.
    pub parent: i32,
    pub flags: u64,
    pub threads: u64,
    /// In ticks since the machine was started.
    pub start: u64,
}

impl Process {
    /// Fields 3, 4, 9, 20 and 22 of its text.
    pub fn parse(text: &[u8]) -> Option<Process> {
        // The command's name in parentheses may hold anything, so fields are counted from the last parenthesis.
        let end = text.iter().rposition(|&b| b == b')')?;
        let mut fields = core::str::from_utf8(&text[end + 1..])
            .ok()?
            .split_ascii_whitespace();
        let state = fields.next()?;
        let mut number = |skip: usize| fields.nth(skip)?.parse::<u64>().ok();
        Some(Process {
            zombie: matches!(state, "Z" | "X"),
            parent: number(0)? as i32,
            flags: number(4)?,
            threads: number(10)?,
            start: number(1)?,
        })
    }
}

fn process(pid: i32) -> Option<Process> {
    let mut path = [0u8; 32];
    let path = sys::c_text(&mut path, format_args!("/proc/{pid}/stat"))?;
    let mut text = [0u8; 512];
    let fd = sys::open(path, libc::O_RDONLY | libc::O_CLOEXEC, 0).ok()?;
    let n = sys::read_bytes(fd, &mut text);
    let _ = sys::close(fd);
    Process::parse(&text[..n.ok()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_itself_and_is_alive() {
        assert_eq!(me().pid(), std::process::id());
        assert!(!dead(me()));
    }

    #[test]
    fn an_owner_with_another_start_time_is_gone() {
        let me = me();
        let earlier = Owner::new(me.pid(), me.start() as u64 + 1, me.namespace() as u64);
        assert!(dead(earlier));
    }

    #[test]
    fn an_owner_that_could_not_learn_its_start_is_gone_with_its_process() {
        let me = me();
        let [here, nowhere] =
            [me.pid(), 1 << 23].map(|pid| Owner::new(pid, 0, me.namespace() as u64));
        assert!(!dead(here));
        assert!(dead(nowhere));
    }

    #[test]
    fn an_owner_that_could_not_learn_its_namespace_is_left_alone() {
        assert!(!dead(Owner::new(1 << 23, 1, 0)));
    }

    #[test]
    fn owners_elsewhere_are_left_alone() {
        let me = me();
        // The kernel numbers namespaces one after the other: no two of a machine are to be taken for one.
        for n in [1, 255, 256, 0xf_fffe] {
            let elsewhere = Owner::new(1 << 23, 1, me.namespace() as u64 + n);
            assert!(!dead(elsewhere), "{n}");
        }
    }
}
