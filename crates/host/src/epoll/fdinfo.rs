//! What the kernel has of a set, as proc_pid_fdinfo(5) shows it: "tfd: 5 events: 19 data: ff ...", in hexadecimal.

use core::ffi::CStr;
use core::fmt::Write;

use crate::sys;

/// Has the set `ep` a registration of the descriptor `fd` of which `is` holds: its events and its data?
pub fn has(ep: i32, fd: i32, is: impl Fn(u32, u64) -> bool) -> bool {
    has_any(ep, |target, events, data| target == fd && is(events, data))
}

/// The same of any descriptor.
pub fn has_any(ep: i32, is: impl Fn(i32, u32, u64) -> bool) -> bool {
    let mut found = false;
    each(ep, |fd, events, data| found |= is(fd, events, data));
    found
}

/// Is it known that the set `ep` has no registration of the descriptor `fd`?
pub fn lacks(ep: i32, fd: i32) -> bool {
    let mut found = false;
    each(ep, |target, _, _| found |= target == fd) && !found
}

/// The descriptors that the set has, with their data, in order.
pub fn all(ep: i32) -> Vec<(i32, u64)> {
    let mut all = Vec::new();
    each(ep, |fd, _, data| all.push((fd, data)));
    all.sort_unstable();
    all
}

/// False: it can't be read.
fn each(ep: i32, mut each: impl FnMut(i32, u32, u64)) -> bool {
    let mut path = [0u8; 40];
    let mut text = sys::Cursor {
        buf: &mut path,
        len: 0,
    };
    let _ = write!(text, "/proc/self/fdinfo/{ep}");
    let Ok(path) = CStr::from_bytes_until_nul(&path) else {
        return false;
    };
    let Ok(file) = sys::open(path, libc::O_RDONLY | libc::O_CLOEXEC, 0) else {
        return false;
    };
    // Signal handlers may have little stack, and must not allocate. A line takes some ninety bytes.
    let mut buf = [0u8; 1024];
    let mut have = 0;
    // SAFETY: the rest of the buffer is writable.
    while let Ok(n @ 1..) = unsafe { sys::read(file, buf[have..].as_mut_ptr(), buf.len() - have) } {
        have += n;
        let whole = buf[..have]
            .iter()
            .rposition(|&b| b == b'\n')
            .map_or(0, |at| at + 1);
        let lines = core::str::from_utf8(&buf[..whole]).unwrap_or("").lines();
        for (fd, events, data) in lines.filter_map(registration) {
            each(fd, events, data);
        }
        buf.copy_within(whole..have, 0);
        have -= whole;
    }
    let _ = sys::close(file);
    true
}

fn registration(line: &str) -> Option<(i32, u32, u64)> {
    let mut words = line.strip_prefix("tfd:")?.split_ascii_whitespace();
    let fd = words.next()?.parse().ok()?;
    let events = u32::from_str_radix(words.nth(1)?, 16).ok()?;
    let data = u64::from_str_radix(words.nth(1)?, 16).ok()?;
    Some((fd, events, data))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_line_is_a_registration() {
        let line =
            "tfd:        5 events: 80002019 data: 899740000500000c  pos:0 ino:1a13309 sdev:9";
        let seen = super::registration(line);
        assert_eq!(seen, Some((5, 0x8000_2019, 0x8997_4000_0500_000c)));
        assert_eq!(super::registration("pos:\t0"), None);
    }
}
