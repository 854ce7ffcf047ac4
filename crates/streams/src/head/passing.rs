//! Descriptors that are passed through a pipe (I_SENDFD, I_RECVFD): what is made of them, and of the parcels that bring them.

use core::ffi::{c_char, c_int};

use headwater_channel::bell;
use headwater_channel::pass::Passed;
use headwater_host::reclaim::enter;
use headwater_host::sync::Ordering;
use headwater_host::sys::Errno;
use headwater_host::table::{self, Handle, Kind};
use headwater_host::{process, signal, sys};

use super::inlet::Trouble;
use super::opening::Opened;
use super::parcels::{OnLack, cargo, fetch, is_end_of_pipe, is_lack, send};
use super::{Head, life, opening};
use crate::attach::rights::Received;
use crate::ddi::M_PASSFP;
use crate::pipe::Pipe;

/// struct strrecvfd
#[repr(C)]
pub struct StrRecvFd {
    pub fd: c_int,
    pub uid: libc::uid_t,
    pub gid: libc::gid_t,
    pub fill: [c_char; 8],
}

/// I_SENDFD. The message goes straight to the head at the other end, past modules.
/// Errors: EAGAIN (full), EBADF, EINVAL (not an end of a pipe), ENXIO (hung up).
pub fn send_fd(head: &Head, fd: c_int) -> Result<c_int, Errno> {
    if !is_end_of_pipe(head) {
        return Err(libc::EINVAL);
    }
    head.check_connected()?;
    sys::fcntl(fd, libc::F_GETFD, 0).map_err(|_| libc::EBADF)?;
    let sent = match table::lookup(fd) {
        Some(h) if h.kind() == Kind::Hidden => Err(libc::EBADF),
        Some(h) if h.kind() == Kind::Stream => {
            let looks = enter();
            let passed = super::get(h, &looks).ok_or(libc::EBADF)?;
            match passed.pipe() {
                Some(pipe) => {
                    pipe.words(passed.side()).shared.store(1, Ordering::SeqCst);
                    send_end(head, pipe, passed.side(), fd, false)
                }
                None => send_local(head, passed, fd),
            }
        }
        _ => send(head, [cargo::PLAIN, 0, 0], &[fd]),
    };
    sent.map(|()| 0)
}

/// Sends an end of a pipe; `connection`: somebody waits for it to be received.
pub fn send_end(
    head: &Head,
    pipe: &Pipe,
    side: u32,
    shadow: c_int,
    connection: bool,
) -> Result<(), Errno> {
    let mark = if connection { cargo::CONNECTION } else { 0 };
    let which = side as u64 | (pipe.fifo as u64) << 1 | mark;
    let [first, second] = pipe.both_bells()?;
    let passed = table::stream(shadow);
    let gate = passed.and_then(opening::gate).or(pipe.gate());
    let which = match passed.and_then(opening::nonblocking) {
        Some(true) => which | cargo::NONBLOCK,
        _ => which,
    };
    let fds = [shadow, pipe.memfd, first, gate.unwrap_or(second)];
    send(head, [cargo::END, which, 0], &fds)
}

/// The stream stays open while it is under way, as a file does that the kernel carries.
fn send_local(head: &Head, passed: &'static Head, fd: c_int) -> Result<(), Errno> {
    let h = passed.handle();
    let name = (h.generation() as u64) << 32 | h.index() as u64;
    if !life::hold(passed) {
        return Err(libc::EBADF);
    }
    send(head, [cargo::LOCAL, process::owner().bits(), name], &[fd])
        .inspect_err(|_| life::let_go(passed))
}

/// I_RECVFD. Blocks while there is no message, unless O_NONBLOCK.
/// Errors: EAGAIN, EBADMSG (the first message carries no descriptor), EINTR, EINVAL (not an end of a pipe, or a driver's
/// stream of another process was passed), ENXIO (hung up), EPROTO; EMFILE, ENFILE, ENOMEM: the message stays.
///
/// # Safety
/// `to` is writable.
pub unsafe fn receive_fd(head: &'static Head, to: *mut StrRecvFd) -> Result<c_int, Errno> {
    if !is_end_of_pipe(head) {
        return Err(libc::EINVAL);
    }
    signal::begin_wait();
    let found = head.receive(None, |inlet| {
        let Some(front) = inlet.front()? else {
            return Ok(None);
        };
        if front.kind != M_PASSFP {
            return Err(Trouble::Fails(libc::EBADMSG));
        }
        let mut sequence = [0; 8];
        inlet.copy(0, &mut sequence);
        let sequence = u64::from_ne_bytes(sequence);
        let found = fetch(head, sequence, OnLack::Stays, Came::of);
        if let Err(errno) = &found
            && is_lack(errno)
        {
            return Err(Trouble::Fails(*errno));
        }
        inlet.take(front.control, front.data)?;
        Ok(Some(Some(found)))
    })?;
    let came = found.ok_or(libc::ENXIO)??;
    let sender = came.sender;
    let fd = came.deliver()?;
    let received = StrRecvFd {
        fd,
        uid: sender.map_or(u32::MAX, |s| s.uid),
        gid: sender.map_or(u32::MAX, |s| s.gid),
        fill: [0; 8],
    };
    // SAFETY: the caller says that it may be written to.
    unsafe { *to = received };
    Ok(0)
}

