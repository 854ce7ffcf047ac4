//! The process's identity, its locked sections, and what happens around fork.
//!
//! A thread inside a *section* holds a lock that others, perhaps in other processes, wait for. Sections are short and never
//! block; signal handlers of the program are put off until the section ends (see [`crate::signal`]).

use std::cell::Cell;

use headwater_channel::identity;
use headwater_channel::lock::{Lock, Owner, Taken};

use crate::sync::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use crate::{postponed, sys};

// What every process reads or writes at start, fork and exit, and what is held over a fork, stands among the initialised data, on a
// page that the loader has written to anyway: each page more costs each of them some microseconds.
/// Zero until somebody asks, so that a child of fork with nothing of ours changes no page for it.
#[unsafe(link_section = ".data")]
static PID: AtomicI32 = AtomicI32::new(0);
#[unsafe(link_section = ".data")]
static NETNS: AtomicU64 = AtomicU64::new(0);
#[unsafe(link_section = ".data")]
static ENABLED: AtomicBool = AtomicBool::new(false);
#[unsafe(link_section = ".data")]
static NEVER: AtomicBool = AtomicBool::new(false);
#[unsafe(link_section = ".data")]
static CONFINED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static SECTIONS: Cell<u32> = const { Cell::new(0) };
}

/// Learns who we are: where the C library does not know that we are a process of our own.
pub fn identify() {
    identified(sys::getpid());
}

/// In the child of fork(3). Who we are is learnt when somebody asks.
#[unsafe(link_section = ".text.life")]
pub fn forked() {
    match PID.load(Ordering::Relaxed) {
        0 => forget_netns(),
        // It may be asked no more.
        _ if is_confined() => identified(sys::thread_id().unwrap_or(0)),
        _ => identified(0),
    }
}

fn identified(pid: i32) {
    PID.store(pid, Ordering::Relaxed);
    forget_netns();
}

fn forget_netns() {
    if NETNS.load(Ordering::Relaxed) != 0 {
        NETNS.store(0, Ordering::Relaxed);
    }
}

pub fn enable(on: bool) {
    ENABLED.store(on && !NEVER.load(Ordering::Acquire), Ordering::Release);
}

/// Sockets are not accelerated in this process from here on, whether it has begun to do so or not.
pub fn never_enable() {
    NEVER.store(true, Ordering::Release);
    enable(false);
}

/// Are sockets that come from here on left to the kernel?
#[inline]
pub fn is_barred() -> bool {
    NEVER.load(Ordering::Acquire)
}

/// Are sockets accelerated in this process?
#[inline]
pub fn enabled() -> bool {
    ENABLED.load(Ordering::Acquire)
}

/// The program has confined itself: none of its calls passes through us from here on, but for what it must be given first.
pub fn confine() {
    pid();
    CONFINED.store(true, Ordering::Release);
    enable(false);
}

#[inline]
pub fn is_confined() -> bool {
    CONFINED.load(Ordering::Acquire)
}

/// May there be, or come to be, descriptors that are not foreign?
#[inline]
pub fn present() -> bool {
    !is_confined()
}

#[inline]
pub fn pid() -> i32 {
    match PID.load(Ordering::Relaxed) {
        0 => learn_pid(),
        known => known,
    }
}

#[cold]
fn learn_pid() -> i32 {
    if shares_a_thread() {
        // Nobody else is its parent while it has our memory.
        return sys::getppid();
    }
    identify();
    PID.load(Ordering::Relaxed)
}

/// Are we the child of a vfork, which goes on with a thread of its parent's, as the C library sees it?
fn shares_a_thread() -> bool {
    sys::thread_id().is_some_and(|id| id != sys::gettid())
}

/// The process as a lock owner; also its identity on the board.
#[inline]
pub fn owner() -> Owner {
    identity::me()
}

/// Identity of the network namespace; 0 where nothing tells.
pub fn netns() -> u64 {
    match NETNS.load(Ordering::Relaxed) {
        0 => {
            let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
            if let Ok(fd) = sys::socket(libc::AF_UNIX, kind, 0) {
                learn_netns(fd);
                let _ = sys::close(fd);
            }
            NETNS.load(Ordering::Relaxed)
        }
        known => known,
    }
}

