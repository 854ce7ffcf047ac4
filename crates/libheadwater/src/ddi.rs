//! `<sys/ddi.h>`: the routines of section 9F, for the modules and drivers in C that `modules` loads. What they do is in
//! [`headwater_streams::ddi`].
//!
//! # Contract
//! That of the manual: queues and messages are live, a message that was handed on is touched no more, and what is done to a queue is
//! done inside a procedure of its stream.

use core::ffi::{c_int, c_long, c_uchar, c_uint, c_ulong, c_void};
use core::ptr::{self, null_mut};
use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};

use headwater_host::log::{self, Level};
use headwater_host::sys;
use headwater_streams::ddi::owned::Message;
use headwater_streams::ddi::*;
use headwater_streams::exec::timer::{self, TICK};
use headwater_streams::strlog;

use crate::given::Text;
use crate::variadic::jumps;

jumps! {
    hw_ddi_allocb = allocb,
    hw_ddi_esballoc = esballoc,
    hw_ddi_freeb = freeb,
    hw_ddi_dupb = dupb,
    hw_ddi_copyb = copyb,
    hw_ddi_freemsg = freemsg,
    hw_ddi_dupmsg = dupmsg,
    hw_ddi_copymsg = copymsg,
    hw_ddi_linkb = linkb,
    hw_ddi_unlinkb = unlinkb,
    hw_ddi_rmvb = rmvb,
    hw_ddi_adjmsg = adjmsg,
    hw_ddi_pullupmsg = pullupmsg,
    hw_ddi_msgpullup = msgpullup,
    hw_ddi_msgdsize = msgdsize,
    hw_ddi_datamsg = datamsg,
    hw_ddi_timeout = timer::timeout,
    hw_ddi_itimeout = timer::timeout,
    hw_ddi_untimeout = timer::untimeout,
    hw_ddi_unbufcall = timer::untimeout,
    hw_ddi_bufcall = timer::bufcall,
}

/// What of it a module gives up, or gets back.
type Raw = *mut mblk_t;

/// Functions with a queue, exported by the names of the manual.
macro_rules! of_queues {
    ($($(#[$doc:meta])* fn $name:ident($q:ident $(, $arg:ident: $ty:ty)*) -> $ret:ty $body:block)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As the manual asks: live queues, inside a procedure of their stream, and messages of the caller's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($q: *mut queue_t $(, $arg: $ty)*) -> $ret {
            // SAFETY: a live queue, as the caller says.
            let $q = unsafe { Queue::from_raw($q) };
            $body
        }
    )*};
}

/// Takes a message over that a module gives up.
fn taken(m: Raw) -> Option<Message> {
    // SAFETY: the module's own until here, by the contract of its calls.
    unsafe { Message::from_raw(m) }
}

/// A message that is on a queue, as the module names it.
fn on(q: Queue, m: Raw) -> Option<OnQueue> {
    q.messages().find(|on| ptr::eq(on.as_ptr(), m))
}

fn given(m: Option<Message>) -> Raw {
    m.map_or(null_mut(), Message::into_raw)
}

fn flush(what: c_int) -> Flush {
    match what as isize {
        FLUSHALL => Flush::All,
        _ => Flush::Data,
    }
}

