//! Doorbells: one descriptor per end. A ring says only "look again", so stale rings are harmless.
//!
//! A bell is an eventfd: where all who hold it trust each other. Any of them may fill its counter and take O_NONBLOCK away, and
//! then a ring waits. Between those who don't, it is a timerfd, which is *guarded*: a ring sets the timer to a time that is
//! past, a look takes it back, and no holder can make either of them wait. It costs a few microseconds more.

#[cfg(not(loom))]
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::sys::{self, Result};

/// Has this process ever had a guarded bell? Until then no kind needs to be told from the other.
#[cfg(not(loom))]
static GUARDED: AtomicU32 = AtomicU32::new(0);

fn any_guarded() -> bool {
    #[cfg(not(loom))]
    return GUARDED.load(Ordering::Relaxed) != 0;
    #[cfg(loom)]
    false
}

fn note_guarded() {
    #[cfg(not(loom))]
    GUARDED.store(1, Ordering::Relaxed);
}

/// Makes a non-blocking, close-on-exec eventfd.
pub fn create() -> Result<i32> {
    sys::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC)
}

/// Makes a guarded bell.
pub fn create_guarded() -> Result<i32> {
    let fd = sys::timerfd()?;
    note_guarded();
    Ok(fd)
}

/// Is this a guarded bell? To be asked of what came from somebody who isn't trusted, before it is used as a bell.
pub fn is_guarded(fd: i32) -> bool {
    let guarded = sys::timerfd_is(fd);
    if guarded {
        note_guarded();
    }
    guarded
}

/// Could this be an eventfd? No for pipes, sockets and files, which would take a ring for data, or raise SIGPIPE.
pub fn may_be_eventfd(fd: i32) -> bool {
    let Ok(st) = sys::fstat(fd) else { return false };
    match nameless_inode() {
        // What has no name has one inode in common.
        Ok(nameless) => nameless == (st.st_dev, st.st_ino),
        // There is nothing left to learn it by; all that has a name has a type too.
        Err(_) => st.st_mode & libc::S_IFMT == 0,
    }
}

fn nameless_inode() -> Result<(libc::dev_t, libc::ino_t)> {
    #[cfg(not(loom))]
    static DEVICE: AtomicU64 = AtomicU64::new(0);
    #[cfg(not(loom))]
    static INODE: AtomicU64 = AtomicU64::new(0);
    #[cfg(not(loom))]
    match INODE.load(Ordering::Acquire) {
        0 => {}
        inode => return Ok((DEVICE.load(Ordering::Relaxed), inode)),
    }
    let own = create()?;
    let st = sys::fstat(own);
    let _ = sys::close(own);
    let st = st?;
    #[cfg(not(loom))]
    {
        DEVICE.store(st.st_dev, Ordering::Relaxed);
        INODE.store(st.st_ino, Ordering::Release);
    }
    Ok((st.st_dev, st.st_ino))
}

/// Rings. Async-signal-safe. A full counter (EAGAIN) is as good as a ring.
pub fn ring(fd: i32) {
    if any_guarded() && sys::timerfd_set(fd, true).is_ok() {
        return;
    }
    let one = 1u64.to_ne_bytes();
    let _ = sys::write_bytes(fd, &one);
}

/// Takes the rings so far; true if there were any, and always of a guarded bell.
pub fn take(fd: i32) -> bool {
    if any_guarded() && sys::timerfd_set(fd, false).is_ok() {
        return true;
    }
    let mut count = [0u8; 8];
    sys::read_bytes(fd, &mut count).is_ok()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn readable(fd: i32, timeout: Option<u64>) -> bool {
        let mut p = [sys::entry(fd, libc::POLLIN)];
        sys::ppoll(&mut p, timeout) == Ok(1)
    }

    fn close(fd: i32) {
        sys::close(fd).unwrap();
    }

    #[test]
    fn a_ring_is_heard_until_it_is_taken() {
        for bell in [create().unwrap(), create_guarded().unwrap()] {
            for _ in 0..3 {
                assert!(!readable(bell, Some(0)));
                ring(bell);
                ring(bell);
                assert!(readable(bell, Some(5_000_000_000)));
                assert!(take(bell));
            }
            assert!(!readable(bell, Some(0)));
            close(bell);
        }
    }

    #[test]
    fn a_guarded_bell_never_makes_anybody_wait() {
        let bell = create_guarded().unwrap();
        // Any other holder could do this.
        sys::fcntl(bell, libc::F_SETFL, 0).unwrap();
        assert!(take(bell) && take(bell));
        for _ in 0..3 {
            ring(bell);
        }
        assert!(readable(bell, Some(5_000_000_000)));
        assert!(take(bell) && take(bell));
        close(bell);
    }

    #[test]
    fn kinds_are_known() {
        let mut ends = [0; 2];
        // SAFETY: room for two descriptors.
        assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
        let (plain, guarded) = (create().unwrap(), create_guarded().unwrap());
        assert!(is_guarded(guarded) && !is_guarded(plain) && !is_guarded(ends[1]));
        assert!(may_be_eventfd(plain) && !may_be_eventfd(ends[0]) && !may_be_eventfd(-1));
        for fd in [plain, guarded, ends[0], ends[1]] {
            close(fd);
        }
    }
}
