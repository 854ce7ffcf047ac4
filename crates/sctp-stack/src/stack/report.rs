//! What the stack and its associations look like to who asks for [statistics](crate::stat).

use core::fmt::Write;

use headwater_host::{json, process, sys};
use headwater_sctp::association::State;
use headwater_sctp::{Association, Path, PathState};

use super::{Stack, existing};
use crate::stat::ENOUGH;

/// The first line tells where the next page begins; it is empty on the last. `None`: there is no stack to tell of.
pub fn page(from: usize) -> Option<String> {
    let stack = existing()?;
    let mut lines = String::new();
    if from == 0 {
        let _ = write_process(&mut lines, stack);
    }
    let mut at = 0;
    for served in stack.all_sorted() {
        let Ok(inner) = served.enter() else { break };
        for association in inner.engine.associations() {
            at += 1;
            if at <= from {
                continue;
            }
            let _ = write_association(&mut lines, association);
            if lines.len() >= ENOUGH {
                return Some(format!("{at}\n{lines}"));
            }
        }
    }
    Some(format!("\n{lines}"))
}

fn write_process(out: &mut String, stack: &Stack) -> core::fmt::Result {
    json::object(out, |o| {
        o.number("pid", process::pid().max(sys::getpid()))?;
        o.list("links", stack.links(), |out, link| {
            json::text(out, link.name().as_bytes())
        })?;
        o.list("ports", stack.all_sorted(), |out, served| {
            write!(out, "{}", served.port)
        })
    })?;
    out.write_char('\n')
}

fn write_association(out: &mut String, a: &Association) -> core::fmt::Result {
    let stats = a.stats();
    json::object(out, |o| {
        o.number("local_port", a.local_port())?;
        o.number("peer_port", a.peer_port())?;
        o.text("state", state(a.state()).as_bytes())?;
        o.number("streams_out", a.sender().streams())?;
        o.number("streams_in", a.receiver().streams())?;
        o.number("messages_in", stats.messages_in)?;
        o.number("messages_out", stats.messages_out)?;
        o.number("bytes_in", stats.bytes_in)?;
        o.number("bytes_out", stats.bytes_out)?;
        o.number("packets_in", stats.packets_in)?;
        o.number("packets_out", stats.packets_out)?;
        o.number("timeouts", stats.timeouts)?;
        o.number("buffered", a.sender().buffered())?;
        o.number("outstanding", a.sender().outstanding())?;
        o.number("peer_window", a.sender().peer_window())?;
        o.number("window", a.receiver().window())?;
        let primary = a.primary();
        o.list("paths", a.paths().iter(), |out, (id, path)| {
            write_path(out, path, id == primary)
        })
    })?;
    out.write_char('\n')
}

fn write_path(out: &mut dyn Write, path: &Path, primary: bool) -> core::fmt::Result {
    let state = match path.state {
        PathState::Unconfirmed => "unconfirmed",
        PathState::Active => "active",
        PathState::PotentiallyFailed => "potentially failed",
        PathState::Inactive => "inactive",
    };
    let smoothed = path.rto.smoothed().map_or(0, |d| d.as_micros());
    json::object(out, |o| {
        o.text("address", path.addr.to_string().as_bytes())?;
        o.number("udp_port", path.encap.unwrap_or(0))?;
        o.flag("primary", primary)?;
        o.text("state", state.as_bytes())?;
        o.number("srtt_us", smoothed)?;
        o.number("rto_ms", path.rto.current().as_millis())?;
        o.number("cwnd", path.window.window())?;
        o.number("ssthresh", path.window.threshold())?;
        o.number("flight", path.flight)?;
        o.number("mtu", path.mtu)?;
        o.number("errors", path.errors)?;
        o.number("retransmissions", path.retransmissions)
    })
}

fn state(state: State) -> &'static str {
    match state {
        State::Closed => "closed",
        State::CookieWait => "cookie-wait",
        State::CookieEchoed => "cookie-echoed",
        State::Established => "established",
        State::ShutdownPending => "shutdown-pending",
        State::ShutdownSent => "shutdown-sent",
        State::ShutdownReceived => "shutdown-received",
        State::ShutdownAckSent => "shutdown-ack-sent",
    }
}
