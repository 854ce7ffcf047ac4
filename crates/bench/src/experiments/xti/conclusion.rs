//! XTI over sockets, by kind of provider, and what that was worth in 2007.

use super::datagrams::{SOCKETS, SOCKETS_MIXED, TICLTS, UDP, XTI_MIXED, XTI_TO_PLAIN};
use super::flow::{NAGLE, NODELAY, TICOTSORD, XTI, XTI_NODELAY, XTI_SHARED, highest};
use super::sockets;
use crate::conclude::{self, Pair};
use crate::conclusion::Conclusion;
use crate::experiment::{TCP, UNIX};
use crate::experiments::ranges::{self, Beside};
use crate::placement::Placement::{self, Apart, Free, Same};
use crate::report::CellReport;

const PLACEMENTS: &[Placement] = &[Apart, Same, Free];

const SMALL: Pair = Pair::new("64 bytes one way, over Nagle's", "tcp-64", XTI, NAGLE);
const DATAGRAMS: Pair = Pair::new(
    "datagrams of 64 bytes to recvfrom",
    "udp-64",
    XTI_TO_PLAIN,
    SOCKETS,
);
const TRIP: Pair = Pair::new("a round trip of 1 byte, over TCP", "rr-1", TICOTSORD, TCP);

const STREAM: [Pair; 12] = [
    Pair::new("1 byte one way, over Nagle's", "tcp-1", XTI, NAGLE),
    SMALL,
    Pair::new("1 KiB one way, over Nagle's", "tcp-1024", XTI, NAGLE),
    Pair::new("16 KiB one way, over Nagle's", "tcp-16384", XTI, NAGLE),
    Pair::new("1 byte, over no delay", "tcp-1", XTI, NODELAY),
    Pair::new("64 bytes, over no delay", "tcp-64", XTI, NODELAY),
    Pair::new("1 KiB, over no delay", "tcp-1024", XTI, NODELAY),
    Pair::new("16 KiB, over no delay", "tcp-16384", XTI, NODELAY),
    Pair::new(
        "1 byte, no delay over no delay",
        "tcp-1",
        XTI_NODELAY,
        NODELAY,
    ),
    Pair::new(
        "64 bytes, no delay over no delay",
        "tcp-64",
        XTI_NODELAY,
        NODELAY,
    ),
    Pair::new(
        "1 KiB, no delay over no delay",
        "tcp-1024",
        XTI_NODELAY,
        NODELAY,
    ),
    Pair::new(
        "16 KiB, no delay over no delay",
        "tcp-16384",
        XTI_NODELAY,
        NODELAY,
    ),
];

const DATAGRAM: [Pair; 6] = [
    DATAGRAMS,
    Pair::new("1 KiB to recvfrom", "udp-1024", XTI_TO_PLAIN, SOCKETS),
    Pair::new("64 bytes, both ends XTI", "udp-64", XTI, SOCKETS),
    Pair::new("1 KiB, both ends XTI", "udp-1024", XTI, SOCKETS),
    Pair::new(
        "64 bytes, sizes and receivers mixed",
        "udp-64",
        XTI_MIXED,
        SOCKETS_MIXED,
    ),
    Pair::new(
        "1 KiB, sizes and receivers mixed",
        "udp-1024",
        XTI_MIXED,
        SOCKETS_MIXED,
    ),
];

