//! The numbers that System V lets an administrator set, with its defaults: from a file and the environment, read once.
//! docs/streams.md is their page.

use std::sync::OnceLock;

use headwater_host::env;
use headwater_host::log::{self, Level};

/// All sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {
    /// High-water mark of a stream head's read queue, and of a band.
    pub hiwat: usize,
    pub lowat: usize,
    /// Longest data part of a message.
    pub strmsgsz: usize,
    /// Longest control part.
    pub strctlsz: usize,
    /// Modules on one stream.
    pub nstrpush: usize,
    /// Bands, 0 included.
    pub nband: usize,
    /// How long close waits for data to drain, in milliseconds.
    pub close_time_ms: u32,
}

pub const DEFAULT: Tunables = Tunables {
    hiwat: 5120,
    lowat: 1024,
    strmsgsz: 262_144,
    strctlsz: 4096,
    nstrpush: 64,
    nband: 256,
    close_time_ms: 15_000,
};

const FILE: &str = "/etc/headwater/streams.conf";

static TUNABLES: OnceLock<Tunables> = OnceLock::new();

#[inline]
pub fn get() -> &'static Tunables {
    TUNABLES.get_or_init(|| {
        let file = env::var("HEADWATER_STREAMS_FILE").unwrap_or_else(|| FILE.to_string());
        let mut complaints = Vec::new();
        let mut tunables = DEFAULT;
        if let Ok(text) = std::fs::read_to_string(&file) {
            tunables.read(&text, &file, &mut complaints);
        }
        if let Some(text) = env::var("HEADWATER_STREAMS") {
            tunables.read(&text, "HEADWATER_STREAMS", &mut complaints);
        }
        for complaint in complaints {
            log::write(Level::Warn, format_args!("{complaint}"));
        }
        tunables
    })
}

impl Tunables {
    /// What a file with this text makes of the defaults, and the complaints about it.
    pub fn parse(text: &str) -> (Tunables, Vec<String>) {
        let (mut tunables, mut complaints) = (DEFAULT, Vec::new());
        tunables.read(text, "text", &mut complaints);
        (tunables, complaints)
    }

    /// Takes `name=value` words, separated by blanks, commas or lines; from `#` to the end of a line is a comment.
    fn read(&mut self, text: &str, source: &str, complaints: &mut Vec<String>) {
        let words = text
            .lines()
            .map(|line| line.split('#').next().unwrap_or(""))
            .flat_map(|line| line.split([' ', '\t', ',']))
            .filter(|word| !word.is_empty());
        for word in words {
            if let Err(why) = self.set(word) {
                complaints.push(format!("{source}: {word}: {why}; ignored"));
            }
        }
    }

    fn set(&mut self, word: &str) -> Result<(), String> {
        let Some((name, value)) = word.split_once('=') else {
            return Err("want name=value".to_string());
        };
        let value: usize = value.parse().map_err(|_| "want a number".to_string())?;
        let within = |least: usize, most: usize| {
            if (least..=most).contains(&value) {
                Ok(value)
            } else {
                Err(format!("want {least} to {most}"))
            }
        };
        match name {
            "hiwat" => self.hiwat = within(1, 1 << 30)?,
            "lowat" => self.lowat = within(0, 1 << 30)?,
            "strmsgsz" => self.strmsgsz = within(1, 1 << 30)?,
            "strctlsz" => self.strctlsz = within(0, 16384)?,
            "nstrpush" => self.nstrpush = within(1, 1024)?,
            "nband" => self.nband = within(1, 256)?,
            "cltime" => self.close_time_ms = within(0, 3_600_000)? as u32,
            _ => {
                return Err(
                    "no such tunable; there are hiwat, lowat, strmsgsz, strctlsz, nstrpush, nband, cltime"
                        .to_string(),
                );
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_in_words_and_lines() {
        let (t, complaints) =
            Tunables::parse("hiwat=8192 lowat=2048\n# cltime=1\ncltime=500, nband=8");
        assert_eq!(
            (t.hiwat, t.lowat, t.close_time_ms, t.nband),
            (8192, 2048, 500, 8)
        );
        assert!(complaints.is_empty());
    }

    #[test]
    fn what_makes_no_sense_is_named_and_ignored() {
        let (t, complaints) = Tunables::parse("hiwat=many nband=0 hiwait=3 lowat");
        assert_eq!(t, DEFAULT);
        assert_eq!(complaints.len(), 4);
        assert!(complaints[0].contains("hiwat=many"));
    }
}
