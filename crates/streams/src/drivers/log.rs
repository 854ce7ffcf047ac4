//! log(7D): gives what strlog(9F) is called with to the streams that asked for it by I_TRCLOG, I_ERRLOG or I_CONSLOG, and
//! takes messages of programs.
//!
//! All its streams share a perimeter, and the list of receivers is only reached inside one. strlog(9F) may be called inside
//! any other, so it does not wait long to get in: a message that can't be delivered is lost, and its number shows that.

use core::ffi::{c_int, c_long};
use core::time::Duration;

use headwater_host::guarded::Guarded;
use headwater_host::sync::{AtomicPtr, AtomicU32, Ordering::*};
use headwater_host::sys;

use super::minors::{Minor, Minors};
use super::reply;
use crate::ddi::owned::Message;
use crate::ddi::*;
use crate::exec::module::Flow;
use crate::exec::{Info, Module, OpenFlag, Perimeter, Queue};
use crate::modules::id;
use crate::strlog::{
    self, LOGMSGSZ, Line, SL_CONSOLE, SL_ERROR, SL_FATAL, SL_NOTE, SL_TRACE, SL_WARN,
};

const LOGCTL: c_int = (b'L' as c_int) << 8;
pub const I_TRCLOG: c_int = LOGCTL | 1;
pub const I_ERRLOG: c_int = LOGCTL | 2;
pub const I_CONSLOG: c_int = LOGCTL | 3;

/// struct log_ctl of <sys/strlog.h>.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct LogCtl {
    pub mid: i16,
    pub sid: i16,
    pub level: i8,
    pub flags: i16,
    pub ltime: c_long,
    pub ttime: c_long,
    pub seq_no: c_long,
    pub pri: c_int,
}

// SAFETY: integers.
unsafe impl Plain for LogCtl {}

/// struct trace_ids of <sys/strlog.h>; -1 is any.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct TraceIds {
    pub mid: i16,
    pub sid: i16,
    pub level: i8,
}

// SAFETY: integers.
unsafe impl Plain for TraceIds {}

/// LOG_USER | LOG_INFO of <syslog.h>.
const USER_INFO: c_int = 1 << 3 | 6;
/// How long strlog(9F) tries to get in, in nanoseconds.
const ENTRY_TIMEOUT: u64 = Duration::from_millis(1).as_nanos() as u64;

static MINORS: Minors = Minors::new();
static RECEIVERS: Guarded<Vec<Receiver>> = Guarded::new(Vec::new());
/// How many of them there are.
static COUNT: AtomicU32 = AtomicU32::new(0);
/// Where they run.
static PERIMETER: AtomicPtr<Perimeter> = AtomicPtr::new(core::ptr::null_mut());
/// Numbers given by this process: errors, traces, console.
static NUMBERS: [AtomicU32; 3] = [const { AtomicU32::new(0) }; 3];

struct Receiver {
    read: Queue,
    errors: bool,
    console: bool,
    traces: Vec<TraceIds>,
}

pub struct Log {
    minor: Minor,
}

impl Module for Log {
    const INFO: Info = Info::new(id::LOG, c"log");
    const FLOW: Flow = Flow::Shared;

    fn open(q: Queue, dev: &mut libc::dev_t, _: c_int, flag: OpenFlag) -> Result<Self, c_int> {
        let minor = MINORS.take(dev, flag)?;
        PERIMETER.store(core::ptr::from_ref(q.perimeter()).cast_mut(), Release);
        Ok(Log { minor })
    }

    fn close(&self, q: Queue, _: c_int) {
        let mut receivers = RECEIVERS.enter();
        receivers.retain(|r| r.read != q);
        COUNT.store(receivers.len() as u32, Release);
    }

    fn wput(&self, q: Queue, m: Message) {
        match m.kind() {
            M_FLUSH => reply::flush_at_end(q, m),
            M_IOCTL => request(q, m),
            M_DATA | M_PROTO => self.write(m),
            _ => {}
        }
    }
}

