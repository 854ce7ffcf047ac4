//! SIGPOLL: who wants to be told of what, and telling them.
//!
//! What a driver or modules bring to a head passes by here. A pipe without modules is looked at, without taking anything
//! ([`scan`]): by a call of this process at the other end, else by the background thread.

use core::ffi::c_int;

use headwater_host::guarded::Private;
use headwater_host::reclaim::enter;
use headwater_host::sync::Ordering::Relaxed;
use headwater_host::sync::{AtomicU32, AtomicU64};
use headwater_host::sys::{self, Errno};
use syscalls::{Sysno, syscall};

use super::Head;
use super::inlet::is_readable;
use crate::background;
use crate::ddi::{M_DATA, M_PCPROTO};
use crate::pipe::section;
use crate::pipe::words::state;

pub const S_INPUT: u32 = 0x1;
pub const S_HIPRI: u32 = 0x2;
pub const S_OUTPUT: u32 = 0x4;
pub const S_MSG: u32 = 0x8;
pub const S_ERROR: u32 = 0x10;
pub const S_HANGUP: u32 = 0x20;
pub const S_RDNORM: u32 = 0x40;
pub const S_RDBAND: u32 = 0x80;
pub const S_WRBAND: u32 = 0x100;
pub const S_BANDURG: u32 = 0x200;
const ALL: u32 = 0x3ff;
/// What O_ASYNC asks for.
const ASYNC: u32 = S_RDNORM | S_RDBAND | S_HIPRI | S_OUTPUT | S_ERROR | S_HANGUP;

/// si_code, as in `<signal.h>`.
const POLL_IN: c_int = 1;
const POLL_OUT: c_int = 2;
const POLL_MSG: c_int = 3;
const POLL_ERR: c_int = 4;
const POLL_PRI: c_int = 5;
const POLL_HUP: c_int = 6;

/// One who is to be told; `pid` negative: a process group.
struct Registration {
    head: u32,
    pid: i32,
    events: u32,
}

/// Also looked at outside of perimeters, which a fork waits for.
static REGISTERED: Private<Vec<Registration>> = Private::new(Vec::new());

/// I_SETSIG (`pid` 0: the caller), I_ESETSIG. No events: not any more. Errors: EINVAL for unknown events, or if there was
/// nothing to take back; ESRCH, EPERM as kill(2); those of starting a thread.
pub fn set(head: &Head, pid: i32, events: u32) -> Result<c_int, Errno> {
    if events & !ALL != 0 || events & S_BANDURG != 0 && events & S_RDBAND == 0 {
        return Err(libc::EINVAL);
    }
    let own = sys::getpid();
    let pid = if pid == 0 { own } else { pid };
    if pid != own {
        sys::kill(pid, 0)?;
    }
    if events != 0 {
        // A program that waits for a signal is in no call that could look.
        background::start()?;
    }
    let had = REGISTERED.with(|list| {
        let before = list.len();
        list.retain(|r| r.head != head.index || r.pid != pid);
        let had = list.len() != before;
        if events != 0 {
            list.push(Registration {
                head: head.index,
                pid,
                events,
            });
        }
        let all = list.iter().filter(|r| r.head == head.index);
        head.signals
            .store(all.fold(0, |sum, r| sum | r.events), Relaxed);
        had
    });
    if events == 0 && !had {
        return Err(libc::EINVAL);
    }
    if events != 0 && head.has_pipe() {
        head.told.begin(head);
        head.words().set(state::SIGNALS);
        background::alarm(sys::now());
    }
    Ok(0)
}

/// What was told already.
#[derive(Default)]
pub struct Told {
    position: AtomicU64,
    full: AtomicU32,
    band: AtomicU32,
    hangup: AtomicU32,
}

impl Told {
    fn begin(&self, head: &Head) {
        self.position.store(head.incoming().tail(), Relaxed);
        // Room is news if there is none now.
        let full = head.words().full_count.load(Relaxed);
        let news = !head.has_room(1) as u32;
        self.full.store(full.wrapping_sub(news), Relaxed);
        self.band.store(has_full_band(head) as u32, Relaxed);
        self.hangup.store(head.has_hung_up() as u32, Relaxed);
    }
}

fn has_full_band(head: &Head) -> bool {
    head.words().has(state::BANDED) && (1..=u8::MAX).any(|band| head.is_band_full(band))
}

