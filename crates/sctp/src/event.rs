//! What an association tells its user (RFC 6458 section 6 has the same as notifications).

use core::net::IpAddr;

use crate::PathState;
use crate::send::Failed;
use crate::wire::CauseOwned;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// The association is there.
    Up {
        by_peer: bool,
    },
    /// The peer has lost its state and begun anew: what was not acknowledged is lost.
    Restarted,
    /// The peer has shut down: it sends nothing more, and takes nothing new.
    PeerShutdown,
    /// The association is over. What came before can still be received.
    Down(Down),
    /// There is something to receive, and there was not before.
    Readable,
    /// There is room again, after a send that found none.
    Writable,
    /// Everything sent was acknowledged.
    Dry,
    /// A message was given up.
    SendFailed(Failed),
    Path {
        addr: IpAddr,
        change: PathChange,
    },
    /// The peer reports errors.
    RemoteError(Vec<CauseOwned>),
    /// Streams start anew with number 0; no list: all of them.
    StreamsReset {
        incoming: bool,
        streams: Vec<u16>,
        outcome: Outcome,
    },
    StreamsAdded {
        incoming: u16,
        outgoing: u16,
        outcome: Outcome,
    },
    /// All TSNs and streams of the association start anew.
    Reset {
        outcome: Outcome,
    },
    Adaptation(u32),
    /// What was asked of the peer's addresses by ASCONF has its answer.
    AddressDone {
        addr: IpAddr,
        outcome: Outcome,
    },
    /// The peer does not authenticate.
    NoAuthentication,
    /// The peer uses a new key.
    NewKey(u16),
    /// A key that was deactivated is not used any more.
    KeyFree(u16),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Done,
    /// The peer refused.
    Denied,
    Failed,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathChange {
    State(PathState),
    Added,
    Removed,
    MadePrimary,
    Confirmed,
}

impl Event {
    /// A peer can cause as many of these as it likes, and a user who has missed some is not misled.
    pub(crate) fn may_be_dropped(&self) -> bool {
        matches!(
            self,
            Event::Dry
                | Event::Path { .. }
                | Event::RemoteError(_)
                | Event::StreamsReset { incoming: true, .. }
                | Event::StreamsAdded { outgoing: 0, .. }
                | Event::NewKey(_)
        )
    }
}

/// Why an association is over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Down {
    /// Both sides shut down.
    Shutdown,
    /// By an ABORT.
    Aborted {
        by_peer: bool,
        causes: Vec<CauseOwned>,
    },
    /// Too many retransmissions without an answer.
    Unreachable,
    /// Nobody answered, or the network said that nobody is there.
    SetupFailed { refused: bool },
}