fn request(q: Queue, m: Message) {
    let known = matches!(reply::command(&m), Some(I_TRCLOG | I_ERRLOG | I_CONSLOG));
    let size = size_of::<TraceIds>();
    let data = m.to_data();
    let traces = reply::command(&m) == Some(I_TRCLOG);
    if !known
        || reply::is_transparent(&m)
        || traces && (data.is_empty() || !data.len().is_multiple_of(size))
    {
        return reply::refuse(q, m, libc::EINVAL);
    }
    let mut receivers = RECEIVERS.enter();
    let at = receivers.iter().position(|r| r.read == q.read());
    let at = at.unwrap_or_else(|| {
        receivers.push(Receiver {
            read: q.read(),
            errors: false,
            console: false,
            traces: Vec::new(),
        });
        receivers.len() - 1
    });
    let receiver = &mut receivers[at];
    match reply::command(&m) {
        Some(I_TRCLOG) => {
            let ids = data.chunks(size).filter_map(|c| Message::data(c).read());
            receiver.traces = ids.collect();
        }
        Some(I_ERRLOG) => receiver.errors = true,
        _ => receiver.console = true,
    }
    COUNT.store(receivers.len() as u32, Release);
    drop(receivers);
    reply::done(q, m, 0);
}

impl Log {
    /// What a program writes: a log_ctl, of which level, flags and pri count, and the text; or the text alone, for the
    /// console.
    fn write(&self, mut m: Message) {
        let mut line = Line {
            mid: id::LOG as i16,
            sid: self.minor.number() as i16,
            level: 0,
            flags: SL_CONSOLE,
            pri: USER_INFO,
        };
        if m.kind() == M_PROTO {
            let Some(ctl) = m.read::<LogCtl>() else {
                return;
            };
            (line.level, line.flags, line.pri) = (ctl.level, ctl.flags as u16, ctl.pri);
            match m.take_rest() {
                Some(rest) => m = rest,
                None => return,
            }
        }
        let data = m.to_data();
        let text = data.split(|b| *b == 0).next().unwrap_or(&[]);
        log(&line, text);
    }
}

/// strlog(9F). A text that is too long is cut.
pub fn submit(mid: i16, sid: i16, level: i8, flags: u16, text: &[u8]) {
    let severity = match flags {
        f if f & SL_FATAL != 0 => 2,
        f if f & SL_ERROR != 0 => 3,
        f if f & SL_WARN != 0 => 4,
        f if f & SL_NOTE != 0 => 5,
        f if f & SL_TRACE != 0 => 7,
        _ => 6,
    };
    let line = Line {
        mid,
        sid,
        level,
        flags,
        pri: severity,
    };
    log(&line, text);
}

/// The same with a priority of its own.
fn log(line: &Line, text: &[u8]) {
    if !line.kinds().contains(&true) {
        return;
    }
    let text = &text[..text.len().min(LOGMSGSZ - 1)];
    strlog::append(line, text);
    deliver(line, text);
}

/// Gives a line to the streams of this process that want it.
fn deliver(line: &Line, text: &[u8]) {
    if COUNT.load(Acquire) == 0 {
        return;
    }
    // SAFETY: perimeters are never freed.
    let Some(perimeter) = (unsafe { PERIMETER.load(Acquire).as_ref() }) else {
        return;
    };
    let number = line.kinds().map(|is| is as u32);
    let numbers = [0, 1, 2].map(|i| NUMBERS[i].fetch_add(number[i], Relaxed) + number[i]);
    if Perimeter::current().is_some_and(|p| core::ptr::eq(p, perimeter)) {
        return hand_out(perimeter, line, text, numbers);
    }
    let deadline = sys::now() + ENTRY_TIMEOUT;
    loop {
        if let Some(_guard) = perimeter.try_enter() {
            return hand_out(perimeter, line, text, numbers);
        }
        if sys::now() > deadline {
            return;
        }
        sys::sched_yield();
    }
}

fn hand_out(perimeter: &Perimeter, line: &Line, text: &[u8], numbers: [u32; 3]) {
    let mut at = 0;
    loop {
        let next = {
            let receivers = RECEIVERS.enter();
            let Some(receiver) = receivers.get(at) else {
                return;
            };
            at += 1;
            // One that is linked below a multiplexer runs elsewhere.
            let here = core::ptr::eq(receiver.read.perimeter(), perimeter);
            let kind = receiver.wants(line).filter(|_| here);
            kind.map(|kind| (receiver.read, kind))
        };
        if let Some((read, kind)) = next
            && read.canputnext()
        {
            read.putnext(message(line, text, numbers[kind]));
        }
    }
}

