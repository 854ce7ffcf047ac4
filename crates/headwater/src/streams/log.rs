//! `headwater streams strace` and `strerr`: what processes of this user hand to strlog(9F), as strace(8) and strerr(8) of
//! System V print it.

use std::io;

use headwater_streams::drivers::log::TraceIds;
use headwater_streams::strlog::{self, Entry, SL_ERROR, SL_FATAL, SL_NOTIFY, SL_TRACE};
use serde::Serialize;

use super::explain;
use crate::stat::{print, printable};

#[derive(clap::Args)]
pub struct Trace {
    /// Which messages: of module ID, its minor device and up to a level; `all` is any. Everything when none is given
    #[arg(value_name = "MID SID LEVEL", value_parser = id, allow_negative_numbers = true)]
    ids: Vec<i16>,
    #[command(flatten)]
    how: How,
}

#[derive(clap::Args)]
pub struct Errors {
    #[command(flatten)]
    how: How,
}

#[derive(clap::Args)]
struct How {
    /// Print the messages of the recent past, and stop
    #[arg(long)]
    kept: bool,
    /// Print JSON, a line for each message
    #[arg(long)]
    json: bool,
}

/// A message, for JSON.
#[derive(Serialize)]
struct Message<'a> {
    sequence: u64,
    pid: u32,
    /// Seconds since 1970.
    time: u64,
    /// Hundredths of a second since boot.
    ticks: u64,
    mid: i16,
    sid: i16,
    level: i8,
    flags: u16,
    text: &'a str,
}

fn id(word: &str) -> Result<i16, String> {
    match word {
        "all" => Ok(-1),
        word => word
            .parse()
            .map_err(|_| "want a number of 16 bits, or all".to_string()),
    }
}

impl Trace {
    pub fn execute(&self) -> Result<(), String> {
        let (triples, rest) = self.ids.as_chunks::<3>();
        if !rest.is_empty() {
            return Err("want triples of module ID, minor device and level".to_string());
        }
        let wanted: Vec<TraceIds> = triples.iter().map(trace_ids).collect::<Result<_, _>>()?;
        self.how.print(1, |entry| {
            entry.line.flags & SL_TRACE != 0
                && (wanted.is_empty() || wanted.iter().any(|ids| ids.matches(&entry.line)))
        })
    }
}

fn trace_ids(&[mid, sid, level]: &[i16; 3]) -> Result<TraceIds, String> {
    let level = i8::try_from(level).map_err(|_| format!("no such level: {level}"))?;
    Ok(TraceIds { mid, sid, level })
}

impl Errors {
    pub fn execute(&self) -> Result<(), String> {
        self.how.print(0, |entry| entry.line.flags & SL_ERROR != 0)
    }
}

impl How {
    /// `kind`: by which of an entry's numbers it is printed.
    fn print(&self, kind: usize, wanted: impl Fn(&Entry) -> bool) -> Result<(), String> {
        let mut lines = strlog::follow(0).map_err(explain)?;
        if self.kept {
            let kept = std::iter::from_fn(|| lines.next_kept());
            let _ = self.write(kept.filter(wanted), kind);
        } else {
            lines.skip_to_end();
            let _ = self.write(lines.filter(wanted), kind);
        }
        Ok(())
    }

    fn write(&self, entries: impl Iterator<Item = Entry>, kind: usize) -> io::Result<()> {
        for entry in entries {
            let text = String::from_utf8_lossy(&entry.text);
            let text = printable(text.trim_end());
            let line = || format!("{}\n", line(&entry, kind, &text));
            print(self.json, &message(&entry, kind, &text), line)?;
        }
        Ok(())
    }
}

fn message<'a>(entry: &Entry, kind: usize, text: &'a str) -> Message<'a> {
    Message {
        sequence: entry.kinds[kind],
        pid: entry.pid,
        time: entry.seconds,
        ticks: entry.ticks,
        mid: entry.line.mid,
        sid: entry.line.sid,
        level: entry.line.level,
        flags: entry.line.flags,
        text,
    }
}

/// Sequence number, time, ticks, for traces the level, flags, module ID, minor device, text.
fn line(entry: &Entry, kind: usize, text: &str) -> String {
    let traces = kind == 1;
    let level = match traces {
        true => format!("{} ", entry.line.level),
        false => String::new(),
    };
    format!(
        "{} {} {} {level}{} {} {} {text}",
        entry.kinds[kind],
        clock(entry.seconds),
        entry.ticks,
        flags(entry.line.flags, traces),
        entry.line.mid,
        entry.line.sid
    )
}

/// E: for error loggers too, T: for trace loggers too, F: fatal, N: the administrator is to be told; `-` for none.
fn flags(flags: u16, traces: bool) -> String {
    let also = match traces {
        true => (SL_ERROR, 'E'),
        false => (SL_TRACE, 'T'),
    };
    let letters: String = [also, (SL_FATAL, 'F'), (SL_NOTIFY, 'N')]
        .iter()
        .filter(|(flag, _)| flags & flag != 0)
        .map(|(_, letter)| *letter)
        .collect();
    match letters.is_empty() {
        true => "-".to_string(),
        false => letters,
    }
}

/// The time of day where we are.
fn clock(seconds: u64) -> String {
    let seconds = seconds as libc::time_t;
    // SAFETY: plain data, written by the call.
    let tm = unsafe {
        let mut tm: libc::tm = std::mem::zeroed();
        libc::localtime_r(&seconds, &mut tm);
        tm
    };
    format!("{:02}:{:02}:{:02}", tm.tm_hour, tm.tm_min, tm.tm_sec)
}

#[cfg(test)]
mod tests {
    use super::*;
    use headwater_streams::strlog::Line;

    #[test]
    fn lines_have_the_columns_of_strace_and_strerr() {
        let entry = Entry {
            number: 9,
            kinds: [4, 5, 0],
            line: Line {
                mid: 12,
                sid: 3,
                level: 1,
                flags: SL_ERROR | SL_TRACE | SL_FATAL,
                pri: 2,
            },
            pid: 7,
            seconds: 0,
            ticks: 1234,
            text: b"it broke".to_vec(),
        };
        let words = |kind| {
            let line = line(&entry, kind, "it broke");
            let (number, rest) = line.split_once(' ').unwrap();
            format!("{number} {}", rest.split_once(' ').unwrap().1)
        };
        assert_eq!(words(1), "5 1234 1 EF 12 3 it broke");
        assert_eq!(words(0), "4 1234 TF 12 3 it broke");
    }

    #[test]
    fn ids_are_numbers_or_all() {
        assert_eq!(id("all"), Ok(-1));
        assert_eq!(id("17"), Ok(17));
        assert!(id("70000").is_err() && id("x").is_err());
    }
}
