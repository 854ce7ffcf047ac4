//! From the user's board to what is shown. Nothing on the board is trusted: it is only printed.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use headwater_channel::lock::Owner;
use headwater_host::board::{self, Addr, Board, OpenError};
use headwater_host::{process, sys};

use super::{Connection, Listener, Snapshot};

/// Reads the board; an absent one is empty.
pub fn read() -> Result<Snapshot, String> {
    process::identify();
    let folder = board::folder();
    let board = match Board::open(&folder, false) {
        Ok(board) => board,
        Err(OpenError::Failed(_, libc::ENOENT)) => return Ok(Snapshot::default()),
        Err(problem) => return Err(explain(&folder, &problem)),
    };
    let now = sys::now() / 1_000_000_000;
    let mut connections: Vec<Connection> = board
        .connections()
        .iter()
        .map(|c| Connection {
            local: shown(c.tuple.client),
            remote: shown(c.tuple.server),
            client_pid: c.client.pid(),
            client_comm: comm(c.client),
            server_pid: c.server.pid(),
            server_comm: comm(c.server),
            carried: c.attached,
            age_seconds: now.saturating_sub(c.since),
            bytes_sent: c.bytes[0],
            bytes_received: c.bytes[1],
        })
        .collect();
    connections.sort_by_key(|c| (c.server_pid, c.age_seconds));
    let mut listeners: Vec<Listener> = board
        .listeners()
        .iter()
        .map(|l| Listener {
            address: shown(l.addr),
            pid: l.owner.pid(),
            comm: comm(l.owner),
        })
        .collect();
    listeners.sort_by_key(|l| l.pid);
    Ok(Snapshot {
        listeners,
        connections,
    })
}

fn explain(folder: &str, problem: &OpenError) -> String {
    match problem {
        OpenError::Failed(what, errno) => {
            let error = std::io::Error::from_raw_os_error(*errno);
            format!("{what} in {folder}: {error}")
        }
        OpenError::Unsafe(what) => {
            format!("{what} in {folder}: not this user's, or open to others; see headwater doctor")
        }
    }
}

fn shown(addr: Addr) -> String {
    let ip = IpAddr::V6(Ipv6Addr::from_bits(addr.ip)).to_canonical();
    SocketAddr::new(ip, addr.port).to_string()
}

/// The name of a process that is still the one meant; `?` otherwise, and for those of other pid namespaces.
fn comm(owner: Owner) -> String {
    let is_seen = owner.is_beside(process::owner()) && !process::dead(owner);
    let name = is_seen.then(|| super::comm(owner.pid())).flatten();
    name.unwrap_or_else(|| "?".to_string())
}
