//! One way at every size, as netperf's TCP ranges do it: TCP with and without Nagle, at artificial priorities, the faces that
//! Headwater gives the same work, UNIX sockets, and SCTP as the third subject.

use super::ranges;
use super::sctp::SCTP_MORE;
use super::work::{Works, boxed};
use super::xti::flow::{PLAIN, XTI_SHARED, flow, highest, rival};
use super::xti::pair::{End, Pair, Way};
use super::xti::sockets;
use crate::cells::CellReport;
use crate::conclusion::Conclusion;
use crate::experiment::{ACCELERATED, ACCELERATED_NODELAY, Arm, TCP, TCP_NODELAY, UNIX, streams};

/// By powers of two; the most telling first.
pub const SIZES: [usize; 15] = [
    64, 1024, 16384, 1, 4096, 256, 16, 2, 4, 8, 32, 128, 512, 2048, 8192,
];
const WORK: &str = "tcp";

const XTI: Arm = streams("xti");
const TICOTSORD: Arm = streams("ticotsord");
const SCTP: Arm = streams("sctp");

pub fn experiment() -> Works {
    Works::new(WORK, boxed(SIZES.map(stream)), conclude)
}

fn stream(size: usize) -> Pair {
    let fast = |arm| Way {
        arm,
        sender: End::socket("tcp"),
        receiver: End::socket("tcp"),
        ..Way::both(arm, "tcp")
    };
    let ways = vec![
        Way {
            arm: TCP,
            ..PLAIN[0]
        },
        Way {
            arm: TCP_NODELAY,
            ..PLAIN[1]
        },
        rival(),
        Way::both(XTI, "/dev/tcp").by_kernel(),
        Way::both(XTI_SHARED, "/dev/tcp"),
        Way::both(TICOTSORD, "/dev/ticotsord"),
        fast(ACCELERATED),
        fast(ACCELERATED_NODELAY).with(&["--nodelay"]),
        Way::both(UNIX, "unix"),
        // A data unit that never ends, as netperf has it, and one for each message.
        Way::both(SCTP_MORE, "/dev/sctp_t").with(&["--more"]),
        Way::both(SCTP, "/dev/sctp_t"),
    ];
    flow(WORK, size, ways)
}

fn conclude(cells: &[CellReport]) -> Conclusion {
    let sockets = sockets(highest().0);
    let beside = [(0, TCP), (1, sockets), (2, XTI), (3, SCTP_MORE)];
    ranges::TCP.conclude(cells, WORK, &beside)
}

#[cfg(test)]
mod tests;
