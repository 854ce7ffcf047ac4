//! What the kernel has of a set, as proc_pid_fdinfo(5) shows it: "tfd: 5 events: 19 data: ff pos:0 ino:9d sdev:9", in hexadecimal.

use core::ffi::CStr;

use crate::{hidden, sys};

/// Has the set `ep` a registration of the descriptor `fd` of which `is` holds: its events and its data?
pub fn has(ep: i32, fd: i32, is: impl Fn(u32, u64) -> bool) -> bool {
    has_any(ep, |target, events, data| target == fd && is(events, data))
}

/// The same of any descriptor.
pub fn has_any(ep: i32, is: impl Fn(i32, u32, u64) -> bool) -> bool {
    let mut found = false;
    each(ep, |r| found |= is(r.fd, r.events, r.data));
    found
}

/// Has the set `ep` a registration of what the descriptor `fd` stands for now, by that number? `None`: that can't be known.
pub fn holds(ep: i32, fd: i32) -> Option<bool> {
    let inode = sys::fstat(fd).ok()?.st_ino;
    let mut found = false;
    each(ep, |r| found |= r.fd == fd && r.inode == inode).then_some(found)
}

/// Is it known that the descriptor is no epoll set?
pub fn is_no_set(ep: i32) -> bool {
    let mut path = [0u8; 40];
    let Some(path) = path_of(&mut path, "fd", ep) else {
        return false;
    };
    let mut text = [0u8; 32];
    match sys::read_link(path, &mut text) {
        Ok(n) => &text[..n] != b"anon_inode:[eventpoll]",
        Err(_) => !sys::is_open(ep),
    }
}

/// The descriptors that the set has, with their data, in order.
pub fn all(ep: i32) -> Vec<(i32, u64)> {
    let mut all = Vec::new();
    each(ep, |r| all.push((r.fd, r.data)));
    all.sort_unstable();
    all
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Registration {
    fd: i32,
    events: u32,
    data: u64,
    inode: u64,
}

/// False: it can't be read.
fn each(ep: i32, mut each: impl FnMut(Registration)) -> bool {
    let mut path = [0u8; 40];
    let Some(path) = path_of(&mut path, "fdinfo", ep) else {
        return false;
    };
    // Out of the program's numbers, of which a line may name one that is closed here.
    let opened = sys::open(path, libc::O_RDONLY | libc::O_CLOEXEC, 0);
    let Ok(file) = opened.and_then(hidden::hide_or_keep) else {
        return false;
    };
    // A line takes some ninety bytes.
    sys::each_line::<200>(file, |line| {
        registration(line).into_iter().for_each(&mut each);
        false
    });
    hidden::close(file);
    true
}

/// What /proc has in its folder `of` about a descriptor of this process.
fn path_of<'a>(path: &'a mut [u8; 40], of: &str, fd: i32) -> Option<&'a CStr> {
    sys::c_text(path, format_args!("/proc/self/{of}/{fd}"))
}

fn registration(line: &str) -> Option<Registration> {
    let mut words = line.strip_prefix("tfd:")?.split_ascii_whitespace();
    let fd = words.next()?.parse().ok()?;
    let events = u32::from_str_radix(words.nth(1)?, 16).ok()?;
    let data = u64::from_str_radix(words.nth(1)?, 16).ok()?;
    let inode = u64::from_str_radix(words.nth(1)?.strip_prefix("ino:")?, 16).ok()?;
    Some(Registration {
        fd,
        events,
        data,
        inode,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_line_is_a_registration() {
        let line =
            "tfd:        5 events: 80002019 data: 899740000500000c  pos:0 ino:1a13309 sdev:9";
        let there = super::Registration {
            fd: 5,
            events: 0x8000_2019,
            data: 0x8997_4000_0500_000c,
            inode: 0x1a1_3309,
        };
        assert_eq!(super::registration(line), Some(there));
        assert_eq!(super::registration("pos:\t0"), None);
    }
}
