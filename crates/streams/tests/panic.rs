//! Modules and drivers that panic: their stream is over, nothing else is.

#![cfg(not(loom))]

#[path = "common/processes.rs"]
mod processes;

use std::sync::{MutexGuard, Once, OnceLock};

use headwater_streams::ddi::owned::Message;
use headwater_streams::exec::{Info, Module, OpenFlag, Queue, registry};
use headwater_streams::head::Head;
use headwater_streams::head::control::ioctl;
use headwater_streams::open;
use processes::*;

const I_POP: u32 = (b'S' as u32) << 8 | 3;

/// Where a module panics.
const OPEN: u8 = 0;
const CLOSE: u8 = 1;
const RPUT: u8 = 2;
const WPUT: u8 = 3;
const RSRV: u8 = 4;
const WSRV: u8 = 5;

struct Rash<const WHERE: u8>;

fn panic_at(here: u8, place: u8) {
    if here == place {
        // Without the hook's words on standard error, which a test looks at.
        std::panic::resume_unwind(Box::new("on purpose"));
    }
}

impl<const WHERE: u8> Module for Rash<WHERE> {
    const INFO: Info = Info::new(900, NAMES[WHERE as usize]);
    const RSRV: bool = WHERE == RSRV;
    const WSRV: bool = WHERE == WSRV;

    fn open(_: Queue, _: &mut libc::dev_t, _: i32, _: OpenFlag) -> Result<Self, i32> {
        panic_at(WHERE, OPEN);
        Ok(Rash)
    }
    fn close(&self, _: Queue, _: i32) {
        panic_at(WHERE, CLOSE);
    }
    fn rput(&self, q: Queue, m: Message) {
        panic_at(WHERE, RPUT);
        if Self::RSRV && !m.is_priority() {
            return q.putq(m);
        }
        q.putnext(m);
    }
    fn wput(&self, q: Queue, m: Message) {
        panic_at(WHERE, WPUT);
        if Self::WSRV && !m.is_priority() {
            return q.putq(m);
        }
        q.putnext(m);
    }
    fn rsrv(&self, q: Queue) {
        panic_at(WHERE, RSRV);
        q.forward();
    }
    fn wsrv(&self, q: Queue) {
        panic_at(WHERE, WSRV);
        q.forward();
    }
}

const NAMES: [&std::ffi::CStr; 6] = [
    c"rashopen",
    c"rashclos",
    c"rashrput",
    c"rashwput",
    c"rashrsrv",
    c"rashwsrv",
];

fn register() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        registry::register_module::<Rash<OPEN>>().unwrap();
        registry::register_module::<Rash<CLOSE>>().unwrap();
        registry::register_module::<Rash<RPUT>>().unwrap();
        registry::register_module::<Rash<WPUT>>().unwrap();
        registry::register_module::<Rash<RSRV>>().unwrap();
        registry::register_module::<Rash<WSRV>>().unwrap();
        registry::register_device::<Rash<WPUT>>("rashwput").unwrap();
        registry::register_device::<Rash<OPEN>>("rashopen").unwrap();
    });
}

/// One test at a time, with a log of its own: standard error gets nothing that nobody asked for.
fn alone() -> MutexGuard<'static, ()> {
    static START: Once = Once::new();
    // SAFETY: no other thread of this test program reads the environment now.
    START.call_once(|| unsafe { std::env::set_var("HEADWATER_LOG_FILE", log_file()) });
    let turn = processes::alone();
    static LOG: Once = Once::new();
    LOG.call_once(headwater_host::log::start);
    turn
}

fn log_file() -> &'static str {
    static PATH: OnceLock<String> = OnceLock::new();
    PATH.get_or_init(|| {
        // SAFETY: a C string. It stays open.
        let file = unsafe { libc::memfd_create(c"log".as_ptr(), 0) };
        format!("/proc/self/fd/{file}")
    })
}

/// Runs `f`, and gives back the lines that the log got meanwhile.
fn logged(f: impl FnOnce()) -> Vec<String> {
    let text = || std::fs::read_to_string(log_file()).unwrap();
    let before = text().len();
    f();
    text()[before..].lines().map(str::to_owned).collect()
}

