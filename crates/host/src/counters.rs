//! What this process did: counted in plain process-local atomics, written as one JSON line when it ends.

use core::fmt::Write;

use crate::sync::{AtomicBool, AtomicI32, AtomicU64, Exchange, Ordering};
use crate::{config, json, log, process, sys};

/// What is counted, and its names in the line.
macro_rules! counted {
    ($(#[$about:meta])* $what:ident, $names:ident: $($name:ident: $text:literal),* $(,)?) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum $what { $($name),* }
        const $names: &[&str] = &[$($text),*];

        impl $what {
            #[allow(dead_code, reason = "where nobody has its number")]
            const ALL: &[$what] = &[$($what::$name),*];
        }
    };
}

counted! {
    /// A counter of the process; see docs/stat-and-doctor.md.
    Counter, NAMES:
    Accelerated: "accelerated", Fallback: "fallback", ShmBytesTx: "shm_bytes_tx", ShmBytesRx: "shm_bytes_rx",
    ShmMsgsTx: "shm_msgs_tx", ShmMsgsRx: "shm_msgs_rx", KernelBytesTx: "kernel_bytes_tx",
    KernelBytesRx: "kernel_bytes_rx", KernelMsgsTx: "kernel_msgs_tx", KernelMsgsRx: "kernel_msgs_rx",
    Doorbells: "doorbells", Sleeps: "sleeps", Spins: "spins", Switches: "switches", Unswitches: "unswitches",
    SctpSockets: "sctp_sockets", SctpByMemory: "sctp_near", SctpByPackets: "sctp_far", SctpBytesTx: "sctp_bytes_tx",
    SctpBytesRx: "sctp_bytes_rx", SctpLost: "sctp_lost",
}

impl Reason {
    /// The one of this number.
    pub fn of(number: u32) -> Reason {
        Reason::ALL[number as usize % Reason::ALL.len()]
    }
}

counted! {
    /// Why a connection was not carried, or no longer.
    Reason, REASONS:
    NoOffer: "no-offer",
    NotClaimed: "not-claimed",
    ShortLived: "short-lived",
    FewCalls: "few-calls",
    HalfClosed: "half-closed",
    Unsettled: "unsettled",
    NoListener: "no-listener",
    NotWorth: "not-worth",
    Denied: "denied",
    NoBoard: "no-board",
    BoardFull: "board-full",
    NoDescriptors: "no-descriptors",
    NoSegment: "no-segment",
    NoLink: "no-link",
    OtherVersion: "other-version",
    BadHello: "bad-hello",
    OtherUser: "other-user",
    CountsDisagree: "counts-disagree",
    OldKernel: "old-kernel",
    TableFull: "table-full",
    Exec: "exec",
    PassedOn: "passed-on",
    Relayed: "relayed",
    Option: "option",
    Corrupt: "corrupt",
    Uncounted: "uncounted",
    Kept: "kept",
    EpollExclusive: "epoll-exclusive",
    EpollClosed: "epoll-closed",
    SharedSet: "shared-set",
    ToldAgain: "told-again",
    Panic: "panic",
    Stalled: "stalled",
    Confined: "confined",
    NotNow: "not-now",
    Sanitizer: "sanitizer",
    UnseenWaits: "unseen-waits",
    WaitedOn: "waited-on",
    Uring: "io-uring",
    NoUnwinder: "no-unwinder",
    NoMemory: "no-memory",
    UrgentAhead: "urgent-ahead",
}

/// On cache lines of their own.
#[repr(align(128))]
struct Counts {
    counts: [AtomicU64; NAMES.len()],
    fallbacks: [AtomicU64; REASONS.len()],
}

/// Among the initialised data, as [`process`] says: each child of fork looks at it.
#[unsafe(link_section = ".data")]
static HERE: Counts = Counts {
    counts: [const { AtomicU64::new(0) }; NAMES.len()],
    fallbacks: [const { AtomicU64::new(0) }; REASONS.len()],
};

#[inline]
pub fn add(c: Counter, n: u64) {
    HERE.counts[c as usize].fetch_add(n, Ordering::Relaxed);
}

/// Counts a connection that stays on, or goes back to, the kernel path.
pub fn fallback(r: Reason) {
    add(Counter::Fallback, 1);
    note(r);
}

/// Counts a reason beside a connection that is counted elsewhere.
pub fn note(r: Reason) {
    HERE.fallbacks[r as usize].fetch_add(1, Ordering::Relaxed);
}

pub fn read(c: Counter) -> u64 {
    HERE.counts[c as usize].load(Ordering::Relaxed)
}

/// How often a reason was counted.
pub fn noted(r: Reason) -> u64 {
    HERE.fallbacks[r as usize].load(Ordering::Relaxed)
}

/// A forked child starts at nothing.
pub fn reset() {
    for word in HERE.counts.iter().chain(&HERE.fallbacks) {
        word.change_to(0);
    }
}

#[unsafe(link_section = ".data")]
static FILE: AtomicI32 = AtomicI32::new(-1);
/// Was a file asked for when the library was loaded?
#[unsafe(link_section = ".data")]
static ASKED: AtomicBool = AtomicBool::new(false);

/// When the library is loaded.
pub fn loaded() {
    if crate::env::is_set("HEADWATER_STATS_FILE", &[]) {
        ASKED.store(true, Ordering::Relaxed);
    }
}

/// Is a line to be written when the process ends?
pub fn is_wanted() -> bool {
    FILE.load(Ordering::Relaxed) >= 0 || ASKED.load(Ordering::Relaxed)
}

/// What [`FILE`] is, as fstat(2) tells: its number may be another file's one day.
static IDENTITY: AtomicU64 = AtomicU64::new(0);

/// Opens the statistics file, if one is configured: with the first socket or stream, since a program may give up its user or
/// its root later.
pub fn open_file() {
    let opened = open().and_then(crate::hidden::hide);
    match opened {
        Ok(fd) => {
            IDENTITY.store(sys::identity(fd), Ordering::Relaxed);
            FILE.store(fd, Ordering::Relaxed);
        }
        Err(0) => {}
        Err(e) => log::write(
            log::Level::Warn,
            format_args!("the statistics file can't be opened: errno {e}"),
        ),
    }
}

/// Errors: 0 if there is to be none.
fn open() -> sys::Result<i32> {
    let path = config::get().stats_file.as_ref().ok_or(0)?;
    let path = std::ffi::CString::new(path.as_str()).map_err(|_| libc::EINVAL)?;
    sys::open_to_append(&path, 0o666)
}

/// Appends the line to the statistics file, if one is configured. Async-signal-safe.
pub fn write_line(end: &str) {
    let known = FILE.load(Ordering::Relaxed);
    let is_it = known >= 0 && sys::identity(known) == IDENTITY.load(Ordering::Relaxed);
    let fd = if is_it { known } else { open().unwrap_or(-1) };
    if fd < 0 {
        return;
    }
    write_line_to(fd, end);
    if !is_it {
        let _ = sys::close(fd);
    }
}

fn write_line_to(fd: i32, end: &str) {
    // Not on the stack, of which a handler that calls _exit may have little.
    let mut buf = vec![0u8; 2048];
    let mut line = sys::Cursor::new(&mut buf);
    if format_line(&mut line, end).is_err() {
        return;
    }
    sys::write_all(fd, &line.buf[..line.len]);
}

/// The process's name, which is its first thread's, whichever thread ends it. Ends with a zero byte, or a newline.
fn name() -> [u8; 17] {
    let mut name = [0u8; 17];
    let named = sys::gettid() != process::pid() && {
        let flags = libc::O_RDONLY | libc::O_CLOEXEC;
        sys::open(c"/proc/self/comm", flags, 0).is_ok_and(|fd| {
            let read = sys::read_bytes(fd, &mut name[..16]);
            let _ = sys::close(fd);
            read.is_ok_and(|n| n > 0)
        })
    };
    if !named {
        let mut of_thread = [0u8; 16];
        sys::thread_name(&mut of_thread);
        name[..16].copy_from_slice(&of_thread);
    }
    name
}

fn format_line(line: &mut sys::Cursor<'_>, end: &str) -> core::fmt::Result {
    let name = name();
    let named = name.split(|&b| b == 0 || b == b'\n').next();
    let [spin, yielding] = headwater_channel::wait::bans();
    json::object(line, |o| {
        o.number("pid", process::pid())?;
        o.number("ppid", sys::getppid())?;
        o.text("comm", named.unwrap_or_default())?;
        o.text("end", end.as_bytes())?;
        o.text("version", env!("CARGO_PKG_VERSION").as_bytes())?;
        for (name, value) in NAMES.iter().zip(&HERE.counts) {
            o.number(name, value.load(Ordering::Relaxed))?;
        }
        o.number("spin_bans", spin)?;
        o.number("yield_bans", yielding)?;
        o.object("fallback_reasons", |o| {
            for (name, value) in REASONS.iter().zip(&HERE.fallbacks) {
                let n = value.load(Ordering::Relaxed);
                if n > 0 {
                    o.number(name, n)?;
                }
            }
            Ok(())
        })
    })?;
    line.write_char('\n')
}
