//! XTI over Sockets: TCP and UDP of the kernel, IPv4 and IPv6, as transport providers. The other end may be any socket
//! program; small data is gathered before it goes to the kernel, and a TCP connection between two processes with the
//! library goes through shared memory as Fast Sockets do.
//!
//! ```text
//!   tcp, udp    the providers
//!   coalesce    what TCP holds back                         batch   the same for datagrams     pace   when it goes
//!   ahead       what TCP has read beyond what was asked for   run     large sends, which the kernel puts together
//!   connection  a hidden TCP socket, driven through Fast Sockets where they carry it
//!   keeper      sends what is held, when its endpoint ends and the kernel has no room
//!   back_pressure  keeps batches of datagrams from running over a receiver
//!   watching    when a receiver that waits had better look than sleep
//!   undelivered what the network says of datagrams that did not arrive
//!   settings    options by setsockopt(2)
//! ```

mod ahead;
mod back_pressure;
mod batch;
mod coalesce;
mod connection;
mod keeper;
mod pace;
mod run;
pub mod settings;
pub mod tcp;
pub mod udp;
pub mod undelivered;
mod watching;

use headwater_host::{hidden, sys};
use headwater_ipnet::Address;
use headwater_tpi::Refusal;
use headwater_tpi::error::{TACCES, TADDRBUSY, TBADADDR, TBUFOVFLW, TNOADDR, TNODATA};

pub use headwater_sockets::look::poll;

pub use crate::loopback::buffers::len as length;
use crate::loopback::buffers::scatter;
use crate::provider::{Datagram, Outcome};

/// A fresh socket of ours that does not block.
pub fn socket(v6: bool, kind: i32) -> Outcome<i32> {
    headwater_ipnet::socket::open(v6, kind, 0).map_err(Refusal::system)
}

/// A descriptor of the program's as one of ours.
pub fn hidden_copy(fd: i32) -> Option<i32> {
    sys::dup_above(fd, 3).and_then(hidden::hide_needed).ok()
}

pub fn bind(fd: i32, to: &Address) -> Outcome<()> {
    sys::bind(fd, to).map_err(|errno| match errno {
        libc::EADDRINUSE => Refusal::new(TADDRBUSY),
        libc::EACCES | libc::EPERM => Refusal::new(TACCES),
        libc::EADDRNOTAVAIL | libc::ENODEV => Refusal::new(TNOADDR),
        libc::EINVAL | libc::EAFNOSUPPORT => Refusal::new(TBADADDR),
        errno => Refusal::system(errno),
    })
}

pub fn local(fd: i32) -> Option<Address> {
    Address::of_storage(&sys::sock_name(fd, false).ok()?)
}

/// What a set says of a datagram socket, to a user for whom errors are something to be taken.
pub fn error_is_readable(events: u32) -> u32 {
    let gone = (libc::POLLERR | libc::POLLHUP) as u32;
    if events & gone != 0 {
        events & !gone | (libc::POLLIN | libc::POLLRDNORM) as u32
    } else {
        events
    }
}

/// Hands out `rest`, what is left of a datagram of which so many bytes were `taken`; `None`: nothing was told of it yet, and its
/// sender is told too. True: it is done with. So it is after TBUFOVFLW, the sender did not fit, and TNODATA: it has none.
#[inline]
pub fn hand_out(
    taken: &mut Option<usize>,
    from: impl FnOnce() -> Option<Address>,
    rest: &[u8],
    into: &mut Datagram<'_>,
) -> Outcome<bool> {
    let before = taken.take();
    if before.is_none() && !into.addr.is_empty() {
        let from = from().ok_or(Refusal::new(TNODATA))?;
        let room = into.addr.get_mut(..from.bytes().len());
        let room = room.ok_or(Refusal::new(TBUFOVFLW))?;
        room.copy_from_slice(from.bytes());
        into.addr_len = room.len();
    }
    into.data_len = scatter(into.data, rest);
    into.more = into.data_len < rest.len();
    *taken = into.more.then(|| before.unwrap_or(0) + into.data_len);
    Ok(!into.more)
}

/// SO_REUSEADDR.
pub fn is_reusable(fd: i32) -> bool {
    sys::sockopt::<i32>(fd, libc::SOL_SOCKET, libc::SO_REUSEADDR).is_ok_and(|on| on != 0)
}

/// What connectionless providers of IP say of themselves; `largest`: bytes of a datagram.
pub fn datagrams(largest: usize) -> headwater_tpi::Info {
    use headwater_tpi::prim::{SENDZERO, T_CLTS, T_INVALID};
    headwater_tpi::Info {
        tsdu: largest as i32,
        etsdu: T_INVALID,
        cdata: T_INVALID,
        ddata: T_INVALID,
        addr: size_of::<libc::sockaddr_in6>() as i32,
        opt: 1024,
        tidu: largest as i32,
        serv: T_CLTS,
        state: 0,
        provider_flag: SENDZERO,
    }
}