/// Learns it from a socket, which is far quicker than asking /proc.
pub fn learn_netns(socket: i32) {
    if NETNS.load(Ordering::Relaxed) == 0 {
        let learnt = match cookie(socket) {
            Err(libc::EBADF | libc::ENOTSOCK) => return,
            Err(_) => sys::inode(c"/proc/self/ns/net"),
            Ok(told) => told,
        };
        NETNS.store(learnt, Ordering::Relaxed);
    }
}

/// The one that a socket is in, which may have been made elsewhere.
pub fn netns_of(socket: i32) -> u64 {
    cookie(socket).unwrap_or_else(|_| netns())
}

/// Kernels before 5.14 don't tell: ENOPROTOOPT.
fn cookie(socket: i32) -> sys::Result<u64> {
    sys::sockopt(socket, libc::SOL_SOCKET, libc::SO_NETNS_COOKIE)
}

/// Is this the child of a vfork (or of a raw clone), which shares our memory but is not us?
pub fn is_borrowed() -> bool {
    if is_confined() {
        return false;
    }
    match PID.load(Ordering::Relaxed) {
        0 => shares_a_thread(),
        known => sys::getpid() != known,
    }
}

pub use identity::dead;

/// Holds a shared lock; ends the section, with a full fence, when dropped.
pub struct Section<'a> {
    lock: &'a Lock,
    pub taken: Taken,
}

/// Enters a section.
#[inline]
pub fn lock(lock: &Lock) -> Section<'_> {
    SECTIONS.with(|s| s.set(s.get() + 1));
    let taken = lock.lock(owner(), dead);
    Section { lock, taken }
}

/// Who holds a lock that no other process sees.
const HERE: Owner = Owner::new(1, 0, 0);

/// Enters a section of a lock that no other process sees: it need not name this one, which costs system calls to learn, in each
/// child of fork anew.
#[inline]
pub fn lock_own(lock: &Lock) -> Section<'_> {
    SECTIONS.with(|s| s.set(s.get() + 1));
    let taken = lock.lock(HERE, |_| false);
    Section { lock, taken }
}

/// The same of a lock that needs no care around fork: in the child it is free, whoever had it. [`Taken::Stolen`] tells of that.
pub fn lock_free_in_child(lock: &Lock) -> Section<'_> {
    SECTIONS.with(|s| s.set(s.get() + 1));
    let me = owner();
    // A thread of another process is one of our parent's, which is not here.
    let taken = lock.lock(me, |owner| owner != me);
    Section { lock, taken }
}

/// As [`lock_own`], unless `give_up` says so while somebody else is in it.
pub fn lock_own_unless(lock: &Lock, give_up: impl FnMut() -> bool) -> Option<Section<'_>> {
    SECTIONS.with(|s| s.set(s.get() + 1));
    let taken = lock.lock_unless(HERE, |_| false, give_up);
    if taken.is_none() {
        leave();
    }
    Some(Section {
        lock,
        taken: taken?,
    })
}

/// Enters a section if nobody is in it.
pub fn try_lock(lock: &Lock) -> Option<Section<'_>> {
    SECTIONS.with(|s| s.set(s.get() + 1));
    if lock.try_lock(owner()) {
        return Some(Section {
            lock,
            taken: Taken::Free,
        });
    }
    leave();
    None
}

impl Drop for Section<'_> {
    #[inline]
    fn drop(&mut self) {
        self.lock.unlock_fenced();
        leave();
    }
}

/// A section whose end orders nothing that comes after it.
pub struct Brief<'a> {
    lock: &'a Lock,
}

/// As [`lock_own`].
#[inline]
pub fn lock_own_briefly(lock: &Lock) -> Brief<'_> {
    SECTIONS.with(|s| s.set(s.get() + 1));
    lock.lock(HERE, |_| false);
    Brief { lock }
}

