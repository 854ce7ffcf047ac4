//! splice(2) and sendfile(2) out of a connection into a pipe: what the ring holds comes first, and is copied; what the kernel
//! holds goes as by the kernel's own splice.

use core::ffi::c_uint;
use core::time::Duration;

use headwater_channel::ring::{Corrupt, Ring};
use headwater_host::sync::Ordering;
use headwater_host::{next, process, signal, sleeps, sys};
use libc::{EAGAIN, EBADF, ECONNRESET, EINTR, EPIPE};

use crate::conn::Conn;
use crate::pins::{Entered, Pin};
use crate::record::NONBLOCK;
use crate::recv::{self, Moved, Sink, Step, partial};
use crate::{guard, look};

/// What an empty pipe takes.
const ROOM: usize = 64 << 10;

/// The program's pipe.
struct Pipe {
    fd: i32,
    flags: c_uint,
    left: usize,
    done: usize,
    full: bool,
    error: i32,
    /// A pipe of our own, through which copied bytes go: into the program's they must not be written, for that may block.
    own: Option<[i32; 2]>,
}

impl Pipe {
    /// Moves copied bytes on; how many the program's pipe took.
    fn put(&mut self, from: *const u8, n: usize) -> Result<usize, i32> {
        let own = match self.own {
            Some(own) => own,
            None => match sys::pipe(libc::O_CLOEXEC | libc::O_NONBLOCK) {
                Ok(own) => *self.own.insert(own),
                Err(_) => return self.put_little(from, n),
            },
        };
        // SAFETY: the frame is readable for n bytes.
        let n = unsafe { sys::write(own[1], from, n) }?;
        let moved = sys::splice(own[0], self.fd, n, self.flags | libc::SPLICE_F_NONBLOCK);
        if moved != Ok(n) {
            self.give_up_own();
        }
        if moved == Err(libc::ENOMEM) {
            return self.put_little(from, n);
        }
        moved
    }

    /// There is no pipe to be had, or nothing to move by it: a write of what a pipe that says that it has room takes at once.
    fn put_little(&mut self, from: *const u8, n: usize) -> Result<usize, i32> {
        if !is(self.fd, libc::POLLOUT) {
            return Err(EAGAIN);
        }
        // SAFETY: the frame is readable for n bytes.
        unsafe { sys::write(self.fd, from, n.min(libc::PIPE_BUF)) }
    }

    /// What is left in our own pipe is still in the ring.
    fn give_up_own(&mut self) {
        for fd in self.own.take().into_iter().flatten() {
            let _ = sys::close(fd);
        }
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.give_up_own();
    }
}

impl Sink for Pipe {
    fn left(&self) -> usize {
        self.left
    }

    fn take_ring(&mut self, ring: &Ring<'_>, _: i32, end: Option<u64>) -> Result<usize, Corrupt> {
        let before = self.done;
        while self.left > 0 && end.is_none_or(|end| ring.head() < end) {
            let Some(frame) = ring.peek()? else { break };
            let n = frame.len.min(self.left).min(ROOM);
            let moved = match self.put(frame.ptr, n) {
                Ok(moved) => moved,
                Err(e) => {
                    self.error = if e == EAGAIN { 0 } else { e };
                    0
                }
            };
            if n == 0 || moved > 0 {
                ring.consume(&frame, moved);
            }
            self.left -= moved;
            self.done += moved;
            if moved < n {
                self.full = true;
                break;
            }
        }
        Ok(self.done - before)
    }

    fn take_kernel(&mut self, fd: i32, _: i32, limit: usize) -> Result<usize, i32> {
        // The call waits for a socket's first byte, whatever its flags say, but for no more, whatever SO_RCVLOWAT says.
        if !is(fd, libc::POLLIN | libc::POLLRDHUP) && !look::has_bytes(fd) {
            return Err(EAGAIN);
        }
        let n = self.left.min(limit);
        let moved = sys::splice(fd, self.fd, n, self.flags | libc::SPLICE_F_NONBLOCK);
        if moved == Err(EAGAIN) {
            self.full = !is(self.fd, libc::POLLOUT);
        }
        let moved = moved?;
        self.left -= moved;
        self.done += moved;
        Ok(moved)
    }

    fn is_full(&self) -> bool {
        self.full
    }
}

/// Moves up to `n` bytes of a carried connection, which has the number `from`, into the pipe `to`. `None`: make the C library's own call instead.
///
/// # Safety
/// As for [`recv::recv`].
pub unsafe fn splice(
    c: &'static Conn,
    from: i32,
    to: i32,
    n: usize,
    flags: c_uint,
) -> Option<Moved> {
    recv::as_often_as_begun(c, from, |looks, pinned| {
        once(c, to, n, flags, looks, pinned)
    })
}

