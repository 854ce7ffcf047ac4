//! `headwater stat`: the accelerated connections of this user, and its SCTP associations.

mod board;
mod sctp;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use comfy_table::{CellAlignment, Column, Table, presets};
use serde::Serialize;

use crate::units;

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Stat {
    #[command(subcommand)]
    what: Option<What>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print again every so many seconds, until interrupted
    #[arg(
        long,
        value_name = "SECONDS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1",
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    watch: Option<u64>,
}

#[derive(clap::Subcommand)]
enum What {
    /// List SCTP associations over UDP or raw IP, with their paths
    Sctp(sctp::Sctp),
}

/// What the board shows at one moment.
#[derive(Serialize, Default, Debug)]
struct Snapshot {
    listeners: Vec<Listener>,
    connections: Vec<Connection>,
}

#[derive(Serialize, Debug)]
struct Listener {
    address: String,
    pid: u32,
    comm: String,
}

#[derive(Serialize, Debug)]
struct Connection {
    /// Local and remote as the client sees them.
    local: String,
    remote: String,
    client_pid: u32,
    client_comm: String,
    server_pid: u32,
    server_comm: String,
    /// Both ends have taken it over; before that it is TCP.
    carried: bool,
    age_seconds: u64,
    /// By shared memory, as of the last refresh: client to server, and back.
    bytes_sent: u64,
    bytes_received: u64,
}

impl Stat {
    pub fn execute(&self) -> ExitCode {
        if let Some(What::Sctp(sctp)) = &self.what {
            return sctp.execute();
        }
        loop {
            let snapshot = match board::read() {
                Ok(snapshot) => snapshot,
                Err(problem) => {
                    eprintln!("headwater stat: {problem}");
                    return ExitCode::FAILURE;
                }
            };
            let shown = self.show(&snapshot);
            match self.watch {
                Some(seconds) if shown.is_ok() => thread::sleep(Duration::from_secs(seconds)),
                _ => return ExitCode::SUCCESS,
            }
        }
    }

    fn show(&self, snapshot: &Snapshot) -> io::Result<()> {
        // Home, and clear to the end.
        let clears = self.watch.is_some() && io::stdout().is_terminal();
        let begin = if clears { "\x1b[H\x1b[J" } else { "" };
        print(self.json, snapshot, || {
            format!("{begin}{}", snapshot.text())
        })
    }
}

impl Snapshot {
    fn text(&self) -> String {
        if self.connections.is_empty() && self.listeners.is_empty() {
            return "No accelerated connections, and nobody listens with Headwater.\n".to_string();
        }
        let mut text = String::new();
        match self.connections.is_empty() {
            true => text.push_str("No accelerated connections.\n"),
            false => text.push_str(&lines(self.connection_table())),
        }
        if !self.listeners.is_empty() {
            text.push('\n');
            text.push_str(&lines(self.listener_table()));
        }
        text
    }

    fn connection_table(&self) -> Table {
        let mut table = table(&["CLIENT", "FROM", "TO", "SERVER", "AGE", "SENT", "RECEIVED"]);
        for c in &self.connections {
            let bytes = |n| match c.carried {
                true => units::bytes(n),
                false => "-".to_string(),
            };
            table.add_row([
                who(&c.client_comm, c.client_pid),
                c.local.clone(),
                c.remote.clone(),
                who(&c.server_comm, c.server_pid),
                units::duration(c.age_seconds),
                bytes(c.bytes_sent),
                bytes(c.bytes_received),
            ]);
        }
        right(table.column_iter_mut().skip(4));
        table
    }

    fn listener_table(&self) -> Table {
        let mut table = table(&["LISTENER", "ADDRESS"]);
        for l in &self.listeners {
            table.add_row([who(&l.comm, l.pid), l.address.clone()]);
        }
        table
    }
}

/// Prints a value, in a line of JSON or as `text`.
pub(crate) fn print(
    json: bool,
    value: &impl Serialize,
    text: impl FnOnce() -> String,
) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if json {
        serde_json::to_writer(&mut out, value)?;
        writeln!(out)?;
    } else {
        write!(out, "{}", text())?;
    }
    out.flush()
}

/// The name of a process, while there is one.
pub(crate) fn comm(pid: u32) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(printable(name.trim_end()))
}

/// Programs choose names and texts; a terminal should not act on them.
pub(crate) fn printable(text: &str) -> String {
    let plain = |c: char| if c.is_control() { '?' } else { c };
    text.chars().map(plain).collect()
}

pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    table
}

/// Numbers stand below each other.
pub(crate) fn right<'a>(columns: impl Iterator<Item = &'a mut Column>) {
    columns.for_each(|column| column.set_cell_alignment(CellAlignment::Right));
}

pub(crate) fn lines(table: Table) -> String {
    let text = table.to_string();
    let trimmed = text.lines().map(|line| format!("{}\n", line.trim()));
    trimmed.collect()
}

/// `redis-server[12]`; only the number when the process is of another pid namespace, or gone.
pub(crate) fn who(comm: &str, pid: u32) -> String {
    format!("{comm}[{pid}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_one_line() {
        let snapshot = Snapshot {
            listeners: vec![Listener {
                address: "0.0.0.0:6379".to_string(),
                pid: 7,
                comm: "redis-server".to_string(),
            }],
            connections: vec![Connection {
                local: "127.0.0.1:50000".to_string(),
                remote: "127.0.0.1:6379".to_string(),
                client_pid: 8,
                client_comm: "redis-cli".to_string(),
                server_pid: 7,
                server_comm: "redis-server".to_string(),
                carried: true,
                age_seconds: 61,
                bytes_sent: 2048,
                bytes_received: 10,
            }],
        };
        let text = snapshot.text();
        let words: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(
            words,
            [
                "redis-cli[8]",
                "127.0.0.1:50000",
                "127.0.0.1:6379",
                "redis-server[7]",
                "1m01s",
                "2.0",
                "KiB",
                "10",
                "B"
            ]
        );
        assert!(text.ends_with("redis-server[7]  0.0.0.0:6379\n"));
    }

    #[test]
    fn nothing_is_said_in_one_line() {
        assert_eq!(Snapshot::default().text().lines().count(), 1);
    }
}
