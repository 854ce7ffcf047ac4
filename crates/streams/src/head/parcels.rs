//! What travels beside a pipe's ring: passed descriptors (I_SENDFD, I_RECVFD) and long data parts.
//!
//! It goes through the shadow, as descriptors of a control message; a frame in the ring stands for it and names it by a
//! sequence number. The descriptors go first, so whoever takes the frame, under the reader lock, finds them. Frames of bands
//! are taken out of order, so what comes before the wanted one is kept here.
//!
//! # Contract
//! Bodies are mapped only when sealed against every change, and for as long as their [`Body`] lives.

use core::ffi::c_int;

use headwater_channel::ring::Meta;
use headwater_host::guarded::Private;
use headwater_host::sync::{AtomicU32, Ordering};
use headwater_host::sys::{self, Errno};

use super::Head;
use crate::attach::rights::{self, Received};
use crate::ddi::M_PASSFP;
use crate::pipe::Pipe;

const MAGIC: u64 = 0x4857_5053;

/// What a message on the shadow carries, in its first word; then come the sequence number and two words of its own.
pub mod cargo {
    /// A descriptor that is no stream's.
    pub const PLAIN: u64 = 1;
    /// An end of a pipe: {side | fifo << 1 | CONNECTION | NONBLOCK}; shadow, memfd, bells, of a FIFO with a name the gate for the second.
    pub const END: u64 = 2;
    /// A driver's stream, which is one process's own: {its owner, the handle's parts}.
    pub const LOCAL: u64 = 3;
    /// The data part of a message: {length}; a sealed memfd.
    pub const BODY: u64 = 4;
    /// The frame could not be published after all.
    pub const WITHDRAWN: u64 = 5;
    /// Somebody waits in open(2) until this end is received.
    pub const CONNECTION: u64 = 4;
    /// An open of a FIFO that has O_NONBLOCK.
    pub const NONBLOCK: u64 = 8;
}

const SEALS: c_int =
    libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_WRITE | libc::F_SEAL_SEAL;
/// No message is longer: memory for what a peer announces is bounded.
const LONGEST: usize = 64 << 20;
/// What is kept for one end at most: a peer that sends and never publishes gains nothing.
const MOST_KEPT: usize = 256;

struct Parcel {
    /// Its pipe, and the side.
    end: (u64, u32),
    received: Received,
}

static KEPT: Private<Vec<Parcel>> = Private::new(Vec::new());
static SENT: AtomicU32 = AtomicU32::new(0);

/// Sends descriptors, and the frame that stands for them. Errors: EAGAIN (full), ENXIO (hung up), and those of sendmsg(2).
pub fn send(head: &Head, what: [u64; 3], fds: &[c_int]) -> Result<(), Errno> {
    if !head.has_room(8) {
        return Err(libc::EAGAIN);
    }
    let sequence = next_sequence();
    transmit(head, what, sequence, fds)?;
    let meta = Meta {
        kind: M_PASSFP,
        ..Meta::default()
    };
    match head.push_frame(&[], &sequence.to_ne_bytes(), meta) {
        Ok(true) => {
            head.tell_local_peer();
            Ok(())
        }
        refused => {
            let _ = transmit(head, [cargo::WITHDRAWN, 0, 0], sequence, &[]);
            refused.and(Err(libc::EAGAIN))
        }
    }
}

/// Unique among the processes that hold an end.
fn next_sequence() -> u64 {
    let count = SENT.fetch_add(1, Ordering::Relaxed);
    (sys::getpid() as u64) << 32 | count as u64
}

fn transmit(head: &Head, what: [u64; 3], sequence: u64, fds: &[c_int]) -> Result<(), Errno> {
    let body = rights::body([MAGIC << 32 | what[0], sequence, what[1], what[2]]);
    let shadow = head.fd.load(Ordering::Relaxed);
    rights::send(shadow, &body, fds, true).map_err(|e| match e {
        libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::ETOOMANYREFS => libc::EAGAIN,
        libc::EPIPE | libc::ECONNRESET | libc::ENOTCONN => libc::ENXIO,
        e => e,
    })
}

/// Something has run out here.
pub fn is_lack(errno: &Errno) -> bool {
    matches!(*errno, libc::EMFILE | libc::ENFILE | libc::ENOMEM)
}

pub fn is_end_of_pipe(head: &Head) -> bool {
    head.pipe().is_some_and(|pipe| !pipe.fifo)
}

/// What becomes of a parcel of which nothing can be made for want of something.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum OnLack {
    Stays,
    Goes,
}