impl Receiver {
    /// As which kind it wants a line: its place in [`NUMBERS`].
    fn wants(&self, line: &Line) -> Option<usize> {
        let [error, trace, console] = line.kinds();
        let traced = trace && self.traces.iter().any(|ids| ids.matches(line));
        let wanted = [error && self.errors, traced, console && self.console];
        wanted.iter().position(|&is| is)
    }
}

impl TraceIds {
    pub fn matches(&self, line: &Line) -> bool {
        (self.mid == -1 || self.mid == line.mid)
            && (self.sid == -1 || self.sid == line.sid)
            && (self.level == -1 || line.level <= self.level)
    }
}

fn message(line: &Line, text: &[u8], number: u32) -> Message {
    let ctl = LogCtl {
        mid: line.mid,
        sid: line.sid,
        level: line.level,
        flags: line.flags as i16,
        ltime: strlog::ticks() as c_long,
        ttime: strlog::seconds() as c_long,
        seq_no: number as c_long,
        pri: line.pri,
    };
    let mut m = Message::from_struct(M_PROTO, ctl);
    let mut data = Message::new(M_DATA, text.len() + 1);
    data.push(text);
    data.push(&[0]);
    m.append(data);
    m
}

impl Line {
    /// Is it for error loggers, for trace loggers, for the console?
    pub(crate) fn kinds(&self) -> [bool; 3] {
        [SL_ERROR, SL_TRACE, SL_CONSOLE].map(|flag| self.flags & flag != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drivers::testing::Stream;

    /// Log streams share a list and a perimeter, so one test has them all.
    #[test]
    fn a_log_stream_gets_what_it_asked_for() {
        let mut s = Stream::open::<Log>().unwrap();
        let line = |mid, level, flags| Line {
            mid,
            sid: 2,
            level,
            flags,
            pri: 0,
        };
        deliver(&line(9, 1, SL_TRACE), b"before");
        assert_eq!(s.ioctl(I_TRCLOG, &[1, 2, 3]).0, (M_IOCNAK, libc::EINVAL));
        assert_eq!(s.ioctl(I_TRCLOG, &[]).0, (M_IOCNAK, libc::EINVAL));
        assert_eq!(s.ioctl(LOGCTL | 9, &[]).0, (M_IOCNAK, libc::EINVAL));
        // mid 9, any sid, up to level 3
        let ids = [&9i16.to_ne_bytes()[..], &[0xff, 0xff, 3, 0]].concat();
        assert_eq!(s.ioctl(I_TRCLOG, &ids).0, (M_IOCACK, 0));
        deliver(&line(9, 4, SL_TRACE), b"too detailed");
        deliver(&line(8, 1, SL_TRACE), b"another module");
        deliver(&line(9, 3, SL_ERROR), b"no trace");
        deliver(&line(9, 3, SL_TRACE), b"wanted");
        let m = s.get().unwrap();
        let ctl: LogCtl = m.read().unwrap();
        assert_eq!(
            (m.kind(), ctl.mid, ctl.level, ctl.seq_no),
            (M_PROTO, 9, 3, 3)
        );
        assert_eq!(m.to_data(), b"wanted\0");
        assert!(s.get().is_none());

        let mut errors = s.another::<Log>().unwrap();
        assert_eq!(errors.ioctl(I_ERRLOG, &[]).0, (M_IOCACK, 0));
        deliver(&line(1, 0, SL_ERROR), b"failed");
        assert_eq!(errors.get().unwrap().to_data(), b"failed\0");
        assert!(s.get().is_none());
        drop(errors);

        let full = s.within(|q| {
            while q.read().canput() {
                q.read().put(Message::data(&[0; 1000]));
            }
            q.read().qsize()
        });
        deliver(&line(9, 3, SL_TRACE), b"lost");
        assert_eq!(s.drain(), full);
        deliver(&line(9, 3, SL_TRACE), b"after");
        let ctl: LogCtl = s.get().unwrap().read().unwrap();
        assert_eq!(ctl.seq_no, 5, "the number shows the loss");
    }
}
