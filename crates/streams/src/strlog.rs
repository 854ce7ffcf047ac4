//! strlog(9F): to the log streams of this process, and for `headwater streams strace` and `strerr`, which are other
//! processes, into a ring of the last lines, in memory that all processes of the user share. It is there for as long as one of
//! them has it.
//!
//! A line's slot says in `state` whose it is: twice its number plus one while it is written, plus two when it is there. A
//! reader looks again after reading; a writer that finds the slot busy drops its line.

use core::ffi::c_int;
use std::time::{Duration, SystemTime};

use headwater_channel::shm::SharedSafe;
use headwater_host::shared::{self, OpenError, Shared};
use headwater_host::sync::{AtomicPtr, AtomicU32, AtomicU64, Exchange, Ordering::*, fence};
use headwater_host::{process, sys};

use crate::exec::timer::TICK;

pub const SL_FATAL: u16 = 0x01;
pub const SL_NOTIFY: u16 = 0x02;
pub const SL_ERROR: u16 = 0x04;
pub const SL_TRACE: u16 = 0x08;
pub const SL_CONSOLE: u16 = 0x10;
pub const SL_WARN: u16 = 0x20;
pub const SL_NOTE: u16 = 0x40;

/// Longest text, NUL included (LOGMSGSZ).
pub const LOGMSGSZ: usize = 1024;

/// The layout's version is part of the file's name.
const FILE: &str = "log.2";
const SLOTS: u64 = 256;
const WORDS: usize = LOGMSGSZ / 8;

#[derive(SharedSafe)]
#[repr(C)]
struct Ring {
    /// The number of the next line.
    next: AtomicU64,
    /// Numbers given to errors, traces and console lines.
    kinds: [AtomicU64; 3],
    reserved: [u64; 4],
    slots: [Slot; SLOTS as usize],
}

#[derive(SharedSafe)]
#[repr(C)]
struct Slot {
    state: AtomicU64,
    /// mid, sid, level, flags: 16 bits each.
    ids: AtomicU64,
    pid: AtomicU32,
    len: AtomicU32,
    pri: AtomicU32,
    reserved: AtomicU32,
    seconds: AtomicU64,
    ticks: AtomicU64,
    numbers: [AtomicU64; 3],
    text: [AtomicU64; WORDS],
}

static RING: AtomicPtr<Ring> = AtomicPtr::new(core::ptr::null_mut());
static TRIED: AtomicU32 = AtomicU32::new(0);

/// What strlog(9F) is called with, but for the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    pub mid: i16,
    pub sid: i16,
    pub level: i8,
    /// SL_ERROR and so on.
    pub flags: u16,
    /// Facility and level as in <syslog.h>.
    pub pri: c_int,
}

/// A line as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Of all lines, without gaps but where lines were lost.
    pub number: u64,
    /// Among the errors, the traces, the console lines: 0 if it is none.
    pub kinds: [u64; 3],
    pub line: Line,
    pub pid: u32,
    /// Since 1970.
    pub seconds: u64,
    /// Hundredths of a second since boot.
    pub ticks: u64,
    pub text: Vec<u8>,
}

pub(crate) fn append(line: &Line, text: &[u8]) {
    if let Some(ring) = ring() {
        ring.append(line, text);
    }
}

/// Hundredths of a second since boot.
pub fn ticks() -> u64 {
    sys::now() / TICK
}

/// Since 1970.
pub fn seconds() -> u64 {
    let since = SystemTime::UNIX_EPOCH.elapsed();
    since.map_or(0, |d| d.as_secs())
}

fn ring() -> Option<&'static Ring> {
    let ring = RING.load(Acquire);
    if ring.is_null() && TRIED.swap(1, AcqRel) == 0 {
        let opened = Ring::open().ok();
        let opened = opened.map_or(core::ptr::null_mut(), |r| core::ptr::from_ref(r).cast_mut());
        RING.store(opened, Release);
    }
    // SAFETY: null, or mapped for as long as the process lives.
    unsafe { RING.load(Acquire).as_ref() }
}

