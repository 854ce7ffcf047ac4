//! Who is at the other end, and what is taken from him: the one place that judges it.

use crate::{config, sys};

/// A process that the kernel has told us of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    pub uid: u32,
    pub gid: u32,
}

/// On which side of the border between users a peer is that we have to do with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    Ours,
    /// Of another user: what he sends is not believed, and nothing that he holds may keep us waiting.
    Foreign(u32),
}

impl Peer {
    /// At the other end of a connected UNIX socket (SO_PEERCRED, unix(7)): who has connected, or listens, there.
    pub fn of(socket: i32) -> Option<Peer> {
        let mut told = [0u8; size_of::<libc::ucred>()];
        sys::sockopt_bytes(socket, libc::SOL_SOCKET, libc::SO_PEERCRED, &mut told).ok()?;
        // SAFETY: ucred is three integers, and the kernel filled it.
        Some(Peer::from(unsafe {
            told.as_ptr().cast::<libc::ucred>().read_unaligned()
        }))
    }

    /// Is it this process's user, as whom it effectively runs?
    pub fn is_this_user(self) -> bool {
        self.uid == sys::getuid()
    }

    /// Is what it says believed where somebody who runs as `uid` may speak? Root may say what anybody may.
    pub fn speaks_for(self, uid: u32) -> bool {
        self.uid == 0 || self.uid == uid
    }

    /// Is it this user, or one whom HEADWATER_PEERS names?
    pub fn is_allowed(self) -> bool {
        self.is_this_user() || config::get().names_peer(self.uid, self.gid)
    }

    /// `None`: it is neither of this user nor of one whom the configuration names. Not ours either where this process has more rights
    /// than its user.
    pub fn side(self) -> Option<Side> {
        if self.is_this_user() && sys::has_one_user() {
            return Some(Side::Ours);
        }
        self.is_allowed().then_some(Side::Foreign(self.uid))
    }
}

impl Side {
    /// May a peer on this side have a connection? Of a foreign one `proof` is asked whether the connection's other end is that user's.
    pub fn may_have(self, proof: impl FnOnce(u32) -> bool) -> bool {
        match self {
            Side::Ours => true,
            Side::Foreign(uid) => proof(uid),
        }
    }
}

impl From<libc::ucred> for Peer {
    fn from(told: libc::ucred) -> Peer {
        Peer {
            uid: told.uid,
            gid: told.gid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn who_made_a_pair_is_this_user_and_somebody_else_is_not() {
        let (a, _b) = UnixStream::pair().unwrap();
        let me = Peer::of(a.as_raw_fd()).unwrap();
        assert!(me.is_this_user() && me.is_allowed());
        let other = Peer {
            uid: me.uid + 1,
            gid: me.gid,
        };
        assert!(!other.is_this_user() && !other.speaks_for(me.uid));
        assert!(other.speaks_for(me.uid + 1));
        assert!(Peer { uid: 0, ..me }.speaks_for(me.uid));
        assert_eq!(other.side(), None, "nobody is named");
    }

    #[test]
    fn what_is_no_socket_has_no_peer() {
        assert_eq!(Peer::of(-1), None);
    }
}
