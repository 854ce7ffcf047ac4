//! The streams of all processes of this user, for `headwater streams list`. Nothing that is read is trusted: it is only
//! shown.

use std::fs;

use headwater_channel::lock::Owner;
use headwater_channel::segment::HEADER_SIZE;
use headwater_host::sync::{AtomicU64, Ordering::*};
use headwater_host::{board::folder as runtime_folder, process, sys};

use super::{ABI, Layout, MAGIC, MODULES, MOST, NONE, Slot, folder};
use crate::pipe::{LIMIT, LOW, RING, header_at, ring_at};

/// One stream head of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub pid: u32,
    pub fd: i32,
    /// Device, "pipe" or "fifo".
    pub name: String,
    /// The topmost first.
    pub modules: Vec<String>,
    /// Marks in bytes, of what the other side may have waiting here.
    pub hiwat: u64,
    pub lowat: u64,
    pub age_seconds: u64,
    /// What waits on its way down, and on its way up.
    pub down: Waits,
    pub up: Waits,
    /// How often a writer found it full, and how often a sleeper was woken.
    pub fulls: u64,
    pub wakeups: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Not known of queues, only of rings.
    pub messages: Option<u64>,
    pub bytes: u64,
}

impl Waits {
    fn and(self, queued: Waits) -> Waits {
        Waits {
            messages: self.messages.filter(|_| queued.bytes == 0),
            bytes: self.bytes + queued.bytes,
        }
    }
}

/// Reads every board there is, and removes those that dead processes left. Errors: those of reading the folder.
pub fn all() -> std::io::Result<Vec<Listed>> {
    let mut all = Vec::new();
    let entries = match fs::read_dir(runtime_folder()) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(all),
        Err(e) => return Err(e),
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|n| n.strip_prefix("streams."));
        if let Some(pid) = pid.and_then(|p| p.parse().ok()) {
            read(pid, &mut all);
        }
    }
    all.sort_by_key(|s| (s.pid, s.fd));
    Ok(all)
}

fn read(pid: u32, all: &mut Vec<Listed>) {
    let name = super::file(pid);
    let entry = folder::read(&name).unwrap_or_default();
    let Some((memfd, owner)) = parse(&entry) else {
        return;
    };
    if !owner.is_beside(process::owner()) {
        // Its numbers mean nothing here.
        return;
    }
    let board = if owner.pid() == pid && !process::dead(owner) {
        open_board(pid, memfd)
    } else {
        Err(libc::ENOENT)
    };
    let Ok(board) = board else {
        // After exec the process is another program, whose number and start are the same.
        if board.is_err_and(|e| e == libc::ENOENT) {
            folder::remove(&name);
        }
        return;
    };
    if board.owner.load(Relaxed) == owner.bits() {
        let now = sys::now() / 1_000_000_000;
        let top = (board.top.load(Acquire) as usize).min(MOST);
        let slots = board.slots[..top].iter();
        all.extend(slots.filter_map(|s| listed(pid, s, now)));
    }
    // SAFETY: nothing refers to it any more.
    unsafe { unmap(board) };
}

/// # Safety
/// From [`open_board`], and not used any more.
unsafe fn unmap(board: &'static Layout) {
    let at = core::ptr::from_ref(board).cast_mut().cast();
    // SAFETY: mapped with this size.
    let _ = unsafe { sys::munmap(at, size_of::<Layout>()) };
}

/// What `streams.PID` says: the number of the memfd, and the process's owner bits.
fn parse(entry: &[u8]) -> Option<(u32, Owner)> {
    let (memfd, owner) = core::str::from_utf8(entry).ok()?.split_once(' ')?;
    Some((memfd.parse().ok()?, Owner::from_bits(owner.parse().ok()?)))
}

/// Another process's board. ENOENT: the process has none any more.
fn open_board(pid: u32, memfd: u32) -> sys::Result<&'static Layout> {
    let fd = open_of(pid, memfd)?;
    let mapped = map_sealed(fd, size_of::<Layout>());
    let _ = sys::close(fd);
    // SAFETY: a mapping of that size, and any bits are valid.
    let board = unsafe { &*(mapped.ok_or(libc::ENOENT)? as *const Layout) };
    if board.magic.load(Acquire) == MAGIC && board.abi.load(Relaxed) == ABI {
        return Ok(board);
    }
    // SAFETY: nobody has seen it.
    unsafe { unmap(board) };
    Err(libc::EPROTO)
}