/// Makes something of what the frame with this number stands for, kept before or now in the shadow. Inside the section or perimeter in
/// which the frame is taken. EPROTO if it never came.
pub fn fetch<T>(
    head: &Head,
    sequence: u64,
    on_lack: OnLack,
    made: impl FnOnce(Received) -> Result<T, Errno>,
) -> Result<T, Errno> {
    let end = (head.pipe().ok_or(libc::EINVAL)?.inode, head.side());
    let stays =
        |made: &Result<T, Errno>| on_lack == OnLack::Stays && made.as_ref().is_err_and(is_lack);
    if let Some(parcel) = KEPT.with(|kept| take_kept(kept, end, Some(sequence))) {
        if on_lack == OnLack::Goes {
            return made(parcel.received);
        }
        let made = parcel.received.copy().and_then(made);
        if stays(&made) {
            KEPT.with(|kept| kept.push(parcel));
        }
        return made;
    }
    let shadow = head.fd.load(Ordering::Relaxed);
    loop {
        let mut received = match rights::peek(shadow) {
            Ok(Some(received)) => received,
            // What the other end left unread when it went, which the kernel tells once: what it sent is still there.
            Err(libc::ECONNRESET) => continue,
            Ok(None) | Err(_) => return Err(libc::EPROTO),
        };
        let is_ours = received.body[0] >> 32 == MAGIC;
        let withdrawn = received.body[0] & 0xffff_ffff == cargo::WITHDRAWN;
        let number = received.body[1];
        if is_ours && !withdrawn && number == sequence {
            let made = made(received);
            if !stays(&made) {
                let _ = rights::discard(shadow);
            }
            return made;
        }
        if is_ours {
            // It is kept whole, or left where it is.
            if received.cut {
                return Err(libc::EMFILE);
            }
            received.hide()?;
        }
        let _ = rights::discard(shadow);
        if !is_ours {
            continue;
        }
        let dropped = KEPT.with(|kept| {
            if withdrawn {
                return take_kept(kept, end, Some(number));
            }
            let crowded = kept.iter().filter(|p| p.end == end).count() >= MOST_KEPT;
            let dropped = crowded.then(|| take_kept(kept, end, None)).flatten();
            kept.push(Parcel { end, received });
            dropped
        });
        drop(dropped);
    }
}

/// This process has left the end of a pipe: what was kept for it goes too.
pub fn left(pipe: &Pipe, side: u32) {
    let end = (pipe.inode, side);
    while let Some(parcel) = KEPT.with(|kept| take_kept(kept, end, None)) {
        drop(parcel);
    }
}

/// The first of an end, or the one with this number.
fn take_kept(kept: &mut Vec<Parcel>, end: (u64, u32), number: Option<u64>) -> Option<Parcel> {
    let wanted = |p: &Parcel| number.is_none_or(|number| p.received.body[1] == number);
    kept.extract_if(.., |p| p.end == end && wanted(p)).next()
}

/// The data part of a message, in memory of its own.
pub struct Body {
    at: *mut u8,
    len: usize,
}

impl Body {
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: mapped for its length while self lives, and sealed against changes.
        unsafe { core::slice::from_raw_parts(self.at, self.len) }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        // SAFETY: the owner of the value is the last user of the mapping.
        let _ = unsafe { sys::munmap(self.at, self.len) };
    }
}

/// Sends a data part too long for the ring; the frame that stands for it is to hold the ticket. `None`: no room now.
/// Errors: ERANGE on a FIFO, ENXIO, EMFILE, ENFILE, ENOMEM. Under the writer lock.
pub fn send_body(head: &Head, data: &[u8]) -> Result<Option<[u8; 16]>, Errno> {
    if !is_end_of_pipe(head) || data.len() > LONGEST {
        return Err(libc::ERANGE);
    }
    let memfd = sealed(data)?;
    let sequence = next_sequence();
    let what = [cargo::BODY, data.len() as u64, 0];
    let sent = transmit(head, what, sequence, &[memfd]);
    let _ = sys::close(memfd);
    match sent {
        Ok(()) => {
            let mut ticket = [0; 16];
            ticket[..8].copy_from_slice(&sequence.to_ne_bytes());
            ticket[8..].copy_from_slice(&(data.len() as u64).to_ne_bytes());
            Ok(Some(ticket))
        }
        Err(libc::EAGAIN) => Ok(None),
        Err(e) => Err(e),
    }
}

/// The data part for which a frame's ticket stands; it is gone then, also when this fails. EPROTO: not as it should be; EMFILE, ENOMEM.
/// Under the reader lock.
pub fn fetch_body(head: &Head, ticket: [u8; 16]) -> Result<Body, Errno> {
    let word = |at: usize| u64::from_ne_bytes(core::array::from_fn(|i| ticket[at + i]));
    let (sequence, len) = (word(0), word(8) as usize);
    fetch(head, sequence, OnLack::Goes, |mut parcel| {
        if parcel.body[0] & 0xffff_ffff != cargo::BODY || !parcel.has(1) {
            return Err(libc::EPROTO);
        }
        let memfd = parcel.take(0);
        let body = map(memfd, len);
        let _ = sys::close(memfd);
        body
    })
}

fn sealed(data: &[u8]) -> Result<c_int, Errno> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    let memfd = sys::memfd_create(c"headwater-message", flags)?;
    let filled = || {
        sys::ftruncate(memfd, data.len() as u64)?;
        let mut rest = data;
        while !rest.is_empty() {
            let n = sys::write_bytes(memfd, rest)?;
            rest = &rest[n..];
        }
        sys::fcntl(memfd, libc::F_ADD_SEALS, SEALS as usize).map(drop)
    };
    filled().map(|()| memfd).inspect_err(|_| {
        let _ = sys::close(memfd);
    })
}

fn map(memfd: c_int, len: usize) -> Result<Body, Errno> {
    let needed = SEALS & !libc::F_SEAL_SEAL;
    let seals = sys::fcntl(memfd, libc::F_GET_SEALS, 0).map_err(|_| libc::EPROTO)?;
    let size = sys::fstat(memfd)?.st_size as u64;
    if len == 0 || len > LONGEST || size != len as u64 || seals & needed != needed {
        return Err(libc::EPROTO);
    }
    let at = sys::map(len, libc::PROT_READ, libc::MAP_PRIVATE, memfd)?;
    Ok(Body { at, len })
}
