//! `headwater stat sctp`: associations over UDP or raw IP, as their processes tell of them.

use std::io;
use std::process::ExitCode;

use comfy_table::Table;
use serde::{Deserialize, Serialize};

use headwater_sctp_stack::stat;

use super::{comm, print, right, table, who};
use crate::units;

#[derive(clap::Args)]
pub struct Sctp {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A process, as it tells of itself.
#[derive(Serialize, Deserialize, Default, Debug)]
struct Process {
    pid: u32,
    #[serde(default)]
    comm: String,
    /// By which its packets can leave.
    links: Vec<String>,
    ports: Vec<u16>,
    #[serde(default)]
    associations: Vec<Association>,
}

#[derive(Serialize, Deserialize, Debug)]
struct Association {
    local_port: u16,
    peer_port: u16,
    state: String,
    streams_out: u32,
    streams_in: u32,
    messages_in: u64,
    messages_out: u64,
    bytes_in: u64,
    bytes_out: u64,
    packets_in: u64,
    packets_out: u64,
    /// Of T3.
    timeouts: u64,
    /// Bytes: queued or unacknowledged; of them sent; windows of the peer and our own.
    buffered: u64,
    outstanding: u64,
    peer_window: u64,
    window: u64,
    paths: Vec<Path>,
}

#[derive(Serialize, Deserialize, Debug)]
struct Path {
    address: String,
    /// 0: straight on IP.
    udp_port: u16,
    primary: bool,
    state: String,
    srtt_us: u64,
    rto_ms: u64,
    cwnd: u64,
    ssthresh: u64,
    flight: u64,
    mtu: u64,
    errors: u32,
    retransmissions: u64,
}

impl Sctp {
    pub fn execute(&self) -> ExitCode {
        let all = read();
        match print(self.json, &all, || text(&all)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        }
    }
}

/// All processes that may be asked and answer.
fn read() -> Vec<Process> {
    let me = headwater_host::sys::getuid();
    let mut all = Vec::new();
    for (uid, pid) in stat::processes() {
        if uid != me && me != 0 {
            continue;
        }
        match stat::ask(uid, pid) {
            Ok(told) => all.extend(parse(&told)),
            // It has just ended.
            Err(libc::ECONNREFUSED) => {}
            Err(errno) => eprintln!(
                "headwater stat: process {pid} does not answer: {}",
                io::Error::from_raw_os_error(errno)
            ),
        }
    }
    all
}

fn parse(told: &[String]) -> Option<Process> {
    let (first, rest) = told.split_first()?;
    let mut process: Process = serde_json::from_str(first).ok()?;
    process.comm = comm(process.pid).unwrap_or_default();
    process.associations = rest
        .iter()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    Some(process)
}

fn text(all: &[Process]) -> String {
    if all.iter().all(|process| process.associations.is_empty()) {
        return "No SCTP associations over a link.\n".to_string();
    }
    let mut table = table(&[
        "PROCESS", "PORT", "PEER", "STATE", "STREAMS", "SENT", "RECEIVED", "QUEUED", "PATH",
        "SRTT", "RTO", "CWND", "FLIGHT", "MTU", "RTX",
    ]);
    for process in all {
        for association in &process.associations {
            add(&mut table, process, association);
        }
    }
    right(table.column_iter_mut().skip(5).filter(|c| c.index != 8));
    // Not trimmed on the left: a further path stands below the first.
    let text = table.to_string();
    text.lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect()
}

/// A line for each path; what belongs to the association stands in the first.
fn add(table: &mut Table, process: &Process, a: &Association) {
    for (i, path) in a.paths.iter().enumerate() {
        let association = match i {
            0 => [
                who(&process.comm, process.pid),
                a.local_port.to_string(),
                a.peer_port.to_string(),
                a.state.clone(),
                format!("{}/{}", a.streams_out, a.streams_in),
                units::bytes(a.bytes_out),
                units::bytes(a.bytes_in),
                units::bytes(a.buffered),
            ],
            _ => [const { String::new() }; 8],
        };
        table.add_row(association.into_iter().chain(path.cells()));
    }
}

impl Path {
    fn cells(&self) -> [String; 7] {
        let primary = if self.primary { "*" } else { "" };
        let link = match self.udp_port {
            0 => String::new(),
            port => format!(" udp {port}"),
        };
        let state = match self.state.as_str() {
            "active" => String::new(),
            state => format!(" ({state})"),
        };
        [
            format!("{}{primary}{link}{state}", self.address),
            format!("{} us", self.srtt_us),
            format!("{} ms", self.rto_ms),
            units::bytes(self.cwnd),
            units::bytes(self.flight),
            self.mtu.to_string(),
            self.retransmissions.to_string(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_association_is_a_line_for_each_path() {
        let told = [
            r#"{"pid":7,"links":["udp"],"ports":[9000]}"#,
            r#"{"local_port":9000,"peer_port":50000,"state":"established","streams_out":10,"streams_in":10,"messages_in":1,
                "messages_out":2,"bytes_in":3,"bytes_out":4,"packets_in":5,"packets_out":6,"timeouts":0,"buffered":0,
                "outstanding":0,"peer_window":1,"window":1,"paths":[
                {"address":"10.0.0.1","udp_port":9899,"primary":true,"state":"active","srtt_us":50,"rto_ms":1000,"cwnd":4380,
                 "ssthresh":1,"flight":0,"mtu":1452,"errors":0,"retransmissions":3},
                {"address":"10.0.1.1","udp_port":9899,"primary":false,"state":"inactive","srtt_us":0,"rto_ms":3000,"cwnd":1,
                 "ssthresh":1,"flight":0,"mtu":1452,"errors":6,"retransmissions":0}]}"#,
        ];
        let process = parse(&told.map(String::from)).unwrap();
        let text = text(&[process]);
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!(rows.len(), 3);
        assert!(rows[1].contains("established") && rows[1].contains("10.0.0.1* udp 9899"));
        assert!(rows[2].trim().starts_with("10.0.1.1 udp 9899 (inactive)"));
        let column = |row: &str| row.find("10.0.");
        assert_eq!(column(rows[1]), column(rows[2]));
    }
}
