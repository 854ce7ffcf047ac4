//! connld: pushed on a pipe's end that is attached to a path, it gives each opener a pipe of its own. The work is done where
//! the path is opened, which looks for this name at the top of the attached end; messages are handed on.

use core::ffi::c_int;

use super::id;
use crate::exec::{Info, Module, OpenFlag, Queue};
use crate::head::Head;

pub struct Connld;

impl Module for Connld {
    const INFO: Info = Info::new(id::CONNLD, c"connld");

    /// EINVAL on what is not a pipe's end.
    fn open(q: Queue, _: &mut libc::dev_t, _: c_int, _: OpenFlag) -> Result<Self, c_int> {
        // SAFETY: the executive's users give the stream head, or null, as the stream's own pointer, and heads stay.
        let head = unsafe { q.stream().cast::<Head>().as_ref() };
        match head.and_then(Head::pipe) {
            Some(pipe) if !pipe.fifo => Ok(Connld),
            _ => Err(libc::EINVAL),
        }
    }
}