fn try_push(fd: i32, place: u8) -> Result<i32, Errno> {
    // SAFETY: the request reads a C string.
    unsafe { ioctl(stream(fd), I_PUSH, NAMES[place as usize].as_ptr() as usize) }
}

fn pop(fd: i32) -> Result<i32, Errno> {
    // SAFETY: the request takes nothing.
    unsafe { ioctl(stream(fd), I_POP, 0) }
}

fn has(head: &Head, event: i16) -> bool {
    head.events(!0) & event as u32 != 0
}

fn assert_over(fd: i32) {
    assert!(has(stream(fd), libc::POLLERR));
    assert_eq!(read(fd), Err(libc::EPROTO));
    assert_eq!(write(fd, "x"), Err(libc::EPROTO));
}

fn assert_carries([a, b]: [i32; 2]) {
    write(a, "down").unwrap();
    assert_eq!(read(b).unwrap(), "down");
    write(b, "up").unwrap();
    assert_eq!(read(a).unwrap(), "up");
}

/// What a module's procedure spoils when a message passes in its direction.
fn a_procedure_panics(place: u8, up: bool) {
    let _turn = alone();
    register();
    let other = pipe();
    push(other[0], "bufmod");
    let [a, b] = pipe();
    let lines = logged(|| {
        try_push(a, place).unwrap();
        if up {
            write(b, "x").unwrap();
        } else {
            let _ = write(a, "x");
        }
        assert_over(a);
        assert_over(a);
        assert_carries(other);
    });
    let named: Vec<_> = lines.iter().filter(|l| l.contains("rash")).collect();
    assert_eq!(named.len(), 1, "{lines:?}");
    // The module can still be taken off, and its stream closed.
    let _ = pop(a);
    close(a);
    assert!(has(stream(b), libc::POLLHUP));
    close(b);
    let _ = other.map(close);
    let fresh = pipe();
    assert_carries(fresh);
    let _ = fresh.map(close);
}

#[test]
fn in_a_read_put_procedure() {
    a_procedure_panics(RPUT, true);
}

#[test]
fn in_a_write_put_procedure() {
    a_procedure_panics(WPUT, false);
}

#[test]
fn in_a_read_service_procedure() {
    a_procedure_panics(RSRV, true);
}

#[test]
fn in_a_write_service_procedure() {
    a_procedure_panics(WSRV, false);
}

#[test]
fn in_open_the_push_fails_and_the_stream_goes_on() {
    let _turn = alone();
    register();
    let ends = pipe();
    let lines = logged(|| assert_eq!(try_push(ends[0], OPEN), Err(libc::EPROTO)));
    assert_eq!(
        lines.iter().filter(|l| l.contains("rash")).count(),
        1,
        "{lines:?}"
    );
    assert_eq!(pop(ends[0]), Err(libc::EINVAL), "nothing was pushed");
    assert_carries(ends);
    let _ = ends.map(close);
}

#[test]
fn in_close_the_module_is_gone_and_the_stream_goes_on() {
    let _turn = alone();
    register();
    let ends = pipe();
    let lines = logged(|| {
        try_push(ends[0], CLOSE).unwrap();
        assert_carries(ends);
        pop(ends[0]).unwrap();
        assert_carries(ends);
        try_push(ends[1], CLOSE).unwrap();
        close(ends[1]);
    });
    assert_eq!(
        lines.iter().filter(|l| l.contains("rash")).count(),
        2,
        "{lines:?}"
    );
    assert_eq!(read(ends[0]).unwrap(), "");
    close(ends[0]);
}

#[test]
fn in_a_driver() {
    let _turn = alone();
    register();
    let echo = open_stream("/dev/echo".as_ref()).unwrap();
    let lines = logged(|| {
        let fd = open_stream("/dev/streams/rashwput".as_ref()).unwrap();
        let _ = write(fd, "x");
        assert_over(fd);
        close(fd);
        let opened = open::open(c"/dev/streams/rashopen", libc::O_RDWR);
        assert_eq!(opened, Some(Err(libc::EPROTO)));
    });
    assert_eq!(
        lines.iter().filter(|l| l.contains("rash")).count(),
        2,
        "{lines:?}"
    );
    write(echo, "lives").unwrap();
    assert_eq!(read(echo).unwrap(), "lives");
    close(echo);
}
