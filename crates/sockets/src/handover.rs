//! The messages of a pair link: one for each segment, with its memory and the two ends' doorbells.
//!
//! # Contract
//! The descriptors of a [`Came`] are this process's, and closed unless a segment is made of them.

use std::io::{IoSlice, IoSliceMut};

use headwater_channel::bell;
use headwater_channel::pass::{self, Received, Wanted};
use headwater_channel::segment::Segment;
use headwater_host::counters::{self, Reason};
use headwater_host::sync::AtomicU32;
use headwater_host::{board, hidden, sys};

use crate::segment::Mapped;

const MAGIC: u32 = 0x4857_4c4b;
/// Memory and two bells.
const WANTED: usize = 3;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Hello {
    magic: u32,
    abi: u32,
    pub link: u64,
    pub index: u32,
    reserved: u32,
}

impl Hello {
    pub fn new(link: u64, index: u32) -> Hello {
        Hello {
            magic: MAGIC,
            abi: board::abi(),
            link,
            index,
            reserved: 0,
        }
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: integers without holes between them, as they lie.
        unsafe { core::slice::from_raw_parts(core::ptr::from_ref(self).cast(), size_of::<Hello>()) }
    }

    fn of(bytes: &[u8; size_of::<Hello>()]) -> Hello {
        // SAFETY: integers, of any value, from as many bytes.
        unsafe { bytes.as_ptr().cast::<Hello>().read_unaligned() }
    }
}

pub fn send(fd: i32, hello: &Hello, fds: [i32; WANTED]) -> sys::Result<()> {
    let part = IoSlice::new(hello.bytes());
    pass::send(fd, &[part], &fds, None, libc::MSG_DONTWAIT).map(drop)
}

/// Two hidden bells, unless there was no number for one of them.
pub fn both(bells: [sys::Result<i32>; 2]) -> Result<[i32; 2], Reason> {
    let [Ok(a), Ok(b)] = bells else {
        bells.into_iter().flatten().for_each(hidden::close);
        return Err(Reason::NoDescriptors);
    };
    Ok([a, b])
}

/// A message as it came.
pub struct Came {
    hello: Hello,
    message: Received,
}

/// The next message, without waiting. `None`: nothing more for now, or the end.
pub fn receive(fd: i32) -> Option<Came> {
    let mut bytes = [0; size_of::<Hello>()];
    let wanted = Wanted {
        descriptors: WANTED,
        credentials: false,
    };
    let parts = &mut [IoSliceMut::new(&mut bytes)];
    let message = pass::receive(fd, parts, wanted, libc::MSG_DONTWAIT).ok()?;
    let hello = Hello::of(&bytes);
    let is_any = message.len > 0 || message.descriptors.iter().any(Option::is_some);
    is_any.then_some(Came { hello, message })
}

impl Came {
    fn segment(&self, guarded: bool) -> Result<Segment, Reason> {
        let came = &self.message;
        if came.lost && came.descriptors[..WANTED].iter().any(Option::is_none) {
            return Err(Reason::NoDescriptors);
        }
        let whole = came.len == size_of::<Hello>() && !came.lost && !came.cut;
        if !whole || self.hello.magic != MAGIC {
            return Err(Reason::BadHello);
        }
        if self.hello.abi != board::abi() {
            return Err(Reason::OtherVersion);
        }
        let [Some(memory), Some(a), Some(b), ..] = &came.descriptors else {
            return Err(Reason::BadHello);
        };
        if guarded && ![a, b].iter().all(|bell| bell::is_guarded(bell.number())) {
            return Err(Reason::BadHello);
        }
        Segment::open(memory.number(), board::abi()).map_err(|errno| match errno {
            libc::ENOMEM | libc::EAGAIN => Reason::NoMemory,
            _ => Reason::BadHello,
        })
    }

