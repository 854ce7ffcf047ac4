//! Programs that use SCTP by sockets, served by the library, where the kernel has none: against XTI's face of the same transport, iperf3,
//! and short associations against the kernel's TCP.

use std::process::Command;

use super::super::apps::received;
use super::Work;
use crate::carriage::Proof;
use crate::exchange::Exchange;
use crate::experiment::{Arm, Carrier, Cell, Job, Sample, TCP, Unit, streams};
use crate::experiments::xti::pair::{End, Pair, Way};
use crate::failure::Result;
use crate::machine;
use crate::placement::Placement::Apart;
use crate::port;
use crate::tools;

pub const SOCKETS: Arm = streams("sockets");
pub const SOCKETS_UDP: Arm = streams("sockets-udp");
/// The same as byte streams: HW_SCTP_BYTE_STREAM.
pub const BYTES: Arm = streams("bytes");
pub const BYTES_UDP: Arm = streams("bytes-udp");
const AS_BYTES: (&str, &str) = ("HEADWATER_SCTP_BYTE_STREAM", "1");
/// A kernel that has SCTP would serve them itself.
const OURS: (&str, &str) = ("HEADWATER_SCTP", "always");
const BY_UDP: (&str, &str) = ("HEADWATER_SCTP_LINK", "udp");

/// Both ends are sockets.
pub fn shared() -> Way {
    Way {
        sender: End::socket("sctp"),
        receiver: End::socket("sctp"),
        ..Way::both(SOCKETS, "sctp").under(&[OURS])
    }
}

pub fn on_the_wire() -> Way {
    Way {
        arm: SOCKETS_UDP,
        ..shared().under(&[OURS, BY_UDP])
    }
}

/// Both ends are sockets without the bounds of messages.
pub fn shared_bytes() -> Way {
    Way {
        arm: BYTES,
        ..shared().under(&[OURS, AS_BYTES])
    }
}

pub fn bytes_on_the_wire() -> Way {
    Way {
        arm: BYTES_UDP,
        ..shared().under(&[OURS, BY_UDP, AS_BYTES])
    }
}

pub fn works() -> Vec<Box<dyn Work>> {
    vec![
        Box::new(calls()),
        Box::new(Iperf {
            name: "iperf3-shm",
            link: "auto",
        }),
        Box::new(Iperf {
            name: "iperf3-udp",
            link: "udp",
        }),
    ]
}

/// Connect, send, close, one after the other.
fn calls() -> Pair {
    const WORDS: &[&str] = &["--greeting"];
    let ways = vec![
        Way::both(TCP, "tcp").with(WORDS),
        shared().with(WORDS),
        on_the_wire().with(WORDS),
    ];
    let name = "connect-send-close".to_string();
    Pair::new(name, "connects", Unit::Rate, 1, ways)
}

/// iperf3 --sctp with writes of 128 KiB.
struct Iperf {
    name: &'static str,
    link: &'static str,
}

const IPERF: Arm = Arm {
    carrier: Carrier::Accelerated,
    ..SOCKETS
};

impl Work for Iperf {
    fn cell(&self) -> Cell {
        Cell {
            placements: &[Apart],
            proof: Proof::Loaded,
            // It knows whole seconds alone.
            stretch: 5.0,
            ..Cell::new(self.name, Unit::Stream, vec![IPERF])
        }
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        let number = machine::free_port()?;
        let digits = number.to_string();
        let command = |words: &[&str]| -> Result<Command> {
            let mut command = Command::new(tools::installed("iperf3")?);
            command.args(words).args(["-p", &digits]);
            command.envs([OURS, ("HEADWATER_SCTP_LINK", self.link)]);
            Ok(command)
        };
        let server = command(&["-s", "-1", "-B", "127.0.0.1"])?;
        let ready = |_: &_| port::is_served(number);
        let exchange = Exchange::serve(job, "iperf3 server", server, ready)?;
        let seconds = job.whole_seconds().to_string();
        let words = [
            "-c",
            "127.0.0.1",
            "--sctp",
            "-l",
            "128K",
            "-J",
            "-t",
            &seconds,
        ];
        let outcome = exchange.run("iperf3", command(&words)?, Some(libc::SIGTERM))?;
        received(&outcome)
    }
}
