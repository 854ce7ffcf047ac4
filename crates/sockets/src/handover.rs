//! The messages of a pair link: one for each segment, with its memory and the two ends' doorbells.
//!
//! # Contract
//! The control buffer has room for what a proper message brings: the kernel closes what a sender adds, and says so. The
//! descriptors of a [`Came`] are this process's, and closed unless a segment is made of them.

use headwater_channel::bell;
use headwater_channel::segment::Segment;
use headwater_host::counters::{self, Reason};
use headwater_host::sync::{AtomicU32, AtomicU64};
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
}

#[repr(C, align(8))]
struct Control {
    bytes: [u8; 32],
}

// SAFETY: plain arithmetic.
const _: () =
    assert!(unsafe { libc::CMSG_SPACE(4 * WANTED as u32) } as usize == size_of::<Control>());

pub fn send(fd: i32, hello: &Hello, fds: [i32; WANTED]) -> sys::Result<()> {
    let mut iov = libc::iovec {
        iov_base: hello as *const Hello as *mut libc::c_void,
        iov_len: size_of::<Hello>(),
    };
    let mut control = Control { bytes: [0; 32] };
    let size = size_of_val(&fds) as u32;
    // SAFETY: msg's pointers are valid for the call, and CMSG_SPACE of three descriptors fits the control buffer.
    unsafe {
        let mut msg: libc::msghdr = core::mem::zeroed();
        msg.msg_iov = &mut iov;
        msg.msg_iovlen = 1;
        msg.msg_control = control.bytes.as_mut_ptr() as *mut libc::c_void;
        msg.msg_controllen = libc::CMSG_SPACE(size) as _;
        let c = libc::CMSG_FIRSTHDR(&msg);
        (*c).cmsg_level = libc::SOL_SOCKET;
        (*c).cmsg_type = libc::SCM_RIGHTS;
        (*c).cmsg_len = libc::CMSG_LEN(size) as _;
        libc::CMSG_DATA(c)
            .cast::<[i32; WANTED]>()
            .write_unaligned(fds);
        sys::sendmsg(fd, &msg, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT).map(drop)
    }
}

/// A message as it came.
pub struct Came {
    hello: Hello,
    /// Neither cut nor too short.
    whole: bool,
    /// Its descriptors did not all find room here.
    short_of_room: bool,
    fds: [i32; WANTED],
}

impl Drop for Came {
    fn drop(&mut self) {
        for fd in self.fds {
            if fd >= 0 {
                let _ = sys::close(fd);
            }
        }
    }
}

/// The next message, without waiting. `None`: nothing more for now, or the end.
pub fn receive(fd: i32) -> Option<Came> {
    let mut came = Came {
        hello: Hello {
            magic: 0,
            ..Hello::new(0, 0)
        },
        whole: false,
        short_of_room: false,
        fds: [-1; WANTED],
    };
    let mut iov = libc::iovec {
        iov_base: &mut came.hello as *mut Hello as *mut libc::c_void,
        iov_len: size_of::<Hello>(),
    };
    let mut control = Control { bytes: [0; 32] };
    // SAFETY: msg's pointers are valid for the call; the kernel wrote the control message that is read.
    unsafe {
        let mut msg: libc::msghdr = core::mem::zeroed();
        msg.msg_iov = &mut iov;
        msg.msg_iovlen = 1;
        msg.msg_control = control.bytes.as_mut_ptr() as *mut libc::c_void;
        msg.msg_controllen = libc::CMSG_LEN(size_of_val(&came.fds) as u32) as _;
        let n = sys::recvmsg(fd, &mut msg, libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC).ok()?;
        let c = libc::CMSG_FIRSTHDR(&msg);
        if !c.is_null() && ((*c).cmsg_level, (*c).cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS)
        {
            let bytes = ((*c).cmsg_len as usize).saturating_sub(libc::CMSG_LEN(0) as usize);
            let first = libc::CMSG_DATA(c).cast::<i32>();
            for (i, fd) in came.fds.iter_mut().enumerate().take(bytes / 4) {
                *fd = first.add(i).read_unaligned();
            }
        } else if n == 0 {
            return None;
        }
        let cut = msg.msg_flags & (libc::MSG_CTRUNC | libc::MSG_TRUNC) != 0;
        came.short_of_room = msg.msg_flags & libc::MSG_CTRUNC != 0 && came.fds.contains(&-1);
        came.whole = n == size_of::<Hello>() && !cut;
    }
    Some(came)
}

impl Came {
    fn segment(&self, guarded: bool) -> Result<Segment, Reason> {
        if self.short_of_room {
            return Err(Reason::NoDescriptors);
        }
        if !self.whole || self.hello.magic != MAGIC {
            return Err(Reason::BadHello);
        }
        if self.hello.abi != board::abi() {
            return Err(Reason::OtherVersion);
        }
        let mut bells = self.fds[1..].iter();
        if self.fds.contains(&-1) || guarded && !bells.all(|&fd| bell::is_guarded(fd)) {
            return Err(Reason::BadHello);
        }
        Segment::open(self.fds[0], board::abi()).map_err(|errno| match errno {
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
        let bells = [1, 2].map(|i| hidden::hide(core::mem::replace(&mut self.fds[i], -1)));
        let [Ok(a), Ok(b)] = bells else {
            for bell in bells.into_iter().flatten() {
                hidden::close(bell);
            }
            counters::note(Reason::NoDescriptors);
            return None;
        };
        let memory = hidden::hide_spare(core::mem::replace(&mut self.fds[0], -1));
        Some(Mapped {
            segment,
            memory: memory.unwrap_or(-1),
            bells: [a, b],
            link: self.hello.link,
            index: self.hello.index,
            in_use: AtomicU32::new(0),
            released_at: AtomicU64::new(0),
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
        let mut iov = libc::iovec {
            iov_base: hello as *const Hello as *mut libc::c_void,
            iov_len: size_of::<Hello>(),
        };
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
