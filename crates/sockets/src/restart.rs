//! Calls that the kernel begins anew once a handler with SA_RESTART has run: on what their number stands for by then, and without asking
//! us. A connection that comes by a number on which another thread's call waits in the kernel is left to the kernel, where that call would find it.

use headwater_host::sync::{AtomicI32, AtomicUsize, Ordering};
use headwater_host::sys;

use crate::conn::{Conn, Phase};
use crate::holders::Folder;

/// Numbers remembered; with more the oldest is forgotten.
const MOST: usize = 16;

static TAKEN: [AtomicI32; MOST] = [const { AtomicI32::new(0) }; MOST];
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// The number `fd` is about to go from `c`, on which a call may wait in the kernel.
pub fn going(c: &Conn, fd: i32) {
    let waits = match c.phase() {
        Phase::Listener => true,
        Phase::Tracked => c.record().is_busy(),
        // Those that wait in the ring begin anew by themselves.
        Phase::Carried => c.pins.load(Ordering::SeqCst) > 0,
        Phase::Free | Phase::Rest => false,
    };
    if waits {
        taken(fd);
    }
}

/// The number `fd` is about to stand for something else, or nothing.
pub fn taken(fd: i32) {
    if sys::is_single_threaded() {
        return;
    }
    let at = NEXT.fetch_add(1, Ordering::Relaxed) % MOST;
    TAKEN[at].store(fd + 1, Ordering::Release);
}

/// Does a call wait in the kernel for what had the number `fd` before?
#[inline]
pub fn is_waited_on(fd: i32) -> bool {
    NEXT.load(Ordering::Relaxed) != 0 && is_waited_on_still(fd)
}

#[cold]
fn is_waited_on_still(fd: i32) -> bool {
    let mut found = false;
    for place in &TAKEN {
        found |= place
            .compare_exchange(fd + 1, 0, Ordering::Acquire, Ordering::Relaxed)
            .is_ok();
    }
    if !found {
        return false;
    }
    let waits = has_waiter(fd);
    if waits {
        taken(fd);
    }
    waits
}

/// Is another thread of this process in a system call on the number? Where that can't be known, it may be.
fn has_waiter(fd: i32) -> bool {
    let Ok(tasks) = Folder::open(libc::AT_FDCWD, c"/proc/self/task") else {
        return true;
    };
    let me = sys::gettid();
    let mut found = false;
    let looked = sys::each_number(tasks.0, |tid| {
        found = tid != me && waits_on(&tasks, tid, fd);
        !found
    });
    found || looked.is_err()
}

// Apart: signal handlers may have little stack.
#[inline(never)]
fn waits_on(tasks: &Folder, tid: i32, fd: i32) -> bool {
    let mut text = [0u8; 256];
    match tasks.read(tid, "/syscall", &mut text) {
        Ok(n) => is_on(&text[..n], fd),
        // It has ended.
        Err(libc::ENOENT | libc::ESRCH) => false,
        Err(_) => true,
    }
}

/// Is the system call of which /proc/PID/syscall says this on the descriptor `fd`? Its number comes first, then its arguments.
fn is_on(text: &[u8], fd: i32) -> bool {
    let Ok(text) = core::str::from_utf8(text) else {
        return false;
    };
    let mut fields = text.split_ascii_whitespace();
    // "running" where it waits in none.
    let Some(call) = fields.next().and_then(|s| s.parse::<i64>().ok()) else {
        return false;
    };
    let descriptors: &[usize] = match call {
        libc::SYS_splice | libc::SYS_copy_file_range => &[0, 2],
        libc::SYS_sendfile | libc::SYS_tee => &[0, 1],
        _ => &[0],
    };
    let is_this = |s: &str| {
        let hex = s.strip_prefix("0x").unwrap_or(s);
        u64::from_str_radix(hex, 16).is_ok_and(|argument| argument as u32 == fd as u32)
    };
    fields
        .enumerate()
        .any(|(at, s)| descriptors.contains(&at) && is_this(s))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_descriptors_of_a_system_call_are_known() {
        let read = b"0 0x5 0x7ffc 0x7 0x0 0x0 0x0 0x7ffd 0x7f02\n";
        assert!(is_on(read, 5));
        assert!(!is_on(read, 7) && !is_on(read, 0));
        let splice = format!("{} 0x5 0x0 0x7 0x0 0x0 0x0 0x1 0x2", libc::SYS_splice);
        assert!(is_on(splice.as_bytes(), 5) && is_on(splice.as_bytes(), 7));
        assert!(!is_on(splice.as_bytes(), 0));
        for nothing in [&b"running\n"[..], b"", b"-1 0x7ffd 0x7f02\n"] {
            assert!(!is_on(nothing, 5));
        }
    }

    #[test]
    fn who_waits_is_found_until_he_does_not() {
        let (read_end, mut write_end) = std::io::pipe().unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&read_end);
        let mut reader = read_end.try_clone().unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&reader);
        let waiter = std::thread::spawn(move || {
            std::io::Read::read(&mut reader, &mut [0]).unwrap();
            reader
        });
        assert!(!is_waited_on(number));
        while !has_waiter(number) {
            std::thread::yield_now();
        }
        assert!(!has_waiter(fd));
        taken(number);
        assert!(!is_waited_on(fd));
        assert!(is_waited_on(number) && is_waited_on(number));
        std::io::Write::write_all(&mut write_end, b"x").unwrap();
        let reader = waiter.join().unwrap();
        assert!(!is_waited_on(number));
        drop(reader);
    }
}
