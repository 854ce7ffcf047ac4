//! Who holds the other end of a connection, as the kernel knows it: before memory is shared with another user.
//!
//! What stands on the board proves nothing where others may write there, and the credentials of a pair link only tell who
//! sent the memory. So the kernel is asked for the socket at the other end of this very connection (sock_diag(7), which needs
//! no privilege): its user must be the link's. A server that gave up its user after it made the socket stays on TCP.

use headwater_host::netlink::{Netlink, SocketId, SocketTold};
use headwater_host::{board, sys};

type SockDiag = Netlink<{ libc::NETLINK_SOCK_DIAG }>;

const ESTABLISHED: u8 = 1;

/// Is the other end of the connection `fd` an established socket of user `uid`? False when in doubt.
pub fn other_end_is_of(fd: i32, uid: u32) -> bool {
    ends(fd).is_some_and(|(own, other)| {
        let inode = sys::fstat(fd).map_or(0, |st| st.st_ino as u32);
        // The own end is asked for last. Established still, it was so when the other one was looked at, and two established
        // connections of one network namespace don't have the same addresses; that the namespace is right, the inode tells.
        let established = own.state == ESTABLISHED && other.state == ESTABLISHED;
        established && own.inode == inode && other.inode != 0 && other.uid == uid
    })
}

/// What the kernel says of the own and the other end.
fn ends(fd: i32) -> Option<(SocketTold, SocketTold)> {
    let (family, id) = id_of(fd)?;
    let turned = SocketId {
        sport: id.dport,
        dport: id.sport,
        src: id.dst,
        dst: id.src,
        ..id
    };
    let mut netlink = Netlink::default();
    let other = ask(&mut netlink, family, turned);
    let own = ask(&mut netlink, family, id);
    Some((own?, other?))
}

fn ask(netlink: &mut SockDiag, family: u8, id: SocketId) -> Option<SocketTold> {
    let mut answer = [0; 512];
    let kind = (family, libc::IPPROTO_TCP);
    let (told, _) = netlink.ask_of_socket(kind, id, 0, &mut answer)?;
    // Where there is no such connection, the kernel may show a listening socket instead.
    let shown = SocketId {
        cookie: id.cookie,
        interface: 0,
        ..told.id
    };
    (plain(told.family, shown) == (family, id)).then_some(told)
}

/// IPv4-mapped addresses as what they stand for.
fn plain(family: u8, mut id: SocketId) -> (u8, SocketId) {
    const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
    if family as i32 != libc::AF_INET6 || id.src[..12] != MAPPED {
        return (family, id);
    }
    for addr in [&mut id.src, &mut id.dst] {
        addr.copy_within(12.., 0);
        addr[4..].fill(0);
    }
    (libc::AF_INET as u8, id)
}

/// Family and addresses of a socket's own end.
fn id_of(fd: i32) -> Option<(u8, SocketId)> {
    let name = |peer| board::addr_of(&sys::sock_name(fd, peer).ok()?);
    let (own, other) = (name(false)?, name(true)?);
    let id = SocketId {
        sport: own.port.to_be_bytes(),
        dport: other.port.to_be_bytes(),
        src: own.ip.to_be_bytes(),
        dst: other.ip.to_be_bytes(),
        ..SocketId::default()
    };
    Some(plain(libc::AF_INET6 as u8, id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    fn pair(listen: &str, call: &str) -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(listen).unwrap();
        let to = SocketAddr::new(call.parse().unwrap(), listener.local_addr().unwrap().port());
        let client = TcpStream::connect(to).unwrap();
        (client, listener.accept().unwrap().0)
    }

    #[test]
    fn both_ends_are_known_by_their_user() {
        let me = sys::getuid();
        for (listen, call) in [
            ("127.0.0.1:0", "127.0.0.1"),
            ("[::1]:0", "::1"),
            ("[::]:0", "127.0.0.1"),
            ("[::]:0", "::ffff:127.0.0.1"),
            ("0.0.0.0:0", "::ffff:127.0.0.1"),
        ] {
            let (client, server) = pair(listen, call);
            for end in [&client, &server] {
                assert!(other_end_is_of(end.as_raw_fd(), me), "{listen} {call}");
                assert!(!other_end_is_of(end.as_raw_fd(), me + 1));
            }
        }
    }

    #[test]
    fn a_connection_that_nobody_has_accepted_is_nobodys() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        for uid in [0, sys::getuid()] {
            assert!(!other_end_is_of(client.as_raw_fd(), uid));
        }
    }

    #[test]
    fn an_end_that_was_closed_is_nobodys() {
        let (client, server) = pair("127.0.0.1:0", "127.0.0.1");
        drop(client);
        for uid in [0, sys::getuid()] {
            assert!(!other_end_is_of(server.as_raw_fd(), uid));
        }
    }
}