/// What was passed, with all that it takes to be a descriptor of this process.
struct Came {
    sender: Option<libc::ucred>,
    what: Passing,
}

enum Passing {
    Plain(Passed),
    /// Somebody waits for it.
    End(End, bool),
    Local(Passed, Handle),
}

impl Came {
    /// Errors: as those of [`receive_fd`]. Inside a section.
    fn of(mut parcel: Received) -> Result<Came, Errno> {
        let [what, _, first, second, ..] = parcel.body;
        let sender = parcel.sender;
        let what = match what & 0xffff_ffff {
            cargo::PLAIN if parcel.has(1) => Passing::Plain(parcel.take_visible(false)?),
            cargo::END if parcel.has(4) => {
                let end = End::of(&mut parcel, first as u32 & 1, first & 2 != 0, false)?;
                Passing::End(end, first & cargo::CONNECTION != 0)
            }
            cargo::LOCAL if parcel.has(1) => {
                if first != process::owner().bits() {
                    return Err(libc::EINVAL);
                }
                let h = Handle::new(Kind::Stream, (second >> 32) as u32, second as u32);
                Passing::Local(parcel.take_visible(false)?, h)
            }
            _ if parcel.cut => return Err(libc::EMFILE),
            _ => return Err(libc::EPROTO),
        };
        Ok(Came { sender, what })
    }

    /// Makes it a descriptor of this process.
    fn deliver(self) -> Result<c_int, Errno> {
        match self.what {
            Passing::Plain(fd) => Ok(fd.into_number()),
            Passing::End(end, connection) => {
                let Opened { head, fd, .. } = end.adopt()?;
                if connection {
                    accept(head);
                }
                Ok(fd)
            }
            Passing::Local(fd, h) => {
                let looks = enter();
                let head = super::get(h, &looks).ok_or(libc::EPROTO)?;
                let fd = fd.into_number();
                life::duplicated(h, fd);
                life::let_go(head);
                Ok(fd)
            }
        }
    }
}

/// An end of a pipe that has come, mapped: it needs a head.
struct End {
    shadow: Passed,
    pipe: life::Borrowed,
    side: u32,
    /// Of a FIFO, its bell or its gate; and whether this open has O_NONBLOCK.
    gate: Option<(Passed, bool)>,
}

impl End {
    /// Of received parts: shadow, memfd, bells or a bell and the gate. EMFILE, ENFILE, ENOMEM, EPROTO.
    fn of(parts: &mut Received, side: u32, fifo: bool, cloexec: bool) -> Result<End, Errno> {
        let nonblocking = parts.body[2] & cargo::NONBLOCK != 0;
        let shadow = parts.take_visible(cloexec)?;
        let [memfd, first, second] = [1, 2, 3].map(|i| parts.take(i));
        let gate = fifo.then(|| (Passed::of(second), nonblocking));
        let inode = sys::fstat(memfd).map_or(0, |st| st.st_ino);
        // Held until it has its head, also while the last one that it has is closed.
        let pipe = match life::borrow_pipe(inode) {
            Some(known) => {
                if !fifo {
                    let _ = sys::close(second);
                }
                let _ = sys::close(memfd);
                let _ = sys::close(first);
                known
            }
            None => Pipe::open(fifo, memfd, [first, second]).map(life::Borrowed::fresh)?,
        };
        Ok(End {
            shadow,
            pipe,
            side,
            gate,
        })
    }

    /// Makes it an end of this process. ENOSR.
    fn adopt(self) -> Result<Opened, Errno> {
        let pipe = self.pipe.pipe();
        let side = if pipe.fifo { 0 } else { self.side };
        let adopted = life::adopt(pipe, side, self.shadow.number());
        if let Some((gate, nonblocking)) = self.gate {
            opening::resume(self.shadow.number(), gate.into_number(), nonblocking);
        }
        let opened = adopted?;
        self.shadow.into_number();
        Ok(opened)
    }
}

/// Makes received parts an end of this process: as [`End`] has them. EMFILE, ENFILE, ENOMEM, ENOSR, EPROTO.
pub fn take_end(
    parts: &mut Received,
    side: u32,
    fifo: bool,
    cloexec: bool,
) -> Result<Opened, Errno> {
    End::of(parts, side, fifo, cloexec)?.adopt()
}

/// Tells who waits at the other end of a new connection that this one has been received.
fn accept(head: &Head) {
    if let Some(waiting) = head.peer_words() {
        waiting.accepted.store(1, Ordering::SeqCst);
        bell::ring(head.peer_bell());
    }
}
