//! SCTP for programs that use sockets (RFC 6458, Linux's names and numbers), on kernels that have none.
//!
//! ```text
//!   face        descriptors: number -> socket, dup, fork, poll and epoll            remote     sockets of the parent, after a fork
//!   opening     bind, listen, connect, accept, peeloff      ending      shutdown, close, linger
//!   sending     sendmsg and its kind                        receiving   recvmsg: messages and notifications, in their order
//!   gathering   what has happened: new associations, events, ends                  naming     addresses, given and told
//!   options     setsockopt, getsockopt                      waiting     for what a blocking call waits for
//!   abi, control, notice    Linux's structs: options, control messages, notifications
//! ```
//!
//! A socket's state is behind one lock, which no call holds while it waits. Its number is a UNIX datagram socket of its own
//! that nobody can reach: the kernel knows that there is a descriptor, and we what it means.

use core::net::IpAddr;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, OnceLock, Weak};

use headwater_host::sync::{AtomicBool, AtomicU32, AtomicU64};
use headwater_host::sys;
use headwater_providers::loopback::Owned;
use headwater_providers::loopback::listening::Listening;
use headwater_sctp::endpoint::AssocId;
use headwater_sctp::event::Down;
use headwater_sctp_stack::addresses::Addresses;
use headwater_sctp_stack::guarded::Guarded;
use headwater_sctp_stack::port::Port;
use headwater_sctp_stack::sink::Sink;

use self::control::SendInfo;
use self::options::{AssocOptions, Options};
use self::waiting::For;

/// Has the owner do it, where the socket is another process's.
macro_rules! elsewhere {
    ($socket:ident.$verb:ident($($value:expr),*)) => {
        if let Some(remote) = $socket.remote.get() {
            return remote.$verb($socket, $($value),*);
        }
    };
}

pub mod abi;
pub mod control;
pub mod face;
mod notice;
pub mod options;
pub mod remote;

mod ending;
mod gathering;
mod naming;
mod opening;
mod receiving;
mod sending;
mod waiting;

pub use headwater_sctp_stack::body::Body;
pub use receiving::{Peeked, Receiving};
pub use sending::Sending;
pub use waiting::Source;

/// Makes SCTP sockets possible in this process. Once, at start.
pub fn start() {
    use headwater_host::table::{Kind, register};
    register(Kind::Sctp, &face::Sctps);
}

/// sctp_assoc_t. Real ones begin behind Linux's words for future, current and all associations.
pub type AssocT = i32;
pub const FIRST: AssocT = 3;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// SOCK_STREAM.
    One,
    /// SOCK_SEQPACKET.
    Many,
}

/// What one open file description is.
pub struct Socket {
    pub style: Style,
    /// AF_INET6.
    pub v6: bool,
    pub nonblocking: AtomicBool,
    /// What comes from the stack.
    pub sink: Arc<Sink>,
    /// Changes with each arrival and each return of room: for edge-triggered sets.
    pub edges: AtomicU64,
    /// Calls that may wait; the last descriptor was closed meanwhile.
    pub waiters: AtomicU32,
    pub abandoned: AtomicBool,
    /// It is the parent's, in the child of a fork.
    pub remote: OnceLock<remote::Remote>,
    pub(crate) core: Guarded<Core>,
}

/// Its state.
pub struct Core {
    pub style: Style,
    pub v6: bool,
    pub sink: Arc<Sink>,
    pub options: Options,
    /// The port and addresses, once there are any.
    pub local: Option<Addresses>,
    /// The port's names, which keep it from others of this host, and by which they find it.
    pub names: Vec<Owned>,
    /// Peers that use shared memory.
    pub memory_listener: Option<Listening>,
    /// Packets.
    pub port: Option<Port>,
    pub listening: bool,
    pub backlog: usize,
    pub assocs: BTreeMap<AssocT, Box<Assoc>>,
    /// By the peer's addresses and port; by port and number in the stack; those in shared memory.
    pub peers: HashMap<(IpAddr, u16), AssocT>,
    pub ids_by_packets: HashMap<(u16, AssocId), AssocT>,
    pub ids_by_memory: Vec<AssocT>,
    /// Associations that may have something to receive or to tell.
    pub ready: VecDeque<AssocT>,
    /// Peers whose associations became sockets of their own.
    pub peeled: Vec<((IpAddr, u16), Weak<Socket>)>,
    /// One-to-one, listening: those that nobody has accepted yet, of `assocs`.
    pub waiting: VecDeque<AssocT>,
    /// To be received before anything else, whole.
    pub notices: VecDeque<Notice>,
    /// A message that was looked at.
    pub peeked: Option<Peeked>,
    /// Whose message is received in parts, and is to be received whole before any other.
    pub current: Option<AssocT>,
    /// What the signal counted when everything was looked at last.
    pub seen: u32,
    /// SO_ERROR.
    pub error: i32,
    pub read_shut: bool,
    /// It was connected once.
    pub was_connected: bool,
    pub closed: bool,
    pub tally: face::count::Tally,
    /// Sources of readiness have come or gone.
    pub changes: u64,
    /// When all rings were looked at, of many.
    pub looked_at: u64,
    /// So many more messages may be received before everything is looked at.
    pub hurries: u32,
    /// When peers that use shared memory were looked for.
    pub sought_at: u64,
    /// Why a peer of this host that has come could not be let in: EMFILE, ENFILE, ENOMEM.
    pub lacking: Option<sys::Errno>,
    /// One-to-many: associations of which a call that does not wait was told that there is no room.
    pub full: Vec<AssocT>,
}

/// An association of a socket.
pub struct Assoc {
    pub id: AssocT,
    pub body: Body,
    pub options: AssocOptions,
    pub state: State,
    /// Why it is over.
    pub down: Option<Down>,
    /// The user has ended its own direction; the peer has.
    pub released: bool,
    pub peer_released: bool,
    /// Told when everything before was received.
    pub late: VecDeque<Notice>,
    /// In `Core::ready`.
    pub listed: bool,
    /// The program was told that there is no room, and has not sent anything since.
    pub told_full: bool,
    /// A call waits until it is there, or can't be.
    pub awaited: bool,
    /// In `Core::peers`.
    pub names: Vec<(IpAddr, u16)>,
    /// Whom messages are said to be from: the primary address.
    pub peer: (IpAddr, u16),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    Calling,
    Up,
    Over,
}

impl Assoc {
    fn notice(&self, bytes: Vec<u8>) -> Notice {
        Notice {
            assoc: self.id,
            peer: self.peer,
            bytes,
            taken: 0,
        }
    }
}

/// An encoded notification.
pub struct Notice {
    pub assoc: AssocT,
    /// The peer, whose association may be gone when it is received.
    pub peer: (IpAddr, u16),
    pub bytes: Vec<u8>,
    /// Bytes of it that were received.
    pub taken: usize,
}