fn once(
    c: &'static Conn,
    to: i32,
    n: usize,
    flags: c_uint,
    looks: &Entered,
    pinned: &mut Option<Pin>,
) -> Option<Moved> {
    let v = c.view(looks)?;
    v.publish_cpu();
    signal::begin_wait();
    // Where nobody tells, the call itself says what can't be: by the kernel alone it would skip what the ring holds.
    let mode = sys::fcntl(to, libc::F_GETFL, 0).unwrap_or(libc::O_WRONLY);
    if mode & libc::O_ACCMODE == libc::O_RDONLY {
        // The kernel says so.
        return None;
    }
    let waits = mode & libc::O_NONBLOCK == 0;
    let flags = flags | if waits { 0 } else { libc::SPLICE_F_NONBLOCK };
    let mut pipe = Pipe {
        fd: to,
        flags,
        left: n,
        done: 0,
        full: false,
        error: 0,
        own: None,
    };
    let at_once = c.record().has(NONBLOCK);
    // Of the first wait for the connection.
    let mut end = None;
    let result = loop {
        // The pipe comes first, as in the kernel: where nobody reads it, or it has no room, it does not matter what has come.
        let room = look::poll(to, libc::POLLOUT);
        if room & libc::POLLERR != 0 {
            if pipe.done == 0 {
                sys::raise(libc::SIGPIPE);
            }
            break Err(EPIPE);
        }
        pipe.full = room == 0;
        let step = match pipe.full {
            true if process::is_confined() => Step::Kernel,
            true => Step::Again,
            false => {
                guard(c, || recv::step(c, &v, &mut pipe, 0)).unwrap_or(Step::Error(ECONNRESET))
            }
        };
        if pipe.error != 0 {
            break Err(pipe.error);
        }
        // What has waited goes on with that connection as it began. A call of the program's own would take what has the number by now, and
        // wait as long as O_NONBLOCK and the time limit say.
        let goes_on = pinned.is_some() && !process::is_confined();
        let step = match step {
            Step::Kernel if pipe.done == 0 && goes_on => by_shadow(c, &mut pipe),
            step => step,
        };
        match step {
            Step::Data(_) if pipe.left > 0 && !pipe.full => continue,
            Step::Data(_) | Step::Eof => break Ok(()),
            Step::Kernel if pipe.done > 0 => break Ok(()),
            Step::Kernel => return None,
            Step::Error(e) => {
                if pipe.done > 0 {
                    c.record().error.store(e, Ordering::Relaxed);
                }
                break Err(e);
            }
            Step::Again if pipe.done > 0 => break Ok(()),
            Step::Again => {}
        }
        let waited = if pipe.full {
            if flags & libc::SPLICE_F_NONBLOCK != 0 {
                break Err(EAGAIN);
            }
            if !recv::hold(c, &v, looks, pinned) {
                break Err(EBADF);
            }
            let waited = sleeps::begin().then(|| await_room(to));
            sleeps::end();
            waited.unwrap_or(Ok(()))
        } else if at_once || c.found_nonblocking() {
            break Err(EAGAIN);
        } else if recv::is_at_mark(c, &v) {
            // An urgent byte that no receive has gone over ends what the kernel waits for.
            break Ok(());
        } else if !recv::hold(c, &v, looks, pinned) {
            break Err(EBADF);
        } else {
            let limit = || recv::deadline(c.record().receive_timeout.load(Ordering::Relaxed));
            let events = libc::POLLIN | libc::POLLRDHUP | libc::POLLPRI;
            recv::wait_for(c, &v, events, *end.get_or_insert_with(limit))
        };
        if let Err(e) = waited {
            break Err(e);
        }
    };
    Some(
        result
            .map(|()| pipe.done)
            .or_else(|e| partial(pipe.done, e)),
    )
}

/// What the kernel has right now.
fn by_shadow(c: &Conn, pipe: &mut Pipe) -> Step {
    let Some(shadow) = c.shadow() else {
        return Step::Error(EBADF);
    };
    match pipe.take_kernel(shadow.fd(), 0, usize::MAX) {
        Ok(0) => Step::Eof,
        Ok(n) => Step::Data(n),
        Err(EAGAIN) => Step::Again,
        Err(e) => Step::Error(e),
    }
}

/// How long a wait lasts in which a signal may be missed, in nanoseconds.
const AWAKE: u64 = Duration::from_millis(100).as_nanos() as u64;

fn await_room(pipe: i32) -> Result<(), i32> {
    let mut p = sys::entry(pipe, libc::POLLOUT);
    // A handler may run right before, and the process may confine itself.
    let slice = sys::timespec(AWAKE);
    // SAFETY: a time.
    let polled = unsafe { next::ppoll_aside(core::slice::from_mut(&mut p), &slice) };
    if signal::interrupted() {
        return Err(EINTR);
    }
    match polled {
        Err(errno) if errno != EINTR => Err(errno),
        _ => Ok(()),
    }
}

fn is(fd: i32, events: i16) -> bool {
    look::poll(fd, events) != 0
}
