//! Ports of 127.0.0.1 that others may take first.

use std::fs;
use std::io;
use std::net::TcpListener;

/// Whether a server that ended, having said this, did so because somebody else has its port.
pub fn is_taken(port: u16, said: &str) -> bool {
    let in_use = |error: &io::Error| error.kind() == io::ErrorKind::AddrInUse;
    said.to_lowercase().contains("address already in use")
        || TcpListener::bind(("127.0.0.1", port)).is_err_and(|error| in_use(&error))
}

/// Whether one of these processes listens on a TCP port, or may: those of another account may hide their descriptors.
pub fn is_served_by(port: u16, processes: &[i32]) -> bool {
    let sockets = listeners(port);
    let has_one = |pid: &i32| match fs::read_dir(format!("/proc/{pid}/fd")) {
        Ok(descriptors) => descriptors.flatten().any(|entry| {
            let to = fs::read_link(entry.path()).unwrap_or_default();
            sockets
                .iter()
                .any(|socket| to.as_os_str() == socket.as_str())
        }),
        Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
    };
    !sockets.is_empty() && processes.iter().any(has_one)
}

/// Whether anybody listens there, found out without a connection that would show in their counters.
pub fn is_served(port: u16) -> bool {
    !listeners(port).is_empty()
}

/// The sockets that listen there, as /proc/PID/fd names them.
fn listeners(port: u16) -> Vec<String> {
    let table = fs::read_to_string("/proc/thread-self/net/tcp").unwrap_or_default();
    table
        .lines()
        .filter_map(|line| listener(line, port))
        .collect()
}

fn listener(line: &str, port: u16) -> Option<String> {
    const LISTEN: &str = "0A";
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (address, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
    let here = ["00000000", "0100007F"].map(|host| format!("{host}:{port:04X}"));
    let found = here.iter().any(|known| known == address) && *state == LISTEN;
    found.then(|| format!("socket:[{inode}]"))
}

#[cfg(test)]
mod tests;