fn open_of(pid: u32, fd: u32) -> sys::Result<i32> {
    const FLAGS: i32 = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK;
    let path = std::ffi::CString::new(format!("/proc/{pid}/fd/{fd}")).map_err(|_| libc::EINVAL)?;
    sys::open(&path, FLAGS, 0)
}

/// Maps a file for reading, if it has that size and keeps it.
fn map_sealed(fd: i32, size: usize) -> Option<*mut u8> {
    let st = sys::fstat(fd).ok()?;
    let seals = sys::fcntl(fd, libc::F_GET_SEALS, 0).ok()?;
    if st.st_size as usize != size || seals & libc::F_SEAL_SHRINK == 0 {
        return None;
    }
    sys::map(size, libc::PROT_READ, libc::MAP_SHARED, fd).ok()
}

fn listed(pid: u32, slot: &Slot, now: u64) -> Option<Listed> {
    let fd = slot.fd.load(Acquire).checked_sub(1)? as i32;
    let modules = (slot.modules.load(Acquire) as usize).min(MODULES);
    let memfd = slot.memfd.load(Relaxed);
    let waits = |side: usize| Waits {
        messages: None,
        bytes: slot.bytes[side].load(Relaxed),
    };
    let mut listed = Listed {
        pid,
        fd,
        name: text(&slot.name),
        modules: slot.pushed[..modules].chunks(1).map(text).collect(),
        hiwat: slot.hiwat.load(Relaxed) as u64,
        lowat: slot.lowat.load(Relaxed) as u64,
        age_seconds: now.saturating_sub(slot.since.load(Relaxed)),
        down: waits(0),
        up: waits(1),
        fulls: slot.fulls.load(Relaxed),
        wakeups: slot.wakeups.load(Relaxed),
    };
    if memfd != NONE {
        // Gone with exec, or closed this moment.
        look_into(&mut listed, memfd, slot)?;
    }
    Some(listed)
}

/// What a pipe's segment says.
fn look_into(listed: &mut Listed, memfd: u32, slot: &Slot) -> Option<()> {
    let fd = open_of(listed.pid, memfd).ok()?;
    let size = HEADER_SIZE + 2 * RING;
    let is_same = sys::fstat(fd).is_ok_and(|st| st.st_ino == slot.inode.load(Relaxed));
    let found = is_same.then(|| map_sealed(fd, size)).flatten();
    let _ = sys::close(fd);
    let base = found?;
    let side = slot.side.load(Relaxed) & 1;
    let is_fifo = listed.name == "fifo";
    // SAFETY: a mapped segment of this size, read by atomics only.
    unsafe {
        let words = &header_at(base).ends[side as usize];
        // With modules the marks are those of the head's queue, otherwise the ring's.
        let is_queued = !listed.modules.is_empty();
        let or = |mark: u32, ring: usize, queue: u64| match mark {
            0 if is_queued => queue,
            0 => ring as u64,
            mark => mark as u64,
        };
        listed.hiwat = or(words.hiwat.load(Relaxed), LIMIT, listed.hiwat);
        listed.lowat = or(words.lowat.load(Relaxed), LOW, listed.lowat);
        listed.fulls = words.full_count.load(Relaxed) as u64;
        listed.wakeups = words.wakeups.load(Relaxed) as u64;
        listed.down = waits(base, side).and(listed.down);
        listed.up = waits(base, if is_fifo { side } else { side ^ 1 }).and(listed.up);
        let _ = sys::munmap(base.cast(), size);
    }
    Some(())
}

/// # Safety
/// `base` is a mapped segment with rings of the usual size.
unsafe fn waits(base: *mut u8, ring: u32) -> Waits {
    // SAFETY: the segment is mapped, as the caller says, and stays so while we look.
    let ring = unsafe { ring_at(base, ring, RING) };
    let (out, gone) = (ring.produced(), ring.consumed());
    // The two are not read at one moment.
    let left = |a: u64, b: u64| a.checked_sub(b).filter(|n| *n <= RING as u64).unwrap_or(0);
    Waits {
        messages: Some(left(out.1, gone.1)),
        bytes: left(out.0, gone.0),
    }
}

fn text(words: &[AtomicU64]) -> String {
    let bytes = words.iter().flat_map(|w| w.load(Relaxed).to_le_bytes());
    let bytes: Vec<u8> = bytes.take_while(|b| *b != 0).collect();
    let printable = |c: char| if c.is_control() { '?' } else { c };
    let text = String::from_utf8_lossy(&bytes);
    text.chars().map(printable).collect()
}