/// Looks what has happened at a pipe since the last time, and tells.
pub fn scan(head: &Head) {
    if head.signals.load(Relaxed) == 0 || !head.has_pipe() {
        return;
    }
    if head.has_hung_up_now() {
        hung_up(head);
    }
    if head.words().has(state::FOR_HEAD) {
        let _ = head.attend();
    }
    if head.is_queued() {
        return;
    }
    let full = head.words().full_count.load(Relaxed);
    if full != head.told.full.load(Relaxed) && head.has_room(1) {
        head.told.full.store(full, Relaxed);
        tell(head, S_OUTPUT, POLL_OUT, libc::POLLOUT | libc::POLLWRNORM);
    }
    let band = has_full_band(head) as u32;
    if head.told.band.swap(band, Relaxed) > band {
        tell(head, S_WRBAND, POLL_OUT, libc::POLLWRBAND);
    }
    tell_of_ring(head, false);
}

/// What came to the ring of a pipe without modules since the last time. `is_high`: a message of high priority waits at the head, so that
/// another one will be discarded, as one behind another in the ring.
pub fn tell_of_ring(head: &Head, mut is_high: bool) {
    if head.signals.load(Relaxed) == 0 {
        return;
    }
    let ring = head.incoming();
    let tail = ring.tail();
    let from = head.told.position.swap(tail, Relaxed);
    if tail <= from {
        return;
    }
    let mut come = Vec::new();
    let mut is_there = false;
    {
        let Some(_section) = section::reading(&ring) else {
            return;
        };
        let _ = ring.find(|f| {
            let is_another = f.meta.kind == M_PCPROTO && is_high;
            is_high |= f.meta.kind == M_PCPROTO;
            if (from..tail).contains(&f.pos) {
                is_there = true;
                if is_readable(f.meta.kind) && !is_another {
                    come.push((f.meta.kind, f.meta.band));
                }
            }
            false
        });
    }
    if !is_there {
        // Somebody has read it already.
        come.push((M_DATA, 0));
    }
    for (kind, band) in come {
        if kind == M_PCPROTO {
            urgent(head);
        } else {
            arrived(head, band);
        }
    }
}

/// The same where there are modules: what is in the ring is told of when they hand it up.
pub fn pass_ring(head: &Head) {
    if head.signals.load(Relaxed) != 0 {
        head.told.position.store(head.incoming().head(), Relaxed);
    }
}

/// I_GETSIG, I_EGETSIG; `None`: not registered.
pub fn events(head: &Head, pid: i32) -> Option<u32> {
    let pid = if pid == 0 { sys::getpid() } else { pid };
    REGISTERED.with(|list| {
        let found = list.iter().find(|r| r.head == head.index && r.pid == pid);
        found.map(|r| r.events)
    })
}

/// O_ASYNC, FIOASYNC: a registration like any other, for SIGIO is SIGPOLL.
/// Errors: those of starting a thread.
pub fn set_async(head: &Head, on: bool) -> Result<(), Errno> {
    match events(head, 0) {
        None if on => set(head, 0, ASYNC)?,
        Some(ASYNC) if !on => set(head, 0, 0)?,
        _ => 0,
    };
    Ok(())
}

/// The head was closed.
pub fn forget(head: &Head) {
    if head.signals.swap(0, Relaxed) != 0 {
        REGISTERED.with(|list| list.retain(|r| r.head != head.index));
    }
}

/// A child of fork is not registered for anything.
pub fn after_fork() {
    REGISTERED.with(Vec::clear);
    for head in super::all(&enter()) {
        head.signals.store(0, Relaxed);
    }
}

/// A message of a band came up.
pub fn arrived(head: &Head, band: u8) {
    let (events, bits) = match band {
        0 => (S_RDNORM, libc::POLLRDNORM),
        _ => (S_RDBAND, libc::POLLRDBAND),
    };
    tell(head, S_INPUT | events, POLL_IN, libc::POLLIN | bits);
}

/// A high-priority message came up.
pub fn urgent(head: &Head) {
    tell(head, S_HIPRI, POLL_PRI, libc::POLLPRI);
}

/// The stream takes messages again.
pub fn room(head: &Head) {
    tell(head, S_OUTPUT, POLL_OUT, libc::POLLOUT | libc::POLLWRNORM);
    if head.words().has(state::BANDED) {
        tell(head, S_WRBAND, POLL_OUT, libc::POLLWRBAND);
    }
}

