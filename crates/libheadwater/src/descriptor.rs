//! What a kind of descriptor is to the calls on descriptors as such: their numbers come and go, are copied, and have flags.
//!
//! A new kind has a line in [`of_kind`], its [`File`], and of `Calls` what is not the kernel's own call.

use headwater_host::counters::Reason;
use headwater_host::epoll;
use headwater_host::next::keep_errno;
use headwater_host::table::{self, Handle};
use headwater_sockets::ending::AfterClose;
use headwater_sockets::{confine, inherit, life, options};
use libc::{c_int, c_ulong};

use crate::{real, refuse};

/// Calls a verb of the [`File`] or `Calls` that a handle's kind has, by the table of kinds in it.
macro_rules! of_kind {
    ($h:expr, $verb:ident($($arg:expr),* $(,)?)) => {{
        let h: headwater_host::table::Handle = $h;
        $crate::descriptor::of_kind! { h.$verb(h, $($arg),*):
            Socket is Connections,
            Stream is Streams,
            Endpoint is Endpoints,
            Sctp is Sctp,
            Epoll is Sets,
            Inherited is Inherited,
            Hidden is Hidden,
        }
    }};
    ($h:ident.$verb:ident $args:tt: $($kind:ident is $file:ident,)*) => {
        match $h.kind() {
            $(headwater_host::table::Kind::$kind => $crate::descriptor::$file.$verb $args,)*
        }
    };
}
pub(crate) use of_kind;

#[derive(Clone, Copy)]
pub struct Connections;
#[derive(Clone, Copy)]
pub struct Streams;
/// Transport endpoints that are used by function calls.
#[derive(Clone, Copy)]
pub struct Endpoints;
/// SCTP sockets of our own.
#[derive(Clone, Copy)]
pub struct Sctp;
/// epoll(7).
#[derive(Clone, Copy)]
pub struct Sets;
/// Connections that the former image looked after, and this one not yet.
#[derive(Clone, Copy)]
pub struct Inherited;
/// The library's own.
#[derive(Clone, Copy)]
pub struct Hidden;

/// What fcntl(2) is asked for.
#[derive(Clone, Copy)]
pub struct Asked {
    pub cmd: c_int,
    pub arg: usize,
}

impl Asked {
    /// Those of F_SETFL.
    pub fn flags(self) -> Option<c_int> {
        (self.cmd == libc::F_SETFL).then_some(self.arg as c_int)
    }
}

/// `fd` is, or was, a number of `h`.
pub trait File: Copy {
    /// The number goes with `call`, the kernel's: what is said after it comes after. Leaves errno as that call left it.
    fn goes(self, h: Handle, fd: c_int, call: impl FnOnce() -> c_int) -> c_int;

    /// close(2).
    fn close(self, h: Handle, fd: c_int) -> c_int {
        self.goes(h, fd, || real::close(fd))
    }

    /// The number was closed round us, and may be anything by now.
    fn lost(self, h: Handle, fd: c_int) {
        self.goes(h, fd, || 0);
    }

    /// `new` is another number of it.
    fn copied(self, h: Handle, new: c_int);

    /// fcntl(2) but for copies, with the kernel's own.
    fn fcntl(self, _h: Handle, _fd: c_int, _asked: Asked, call: impl FnOnce() -> c_int) -> c_int {
        call()
    }

    /// Is it a socket to the program?
    fn is_socket(self, _h: Handle) -> bool {
        false
    }

    /// Has it something that the C library would not find behind its number?
    fn is_beyond_libc(self, _h: Handle) -> bool {
        false
    }
}

/// `after` what went, with errno as it was left.
pub fn then<T>(r: c_int, after: Option<T>, finish: impl FnOnce(T)) -> c_int {
    if let Some(after) = after {
        keep_errno(|| finish(after));
    }
    r
}

/// A standard number is used by the C library's streams, and those of other languages, by ways of their own.
fn pass_on(new: c_int) {
    if (0..=2).contains(&new) {
        life::passing_on(new);
    }
}

