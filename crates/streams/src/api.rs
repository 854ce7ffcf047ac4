//! Streams for programs in Rust.
//!
//! A [`Stream`] is a descriptor of this process: reading and writing move bytes, [`put_message`](Stream::put_message) and
//! [`get_message`](Stream::get_message) move messages with a control part, a data part and a priority, and modules can be
//! pushed on it. Modules and drivers of the program's own are registered with
//! [`register_module`](crate::exec::registry::register_module) and its neighbours.
//!
//! The C library's own `read`, `poll` and `close` know nothing of streams unless libheadwater stands in front of them; a
//! program in Rust uses the methods here, and [`poll`]. Nor are its signal handlers put off while a call is inside a locked
//! section, as the library does: a handler must not use streams, and does not end a wait.

mod error;

use std::ffi::{CString, c_int};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Once;
use std::time::{Duration, Instant};

use headwater_host::table::{self, Handle};
use headwater_host::{poll as polling, reclaim, sys};

pub use crate::head::message::{Choice, Priority};
pub use error::Error;

use crate::ddi::M_IOCACK;
use crate::head::inlet::{Front, Inlet, Trouble};
use crate::head::opening::By;
use crate::head::{self, Head, life, linking, local, requests};

/// A message that was received, whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Received {
    /// `None`: it has no such part; an empty one is something else.
    pub control: Option<Vec<u8>>,
    pub data: Option<Vec<u8>>,
    pub priority: Priority,
}

/// An open stream. Dropped, it is closed: what was written may drain first, then modules are popped.
///
/// ```
/// use headwater_streams::{Choice, Priority, Stream};
///
/// let (here, there) = Stream::pipe()?;
/// here.put_message(None, Some(b"later"), Priority::Band(0))?;
/// here.put_message(Some(b"urgent"), None, Priority::High)?;
///
/// let first = there.get_message(Choice::Any)?;
/// assert_eq!(first.control.as_deref(), Some(&b"urgent"[..]));
/// let second = there.get_message(Choice::Any)?;
/// assert_eq!(second.data.as_deref(), Some(&b"later"[..]));
/// # Ok::<(), headwater_streams::Error>(())
/// ```
#[derive(Debug)]
pub struct Stream {
    fd: RawFd,
    handle: Handle,
}

impl Stream {
    /// Opens a device (`/dev/echo`, `/dev/mux` ...), a FIFO (`/dev/fifo.NAME`) or a file that a stream is attached to. The
    /// descriptor is closed by exec.
    /// Errors: NotAStream, and what the driver's open says.
    pub fn open(path: impl AsRef<Path>) -> Result<Stream, Error> {
        start();
        let path = CString::new(path.as_ref().as_os_str().as_bytes());
        let path = path.map_err(|_| Error::NotAStream)?;
        match crate::open::open(&path, libc::O_RDWR | libc::O_CLOEXEC) {
            None | Some(Err(libc::ENOENT)) => Err(Error::NotAStream),
            Some(Err(errno)) => Err(errno.into()),
            Some(Ok(fd)) => Ok(Stream::of(fd)),
        }
    }

    /// A new pipe: two ends that both send and receive.
    pub fn pipe() -> Result<(Stream, Stream), Error> {
        start();
        let [a, b] = life::pipe(libc::O_CLOEXEC)?;
        Ok((Stream::of(a), Stream::of(b)))
    }

    fn of(fd: RawFd) -> Stream {
        let handle = table::stream(fd).expect("just opened as a stream");
        Stream { fd, handle }
    }