pub fn failed(head: &Head) {
    tell(head, S_ERROR, POLL_ERR, libc::POLLERR);
}

/// M_UNHANGUP: the next hangup is news.
pub fn resumed(head: &Head) {
    head.told.hangup.store(0, Relaxed);
}

/// Told once.
pub fn hung_up(head: &Head) {
    if head.told.hangup.swap(1, Relaxed) == 0 {
        tell(head, S_HANGUP, POLL_HUP, libc::POLLHUP);
    }
}

/// M_SIG: SIGPOLL goes to those who asked for S_MSG; other signals would go to a controlling terminal's group, and no
/// stream here is one.
pub fn asked_for(head: &Head, signal: c_int) {
    if signal == libc::SIGPOLL {
        const POLLMSG: i16 = 0x400;
        let bits = libc::POLLIN | libc::POLLRDNORM | POLLMSG;
        tell(head, S_MSG, POLL_MSG, bits);
    }
}

/// `band` are poll(2)'s event bits, as Linux has them in si_band. Of what came in a band who asked for S_RDBAND with S_BANDURG is told by
/// SIGURG.
fn tell(head: &Head, events: u32, code: c_int, band: i16) {
    if head.signals.load(Relaxed) & events == 0 {
        return;
    }
    REGISTERED.with(|list| {
        for r in list.iter() {
            if r.head == head.index && r.events & events != 0 {
                let asks = r.events & (S_RDBAND | S_BANDURG) == S_RDBAND | S_BANDURG;
                let urgent = events & S_RDBAND != 0 && asks;
                let signal = if urgent { libc::SIGURG } else { libc::SIGPOLL };
                send(r.pid, signal, code, band);
            }
        }
    });
}

/// siginfo_t as the kernel lays it out for SIGPOLL.
#[repr(C)]
struct Info {
    signo: c_int,
    errno: c_int,
    code: c_int,
    pad: c_int,
    band: libc::c_long,
    fd: c_int,
    rest: [c_int; 24],
}

const _: () = assert!(size_of::<Info>() >= 128);

/// What [`unmask`] knows our own queued signals by.
const DISGUISE: libc::c_long = 0x4857 << 40;

impl Info {
    /// The band where a queued signal has its value.
    fn into_queued(mut self) -> Info {
        let value = self.band;
        // {pid, uid} come first there.
        self.band = sys::getpid() as libc::c_long | (sys::getuid() as libc::c_long) << 32;
        self.fd = value as u32 as c_int;
        self.rest[0] = (value >> 32) as c_int;
        self
    }
}

/// Gives a signal that the background thread sent the look of the kernel's. Called before the program's handler.
///
/// # Safety
/// `info` is a siginfo_t.
pub unsafe fn unmask(info: *mut libc::siginfo_t) {
    // SAFETY: a siginfo_t, as the caller says, of which `Info` is the layout.
    let info = unsafe { &mut *info.cast::<Info>() };
    if info.code != libc::SI_QUEUE || info.band as i32 != sys::getpid() {
        return;
    }
    let value = info.fd as u32 as libc::c_long | (info.rest[0] as libc::c_long) << 32;
    if value & 0xffff << 40 != DISGUISE {
        return;
    }
    info.code = (value >> 32) as u8 as c_int;
    info.band = value & 0xffff;
    info.fd = -1;
    info.rest[0] = 0;
}

fn send(pid: i32, signal: c_int, code: c_int, band: i16) {
    let mut info = Info {
        signo: signal,
        errno: 0,
        code,
        pad: 0,
        band: band as libc::c_long,
        fd: -1,
        rest: [0; 24],
    };
    let own = pid == sys::getpid();
    if own && sys::gettid() != pid {
        // A thread may not send its process what looks like the kernel's: disguised, see `unmask`.
        info.code = libc::SI_QUEUE;
        info.band = DISGUISE | (code as libc::c_long) << 32 | band as u16 as libc::c_long;
        info = info.into_queued();
    }
    // SAFETY: a whole siginfo_t; a process may send itself any.
    unsafe {
        if own {
            let _ = syscall!(Sysno::rt_sigqueueinfo, pid, signal, &raw mut info);
        } else {
            let _ = syscall!(Sysno::kill, pid, signal);
        }
    }
}