    /// The segment in it. `None`, counted: it is not one of ours, or of another version; what it brought is closed. `guarded`: from
    /// somebody who is not trusted, so that its bells must be such as can't keep us waiting.
    pub fn mapped(mut self, guarded: bool) -> Option<Mapped> {
        let segment = match self.segment(guarded) {
            Ok(segment) => segment,
            Err(reason) => {
                counters::note(reason);
                return None;
            }
        };
        let mut hide = |i: usize, hide: fn(i32) -> sys::Result<i32>| {
            let fd = self.message.take(i).ok_or(libc::EBADF)?;
            hide(fd.into_number())
        };
        let bells = both([1, 2].map(|i| hide(i, hidden::hide)));
        let bells = bells.inspect_err(|&reason| counters::note(reason)).ok()?;
        let memory = hide(0, hidden::hide_spare);
        Some(Mapped {
            segment,
            memory: memory.unwrap_or(-1),
            bells,
            link: self.hello.link,
            index: self.hello.index,
            in_use: AtomicU32::new(0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> [i32; 2] {
        let mut fds = [0; 2];
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
        // SAFETY: room for two descriptors.
        let result = unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, fds.as_mut_ptr()) };
        assert_eq!(result, 0);
        fds
    }

    fn descriptors() -> usize {
        std::fs::read_dir("/proc/self/fd").map_or(0, |d| d.count())
    }

    /// A message with that many descriptors, by a sender that keeps to no protocol.
    fn send_many(fd: i32, hello: &Hello, count: usize) {
        let one = bell::create().unwrap();
        let mut control = [0u64; 32];
        let mut iov = sys::buffer(hello as *const Hello, size_of::<Hello>());
        // SAFETY: the control buffer has room for sixty descriptors.
        unsafe {
            let mut msg: libc::msghdr = core::mem::zeroed();
            msg.msg_iov = &mut iov;
            msg.msg_iovlen = 1;
            msg.msg_control = control.as_mut_ptr().cast();
            msg.msg_controllen = libc::CMSG_SPACE(4 * count as u32) as _;
            let c = libc::CMSG_FIRSTHDR(&msg);
            (*c).cmsg_level = libc::SOL_SOCKET;
            (*c).cmsg_type = libc::SCM_RIGHTS;
            (*c).cmsg_len = libc::CMSG_LEN(4 * count as u32) as _;
            for i in 0..count {
                libc::CMSG_DATA(c).cast::<i32>().add(i).write_unaligned(one);
            }
            sys::sendmsg(fd, &msg, 0).unwrap();
        }
        sys::close(one).unwrap();
    }

    #[test]
    fn whatever_a_message_brings_beyond_what_is_wanted_is_closed() {
        let [from, to] = pair();
        // Other tests of the process may have some open for a moment.
        let before = descriptors();
        for i in 0..100 {
            let count = [1, 2, 3, 4, 7, 12, 40][i % 7];
            let hello = Hello::new(1, i as u32);
            let strange = Hello { magic: 1, ..hello };
            send_many(from, if i % 2 == 0 { &hello } else { &strange }, count);
            assert!(receive(to).unwrap().mapped(false).is_none());
        }
        assert!(descriptors() < before + 50);
        for fd in [from, to] {
            sys::close(fd).unwrap();
        }
    }

    #[test]
    fn what_is_wrong_with_a_message_is_counted_as_that() {
        let [from, to] = pair();
        let (_segment, memfd) = Segment::create(4096, board::abi()).unwrap();
        let bell = bell::create().unwrap();
        let good = Hello::new(1, 1);
        let newer = Hello {
            abi: board::abi() + 1,
            ..good
        };
        let strange = Hello { magic: 1, ..good };
        for (hello, memory, reason) in [
            (newer, memfd, Reason::OtherVersion),
            (strange, memfd, Reason::BadHello),
            (good, bell, Reason::BadHello),
        ] {
            let before = counters::noted(reason);
            send(from, &hello, [memory, bell, bell]).unwrap();
            assert!(receive(to).unwrap().mapped(false).is_none());
            // Other tests of the process may count too.
            assert!(counters::noted(reason) > before, "{reason:?}");
        }
        for fd in [from, to, memfd, bell] {
            sys::close(fd).unwrap();
        }
    }

    #[test]
    fn bells_of_a_stranger_are_such_as_cannot_keep_us_waiting() {
        let [from, to] = pair();
        let (_segment, memfd) = Segment::create(4096, board::abi()).unwrap();
        let mut pipe = [0; 2];
        // SAFETY: room for two descriptors.
        assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
        let (plain, good) = (bell::create().unwrap(), bell::create_guarded().unwrap());
        for (bells, taken) in [
            ([good, good], true),
            ([good, plain], false),
            ([plain, good], false),
            ([good, pipe[1]], false),
            ([from, good], false),
        ] {
            send(from, &Hello::new(1, 1), [memfd, bells[0], bells[1]]).unwrap();
            let mapped = receive(to).unwrap().mapped(true);
            assert_eq!(mapped.is_some(), taken);
            mapped.map(|m| m.bells.map(hidden::close));
        }
        for fd in [from, to, memfd, plain, good, pipe[0], pipe[1]] {
            sys::close(fd).unwrap();
        }
    }
}