/// Of a connection, which is adopted where its flags are kept here too.
///
/// # Safety
/// As ioctl(2) asks of its caller: `arg` is what the request wants.
pub unsafe fn ioctl(fd: c_int, request: c_ulong, arg: usize) -> c_int {
    // SAFETY: the caller's argument; for each request that is looked at it points to a number, which the kernel has found there.
    unsafe {
        let r = real::ioctl(fd, request, arg);
        if r >= 0
            && arg != 0
            && let Some(h) = table::socket(fd)
        {
            // Anywhere: who calls from another language has a buffer of bytes.
            let at = arg as *mut c_int;
            let value = || at.read_unaligned();
            match request {
                libc::FIONBIO => options::set_nonblocking(h, value() != 0),
                libc::FIOASYNC if value() != 0 => life::needs_kernel(fd),
                libc::FIONREAD => at.write_unaligned(value() + options::unread(h) as c_int),
                // The mark is behind what was sent before it.
                headwater_host::sys::SIOCATMARK if options::unread(h) > 0 => at.write_unaligned(0),
                libc::TIOCOUTQ => at.write_unaligned(value() + options::unsent(h) as c_int),
                _ => {}
            }
        }
        r
    }
}

impl File for Connections {
    fn goes(self, _h: Handle, fd: c_int, call: impl FnOnce() -> c_int) -> c_int {
        let after = life::closing(fd);
        then(call(), after, AfterClose::finish)
    }

    fn lost(self, _h: Handle, fd: c_int) {
        life::lost(fd);
    }

    fn copied(self, h: Handle, new: c_int) {
        life::duplicated(h, new);
        pass_on(new);
    }

    /// It is adopted where its flags are kept here too.
    fn fcntl(self, _h: Handle, fd: c_int, asked: Asked, call: impl FnOnce() -> c_int) -> c_int {
        let r = call();
        if r >= 0
            && let Some(flags) = asked.flags()
            && let Some(h) = table::socket(fd)
        {
            options::set_nonblocking(h, flags & libc::O_NONBLOCK != 0);
            if flags & libc::O_ASYNC != 0 {
                // SIGIO is raised for what the kernel sees.
                life::needs_kernel(fd);
            }
        }
        r
    }

    fn is_socket(self, _h: Handle) -> bool {
        true
    }

    fn is_beyond_libc(self, h: Handle) -> bool {
        confine::has_rest(h)
    }
}

impl File for Inherited {
    fn goes(self, h: Handle, fd: c_int, call: impl FnOnce() -> c_int) -> c_int {
        inherit::closing(fd, h);
        call()
    }

    fn copied(self, h: Handle, new: c_int) {
        inherit::duplicated(h, new);
        pass_on(new);
    }

    fn fcntl(self, h: Handle, fd: c_int, asked: Asked, call: impl FnOnce() -> c_int) -> c_int {
        Connections.fcntl(h, fd, asked, call)
    }

    fn is_socket(self, _h: Handle) -> bool {
        true
    }
}

impl File for Sets {
    fn goes(self, h: Handle, fd: c_int, call: impl FnOnce() -> c_int) -> c_int {
        if epoll::ends_under_a_wait(h) {
            // Which lasts until the kernel has something to tell it.
            epoll::leave(fd, |member| life::to_kernel(member, Reason::WaitedOn));
        }
        table::clear(fd);
        epoll::closed_set(h, fd);
        call()
    }

    fn copied(self, h: Handle, new: c_int) {
        epoll::duplicated_set(h, new);
    }
}

impl File for Hidden {
    fn goes(self, _h: Handle, _fd: c_int, call: impl FnOnce() -> c_int) -> c_int {
        call()
    }

    fn close(self, _h: Handle, _fd: c_int) -> c_int {
        refuse(libc::EBADF)
    }

    fn lost(self, _h: Handle, fd: c_int) {
        table::clear(fd);
    }

    fn copied(self, _h: Handle, new: c_int) {
        pass_on(new);
    }
}