of_queues! {
    /// put(9F)
    fn hw_ddi_put(q, m: Raw) -> c_int {
        if let Some(m) = taken(m) {
            q.put(m);
        }
        0
    }
    /// putnext(9F)
    fn hw_ddi_putnext(q, m: Raw) -> c_int {
        if let Some(m) = taken(m) {
            q.putnext(m);
        }
        0
    }
    /// qreply(9F)
    fn hw_ddi_qreply(q, m: Raw) -> () {
        if let Some(m) = taken(m) {
            q.qreply(m);
        }
    }
    /// putctl(9F)
    fn hw_ddi_putctl(q, kind: c_int) -> c_int {
        q.putctl(kind as u8).into()
    }
    /// putctl1(9F)
    fn hw_ddi_putctl1(q, kind: c_int, param: c_int) -> c_int {
        q.putctl1(kind as u8, param as u8).into()
    }
    /// putnextctl(9F)
    fn hw_ddi_putnextctl(q, kind: c_int) -> c_int {
        q.putnextctl(kind as u8).into()
    }
    /// putnextctl1(9F)
    fn hw_ddi_putnextctl1(q, kind: c_int, param: c_int) -> c_int {
        q.putnextctl1(kind as u8, param as u8).into()
    }
    /// putq(9F): 1, or 0 where it can't be put.
    fn hw_ddi_putq(q, m: Raw) -> c_int {
        taken(m).map(|m| q.putq(m)).is_some().into()
    }
    /// putbq(9F)
    fn hw_ddi_putbq(q, m: Raw) -> c_int {
        taken(m).map(|m| q.putbq(m)).is_some().into()
    }
    /// insq(9F): 0 where it would be out of order, or `at` is not on the queue; then it stays the caller's.
    fn hw_ddi_insq(q, at: Raw, m: Raw) -> c_int {
        let behind = on(q, at);
        if behind.is_none() && !at.is_null() {
            return 0;
        }
        let Some(m) = taken(m) else { return 0 };
        match q.insq(behind, m) {
            Ok(()) => 1,
            Err(m) => {
                m.into_raw();
                0
            }
        }
    }
    /// getq(9F): null where there is none.
    fn hw_ddi_getq(q) -> Raw {
        given(q.getq())
    }
    /// rmvq(9F): the message is the caller's from here on.
    fn hw_ddi_rmvq(q, m: Raw) -> () {
        if let Some(m) = on(q, m) {
            // SAFETY: it was found there.
            unsafe { q.rmvq(m) }.into_raw();
        }
    }
    /// flushq(9F)
    fn hw_ddi_flushq(q, what: c_int) -> () {
        q.flushq(flush(what));
    }
    /// flushband(9F)
    fn hw_ddi_flushband(q, band: c_uchar, what: c_int) -> () {
        q.flushband(band, flush(what));
    }
    /// qsize(9F)
    fn hw_ddi_qsize(q) -> c_int {
        q.qsize() as c_int
    }
    /// canput(9F)
    fn hw_ddi_canput(q) -> c_int {
        q.canput().into()
    }
    /// bcanput(9F)
    fn hw_ddi_bcanput(q, band: c_uchar) -> c_int {
        q.bcanput(band).into()
    }
    /// canputnext(9F)
    fn hw_ddi_canputnext(q) -> c_int {
        q.canputnext().into()
    }
    /// bcanputnext(9F)
    fn hw_ddi_bcanputnext(q, band: c_uchar) -> c_int {
        q.bcanputnext(band).into()
    }
    /// qenable(9F)
    fn hw_ddi_qenable(q) -> () {
        q.qenable();
    }
    /// enableok(9F)
    fn hw_ddi_enableok(q) -> () {
        q.enableok();
    }
    /// noenable(9F)
    fn hw_ddi_noenable(q) -> () {
        q.noenable();
    }
    /// strqget(9F): 0, or EINVAL.
    fn hw_ddi_strqget(q, what: c_int, band: c_uchar, value: *mut c_long) -> c_int {
        match q.strqget(what, band) {
            Ok(found) => {
                // SAFETY: the module has room for it there.
                unsafe { value.write(found) };
                0
            }
            Err(errno) => errno,
        }
    }
    /// strqset(9F): 0, EINVAL, or EPERM for what is not to be set.
    fn hw_ddi_strqset(q, what: c_int, band: c_uchar, value: c_long) -> c_int {
        q.strqset(what, band, value).err().unwrap_or(0)
    }
    /// backq(9F): null at the end of a stream.
    fn hw_ddi_backq(q) -> *mut queue_t {
        q.back().map_or(null_mut(), Queue::as_ptr)
    }
    /// SAMESTR(9F)
    fn hw_ddi_SAMESTR(q) -> c_int {
        q.samestr().into()
    }
    /// qprocson(9F): procedures are on as soon as the queue is linked in.
    fn hw_ddi_qprocson(_q) -> () {}
    /// qprocsoff(9F)
    fn hw_ddi_qprocsoff(q) -> () {
        q.qprocsoff();
    }
    /// freezestr(9F): inside a procedure nobody else is in the stream.
    fn hw_ddi_freezestr(_q) -> c_int {
        0
    }
    /// unfreezestr(9F)
    fn hw_ddi_unfreezestr(_q, _level: c_int) -> () {}
}

/// pcmsg(9F): is this type of high priority?
#[unsafe(no_mangle)]
pub extern "C-unwind" fn hw_ddi_pcmsg(kind: c_uchar) -> c_int {
    (kind >= QPCTL).into()
}

/// testb(9F): would allocb(9F) find so many bytes?
#[unsafe(no_mangle)]
pub extern "C-unwind" fn hw_ddi_testb(size: usize, priority: c_uint) -> c_int {
    taken(allocb(size, priority)).is_some().into()
}

/// esbbcall(9F): as bufcall(9F), for the blocks of esballoc(9F).
///
/// # Safety
/// As for [`timer::bufcall`].
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn hw_ddi_esbbcall(
    priority: c_int,
    call: timer::Callback,
    with: *mut c_void,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe { timer::bufcall(0, priority, call, with) }
}

/// Their arguments are the same.
macro_rules! welds {
    ($($(#[$doc:meta])* $name:ident = $together:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// Queues of one perimeter, inside it, and a function that may be called with its argument.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(
            q1: *mut queue_t,
            q2: *mut queue_t,
            q3: *mut queue_t,
            q4: *mut queue_t,
            call: Option<timer::Callback>,
            with: *mut c_void,
            _inside: *mut queue_t,
        ) -> c_int {
            // SAFETY: as the caller says.
            unsafe { weld([(q1, q2), (q3, q4)], $together, call, with) }
        }
    )*};
}

welds! {
    /// weldq(9F), where `q1` is to go on to `q2`, and `q3` to `q4`; null: nothing of that pair. What is to be told, is told when
    /// that is so. 0, or EINVAL.
    hw_ddi_weldq = true;
    /// unweldq(9F): takes that back.
    hw_ddi_unweldq = false;
}

