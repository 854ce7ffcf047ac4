//! Answers to ioctls, I_STR and transparent ones alike: M_IOCTL with the argument, or with its address, which M_COPYIN
//! fetches and M_COPYOUT fills.
//!
//! Where a transparent request stands is kept in cq_private, an integer here: 0 when only the answer is left, a small one of
//! the driver's own, or the argument's address while it is fetched.

use core::ffi::{c_char, c_int};
use core::ptr::{null_mut, without_provenance_mut};

use crate::ddi::owned::Message;
use crate::ddi::*;
use crate::exec::Queue;
use crate::exec::queue::Flush;

/// What became of a request for a structure.
pub enum Argument<T> {
    /// Here it is, with the request that is to be answered.
    Is(T, Message),
    /// Under way, or over: there is nothing left to do.
    Nothing,
}

/// ioc_cmd or cp_cmd of M_IOCTL, M_IOCDATA.
pub fn command(m: &Message) -> Option<c_int> {
    m.read::<i32>()
}

/// ioctl(2) itself, rather than I_STR, whose data stand behind?
pub fn is_transparent(m: &Message) -> bool {
    m.read()
        .is_some_and(|ioc: iocblk| ioc.ioc_count == TRANSPARENT)
}

/// The argument of a request; EINVAL for one that is too short. Also to be given the M_IOCDATA that follow.
pub fn argument<T: Plain>(q: Queue, m: Message) -> Argument<T> {
    if m.kind() == M_IOCTL {
        if !is_transparent(&m) {
            return first(q, m);
        }
        let at = address(&m);
        copy_in(q, m, at, size_of::<T>(), at);
        return Argument::Nothing;
    }
    match step(&m) {
        // Where the copy failed the head has told its caller.
        None => {}
        Some(0) => done(q, m, 0),
        Some(_) => return first(q, m),
    }
    Argument::Nothing
}

/// The structure that the data begins with.
fn first<T: Plain>(q: Queue, m: Message) -> Argument<T> {
    let data = Message::data(&m.to_data());
    match data.read::<T>() {
        Some(value) => Argument::Is(value, m),
        None => {
            refuse(q, m, libc::EINVAL);
            Argument::Nothing
        }
    }
}

/// Which step of the driver's own an M_IOCDATA belongs to, or the address that [`argument`] noted; `None` when the copy
/// failed, or for another message.
pub fn step(m: &Message) -> Option<usize> {
    let response: copyresp = m.read().filter(|_| m.kind() == M_IOCDATA)?;
    let copied = response.cp_rval.is_null();
    copied.then(|| response.cp_private.addr())
}

/// The address in a transparent M_IOCTL.
fn address(m: &Message) -> usize {
    let data = Message::data(&m.to_data());
    data.read::<usize>().unwrap_or(0)
}

/// Asks the head for `size` bytes at `at`; they come as M_IOCDATA with `step`, which is not 0.
pub fn copy_in(q: Queue, m: Message, at: usize, size: usize, step: usize) {
    if at == 0 {
        return refuse(q, m, libc::EFAULT);
    }
    copy(q, m, M_COPYIN, at, size, step);
}

fn copy(q: Queue, mut m: Message, kind: u8, at: usize, size: usize, step: usize) {
    let rest = m.take_rest();
    // iocblk, copyreq and copyresp begin alike: command, credentials, number.
    let Some(ioc) = m.read::<iocblk>() else {
        return;
    };
    let request = copyreq {
        cq_cmd: ioc.ioc_cmd,
        cq_cr: ioc.ioc_cr,
        cq_id: ioc.ioc_id,
        cq_addr: without_provenance_mut::<c_char>(at),
        cq_size: size as _,
        cq_flag: 0,
        cq_private: without_provenance_mut(step),
        cq_filler: [0; 4],
    };
    let mut m = with(m, kind, request);
    if kind == M_COPYOUT
        && let Some(rest) = rest
    {
        m.append(rest);
    }
    q.qreply(m);
}

