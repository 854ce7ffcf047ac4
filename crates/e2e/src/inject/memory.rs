//! No memory: neither from the kernel nor in what the library has in store.

use std::path::Path;
use std::process::Command;

use super::stop::{self, Call};

/// As nm(1) writes it.
const ENTRY: &str = " <headwater_host::memory::Memory as core::alloc::global::GlobalAlloc>::alloc";
/// The instruction at which a thread stops.
const STOP: u8 = 0xcc;

/// Where the library's allocator keeps what it has, from the beginning of the library.
#[derive(Clone, Copy, Debug)]
pub struct Starved {
    /// Heads of the lists of free blocks, and how many.
    free: (u64, u64),
    /// The word that says what is cut up.
    cut: u64,
    /// Where an allocation begins.
    entry: u64,
}

impl Starved {
    /// As nm(1) tells.
    pub fn learn(library: &Path) -> Option<Starved> {
        let said = Command::new("nm")
            .args(["-CS"])
            .arg(library)
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        let find = |name: &str| {
            let line = text.lines().find(|l| l.ends_with(name))?;
            let mut words = line.split_whitespace();
            let word = |w: Option<&str>| u64::from_str_radix(w?, 16).ok();
            Some((word(words.next())?, word(words.next())?))
        };
        let free = find(" headwater_host::memory::FREE")?;
        Some(Starved {
            free: (free.0, free.1 / 8),
            cut: find(" headwater_host::memory::CUT")?.0,
            entry: find(ENTRY)?.0,
        })
    }

    /// Where allocations begin in a process whose library is at `base`.
    pub fn entry(&self, base: u64) -> u64 {
        base + self.entry
    }

    /// Puts a breakpoint there, or takes it away.
    pub fn watch(&self, pid: i32, base: u64, instruction: &mut Option<u8>) {
        let at = self.entry(base);
        let Some(word) = stop::peek(pid, at) else {
            return;
        };
        if word as u8 != STOP {
            *instruction = Some(word as u8);
        }
        stop::poke(pid, at, word & !0xff | u64::from(STOP));
    }

    pub fn unwatch(&self, pid: i32, base: u64, instruction: Option<u8>) {
        let at = self.entry(base);
        if let (Some(word), Some(byte)) = (stop::peek(pid, at), instruction) {
            stop::poke(pid, at, word & !0xff | u64::from(byte));
        }
    }

    /// Takes everything that a process whose library is at `base` has in store.
    pub fn take_all(&self, pid: i32, base: u64) {
        for i in 0..self.free.1 {
            stop::poke(pid, base + self.free.0 + i * 8, 0);
        }
        let cut = base + self.cut;
        // {page: 36, taken / 16: 28}: all of it is taken. Of the first room, which 0 stands for, too.
        let now = stop::peek(pid, cut).unwrap_or(0);
        let page = match now >> 28 {
            0 => 1,
            page => page,
        };
        stop::poke(pid, cut, page << 28 | ((1 << 28) - 1));
    }
}

/// Does the call ask for memory, as the allocator does?
pub fn allocates(call: &Call) -> bool {
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
    call.nr == libc::SYS_mmap && call.args[3] == flags && call.args[4] as i32 == -1
}

/// Does the call ask for memory?
pub fn asks(call: &Call) -> bool {
    matches!(call.nr, libc::SYS_mmap | libc::SYS_mremap)
}