/// # Safety
/// As for [`hw_ddi_weldq`].
unsafe fn weld(
    pairs: [(*mut queue_t, *mut queue_t); 2],
    together: bool,
    call: Option<timer::Callback>,
    with: *mut c_void,
) -> c_int {
    // SAFETY: null, or a live queue, as the caller says.
    let queue = |q: *mut queue_t| (!q.is_null()).then(|| unsafe { Queue::from_raw(q) });
    let pairs = pairs.map(|(from, to)| (queue(from), queue(to)));
    let fits = |&(from, to): &(Option<Queue>, Option<Queue>)| match (from, to) {
        (Some(from), Some(to)) => from.can_be_welded(to, together),
        (None, None) => true,
        _ => false,
    };
    if !pairs.iter().all(fits) || pairs == [(None, None); 2] {
        return libc::EINVAL;
    }
    for (from, to) in pairs {
        if let (Some(from), Some(to)) = (from, to) {
            from.weld(together.then_some(to));
        }
    }
    if let Some(call) = call {
        // SAFETY: it may be called with this, as the caller says.
        unsafe { call(with) };
    }
    0
}

/// drv_hztousec(9F)
#[unsafe(no_mangle)]
pub extern "C-unwind" fn hw_ddi_drv_hztousec(ticks: c_long) -> c_long {
    ticks.saturating_mul(MICROSECONDS)
}

/// drv_usectohz(9F): rounded up.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn hw_ddi_drv_usectohz(microseconds: c_long) -> c_long {
    (microseconds.max(0) as u64).div_ceil(MICROSECONDS as u64) as c_long
}

/// Of a tick.
const MICROSECONDS: c_long = TICK as c_long / 1000;

/// drv_usecwait(9F): looks at the clock until then.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn hw_ddi_drv_usecwait(microseconds: c_long) {
    let until = sys::now() + microseconds.max(0) as u64 * 1000;
    while sys::now() < until {
        core::hint::spin_loop();
    }
}

/// drv_getparm(9F): LBOLT, ticks since the system was started; TIME, seconds since 1970. 0, or -1 for what no process has.
///
/// # Safety
/// There is room for the value.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn hw_ddi_drv_getparm(what: c_ulong, value: *mut c_long) -> c_int {
    const LBOLT: c_ulong = 1;
    const TIME: c_ulong = 2;
    const PPID: c_ulong = 3;
    let found = match what {
        LBOLT => strlog::ticks() as c_long,
        TIME => strlog::seconds() as c_long,
        PPID => sys::getpid().into(),
        _ => return -1,
    };
    // SAFETY: there is room, as the caller says.
    unsafe { value.write(found) };
    0
}

fn bytes(size: usize) -> Option<Layout> {
    Layout::from_size_align(size.max(1), align_of::<u128>()).ok()
}

/// kmem_alloc(9F): null without memory, whatever it is asked to wait for.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn hw_ddi_kmem_alloc(size: usize, _flag: c_int) -> *mut c_void {
    // SAFETY: of one byte at least.
    bytes(size).map_or(null_mut(), |layout| unsafe { alloc(layout) }.cast())
}

/// kmem_zalloc(9F)
#[unsafe(no_mangle)]
pub extern "C-unwind" fn hw_ddi_kmem_zalloc(size: usize, _flag: c_int) -> *mut c_void {
    // SAFETY: of one byte at least.
    bytes(size).map_or(null_mut(), |layout| unsafe { alloc_zeroed(layout) }.cast())
}

/// kmem_free(9F): null is ignored.
///
/// # Safety
/// Of kmem_alloc(9F) with this size, and not given back before.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn hw_ddi_kmem_free(at: *mut c_void, size: usize) {
    if let Some(layout) = bytes(size).filter(|_| !at.is_null()) {
        // SAFETY: as the caller says.
        unsafe { dealloc(at.cast(), layout) };
    }
}

/// getmajor(9F)
#[unsafe(no_mangle)]
pub extern "C-unwind" fn hw_ddi_getmajor(dev: libc::dev_t) -> c_uint {
    libc::major(dev)
}

/// getminor(9F)
#[unsafe(no_mangle)]
pub extern "C-unwind" fn hw_ddi_getminor(dev: libc::dev_t) -> c_uint {
    libc::minor(dev)
}

/// makedevice(9F)
#[unsafe(no_mangle)]
pub extern "C-unwind" fn hw_ddi_makedevice(major: c_uint, minor: c_uint) -> libc::dev_t {
    libc::makedev(major, minor)
}

/// cmn_err(9F), of which variadic.c has made the text. CE_PANIC ends nothing: the program is not ours to end.
pub extern "C" fn tell(level: c_int, text: Text) {
    let level = match level {
        0 | 1 => Level::Info,
        2 => Level::Warn,
        _ => Level::Error,
    };
    let text = String::from_utf8_lossy(text.bytes());
    // Where it is to go is the first byte's to say: !, ^ and ? mean places that a process does not have.
    let text = text.trim_start_matches(['!', '^', '?']).trim_end();
    log::write(level, format_args!("{text}"));
}
