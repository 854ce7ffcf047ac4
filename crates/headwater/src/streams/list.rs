//! `headwater streams list`.

use headwater_streams::board::read::{self, Listed};
use serde::Serialize;

use crate::stat::{comm, lines, print, right, table, who};
use crate::units;

#[derive(clap::Args)]
pub struct List {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One descriptor of a stream in one process.
#[derive(Serialize, Debug)]
struct Stream {
    pid: u32,
    comm: String,
    fd: i32,
    /// Device, "pipe" or "fifo".
    stream: String,
    /// The topmost first.
    modules: Vec<String>,
    /// What waits to go down and to come up; messages are not counted in queues.
    messages_down: Option<u64>,
    bytes_down: u64,
    messages_up: Option<u64>,
    bytes_up: u64,
    hiwat: u64,
    lowat: u64,
    times_full: u64,
    wakeups: u64,
    age_seconds: u64,
}

impl List {
    pub fn execute(&self) -> Result<(), String> {
        let folder = headwater_host::board::folder();
        let listed = read::all().map_err(|e| format!("{folder}: {e}"))?;
        let streams: Vec<Stream> = listed.into_iter().map(Stream::from).collect();
        // A reader that has had enough ends us by SIGPIPE.
        let _ = print(self.json, &streams, || text(&streams));
        Ok(())
    }
}

impl From<Listed> for Stream {
    fn from(s: Listed) -> Stream {
        Stream {
            pid: s.pid,
            comm: comm(s.pid).unwrap_or_else(|| "?".to_string()),
            fd: s.fd,
            stream: s.name,
            modules: s.modules,
            messages_down: s.down.messages,
            bytes_down: s.down.bytes,
            messages_up: s.up.messages,
            bytes_up: s.up.bytes,
            hiwat: s.hiwat,
            lowat: s.lowat,
            times_full: s.fulls,
            wakeups: s.wakeups,
            age_seconds: s.age_seconds,
        }
    }
}

fn text(streams: &[Stream]) -> String {
    if streams.is_empty() {
        return "No streams.\n".to_string();
    }
    let mut table = table(&[
        "PROCESS", "FD", "STREAM", "MODULES", "DOWN", "UP", "MARKS", "FULL", "WOKEN", "AGE",
    ]);
    for s in streams {
        table.add_row([
            who(&s.comm, s.pid),
            s.fd.to_string(),
            s.stream.clone(),
            match s.modules.is_empty() {
                true => "-".to_string(),
                false => s.modules.join(","),
            },
            waiting(s.messages_down, s.bytes_down),
            waiting(s.messages_up, s.bytes_up),
            format!("{}/{}", s.lowat, s.hiwat),
            s.times_full.to_string(),
            s.wakeups.to_string(),
            units::duration(s.age_seconds),
        ]);
    }
    right(table.column_iter_mut().skip(4));
    lines(table)
}

/// Messages and bytes: `2 (1.5 KiB)`.
fn waiting(messages: Option<u64>, bytes: u64) -> String {
    match messages {
        Some(0) => "0".to_string(),
        Some(messages) => format!("{messages} ({})", units::bytes(bytes)),
        None => units::bytes(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headwater_streams::board::read::Waits;

    #[test]
    fn a_stream_is_one_line() {
        let waits = |messages, bytes| Waits { messages, bytes };
        let stream = Stream::from(Listed {
            pid: u32::MAX,
            fd: 3,
            name: "pipe".to_string(),
            modules: vec!["sc".to_string(), "bufmod".to_string()],
            hiwat: 5120,
            lowat: 1024,
            age_seconds: 61,
            down: waits(Some(2), 1536),
            up: waits(Some(0), 0),
            fulls: 7,
            wakeups: 1,
        });
        let text = text(&[stream]);
        let words: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(
            words.join(" "),
            "?[4294967295] 3 pipe sc,bufmod 2 (1.5 KiB) 0 1024/5120 7 1 1m01s"
        );
    }

    #[test]
    fn nothing_is_said_in_one_line() {
        assert_eq!(text(&[]), "No streams.\n");
    }
}