impl Ring {
    fn open() -> sys::Result<&'static Ring> {
        let opened = Shared::open(&shared::folder(), FILE, size_of::<Ring>(), true);
        let at = opened.map_err(OpenError::errno)?.without_file();
        // SAFETY: attached for as long as the process lives, aligned to 64 bytes, long enough, and any bits are valid.
        Ok(unsafe { &*(at as *const Ring) })
    }

    fn append(&self, line: &Line, text: &[u8]) {
        let number = self.next.fetch_add(1, AcqRel);
        let kinds = line.kinds();
        let numbers = [0, 1, 2].map(|i| match kinds[i] {
            true => self.kinds[i].fetch_add(1, Relaxed) + 1,
            false => 0,
        });
        let slot = &self.slots[(number % SLOTS) as usize];
        let seen = slot.state.load(Relaxed);
        // A writer that died in the middle is overtaken after a few rounds.
        let busy = seen & 1 == 1 && seen / 2 + 4 * SLOTS > number;
        let mine = 2 * number + 1;
        if busy || seen > mine || !slot.state.exchange(seen, mine) {
            return;
        }
        fence(Release);
        slot.write(line, numbers, text);
        slot.state.store(mine + 1, Release);
    }

    /// Line `number`, if it is there whole.
    fn line(&self, number: u64) -> Option<Entry> {
        let slot = &self.slots[(number % SLOTS) as usize];
        let there = 2 * number + 2;
        if slot.state.load(Acquire) != there {
            return None;
        }
        let entry = slot.read(number);
        fence(Acquire);
        (slot.state.load(Relaxed) == there).then_some(entry)
    }
}

impl Slot {
    fn write(&self, line: &Line, numbers: [u64; 3], text: &[u8]) {
        let (mid, sid, level) = (line.mid as u16, line.sid as u16, line.level as u16);
        let ids = [mid, sid, level, line.flags];
        let ids = ids.iter().fold(0, |all, id| all << 16 | *id as u64);
        self.ids.store(ids, Relaxed);
        self.pid.store(process::owner().pid(), Relaxed);
        self.len.store(text.len() as u32, Relaxed);
        self.pri.store(line.pri as u32, Relaxed);
        self.seconds.store(seconds(), Relaxed);
        self.ticks.store(ticks(), Relaxed);
        for (to, number) in self.numbers.iter().zip(numbers) {
            to.store(number, Relaxed);
        }
        for (to, bytes) in self.text.iter().zip(text.chunks(8)) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            to.store(u64::from_le_bytes(word), Relaxed);
        }
    }

    fn read(&self, number: u64) -> Entry {
        let ids = self.ids.load(Relaxed);
        let len = (self.len.load(Relaxed) as usize).min(LOGMSGSZ);
        let words = self.text.iter().take(len.div_ceil(8));
        let mut text: Vec<u8> = words.flat_map(|w| w.load(Relaxed).to_le_bytes()).collect();
        text.truncate(len);
        Entry {
            number,
            kinds: [0, 1, 2].map(|i| self.numbers[i].load(Relaxed)),
            line: Line {
                mid: (ids >> 48) as i16,
                sid: (ids >> 32) as i16,
                level: (ids >> 16) as i8,
                flags: ids as u16,
                pri: self.pri.load(Relaxed) as c_int,
            },
            pid: self.pid.load(Relaxed),
            seconds: self.seconds.load(Relaxed),
            ticks: self.ticks.load(Relaxed),
            text,
        }
    }
}

/// How often a reader that waits looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A line that is not there after so many looks, though it has its number, is lost.
const LOOKS: u32 = 10;

/// The lines of all processes of this user.
pub struct Lines {
    ring: &'static Ring,
    at: u64,
    looks: u32,
}

/// The lines from number `after` on, as far as they are kept; waits for more, for ever. Errors: those of the runtime
/// folder's file.
pub fn follow(after: u64) -> sys::Result<Lines> {
    Ok(Lines {
        ring: Ring::open()?,
        at: after,
        looks: 0,
    })
}

