//! The descriptors of an end: making them, taking an end apart, putting it together.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::end::{ABI, Seen};
use super::section::Holders;
use super::{Channel, OpenError};
use crate::segment::Segment;
use crate::sys::{self, Result};
use crate::wait::Learner;
use crate::{bell, identity};

/// Which of the two ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    First,
    Second,
}

/// All that makes up an end; enough to put it together again, here or in another process.
#[derive(Debug)]
pub struct Fds {
    pub side: Side,
    /// The memory of both directions, a sealed memfd.
    pub memfd: OwnedFd,
    /// An eventfd, or a timerfd where the channel is guarded, that the peer rings.
    pub bell: OwnedFd,
    /// One that we ring.
    pub peer_bell: OwnedFd,
    /// A UNIX stream socket whose peer is closed when the other end is.
    pub shadow: OwnedFd,
}

impl Channel {
    /// Takes the end apart without closing it. Used for passing it to another process: by [`Fds::send_over`], by inheritance
    /// after clearing FD_CLOEXEC, or as the program likes.
    pub fn into_fds(mut self) -> Fds {
        self.own_end().disown(identity::me());
        let Some(fds) = self.fds.take() else {
            unreachable!("taken only by what consumes the channel")
        };
        fds
    }

    /// Puts an end together. [`OpenError::NotAChannel`] when the descriptors are not of the right kind, or the memory is not a
    /// sealed segment of this version.
    ///
    /// Whoever supplies the descriptors, or holds the other end, must be trusted as far as this: eventfds as bells can be made
    /// to keep a call waiting. See [`from_guarded_fds`](Channel::from_guarded_fds).
    pub fn from_fds(fds: Fds) -> core::result::Result<Channel, OpenError> {
        for bell in [&fds.bell, &fds.peer_bell] {
            let bell = bell.as_raw_fd();
            // A bell that could block would hang us.
            let blocking = sys::fcntl(bell, libc::F_GETFL, 0)? & libc::O_NONBLOCK == 0;
            if !bell::is_guarded(bell) && (blocking || !bell::may_be_eventfd(bell)) {
                return Err(OpenError::NotAChannel);
            }
        }
        Channel::of_checked(fds)
    }

    /// As [`from_fds`](Channel::from_fds), for descriptors from somebody who is not trusted: takes only an end of a
    /// [guarded](super::Builder::guarded) channel. The worst that its supplier, or whoever holds the other end, can do then is
    /// to spoil or end this channel.
    pub fn from_guarded_fds(fds: Fds) -> core::result::Result<Channel, OpenError> {
        let guarded = |bell: &OwnedFd| bell::is_guarded(bell.as_raw_fd());
        if !guarded(&fds.bell) || !guarded(&fds.peer_bell) {
            return Err(OpenError::NotAChannel);
        }
        Channel::of_checked(fds)
    }

    fn of_checked(fds: Fds) -> core::result::Result<Channel, OpenError> {
        let segment = Segment::open(fds.memfd.as_raw_fd(), ABI).map_err(|errno| match errno {
            // Not a memfd at all.
            libc::EINVAL => OpenError::NotAChannel,
            errno => errno.into(),
        })?;
        if sys::fstat(fds.shadow.as_raw_fd())?.st_mode & libc::S_IFMT != libc::S_IFSOCK {
            return Err(OpenError::NotAChannel);
        }
        Ok(Channel {
            segment,
            side: fds.side,
            spin: true,
            fds: Some(fds),
            reading: Learner::new(),
            writing: Learner::new(),
            seen: Seen::default(),
            holders: Holders::default(),
        })
    }
}

impl Fds {
    /// The descriptors of two new ends.
    pub(super) fn pair(ring: usize, guarded: bool) -> Result<(Fds, Fds)> {
        let make = if guarded {
            bell::create_guarded
        } else {
            bell::create
        };
        let (segment, memfd) = Segment::create(ring, ABI)?;
        drop(segment);
        let memfd = own(memfd);
        let (bell_1, bell_2) = (own(make()?), own(make()?));
        let [shadow_1, shadow_2] = sys::socket_pair()?.map(own);
        let first = Fds {
            side: Side::First,
            memfd: copy(&memfd)?,
            bell: copy(&bell_1)?,
            peer_bell: copy(&bell_2)?,
            shadow: shadow_1,
        };
        let second = Fds {
            side: Side::Second,
            memfd,
            bell: bell_2,
            peer_bell: bell_1,
            shadow: shadow_2,
        };
        Ok((first, second))
    }
}

impl Side {
    pub fn peer(self) -> Side {
        match self {
            Side::First => Side::Second,
            Side::Second => Side::First,
        }
    }

    pub(super) fn index(self) -> usize {
        self as usize
    }
}

/// A descriptor that the kernel has just given us.
pub(super) fn own(fd: RawFd) -> OwnedFd {
    // SAFETY: fresh from the kernel, so nobody else owns it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

fn copy(fd: &OwnedFd) -> Result<OwnedFd> {
    sys::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 3).map(own)
}
