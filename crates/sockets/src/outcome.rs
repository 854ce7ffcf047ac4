//! What calls that move bytes, and the steps of those that receive, come to.

use headwater_host::next;
use libc::iovec;

/// A result: bytes, or an errno.
pub type Moved = Result<usize, i32>;

/// The call that the program made, on this number and these buffers: what the kernel is to serve is asked for by that very
/// call, since a program may have forbidden itself all others.
pub type Own<'a> = &'a dyn Fn(i32, &[iovec]) -> isize;

/// What a step came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Bytes were taken.
    Data(usize),
    Eof,
    /// Nothing yet.
    Again,
    /// The kernel alone decides from here on: make the plain call.
    Kernel,
    Error(i32),
}

/// What a call of the C library came to, which has left its error in errno.
pub fn moved(n: isize) -> Moved {
    match n {
        ..0 => Err(next::errno()),
        n => Ok(n as usize),
    }
}

/// What was done counts; the error comes at the next call.
pub fn partial(done: usize, e: i32) -> Moved {
    if done > 0 { Ok(done) } else { Err(e) }
}
