//! Descriptors that an earlier image of this process has left to it: see [`env::HANDED_OVER`](crate::env::HANDED_OVER).
//!
//! Variables tell of them, which anybody may set who starts the program, and an image in between that does not have the library
//! may have closed the numbers, or used them for something else. So none is taken, closed or written to before it was seen
//! to be what it is said to be.

use headwater_channel::bell;

use crate::{sys, table};

/// What a descriptor of the library's own is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sort {
    /// A sealed memfd.
    Memory,
    /// An eventfd or a timerfd: what has no name.
    Bell,
    /// A pipe.
    Pipe,
    /// Of UNIX, for packets.
    Local,
    /// Of the internet.
    Inet,
}

impl Sort {
    fn is(self, fd: i32) -> bool {
        let sealed = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;
        match self {
            Sort::Memory => {
                sys::fcntl(fd, libc::F_GET_SEALS, 0).is_ok_and(|seals| seals & sealed == sealed)
            }
            Sort::Bell => bell::may_be_eventfd(fd),
            Sort::Pipe => has_type(fd, libc::S_IFIFO),
            Sort::Local => {
                is_of(fd, &[libc::AF_UNIX])
                    && match sys::sockopt::<i32>(fd, libc::SOL_SOCKET, libc::SO_TYPE) {
                        Err(libc::EBADF | libc::ENOTSOCK) => false,
                        // One of UNIX it is, and nothing says that it is another.
                        Err(_) => true,
                        Ok(kind) => kind == libc::SOCK_SEQPACKET,
                    }
            }
            Sort::Inet => is_of(fd, &[libc::AF_INET, libc::AF_INET6]),
        }
    }
}

/// Is it a socket of one of these families? Its own name tells too.
fn is_of(fd: i32, families: &[i32]) -> bool {
    let family = sys::sockopt(fd, libc::SOL_SOCKET, libc::SO_DOMAIN)
        .or_else(|_| sys::sock_name(fd, false).map(|name| name.ss_family as i32));
    family.is_ok_and(|family| families.contains(&family))
}

fn has_type(fd: i32, kind: libc::mode_t) -> bool {
    sys::fstat(fd).is_ok_and(|st| st.st_mode & libc::S_IFMT == kind)
}

/// What tells a descriptor from another file that has its number; 0: it is not open.
pub fn identity(fd: i32) -> u64 {
    sys::fstat(fd).map_or(0, |st| st.st_ino)
}

fn is_still(fd: i32, inode: u64) -> bool {
    sys::fstat(fd).is_ok_and(|st| st.st_ino == inode)
}

/// Is a number of the program's still what stood for something of ours there? That is a socket, or nameless; it is nothing to us
/// yet.
pub fn is_here(fd: i32, inode: u64) -> bool {
    table::lookup(fd).is_none()
        && is_still(fd, inode)
        && (has_type(fd, libc::S_IFSOCK) || Sort::Bell.is(fd))
}

/// Could this be a descriptor of the library's own that nobody here has yet? They are never those of standard input and output.
pub fn is_ours(fd: i32, sort: Sort) -> bool {
    fd > libc::STDERR_FILENO && table::lookup(fd).is_none() && sort.is(fd)
}

/// As all that the library waits for by poll(2): an image in between may have changed it.
pub fn never_blocks(fd: i32) {
    if let Ok(flags) = sys::fcntl(fd, libc::F_GETFL, 0)
        && flags & libc::O_NONBLOCK == 0
    {
        let _ = sys::fcntl(fd, libc::F_SETFL, (flags | libc::O_NONBLOCK) as usize);
    }
}

/// Makes a descriptor of the library's own that of this image, if it is still what it was.
pub fn take(fd: i32, inode: u64, sort: Sort) -> Option<i32> {
    let taken = is_ours(fd, sort) && is_still(fd, inode) && table::set_hidden(fd);
    if !taken {
        return None;
    }
    let _ = sys::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC as usize);
    never_blocks(fd);
    Some(fd)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hidden;

    #[test]
    fn only_what_is_said_to_be_there_is_taken() {
        let bell = hidden::hide(bell::create().unwrap()).unwrap();
        table::clear(bell);
        let [read, write] = sys::pipe(0).unwrap();
        let is = identity(bell);
        for (fd, inode, sort) in [
            (bell, is + 1, Sort::Bell),
            (bell, is, Sort::Memory),
            (bell, is, Sort::Local),
            (bell, is, Sort::Inet),
            (write, identity(write), Sort::Bell),
            (-1, 0, Sort::Pipe),
            (i32::MAX, 0, Sort::Pipe),
            (0, identity(0), Sort::Pipe),
            (1, identity(1), Sort::Pipe),
        ] {
            assert_eq!(take(fd, inode, sort), None, "{fd} as {sort:?}");
        }
        sys::fcntl(bell, libc::F_SETFL, 0).unwrap();
        assert_eq!(take(bell, is, Sort::Bell), Some(bell));
        let flags = sys::fcntl(bell, libc::F_GETFL, 0).unwrap();
        assert!(flags & libc::O_NONBLOCK != 0);
        assert_eq!(take(bell, is, Sort::Bell), None, "it is taken already");
        assert!(!is_here(bell, is));
        assert!(is_ours(read, Sort::Pipe));
        assert!(!is_here(read, identity(read)), "nothing of ours is a pipe");
        table::clear(bell);
        assert!(is_here(bell, is));
        hidden::close(bell);
        for fd in [read, write] {
            sys::close(fd).unwrap();
        }
    }
}
