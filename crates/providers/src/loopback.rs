//! The loop-back providers: ticots and ticotsord (connections), ticlts (datagrams), between processes of one user.
//!
//! ```text
//!   connection       Circuit: an endpoint for connections       listening    requests that came and are not answered
//!   link             one end of a connection: the frames in its ring, and what they mean
//!   connectionless   Mailbox: an endpoint for datagrams         directory    how a sender finds the ring of an address
//!   name             addresses, as names of UNIX sockets        pool         pipes kept for other connections
//!   buffers          the program's memory                        idle_sockets sockets kept for other connections
//!   request          what a caller and a listener say to each other before there is a link
//! ```
//!
//! Data goes through the ring of a pipe (streams::pipe) and nothing else: a frame is a data unit, or a part of one. A UNIX
//! socket under a name that stands for the address carries what a ring can't: requests with the descriptors of the pipe, and
//! the news that a process is gone. Such a name goes when its owner does, so nothing is left behind.

pub mod buffers;
pub mod connection;
pub mod connectionless;
pub mod directory;
pub mod idle_sockets;
pub mod link;
pub mod listening;
pub mod name;
pub mod pool;
pub mod request;
pub mod sizes;

use headwater_tpi::error::{TBADADDR, TBADDATA, TBADOPT};
use headwater_tpi::prim::{SENDZERO, T_CLTS, T_COTS, T_COTS_ORD, T_INFINITE, T_INVALID, XPG4_1};
use headwater_tpi::{Info, Refusal};

use crate::provider::Outcome;

pub use headwater_streams::pipe::Owned;

/// Most bytes of an address, of options, and of data with a request, an answer or a disconnection.
pub const MOST: usize = 1024;
/// Most bytes of a datagram.
pub const MOST_DATAGRAM: usize = 65000;

/// One of the three providers, the rings of /dev/udp2, or SCTP within a host. Addresses of one mean nothing to the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Space {
    Ticlts,
    Ticots,
    Ticotsord,
    Udp2,
    Sctp,
}

impl Space {
    fn info(self) -> Info {
        let (tsdu, etsdu, with, serv) = match self {
            Space::Ticlts | Space::Udp2 => (MOST_DATAGRAM as i32, T_INVALID, T_INVALID, T_CLTS),
            Space::Ticots => (T_INFINITE, T_INFINITE, MOST as i32, T_COTS),
            Space::Ticotsord => (T_INFINITE, T_INFINITE, MOST as i32, T_COTS_ORD),
            Space::Sctp => (T_INFINITE, T_INFINITE, T_INVALID, T_COTS_ORD),
        };
        Info {
            tsdu,
            etsdu,
            cdata: with,
            ddata: with,
            addr: MOST as i32,
            opt: MOST as i32,
            tidu: link::PIECE as i32,
            serv,
            state: 0,
            provider_flag: SENDZERO | XPG4_1,
        }
    }
}

fn check_address(addr: &[u8]) -> Outcome<()> {
    let fits = (1..=MOST).contains(&addr.len());
    fits.then_some(()).ok_or(Refusal::new(TBADADDR))
}

fn check_options(opts: &[u8]) -> Outcome<()> {
    if opts.len() > MOST {
        return Err(Refusal::new(TBADOPT));
    }
    headwater_tpi::option::Options::all(opts)?;
    Ok(())
}

fn check_user_data(data: &[u8]) -> Outcome<()> {
    let fits = data.len() <= MOST;
    fits.then_some(()).ok_or(Refusal::new(TBADDATA))
}
