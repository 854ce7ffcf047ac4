//! What a process tells of its associations: `headwater stat sctp` asks each for it by an abstract UNIX name. One datagram asks
//! ("from association N on"), one answers: as many as fit, and how to go on. Only the same user and root are answered.

use core::fmt::Write;
use core::time::Duration;

use headwater_host::{hidden, json, process, sys};
use headwater_sctp::association::{Association, State};
use headwater_sctp::path::{Path, PathState};

use super::registry::{Name, named, receive_from, receive_trusted, send_to};
use super::stack::{self, Stack};

/// Bytes in an answer, but for the last association in it.
const ENOUGH: usize = 48 << 10;
const LARGEST: usize = 128 << 10;

/// Where this process is asked. Hidden.
pub fn open() -> sys::Result<i32> {
    named(&Name::stat(sys::getuid(), sys::getpid() as u32))
}

/// Answers those who have asked.
pub fn answer(fd: i32) {
    if fd < 0 {
        return;
    }
    let mut question = [0; 32];
    while let Some((len, asker)) = receive_trusted(fd, &mut question) {
        let text = core::str::from_utf8(&question[..len]).ok();
        if let (Some(from), Some(stack)) = (text.and_then(|t| t.parse().ok()), stack::existing()) {
            let _ = send_to(fd, &asker, page(stack, from).as_bytes());
        }
    }
}

/// Processes that can be asked in this network namespace, by name: user and process id.
pub fn processes() -> Vec<(u32, u32)> {
    // Others give names that are no text.
    let all = std::fs::read("/proc/net/unix").unwrap_or_default();
    let all = String::from_utf8_lossy(&all);
    let names = all
        .lines()
        .filter_map(|line| line.split_whitespace().last());
    let mut found: Vec<_> = names.filter_map(Name::parse_stat).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// What a process tells: JSON objects, the first of them about the process, the others of one association each. EACCES: it belongs
/// to another user; ETIMEDOUT: it has not answered; ECONNREFUSED: it is gone.
pub fn ask(uid: u32, pid: u32) -> sys::Result<Vec<String>> {
    let fd = named(&Name::anonymous())?;
    let all = ask_at(fd, &Name::stat(uid, pid), uid);
    hidden::close(fd);
    all
}

fn ask_at(fd: i32, name: &Name, uid: u32) -> sys::Result<Vec<String>> {
    let mut all = Vec::new();
    let mut buffer = vec![0; LARGEST];
    let mut from = 0usize;
    loop {
        send_to(fd, name, from.to_string().as_bytes())?;
        let mut set = [libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        }];
        if sys::ppoll(&mut set, Some(Duration::from_secs(2).as_nanos() as u64))? == 0 {
            return Err(libc::ETIMEDOUT);
        }
        let Some((len, _)) = receive_from(fd, &mut buffer, uid) else {
            continue;
        };
        if len == 0 {
            // Of somebody else.
            continue;
        }
        let text = core::str::from_utf8(&buffer[..len]).map_err(|_| libc::EBADMSG)?;
        let mut lines = text.lines();
        let next = lines.next().unwrap_or("");
        all.extend(lines.map(String::from));
        match next.parse::<usize>() {
            Ok(next) if next > from => from = next,
            _ => return Ok(all),
        }
    }
}

/// The first line tells where the next page begins; it is empty on the last.
fn page(stack: &Stack, from: usize) -> String {
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
                return format!("{at}\n{lines}");
            }
        }
    }
    format!("\n{lines}")
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