const WITHIN: [Pair; 17] = [
    Pair::new(
        "64 bytes on /dev/tcp, carried over not carried",
        "carried-64",
        XTI_SHARED,
        XTI,
    ),
    Pair::new(
        "64 bytes on /dev/tcp, carried over Nagle's",
        "carried-64",
        XTI_SHARED,
        NAGLE,
    ),
    Pair::new(
        "16 KiB on /dev/tcp, carried over not carried",
        "carried-16384",
        XTI_SHARED,
        XTI,
    ),
    Pair::new(
        "64 bytes, ticotsord over Nagle's",
        "cots-64",
        TICOTSORD,
        NAGLE,
    ),
    Pair::new(
        "1 KiB, ticotsord over Nagle's",
        "cots-1024",
        TICOTSORD,
        NAGLE,
    ),
    Pair::new(
        "16 KiB, ticotsord over Nagle's",
        "cots-16384",
        TICOTSORD,
        NAGLE,
    ),
    Pair::new("64 bytes, ticotsord over UNIX", "cots-64", TICOTSORD, UNIX),
    Pair::new("1 KiB, ticotsord over UNIX", "cots-1024", TICOTSORD, UNIX),
    Pair::new("16 KiB, ticotsord over UNIX", "cots-16384", TICOTSORD, UNIX),
    Pair::new(
        "datagrams of 64 bytes, ticlts over UDP",
        "clts-64",
        TICLTS,
        UDP,
    ),
    Pair::new(
        "datagrams of 1 KiB, ticlts over UDP",
        "clts-1024",
        TICLTS,
        UDP,
    ),
    Pair::new(
        "datagrams of 64 bytes, ticlts over UNIX",
        "clts-64",
        TICLTS,
        UNIX,
    ),
    Pair::new(
        "datagrams of 1 KiB, ticlts over UNIX",
        "clts-1024",
        TICLTS,
        UNIX,
    ),
    TRIP,
    Pair::new("a round trip of 1 byte, over UNIX", "rr-1", TICOTSORD, UNIX),
    Pair::new("a connection, over TCP", "connect", TICOTSORD, TCP),
    Pair::new("a connection, over UNIX", "connect", TICOTSORD, UNIX),
];

pub fn conclude(cells: &[CellReport]) -> Conclusion {
    let headlines = [
        SMALL.headline(
            cells,
            &[Apart, Same],
            "XTI over TCP to a plain receiver, over a plain sender",
        ),
        DATAGRAMS.headline(
            cells,
            &[Apart, Same],
            "XTI over UDP to a plain receiver, over sendto",
        ),
        TRIP.headline(
            cells,
            &[Same, Apart],
            "XTI's loop-back provider, over TCP with TCP_NODELAY",
        ),
    ];
    let stream = (
        "stream",
        "XTI on the kernel's TCP, over plain senders; the receiver is plain",
        "Without T_TCP_NODELAY XTI gathers small messages, as the kernel does by Nagle's algorithm.",
    );
    let datagram = (
        "datagrams",
        "XTI on the kernel's UDP, over sockets",
        "Datagrams delivered. Runs of one size to one receiver go together, which mixed ones cannot.",
    );
    let within = (
        "within",
        "XTI's loop-back providers, over sockets within the host",
        "ticotsord is a connection, ticlts carries datagrams.",
    );
    let of_kinds = [
        (stream, STREAM.as_slice()),
        (datagram, DATAGRAM.as_slice()),
        (within, WITHIN.as_slice()),
    ];
    let plots = of_kinds.map(|(titles, pairs)| conclude::bars(titles, pairs, PLACEMENTS, cells));
    let all = of_kinds.map(|(_, pairs)| pairs).concat();
    let sheet = conclude::ratios(("ratios", "XTI: ratios"), &all, cells);
    let rival = sockets(highest().0);
    let tcp = [(0, NAGLE), (1, rival), (2, XTI)].map(beside);
    let udp = [(0, SOCKETS), (1, XTI)].map(beside);
    let mut seeds = ranges::TCP.seeds(cells, "tcp", &tcp);
    seeds.extend(ranges::UDP.seeds(cells, "udp", &udp));
    Conclusion {
        sheets: sheet.into_iter().collect(),
        plots: plots.into_iter().flatten().collect(),
        headlines: headlines.into_iter().flatten().collect(),
        seeds,
        ..Conclusion::default()
    }
}

fn beside((column, arm): (usize, crate::experiment::Arm)) -> Beside {
    Beside { column, arm }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;

    #[test]
    fn what_is_compared_is_measured() {
        let cells = crate::experiments::xti::experiment().cells();
        let pairs = [STREAM.as_slice(), DATAGRAM.as_slice(), WITHIN.as_slice()].concat();
        conclude::assert_known(&pairs, &cells);
    }
}
