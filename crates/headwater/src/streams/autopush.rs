//! `headwater streams autopush`: the table behind sad(7D).

use std::fs;
use std::path::PathBuf;

use clap::Subcommand;
use headwater_streams::drivers::pushlist::{self, Entry, MAXAPUSH, Minors};
use headwater_streams::exec::registry::{FMNAMESZ, find_module};
use serde::Serialize;

use super::explain;
use crate::stat::{lines, print, table};

#[derive(clap::Args)]
pub struct Autopush {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Print the table as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum Verb {
    /// Push modules whenever DEVICE is opened, the first one lowest
    Set {
        /// Name under /dev
        device: String,
        #[arg(required = true, num_args = 1..=MAXAPUSH)]
        modules: Vec<String>,
        /// One minor device, or FIRST-LAST; all when not given
        #[arg(long, value_name = "MINOR", value_parser = minors)]
        minor: Option<Minors>,
    },
    /// Push nothing on DEVICE any more
    Remove {
        device: String,
        /// The minor device, the first one of a range
        #[arg(long, default_value_t = 0)]
        minor: u32,
    },
    /// Set all entries of a file: lines of device, first and last minor device (-1 -1: all), modules
    Load { file: PathBuf },
}

#[derive(Serialize)]
struct Shown {
    device: String,
    /// First and last minor device; null: all.
    minors: Option<(u32, u32)>,
    modules: Vec<String>,
}

fn minors(word: &str) -> Result<Minors, String> {
    let (first, last) = word.split_once('-').unwrap_or((word, word));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if first <= last => Ok(Minors::Range(first, last)),
        _ => Err("want a number, or FIRST-LAST".to_string()),
    }
}

impl Autopush {
    pub fn execute(&self) -> Result<(), String> {
        match &self.verb {
            None => {
                let entries = pushlist::list();
                let shown: Vec<Shown> = entries.iter().map(Shown::from).collect();
                let _ = print(self.json, &shown, || text(&entries));
                Ok(())
            }
            Some(Verb::Set {
                device,
                modules,
                minor,
            }) => set(Entry {
                device: plain(device),
                minors: minor.unwrap_or(Minors::All),
                modules: modules.clone(),
            }),
            Some(Verb::Remove { device, minor }) => remove(&plain(device), *minor),
            Some(Verb::Load { file }) => load(file),
        }
    }
}

fn text(entries: &[Entry]) -> String {
    if entries.is_empty() {
        return "Nothing is pushed by itself.\n".to_string();
    }
    let mut table = table(&["DEVICE", "MINORS", "MODULES"]);
    for e in entries {
        let minors = match e.minors {
            Minors::All => "all".to_string(),
            Minors::Range(first, last) if first == last => first.to_string(),
            Minors::Range(first, last) => format!("{first}-{last}"),
        };
        table.add_row([e.device.clone(), minors, e.modules.join(" ")]);
    }
    lines(table)
}

impl From<&Entry> for Shown {
    fn from(e: &Entry) -> Shown {
        Shown {
            device: e.device.clone(),
            minors: match e.minors {
                Minors::All => None,
                Minors::Range(first, last) => Some((first, last)),
            },
            modules: e.modules.clone(),
        }
    }
}

/// `/dev/echo` and `/dev/streams/echo` are `echo`.
fn plain(device: &str) -> String {
    let name = device.strip_prefix("/dev/").unwrap_or(device);
    name.strip_prefix("streams/").unwrap_or(name).to_string()
}

fn set(entry: Entry) -> Result<(), String> {
    headwater_streams::modules::register();
    for name in &entry.modules {
        if name.len() > FMNAMESZ {
            return Err(format!("{name}: longer than {FMNAMESZ} letters"));
        }
        if find_module(name).is_none() {
            eprintln!(
                "headwater streams autopush: {name} is not built in; programs without it can't open {}",
                entry.device
            );
        }
    }
    let device = entry.device.clone();
    pushlist::set(entry).map_err(|errno| match errno {
        libc::EEXIST => format!("{device}: has an entry already; remove it first"),
        libc::EINVAL => format!("{device}: impossible names or minor devices"),
        errno => explain(errno),
    })
}

fn remove(device: &str, minor: u32) -> Result<(), String> {
    pushlist::remove(device, minor).map_err(|errno| match errno {
        libc::ENODEV => format!("{device}: no entry for minor device {minor}"),
        libc::ERANGE => format!("{device}: minor device {minor} is not the first of its range"),
        libc::ENOENT => format!("{device}: there is no table"),
        errno => explain(errno),
    })
}

fn load(file: &PathBuf) -> Result<(), String> {
    let text = fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        if line.is_empty() {
            continue;
        }
        let at = || format!("{}:{}", file.display(), number + 1);
        let entry = Entry::parse(line).ok_or_else(|| format!("{}: makes no sense", at()))?;
        set(entry).map_err(|problem| format!("{}: {problem}", at()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minor_devices_are_one_or_a_range() {
        assert_eq!(minors("3"), Ok(Minors::Range(3, 3)));
        assert_eq!(minors("3-7"), Ok(Minors::Range(3, 7)));
        assert!(minors("7-3").is_err() && minors("-1").is_err() && minors("x").is_err());
    }

    #[test]
    fn a_device_may_be_given_as_a_path() {
        for name in ["echo", "/dev/echo", "/dev/streams/echo"] {
            assert_eq!(plain(name), "echo");
        }
    }
}