    /// The head is ours as long as the descriptor: until the drop.
    fn head(&self) -> Result<&'static Head, Error> {
        head::get(self.handle, &reclaim::enter()).ok_or(Error::NotHere)
    }

    /// A call that may wait: whether it does is a matter of this open of the name.
    fn call<T>(&self, f: impl FnOnce(&'static Head) -> Result<T, c_int>) -> Result<T, Error> {
        let head = self.head()?;
        let _by = By::begin(self.handle, head);
        Ok(f(head)?)
    }

    /// Pushes a module: built in, or registered by this program. Errors: Unknown, HungUp, what the module's open says.
    ///
    /// ```
    /// # use headwater_streams::Stream;
    /// let (end, _other) = Stream::pipe()?;
    /// end.push("nullmod")?;
    /// end.push("bufmod")?;
    /// assert_eq!(end.modules()?, ["bufmod", "nullmod"]);
    /// end.pop()?;
    /// assert_eq!(end.modules()?, ["nullmod"]);
    /// # Ok::<(), headwater_streams::Error>(())
    /// ```
    pub fn push(&self, module: &str) -> Result<(), Error> {
        let head = self.alive()?;
        let pushed = local::push(head, module.as_bytes());
        pushed.map(drop).map_err(unknown)
    }

    /// Pops the topmost module. Errors: Unknown without one, HungUp.
    pub fn pop(&self) -> Result<(), Error> {
        local::pop(self.alive()?).map(drop).map_err(unknown)
    }

    /// The names of the pushed modules, the topmost first.
    pub fn modules(&self) -> Result<Vec<String>, Error> {
        Ok(local::modules(self.head()?))
    }

    /// Sends a message. Waits while its band is full, unless the stream does not block; high priority never waits, and
    /// needs a control part. Without any part nothing is sent.
    /// Errors: WouldBlock, HungUp (SIGPIPE, which programs in Rust ignore), TooLong, Failed.
    pub fn put_message(
        &self,
        control: Option<&[u8]>,
        data: Option<&[u8]>,
        priority: Priority,
    ) -> Result<(), Error> {
        self.call(|head| head.put_message(control, data, priority, None))
    }

    /// As [`put_message`](Stream::put_message), waiting until `deadline` at most, also where the stream does not block.
    /// Errors: also TimedOut.
    pub fn put_message_until(
        &self,
        control: Option<&[u8]>,
        data: Option<&[u8]>,
        priority: Priority,
        deadline: Instant,
    ) -> Result<(), Error> {
        let deadline = Some(nanoseconds(deadline));
        self.call(|head| head.put_message(control, data, priority, deadline))
    }

    /// Receives the first message of the choice. Waits for one, unless the stream does not block.
    /// Errors: WouldBlock, HungUp once everything was received, OtherMessage (a passed descriptor is first), Failed.
    pub fn get_message(&self, choice: Choice) -> Result<Received, Error> {
        self.receive(choice, None)
    }

    /// As [`get_message`](Stream::get_message), waiting until `deadline` at most. Errors: also TimedOut.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use headwater_streams::{Choice, Error, Stream};
    ///
    /// let (_here, there) = Stream::pipe()?;
    /// let soon = Instant::now() + Duration::from_millis(10);
    /// assert_eq!(there.get_message_until(Choice::Any, soon), Err(Error::TimedOut));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn get_message_until(&self, choice: Choice, deadline: Instant) -> Result<Received, Error> {
        self.receive(choice, Some(nanoseconds(deadline)))
    }

    fn receive(&self, choice: Choice, deadline: Option<u64>) -> Result<Received, Error> {
        let mut look = |inlet: &mut dyn Inlet| match choice.first_of(inlet)? {
            None => Ok(None),
            Some(front) => take(inlet, front).map(|m| Some(Some(m))),
        };
        let received = self.call(|head| head.receive(deadline, &mut look))?;
        received.ok_or(Error::HungUp)
    }

    /// Sends a request to the modules and the driver, as ioctl(I_STR) does: `data` goes down with it and holds what came
    /// back. Returns the answer's value. Without a timeout it waits as long as it takes.
    /// Errors: Unknown when nobody knows the command, TimedOut, HungUp, and what the module or driver says.
    ///
    /// ```
    /// # use headwater_streams::{Error, Stream, modules};
    /// let (end, _other) = Stream::pipe()?;
    /// end.push("sc")?;
    /// let mut counts = vec![0; size_of::<modules::Stats>()];
    /// end.ioctl(modules::SC_GETSTATS, &mut counts, None)?;
    /// assert_eq!(end.ioctl(1, &mut Vec::new(), None), Err(Error::Unknown));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn ioctl(
        &self,
        command: c_int,
        data: &mut Vec<u8>,
        timeout: Option<Duration>,
    ) -> Result<c_int, Error> {
        let head = self.alive()?;
        if data.len() > crate::tunables::get().strmsgsz {
            return Err(Error::TooLong);
        }
        if !head.is_queued() {
            return Err(Error::Unknown);
        }
        let deadline = timeout.map_or(u64::MAX, |t| nanoseconds(Instant::now() + t));
        let message = requests::ioctl_message(command, data, data.len() as u32);
        let (answer, ioc) = requests::ask(head, message, deadline)?;
        match (answer.kind(), ioc.ioc_error) {
            (M_IOCACK, 0) => {
                *data = answer.to_data();
                data.truncate(ioc.ioc_count as usize);
                Ok(ioc.ioc_rval)
            }
            (_, 0) => Err(Error::Unknown),
            (_, errno) => Err(unknown(errno)),
        }
    }

    /// Links `lower` below this multiplexer (I_LINK) and returns the link's number. From then on `lower` is the
    /// multiplexer's; dropping it leaves the link. Errors: Unknown if this is no multiplexer, or `lower` is linked already.
    pub fn link(&self, lower: &Stream) -> Result<c_int, Error> {
        life::link(self.head()?, lower.fd, false).map_err(unknown)
    }

    /// Undoes a link (I_UNLINK). Closing this stream undoes all of them.
    pub fn unlink(&self, link: c_int) -> Result<(), Error> {
        linking::unlink(self.head()?, link, false, life::let_go)
            .map(drop)
            .map_err(unknown)
    }

    /// Whether calls without a deadline fail instead of waiting (O_NONBLOCK).
    pub fn set_nonblocking(&self, on: bool) -> Result<(), Error> {
        let flags = sys::fcntl(self.fd, libc::F_GETFL, 0)? as c_int;
        let flags = match on {
            true => flags | libc::O_NONBLOCK,
            false => flags & !libc::O_NONBLOCK,
        };
        sys::fcntl(self.fd, libc::F_SETFL, flags as usize)?;
        life::set_nonblocking(self.handle, on);
        Ok(())
    }

    fn alive(&self) -> Result<&'static Head, Error> {
        let head = self.head()?;
        head.attend()?;
        if head.has_hung_up() {
            return Err(Error::HungUp);
        }
        Ok(head)
    }
}