/// Answers with a structure: in M_IOCACK, or by M_COPYOUT to where the argument is.
pub fn give<T: Plain>(q: Queue, mut m: Message, value: T) {
    let to = match m.kind() {
        M_IOCTL if is_transparent(&m) => address(&m),
        M_IOCTL => {
            m.take_rest();
            m.append(Message::from_struct(M_DATA, value));
            return acknowledge(q, m, 0, size_of::<T>());
        }
        _ => match step(&m) {
            None => return,
            Some(0) => return done(q, m, 0),
            Some(at) => at,
        },
    };
    if to == 0 {
        return refuse(q, m, libc::EFAULT);
    }
    m.take_rest();
    m.append(Message::from_struct(M_DATA, value));
    copy(q, m, M_COPYOUT, to, size_of::<T>(), 0);
}

/// Answers an I_STR with a value for the caller of ioctl(2), and bytes for its buffer.
pub fn give_bytes(q: Queue, mut m: Message, value: c_int, bytes: &[u8]) {
    m.take_rest();
    if !bytes.is_empty() {
        m.append(Message::data(bytes));
    }
    acknowledge(q, m, value, bytes.len());
}

/// Has the head write `bytes` to `at`, for a transparent request; M_IOCDATA follows with `step`.
pub fn copy_out(q: Queue, mut m: Message, at: usize, bytes: &[u8], step: usize) {
    m.take_rest();
    m.append(Message::data(bytes));
    copy(q, m, M_COPYOUT, at, bytes.len(), step);
}

/// Answers with a value for the caller of ioctl(2), and no data.
pub fn done(q: Queue, mut m: Message, value: c_int) {
    m.take_rest();
    acknowledge(q, m, value, 0);
}

/// Answers that it is done, or with an errno.
pub fn result(q: Queue, m: Message, result: Result<(), c_int>) {
    match result {
        Ok(()) => done(q, m, 0),
        Err(errno) => refuse(q, m, errno),
    }
}

/// Answers with an errno.
pub fn refuse(q: Queue, mut m: Message, errno: c_int) {
    m.take_rest();
    answer(q, m, M_IOCNAK, 0, 0, errno);
}

fn acknowledge(q: Queue, m: Message, value: c_int, count: usize) {
    answer(q, m, M_IOCACK, value, count, 0);
}

fn answer(q: Queue, m: Message, kind: u8, value: c_int, count: usize, errno: c_int) {
    let Some(ioc) = m.read::<iocblk>() else {
        return;
    };
    let ioc = iocblk {
        ioc_cr: null_mut(),
        ioc_count: count as _,
        ioc_error: errno,
        ioc_rval: value,
        ..ioc
    };
    q.qreply(with(m, kind, ioc));
}

/// The message with another structure in its first block, which is replaced if it is too small or shared.
fn with<T: Plain>(mut m: Message, kind: u8, value: T) -> Message {
    if m.write(value) {
        m.set_kind(kind);
        return m;
    }
    let mut fresh = Message::new(kind, IOCTYPES.max(size_of::<T>()));
    fresh.write(value);
    if let Some(rest) = m.take_rest() {
        fresh.append(rest);
    }
    fresh
}

/// M_FLUSH at the end of a stream: both queues as it says, and what concerns the read side goes back up.
pub fn flush_at_end(q: Queue, mut m: Message) {
    q.write().flush_as(&m, Flush::Data);
    let sides = m.bytes().first().copied().unwrap_or(0);
    if sides & FLUSHR == 0 {
        return;
    }
    q.read().flush_as(&m, Flush::Data);
    if let Some([sides, ..]) = m.bytes_mut() {
        *sides &= !FLUSHW;
        q.write().qreply(m);
    }
}

/// Is `m` held back by what waits on `q`? High priority and higher bands overtake.
pub fn must_queue(q: Queue, m: &Message) -> bool {
    match q.first() {
        None => false,
        Some((kind, band)) => !m.is_priority() && (kind >= QPCTL || m.band() <= band),
    }
}