/// Enters a section if nobody is in it.
#[inline]
pub fn try_lock_briefly(lock: &Lock) -> Option<Brief<'_>> {
    SECTIONS.with(|s| s.set(s.get() + 1));
    if lock.try_lock(owner()) {
        return Some(Brief { lock });
    }
    leave();
    None
}

impl Drop for Brief<'_> {
    #[inline]
    fn drop(&mut self) {
        self.lock.unlock();
        leave();
    }
}

/// Holds a lock of this process over a fork, so that no child finds it held by its parent.
pub fn hold_over_fork(lock: &Lock) {
    core::mem::forget(lock_own(lock));
}

pub fn let_go_after_fork(lock: &Lock) {
    lock.unlock();
    leave();
}

/// Ends a section whose guard was forgotten on purpose (around fork).
pub fn end_section() {
    leave();
}

/// Inside a section of this thread?
pub fn in_section() -> bool {
    SECTIONS.with(|s| s.get() > 0)
}

#[inline]
fn leave() {
    leave_by(1);
}

#[inline]
fn leave_by(counts: u32) {
    let left = SECTIONS.with(|s| {
        s.set(s.get() - counts);
        s.get()
    });
    if left == 0 {
        postponed::deliver();
    }
}

/// Keeps signal handlers out, without a lock, for as long as it lives.
pub struct Quiet {
    counts: u32,
}

/// Counted beside the sections: somebody catches what a wrong pointer in a copy makes of it.
const CATCHING: u32 = 1 << 16;

impl Quiet {
    #[inline]
    #[expect(clippy::new_without_default, reason = "it is an action, not a value")]
    pub fn new() -> Quiet {
        Quiet::counting(1)
    }

    #[inline]
    fn counting(counts: u32) -> Quiet {
        SECTIONS.with(|s| s.set(s.get() + counts));
        Quiet { counts }
    }
}

impl Drop for Quiet {
    #[inline]
    fn drop(&mut self) {
        leave_by(self.counts);
    }
}

/// As [`without_handlers`]; the caller catches a panic that stands for a [`Fault`](headwater_channel::copy::Fault).
pub fn catching_faults<T>(f: impl FnOnce() -> T) -> T {
    let _quiet = Quiet::counting(1 + CATCHING);
    f()
}

/// Is this thread inside [`catching_faults`]?
pub fn catches_faults() -> bool {
    SECTIONS.with(|s| s.get() >= CATCHING)
}

/// Keeps signal handlers out until what was published has been rung for.
pub fn without_handlers<T>(f: impl FnOnce() -> T) -> T {
    let _quiet = Quiet::new();
    f()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_know_their_numbers_without_the_kernel() {
        assert_eq!(sys::thread_id(), Some(sys::gettid()));
        std::thread::spawn(|| assert_eq!(sys::thread_id(), Some(sys::gettid())))
            .join()
            .unwrap();
    }

    /// Whoever has asked before: the child of a vfork has what its parent knows.
    #[test]
    #[expect(deprecated, reason = "programs do so")]
    fn a_child_of_vfork_is_told_from_its_parent() {
        for asked in [false, true] {
            match asked {
                true => identify(),
                false => PID.store(0, Ordering::Relaxed),
            }
            assert!(!is_borrowed());
            // SAFETY: the child makes system calls only, and leaves.
            unsafe {
                let child = libc::vfork();
                if child == 0 {
                    let is_right = is_borrowed() && pid() == sys::getppid();
                    libc::_exit(!is_right as i32);
                }
                let mut status = -1;
                assert_eq!(libc::waitpid(child, &mut status, 0), child);
                assert_eq!(status, 0);
            }
            assert_eq!(pid(), sys::getpid());
        }
    }

    #[test]
    fn a_child_of_fork_knows_its_number() {
        // SAFETY: the child makes system calls only, and leaves.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                forked();
                let is_right = sys::thread_id() == Some(sys::getpid()) && pid() == sys::getpid();
                libc::_exit((!is_right || is_borrowed()) as i32);
            }
            let mut status = -1;
            assert_eq!(libc::waitpid(child, &mut status, 0), child);
            assert_eq!(status, 0);
        }
    }
}