impl Lines {
    /// The number that the next line will have.
    pub fn end(&self) -> u64 {
        self.ring.next.load(Acquire)
    }

    /// Goes on with what comes from now on.
    pub fn skip_to_end(&mut self) {
        self.at = self.end();
    }

    /// The next line that is there already.
    pub fn next_kept(&mut self) -> Option<Entry> {
        loop {
            let end = self.end();
            self.at = self.at.max(end.saturating_sub(SLOTS));
            if self.at >= end {
                return None;
            }
            if let Some(entry) = self.ring.line(self.at) {
                (self.at, self.looks) = (self.at + 1, 0);
                return Some(entry);
            }
            self.looks += 1;
            if self.looks < LOOKS {
                if end - self.at <= 1 {
                    return None;
                }
                // Others were faster than its writer.
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
            (self.at, self.looks) = (self.at + 1, 0);
        }
    }
}

impl Iterator for Lines {
    type Item = Entry;

    /// Waits for the next line.
    fn next(&mut self) -> Option<Entry> {
        loop {
            if let Some(entry) = self.next_kept() {
                return Some(entry);
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring() -> &'static Ring {
        // SAFETY: integers, for which zeroes are a start; on the heap, since it is large.
        let ring: Box<Ring> = unsafe { Box::<Ring>::new_zeroed().assume_init() };
        Box::leak(ring)
    }

    fn lines(ring: &'static Ring) -> Lines {
        Lines {
            ring,
            at: 0,
            looks: 0,
        }
    }

    const LINE: Line = Line {
        mid: -3,
        sid: 7,
        level: -1,
        flags: SL_TRACE | SL_ERROR,
        pri: 3,
    };

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let ring = ring();
        ring.append(&LINE, b"text of 18 letters");
        let entry = lines(ring).next_kept().unwrap();
        assert_eq!(entry.line, LINE);
        assert_eq!(entry.text, b"text of 18 letters");
        assert_eq!((entry.number, entry.kinds), (0, [1, 1, 0]));
        assert_eq!(entry.pid, std::process::id());
    }

    #[test]
    fn the_oldest_are_overwritten() {
        let ring = ring();
        for i in 0..SLOTS + 10 {
            ring.append(&LINE, i.to_string().as_bytes());
        }
        let mut lines = lines(ring);
        let all: Vec<u64> = core::iter::from_fn(|| lines.next_kept())
            .map(|e| e.number)
            .collect();
        assert_eq!(all, (10..SLOTS + 10).collect::<Vec<_>>());
    }

    #[test]
    fn a_line_whose_writer_died_is_passed_over_and_its_slot_used_again() {
        let ring = ring();
        ring.append(&LINE, b"first");
        ring.slots[1].state.store(2 + 1, Relaxed);
        ring.next.store(2, Relaxed);
        ring.append(&LINE, b"third");
        let mut lines = lines(ring);
        assert_eq!(lines.next_kept().unwrap().text, b"first");
        assert_eq!(lines.next_kept().unwrap().text, b"third");
        for _ in 0..6 * SLOTS {
            ring.append(&LINE, b"later");
        }
        assert_eq!(ring.slots[1].state.load(Relaxed) & 1, 0);
    }

    #[test]
    fn readers_never_see_half_a_line() {
        let ring = ring();
        let writers: Vec<_> = (0..2u8)
            .map(|w| {
                std::thread::spawn(move || {
                    for i in 0..20_000u32 {
                        let letter = b'a' + w * 13 + (i % 13) as u8;
                        ring.append(&LINE, &vec![letter; 40 + (i % 100) as usize]);
                    }
                })
            })
            .collect();
        let mut lines = lines(ring);
        while !writers.iter().all(|w| w.is_finished()) {
            if let Some(entry) = lines.next_kept() {
                assert!(entry.text.iter().all(|b| *b == entry.text[0]));
            }
        }
    }
}