/// Copies the first message out and takes it.
fn take(inlet: &mut dyn Inlet, front: Front) -> Result<Received, Trouble> {
    let mut skip = 0;
    let mut part = |len: Option<usize>| {
        let mut bytes = vec![0; len?];
        if !bytes.is_empty() {
            inlet.copy(skip, &mut bytes);
        }
        skip += bytes.len();
        Some(bytes)
    };
    let (control, data) = (part(front.control), part(front.data));
    inlet.take(front.control, front.data)?;
    Ok(Received {
        control,
        data,
        priority: match front.is_high() {
            true => Priority::High,
            false => Priority::Band(front.band),
        },
    })
}

fn unknown(errno: c_int) -> Error {
    match errno {
        libc::EINVAL => Error::Unknown,
        errno => errno.into(),
    }
}

/// On the clock of [`sys::now`].
fn nanoseconds(deadline: Instant) -> u64 {
    let left = deadline.saturating_duration_since(Instant::now());
    let left = u64::try_from(left.as_nanos()).unwrap_or(u64::MAX);
    sys::now().saturating_add(left).min(u64::MAX - 1)
}

impl Read for &Stream {
    /// Bytes, as read(2); 0 after a hangup, or for an empty message.
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        Ok(self.call(|head| head.read(buf))?)
    }
}

impl Read for Stream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buf)
    }
}

impl Write for &Stream {
    /// Bytes, as write(2): one message where no packet size cuts them up.
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        Ok(self.call(|head| head.write(buf))?)
    }

    /// There is nothing to flush: what was written is on its way.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Write for Stream {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        (&*self).write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsRawFd for Stream {
    /// For [`poll`], passing on, and numbers in messages. The kernel's calls on it see no message.
    fn as_raw_fd(&self) -> RawFd {
        self.fd
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        life::close(self.fd, self.handle);
    }
}

/// poll(2) for sets in which there are streams; other descriptors may be among them. Returns how many have `revents`.
/// Errors: Interrupted, Failed.
///
/// ```
/// # use std::{io::Write, os::fd::AsRawFd, time::Duration};
/// # use headwater_streams::{Stream, poll};
/// let (mut here, there) = Stream::pipe()?;
/// let mut set = [libc::pollfd { fd: there.as_raw_fd(), events: libc::POLLIN, revents: 0 }];
/// assert_eq!(poll(&mut set, Some(Duration::ZERO))?, 0);
/// here.write_all(b"something")?;
/// assert_eq!(poll(&mut set, None)?, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn poll(set: &mut [libc::pollfd], timeout: Option<Duration>) -> Result<usize, Error> {
    let timeout = timeout.map(|t| u64::try_from(t.as_nanos()).unwrap_or(u64::MAX));
    match polling::poll(set, timeout, None).unwrap_or(0) {
        n if n >= 0 => Ok(n as usize),
        _ => Err(headwater_host::next::errno().into()),
    }
}

/// Streams need a few things of the process. Once, by whichever call comes first; here for crates that build on this one.
pub fn start() {
    static START: Once = Once::new();
    START.call_once(crate::start);
}
