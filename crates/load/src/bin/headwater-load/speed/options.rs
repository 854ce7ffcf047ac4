//! The command line.

use std::time::Duration;

use clap::{Parser, ValueEnum};

use crate::until::Until;
use crate::{Words, seconds};

/// The bytes of a slot that no message gets: its frame's header and the room that a ring keeps free.
pub const SLOT_OVERHEAD: usize = 32;
/// The numbers at both ends of a message.
pub const SHORTEST: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Mode {
    Run,
    Copy,
    Chat,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Carrier {
    Tcp,
    Unix,
    Eventfd,
    Futex,
    InPlace,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Class {
    Normal,
    Batch,
    Fifo,
    #[value(name = "rr")]
    RoundRobin,
}

#[derive(Clone, Debug, Parser)]
#[command(name = "headwater-load speed", no_binary_name = true)]
pub struct Options {
    pub mode: Mode,
    /// `copy` has none, and a chat only tcp or unix
    #[arg(default_value = "futex")]
    pub carrier: Carrier,
    #[arg(long, default_value_t = 70)]
    pub size: usize,
    #[arg(long = "seconds", default_value = "1", value_parser = seconds)]
    time: Duration,
    /// Messages of each connection, however long they take
    #[arg(long)]
    count: Option<u64>,
    /// Connections, each with a thread at both ends
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// Messages that a client may have under way
    #[arg(long, default_value_t = 1)]
    pub ahead: usize,
    #[arg(long)]
    pub latencies: bool,
    /// A ring is so many slots
    #[arg(long, default_value_t = 4)]
    pub slots: usize,
    /// Bytes of a slot; a message that is larger goes in several frames
    #[arg(long, default_value_t = 64 << 10)]
    pub slot: usize,
    /// Rings that a connection uses in turn, in each direction
    #[arg(long, default_value_t = 1)]
    pub windows: usize,
    #[arg(long, default_value_t = 1)]
    pub rooms: usize,
    /// Of each room
    #[arg(long, default_value_t = 20)]
    pub members: usize,
    /// Processes that the members are in
    #[arg(long, default_value_t = 1)]
    pub clients: usize,
    /// The chat server waits by poll(2) instead of epoll(7)
    #[arg(long)]
    pub poll: bool,
    #[arg(long, value_delimiter = ',')]
    pub server_cpus: Vec<usize>,
    #[arg(long, value_delimiter = ',')]
    pub client_cpus: Vec<usize>,
    #[arg(long, default_value = "normal")]
    pub class: Class,
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    pub nice: i32,
    /// Begin when standard input ends
    #[arg(long)]
    pub on_eof: bool,
    /// For tests: the server changes a byte of this message before it sends it back
    #[arg(long)]
    pub spoil: Option<u64>,
}

impl Words for Options {
    fn check(&self) -> Result<(), String> {
        let counts = [
            self.threads,
            self.ahead,
            self.slots,
            self.windows,
            self.rooms,
            self.members,
            self.clients,
        ];
        if counts.contains(&0) {
            return Err("a count of nothing".to_string());
        }
        if self.size < SHORTEST {
            return Err(format!("a message has at least {SHORTEST} bytes"));
        }
        if self.slot <= SLOT_OVERHEAD {
            return Err(format!("a slot has more than {SLOT_OVERHEAD} bytes"));
        }
        if self.carrier == Carrier::InPlace && self.size > self.payload() {
            return Err("a message that is read in place fits into a slot".to_string());
        }
        let sockets = matches!(self.carrier, Carrier::Tcp | Carrier::Unix);
        if self.mode == Mode::Chat && !sockets {
            return Err("a chat goes over tcp or unix".to_string());
        }
        Ok(())
    }
}

impl Options {
    pub fn until(&self) -> Until {
        self.count.map_or(Until::Time(self.time), Until::Count)
    }

    /// How much to run before measuring, so that connections are set up and waits have learnt how long they may be.
    pub fn warm_up(&self) -> Until {
        self.until().warm_up(Duration::from_millis(100))
    }

    /// The bytes of a message that a slot takes.
    pub fn payload(&self) -> usize {
        self.slot - SLOT_OVERHEAD
    }

    /// The bytes of a ring: its slots, and never less than a page.
    pub fn ring(&self) -> usize {
        (self.slots * self.slot).max(4096).next_power_of_two()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<Options, clap::Error> {
        Options::read(words.split(' ').map(str::to_string))
    }

    #[test]
    fn a_ring_is_as_large_as_its_slots_and_at_least_a_page() {
        let ring = |words: &str| parse(&format!("run futex {words}")).unwrap().ring();
        assert_eq!(ring("--slots 1024 --slot 65536"), 64 << 20);
        assert_eq!(ring("--slots 2 --slot 256"), 4096);
        assert_eq!(ring("--slots 152 --slot 1024"), 256 << 10);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert!(parse("run doors").is_err());
        assert!(parse("run tcp --size 8").is_err());
        assert!(parse("run tcp --threads 0").is_err());
        assert!(parse("run in-place --size 1000 --slot 1024").is_err());
        assert!(parse("chat futex").is_err());
        assert!(parse("chat").is_err());
        assert!(parse("run tcp --size").is_err());
    }

    #[test]
    fn cpus_are_a_list() {
        let options = parse("run tcp --server-cpus 0 --client-cpus 1,3").unwrap();
        assert_eq!(
            (options.server_cpus, options.client_cpus),
            (vec![0], vec![1, 3])
        );
    }
}
